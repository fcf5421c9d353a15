"""All pictures of a report, and why some could not be drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dpn_plugin.errors import UserError
from dpn_plugin.report.evaluations import Evaluation, evaluations
from dpn_plugin.report.figures.gap import gap_picture
from dpn_plugin.report.figures.histograms import histogram_picture
from dpn_plugin.report.figures.maps import map_picture
from dpn_plugin.report.figures.reliability import reliability_picture
from dpn_plugin.report.figures.roc import roc_picture
from dpn_plugin.report.figures.style import Picture
from dpn_plugin.report.figures.training import training_picture
from dpn_plugin.report.figures.typical import typical_picture
from dpn_plugin.report.load import Results, Subject
from dpn_plugin.report.names import slug

__all__ = ["Gallery", "galleries"]

Draw = Callable[[str, list[Evaluation]], Picture | None]

_PICTURES: dict[str, Draw] = {
    "gap": gap_picture,
    "maps": map_picture,
    "typical": typical_picture,
    "roc": roc_picture,
    "histograms": histogram_picture,
    "reliability": reliability_picture,
    "training": training_picture,
}


@dataclass(frozen=True)
class Gallery:
    """
    The pictures of one backbone on one suite.

    :param subject: which
    :param pictures: those that could be drawn
    :param missing: a sentence for each that could not
    """

    subject: Subject
    pictures: tuple[Picture, ...]
    missing: tuple[str, ...]


def galleries(results: Results) -> Iterator[Gallery]:
    """:return: one for every backbone on every suite"""
    for subject in results.subjects():
        folders = tuple(
            folder
            for folder, record in zip(results.folders, results.records, strict=True)
            if record.suite == subject.suite
        )
        methods = list(dict.fromkeys(results.of(subject)["method"]))
        yield _gallery(subject, folders, methods)


def _gallery(subject: Subject, folders: tuple[Path, ...], methods: list[str]) -> Gallery:
    # a picture that cannot be drawn must not take the tables with it
    pictures, missing = [], []
    try:
        found = [each for each in evaluations(folders, subject) if each.method in methods]
    except UserError as error:
        return Gallery(subject, (), (str(error),))
    if not found:
        return Gallery(subject, (), ("There are no stored outputs to draw.",))
    found.sort(key=lambda each: methods.index(each.method))
    for name, draw in _PICTURES.items():
        try:
            picture = draw(slug(subject.suite, subject.backbone, name), found)
        except ValueError as error:  # outputs of somebody else may hold what no measure takes
            missing.append(str(error))
        else:
            pictures += [picture] if picture else []
    return Gallery(subject, tuple(pictures), tuple(dict.fromkeys(missing)))
