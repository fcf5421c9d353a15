"""Training that starts from given weights."""

from pathlib import Path

import pytest
import timm
import torch
from tiny_runs import digits

from dpn_plugin.backbones import WeightsFile
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Predictor, TrainConfig, create_network, method_of, open_run
from dpn_plugin.training import train


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> WeightsFile:
    torch.manual_seed(5)
    path = tmp_path_factory.mktemp("weights") / "test_resnet.pth"
    torch.save(timm.create_model("test_resnet", num_classes=1000).state_dict(), path)
    return WeightsFile.at(path)


def config(file: WeightsFile, **changes: object) -> TrainConfig:
    return digits("baseline", outliers=(), weights=file, network_size=96, **changes)


@pytest.mark.filterwarnings("ignore:.*has a head for 1000 classes")
def test_the_network_keeps_its_preprocessing_and_its_stem(
    file: WeightsFile, tmp_path: Path
) -> None:
    run = train(config(file), tmp_path / "run")
    own = timm.data.resolve_data_config(model=timm.create_model("test_resnet"))
    transform = open_run(run.folder).transform
    assert (transform.mean, transform.std) == (own["mean"], own["std"])
    assert (transform.interpolation, transform.crop) == (own["interpolation"], own["crop_pct"])
    assert transform.size == (96, 96)
    predictor = Predictor(run)
    assert predictor.classifier.stem == "default"
    assert predictor.classifier.input_size == (3, 96, 96)
    assert run.record.input_shape == (1, 8, 8)  # grey digits, repeated for three channels
    x = transform(torch.zeros(2, 1, 8, 8, dtype=torch.uint8))
    assert x.shape == (2, 3, 96, 96)
    assert predictor(x).shape == (2, 7)


@pytest.mark.filterwarnings("ignore:.*has a head for 1000 classes")
def test_a_moved_file_with_the_same_content_is_the_same_run(
    file: WeightsFile, tmp_path: Path
) -> None:
    first = train(config(file), tmp_path / "run")
    moved = tmp_path / "moved.pth"
    moved.write_bytes(Path(file.path).read_bytes())
    again = train(config(WeightsFile.at(moved)), tmp_path / "run")
    assert again.weights_hash == first.weights_hash
    other = tmp_path / "other.pth"
    torch.save(timm.create_model("test_resnet", num_classes=1000).state_dict(), other)
    with pytest.raises(UserError, match=r"holds another run \(weights.sha256"):
        train(config(WeightsFile.at(other)), tmp_path / "run")


@pytest.mark.filterwarnings("ignore:.*has a head for 1000 classes")
def test_a_network_starts_from_the_weights_and_has_its_own_size(file: WeightsFile) -> None:
    whole = digits("baseline", outliers=(), weights=file)
    network = method_of(whole).networks[0]
    backbone = create_network(whole, network, (1, 8, 8), 7)
    assert backbone.input_size == (3, 160, 160)
    given = torch.load(file.path, weights_only=True)
    assert torch.equal(backbone.model.conv1[0].weight, given["conv1.0.weight"])
    small = create_network(whole.model_copy(update={"stem": "small"}), network, (3, 32, 32), 7)
    assert small.stem == "small"


def test_weights_that_do_not_fit_leave_nothing_behind(tmp_path: Path) -> None:
    torch.save(timm.create_model("test_vit").state_dict(), tmp_path / "vit.pth")
    with pytest.raises(UserError, match="does not hold weights of 'test_resnet'"):
        train(config(WeightsFile.at(tmp_path / "vit.pth")), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weights_come_from_one_place(file: WeightsFile) -> None:
    with pytest.raises(ValueError, match="not from both"):
        config(file, pretrained=True)
