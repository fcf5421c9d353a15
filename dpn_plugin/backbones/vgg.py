"""The paper's VGG-16 for small images, as a model of timm's own registry."""

from collections.abc import Iterator
from typing import Any

import torch
from timm.layers import ClassifierHead
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))

# The paper's dropout: 0.3 after the first convolution, 0.4 between the others, 0.5 in the head
FIRST_SHARE, INNER_SHARE, HEAD_RATE = 0.6, 0.8, 0.5


class VggCifar(nn.Module):
    """
    VGG-16 with batch norm and dropout for images of 28 to 64 pixels, about 15 M weights.

    Thirteen blocks of convolution, ReLU and batch norm, in this order; a max-pool after each of the
    five stages; dropout, a hidden layer of 512 units with ReLU and batch norm, dropout, classifier.

    .. note::
        The hidden layer is a 1x1 convolution before the global pool, as in timm's own VGG. At 28
        and 32 pixels one position is left and this is the paper's fully connected layer; at 64
        pixels it is applied at all four positions, so one set of weights fits every image size.

    :param num_classes: number of logits; 0 gives pooled features instead
    :param in_chans: channels of the images
    :param global_pool: timm's name of the pooling, ``""`` for none (only without a classifier)
    :param drop_rate: dropout of the head. The convolutional blocks follow in the paper's
        proportion: 0.5 gives its rates 0.3, 0.4 and 0.5, and 0 switches all dropout off
    """

    def __init__(
        self,
        num_classes: int = 10,
        in_chans: int = 3,
        global_pool: str = "avg",
        drop_rate: float = HEAD_RATE,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.in_chans = in_chans
        self.drop_rate = drop_rate
        self.num_features = self.head_hidden_size = STAGES[-1][-1]
        self.features = nn.Sequential(*_layers(in_chans, drop_rate))
        self.feature_info = _feature_info(self.features)
        self.pre_logits = nn.Sequential(
            nn.Dropout(drop_rate), _block(self.num_features, self.head_hidden_size, kernel_size=1)
        )
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
            raise ValueError("vgg16_cifar does not support gradient checkpointing.")

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


def _block(in_chans: int, out_chans: int, kernel_size: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_chans, out_chans, kernel_size, padding=kernel_size // 2),
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
            yield _block(in_chans, width)
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


default_cfgs = generate_default_cfgs(
    {
        "vgg16_cifar": {
            "url": "",
            "num_classes": 10,
            "input_size": (3, 32, 32),
            "pool_size": (1, 1),
            "crop_pct": 1.0,
            "interpolation": "bilinear",
            "mean": (0.4914, 0.4822, 0.4465),  # of CIFAR-10
            "std": (0.2470, 0.2435, 0.2616),
            "first_conv": "features.0.0",
            "classifier": "head.fc",
        }
    }
)


@register_model
def vgg16_cifar(pretrained: bool = False, **kwargs: Any) -> VggCifar:
    """
    Return the paper's VGG-16.

    :param pretrained: must be false: no weights are published
    :param kwargs: arguments of :class:`VggCifar`, e.g. ``num_classes``, ``in_chans``, ``drop_rate``
    """
    return build_model_with_cfg(
        VggCifar, "vgg16_cifar", pretrained, feature_cfg={"flatten_sequential": True}, **kwargs
    )
