"""The training methods, as data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from inspect import signature
from typing import Any

from dpn_plugin.data import MIXINGS
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import KINDS, check_numbers, code_identity, registry, takes
from dpn_plugin.runs.config import TrainConfig

#: options of a method itself; all others are options of its mixing or its loss
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
    :param evidence: how outputs become log-concentrations, for evidential networks
    :param has_ood_classifier: a second network beside the classifier gives the outlier score
    :param init_from: the method that trains the weights that every classifier starts from
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
    evidence: str | None = None
    has_ood_classifier: bool = False
    init_from: "Method | None" = None
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
        return (self._network("classifier"),)

    @property
    def trained_networks(self) -> tuple[Network, ...]:
        """The networks to train, one after the other."""
        if self.init_from is None:
            return self.networks
        return self.init_from._network(INITIAL), *self.networks

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
            is_trained=self.trains,
            lr_factor=self.lr_factor,
            mixing=self.mixing,
            mixing_options=self.mixing_options,
        )
        return replace(network, **changes)


#: the network that others of the same run start from
INITIAL = "initial"

BASELINE = Method("baseline", "ce")
OE = Method("oe", "oe", needs_outliers=True, gamma_option="gamma")
EDL = Method("edl", "edl", loss_options={"evidence": "relu"}, evidence="relu")
DPN_FWD = Method("dpn-fwd", "dpn-fwd", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_REV = Method("dpn-rev", "dpn-rev", needs_outliers=True, gamma_option="gamma", adam_only=True)
DPN_PLUS = Method("dpn-plus", "dpn-plus", needs_outliers=True, gamma_option="gamma")
DPN_MINUS = Method("dpn-minus", "dpn-minus", needs_outliers=True, gamma_option="gamma")
DPN_PLUS_ANCHORED = replace(DPN_PLUS, name="dpn-plus-anchored", loss="dpn-plus-anchored")
DPN_MINUS_ANCHORED = replace(DPN_MINUS, name="dpn-minus-anchored", loss="dpn-minus-anchored")
BINARY = Method("binary", "ce", needs_outliers=True, has_ood_classifier=True)
MCDP = Method("mcdp", "ce", passes=10)
DEEP_ENSEMBLE = Method("deep-ensemble", "ce", members=3)
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


def method_of(config: TrainConfig) -> Method:
    """
    Return the method of a configuration, with the configuration's options.

    :raises UserError: if there is no such method, or its options do not fit
    """
    method: Method = registry.load("methods", config.method)
    if config.init_from is not None:
        method = replace(method, init_from=_initial_method(method, config.init_from))
    options: dict[str, Any] = {**method.loss_options, **config.options}
    _check_names(method, config.options)
    for key in _COUNTS:
        if key in config.options:
            method = replace(method, **{key: _check_count(method, key, options.pop(key))})
    if "lr_factor" in config.options:
        method = replace(method, lr_factor=_check_factor(method, options.pop("lr_factor")))
    if method.mixing is not None:
        mixing = MIXINGS[method.mixing]
        own = {key: options.pop(key) for key in [*options] if takes(mixing, key)}
        method = replace(method, mixing_options=own)
    evidence = None if method.evidence is None else options.get("evidence", method.evidence)
    return replace(method, loss_options=options, evidence=evidence)


def why_not_mixed(method: Method, kind: str) -> str | None:
    """
    Return why a method cannot be trained on samples of a kind, ``None`` if it can.

    :param method: the method
    :param kind: ``"images"``, ``"points"`` or ``"features"``
    """
    if method.mixing is None:
        return None
    why = MIXINGS[method.mixing](**method.mixing_options).why_not(kind)
    return why and f"Method {method.name!r} cannot be trained on this data: {why}."


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
    Check that the method of a configuration takes its options, before anything is trained.

    :raises UserError: naming the option that does not fit
    """
    for network in method_of(config).networks:
        if network.mixing is not None:
            MIXINGS[network.mixing](**network.mixing_options)
        if network.loss_options:
            check_numbers(registry.load("losses", network.loss), network.loss_options)
            registry.create_loss(network.loss, num_classes=2, **network.loss_options)


def _initial_method(method: Method, name: str) -> Method:
    initial: Method = registry.load("methods", name)
    for each in (method, initial):
        if not each.trains:
            raise UserError(f"init_from: {each.name!r} trains nothing: no weights to start from.")
    if len(initial.networks) > 1:
        raise UserError(
            f"init_from: {name!r} trains {len(initial.networks)} networks; {method.name!r} can "
            "start from the weights of one."
        )
    if initial.needs_outliers and not method.needs_outliers:
        raise UserError(
            f"init_from: {name!r} is trained with outliers, and {method.name!r} without any."
        )
    return initial


def _check_names(method: Method, options: Iterable[str]) -> None:
    """Refuse a misspelt option of the method; the loss, which takes the others, has none such."""
    own = _own_options(method)
    for name in options:
        close = get_close_matches(name, own, n=1)
        if name not in own and close and not takes(registry.load("losses", method.loss), name):
            raise UserError(
                f"Method {method.name!r} has no option {name!r}. Did you mean {close[0]!r}?"
            )


def _own_options(method: Method) -> list[str]:
    """Return the names of the options that a method has beside those of its loss."""
    own = [key for key in _COUNTS if getattr(method, key) > 1]
    if method.init_from is not None:
        own.append("lr_factor")
    if method.mixing is not None:
        own += signature(MIXINGS[method.mixing]).parameters
    return own


def _check_factor(method: Method, value: Any) -> float:
    if method.init_from is None:
        raise UserError(f"Method {method.name!r} has no option 'lr_factor': it fine-tunes nothing.")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise UserError(f"lr_factor must be a number above 0 and at most 1, not {value!r}.")
    return float(value)


def _check_count(method: Method, key: str, value: Any) -> Any:
    if getattr(method, key) == 1:
        raise UserError(f"Method {method.name!r} has no option {key!r}.")
    if not isinstance(value, int) or value < 2:
        raise UserError(f"{key} must be a whole number of 2 or more, not {value!r}.")
    return value
