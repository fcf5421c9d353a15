"""Image files that are damaged, too large, or of another format."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hostile import dpn, outcome, time_limit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from dpn_plugin.data import load
from dpn_plugin.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)


def encoded(kind: str, image: Image.Image | None = None, **keywords: object) -> bytes:
    stream = io.BytesIO()
    (image or Image.fromarray(PIXELS)).save(stream, kind, **keywords)
    return stream.getvalue()


def chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png_that_declares(width: int, height: int) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(x) print\n%%EOF\n"
PNG, JPEG = encoded("PNG"), encoded("JPEG")
BAD = {
    "zero.png": b"",
    "half.png": PNG[: len(PNG) // 2],
    "half.jpg": JPEG[: len(JPEG) // 2],
    "text.png": b"this is no picture",
    "bomb.png": png_that_declares(50_000, 50_000),
    "large.png": png_that_declares(2**31 - 1, 2**31 - 1),
    "none.png": png_that_declares(0, 0),
    "postscript.png": EPS,
    "tiff.png": b"II*\x00\x08\x00\x00\x00\xff\xff",
    "gif.png": b"GIF89a\xff\xff\xff\xff\x80\x00\x00",
    "pbm.ppm": b"P6 999999 999999 255\n",
    "text-bomb.png": PNG[:33]
    + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(70 << 20)))
    + PNG[33:],
}
GOOD = {
    "cmyk.jpg": encoded("JPEG", Image.fromarray(PIXELS).convert("CMYK")),
    "palette.png": encoded("PNG", Image.fromarray(PIXELS).convert("P")),
    "sixteen.png": encoded("PNG", Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 256)),
    "animated.gif.png": encoded(
        "GIF", save_all=True, append_images=[Image.fromarray(255 - PIXELS)]
    ),
    "lab.tif": encoded("TIFF", Image.fromarray(PIXELS).convert("RGB")),
    "float.tif": encoded("TIFF", Image.fromarray(PIXELS[..., 0].astype(np.float32))),
    "bits.png": encoded("PNG", Image.fromarray(PIXELS).convert("1")),
    "webp.webp": encoded("WEBP"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_file_that_is_not_an_image_is_named(name: str, tmp_path: Path, run: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / name).write_bytes(BAD[name])
    with time_limit(60), pytest.raises(UserError, match=f"{name} is not a readable image"):
        load(f"folder:{folder}", root="/", image_size=(8, 8))
    done = dpn("score", folder / name, "--run", run)
    assert (done.exit_code, name in done.output) == (2, True)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("channels", [1, 3])
def test_unusual_images_are_read(name: str, channels: int, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(GOOD[name])
    samples = load(f"folder:{tmp_path}", root="/", image_size=(8, 8), channels=channels)
    assert samples.inputs.shape == (1, channels, 8, 8)


def test_a_mode_that_cannot_be_converted_is_reported(tmp_path: Path) -> None:
    Image.new("LAB", (8, 8)).save(tmp_path / "lab.tif")
    with pytest.raises(UserError, match="image 0 cannot be used"):
        load(f"folder:{tmp_path}", root="/", channels=1)


def test_postscript_starts_no_interpreter(tmp_path: Path, marker: Path, monkeypatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(
        "PIL.EpsImagePlugin.gs_binary", None
    )  # Pillow remembers where it found the program
    (programs / "a.png").write_bytes(EPS)
    with pytest.raises(UserError, match="not a readable image"):
        load(f"folder:{programs}", root="/")
    assert not marker.exists()


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with time_limit(60), pytest.raises(UserError, match="not a readable image"):
        load(f"folder:{tmp_path}", root="/")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*GOOD, *BAD]),
    edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6),
    end=st.none() | st.integers(0, 600),
)
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_gives_an_image_or_a_message(name, edits, end, tmp_path: Path) -> None:
    content = bytearray((GOOD | BAD)[name][:100_000])
    for place, value in edits:
        if content:
            content[place % len(content)] = value
    folder = tmp_path / "one"
    folder.mkdir(exist_ok=True)
    (folder / "a.png").write_bytes(bytes(content[:end]))
    found = outcome(load, f"folder:{folder}", root="/", image_size=(8, 8), channels=3)
    if isinstance(found, str):
        assert "a.png" in found or "image 0" in found
    else:
        assert found.inputs.shape == (1, 3, 8, 8)


@pytest.mark.parametrize(
    "name", [b"\xff\xfe.png", "ünï \N{SNOWMAN}.png".encode(), b"[red]\x1b[2J.png"]
)
def test_file_names_are_printed_without_control_characters(
    name: bytes, tmp_path: Path, run: Path
) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / os.fsdecode(name)).write_bytes(PNG)
    for options in ((), ("--json",), ("--out", tmp_path / "scores.csv")):
        done = dpn("score", folder, "--run", run, *options)
        assert done.exit_code == 0, done.output
        assert "\x1b[2J" not in done.output
    assert (tmp_path / "scores.csv").stat().st_size
