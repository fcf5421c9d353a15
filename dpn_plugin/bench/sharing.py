"""Networks that several runs of a plan have in common: one run trains, the others copy."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.runs import method_of, network_identity


def find_shared(runs: Sequence[PlannedRun]) -> tuple[PlannedRun, ...]:
    """
    Return the runs, each with the networks that an earlier one trains.

    :param runs: in the order in which they are carried out
    """
    first: dict[str, int] = {}
    found = []
    for index, run in enumerate(runs):
        shared = {}
        for network in method_of(run.config).trained_networks:
            owner = first.setdefault(network_identity(run.config, network), index)
            if owner != index:
                shared[network.name] = owner
        found.append(replace(run, shared=shared))
    return tuple(found)


def sibling_folders(run: PlannedRun, runs: Sequence[PlannedRun], out: Path) -> list[Path]:
    """
    Return the folders of runs whose networks a run may copy.

    They are runs of the plan, then runs of the same backbone and seed that the folder holds from
    earlier benchmarks. A run that is to be trained again copies only from those that are, too.

    :param run: the run that is trained
    :param runs: all runs of the plan
    :param out: the folder of the benchmark
    """
    owners = [runs[index] for index in sorted(set(run.shared.values()))]
    if run.again:
        return [owner.folder for owner in owners if owner.again]
    stored = sorted(out.glob(f"runs/{run.config.backbone}/*/{run.folder.name}"))
    return list(dict.fromkeys([*(owner.folder for owner in owners), *stored]))


def next_ready(waiting: Sequence[int], running: Iterable[int], runs: Sequence[PlannedRun]) -> int:
    """
    Return the position in ``waiting`` of the first run that can start, or -1 if all must wait.

    A run waits for those whose networks it copies.

    :param waiting: indices of runs that have not started
    :param running: indices of runs that are under way
    :param runs: all runs of the plan
    """
    unfinished = {*waiting, *running}
    for position, index in enumerate(waiting):
        if not unfinished.intersection(runs[index].shared.values()):
            return position
    return -1


def count_trainings(runs: Iterable[PlannedRun]) -> tuple[int, int]:
    """Return how many networks of all runs need a training, and how many trainings there are."""
    networks = shared = 0
    for run in runs:
        networks += sum(each.is_trained for each in method_of(run.config).trained_networks)
        shared += len(run.shared)
    return networks, networks - shared
