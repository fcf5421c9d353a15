"""The paper's network for points in the plane, as a model of timm's own registry."""

from typing import Any

import torch
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import Tensor, nn

HIDDEN = 125


class PointMlp(nn.Module):
    """
    A network with two hidden layers of 125 ReLU units for points B x C, without feature maps.

    .. note::
        The paper's text gives the width as 125 and as 50; 125 is what its authors trained.

    :param num_classes: number of logits; 0 gives the 125 features instead
    :param in_chans: coordinates of a point
    :param drop_rate: dropout before the classifier, none by default
    """

    def __init__(self, num_classes: int = 3, in_chans: int = 2, drop_rate: float = 0.0) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.in_chans = in_chans
        self.drop_rate = drop_rate
        self.num_features = self.head_hidden_size = HIDDEN
        self.feature_info = [{"num_chs": HIDDEN, "reduction": 1, "module": "features"}]
        self.features = nn.Sequential(
            nn.Linear(in_chans, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.head_drop = nn.Dropout(drop_rate)
        self.head = _classifier(num_classes)

    @torch.jit.ignore
    def get_classifier(self) -> nn.Module:
        """Return the last linear layer."""
        return self.head

    def reset_classifier(self, num_classes: int, global_pool: str | None = None) -> None:
        """
        Replace the classifier.

        :param num_classes: number of logits of the new classifier; 0 removes it
        :param global_pool: accepted for timm's interface; points have nothing to pool
        """
        self.num_classes = num_classes
        self.head = _classifier(num_classes).to(next(self.parameters()))

    def forward_features(self, x: Tensor) -> Tensor:
        """Return features B x 125."""
        return self.features(x)

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """
        Return logits, or features with dropout applied.

        :param x: features B x 125
        :param pre_logits: stop before the classifier
        """
        x = self.head_drop(x)
        return x if pre_logits else self.head(x)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        return self.forward_head(self.forward_features(x))


def _classifier(num_classes: int) -> nn.Module:
    return nn.Linear(HIDDEN, num_classes) if num_classes > 0 else nn.Identity()


default_cfgs = generate_default_cfgs(
    {
        "mlp_synthetic": {
            "url": "",
            "num_classes": 3,
            "input_size": (2, 1, 1),  # timm has no points: an image of one pixel
            "mean": (0.0, 0.0),
            "std": (1.0, 1.0),
            "first_conv": "features.0",
            "classifier": "head",
        }
    }
)


@register_model
def mlp_synthetic(pretrained: bool = False, **kwargs: Any) -> PointMlp:
    """
    Return the paper's network for the synthetic data.

    :param pretrained: must be false: no weights are published
    :param kwargs: arguments of :class:`PointMlp`, e.g. ``num_classes``, ``in_chans``
    """
    return build_model_with_cfg(PointMlp, "mlp_synthetic", pretrained, **kwargs)
