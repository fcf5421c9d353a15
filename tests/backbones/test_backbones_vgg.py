"""vgg16_cifar and vgg16_tim: the paper's VGG-16 in timm's registry."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import timm
import torch
from torch import nn

from dpn_plugin.backbones import create_backbone  # importing it registers the models


def vgg(**arguments: object) -> nn.Module:
    return timm.create_model("vgg16_cifar", **arguments)


def dropout_rates(model: nn.Module) -> list[float]:
    return [module.p for module in model.modules() if isinstance(module, nn.Dropout)]


def test_timm_lists_it() -> None:
    assert timm.list_models("vgg16_cifar") == ["vgg16_cifar"]
    assert timm.models.get_pretrained_cfg("vgg16_cifar").input_size == (3, 32, 32)


def test_it_has_the_papers_layers() -> None:
    model = vgg(num_classes=10)
    convolutions = [
        m for m in model.modules() if isinstance(m, nn.Conv2d) and m.kernel_size[0] == 3
    ]
    assert [conv.out_channels for conv in convolutions] == [64] * 2 + [128] * 2 + [256] * 3 + [
        512
    ] * 6
    assert sum(isinstance(m, nn.MaxPool2d) for m in model.modules()) == 5
    assert 14.9e6 < sum(p.numel() for p in model.parameters()) < 15.1e6
    block = list(model.features[0])
    assert [type(layer) for layer in block] == [nn.Conv2d, nn.ReLU, nn.BatchNorm2d]


def tim(**arguments: object) -> nn.Module:
    return timm.create_model("vgg16_tim", **arguments)


def test_the_number_of_parameters_is_that_of_the_papers_layers() -> None:
    widths = [3] + [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6
    convolutions = sum(9 * a * b + b + 2 * b for a, b in pairwise(widths))
    for model, hidden, classes in ((vgg(num_classes=100), 512, 100), (tim(), 2048, 200)):
        dense = hidden * 512 + 512 + 2 * 512 + 512 * classes + classes
        assert sum(p.numel() for p in model.parameters()) == convolutions + dense


def test_tim_connects_the_2048_values_of_the_last_pool_and_has_no_dropout() -> None:
    model = tim().eval()
    maps = model.forward_features(torch.randn(2, 3, 64, 64))
    assert maps.flatten(1).shape == (2, 2048)
    convolution, _, norm = model.pre_logits[1]
    dense = nn.Linear(2048, 512)
    dense.load_state_dict({"weight": convolution.weight.flatten(1), "bias": convolution.bias})
    norm.running_mean.uniform_(-1, 1)
    hidden = norm(dense(maps.flatten(1)).relu()[:, :, None, None]).flatten(1)
    features = model.forward_head(maps, pre_logits=True)
    torch.testing.assert_close(features, hidden, rtol=1e-4, atol=1e-5)
    assert model(torch.randn(2, 3, 64, 64)).shape == (2, 200)
    assert not any(dropout_rates(model))
    assert dropout_rates(tim(drop_rate=0.5)) == pytest.approx([0.3] + 7 * [0.4] + [0.5, 0.5])


def test_images_of_other_sizes_are_resized_for_tim() -> None:
    backbone = create_backbone("vgg16_tim", 5, in_chans=1, image_size=28)
    assert backbone.input_size == (1, 64, 64)


def test_dropout_is_the_papers_and_scales_with_drop_rate() -> None:
    assert dropout_rates(vgg()) == pytest.approx([0.3] + 7 * [0.4] + [0.5, 0.5])
    assert dropout_rates(vgg(drop_rate=0.25)) == pytest.approx([0.15] + 7 * [0.2] + [0.25, 0.25])
    assert not any(dropout_rates(vgg(drop_rate=0.0)))


def test_without_dropout_training_passes_agree() -> None:
    model, x = vgg(drop_rate=0.0).train(), torch.randn(4, 3, 32, 32)
    assert torch.equal(model(x), model(x))
    with_dropout = vgg().train()
    assert not torch.equal(with_dropout(x), with_dropout(x))
    assert torch.equal(with_dropout.eval()(x), with_dropout(x))


@pytest.mark.parametrize(("size", "left"), [(8, 1), (28, 1), (32, 1), (64, 2)])
@pytest.mark.parametrize("in_chans", [1, 3])
def test_small_images_of_any_size_fit(size: int, left: int, in_chans: int) -> None:
    model = vgg(in_chans=in_chans, num_classes=7).eval()
    maps = model.forward_features(torch.randn(2, in_chans, size, size))
    assert maps.shape == (2, 512, left, left)
    assert model.forward_head(maps, pre_logits=True).shape == (2, 512)
    assert model.forward_head(maps).shape == (2, 7)


def test_the_classifier_can_be_replaced_and_removed() -> None:
    model, x = vgg().eval(), torch.randn(2, 3, 64, 64)
    model.reset_classifier(5)
    assert model(x).shape == (2, 5)
    assert model.get_classifier().out_features == model.num_classes == 5
    model.reset_classifier(0)
    assert model(x).shape == (2, model.num_features)
    model.reset_classifier(0, "")
    assert model(x).shape == (2, 512, 2, 2)


def test_timm_extracts_its_stages() -> None:
    stages = vgg(features_only=True)
    shapes = [tuple(maps.shape[1:]) for maps in stages(torch.randn(2, 3, 32, 32))]
    assert shapes == [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2), (512, 1, 1)]
    assert stages.feature_info.channels() == [shape[0] for shape in shapes]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("create", "size"), [(vgg, 32), (tim, 64)])
def test_script_and_export_give_the_same_logits(create: Callable, size: int) -> None:
    model, x = create().eval(), torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = model(x)
        torch.testing.assert_close(torch.jit.script(model)(x), expected)
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected)


def test_it_learns() -> None:
    torch.manual_seed(0)
    model = vgg(num_classes=2, drop_rate=0.1)
    labels = torch.arange(2).repeat(8)
    patterns = torch.randn(2, 3, 16, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(8):
        x = patterns[labels] + 0.3 * torch.randn(len(labels), 3, 16, 16)
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_gradient_checkpointing_is_refused() -> None:
    with pytest.raises(ValueError, match="gradient checkpointing"):
        vgg().set_grad_checkpointing(True)
