"""Weights of files: which are loaded, what is said, and what is refused."""

import pickle
import warnings
from pathlib import Path

import pytest
import timm
import torch
from PIL import Image
from real_weights import PACKAGES, real_weights
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from torch import Tensor, nn
from torchvision.models import mobilenet_v2
from torchvision.models._meta import _IMAGENET_CATEGORIES

from dpn_plugin.backbones import Backbone, WeightsFile, create_backbone
from dpn_plugin.data import Transform
from dpn_plugin.errors import UserError

NAME = "test_resnet"


def trained(classes: int = 5, **options: object) -> nn.Module:
    torch.manual_seed(3)
    model = timm.create_model(NAME, num_classes=classes, **options)
    for buffer in model.buffers():  # statistics of batch norm, as after training
        buffer.add_(torch.rand_like(buffer.float()).to(buffer.dtype))
    return model.eval()


def written(path: Path, content: object) -> WeightsFile:
    torch.save(content, path)
    return WeightsFile.at(path)


def load(file: WeightsFile, classes: int = 5, **options: object) -> tuple[Backbone, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        backbone = create_backbone(NAME, classes, weights=file, **options)
    return backbone.eval(), [str(each.message) for each in caught]


def logits(model: nn.Module, pixels: int = 160) -> Tensor:
    x = torch.linspace(-1, 1, 3 * pixels**2).reshape(1, 3, pixels, pixels)
    with torch.no_grad():
        return model(x)


CONTAINERS = {
    "plain": lambda state: state,
    "module": lambda state: {f"module.{key}": each for key, each in state.items()},
    "timm": lambda state: {"epoch": 3, "arch": NAME, "state_dict": state},
    "lightning": lambda state: {
        "epoch": 3,
        "state_dict": {f"model.net.{key}": each for key, each in state.items()},
        "hyper_parameters": {"lr": 0.1},
    },
    "compiled": lambda state: {"model": {f"_orig_mod.{key}": e for key, e in state.items()}},
    "without counters": lambda state: {
        key: each for key, each in state.items() if "num_batches" not in key
    },
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_weights_are_found_in_containers_and_behind_prefixes(kind: str, tmp_path: Path) -> None:
    model = trained()
    file = written(tmp_path / "w.pth", CONTAINERS[kind](model.state_dict()))
    backbone, said = load(file)
    torch.testing.assert_close(logits(backbone), logits(model))
    assert backbone.weights_classes == 5
    assert said == []


def test_safetensors_are_found_by_content(tmp_path: Path) -> None:
    model = trained()
    save_file(model.state_dict(), tmp_path / "weights.bin")
    backbone, said = load(WeightsFile.at(tmp_path / "weights.bin"))
    assert torch.equal(logits(backbone), logits(model))
    assert said == []


def test_other_names_are_mapped_in_order_and_that_is_said(tmp_path: Path) -> None:
    model = trained()
    renamed = {f"layer{i}": each for i, each in enumerate(model.state_dict().values())}
    renamed = {
        new: each
        for (new, each), old in zip(renamed.items(), model.state_dict(), strict=True)
        if "num_batches" not in old
    }
    backbone, said = load(written(tmp_path / "w.pth", renamed))
    assert torch.equal(logits(backbone), logits(model))
    assert len(said) == 1
    assert "mapped in their order" in said[0]
    save_file(renamed, tmp_path / "w.safetensors")  # these files do not keep the order
    with pytest.raises(UserError, match="does not hold weights of 'test_resnet'"):
        load(WeightsFile.at(tmp_path / "w.safetensors"))


def test_a_head_for_other_classes_is_replaced_and_that_is_said(tmp_path: Path) -> None:
    model = trained(7)
    file = written(tmp_path / "w.pth", model.state_dict())
    backbone, said = load(file)
    assert backbone.weights_classes == 7
    assert backbone.num_classes == 5
    assert torch.equal(backbone.model.conv1[0].weight, model.conv1[0].weight)
    assert said == [
        f"{file.path} has a head for 7 classes; a new one for 5 classes starts from random weights."
    ]
    state = {key: each for key, each in model.state_dict().items() if not key.startswith("fc.")}
    backbone, said = load(written(tmp_path / "w.pth", state))
    assert backbone.weights_classes is None
    assert "has no head; a new one" in said[0]


def test_what_the_network_does_not_have_is_listed(tmp_path: Path) -> None:
    state = {f"model.{key}": each for key, each in trained().state_dict().items()}
    state |= {f"teacher.{index}": torch.zeros(2) for index in range(5)}
    _, said = load(written(tmp_path / "w.pth", {"state_dict": state}))
    assert len(said) == 1
    assert "5 tensors that 'test_resnet' does not have are left out" in said[0]
    assert "teacher.0, teacher.1, teacher.2 and 2 more" in said[0]


def test_weights_of_another_architecture_are_refused_with_what_differs(tmp_path: Path) -> None:
    other = timm.create_model("test_vit", num_classes=5).state_dict()
    with pytest.raises(UserError, match=r"not hold weights of 'test_resnet'.*missing.*unexpected"):
        load(written(tmp_path / "w.pth", other))
    state = trained().state_dict()
    state["conv1.0.weight"] = torch.zeros(8, 3, 5, 5)
    with pytest.raises(UserError, match=r"1 of another shape: conv1.0.weight \(8x3x5x5, not"):
        load(written(tmp_path / "w.pth", state))


def test_a_small_stem_takes_weights_of_either_stem(tmp_path: Path) -> None:
    options = {"image_size": 32, "stem": "small"}
    own = create_backbone("resnet18", 3, **options)
    for model in (own.model, timm.create_model("resnet18", num_classes=3)):
        file = written(tmp_path / "w.pth", model.state_dict())
        found = create_backbone("resnet18", 3, weights=file, **options)
        assert found.model.conv1.kernel_size == (3, 3)
        assert torch.equal(found.model.layer1[0].conv1.weight, model.layer1[0].conv1.weight)
    file = written(tmp_path / "w.pth", own.model.state_dict())
    found = create_backbone("resnet18", 3, weights=file, **options)
    assert torch.equal(found.model.conv1.weight, own.model.conv1.weight)


class Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit('it ran')",))


def test_a_pickle_with_code_is_refused_and_does_not_run(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    for content in (Harmful(), {"state_dict": trained().state_dict(), "callback": Harmful()}):
        file = written(path, content)
        with pytest.raises(UserError, match=r"objects or code besides tensors.*not loaded"):
            load(file)
    path.write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(UserError, match=r"code besides tensors|neither"):
        load(WeightsFile.at(path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "neither a safetensors file nor"),
        (b"not weights at all, but more than nine bytes", "neither a safetensors|code besides"),
        (b"\x10" + bytes(7) + b"{" + bytes(40), "is not a safetensors file"),
    ],
)
def test_a_file_that_holds_no_weights_is_refused(
    content: bytes, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        load(WeightsFile.at(tmp_path / "w.pth"))


def test_tables_without_tensors_and_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no state dict"):
        load(written(tmp_path / "w.pth", {"epoch": 3, "loss": [0.1]}))
    state = trained().state_dict()
    state["bn1.weight"][0] = torch.nan
    with pytest.raises(UserError, match=r"not finite, e.g. in 'bn1.weight'"):
        load(written(tmp_path / "w.pth", state))


def test_a_missing_or_changed_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no weights file .*none.pth"):
        WeightsFile.at(tmp_path / "none.pth")
    file = written(tmp_path / "w.pth", trained().state_dict())
    written(tmp_path / "w.pth", trained(3).state_dict())
    with pytest.raises(UserError, match="have changed"):
        load(file)


@torch.no_grad()
def test_weights_of_torchvision_give_the_outputs_of_torchvision() -> None:
    path = real_weights("mobilenetv2_100")
    theirs = mobilenet_v2()
    theirs.load_state_dict(torch.load(path, weights_only=True))
    with pytest.warns(UserWarning, match="mapped in their order"):
        ours = create_backbone("mobilenetv2_100", 1000, weights=WeightsFile.at(path))
    x = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    expected = theirs.eval()(x)
    torch.testing.assert_close(ours.eval()(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:.*mapped in their order")
@pytest.mark.parametrize("name", PACKAGES)
@torch.no_grad()
def test_real_weights_recognise_a_photograph_as_timm_prepares_it(name: str) -> None:
    backbone = create_backbone(name, 1000, weights=WeightsFile.at(real_weights(name))).eval()
    photograph = load_sample_image("china.jpg")[:, 106:533]  # a square of a temple
    config = timm.data.resolve_data_config(model=backbone.model)
    expected = timm.data.create_transform(**config)(Image.fromarray(photograph))
    transform = Transform(*backbone.preprocessing[:2], (224, 224), *backbone.preprocessing[2:])
    prepared = transform(torch.from_numpy(photograph.copy()).permute(2, 0, 1)[None])
    step = 1 / 255 / min(backbone.std)  # PIL rounds to bytes after each direction
    assert (prepared[0] - expected).abs().mean() < step
    assert (prepared[0] - expected).abs().max() < 4 * step
    found, theirs = (backbone(x).softmax(dim=1)[0] for x in (prepared, expected[None]))
    torch.testing.assert_close(found, theirs, rtol=0, atol=0.02)
    assert _IMAGENET_CATEGORIES[int(found.argmax())] in ("palace", "monastery", "stupa")
