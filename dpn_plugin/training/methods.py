"""The training methods of the paper, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Method", "Network"]


@dataclass(frozen=True)
class Network:
    """
    One network of a method.

    :param name: its file's name
    :param told_apart: a two-class network that tells in-domain (0) from OOD (1) samples, instead of
        the classes
    :param in_domain_only: it is trained without the outliers that another network of the method
        needs
    """

    name: str
    told_apart: bool = False
    in_domain_only: bool = False


@dataclass(frozen=True)
class Method:
    """
    What a method trains, and what it does at test time.

    :param name: how users call it
    :param loss: name of the loss
    :param loss_options: keywords of the loss
    :param needs_outliers: whether OOD samples are part of the training
    :param gamma_option: what the loss calls the weight of OOD samples
    :param adam_only: SGD of a recipe gives way to Adam at 5e-4, as the paper had to do
    :param members: number of classifiers, averaged at test time
    :param passes: number of passes with dropout, averaged at test time
    :param evidence: how the outputs become log-concentrations, for evidential networks
    :param detects_apart: a second network beside the classifier gives the outlier score
    """

    name: str
    loss: str
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    needs_outliers: bool = False
    gamma_option: str | None = None
    adam_only: bool = False
    members: int = 1
    passes: int = 1
    evidence: str | None = None
    detects_apart: bool = False

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks to train, one after the other."""
        if self.members > 1:
            return tuple(Network(f"member-{i}") for i in range(self.members))
        if self.detects_apart:
            classifier = Network("classifier", in_domain_only=True)
            return classifier, Network("binary", told_apart=True)
        return (Network("classifier"),)

    @property
    def averages(self) -> bool:
        """Whether predictions are averages over members or passes."""
        return self.members > 1 or self.passes > 1


BASELINE = Method("baseline", "ce")
OE = Method("oe", "oe", needs_outliers=True, gamma_option="alpha")
EDL = Method("edl", "edl", loss_options={"evidence": "relu"}, evidence="relu")
DPN_FWD = Method("dpn-fwd", "dpn-fwd", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_REV = Method("dpn-rev", "dpn-rev", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_PLUS = Method("dpn-plus", "dpn-plus", needs_outliers=True, gamma_option="gamma")
DPN_MINUS = Method("dpn-minus", "dpn-minus", needs_outliers=True, gamma_option="gamma")
BINARY = Method("binary", "ce", needs_outliers=True, detects_apart=True)
MCDP = Method("mcdp", "ce", passes=10)
DEEP_ENSEMBLE = Method("deep-ensemble", "ce", members=3)
