"""Backbones of any timm id."""

import pickle

import pytest
import timm
import torch

from dpn_plugin.backbones import Backbone, create_backbone, plan_input
from dpn_plugin.errors import UserError

TINY = ["test_resnet", "test_vit", "test_efficientnet", "test_convnext", "mobilenetv3_small_050"]


def inputs(backbone: Backbone, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, *backbone.input_size)


@pytest.mark.parametrize("name", [*TINY, "vgg16_cifar", "resnet18", "densenet121", "regnetx_002"])
def test_parts_agree_with_the_whole(name: str) -> None:
    backbone = create_backbone(name, 5, image_size=32).eval()
    x = inputs(backbone)
    with torch.no_grad():
        logits, features, maps = backbone.outputs(x)
        torch.testing.assert_close(logits, backbone.model(x))
        torch.testing.assert_close(backbone.head(backbone.encoder(x)), backbone(x))
        torch.testing.assert_close(features @ backbone.weight.T + backbone.bias, logits)
    assert features.shape == (2, backbone.num_features)
    assert logits.shape == (2, backbone.num_classes) == (2, 5)
    assert (maps is None) == (name == "test_vit")


def test_outputs_take_one_pass() -> None:
    backbone = create_backbone("test_resnet", 3, image_size=32).eval()
    passes = []
    backbone.model.conv1.register_forward_hook(lambda *_: passes.append(1))
    backbone.outputs(inputs(backbone))
    assert len(passes) == 1


def test_channels_last_maps_come_out_channels_first() -> None:
    backbone = create_backbone("test_mambaout", 3, image_size=96).eval()
    x = inputs(backbone)
    assert backbone.model.forward_features(x).shape == (2, 3, 3, 64)
    maps = backbone.feature_maps(x)
    assert maps.shape == (2, 64, 3, 3)
    torch.testing.assert_close(maps[0, :, 1, 2], backbone.model.forward_features(x)[0, 1, 2])


def test_a_convolutional_head_counts_as_linear() -> None:
    backbone = create_backbone("dla46x_c", 3).eval()
    x = inputs(backbone, 1)
    assert isinstance(backbone.model.get_classifier(), torch.nn.Conv2d)
    assert backbone.weight.shape == (3, backbone.num_features)
    torch.testing.assert_close(
        backbone.head(backbone.encoder(x)), backbone(x), atol=1e-4, rtol=1e-4
    )


def test_a_head_that_is_not_linear_has_no_weight() -> None:
    backbone = create_backbone("repvit_m1", 3, image_size=32).eval()
    x = inputs(backbone)
    torch.testing.assert_close(backbone.head(backbone.encoder(x)), backbone(x))
    assert not backbone.is_linear
    assert backbone.encoder(x).shape[1] == backbone.num_features
    with pytest.raises(UserError, match=r"repvit_m1.*not linear"):
        _ = backbone.weight


def test_missing_feature_maps_are_named() -> None:
    backbone = create_backbone("test_vit", 3, image_size=32)
    with pytest.raises(UserError, match="'test_vit' has no feature maps"):
        backbone.feature_maps(inputs(backbone))


def test_weights_have_timms_keys() -> None:
    backbone = create_backbone("test_resnet", 3)
    plain = timm.create_model("test_resnet", num_classes=3)
    plain.load_state_dict(backbone.model.state_dict())
    x = inputs(backbone)
    torch.testing.assert_close(plain.eval()(x), backbone.eval()(x))


def test_a_backbone_can_be_pickled() -> None:
    backbone = create_backbone("test_resnet", 3, image_size=32).eval()
    again = pickle.loads(pickle.dumps(backbone))
    x = inputs(backbone)
    assert torch.equal(again(x), backbone(x))
    assert again.input_size == backbone.input_size


def test_creation_leaves_the_model_in_training_mode_and_unchanged() -> None:
    torch.manual_seed(1)
    backbone = create_backbone("test_resnet", 3)
    after = torch.rand(1)
    torch.manual_seed(1)
    plain = timm.create_model("test_resnet", num_classes=3)
    assert torch.equal(torch.rand(1), after)
    assert all(module.training for module in backbone.modules())
    for ours, theirs in zip(backbone.model.buffers(), plain.buffers(), strict=True):
        assert torch.equal(ours, theirs)


def test_normalisation_follows_timm() -> None:
    colour = create_backbone("test_resnet", 3)
    config = timm.data.resolve_data_config(model=colour.model)
    assert (colour.mean, colour.std) == (config["mean"], config["std"])
    grey = create_backbone("test_resnet", 3, in_chans=1)
    assert grey.mean == pytest.approx((sum(config["mean"]) / 3,))
    assert len(grey.std) == 1


def test_drop_rate_reaches_timm() -> None:
    assert create_backbone("test_resnet", 3, drop_rate=0.25).model.drop_rate == 0.25


def test_an_unknown_backbone_is_reported_with_the_nearest_names() -> None:
    with pytest.raises(UserError, match=r"Unknown backbone 'resnet81'.*'resnet18'"):
        create_backbone("resnet81", 3)
    with pytest.raises(UserError, match="'vgg16_cifar'"):
        create_backbone("vgg16_cifer", 3)


def test_inputs_of_another_shape_are_refused_naming_both() -> None:
    backbone = create_backbone("test_resnet", 3, image_size=32)
    backbone.check_input((3, 32, 32))
    with pytest.raises(UserError, match=r"3 channels and 32x32 .*1 channel and 28x28"):
        backbone.check_input((1, 28, 28))
    with pytest.raises(UserError, match=r"shape \(2,\)"):
        backbone.check_input((2,))


def test_averaged_heads_are_one_head_that_is_not_linear() -> None:
    backbone = create_backbone("levit_128s", 3).eval()
    x = inputs(backbone)
    with torch.no_grad():
        logits, features, _ = backbone.outputs(x)
        torch.testing.assert_close(logits, backbone.model(x))
        heads = [head(features) for head in backbone.model.get_classifier()]
    torch.testing.assert_close(logits, (heads[0] + heads[1]) / 2)
    assert not backbone.is_linear
    with pytest.raises(UserError, match=r"levit_128s.*the average of 2"):
        _ = backbone.weight


@pytest.mark.parametrize("name", ["efficientvit_m0", "shvit_s1"])
def test_a_batch_norm_in_front_of_the_classifier_belongs_to_the_head(name: str) -> None:
    backbone = create_backbone(name, 3, image_size=32)
    backbone.model.head.bn.running_mean.fill_(0.5)  # as after training; at first it is an identity
    backbone.model.get_classifier().weight.data.normal_()
    x = inputs(backbone.eval())
    with torch.no_grad():
        logits, features, _ = backbone.outputs(x)
        torch.testing.assert_close(logits, backbone.model(x))
        assert not torch.allclose(backbone.model.get_classifier()(features), logits, atol=1e-2)
    assert not backbone.is_linear


def test_measuring_the_head_leaves_the_model_as_it_was() -> None:
    backbone = create_backbone("test_resnet", 3, image_size=32).eval()
    before = {name: each.clone() for name, each in backbone.model.state_dict().items()}
    backbone.measure(inputs(backbone))
    for name, each in backbone.model.state_dict().items():
        assert torch.equal(each, before[name])


@pytest.mark.parametrize("name", ["efficientvim_m1", "crossvit_tiny_240"])
def test_logits_that_need_more_than_one_head_come_from_timm(name: str) -> None:
    if not timm.is_model(name):
        pytest.skip("timm is older than this model")
    backbone = create_backbone(name, 3, image_size=32).eval()
    x = inputs(backbone)
    with torch.no_grad():
        logits, features, maps = backbone.outputs(x)
        torch.testing.assert_close(logits, backbone.model(x))
        hidden = backbone.model.forward_features(x)
        expected = backbone.model.forward_head(hidden, pre_logits=True)
    torch.testing.assert_close(features, expected)
    assert features.shape == (2, backbone.num_features)
    assert maps is None
    with pytest.raises(UserError, match=f"{name}.*do not follow from its features"):
        backbone.head(features)


def test_an_encoder_without_logits_is_refused() -> None:
    if not timm.is_model("gemma4_vit_167m_enc"):
        pytest.skip("timm is older than this model")
    with pytest.raises(UserError, match=r"gemma4_vit_167m_enc.*gives no logits"):
        create_backbone("gemma4_vit_167m_enc", 3, image_size=32)


def test_sizes_are_multiples_of_patches() -> None:
    if not timm.is_model("deepseek_vit_412m"):
        pytest.skip("timm is older than this model")
    assert plan_input("deepseek_vit_412m", 64) == ("default", 126)
    assert plan_input("deepseek_vit_412m", 130) == ("default", 140)
    assert plan_input("resnet50", 130, "default") == ("default", 160)


@pytest.mark.parametrize(
    ("argument", "value"), [("num_classes", 0), ("in_chans", 0), ("drop_rate", 1.0)]
)
def test_an_argument_out_of_range_is_named(argument: str, value: float) -> None:
    with pytest.raises(UserError, match=f"{argument} must be .*, not {value}"):
        create_backbone("test_resnet", **{"num_classes": 3, argument: value})


def test_a_model_without_published_weights_is_refused() -> None:
    with pytest.raises(UserError, match="publishes no weights of 'vgg16_cifar'"):
        create_backbone("vgg16_cifar", 3, pretrained=True)


@pytest.mark.filterwarnings("ignore:CSATv2")
def test_a_model_that_fails_on_the_planned_input_is_refused() -> None:
    with pytest.raises(UserError, match=r"'csatv2' fails on inputs of \(1, 96, 96\)"):
        create_backbone("csatv2", 3, in_chans=1, image_size=32)
