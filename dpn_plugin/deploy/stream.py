"""Scores of image files, batch by batch: a folder may hold more images than memory does."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch

from dpn_plugin.data import find_image_files, load_image_files
from dpn_plugin.deploy.bundle import BATCH, Bundle
from dpn_plugin.errors import UserError
from dpn_plugin.metrics import benjamini_hochberg


def list_files(paths: Sequence[str | Path]) -> list[str]:
    """
    Return all image files and archives.

    :param paths: image files, folders of them (hidden files are skipped), or ``.npz`` archives
    :raises UserError: if one is missing
    """
    found: list[str] = []
    for path in map(Path, paths):
        found += [str(path)] if path.suffix == ".npz" else find_image_files(path)
    return found


def score_files(
    bundle: Bundle, files: Sequence[str], batch_size: int = BATCH
) -> Iterator[tuple[int, pd.DataFrame]]:
    """
    Yield how many files are done, and a row for each image of the next batch.

    :param bundle: what scores them
    :param files: what :func:`list_files` returned; an archive may hold many images
    :param batch_size: images in memory at a time
    :raises UserError: if the bundle takes points, or a file is not a readable image
    """
    shape = bundle.input_shape
    if len(shape) != 3:
        raise UserError(f"The bundle in {bundle.folder} takes points and cannot score images.")
    done = 0
    for group in _groups(files, batch_size):
        samples, names = load_image_files(group, (shape[1], shape[2]), shape[0])
        table = bundle(samples.all_rows(), batch_size).to_frame()
        table.insert(0, "image", names)
        done += len(group)
        yield done, table


def decide_together(
    tables: Iterable[pd.DataFrame], detectors: Sequence[str], fdr: float
) -> Iterator[pd.DataFrame]:
    """
    Yield the same tables with ``rejected`` decided by Benjamini and Hochberg over all of them.

    The tables wait in a temporary folder until the last p-value is known.

    :param tables: of :func:`score_files`
    :param detectors: names of the detectors; each is decided by itself
    :param fdr: the share of in-domain images among the rejected ones
    """
    p_values: dict[str, list[float]] = {name: [] for name in detectors}
    with tempfile.TemporaryDirectory(prefix="dpn-score-") as folder:
        waiting = []
        for index, table in enumerate(tables):
            for name, values in p_values.items():
                values += table[f"{name}.p_value"].tolist()
            waiting.append(Path(folder) / f"{index}.json")
            waiting[-1].write_text(json.dumps(table.to_dict("list")), "utf-8")
        rejected = {
            name: benjamini_hochberg(torch.tensor(values, dtype=torch.float64), fdr).tolist()
            for name, values in p_values.items()
        }
        start = 0
        for path in waiting:
            table = pd.DataFrame(json.loads(path.read_text("utf-8")))
            for name in detectors:
                table[f"{name}.rejected"] = rejected[name][start : start + len(table)]
            start += len(table)
            yield table


def _groups(files: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield the files of each step; an archive is a step of its own."""
    group: list[str] = []
    for file in files:
        if file.endswith(".npz"):
            if group:
                yield group
            yield [file]
            group = []
            continue
        group.append(file)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
