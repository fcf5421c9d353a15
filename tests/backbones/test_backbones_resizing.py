"""What is said about images that are resized for a backbone."""

import pytest

from dpn_plugin.backbones import describe_resizing, plan_input


@pytest.mark.parametrize(
    ("name", "size", "stem"),
    [
        ("resnet18", 32, "auto"),
        ("vgg16_cifar", 32, "auto"),
        ("mlp_synthetic", 32, "auto"),
        ("resnet18", 96, "default"),
        ("vit_tiny_patch16_224", 224, "auto"),
    ],
)
def test_images_that_keep_their_size_are_not_mentioned(name, size, stem):
    assert describe_resizing(name, size, stem) is None


@pytest.mark.parametrize(
    ("name", "size", "stem", "parts"),
    [
        (
            "resnet18",
            32,
            "default",
            ["96 x 96", "9,216 pixels", "1,024, which is 9 times", "--stem"],
        ),
        (
            "mixer_s16_224",
            32,
            "auto",
            ["224 x 224", "which is 49 times", "no small stem", "resnet"],
        ),
        ("ghostnet_100", 32, "auto", ["96 x 96", "which is 9 times", "--backbone"]),
        ("resnet18", 30, "auto", ["32 x 32", "which is 1.14 times", "multiple of 4"]),
        ("vit_tiny_patch16_224", 256, "auto", ["224 x 224", "which is 0.766 times"]),
    ],
)
def test_a_resizing_is_described_with_its_cost_and_how_to_change_it(name, size, stem, parts):
    text = describe_resizing(name, size, stem)
    assert text.startswith(f"For {name}, images of {size} x {size} pixels are resized to ")
    assert f"resized to {plan_input(name, size, stem)[1]} x" in text
    for part in parts:
        assert part in text
