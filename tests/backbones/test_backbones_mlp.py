"""mlp_synthetic: the paper's network for points, in timm's registry."""

import pytest
import timm
import torch
from torch import nn

from dpn_plugin.backbones import create_backbone


def test_it_has_two_hidden_layers_of_125_units() -> None:
    model = timm.create_model("mlp_synthetic")
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in layers] == [
        (2, 125),
        (125, 125),
        (125, 3),
    ]
    assert model(torch.randn(5, 2)).shape == (5, 3)


def test_as_a_backbone_it_takes_points_and_has_no_maps() -> None:
    backbone = create_backbone("mlp_synthetic", 3).eval()
    x = torch.randn(5, 2)
    logits, features, maps = backbone.outputs(x)
    assert backbone.input_size == (2,)
    assert features.shape == (5, 125)
    assert maps is None
    torch.testing.assert_close(logits, backbone(x))


def test_the_classifier_can_be_replaced_and_removed() -> None:
    model = timm.create_model("mlp_synthetic").double()
    x = torch.randn(5, 2, dtype=torch.float64)
    model.reset_classifier(4)
    assert model(x).shape == (5, 4)
    assert model.num_classes == model.get_classifier().out_features == 4
    model.reset_classifier(0)
    assert model(x).shape == (5, 125)


def test_drop_rate_reaches_the_head() -> None:
    x = torch.randn(5, 2)
    assert not torch.equal(*[timm.create_model("mlp_synthetic", drop_rate=0.5)(x) for _ in "ab"])
    model = timm.create_model("mlp_synthetic")
    assert torch.equal(model(x), model(x))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_script_and_export_give_the_same_logits() -> None:
    model, x = timm.create_model("mlp_synthetic").eval(), torch.randn(5, 2)
    torch.testing.assert_close(torch.jit.script(model)(x), model(x))
    torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), model(x))
