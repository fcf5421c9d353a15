"""The evaluated runs of a benchmark and their stored outputs, from which figures are drawn."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dpn_plugin._records import read_record
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import EVALUATION_FILE, EvaluationRecord, read_scores
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report.results import Scope

#: a figure of a million samples looks like one of this many
_MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class Outputs:
    """
    The outputs of a run for one data set, or for several pooled ones.

    :param logits: shape (N, K); averaged logits for methods that average predictions
    :param labels: label < 0 is OOD
    :param mutual_information: for methods that average predictions
    :param ood_logits: shape (N, 2), for methods with a second network that detects OOD samples
    :param inputs: shape (N, 2), for samples that are points in the plane
    """

    logits: Tensor
    labels: Tensor
    mutual_information: Tensor | None = None
    ood_logits: Tensor | None = None
    inputs: Tensor | None = None

    @property
    def is_dirichlet(self) -> bool:
        """
        Whether the logits describe a Dirichlet distribution that was trained to detect OOD samples.

        They do not if predictions are averaged, or if a second network gives the score.
        """
        return self.mutual_information is None and self.ood_logits is None


#: the arrays of outputs: the kind of their numbers (float or integer) and their dimensions
_TYPES = {
    "logits": ("f", 2),
    "labels": ("i", 1),
    "mutual_information": ("f", 1),
    "ood_logits": ("f", 2),
    "inputs": ("f", 2),
}


@dataclass(frozen=True)
class LoadedRun:
    """
    A run with its outputs for all test sets.

    :param method: its method
    :param seed: its seed
    :param in_domain: for in-domain test samples
    :param correct: whether each of them was classified correctly
    :param groups: for OOD samples, the sets of ``near`` and of ``far`` pooled; none is empty
    :param ood: for the samples of all OOD sets
    """

    method: str
    seed: int
    in_domain: Outputs
    correct: Tensor
    groups: dict[str, Outputs]
    ood: Outputs

    def logits_by_kind(self) -> dict[str, Tensor]:
        """Return the logits of ``correct``, ``misclassified`` and ``ood`` samples."""
        logits = self.in_domain.logits
        return {
            "correct": logits[self.correct],
            "misclassified": logits[~self.correct],
            "ood": self.ood.logits,
        }


@dataclass(frozen=True)
class StoredRun:
    """
    An evaluated run.

    :param folder: the run's folder
    :param record: its ``evaluation.json``
    :param store: holds its outputs
    """

    folder: Path
    record: EvaluationRecord
    store: OutputStore

    def load(self) -> LoadedRun:
        """
        Read the outputs for all test sets.

        :raises UserError: if they are missing, damaged or not what an evaluation stores
        """
        keys = self.record.outputs
        in_domain = self.load_outputs(keys.in_domain_test)
        sets = {"near": keys.near, "far": keys.far}
        groups = {
            group: _pool([self.load_outputs(key) for key in own.values()])
            for group, own in sets.items()
            if own
        }
        if not groups:
            raise UserError(f"{self.folder} has no outputs of OOD sets.")
        return LoadedRun(
            self.record.method,
            self.record.seed,
            in_domain,
            in_domain.logits.argmax(dim=1) == in_domain.labels,
            groups,
            _pool([*groups.values()]),
        )

    def load_outputs(self, key: str) -> Outputs:
        """
        Read the outputs under one key of the store.

        :raises UserError: if they are missing, damaged or not what an evaluation stores
        """
        arrays = self._open(key)
        return _read_rows(arrays, _choose_rows(len(arrays["logits"]), key))

    def read_scores(self, detector: str) -> dict[str, Tensor]:
        """
        Read the scores of a detector by test set, ``in_domain_test`` and ``group.name``.

        :raises UserError: if they are not stored, or damaged
        """
        evaluated = self.record.detectors.get(detector)
        if evaluated is None or evaluated.scores is None:
            raise UserError(f"There are no scores of {detector} in {self.folder}.")
        return read_scores(self.store, evaluated.scores)

    def _open(self, key: str) -> Mapping[str, np.ndarray]:
        stored = self.store.open(key)
        if stored is None:
            raise UserError(f"The outputs of {self.folder} are missing or damaged; bench again.")
        _check_arrays(stored.arrays, self.folder)
        return stored.arrays


def find_runs(folders: Iterable[Path], scope: Scope, methods: list[str]) -> list[StoredRun]:
    """
    Return the run with the lowest seed of every method.

    :param folders: benchmarks of the scope's suite
    :param scope: the suite and the backbone
    :param methods: the wanted methods, in order
    :raises UserError: if the record of an evaluation is damaged
    """
    found: dict[str, StoredRun] = {}
    for run in find_all_runs(folders, scope, methods):
        found.setdefault(run.record.method, run)
    return sorted(found.values(), key=lambda run: methods.index(run.record.method))


def find_all_runs(folders: Iterable[Path], scope: Scope, methods: list[str]) -> list[StoredRun]:
    """
    Return every run of some methods once, the lowest seeds first.

    :param folders: benchmarks of the scope's suite
    :param scope: the suite and the backbone
    :param methods: the wanted methods
    :raises UserError: if the record of an evaluation is damaged
    """
    found: dict[tuple[int, str], StoredRun] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"runs/**/{EVALUATION_FILE}")):
            record = _read_evaluation(path)
            if record.backbone == scope.backbone and record.method in methods:
                run = StoredRun(path.parent, record, OutputStore(folder / "store"))
                found.setdefault((record.seed, record.method), run)
    return [found[key] for key in sorted(found)]


def load_dirichlet_runs(runs: Iterable[StoredRun]) -> list[LoadedRun]:
    """Load the runs whose outputs describe Dirichlet distributions."""
    loaded = (run.load() for run in runs)
    return [run for run in loaded if run.in_domain.is_dirichlet]


def _read_evaluation(path: Path) -> EvaluationRecord:
    # not read_evaluation: a reader must learn that figures are missing because a file is damaged
    try:
        return read_record(path, EvaluationRecord)
    except FileNotFoundError as error:
        raise UserError(f"{path} was removed while the report was written.") from error


def _check_arrays(arrays: Mapping[str, np.ndarray], folder: Path) -> None:
    """Check types and shapes, because the folder may come from a stranger."""
    used = {name: array for name, array in arrays.items() if name in _TYPES}
    types_match = all((array.dtype.kind, array.ndim) == _TYPES[n] for n, array in used.items())
    sizes = {array.shape[:1] for array in used.values()}
    if (
        not {"logits", "labels"} <= used.keys()
        or not types_match
        or len(sizes) > 1
        or (0,) in sizes
    ):
        raise UserError(f"The outputs of {folder} are not logits with a label each; bench again.")


def _read_rows(arrays: Mapping[str, np.ndarray], rows: slice | np.ndarray) -> Outputs:
    return Outputs(
        **{
            name: torch.from_numpy(np.array(arrays[name][rows]))
            for name in _TYPES
            if name in arrays
        }
    )


def _pool(sets: list[Outputs]) -> Outputs:
    columns = {name: [getattr(each, name) for each in sets] for name in _TYPES}
    return Outputs(**{n: torch.cat(c) for n, c in columns.items() if all(x is not None for x in c)})


def _choose_rows(size: int, key: str) -> slice | np.ndarray:
    if size <= _MOST_SAMPLES:
        return slice(None)
    # the same samples every time, others for other data
    generator = np.random.default_rng(zlib.crc32(key.encode()))
    return np.sort(generator.choice(size, _MOST_SAMPLES, replace=False))
