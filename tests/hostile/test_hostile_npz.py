"""Archives with false headers are refused before memory is allocated."""

import io
import os
import struct
import sys
import zipfile
from pathlib import Path
from subprocess import run as run_process

import numpy as np
import pytest
from hostile import outcome, time_limit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dpn_plugin.data import load
from dpn_plugin.errors import UserError

SHAPES = arrays.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
ANY_ARRAY = st.one_of(
    arrays.arrays(arrays.scalar_dtypes(), SHAPES),
    arrays.arrays(np.uint8, st.tuples(st.just(3), st.integers(0, 4), st.integers(0, 4))),
    arrays.arrays(np.int64, 3),
    arrays.arrays(np.uint64, 3),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.dictionaries(st.sampled_from(["images", "labels", "classes", "x"]), ANY_ARRAY))
def test_arrays_of_any_type_and_shape_are_loaded_or_refused(content: dict, tmp_path: Path) -> None:
    np.savez(tmp_path / "any.npz", **content)
    for keywords in ({}, {"in_domain": True}, {"image_size": (8, 8), "channels": 3}):
        found = outcome(load, "npz:any.npz", root=tmp_path, **keywords)
        if isinstance(found, str):
            assert "any.npz" in found
        else:
            assert len(found) == len(content["images"])
            assert found.inputs.dtype.itemsize == 1


def header(shape: tuple[int, ...], descr: str = "|u1", version: int = 1) -> bytes:
    stream = io.BytesIO()
    write = {1: np.lib.format.write_array_header_1_0, 2: np.lib.format.write_array_header_2_0}
    write[version](stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression, compresslevel=9) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return path


# NumPy would read the whole header before it checks the length
LONG_HEADER = b"\x93NUMPY\x02\x00" + struct.pack("<I", 160 << 20) + b" " * (160 << 20)
SMALL = header((1, 8, 8)) + bytes(64)
BOMBS = {
    "10^12 rows": {"images.npy": header((10**12, 28, 28))},
    "10^9 rows": {"images.npy": header((10**9, 28, 28)) + bytes(1000)},
    "no ending": {"images": header((10**9, 28, 28)) + bytes(1000)},
    "rows of nothing": {"images.npy": header((10**9, 0, 0))},
    "below zero": {"images.npy": header((10**8, 64, 64)), "x.npy": header((-(10**15),))},
    "labels": {"images.npy": SMALL, "labels.npy": header((10**11,), "<i8")},
    "long names": {"images.npy": SMALL, "classes.npy": header((2,), "<U400000000")},
    "zeros": {"images.npy": header((160 << 10, 32, 32)) + bytes(160 << 20)},
    "long header": {"images.npy": LONG_HEADER},
    "nested header": {"images.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000},
    "signs": {"images.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"-" * 8999 + b"1"},
}
#: the part of the message that names the reason: the declared size, not a failed allocation
REASONS = {
    "10^12 rows": "cannot have the shape",
    "10^9 rows": "more than 200 times",
    "no ending": "more than 200 times",
    "rows of nothing": "images must be uint8",
    "below zero": "more than 200 times",
    "labels": "cannot have the shape",
    "long names": "more than 200 times",
    "zeros": "more than 200 times",
    "long header": "EOF: reading array header",
    "nested header": "damaged or is not",
    "signs": "damaged or is not",
}
LOAD_WITH_LITTLE_MEMORY = """
import sys, resource
from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.data.sources import from_npz
import torch, numpy, PIL
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
for path in sys.argv[1:]:
    try:
        load("npz:" + path, root=".")
    except UserError as error:
        print("refused", error)
"""


def test_bombs_are_refused_with_little_memory(tmp_path: Path) -> None:
    paths = [
        archive(tmp_path / f"{index}.npz", members) for index, members in enumerate(BOMBS.values())
    ]
    command = [sys.executable, "-c", LOAD_WITH_LITTLE_MEMORY, *map(str, paths)]
    done = run_process(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for line, (name, reason) in zip(done.stdout.splitlines(), REASONS.items(), strict=True):
        assert reason in line, name


def test_other_compression_methods_are_refused(tmp_path: Path) -> None:
    archive(tmp_path / "a.npz", {"images.npy": SMALL}, zipfile.ZIP_LZMA)
    with pytest.raises(UserError, match="packed in a way"):
        load("npz:a.npz", root=tmp_path)


def test_real_images_that_are_mostly_empty_are_accepted(tmp_path: Path) -> None:
    images = np.zeros((20_000, 28, 28), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=images)
    assert len(load("npz:a.npz", root=tmp_path)) == len(images)


def test_a_label_beyond_int64_is_refused(tmp_path: Path) -> None:
    labels = np.array([2**63], np.uint64)
    np.savez(tmp_path / "a.npz", images=np.zeros((1, 2, 2), np.uint8), labels=labels)
    with pytest.raises(UserError, match="labels must be below"):
        load("npz:a.npz", root=tmp_path)


def test_a_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    with time_limit(60), pytest.raises(UserError, match="is not a file"):
        load("npz:a.npz", root=tmp_path)


def test_members_are_not_extracted_to_the_paths_in_their_names(tmp_path: Path) -> None:
    members = {"images.npy": SMALL, "../../evil.npy": SMALL, "/tmp/evil-dpn.npy": SMALL}
    (tmp_path / "in").mkdir()
    archive(tmp_path / "in" / "a.npz", members)
    assert len(load("npz:a.npz", root=tmp_path / "in")) == 1
    assert [path.name for path in tmp_path.rglob("*") if "evil" in path.name] == []
    assert not Path("/tmp/evil-dpn.npy").exists()
