"""What a plan costs here: its runs, counted from the data and timed with a few batches."""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dpn_plugin._distributed import Processes
from dpn_plugin.bench.data import SuiteData
from dpn_plugin.bench.estimate.costs import (
    Cost,
    PlanCost,
    Speed,
    Work,
    detector_passes,
    run_cost,
    store_bytes,
    stored_seconds,
)
from dpn_plugin.bench.estimate.measuring import (
    Measured,
    create,
    find_readers,
    measure,
    training_data,
)
from dpn_plugin.bench.plan import Plan
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.data import Samples
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import PLANE_SETS
from dpn_plugin.runs import Method, Network, has_relu_evidence, is_frozen, method_of
from dpn_plugin.training import TrainingData


def estimate_plan(plan: Plan, data: SuiteData, *, timed: bool = True) -> PlanCost:
    """
    Return what a plan costs on this machine. What is there already costs nothing.

    :param plan: what is to be done
    :param data: of its suite
    :param timed: whether to time a few batches of every network; without, all times are 0
    """
    processes = Processes.join(plan.device)
    base = _resident()
    costs: list[Cost] = []
    shared = Cost()
    for runs in _by_network(plan.runs):
        active = [run for run in runs if run.find_missing(plan.detectors, plan.tune)]
        known = _measure(active, data, plan, processes, timed) if active else None
        for run in runs:
            missing = run.find_missing(plan.detectors, plan.tune)
            if known is None or not missing:
                costs.append(Cost())
                continue
            work = run_work(run, data, known, plan)
            costs.append(run_cost(work, known.speed, base))
        if known is not None and is_frozen(active[0].config):
            shared = _add(shared, _frozen_cost(active[0], data, known))
    order = [run for runs in _by_network(plan.runs) for run in runs]
    by_run = dict(zip(map(id, order), costs, strict=True))
    waits = {i: sorted(set(run.shared.values())) for i, run in enumerate(plan.runs)}
    images = sum(_bytes(each) for each in _samples(data))
    return PlanCost([by_run[id(run)] for run in plan.runs], waits, shared, images)


def run_work(run: PlannedRun, data: SuiteData, known: Measured, plan: Plan) -> Work:
    """
    Count what a run has to do.

    :param run: the run
    :param data: of the suite
    :param known: its network
    :param plan: with the detectors
    """
    method, own = method_of(run.config), training_data(run, data, known.width)
    trains = run.find_training_state() != "reuse"
    networks = [n for n in method.trained_networks if n.name not in run.shared] if trains else []
    sets = _collected(own, data, known, method)
    tests = sum(n for name, n in sets.items() if name not in ("train", *_HELD_OUT))
    plain = not (method.averages or method.has_ood_classifier)
    readers = known.readers
    fit_passes, score_passes = detector_passes(readers.images, readers.fitted) if plain else (0, 0)
    frozen = is_frozen(run.config)
    return replace(
        _training(run, networks, own),
        collected=0 if frozen else sum(sets.values()),
        networks=len(method.networks) * method.passes,
        fitted=len(own.train) if plain and readers.fitted else 0,
        scored=tests if plain and readers.images else 0,
        fit_passes=fit_passes,
        score_passes=score_passes,
        stored_seconds=stored_seconds(readers.stored if plain else ("dpn-mi",) * 3, tests),
        store=store_bytes(sets, _widths(method, own, known)),
        weight_files=len(method.trained_networks) if trains else 0,
        fit_memory=3 * 4 * known.width * sets.get("train", 0),
    )


_HELD_OUT = ("held_out", "held_out_outliers")


def _training(run: PlannedRun, networks: Sequence[Network], own: TrainingData) -> Work:
    """Return the work of training some networks of a run."""
    recipe, steps, images, held_out = run.config.recipe, [0, 0], [0, 0], 0
    size = min(recipe.batch_size, len(own.train))
    outliers = min(recipe.outlier_batch_size, len(own.outliers)) if own.outliers else 0
    trained = [each for each in networks if each.is_trained]
    for network in trained:
        kind = int(network.uses_outliers)
        steps[kind] += recipe.total_epochs * (len(own.train) // size)
        images[kind] = size + outliers * kind
        held_out += recipe.total_epochs * sum(map(len, own.for_network(network).held_out_parts))
    return Work(
        steps=(steps[0], steps[1]),
        step_images=(images[0], images[1]),
        # heads are saved every few seconds, which takes no time beside their training
        saves=0 if is_frozen(run.config) else recipe.total_epochs * len(trained),
        held_out=held_out,
    )


def _collected(
    own: TrainingData, data: SuiteData, known: Measured, method: Method
) -> dict[str, int]:
    """Return the sets whose outputs are stored and their numbers of samples."""
    sets = {name: len(each) for name, each in data.sets.items()}
    sets |= {
        name: len(each) for name, each in own.parts.items() if name in (*_HELD_OUT, "calibration")
    }
    if known.readers.needs_train and not (method.averages or method.has_ood_classifier):
        sets["train"] = len(own.train)
    return sets


def _widths(method: Method, own: TrainingData, known: Measured) -> list[int]:
    logits, labels = 4 * own.num_classes, 8
    points = [4 * own.train.inputs.shape[1]] if own.train.inputs.ndim == 2 else []
    if method.averages:
        return [logits, 4, labels, *points]
    widths = [logits, 4 * known.width, labels, *points]
    if has_relu_evidence(method.networks[0], own.num_classes):
        widths.append(logits)
    return widths + [8] * method.has_ood_classifier


def _by_network(runs: Iterable[PlannedRun]) -> list[list[PlannedRun]]:
    found: dict[object, list[PlannedRun]] = {}
    for run in runs:
        config = run.config
        key = config.backbone, config.stem, config.recipe.model_dump_json(), config.pretrained
        found.setdefault((*key, config.weights), []).append(run)
    return list(found.values())


def _measure(
    runs: Sequence[PlannedRun], data: SuiteData, plan: Plan, processes: Processes, timed: bool
) -> Measured | None:
    """Return what the network of some runs costs; ``None`` if it cannot be created."""
    try:
        if not timed:
            return _untimed(runs[0], data, plan)
        of_kinds: dict[bool, PlannedRun] = {}
        for run in runs:
            for network in method_of(run.config).trained_networks:
                of_kinds.setdefault(network.uses_outliers, run)
        return measure(of_kinds, data, plan.detectors, processes)
    except UserError:  # printed with what cannot be run
        return None


def _untimed(run: PlannedRun, data: SuiteData, plan: Plan) -> Measured:
    backbone = create(run, data)
    weights = sum(each.nbytes for each in backbone.model.state_dict().values())
    speed = Speed((0.0, 0.0), 0.0, 0.0, weights, 0)
    return Measured(speed, backbone.num_features, find_readers(backbone, plan.detectors))


def _frozen_cost(run: PlannedRun, data: SuiteData, known: Measured) -> Cost:
    """Return what the features of a frozen network cost, which all heads share."""
    sets = {str(index): len(each) for index, each in enumerate(_samples(data))}
    count = sum(sets.values()) + (run.config.recipe.views - 1) * len(data.in_domain)
    seconds = count * known.speed.forward
    return Cost(count, count, seconds, store_bytes(sets, [4 * known.width]))


def _add(a: Cost, b: Cost) -> Cost:
    return Cost(*(x + y for x, y in zip(vars(a).values(), vars(b).values(), strict=True)))


def _samples(data: SuiteData) -> list[Samples]:
    parts = [each for name, each in data.sets.items() if name not in PLANE_SETS]
    calibration = [] if data.calibration is None else [data.calibration]
    return [data.in_domain, *data.outliers.values(), *parts, *calibration]


def _bytes(samples: Samples) -> int:
    size = 4 if samples.inputs.ndim == 2 else 1
    return len(samples) * int(torch.tensor(samples.inputs.shape[1:]).prod()) * size


def _resident() -> int:
    """Return the memory of this process, which has the data."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def why_too_large(cost: PlanCost, out: Path, slots: int = 1) -> list[str]:
    """
    Return why a plan does not fit on this machine; empty if it does.

    :param cost: of the plan
    :param out: the folder of the benchmark
    :param slots: runs at a time
    """
    found = []
    folder = next(each for each in (out, *out.absolute().parents) if each.exists())
    free, needed = shutil.disk_usage(folder).free, cost.total.disk
    if needed > free:
        found.append(
            f"The plan writes about {needed / 1e9:.2f} GB, and {folder} has {free / 1e9:.2f} GB "
            "free: use another --out, or fewer runs, detectors of features or samples."
        )
    memory, available = cost.memory_with(slots), _available()
    if available and memory > available:
        what = f"{slots} runs at a time need" if slots > 1 else "A run needs"
        found.append(
            f"{what} about {memory / 1e9:.1f} GB of memory, and {available / 1e9:.1f} GB are "
            "available: use fewer --jobs, smaller batches or fewer samples."
        )
    return found


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return 0
    found = dict(line.split(":", 1) for line in lines)
    return int(found.get("MemAvailable", "0").split()[0]) * 1024
