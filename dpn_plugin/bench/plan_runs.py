"""The runs of a plan: backbones x methods x seeds of a suite, or one that is trained already."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from dpn_plugin.backbones import plan_input
from dpn_plugin.bench.given_weights import given_weights
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.record import NotRun
from dpn_plugin.bench.request import Request
from dpn_plugin.bench.search import MethodSearch, choose, plan_searches
from dpn_plugin.bench.selection import why_left_out
from dpn_plugin.bench.sharing import find_shared
from dpn_plugin.bench.suite import MOST_SEEDS, Suite
from dpn_plugin.bench.variants import Variant, find_variants, folder_name, label_of
from dpn_plugin.data import SourceSpec
from dpn_plugin.errors import UserError
from dpn_plugin.runs import TrainConfig, check_options, open_run

#: share of the in-domain data kept back for tests if a suite names no test data
TEST_SHARE = 0.2


def plan_runs(
    suite: Suite, request: Request, again: Sequence[str]
) -> tuple[tuple[PlannedRun, ...], tuple[MethodSearch, ...], tuple[NotRun, ...]]:
    """
    Return the runs of a suite, the searches that come before them, and what is left out.

    :param suite: with the choices of the request
    :param request: what was asked for
    :param again: labels of the methods whose runs are trained again
    :raises UserError: if a name is unknown, or the folder holds runs of another plan
    """
    if request.seeds is not None and request.seeds > MOST_SEEDS:
        raise UserError(f"seeds must be at most {MOST_SEEDS}, not {request.seeds}.")
    variants, not_run = find_variants(
        request.methods, suite.methods, lambda variant: why_left_out(variant, suite)
    )
    backbones = dict.fromkeys(request.backbones or (suite.train.backbone,))
    for backbone in backbones:
        plan_input(backbone)
    runs = [
        _plan_run(suite, request, backbone, variant, seed, again)
        for backbone in backbones
        for variant in variants
        for seed in range((request.seeds or suite.seeds) if variant.trains else 1)
    ]
    searches = plan_searches(suite.search, runs, request.out)
    runs, pending = choose(searches, runs)
    # those of other methods are known when their searches are finished
    waiting = {(each.config.backbone, each.method) for each in pending}
    refuse_changes(run for run in runs if (run.config.backbone, run.method) not in waiting)
    return find_shared(runs), searches, not_run


def refuse_changes(runs: Iterable[PlannedRun]) -> None:
    """
    Check that the folders of runs hold these runs or nothing.

    :raises UserError: naming the first that holds another one
    """
    for run in runs:
        if changes := run.find_changes():
            raise UserError(
                f"{run.folder} holds a run of another plan ({changes}). Use another --out, or "
                "remove that folder."
            )


def _plan_run(
    suite: Suite,
    request: Request,
    backbone: str,
    variant: Variant,
    seed: int,
    again: Sequence[str],
) -> PlannedRun:
    channels, size, _ = suite.input_size or (None, None, None)
    try:
        config = TrainConfig(
            backbone=backbone,
            method=variant.method,
            in_domain=suite.in_domain,
            hold_back=_hold_back(suite),
            calibration=suite.calibration,
            channels=channels,
            outliers=tuple(suite.outliers.values()) if variant.needs_outliers else (),
            recipe=suite.train.create_recipe(
                **{**variant.train, "epochs": request.epochs or variant.train.get("epochs")},
                freeze=request.freeze or None,
                image_size=size,
            ),
            stem=suite.train.stem,
            **given_weights(suite.train),
            init_from=variant.init_from,
            options=variant.options,
            seed=seed,
        )
        check_options(config)
    except UserError as error:
        raise UserError(f"Method {variant.label!r}: {error}") from error
    folder = _run_folder(request.out, config, variant.label)
    return PlannedRun(variant.label, config, folder, again=variant.label in again)


def plan_evaluation(suite: Suite, folder: Path, out: Path) -> PlannedRun:
    """
    Plan the evaluation of a trained run on the data of the suite.

    Its sources may be spelled differently in the suite, so they are not compared here; the
    benchmark compares the data itself.
    """
    config = open_run(folder).config
    limit = config.in_domain.limit if suite.in_domain_test else suite.in_domain.limit
    in_domain = suite.in_domain.model_copy(update={"limit": limit})
    outliers = tuple(_from_here(spec) for spec in config.outliers)
    data = {"in_domain": in_domain, "hold_back": _hold_back(suite), "outliers": outliers}
    if config.calibration is not None:
        data["calibration"] = _from_here(config.calibration)
    config = config.model_copy(update=data)
    label = label_of(config)
    return PlannedRun(label, config, _run_folder(out, config, label), trained=folder)


def _from_here(spec: SourceSpec) -> SourceSpec:
    """Return a source whose path starts in the current folder, as where the run was trained."""
    path = Path(spec.argument)
    if spec.scheme not in ("npz", "folder") or not path.exists():
        return spec
    return spec.model_copy(update={"source": f"{spec.scheme}:{path.resolve()}"})


def _hold_back(suite: Suite) -> float:
    return 0.0 if suite.in_domain_test else TEST_SHARE


def _run_folder(out: Path, config: TrainConfig, label: str) -> Path:
    return out / "runs" / config.backbone / folder_name(label) / f"seed-{config.seed}"
