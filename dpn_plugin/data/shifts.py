"""
Covariate shift: sets of in-domain classes under changed conditions, and their severities.

A set whose name ends in ``@N`` has the severity ``N`` of the shift that is named before it:
``noise@3``. Sources ``corrupted:`` with several corruptions or severities become one set for each.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import torch

from dpn_plugin.data.corruptions import CORRUPTIONS, PARAMETERS, SEVERITIES
from dpn_plugin.data.samples import Samples
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.errors import UserError, choices, unknown_name

CORRUPTED = "corrupted"
_OWN_OPTIONS = ("corruption", "severity", "parameters")
_WITH_SEVERITY = re.compile(r"(?P<shift>.+)@(?P<severity>\d{1,3})")


def split_severity(name: str) -> tuple[str, int | None]:
    """Return the shift and the severity that the name of a set stands for: ``noise@3``."""
    found = _WITH_SEVERITY.fullmatch(name)
    return (found["shift"], int(found["severity"])) if found else (name, None)


def shifted_sets(name: str, spec: SourceSpec) -> dict[str, SourceSpec]:
    """
    Return the sets that a shift of a suite consists of, one for each corruption and severity.

    :param name: of the shift in the suite
    :param spec: its source; one that is not ``corrupted:`` is a set of its own
    :raises UserError: if a corruption or a severity does not exist
    """
    if spec.scheme != CORRUPTED:
        return {name: spec}
    if split_severity(name)[1] is not None:
        raise UserError(
            f"{name!r} ends in a severity, which sets of 'corrupted:' get by themselves."
        )
    corruptions, severities = read_corruptions(spec.options), read_severities(spec.options)
    found = {}
    for corruption, severity in product(corruptions, severities):
        shift = name if len(corruptions) == 1 else f"{name}-{corruption}"
        options = {**spec.options, "corruption": corruption, "severity": severity}
        found[f"{shift}@{severity}"] = spec.model_copy(update={"options": options})
    return found


def clean_spec(spec: SourceSpec) -> SourceSpec:
    """Return the specification of the images that ``corrupted:`` sources are made of."""
    if spec.scheme != CORRUPTED:
        return spec
    options = {name: each for name, each in spec.options.items() if name not in _OWN_OPTIONS}
    return clean_spec(spec.model_copy(update={"source": spec.argument, "options": options}))


def match_classes(samples: Samples, classes: Sequence[str]) -> Samples:
    """
    Return shifted samples with the labels of the in-domain classes, matched by name.

    A shifted set may lack classes, as ImageNet-R does, and may have no others.

    :param samples: with labels and class names of their own
    :param classes: the names of the in-domain classes
    :raises UserError: if a class is not among them
    """
    positions = {name: label for label, name in enumerate(classes)}
    for name in samples.classes:
        if name not in positions:
            raise UserError(
                f"{samples.name} has the class {name!r}, which is not in-domain; there are "
                f"{choices(list(classes)[:8])}{' and others' if len(classes) > 8 else ''}. A set "
                "of [shift] has in-domain classes only: choose them with 'classes'."
            )
    labels = torch.tensor([positions[name] for name in samples.classes])[samples.labels]
    return replace(samples, labels=labels, classes=tuple(classes))


def read_corruptions(options: dict[str, Any]) -> tuple[str, ...]:
    """Return the corruptions that the options of a source name: one, several, or ``all``."""
    given = options.get("corruption", "all")
    names = _parts(given) if given != "all" else list(CORRUPTIONS)
    for name in names:
        if name not in CORRUPTIONS:
            raise unknown_name("corruption", str(name), [*CORRUPTIONS, "all"])
    return tuple(dict.fromkeys(map(str, names)))


def read_severities(options: dict[str, Any]) -> tuple[int, ...]:
    """Return the severities that the options of a source name: one, several, or ``all``."""
    given = options.get("severity", "all")
    if given == "all":
        return SEVERITIES
    known = {str(each): each for each in SEVERITIES}
    parts = [str(each) for each in _parts(given)]
    if not parts or any(each not in known for each in parts):
        raise UserError(
            f"severity must be a whole number from 1 to 5, several of them, or 'all', not "
            f"{given!r}."
        )
    return tuple(dict.fromkeys(known[each] for each in parts))


def read_parameters(options: dict[str, Any]) -> str:
    """Return which published parameters the options of a source ask for."""
    given = options.get("parameters", "auto")
    if given not in (*PARAMETERS, "auto"):
        raise unknown_name("set of parameters", str(given), [*PARAMETERS, "auto"])
    return str(given)


def _parts(given: Any) -> list[Any]:
    """Return the values of a list, or of a text with commas."""
    return list(_flat(given))


def _flat(given: Any) -> Iterator[Any]:
    if isinstance(given, list | tuple):
        for each in given:
            yield from _flat(each)
    elif isinstance(given, str):
        yield from (part.strip() for part in given.split(","))
    else:
        yield given
