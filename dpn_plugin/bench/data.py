"""The data of a suite, loaded once for all runs."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.shifted import load_shifted_sets
from dpn_plugin.bench.suite import Suite
from dpn_plugin.data import (
    DatasetCache,
    Samples,
    SharedSets,
    check_calibration,
    check_in_domain_test,
    check_no_overlap,
    drop_shared,
    fingerprint,
)
from dpn_plugin.errors import MissingData, UserError
from dpn_plugin.evaluation import plane_samples
from dpn_plugin.runs import TrainedRun, open_run
from dpn_plugin.training import load_calibration, load_in_domain, split_in_domain


@dataclass(frozen=True, eq=False)
class SuiteData:
    """
    The data of a suite.

    :param datasets: gives the training data of every run
    :param in_domain: in-domain samples for training and selection
    :param outliers: OOD samples for training and selection, by name
    :param in_domain_test: in-domain test samples
    :param groups: OOD test samples by group (``near``, ``far``) and name
    :param plane: a grid and the training points, if samples are points in the plane
    :param calibration: in-domain samples from a source of their own, to calibrate thresholds with
    :param skipped: test sets that are left out because they are missing: name and reason
    :param dropped: how many samples test sets have lost because they are also elsewhere, by
        ``in_domain_test`` or the name of the set
    :param shift: test samples of in-domain classes under changed conditions, by name
    """

    datasets: DatasetCache
    in_domain: Samples
    outliers: dict[str, Samples]
    in_domain_test: Samples
    groups: dict[str, dict[str, Samples]]
    plane: dict[str, Samples]
    calibration: Samples | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    shift: dict[str, Samples] = field(default_factory=dict)

    @cached_property
    def sets(self) -> dict[str, Samples]:
        """All sets that runs are evaluated on: ``in_domain_test`` and ``group.name``."""
        sets = {
            f"{group}.{name}": samples
            for group, named in {**self.groups, "shift": self.shift}.items()
            for name, samples in named.items()
        }
        return {"in_domain_test": self.in_domain_test, **sets, **self.plane}

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """The hash of every set."""
        return {name: fingerprint(samples) for name, samples in self.sets.items()}


def load_suite_data(
    plan: Plan, skip_missing: bool = False, shared: SharedSets | None = None
) -> SuiteData:
    """
    Load the data of a plan's suite.

    :param plan: whose data is loaded
    :param skip_missing: leave out test sets that are missing
    :param shared: sets in mapped files that another process of this machine has loaded
    :raises UserError: if sets are missing or empty, all of them in one message, or if sets share
        images
    """
    datasets = DatasetCache(plan.data_root, plan.base, plan.storage, shared)
    skipped = find_suite_data(plan, skip_missing, datasets)
    suite = plan.without_sets(skipped).suite
    train, test = _load_in_domain(plan, datasets)
    groups = {
        group: {name: datasets.load_like(train, spec) for name, spec in sets.items()}
        for group, sets in suite.groups.items()
    }
    outliers = {name: datasets.load_like(train, spec) for name, spec in suite.outliers.items()}
    datasets.forget_found()
    plane = plane_samples(train, [*outliers.values()])
    calibration = None
    if suite.calibration is not None:
        calibration = load_calibration(suite.calibration, train, datasets)
    data = SuiteData(datasets, train, outliers, test, groups, plane, calibration, skipped)
    if suite.overlap == "drop":
        data = _drop_shared(data)
    shifted = load_shifted_sets(suite, datasets, train, outliers)
    data = replace(data, shift=shifted.samples, dropped={**data.dropped, **shifted.dropped})
    _check_overlap(suite, data)
    return data


def find_suite_data(
    plan: Plan, skip_missing: bool = False, datasets: DatasetCache | None = None
) -> dict[str, str]:
    """
    Check that all data of a plan's suite is there, before any of it is decoded.

    :param plan: whose data is looked for
    :param skip_missing: shifted and OOD test sets may be missing, as long as one OOD set is there
    :param datasets: keeps what is found, for loading
    :return: the test sets that are missing and may be: name and reason
    :raises UserError: with all sets that cannot be loaded
    """
    datasets = datasets or DatasetCache(plan.data_root, plan.base)
    problems = _find_problems(plan, datasets)
    ood = {f"{group}.{name}": name for group, sets in plan.suite.groups.items() for name in sets}
    tests = {**ood, **{f"shift.{name}": name for name in plan.suite.shift}}
    missing = {key for key, each in problems.items() if isinstance(each, MissingData)}
    only_tests = problems.keys() == missing & tests.keys() and not ood.keys() <= missing
    if problems and not (only_tests and skip_missing):
        raise _cannot_load(problems, _SKIP_HINT if only_tests else "")
    return {tests[key]: str(reason) for key, reason in problems.items()}


_SKIP_HINT = "With --skip-missing, the benchmark goes on without missing test sets."


def _find_problems(plan: Plan, datasets: DatasetCache) -> dict[str, UserError]:
    """Return the sets that cannot be loaded by key, e.g. ``far.mnist``, and why."""
    config, problems = plan.runs[0].config, {}
    size = config.recipe.image_size
    image_size = None if size is None else (size, size)
    # --only-eval: the training data is that of the run
    for key, spec in {**plan.suite.sources, "in_domain": config.in_domain}.items():
        own = ("in_domain", "in_domain_test", "calibration")
        in_domain = key in own or key.startswith("shift.")
        try:
            datasets.find(
                spec, image_size=image_size, channels=config.channels, in_domain=in_domain
            )
        except UserError as error:
            problems[key] = error
    return problems


def _cannot_load(problems: dict[str, UserError], hint: str = "") -> UserError:
    """Return one error for all problems, one line each if there are several."""
    lines = [f"{key}: {error}" for key, error in problems.items()]
    if len(lines) == 1:
        return UserError(" ".join(filter(None, [lines[0], hint])))
    title = f"{len(lines)} data sets cannot be loaded:"
    return UserError("\n".join(filter(None, [title, *(f"- {line}" for line in lines), hint])))


def _load_in_domain(plan: Plan, datasets: DatasetCache) -> tuple[Samples, Samples]:
    """Return the in-domain samples for training and for tests."""
    # runs differ in method, seed and backbone, which do not change the data
    train, test = load_in_domain(plan.runs[0].config, datasets)
    if plan.runs[0].trained is not None:
        _check_trained_on(train, open_run(plan.runs[0].trained), plan)
    if plan.suite.in_domain_test is not None:
        test = datasets.load_like(train, plan.suite.in_domain_test, in_domain=True)
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
    return train, test


def _drop_shared(data: SuiteData) -> SuiteData:
    """Return the data without the test samples that are also elsewhere."""
    tests = {name: each for sets in data.groups.values() for name, each in sets.items()}
    left = drop_shared(data.in_domain, data.in_domain_test, data.outliers, tests)
    groups = {group: {name: left.ood[name] for name in sets} for group, sets in data.groups.items()}
    return replace(data, in_domain_test=left.in_domain_test, groups=groups, dropped=left.dropped)


def _check_overlap(suite: Suite, data: SuiteData) -> None:
    train, test = data.in_domain, data.in_domain_test
    test_spec = suite.in_domain_test or suite.in_domain
    in_domain = [("in_domain", suite.in_domain, train), ("in_domain_test", test_spec, test)]
    known = list(in_domain)
    if suite.calibration is not None and data.calibration is not None:
        known.append(("calibration", suite.calibration, data.calibration))
        check_calibration(known[-1], in_domain)
    known += [(f"shift.{name}", suite.shift[name], each) for name, each in data.shift.items()]
    check_no_overlap(
        [(name, suite.outliers[name], samples) for name, samples in data.outliers.items()],
        [
            (name, suite.groups[group][name], samples)
            for group, sets in data.groups.items()
            for name, samples in sets.items()
        ],
        known,
    )
    check_in_domain_test(suite.in_domain, suite.in_domain_test, (train, test))


def _check_trained_on(samples: Samples, run: TrainedRun, plan: Plan) -> None:
    """Check that a run was trained on these samples, whatever it calls their source."""
    config = run.config
    train = split_in_domain(samples, config).train
    if fingerprint(train) != run.record.data["train"]:
        raise UserError(
            f"The run in {run.folder} was trained on {config.in_domain.name}, or another part of "
            f"it; the suite {plan.name!r} is about {plan.suite.in_domain.name}."
        )
