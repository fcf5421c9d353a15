"""The rules of a backbone."""

from functools import cached_property

import timm
import torch
from torch import Tensor

from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.testing.checks import Check, CheckSkipped, checks_of, require

CLASSES = 7


class BackboneCase:
    """
    A backbone under test.

    :param name: a timm id
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def backbone(self) -> Backbone:
        """The model for seven classes, in evaluation mode."""
        if not timm.is_model(self.name):
            raise CheckSkipped(f"timm has no model {self.name}")
        return create_backbone(self.name, CLASSES).eval()

    @cached_property
    def x(self) -> Tensor:
        """Three inputs."""
        generator = torch.Generator().manual_seed(0)
        return torch.randn(3, *self.backbone.input_size, generator=generator)


def is_known_to_timm(case: BackboneCase) -> None:
    """timm.create_model finds it by name."""
    require(
        timm.is_model(case.name),
        f"timm has no model {case.name!r}",
        "Install the package, so that its entry point is found, or decorate the function with"
        " timm.models.register_model",
    )


def has_as_many_logits_as_classes(case: BackboneCase) -> None:
    """num_classes sets the number of logits."""
    shape = tuple(case.backbone(case.x).shape)
    require(
        shape == (3, CLASSES),
        f"3 inputs and num_classes={CLASSES} gave logits of shape {shape}",
        "Pass num_classes on to the classifier",
    )


@torch.no_grad()
def gives_the_logits_of_its_head_on_its_encoder(case: BackboneCase) -> None:
    """The classifier applied to the pooled features gives the same logits as forward."""
    features = case.backbone.encoder(case.x)
    width = case.backbone.num_features
    fix = "forward must be forward_head(forward_features(x)), and get_classifier() its last layer"
    shape = tuple(features.shape)
    require(shape == (3, width), f"features have shape {shape}, not (3, {width})", fix)
    same = torch.allclose(case.backbone.head(features), case.backbone(case.x), 1e-3, 1e-5)
    require(same, "head(encoder(x)) differs from forward(x)", fix)


@torch.no_grad()
def gives_the_same_logits_for_any_batching(case: BackboneCase) -> None:
    """In evaluation mode an input's logits do not depend on the inputs beside it."""
    alone = torch.cat([case.backbone(each) for each in case.x.split(1)])
    require(
        torch.allclose(alone, case.backbone(case.x), 1e-3, 1e-5),
        "logits of single inputs differ from those of a batch",
        "Let every layer follow .eval(): use nn.Dropout and nn.BatchNorm modules, not functions",
    )


def trains_all_its_parameters(case: BackboneCase) -> None:
    """Every parameter has an influence on the logits."""
    model = case.backbone.model
    wanted = [name for name, each in model.named_parameters() if each.requires_grad]
    found = torch.autograd.grad(
        case.backbone(case.x).sum(),
        [model.get_parameter(name) for name in wanted],
        allow_unused=True,
    )
    unused = [name for name, each in zip(wanted, found, strict=True) if each is None]
    require(not unused, f"{' and '.join(unused[:3])} are unused", "Remove them: DDP would stop")


RULES = (
    is_known_to_timm,
    has_as_many_logits_as_classes,
    gives_the_logits_of_its_head_on_its_encoder,
    gives_the_same_logits_for_any_batching,
    trains_all_its_parameters,
)


def backbone_checks(name: str) -> list[Check]:
    """Return the checks of the backbone with a timm id."""
    return checks_of(f"backbone {name}", RULES, BackboneCase(name))
