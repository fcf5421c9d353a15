"""Scores of a trained run for single images, from what the run keeps about its held-out data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from pytorch_ood.api import LogitsDetector
from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.data import Batches, Samples
from dpn_plugin.data.pictures import load_pictures
from dpn_plugin.errors import UserError
from dpn_plugin.files import file_hash
from dpn_plugin.plugins import registry
from dpn_plugin.training.checkpoint import read_tensors, write_weights
from dpn_plugin.training.material import Material
from dpn_plugin.training.predictor import Predictor
from dpn_plugin.training.run import Run

__all__ = ["HELD_OUT", "score_table", "write_held_out"]

HELD_OUT = "held_out.safetensors"
MEASURES = (
    "max_p",
    "entropy",
    "mutual_information",
    "log_precision",
    "differential_entropy",
)
SOURCES = ("p_correct", "p_misclassified", "p_ood")
_BATCH = 256


def write_held_out(run: Run, material: Material, device: torch.device) -> str:
    """
    Keep what the run says about its held-out samples: detectors can be fitted to it without the
    data set.

    :param run: all of its networks are trained
    :param material: its data
    :param device: where to compute
    :return: the SHA-256 of the file
    """
    predictor = Predictor(run).to(device)
    parts = [part for part in (material.held_out, material.held_out_outliers) if part is not None]
    logits = torch.cat([_logits(predictor, run, part, device) for part in parts])
    labels = torch.cat([part.labels for part in parts])
    return write_weights(run.folder / HELD_OUT, {"logits": logits, "labels": labels})


def score_table(
    run: Run, detector: str, paths: Sequence[Path], device: torch.device
) -> pd.DataFrame:
    """
    :param run: a finished run
    :param detector: its name
    :param paths: image files, folders of them, or ``.npz`` archives
    :param device: where to compute
    :return: a row for each image: ``image``, ``prediction``, the five measures, ``score``, and the
        probabilities ``p_correct``, ``p_misclassified`` and ``p_ood`` where the detector gives them
    :raises UserError: if the detector needs more than logits, or more than the run keeps
    """
    scorer = _scorer(run, detector)
    samples, names = _pictures(run, paths)
    logits = _logits(Predictor(run).to(device), run, samples, device)
    classes = run.record["classes"]
    table: dict[str, list] = {"image": names}
    table["prediction"] = [classes[index] for index in logits.argmax(dim=1).tolist()]
    measures = functional.dirichlet_measures(logits)
    table |= {name: getattr(measures, name).tolist() for name in MEASURES}
    table["score"] = scorer.predict_logits(logits).tolist()
    if hasattr(scorer, "predict_source") and run.method.needs_outliers:
        columns = scorer.predict_source(logits).T.tolist()
        table |= dict(zip(SOURCES, columns, strict=True))
    return pd.DataFrame(table)


def _pictures(run: Run, paths: Sequence[Path]) -> tuple[Samples, list[str]]:
    shape = run.record["input_shape"]
    if len(shape) != 3:
        raise UserError(f"The run in {run.folder} was trained on points and cannot score images.")
    channels, height, width = shape
    return load_pictures(paths, (height, width), channels)


@torch.no_grad()
def _logits(predictor: Predictor, run: Run, samples: Samples, device: torch.device) -> Tensor:
    batches = Batches(samples, _BATCH, shuffle=False).epoch(0)
    return torch.cat([predictor(run.transform(x.to(device))).float().cpu() for x, _ in batches])


def _scorer(run: Run, name: str) -> Any:
    factory = registry.load("detectors", name)
    if not (isinstance(factory, type) and issubclass(factory, LogitsDetector)):
        raise UserError(
            f"Detector {name!r} needs more of the network than its logits, which is all that a run "
            "keeps for single images; dpn bench evaluates it."
        )
    scorer = registry.create_detector(name)
    if scorer.requires_fit:
        held_out = _held_out(run)
        try:
            scorer.fit_logits(held_out["logits"], held_out["labels"])
        except ValueError as error:
            raise UserError(f"{name!r} cannot be fitted to the held-out data: {error}") from error
    return scorer


def _held_out(run: Run) -> dict[str, Tensor]:
    path, known = run.folder / HELD_OUT, run.record.get("files", {}).get(HELD_OUT)
    if not path.is_file() or known not in (None, file_hash(path)):
        raise UserError(
            f"{path}, to which detectors are fitted, is missing or damaged; the same dpn train or "
            "dpn bench makes it again."
        )
    held_out = read_tensors(path)
    if held_out.keys() != {"logits", "labels"}:
        raise UserError(f"{path} must hold logits and labels, not {sorted(held_out)}.")
    return held_out
