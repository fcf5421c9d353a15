"""What a request names: methods, detectors, and the part of the data."""

from collections.abc import Sequence

from dpn_plugin.bench.record import NotRun
from dpn_plugin.bench.suite import Suite
from dpn_plugin.data import SourceSpec, check_calibration, check_in_domain_test, check_no_overlap
from dpn_plugin.detectors import parse_combination
from dpn_plugin.errors import UserError, unknown_name
from dpn_plugin.plugins import registry


def check_sources(suite: Suite) -> None:
    """
    Check that in-domain data, outliers and OOD test sets come from different data sets.

    The splits of one data set may be the in-domain training and test data.

    :raises UserError: naming two that do not
    """
    outliers = [(name, spec, None) for name, spec in suite.outliers.items()]
    tests = [(name, spec, None) for sets in suite.groups.values() for name, spec in sets.items()]
    in_domain = [("in_domain", suite.in_domain, None)]
    if suite.in_domain_test is not None:
        in_domain.append(("in_domain_test", suite.in_domain_test, None))
    if suite.calibration is not None:
        check_calibration(("calibration", suite.calibration, None), in_domain)
        in_domain.append(("calibration", suite.calibration, None))
    check_no_overlap(outliers, tests, in_domain)
    check_in_domain_test(suite.in_domain, suite.in_domain_test)


def limit_samples(suite: Suite, limit: int | None) -> Suite:
    """Return the suite with a limit on the number of samples of every set."""
    if limit is None:
        return suite

    def limited(spec: SourceSpec) -> SourceSpec:
        return spec.model_copy(update={"limit": min(limit, spec.limit or limit)})

    def all_limited(specs: dict[str, SourceSpec]) -> dict[str, SourceSpec]:
        return {name: limited(spec) for name, spec in specs.items()}

    return suite.model_copy(
        update={
            "in_domain": limited(suite.in_domain),
            "in_domain_test": limited(suite.in_domain_test) if suite.in_domain_test else None,
            "calibration": limited(suite.calibration) if suite.calibration else None,
            "outliers": all_limited(suite.outliers),
            "near": all_limited(suite.near),
            "far": all_limited(suite.far),
        }
    )


def find_methods(names: Sequence[str], suite: Suite) -> tuple[list[str], tuple[NotRun, ...]]:
    """
    Return the full names of methods, and those that the suite has no outliers for.

    :raises UserError: if a name is unknown, or no method can be run
    """
    found = list(dict.fromkeys(registry.find("methods", name).name for name in names))
    if suite.outliers:
        return found, ()
    left_out = [name for name in found if needs_outliers(name)]
    reason = "the suite has no outliers to train with"
    if left_out == found:
        raise UserError(f"None of the methods {', '.join(found)} can be run: {reason}.")
    kept = [name for name in found if name not in left_out]
    return kept, tuple(NotRun(method=name, reason=reason) for name in left_out)


def needs_outliers(method: str) -> bool:
    """Return whether a method is trained with outliers."""
    return registry.load("methods", method).needs_outliers


def find_detectors(patterns: Sequence[str]) -> tuple[str, ...]:
    """
    Return the full names of detectors.

    :param patterns: names, wildcards, combinations such as ``"fisher(dpn-mi,knn)"``, or ``"all"``
    :raises UserError: if a name is unknown, or a pattern matches nothing
    """
    names: dict[str, None] = {}
    for pattern in patterns:
        combination = parse_combination(pattern)
        if combination is not None:
            names[combination.name] = None
        elif pattern == "all":
            names |= dict.fromkeys(registry.list_detectors())
        elif any(mark in pattern for mark in "*?["):
            matching = registry.list_detectors(pattern)
            if not matching:
                raise UserError(f"No detector matches {pattern!r}.")
            names |= dict.fromkeys(matching)
        else:
            names[registry.find("detectors", pattern).name] = None
    return tuple(names)


def find_again(names: Sequence[str]) -> tuple[str, ...]:
    """
    Return the full names of methods and detectors.

    :raises UserError: if a name is neither
    """
    found = []
    for name in names:
        combination = parse_combination(name)
        if combination is not None:
            found.append(combination.name)
            continue
        kinds = [kind for kind in ("methods", "detectors") if registry.is_known(kind, name)]
        if not kinds:
            known = [*registry.list_methods(), *registry.list_detectors()]
            raise unknown_name("method or detector", name, known)
        found += [registry.find(kind, name).name for kind in kinds]
    return tuple(found)
