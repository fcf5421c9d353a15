"""The course of training."""

import pandas as pd
from matplotlib.ticker import MaxNLocator

from dpn_plugin.errors import UserError
from dpn_plugin.report.evaluations import Evaluation
from dpn_plugin.report.figures.style import Picture, lines, panels, plain, styled

__all__ = ["training_picture"]

_CAPTION = (
    "Loss and accuracy on held-out data after every epoch, for the lowest seed and the first "
    "network of a method. Losses of different methods have different scales."
)
_COLUMNS = {"held_out_loss": "held-out loss", "held_out_accuracy": "held-out accuracy"}


def training_picture(key: str, evaluations: list[Evaluation]) -> Picture:
    """:return: a line per method"""
    with styled():
        figure, axes = panels(2, 2, 3.0, share=False)
        for evaluation, line in zip(evaluations, lines(), strict=False):
            history = _history(evaluation)
            for own, column in zip(axes, _COLUMNS, strict=True):
                mark = "o" if len(history) == 1 else ""
                own.plot(
                    history["epoch"], history[column], lw=1.4, marker=mark,
                    label=plain(evaluation.method), **line,
                )  # fmt: skip
        for own, label in zip(axes, _COLUMNS.values(), strict=True):
            own.set(xlabel="epoch", ylabel=label)
            own.xaxis.set_major_locator(MaxNLocator(integer=True))
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside right upper")
    return Picture(key, "Training", _CAPTION, figure)


def _history(evaluation: Evaluation) -> pd.DataFrame:
    path = evaluation.folder / "history.csv"
    try:
        rows = pd.read_csv(path)
        return rows[rows["network"].eq(rows["network"].iloc[0])][["epoch", *_COLUMNS]]
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise UserError(f"{path} is missing or damaged.") from error
