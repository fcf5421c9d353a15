"""What a benchmark will do: its runs, each a network trained with a method and a seed."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from dpn_plugin._files import check_folder
from dpn_plugin.bench.given_weights import choose_weights
from dpn_plugin.bench.plan_runs import plan_evaluation, plan_runs, refuse_changes
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.record import NotRun, read_bench_record
from dpn_plugin.bench.request import Request
from dpn_plugin.bench.search import SEARCH_FOLDER, MethodSearch, choose
from dpn_plugin.bench.selection import (
    check_sources,
    find_again,
    limit_samples,
)
from dpn_plugin.bench.sharing import find_shared
from dpn_plugin.bench.suite import Suite
from dpn_plugin.bench.suite_files import load_suite
from dpn_plugin.data import StorageOptions
from dpn_plugin.detectors import find_detectors
from dpn_plugin.errors import UserError

#: the folder of decoded images, in that of the benchmark
CACHE = "cache"
#: what a benchmark that was interrupted may have written: runs, trials of searches, or features
_OURS = (
    "runs/*/*/*/*.json",
    f"{SEARCH_FOLDER}/*/*.json",
    f"{SEARCH_FOLDER}/*/*/trial-*",
    "store/*/entry.json",
)


@dataclass(frozen=True)
class Plan:
    """
    Everything that a process must know to carry out any run of a benchmark.

    It can be sent to another process or machine.

    :param name: of the suite
    :param suite: its content, with the limits of the request
    :param base: where relative paths of sources start
    :param out: the folder of the benchmark
    :param runs: in the order in which they are carried out
    :param searches: of hyper-parameters; the runs have what finished ones chose
    :param detectors: names
    :param again: detectors that are evaluated even if their figures are known
    :param only_asked: write results of these runs and detectors only
    :param limit: the largest number of samples of every set
    :param not_run: methods that are left out, and why
    :param skip_missing: leave out OOD test sets that are missing
    :param storage: where decoded images are kept
    """

    name: str
    suite: Suite
    base: Path
    out: Path
    runs: tuple[PlannedRun, ...]
    detectors: tuple[str, ...]
    searches: tuple[MethodSearch, ...] = ()
    tune: bool = False
    again: tuple[str, ...] = ()
    only_asked: bool = False
    limit: int | None = None
    not_run: tuple[NotRun, ...] = ()
    skip_missing: bool = False
    data_root: Path = Path("data")
    device: str = "auto"
    storage: StorageOptions = field(default_factory=StorageOptions)

    def moved(self, out: Path, trained: Path | None = None) -> "Plan":
        """
        Return the plan with another folder for its results.

        :param out: the new folder
        :param trained: the new folder of runs that were trained elsewhere
        """
        runs = tuple(
            replace(
                run,
                folder=out / run.folder.relative_to(self.out),
                trained=run.trained and (trained or run.trained.resolve()),
            )
            for run in self.runs
        )
        storage = self.storage
        if storage.folder is not None:
            storage = replace(storage, folder=out / CACHE)
        return replace(self, out=out, runs=runs, storage=storage)

    def without_cache(self) -> "Plan":
        """Return the plan with decoded images in memory, for a process that may write no file."""
        return replace(self, storage=replace(self.storage, folder=None))

    def find_pending(self) -> list[MethodSearch]:
        """Look into the folder and return the searches that are not finished."""
        return choose(self.searches, ())[1]

    def with_choices(self) -> "Plan":
        """
        Return the plan with what its searches chose, after all of them are finished.

        :raises UserError: if the folder holds runs of another plan
        """
        runs, _ = choose(self.searches, self.runs)
        refuse_changes(runs)
        return replace(self, runs=find_shared(runs))

    def without_sets(self, names: Collection[str]) -> "Plan":
        """Return the plan without the named OOD test sets; all others are then required."""
        return replace(self, suite=self.suite.without_sets(names), skip_missing=False)


def make_plan(request: Request) -> Plan:
    """
    Return the plan for a request.

    :raises UserError: if a name is unknown, outliers and test sets share data, or the folder holds
        runs of another plan
    """
    name, suite, base = load_suite(request.suite)
    suite = choose_weights(suite, base, request.pretrained, request.weights)
    suite = limit_samples(suite, request.limit)
    if request.fit_samples is not None:
        suite = suite.model_copy(update={"fit_samples": request.fit_samples})
    _check_folder(request, name)
    again = find_again(request.again, suite.methods)
    if request.only_eval is None:
        check_sources(suite)
        runs, searches, not_run = plan_runs(suite, request, again)
    else:
        run = plan_evaluation(suite, request.only_eval, request.out)
        # the run's own outliers are what the test sets must not share data with
        own = {"outliers": {o.name: o for o in run.config.outliers}}
        suite = suite.model_copy(update={**own, "calibration": run.config.calibration})
        check_sources(suite)
        runs, searches, not_run = (run,), (), ()
    return Plan(
        name=name,
        suite=suite,
        base=base,
        out=request.out,
        runs=runs,
        detectors=find_detectors(request.detectors or suite.detectors),
        searches=searches,
        tune=request.tune,
        again=again,
        only_asked=request.only_asked,
        limit=request.limit,
        not_run=not_run,
        skip_missing=request.skip_missing,
        data_root=request.data_root,
        device=request.device,
        storage=StorageOptions(request.out / CACHE, request.cache_memory, request.loaders),
    )


def _check_folder(request: Request, name: str) -> None:
    """Refuse a folder with another benchmark, or with files of others except the suite file."""
    out = request.out
    try:
        suite = read_bench_record(out).suite
    except UserError:  # our record may be damaged or missing, or another program's
        if not any(any(out.glob(each)) for each in _OURS):
            check_folder(out, "benchmark", ignored=[Path(request.suite), out / CACHE])
    else:
        if suite != name:
            raise UserError(
                f"{out} holds a benchmark of the suite {suite!r}, not of {name!r}. Use another "
                "--out."
            )
