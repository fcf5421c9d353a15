"""The files on the desk: real images, archives, foreign results, suite files, trained runs."""

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from dpn_plugin.cli import app

DIGITS = load_digits()
IMAGES = (DIGITS.images * 15.9).astype(np.uint8)
NAMES = ("zero", "one", "two", "three")

POINTS = """
title = "Points"
methods = ["baseline"]
detectors = ["dpn-maxp", "dpn-mi"]
seeds = 1
[in_domain]
source = "synthetic:gaussians"
[in_domain_test]
source = "synthetic:gaussians"
split = "test"
[far.around]
source = "synthetic:gaussians-ood"
split = "test"
[train]
backbone = "mlp_synthetic"
recipe = "synthetic"
epochs = 1
"""
PICTURES = """
title = "Pictures"
input_size = [1, 8, 8]
methods = ["baseline"]
detectors = ["dpn-maxp"]
seeds = 1
[in_domain]
source = "folder:digits"
classes = ["zero", "one"]
[near.two]
source = "folder:digits"
classes = ["two"]
[far.colours]
source = "folder:colours"
[train]
backbone = "test_resnet"
epochs = 1
"""
#: name of a suite file: (the correct text, what is replaced, by what)
SUITES = {
    "points": (POINTS, "", ""),
    "pictures": (PICTURES, "", ""),
    "table-typo": (POINTS, "[in_domain]", "[in_domian]"),
    "source-typo": (POINTS, 'source = "synthetic:gaussians"\n[in', 'sorce = "synthetic:x"\n[in'),
    "classes-typo": (PICTURES, 'classes = ["two"]', 'clases = ["two"]'),
    "train-typo": (POINTS, "epochs = 1", "epoch = 1"),
    "backbone-typo": (POINTS, "mlp_synthetic", "mlp_syntetic"),
    "recipe-typo": (POINTS, 'recipe = "synthetic"', 'recipe = "syntetic"'),
    "method-typo": (POINTS, '["baseline"]', '["basline"]'),
    "detector-typo": (POINTS, '"dpn-mi"', '"dpn-mii"'),
    "scheme-typo": (POINTS, "synthetic:gaussians-ood", "sinthetic:gaussians-ood"),
    "class-typo": (PICTURES, '"two"', '"tow"'),
    "size-of-two": (PICTURES, "[1, 8, 8]", "[16, 16]"),
    "size-of-zero": (PICTURES, "[1, 8, 8]", "[1, 0, 0]"),
    "no-title": (POINTS, 'title = "Points"', ""),
    "no-tests": (POINTS, '[far.around]\nsource = "synthetic:gaussians-ood"\nsplit = "test"', ""),
    "no-name": (POINTS, "[far.around]", "[far]"),
    "no-backbone": (POINTS, 'backbone = "mlp_synthetic"', ""),
    "no-seeds": (POINTS, "seeds = 1", "seeds = 0"),
    "seeds-text": (POINTS, "seeds = 1", 'seeds = "three"'),
    "many-epochs": (POINTS, "epochs = 1", "epochs = 99999999999999"),
    "not-toml": (POINTS, "title =", "title"),
    "same-data": (PICTURES, 'classes = ["two"]', 'classes = ["one", "two"]'),
    "missing-data": (PICTURES, "folder:colours", "folder:no-such-folder"),
    "images-for-points": (POINTS, "mlp_synthetic", "test_resnet"),
    "points-for-images": (PICTURES, "test_resnet", "mlp_synthetic"),
}


def lay_out(folder: Path) -> None:
    """Write everything except the trained runs."""
    _class_folders(folder)
    _odd_folders(folder)
    _archives(folder)
    _foreign_results(folder)
    for name, (text, old, new) in SUITES.items():
        assert old in text, name
        (folder / f"{name}.toml").write_text(text.replace(old, new, 1), "utf-8")
    (folder / "empty.toml").touch()
    (folder / "binary.toml").write_bytes(b"\xff\xfe\x00title")
    (folder / "broken_plugin.py").write_text("import no_such_module_of_anybody\n")
    (folder / "plain_module.py").write_text("'''No plugin.'''\nANSWER = 42\n")


def train_runs(folder: Path) -> None:
    """Train a network on images and one on points, and write a benchmark of points."""
    _dpn("train --backbone test_resnet --method baseline --epochs 1 --device cpu "
         "--in-domain folder:digits --out image-run")  # fmt: skip
    _dpn("train --backbone mlp_synthetic --recipe synthetic --method baseline --epochs 1 "
         "--device cpu --limit 60 --in-domain synthetic:gaussians --out point-run")  # fmt: skip
    _dpn("bench points.toml --limit 60 --device cpu --out bench")
    (folder / "half-run").mkdir()
    record = (folder / "image-run" / "run.json").read_text("utf-8")
    (folder / "half-run" / "run.json").write_text(record[: len(record) // 2], "utf-8")
    (folder / "newer-run").mkdir()
    (folder / "newer-run" / "run.json").write_text('{"format": 99}', "utf-8")


def _dpn(line: str) -> None:
    done = CliRunner().invoke(app, line.split(), prog_name="dpn")
    assert done.exit_code == 0, done.output


def _picture(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def _class_folders(folder: Path) -> None:
    for label, name in enumerate(NAMES):
        for index, image in enumerate(IMAGES[DIGITS.target == label][:10]):
            _picture(folder / "digits" / name / f"{index}.png", image)
    noise = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    for index, image in enumerate(noise):
        _picture(folder / "colours" / ("red", "green")[index % 2] / f"{index}.png", image)
    for name in ("Äpfel & Birnen", "it's"):
        for index in range(10):
            image = IMAGES[100 + index + 10 * len(name)]
            _picture(folder / "my photos" / name / f"{index}.png", image)


def _odd_folders(folder: Path) -> None:
    places = {
        "flat": ("",),
        "photos": ("",),
        "one-class": ("cat",),
        "empty-class": ("cat",),
        "hidden": ("cat", "dog", ".ipynb_checkpoints"),
        "only-hidden": (".ipynb_checkpoints",),
        "broken": ("cat", "dog"),
    }
    for offset, (name, classes) in enumerate(places.items()):
        for place, kind in enumerate(classes):
            for index in range(6):
                image = IMAGES[300 + 40 * offset + 10 * place + index]
                _picture(folder / name / kind / f"IMG_{index}.png", image)
    (folder / "broken" / "cat" / "IMG_0.png").write_bytes(b"\x89PNG\r\n\x1a\nand nothing else")
    (folder / "empty-class" / "dog").mkdir()
    (folder / "empty").mkdir()
    for kind in ("cat", "dog"):
        (folder / "text-class" / kind).mkdir(parents=True)
        (folder / "text-class" / kind / "notes.txt").write_text("to do\n")
    (folder / "photos" / "notes.txt").write_text("Amrum, 2019\n")
    (folder / "notes.txt").write_text("to do\n")


def _archives(folder: Path) -> None:
    images, labels = IMAGES[:60], DIGITS.target[:60]
    archives = {
        "digits": {"images": images, "labels": labels},
        "unlabelled": {"images": images},
        "short-labels": {"images": images, "labels": labels[:7]},
        "other-keys": {"x": images, "y": labels},
        "float": {"images": np.full((10, 8, 8), np.nan), "labels": labels[:10]},
        "none": {"images": images[:0], "labels": labels[:0]},
        "one": {"images": images[:1], "labels": labels[:1]},
    }
    for name, arrays in archives.items():
        np.savez(folder / f"{name}.npz", **arrays)
    whole = (folder / "digits.npz").read_bytes()
    (folder / "broken.npz").write_bytes(whole[: len(whole) // 2])


def _foreign_results(folder: Path) -> None:
    (folder / "results").mkdir()
    for name in ("results.csv", "leaderboard.csv", "report.html", "bench.json"):
        (folder / "results" / name).write_text("of another program\n")
    (folder / "history" / "checkpoints").mkdir(parents=True)
    for name in ("history.csv", "curves.png", "classifier.safetensors", "checkpoints/best.pt"):
        (folder / "history" / name).write_text("weeks of work\n")
    (folder / "table").mkdir()
    (folder / "table" / "results.csv").write_text("name,value\na,1\n")
    (folder / "report-only").mkdir()
    (folder / "report-only" / "report.html").write_text("<p>mine</p>\n")
