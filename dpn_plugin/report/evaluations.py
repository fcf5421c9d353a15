"""The stored outputs behind the figures, for pictures."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report.load import Subject

__all__ = ["Evaluation", "evaluations"]

#: pictures of a million points look like those of this many
MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class Evaluation:
    """
    What one trained run said about the test sets.

    :param folder: of the run
    :param method: its method
    :param seed: its seed
    :param store: where its outputs are
    :param keys: the entries of ``in_domain_test`` and of the sets of ``near`` and ``far``
    """

    folder: Path
    method: str
    seed: int
    store: OutputStore
    keys: dict[str, Any]

    @cached_property
    def test(self) -> dict[str, Tensor]:
        """Outputs for in-domain test samples: ``logits``, ``labels``, ..."""
        return self._arrays(self.keys["in_domain_test"])

    @cached_property
    def groups(self) -> dict[str, dict[str, Tensor]]:
        """Outputs for OOD samples, the sets of ``near`` and of ``far`` pooled; none is empty."""
        sets = {
            group: [self._arrays(key) for key in self.keys.get(group, {}).values()]
            for group in ("near", "far")
        }
        return {group: _pooled(found) for group, found in sets.items() if found}

    @cached_property
    def ood(self) -> dict[str, Tensor]:
        """Outputs for the samples of all OOD sets."""
        if not self.groups:
            raise UserError(f"{self.folder} has no outputs of OOD sets.")
        return _pooled([*self.groups.values()])

    @property
    def is_dirichlet(self) -> bool:
        """
        Whether the logits describe a Dirichlet distribution that was trained to tell OOD samples:
        not where predictions are averaged, nor where a second network gives the score.
        """
        return "mutual_information" not in self.test and "ood_logits" not in self.test

    @cached_property
    def correct(self) -> Tensor:
        """Whether each in-domain test sample was classified correctly."""
        return self.test["logits"].argmax(dim=1) == self.test["labels"]

    def _arrays(self, key: str) -> dict[str, Tensor]:
        stored = self.store.open(key)
        if stored is None:
            raise UserError(f"The outputs of {self.folder} are missing or damaged; bench again.")
        _check_arrays(stored.arrays, self.folder)
        rows = _chosen(len(stored.arrays["logits"]), key)
        wanted = ("logits", "labels", "mutual_information", "ood_logits")
        return {
            name: torch.from_numpy(np.array(stored.arrays[name][rows]))
            for name in wanted
            if name in stored.arrays
        }


def evaluations(folders: tuple[Path, ...], subject: Subject) -> Iterator[Evaluation]:
    """
    :param folders: of benchmarks of the subject's suite
    :return: the run with the lowest seed of every method, in the order of the folders
    """
    found: dict[str, Evaluation] = {}
    for folder in folders:
        for path in sorted(folder.glob("runs/**/evaluation.json")):
            evaluation = _read(path, folder, subject)
            if evaluation is None:
                continue
            known = found.get(evaluation.method)
            if known is None or evaluation.seed < known.seed:
                found[evaluation.method] = evaluation
    return iter(found.values())


class _Keys(BaseModel):
    in_domain_test: str
    near: dict[str, str] = {}
    far: dict[str, str] = {}


class _Written(BaseModel):
    """What is used of ``evaluation.json``."""

    backbone: str
    method: str
    seed: int
    outputs: _Keys


def _read(path: Path, folder: Path, subject: Subject) -> Evaluation | None:
    try:
        known = _Written.model_validate_json(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: it is damaged.") from error
    if known.backbone != subject.backbone:
        return None
    store = OutputStore(folder / "store")
    return Evaluation(path.parent, known.method, known.seed, store, known.outputs.model_dump())


def _check_arrays(arrays: Mapping[str, np.ndarray], folder: Path) -> None:
    """What a folder of somebody else may hold is not what figures can be drawn of."""
    logits, labels = arrays.get("logits"), arrays.get("labels")
    if (
        logits is None
        or labels is None
        or logits.dtype.kind != "f"
        or labels.dtype.kind != "i"
        or logits.ndim != 2
        or labels.shape != logits.shape[:1]
        or not len(logits)
    ):
        raise UserError(f"The outputs of {folder} are not logits with a label each; bench again.")


def _pooled(sets: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([arrays[name] for arrays in sets]) for name in sets[0]}


def _chosen(size: int, key: str) -> Any:
    if size <= MOST_SAMPLES:
        return slice(None)
    # the same samples every time, others for other data
    generator = np.random.default_rng(zlib.crc32(key.encode()))
    return np.sort(generator.choice(size, MOST_SAMPLES, replace=False))
