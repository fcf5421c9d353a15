"""The training methods, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Network:
    """
    One network of a method.

    :param name: name of its weights file
    :param loss: name of the loss that it is trained with
    :param loss_options: keyword arguments of the loss
    :param gamma_option: the argument of the loss that weights OOD samples
    :param uses_outliers: whether it is trained with OOD samples
    :param adam_only: SGD of a recipe is replaced by Adam at 5e-4
    :param is_ood_classifier: it has two classes, in-domain (0) and OOD (1), instead of the classes
        of the data
    :param seed_offset: added to the seed of the run, so that members of an ensemble differ
    :param starts_from: the network of the run whose weights it starts from
    :param distils: the networks of the run whose predictions it learns, which are its loss's input
        beside its own
    :param annealing_option: the argument of the loss that is a number of epochs; two thirds of the
        recipe's unless given
    :param is_trained: whether it is trained; otherwise the given weights are its own
    :param lr_factor: of the recipe's learning rate
    :param mixing: name of what mixes the samples of a batch
    :param mixing_options: keyword arguments of the mixing
    """

    name: str
    loss: str
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    gamma_option: str | None = None
    uses_outliers: bool = False
    adam_only: bool = False
    is_ood_classifier: bool = False
    seed_offset: int = 0
    starts_from: str | None = None
    distils: tuple[str, ...] = ()
    annealing_option: str | None = None
    is_trained: bool = True
    lr_factor: float = 1.0
    mixing: str | None = None
    mixing_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """
    What a method trains, and how its networks are used at test time.

    :param name: its name
    :param loss: name of the loss
    :param loss_options: keyword arguments of the loss
    :param needs_outliers: whether it is trained with OOD samples
    :param gamma_option: the argument of the loss that weights OOD samples
    :param adam_only: SGD of a recipe is replaced by Adam at 5e-4, as in the paper
    :param members: number of classifiers, averaged at test time
    :param passes: number of passes with dropout, averaged at test time
    :param has_ood_classifier: a second network beside the classifier gives the outlier score
    :param init_from: the method that trains the weights that every classifier starts from
    :param teacher: the ensemble whose members' predictions the network learns; it is trained first
        and not used at test time
    :param annealing_option: see :class:`Network`
    :param trains: whether anything is trained; otherwise the network is used with the weights that
        are given, and there is only one seed
    :param lr_factor: of the recipe's learning rate, for methods that fine-tune
    :param mixing: name of what mixes the samples of a batch, see ``dpn_plugin.data.MIXINGS``
    :param mixing_options: keyword arguments of the mixing
    :param has_own_score: a branch of the classifier gives an outlier score, beside detectors
    """

    name: str
    loss: str
    loss_options: Mapping[str, Any] = field(default_factory=dict)
    needs_outliers: bool = False
    gamma_option: str | None = None
    adam_only: bool = False
    members: int = 1
    passes: int = 1
    has_ood_classifier: bool = False
    init_from: "Method | None" = None
    teacher: "Method | None" = None
    annealing_option: str | None = None
    trains: bool = True
    lr_factor: float = 1.0
    mixing: str | None = None
    mixing_options: Mapping[str, Any] = field(default_factory=dict)
    has_own_score: bool = False

    @property
    def networks(self) -> tuple[Network, ...]:
        """The networks that are used at test time."""
        if self.members > 1:
            return tuple(self._network(f"member-{i}", seed_offset=i) for i in range(self.members))
        if self.has_ood_classifier:
            classifier = self._network("classifier", uses_outliers=False)
            ood_classifier = self._network("binary", is_ood_classifier=True, seed_offset=1)
            return classifier, replace(ood_classifier, starts_from=None)
        if self.teacher is not None:
            members = tuple(each.name for each in self.teacher.networks)
            return (self._network("classifier", distils=members, seed_offset=STUDENT),)
        return (self._network("classifier"),)

    @property
    def trained_networks(self) -> tuple[Network, ...]:
        """The networks to train, one after the other."""
        members = self.teacher.networks if self.teacher is not None else ()
        if self.init_from is None:
            return *members, *self.networks
        return self.init_from._network(INITIAL), *members, *self.networks

    @property
    def averages(self) -> bool:
        """Whether predictions are averages over members or passes."""
        return self.members > 1 or self.passes > 1

    def _network(self, name: str, **changes: Any) -> Network:
        network = Network(
            name,
            loss=self.loss,
            loss_options=self.loss_options,
            gamma_option=self.gamma_option,
            uses_outliers=self.needs_outliers,
            adam_only=self.adam_only,
            starts_from=INITIAL if self.init_from else None,
            annealing_option=self.annealing_option,
            is_trained=self.trains,
            lr_factor=self.lr_factor,
            mixing=self.mixing,
            mixing_options=self.mixing_options,
        )
        return replace(network, **changes)


#: the network that others of the same run start from
INITIAL = "initial"
#: the seed offset of a network that learns from an ensemble, beyond those of the members
STUDENT = 999

BASELINE = Method("baseline", "ce")
OE = Method("oe", "oe", needs_outliers=True, gamma_option="gamma")
EDL = Method("edl", "edl", loss_options={"evidence": "relu"})
R_EDL = Method("r-edl", "r-edl")
RE_EDL = Method("re-edl", "re-edl")
I_EDL = Method("i-edl", "i-edl")
F_EDL = Method("f-edl", "f-edl")
DAEDL = Method("daedl", "daedl")
BELIEF_MATCHING = Method("belief-matching", "belief-matching")
DPN_FWD = Method("dpn-fwd", "dpn-fwd", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_REV = Method("dpn-rev", "dpn-rev", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_PLUS = Method("dpn-plus", "dpn-plus", needs_outliers=True, gamma_option="gamma")
DPN_MINUS = Method("dpn-minus", "dpn-minus", needs_outliers=True, gamma_option="gamma")
DPN_PLUS_ANCHORED = replace(DPN_PLUS, name="dpn-plus-anchored", loss="dpn-plus-anchored")
DPN_MINUS_ANCHORED = replace(DPN_MINUS, name="dpn-minus-anchored", loss="dpn-minus-anchored")
BINARY = Method("binary", "ce", needs_outliers=True, has_ood_classifier=True)
MCDP = Method("mcdp", "ce", passes=10)
DEEP_ENSEMBLE = Method("deep-ensemble", "ce", members=3)
ENSEMBLE_DISTILLATION = Method(
    "ensemble-distillation",
    "ensemble-distillation",
    teacher=DEEP_ENSEMBLE,
    annealing_option="annealing_epochs",
)
AS_IS = Method("as-is", "ce", trains=False)
ENERGY_FT = Method(
    "energy-ft",
    "energy-regularized",
    loss_options={"alpha": 0.1, "margin_in": -23.0, "margin_out": -5.0},
    needs_outliers=True,
    init_from=BASELINE,
    lr_factor=0.1,
)
MIXOE = Method(
    "mixoe", "mixoe", needs_outliers=True, init_from=BASELINE, lr_factor=0.1, mixing="mixoe"
)
PIXMIX = Method("pixmix", "ce", mixing="pixmix")
