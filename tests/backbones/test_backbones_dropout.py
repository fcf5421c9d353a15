"""Dropout at test time."""

import pytest
import timm
import torch
from torch import nn

from dpn_plugin.backbones import create_backbone, mc_dropout
from dpn_plugin.errors import UserError


@pytest.mark.parametrize(
    "name", ["vgg16_cifar", "test_resnet", "test_vit", "mobilenetv3_small_050"]
)
def test_passes_differ_inside_and_agree_outside(name: str) -> None:
    backbone = create_backbone(name, 3, image_size=32, drop_rate=0.5).eval()
    x = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        with mc_dropout(backbone):
            assert not torch.equal(backbone(x), backbone(x))
        assert torch.equal(backbone(x), backbone(x))


def test_the_mean_of_many_passes_is_the_deterministic_output_of_a_linear_head() -> None:
    torch.manual_seed(0)
    backbone = create_backbone("test_resnet", 3, image_size=32, drop_rate=0.5).eval()
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        plain = backbone(x)[0]
        with mc_dropout(backbone):
            passes = backbone(x.expand(300, -1, -1, -1))
    error = passes.std(0) / len(passes) ** 0.5
    assert ((passes.mean(0) - plain).abs() < 5 * error).all()


def test_batch_norm_stays_frozen() -> None:
    model = timm.create_model("vgg16_cifar").train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with mc_dropout(model):
        model(torch.randn(4, 3, 32, 32))
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_stochastic_depth_stays_off() -> None:
    model = timm.create_model("test_vit", drop_rate=0.5, drop_path_rate=0.5)
    with mc_dropout(model):
        assert not any(m.training for m in model.modules() if hasattr(m, "drop_prob"))


def test_the_mode_of_every_module_is_restored_also_after_an_error() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2).eval(), nn.Dropout(0.5), nn.Linear(2, 2).eval())
    before = [module.training for module in model.modules()]
    with pytest.raises(KeyError), mc_dropout(model):
        raise KeyError
    assert [module.training for module in model.modules()] == before


def test_a_model_without_dropout_is_refused() -> None:
    model = create_backbone("test_resnet", 3)
    with pytest.raises(UserError, match="drop_rate"), mc_dropout(model):
        pass
