"""What a request names: methods, detectors, and the part of the data."""

from collections.abc import Sequence

from dpn_plugin.bench.suite import Suite
from dpn_plugin.bench.variants import MethodsTable, Variant, find_variant
from dpn_plugin.data import (
    SourceSpec,
    check_calibration,
    check_in_domain_test,
    check_no_overlap,
    check_shift,
)
from dpn_plugin.detectors import parse_combination
from dpn_plugin.errors import unknown_name
from dpn_plugin.plugins import registry
from dpn_plugin.runs import NEEDS_WEIGHTS


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
    shifts = [(f"shift.{name}", spec, None) for name, spec in suite.shift.items()]
    for each in shifts:
        check_shift(each, in_domain[0], suite.in_domain_test is not None)
    check_no_overlap(outliers, tests, [*in_domain, *shifts])
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
            "shift": all_limited(suite.shift),
        }
    )


def why_left_out(variant: Variant, suite: Suite) -> str | None:
    """Return why a suite cannot train a method, ``None`` if it can."""
    if variant.needs_outliers and not suite.outliers:
        return "the suite has no outliers to train with"
    if not variant.trains and not (suite.train.pretrained or suite.train.weights):
        return NEEDS_WEIGHTS
    recipe = suite.train.create_recipe(**variant.train)
    drop_rate = recipe.drop_rate
    if recipe.freeze:  # dropout is that of the head, which has none of its own
        drop_rate = recipe.head.drop_rate or recipe.drop_rate or 0.0
    if registry.load("methods", variant.method).passes > 1 and drop_rate == 0:
        return (
            f"passes with dropout need a network with dropout, and in the suite drop_rate is 0 "
            f"(recipe {suite.train.recipe!r}): set drop_rate in [train] of a copy of the suite"
        )
    return None


def find_again(names: Sequence[str], table: MethodsTable) -> tuple[str, ...]:
    """
    Return the labels of methods and full names of detectors.

    :param names: of methods, with or without options, and of detectors
    :param table: the methods that the suite defines
    :raises UserError: if a name is neither
    """
    found: list[str] = []
    for name in names:
        matching = _matching(name, table)
        if not matching:
            known = [*registry.list_methods(), *table.defined, *registry.list_detectors()]
            raise unknown_name("method or detector", name, known)
        found += matching
    return tuple(found)


def _matching(name: str, table: MethodsTable) -> list[str]:
    combination = parse_combination(name)
    if combination is not None:
        return [combination.name]
    base = name.partition(":")[0]
    found = []
    if registry.is_known("methods", base) or base in table.defined:
        found.append(find_variant(name, table).label)
    if registry.is_known("detectors", name):
        found.append(registry.find("detectors", name).name)
    return found
