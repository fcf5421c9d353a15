"""Scores of a trained run for single images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pytorch_ood.api import LogitsDetector

from dpn_plugin import functional
from dpn_plugin._distributed import Processes
from dpn_plugin.data import Samples, load_image_files
from dpn_plugin.deploy.result import MEASURES, SOURCES
from dpn_plugin.detectors import create_detector
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.runs import Predictor, TrainedRun, predict_logits, read_held_out


def score_images(
    run: TrainedRun,
    detector: str,
    paths: str | Path | Sequence[str | Path],
    device: str = "auto",
) -> pd.DataFrame:
    """
    Return a row for each image: ``image``, ``prediction``, the five measures, ``score``, and the
    probabilities ``p_correct``, ``p_misclassified`` and ``p_ood`` if the detector gives them.

    :param run: a finished run
    :param detector: its name
    :param paths: image files, folders of them (hidden files are skipped), or ``.npz`` archives;
        one or several
    :param device: ``"cpu"``, ``"cuda"``, ... or ``"auto"``
    :raises UserError: if the detector needs more than logits, or more than the run keeps
    """
    scorer = _fit_detector(run, detector)
    several = [paths] if isinstance(paths, str | Path) else paths
    samples, names = _load_images(run, [Path(path) for path in several])
    where = Processes.join(device).device
    logits = predict_logits(Predictor(run).to(where), run, samples, where)
    table: dict[str, list] = {"image": names}
    table["prediction"] = [run.record.classes[index] for index in logits.argmax(dim=1).tolist()]
    measures = functional.dirichlet_measures(logits)
    table |= {name: getattr(measures, name).tolist() for name in MEASURES}
    table["score"] = scorer.predict_logits(logits).tolist()
    if hasattr(scorer, "predict_source") and run.method.needs_outliers:
        columns = scorer.predict_source(logits).T.tolist()
        table |= dict(zip(SOURCES, columns, strict=True))
    return pd.DataFrame(table)


def _load_images(run: TrainedRun, paths: Sequence[Path]) -> tuple[Samples, list[str]]:
    shape = run.record.input_shape
    if len(shape) != 3:
        raise UserError(f"The run in {run.folder} was trained on points and cannot score images.")
    channels, height, width = shape
    return load_image_files(paths, (height, width), channels)


def _fit_detector(run: TrainedRun, name: str) -> Any:
    factory = registry.load("detectors", name)
    if not (isinstance(factory, type) and issubclass(factory, LogitsDetector)):
        raise UserError(
            f"Detector {name!r} needs more of the network than its logits, which is all that a run "
            "keeps for single images; a bundle scores with it, see dpn bundle --help."
        )
    detector = create_detector(name)
    if detector.requires_fit:
        held_out = read_held_out(run)
        try:
            detector.fit_logits(held_out["logits"], held_out["labels"])
        except ValueError as error:
            raise UserError(f"{name!r} cannot be fitted to the held-out data: {error}") from error
    return detector
