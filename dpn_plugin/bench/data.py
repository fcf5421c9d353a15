"""The test data of a suite, loaded once for all units."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpn_plugin.bench.plan import Plan
from dpn_plugin.data import Library, Samples, SourceSpec, check_no_overlap, fingerprint
from dpn_plugin.errors import UserError
from dpn_plugin.training.material import load_in_domain

__all__ = ["TestData", "load_test_data"]


@dataclass(frozen=True, eq=False)
class TestData:
    """
    :param in_domain: in-domain test samples
    :param groups: OOD test samples by group (``near``, ``far``) and name
    """

    in_domain: Samples
    groups: dict[str, dict[str, Samples]]

    @cached_property
    def sets(self) -> dict[str, Samples]:
        """All sets: ``in_domain_test`` and ``group.name``."""
        found = {"in_domain_test": self.in_domain}
        for group, sets in self.groups.items():
            found |= {f"{group}.{name}": samples for name, samples in sets.items()}
        return found

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The hash of every set."""
        return {name: fingerprint(samples) for name, samples in self.sets.items()}

    def described(self, plan: Plan) -> dict[str, Any]:
        """:return: sources and sizes, for ``bench.json``"""
        suite = plan.suite
        test = suite.in_domain_test or suite.in_domain
        return {
            "in_domain": {"source": suite.in_domain.name, "classes": list(self.in_domain.classes)},
            "in_domain_test": {"source": test.name, "samples": len(self.in_domain)},
            "outliers": {name: {"source": spec.name} for name, spec in suite.outliers.items()},
            "sets": {
                group: {
                    name: {"source": suite.groups[group][name].name, "samples": len(samples)}
                    for name, samples in sets.items()
                }
                for group, sets in self.groups.items()
            },
            "fingerprints": self.fingerprints,
        }


def load_test_data(plan: Plan, library: Library) -> TestData:
    """
    :param plan: what to load
    :param library: where the data is
    :raises UserError: if a set is missing or empty, or outliers and test sets share images
    """
    suite = plan.suite
    # units differ in method, seed and backbone, which do not change the data
    train, test = load_in_domain(plan.units[0].config, library)
    if suite.in_domain_test is not None:
        test = _like(train, suite.in_domain_test, library)
    if test is None:
        raise UserError(
            f"The run was trained on all of {train.name}, and the suite names no in_domain_test: "
            "there is nothing to test it on."
        )
    if test.classes != train.classes:
        raise UserError(
            f"in_domain_test has other classes than in_domain: {len(test.classes)} and "
            f"{len(train.classes)}, or in another order."
        )
    groups = {
        group: {name: library.load_like(train, spec) for name, spec in sets.items()}
        for group, sets in suite.groups.items()
    }
    _check_images(plan, library, train, groups)
    return TestData(test, groups)


def _like(train: Samples, spec: SourceSpec, library: Library) -> Samples:
    shape = train.inputs.shape
    if len(shape) != 4:
        return library.load(spec, in_domain=True)
    size = (shape[2], shape[3])
    return library.load(spec, image_size=size, channels=shape[1], in_domain=True)


def _check_images(
    plan: Plan, library: Library, train: Samples, groups: dict[str, dict[str, Samples]]
) -> None:
    suite = plan.suite
    outliers = [(n, spec, library.load_like(train, spec)) for n, spec in suite.outliers.items()]
    tests = [
        (name, suite.groups[group][name], samples)
        for group, sets in groups.items()
        for name, samples in sets.items()
    ]
    check_no_overlap(outliers, tests)
