"""The training methods of the paper, as data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from dpn_plugin.errors import UserError
from dpn_plugin.plugins import KINDS, code_identity, registry, takes
from dpn_plugin.runs.config import TrainConfig

#: options of a method itself; all others are options of its loss
_COUNTS = ("members", "passes")


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


def method_of(config: TrainConfig) -> Method:
    """
    Return the method of a configuration, with the configuration's options.

    :raises UserError: if there is no such method, or its options do not fit
    """
    method: Method = registry.load("methods", config.method)
    if config.init_from is not None:
        initial = _initial_method(method, config.init_from)
        teacher = method.teacher and replace(method.teacher, init_from=initial)
        method = replace(method, init_from=initial, teacher=teacher)
    options: dict[str, Any] = {**method.loss_options, **config.options}
    _check_names(method, config.options)
    for key in _COUNTS:
        if key in config.options:
            method = _with_count(method, key, options.pop(key))
    if method.teacher is not None:
        options["members"] = method.teacher.members
    return replace(method, loss_options=options)


def training_code(config: TrainConfig) -> dict[str, str]:
    """
    Return the identity of the plugins' code that decides the weights, by kind and name.

    Code that the recorded versions identify is left out.
    """
    names = [("methods", config.method), ("backbones", config.backbone)]
    names += [("losses", network.loss) for network in method_of(config).trained_networks]
    found = {f"{KINDS[kind]} {name}": code_identity(kind, name) for kind, name in names}
    return {name: identity for name, identity in found.items() if identity}


def check_options(config: TrainConfig) -> None:
    """
    Check that the losses of a configuration take its options, before anything is trained.

    :raises UserError: naming the option that does not fit
    """
    for network in method_of(config).networks:
        if network.loss_options:
            registry.create_loss(network.loss, num_classes=2, **network.loss_options)


def _initial_method(method: Method, name: str) -> Method:
    initial: Method = registry.load("methods", name)
    for each in (method, initial):
        if not each.trains:
            raise UserError(f"init_from: {each.name!r} trains nothing: no weights to start from.")
    count = len(initial.trained_networks)
    if count > 1:
        raise UserError(
            f"init_from: {name!r} trains {count} networks; {method.name!r} can "
            "start from the weights of one."
        )
    if initial.needs_outliers and not method.needs_outliers:
        raise UserError(
            f"init_from: {name!r} is trained with outliers, and {method.name!r} without any."
        )
    if _has_own_outputs(initial) != _has_own_outputs(method):
        raise UserError(
            f"init_from: the networks of {method.name!r} and {name!r} differ in the number of "
            "outputs; one cannot start from the weights of the other."
        )
    return initial


def _has_own_outputs(method: Method) -> bool:
    """Return whether the networks of a method have other outputs than one per class."""
    return method.teacher is None and hasattr(registry.load("losses", method.loss), "columns")


def _check_names(method: Method, options: Iterable[str]) -> None:
    """Refuse a misspelt count; the loss, which takes all other options, would not know it."""
    counts = [key for key in _COUNTS if _count(method, key) > 1]
    for name in options:
        close = get_close_matches(name, counts, n=1)
        if name not in counts and close and not takes(registry.load("losses", method.loss), name):
            raise UserError(
                f"Method {method.name!r} has no option {name!r}. Did you mean {close[0]!r}?"
            )


def _count(method: Method, key: str) -> int:
    """Return the number of members or passes, of an ensemble that is distilled too."""
    teacher = method.teacher if key == "members" else None
    return getattr(teacher or method, key)


def _with_count(method: Method, key: str, value: Any) -> Method:
    if _count(method, key) == 1:
        raise UserError(f"Method {method.name!r} has no option {key!r}.")
    if not isinstance(value, int) or value < 2:
        raise UserError(f"{key} must be a whole number of 2 or more, not {value!r}.")
    if method.teacher is not None:
        return replace(method, teacher=replace(method.teacher, members=value))
    return replace(method, members=value) if key == "members" else replace(method, passes=value)
