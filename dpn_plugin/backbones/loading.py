"""Load given weights into a timm model: names are mapped, and what does not fit is listed."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from dpn_plugin.backbones.heads import head_names
from dpn_plugin.backbones.weights import StateDict
from dpn_plugin.errors import UserError

Tensors = dict[str, Tensor]

#: counts batches and decides nothing; older files do not have it
_COUNTER = "num_batches_tracked"
#: parts of a name that may stand before timm's: "model.encoder.net."
_DEEPEST_PREFIX = 4
_SHOWN = 3


class WeightsDoNotFit(UserError):
    """Weights of another architecture."""


@dataclass
class Comparison:
    """
    What of a file's weights fits a model.

    :param tensors: those that fit, by the model's names
    :param note: how names were mapped, if they were
    :param missing: names that the model has and the file has not
    :param unexpected: names that the file has and the model has not
    :param other_shape: names with both shapes
    :param replaced: names of the head's tensors that stay as they are
    :param classes: the number of classes of the file's head, if it has one
    """

    tensors: Tensors
    note: str = ""
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    other_shape: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    classes: int | None = None

    @property
    def fits(self) -> bool:
        """Whether every tensor of the model, except the head's, is in the file."""
        return not self.missing and not self.other_shape

    def describe(self) -> str:
        """Return what does not fit, a few names and a count of each kind."""
        kinds = {
            "missing": self.missing,
            "unexpected": self.unexpected,
            "of another shape": self.other_shape,
        }
        listed = {kind: names for kind, names in kinds.items() if names}
        return "; ".join(f"{len(names)} {kind}: {_few(names)}" for kind, names in listed.items())


def load_weights(model: Any, state: StateDict, source: str, name: str) -> int | None:
    """
    Load weights into a model, and return the number of classes of their head.

    Names may have a prefix (``module.``, ``model.``), be those of other libraries that timm itself
    converts, or differ throughout if the order and all shapes agree. A head for another number of
    classes is not loaded. Warnings say what was mapped, replaced or left out.

    :param model: a timm model; its head stays as it is where the file has none that fits
    :param state: what :func:`~dpn_plugin.backbones.weights.read_state_dict` returned
    :param source: the file, for messages
    :param name: the timm id, for messages
    :raises WeightsDoNotFit: if tensors are missing or have other shapes
    """
    compared = list(_comparisons(model, state))
    best = next((each for each in compared if each.fits), None)
    if best is None:
        closest = max(compared, key=lambda each: len(each.tensors))
        total = len(_counted(model.state_dict()))
        raise WeightsDoNotFit(
            f"{source} does not hold weights of {name!r}: {len(closest.tensors)} of its {total} "
            f"tensors fit ({closest.describe()})."
        )
    model.load_state_dict(best.tensors, strict=False)
    for sentence in _remarks(best, source, name, model.num_classes):
        warnings.warn(sentence)
    return best.classes


def _remarks(found: Comparison, source: str, name: str, classes: int) -> Iterator[str]:
    if found.note:
        yield f"{source}: {found.note}"
    if found.unexpected:
        count = len(found.unexpected)
        yield f"{source}: {count} tensors that {name!r} does not have are left out: " + (
            f"{_few(found.unexpected)}."
        )
    if found.replaced:
        has = "no head" if found.classes is None else f"a head for {found.classes} classes"
        yield f"{source} has {has}; a new one for {classes} classes starts from random weights."


def _comparisons(model: Any, state: StateDict) -> Iterator[Comparison]:
    """Yield the ways to map names, the most literal one first."""
    target, heads = _counted(model.state_dict()), head_names(model)
    tensors = _counted(state.tensors)
    stripped = _without_prefix(tensors, target)
    yield _compare(stripped, target, heads)
    converted = _converted(model, stripped)
    if converted is not None:
        yield _compare(_counted(converted), target, heads)
    if state.ordered and len(tensors) == len(target):
        mapped = dict(zip(target, tensors.values(), strict=True))
        compared = _compare(mapped, target, heads)
        compared.note = (
            "the names of the tensors are not those of timm; they were mapped in their order, in "
            "which all shapes agree."
        )
        if compared.fits:
            yield compared


def _compare(tensors: Tensors, target: Tensors, heads: set[str]) -> Comparison:
    found = Comparison({}, unexpected=[name for name in tensors if name not in target])
    for name, wanted in target.items():
        given = tensors.get(name)
        if given is not None and name in heads and given.ndim > 1:
            found.classes = len(given)
        if given is not None and given.shape == wanted.shape:
            found.tensors[name] = given
        elif name in heads and (given is None or given.shape[1:] == wanted.shape[1:]):
            found.replaced.append(name)
        elif given is None:
            found.missing.append(name)
        else:
            found.other_shape.append(f"{name} ({_shape(given)}, not {_shape(wanted)})")
    return found


def _without_prefix(tensors: Tensors, target: Tensors) -> Tensors:
    """Return the tensors without the prefix after which most names are the target's."""
    prefixes = {""}
    for name in tensors:
        parts = name.split(".")[:-1][:_DEEPEST_PREFIX]
        prefixes |= {".".join(parts[: count + 1]) + "." for count in range(len(parts))}

    def matches(prefix: str) -> int:
        size = len(prefix)
        return sum(name.startswith(prefix) and name[size:] in target for name in tensors)

    # of equal ones the shortest: sorted, so that the choice does not depend on the order of a set
    best = max(sorted(prefixes, key=lambda each: (len(each), each)), key=matches)
    return {name.removeprefix(best): each for name, each in tensors.items()}


def _converted(model: Any, tensors: Tensors) -> Tensors | None:
    """Return what timm's own filter of the family makes of other libraries' names and sizes."""
    module = sys.modules[type(model).__module__]
    convert: Callable[[Tensors, Any], Any] | None = getattr(module, "checkpoint_filter_fn", None)
    if convert is None:
        return None
    try:
        found = convert(dict(tensors), model)
    except Exception:  # timm's filters assume the checkpoints that they were written for
        return None
    return {name: each for name, each in found.items() if isinstance(each, Tensor)}


def _counted(tensors: Tensors) -> Tensors:
    return {name: each for name, each in tensors.items() if not name.endswith(_COUNTER)}


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "one number"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
