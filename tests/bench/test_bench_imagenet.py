"""The ImageNet suites of OpenOOD, on a stand-in with its folders and lists."""

from pathlib import Path

import pandas as pd
import pytest
import timm
import torch
from openood_standin import write_standin
from safetensors.torch import save_file
from tiny_bench import bench, record, results

from dpn_plugin.bench import Request, load_suite_data, make_plan
from dpn_plugin.data import load
from dpn_plugin.errors import MissingData, UserError

#: a tiny network, and few of the images, which have the size of the suites
SMALL = {
    "backbones": ("test_resnet",),
    "limit": 50,
    "seeds": 1,
    "detectors": ("dpn-maxp", "energy", "knn"),
}
SETS = {"near": {"ssb-hard", "ninco"}, "far": {"inaturalist", "textures", "openimage-o"}}
SHIFTS = {"imagenet-v2", "imagenet-c", "imagenet-r"}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("openood")
    write_standin(root, "imagenet", 1000)
    write_standin(root, "imagenet200", 200)
    return root


def weights_of(folder: Path, classes: int) -> Path:
    torch.manual_seed(0)
    path = folder / f"{classes}.safetensors"
    save_file(timm.create_model("test_resnet", num_classes=classes).state_dict(), path)
    return path


def check(out: Path) -> None:
    """All sets have figures of detection, and all shifted sets of accuracy and rejection."""
    found = record(out)
    assert {group: set(sets) for group, sets in found["sets"].items()} == SETS
    assert set(found["shift"]) == SHIFTS
    rows = results(out)
    names = {name for sets in SETS.values() for name in sets} | {"near", "far"}
    for task in ("ood", "full_spectrum"):
        own = rows[rows["task"].eq(task) & rows["metric"].eq("auroc")]
        assert set(own["dataset"]) == names
        assert own["value"].between(0, 1).all()
    shift = rows[rows["task"].eq("shift")]
    for metric in ("accuracy", "ece", "rms_error", "rejected95"):
        assert set(shift[shift["metric"].eq(metric)]["dataset"]) >= SHIFTS
    board = pd.read_csv(out / "leaderboard.csv")
    assert board["Near-OOD AUROC"].notna().all()
    assert board["Far-OOD AUROC"].notna().all()


def test_imagenet_1k_as_is(root: Path, tmp_path: Path) -> None:
    weights = weights_of(tmp_path, 1000)
    settings = {"weights": weights, "data_root": root}
    monitor = bench("openood-imagenet1k", tmp_path / "out", **SMALL, **settings)
    assert monitor.runs == ["test_resnet as-is seed 0"]
    assert not monitor.steps
    check(tmp_path / "out")
    assert len(record(tmp_path / "out")["in_domain"]["classes"]) == 1000


def test_imagenet_200_frozen(root: Path, tmp_path: Path) -> None:
    weights, methods = weights_of(tmp_path, 1000), ("baseline", "dpn-minus")
    settings = {"weights": weights, "freeze": True, "methods": methods, "epochs": 2}
    bench("openood-imagenet200", tmp_path / "out", **SMALL, **settings, data_root=root)
    check(tmp_path / "out")
    assert record(tmp_path / "out")["methods"] == list(methods)


def test_imagenet_200_trained(root: Path, tmp_path: Path) -> None:
    settings = {"methods": ("dpn-minus",), "epochs": 1, "data_root": root}
    assert bench("openood-imagenet200", tmp_path / "out", **SMALL, **settings).steps
    check(tmp_path / "out")


def test_labels_of_imagenet_r_are_those_of_the_list(root: Path, tmp_path: Path) -> None:
    request = Request(
        "openood-imagenet1k", tmp_path, methods=("baseline",), data_root=root, limit=50
    )
    data = load_suite_data(make_plan(request))
    assert data.shift["imagenet-r"].labels.unique().tolist() == [1, 5, 9]
    assert len(data.in_domain.classes) == 1000


def test_textures_lie_in_the_folder_of_small_images(root: Path) -> None:
    found = load("openood:imagenet/test_textures?limit=3", root=root, image_size=(8, 8))
    assert found.inputs.shape == (3, 3, 8, 8)


def test_missing_data_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="images_classic or images_largescale in"):
        load("openood:imagenet/test_ninco", root=tmp_path)
    with pytest.raises(UserError, match="Did you mean 'imagenet/test_ninco'"):
        load("openood:imagenet/test_nico", root=root)
