"""The paper's two forms of VGG-16 for small images, as models of timm's own registry."""

from collections.abc import Iterator
from typing import Any

import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.layers import ClassifierHead, to_2tuple
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))

#: pixels along a side that become one position of the last feature maps
REDUCTION = 2 ** len(STAGES)

# The paper's dropout: 0.3 after the first convolution, 0.4 between the others, 0.5 in the head
FIRST_SHARE, INNER_SHARE, HEAD_RATE = 0.6, 0.8, 0.5


class VggCifar(nn.Module):
    """
    VGG-16 with batch norm and dropout for images of 28 to 64 pixels, 15 to 16 M weights.

    Thirteen blocks of convolution, ReLU and batch norm, in this order; a max-pool after each of the
    five stages; dropout, a hidden layer of 512 units with ReLU and batch norm, dropout, classifier.

    .. note::
        The hidden layer is a convolution before the global pool, as in timm's own VGG. Without
        ``img_size`` it is 1x1, so one set of weights fits every image size: at 28 and 32 pixels one
        position is left and this is the paper's fully connected layer, at 64 pixels it is applied
        at all four positions. With ``img_size=64`` it is 2x2, the paper's fully connected layer of
        2048 inputs.

    :param num_classes: number of logits; 0 gives pooled features instead
    :param in_chans: channels of the images
    :param global_pool: timm's name of the pooling, ``""`` for none (only without a classifier)
    :param drop_rate: dropout of the head. The convolutional blocks follow in the paper's
        proportion: 0.5 gives its rates 0.3, 0.4 and 0.5, and 0 switches all dropout off
    :param img_size: pixels of the images, along a side or as height and width, all of whose
        positions in the last feature maps the hidden layer connects
    """

    def __init__(
        self,
        num_classes: int = 10,
        in_chans: int = 3,
        global_pool: str = "avg",
        drop_rate: float = HEAD_RATE,
        img_size: int | tuple[int, int] = REDUCTION,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.in_chans = in_chans
        self.drop_rate = drop_rate
        self.num_features = self.head_hidden_size = STAGES[-1][-1]
        self.features = nn.Sequential(*_layers(in_chans, drop_rate))
        self.feature_info = _feature_info(self.features)
        height, width = (-(-side // REDUCTION) for side in to_2tuple(img_size))
        hidden = _block(self.num_features, self.head_hidden_size, (height, width), padding=0)
        self.pre_logits = nn.Sequential(nn.Dropout(drop_rate), hidden)
        self.head = ClassifierHead(self.head_hidden_size, num_classes, global_pool, drop_rate)
        self.apply(_init_weights)

    @torch.jit.ignore
    def group_matcher(self, coarse: bool = False) -> dict[str, str]:
        """Return the patterns by which timm groups the weights into layers."""
        return {"stem": r"^features\.0", "blocks": r"^features\.(\d+)"}

    @torch.jit.ignore
    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """
        Refuse gradient checkpointing, which would update the batch norms twice.

        :param enable: must be false
        :raises ValueError: if enabled
        """
        if enable:
            raise ValueError("vgg16_cifar and vgg16_tim do not support gradient checkpointing.")

    @torch.jit.ignore
    def get_classifier(self) -> nn.Module:
        """Return the last linear layer."""
        return self.head.fc

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """
        Replace the classifier.

        :param num_classes: number of logits of the new classifier; 0 removes it
        :param global_pool: the new pooling; unchanged if not given
        """
        self.num_classes = num_classes
        self.head.reset(num_classes, global_pool)

    def forward_features(self, x: Tensor) -> Tensor:
        """Return feature maps B x 512 x H/32 x W/32, rounded up."""
        return self.features(x)

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """
        Return logits, or features B x 512.

        :param x: feature maps
        :param pre_logits: stop before the classifier
        """
        return self.head(self.pre_logits(x), pre_logits=pre_logits)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        return self.forward_head(self.forward_features(x))


def _block(
    in_chans: int, out_chans: int, kernel_size: int | tuple[int, int], padding: int
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_chans, out_chans, kernel_size, padding=padding),
        nn.ReLU(inplace=True),
        nn.BatchNorm2d(out_chans),
    )


def _layers(in_chans: int, drop_rate: float) -> Iterator[nn.Module]:
    share = FIRST_SHARE
    for widths in STAGES:
        for i, width in enumerate(widths):
            if i > 0:
                yield nn.Dropout(share * drop_rate)
                share = INNER_SHARE
            yield _block(in_chans, width, kernel_size=3, padding=1)
            in_chans = width
        # ceil_mode: 28 pixels are reduced to 1; rounding down would leave 0
        yield nn.MaxPool2d(2, ceil_mode=True)


def _feature_info(features: nn.Sequential) -> list[dict[str, int | str]]:
    pools = [i for i, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)]
    return [
        {"num_chs": widths[-1], "reduction": 2**depth, "module": f"features.{pool}"}
        for depth, (pool, widths) in enumerate(zip(pools, STAGES, strict=True), start=1)
    ]


def _init_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.zeros_(module.bias)  # type: ignore[arg-type]  # every convolution here has one
    elif isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.01)
        nn.init.zeros_(module.bias)


_SHARED_CFG = {
    "url": "",
    "crop_pct": 1.0,
    "interpolation": "bilinear",
    "first_conv": "features.0.0",
    "classifier": "head.fc",
}

default_cfgs = generate_default_cfgs(
    {
        "vgg16_cifar": {
            **_SHARED_CFG,
            "num_classes": 10,
            "input_size": (3, 32, 32),
            "pool_size": (1, 1),
            "mean": (0.4914, 0.4822, 0.4465),  # of CIFAR-10
            "std": (0.2470, 0.2435, 0.2616),
        },
        "vgg16_tim": {
            **_SHARED_CFG,
            "num_classes": 200,
            "input_size": (3, 64, 64),
            "fixed_input_size": True,  # timm then passes img_size on
            "pool_size": (2, 2),
            "mean": IMAGENET_DEFAULT_MEAN,
            "std": IMAGENET_DEFAULT_STD,
        },
    }
)


@register_model
def vgg16_cifar(pretrained: bool = False, **kwargs: Any) -> VggCifar:
    """
    Return the VGG-16 that the paper trains on CIFAR-10 and CIFAR-100.

    :param pretrained: must be false: no weights are published
    :param kwargs: arguments of :class:`VggCifar`, e.g. ``num_classes``, ``in_chans``, ``drop_rate``
    """
    return _build("vgg16_cifar", pretrained, **kwargs)


@register_model
def vgg16_tim(pretrained: bool = False, **kwargs: Any) -> VggCifar:
    """
    Return the VGG-16 that the paper trains on TinyImageNet: without dropout, and with a fully
    connected layer from all 2048 values of the last pool to 512. Images have 64 pixels.

    :param pretrained: must be false: no weights are published
    :param kwargs: arguments of :class:`VggCifar`, e.g. ``num_classes``, ``in_chans``, ``drop_rate``
    """
    return _build("vgg16_tim", pretrained, **{"drop_rate": 0.0, **kwargs})


def _build(name: str, pretrained: bool, **kwargs: Any) -> VggCifar:
    return build_model_with_cfg(
        VggCifar, name, pretrained, feature_cfg={"flatten_sequential": True}, **kwargs
    )
