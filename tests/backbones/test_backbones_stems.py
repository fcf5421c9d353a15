"""Small stems and the plan of the input."""

import pytest
import timm
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpn_plugin.backbones import create_backbone, plan_input, supports_small_stem
from dpn_plugin.backbones.stems import SMALL_STEM_FAMILIES
from dpn_plugin.errors import UserError

ONE_PER_FAMILY = {
    "test_resnet": "resnet",
    "resnet18": "resnet",
    "skresnet18": "sknet",
    "resnest14d": "resnest",
    "res2next50": "res2net",
    "regnetx_002": "regnet",
    "regnetv_040": "regnet",
    "densenet121": "densenet",
    "test_efficientnet": "efficientnet",
    "tf_efficientnet_b0": "efficientnet",
    "mobilenetv3_small_050": "mobilenetv3",
    "test_convnext": "convnext",
    "convnext_atto_ols": "convnext",
}


def test_every_family_is_sampled() -> None:
    assert {*ONE_PER_FAMILY.values(), "vision_transformer"} == set(SMALL_STEM_FAMILIES)
    assert all(timm.list_models(module=family) for family in SMALL_STEM_FAMILIES)


@pytest.mark.parametrize("name", ONE_PER_FAMILY)
def test_the_small_stem_at_least_halves_the_stride(name: str) -> None:
    small = create_backbone(name, 3, image_size=64, stem="small").eval()
    plain = timm.create_model(name, num_classes=3).eval()
    with torch.no_grad():
        ours = small.feature_maps(torch.randn(1, 3, 64, 64))
        theirs = plain.forward_features(torch.randn(1, 3, 64, 64))
    assert ours.shape[2] >= 2 * theirs.shape[2]
    assert ours.shape[1] == theirs.shape[1]


def test_resnet18_gets_the_usual_cifar_stem() -> None:
    model = create_backbone("resnet18", 10, image_size=32).model
    assert (model.conv1.kernel_size, model.conv1.stride) == ((3, 3), (1, 1))
    assert isinstance(model.maxpool, torch.nn.Identity)
    assert model.forward_features(torch.randn(1, 3, 32, 32)).shape == (1, 512, 4, 4)


def test_a_vision_transformer_gets_patches_of_four_pixels() -> None:
    model = create_backbone("test_vit", 10, in_chans=1, image_size=28).model
    assert model.patch_embed.grid_size == (7, 7)


@pytest.mark.parametrize("size", [8, 28])
@pytest.mark.parametrize("name", ["test_resnet", "densenet121", "test_vit", "test_efficientnet"])
def test_tiny_images_are_not_resized(name: str, size: int) -> None:
    backbone = create_backbone(name, 3, in_chans=1, image_size=size)
    assert backbone.input_size == (1, size, size)
    assert backbone.eval()(torch.randn(2, 1, size, size)).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "image_size", "stem", "plan"),
    [
        ("resnet18", 32, "auto", ("small", 32)),
        ("resnet18", 64, "auto", ("small", 64)),
        ("resnet18", 65, "auto", ("default", 96)),
        ("resnet18", 224, "auto", ("default", 224)),
        ("resnet18", None, "auto", ("default", 224)),
        ("resnet18", None, "small", ("small", 32)),
        ("resnet18", 32, "default", ("default", 96)),
        ("resnet18.a1_in1k", 32, "auto", ("small", 32)),
        ("vgg16_cifar", 28, "auto", ("default", 28)),
        ("vgg16_cifar", None, "auto", ("default", 32)),
        ("vgg16_tim", 64, "auto", ("default", 64)),
        ("vgg16_tim", 32, "auto", ("default", 64)),
        ("mlp_synthetic", None, "auto", ("default", 1)),
        ("vit_tiny_patch16_224", 30, "auto", ("small", 32)),
        ("swin_tiny_patch4_window7_224", 32, "auto", ("default", 224)),
        ("halonet_h1", 32, "auto", ("default", 256)),
    ],
)
def test_stem_and_size_of_the_input(
    name: str, image_size: int | None, stem: str, plan: tuple[str, int]
) -> None:
    assert plan_input(name, image_size, stem) == plan


@given(st.sampled_from(["resnet18", "vgg16", "test_vit", "vgg16_cifar"]), st.integers(1, 300))
def test_images_for_flexible_models_are_never_shrunk(name: str, image_size: int) -> None:
    stem, size = plan_input(name, image_size)
    fixed = timm.models.get_pretrained_cfg(name).fixed_input_size and stem == "default"
    assert fixed or size >= image_size


def test_the_message_for_a_family_without_small_stem_lists_those_with_one() -> None:
    assert not supports_small_stem("swin_tiny_patch4_window7_224")
    with pytest.raises(UserError, match=r"swin_tiny.*resnet, .*vision_transformer"):
        plan_input("swin_tiny_patch4_window7_224", 32, "small")


def test_invalid_stems_and_sizes_are_refused() -> None:
    with pytest.raises(UserError, match="stem must be 'auto', 'default' or 'small', not 'tiny'"):
        plan_input("resnet18", 32, "tiny")
    with pytest.raises(UserError, match="image_size must be positive, not 0"):
        plan_input("resnet18", 0)
