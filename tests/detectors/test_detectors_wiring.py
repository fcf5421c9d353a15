"""The arguments that a detector gets from a backbone, and the errors if the backbone lacks them."""

from functools import partial

import pytest
import timm
import torch
from pytorch_ood import detector as host
from pytorch_ood.api import Detector, FeatureMapsDetector, FeaturesDetector
from torch import Tensor, nn

import dpn_plugin
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.detectors import NotApplicable, reads, wired
from dpn_plugin.detectors.wiring.feature_maps import final_maps, stages

CLASSES = 4


def small_backbone(name: str, **options: object) -> Backbone:
    torch.manual_seed(0)
    return create_backbone(name, CLASSES, in_chans=1, image_size=32, **options).eval()


@pytest.fixture(scope="module")
def resnet() -> Backbone:
    return small_backbone("test_resnet")


@pytest.fixture(scope="module")
def swin() -> Backbone:
    torch.manual_seed(0)
    model = timm.create_model(
        "swin_tiny_patch4_window7_224",
        num_classes=CLASSES,
        in_chans=1,
        img_size=32,
        patch_size=2,
        window_size=4,
        embed_dim=8,
        depths=(1, 1),
        num_heads=(1, 2),
    )
    return Backbone(model, "swin", "default", (1, 32, 32)).eval()


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet", "swin"])
def test_the_head_maps_feature_maps_to_logits(name: str, swin: Backbone) -> None:
    backbone = swin if name == "swin" else small_backbone(name)
    x = torch.randn(3, *backbone.input_size)
    maps = final_maps(backbone)
    torch.testing.assert_close(maps.head(maps(x)), backbone(x))
    assert maps(x).shape[2:] == maps.size


def test_stages_are_the_layers_of_a_resnet(resnet: Backbone) -> None:
    x = torch.randn(2, 1, 32, 32)
    model, hidden = resnet.model, []
    y = model.maxpool(model.act1(model.bn1(model.conv1(x))))
    for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
        y = layer(y)
        hidden.append(y)
    for stage, expected in zip(stages(resnet), hidden, strict=True):
        x = stage(x)
        torch.testing.assert_close(x, expected)


def test_stages_of_a_channels_last_model_are_channels_first(swin: Backbone) -> None:
    x = torch.randn(2, *swin.input_size)
    shapes = []
    for stage in stages(swin):
        x = stage(x)
        shapes.append(tuple(x.shape))
    assert shapes == [(2, 8, 16, 16), (2, 16, 8, 8)]


def test_stages_remove_their_hooks(resnet: Backbone) -> None:
    first = stages(resnet)[0]
    first(torch.randn(1, 1, 32, 32))
    assert not any(module._forward_hooks for module in resnet.modules())


def test_react_clips_the_pooled_features(resnet: Backbone) -> None:
    detector = wired(host.ReAct, resnet, threshold=0.1)
    x = torch.randn(3, 1, 32, 32)
    expected = -torch.logsumexp(resnet.head(resnet.encoder(x).clip(max=0.1)), dim=1)
    torch.testing.assert_close(detector.predict(x), expected)
    assert reads(detector) == "features"


def test_grad_norm_uses_only_the_weight_of_the_head(resnet: Backbone) -> None:
    detector = wired(host.GradNorm, resnet)
    (name,) = detector._selected_params()
    assert dict(resnet.named_parameters())[name] is resnet.model.get_classifier().weight


def test_constants_come_from_the_backbone(resnet: Backbone) -> None:
    assert wired(host.ODIN, resnet).norm_std == list(resnet.std)
    assert wired(host.ViM, resnet).d == resnet.num_features // 2
    assert wired(host.DICE, resnet).p == 0.9
    assert wired(host.Gram, resnet).num_classes == CLASSES


def test_options_replace_the_arguments_from_the_backbone(resnet: Backbone) -> None:
    assert wired(host.ViM, resnet, d=7).d == 7
    assert wired(host.DICE, resnet, p=0.5).p == 0.5
    embeddings = torch.eye(CLASSES, resnet.num_features)
    detector = wired(host.MCM, resnet, text_embeddings=embeddings)
    assert detector.text_embeddings is embeddings


def test_equal_weights_make_the_weighted_energy_the_energy(resnet: Backbone) -> None:
    logits = torch.randn(5, CLASSES)
    scores = wired(host.WeightedEBO, resnet).predict_logits(logits)
    torch.testing.assert_close(scores, -torch.logsumexp(logits, dim=1))


def test_a_head_without_bias_and_a_convolutional_head_count_as_linear() -> None:
    bare = small_backbone("test_resnet")
    bare.model.fc = nn.Linear(bare.num_features, CLASSES, bias=False)
    assert torch.equal(wired(host.DICE, bare).bias, torch.zeros(CLASSES))
    convolved = small_backbone("test_resnet")
    linear = convolved.model.get_classifier()
    convolution = nn.Conv2d(linear.in_features, CLASSES, 1)
    convolution.weight.data = linear.weight.data[:, :, None, None]
    convolved.model.get_classifier = lambda: convolution
    head = wired(host.NCI, convolved).head
    assert isinstance(head, nn.Linear)
    torch.testing.assert_close(head.weight, linear.weight)


@pytest.mark.parametrize(
    ("name", "backbone", "reason"),
    [
        ("gram", "test_vit", "Gram needs feature maps, and test_vit has none."),
        (
            "mcd",
            "test_vit",
            "MCD needs dropout, and test_vit has none unless it is built with drop_rate, e.g. with "
            "--set drop_rate=0.5.",
        ),
        (
            "rank-feat",
            "vgg16_cifar",
            "RankFeat needs feature maps of several positions, and vgg16_cifar has one at 32x32"
            " pixels.",
        ),
    ],
)
def test_the_reason_is_one_sentence(name: str, backbone: str, reason: str) -> None:
    with pytest.raises(NotApplicable) as caught:
        dpn_plugin.create_detector(name, small_backbone(backbone))
    assert str(caught.value) == reason


def test_a_head_that_is_not_linear_is_refused() -> None:
    backbone = small_backbone("test_resnet")
    backbone.model.fc = nn.Sequential(nn.Linear(backbone.model.num_features, CLASSES), nn.ReLU())
    with pytest.raises(NotApplicable, match="fDBD needs a linear head, and that of test_resnet is"):
        wired(host.fDBD, backbone)


def test_dropout_makes_mcd_possible() -> None:
    backbone = small_backbone("test_resnet", drop_rate=0.3)
    assert wired(host.MCD, backbone).model is backbone
    assert not backbone.training


def test_a_timm_model_is_wrapped() -> None:
    model = timm.create_model("test_resnet", num_classes=CLASSES, in_chans=1).eval()
    x = torch.randn(2, 1, 64, 64)
    detector = dpn_plugin.create_detector("knn", model)
    expected = model.forward_head(model.forward_features(x), pre_logits=True)
    torch.testing.assert_close(detector.encoder(x), expected)
    assert len(dpn_plugin.create_detector("gram", model).feature_layers) == 4


def test_any_module_works_for_detectors_of_logits_only() -> None:
    model = nn.Identity()
    assert dpn_plugin.create_detector("odin", model).model is model
    with pytest.raises(TypeError, match=r"'gram' takes no model.*head and num_classes"):
        dpn_plugin.create_detector("gram", model)
    assert dpn_plugin.create_detector("knn", model, encoder=model).encoder is model


class Prototype(FeaturesDetector):
    """A third-party detector; the names of its parameters say what it needs."""

    def __init__(self, encoder: object, head: object, num_classes: int, power: float = 2.0) -> None:
        self.encoder, self.head = encoder, head
        self.num_classes, self.power = num_classes, power

    def predict(self, x: Tensor) -> Tensor:
        return self.predict_features(self.encoder(x))

    def predict_features(self, x: Tensor) -> Tensor:
        return self.head(x).max(dim=1).values.abs() ** self.power


class Texture(FeatureMapsDetector):
    """The same, on feature maps."""

    def __init__(self, backbone: object, head: object) -> None:
        self.backbone, self.head = backbone, head

    def predict(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x)).sum(dim=1)


def test_a_third_party_detector_is_wired_by_the_names_of_its_parameters(resnet: Backbone) -> None:
    x = torch.randn(3, 1, 32, 32)
    prototype = wired(Prototype, resnet, power=1.0)
    assert prototype.num_classes == CLASSES
    torch.testing.assert_close(prototype.predict(x), resnet(x).max(dim=1).values.abs())
    torch.testing.assert_close(wired(Texture, resnet).predict(x), resnet(x).sum(dim=1))
    with pytest.raises(NotApplicable, match="Texture needs feature maps, and test_vit has none"):
        wired(Texture, small_backbone("test_vit"))


class Clipping(host.ReAct):
    """A class derived from one of the host."""


def test_a_derived_class_is_wired_like_its_base_class(resnet: Backbone) -> None:
    assert reads(wired(Clipping, resnet)) == "features"


def test_a_class_with_the_name_of_a_host_class_is_wired_by_its_parameters(resnet: Backbone) -> None:
    namesake = type("DICE", (Prototype,), {})
    assert wired(namesake, resnet).power == 2.0


def test_any_callable_may_create_a_detector(resnet: Backbone) -> None:
    assert wired(partial(Prototype, power=3.0), resnet).power == 3.0


class Plain(Detector):
    def predict(self, x: Tensor) -> Tensor:
        return x.flatten(1).sum(dim=1)


@pytest.mark.parametrize(
    ("detector", "kind"),
    [
        (host.MaxSoftmax(None), "logits"),
        (host.KNN(None), "features"),
        (host.ASH(nn.Identity(), nn.Identity()), "inputs"),
        (host.ODIN(nn.Identity()), "inputs"),
        (host.MahalanobisODIN(nn.Identity()), "inputs"),
        (host.MCD(nn.Identity()), "inputs"),
        (Plain(), "inputs"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_a_detector_reads_follows_from_its_base_class(detector: Detector, kind: str) -> None:
    assert reads(detector) == kind
