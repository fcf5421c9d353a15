"""
Watching a stream: a test martingale raises an alarm when images no longer look like those that a
bundle was calibrated on.

The p-values of a bundle share one calibration set: given that set, they are not exactly uniform,
and a martingale that bets on them forever would find out. Here every score is compared with the
calibration scores *and* all earlier ones of the stream, and ties are broken at random. If stream
and calibration samples are exchangeable, these p-values are independent and uniform (Vovk et al.,
*Algorithmic Learning in a Random World*), and by Ville's inequality the martingale ever reaches
:math:`1 / \\delta` with probability at most :math:`\\delta`.

Both, p-value and simple jumper martingale, are MAPIE's. It bets on small and on large p-values: an
alarm also tells that images are more typical than they should be, such as one image repeated.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from dpn_plugin._files import replacing
from dpn_plugin.deploy.bundle import Bundle
from dpn_plugin.deploy.images import Images
from dpn_plugin.errors import UserError, unknown_name

#: the evidence after an alarm may exceed the range of numbers
_MOST = 1e300


@dataclass(frozen=True)
class Evidence:
    """
    The state of a monitor.

    :param images: how many it has seen
    :param value: the martingale; 1 at the start, large if the stream has changed
    :param alarm: the number of the image, from 0, at which the alarm was raised, or ``None``
    """

    images: int
    value: float
    alarm: int | None


class StreamMonitor:
    """
    Watches the scores of one detector.

    :param calibration: scores of calibration samples, shape n
    :param false_alarm: the probability that it ever raises an alarm on a stream like these
    :param seed: of the random ranks among equal scores
    :raises UserError: if ``false_alarm`` is not between 0 and 1, or MAPIE is not installed
    """

    def __init__(self, calibration: Tensor, false_alarm: float = 0.01, seed: int = 0) -> None:
        if not 0 < false_alarm < 1:
            raise UserError(f"false_alarm must be between 0 and 1, not {false_alarm:g}.")
        self.false_alarm = false_alarm
        self.history: list[float] = []
        self.alarm: int | None = None
        self._test = _martingale(false_alarm, seed)
        self._scores = np.asarray(calibration, dtype=np.float64)
        self._known = len(self._scores)

    @property
    def evidence(self) -> Evidence:
        """What is known so far."""
        value = self.history[-1] if self.history else 1.0
        return Evidence(len(self.history), value, self.alarm)

    def update(self, scores: Iterable[float]) -> Evidence:
        """
        Take the scores of further images, in order, and return the evidence after them.

        :param scores: of the images
        """
        for score in map(float, scores):
            p_value = self._test.compute_p_value(score, self._scores[: self._known])
            self._append(score)
            value = self.evidence.value
            if value < _MOST:
                value = self._test.update_simple_jumper_martingale(p_value)
            self.history.append(min(value, _MOST))
            if self.alarm is None and value >= 1 / self.false_alarm:
                self.alarm = len(self.history) - 1
        return self.evidence

    def _append(self, score: float) -> None:
        if self._known == len(self._scores):
            self._scores = np.concatenate([self._scores, np.empty(max(1024, self._known))])
        self._scores[self._known] = score
        self._known += 1


class BundleMonitor(StreamMonitor):
    """
    Watches images with one detector of a bundle.

    :param bundle: what scores the images
    :param detector: its name; the first one of the bundle if not given
    :param false_alarm: the probability that it ever raises an alarm on in-domain images
    :param seed: of the random ranks among equal scores
    :raises UserError: if the bundle has no such detector
    """

    def __init__(
        self,
        bundle: Bundle,
        detector: str | None = None,
        false_alarm: float = 0.01,
        seed: int = 0,
    ) -> None:
        names = list(bundle.record.detectors)
        self.bundle, self.detector = bundle, detector or names[0]
        if self.detector not in names:
            raise unknown_name("detector of this bundle", self.detector, names)
        super().__init__(bundle.calibrations[self.detector].scores, false_alarm, seed)

    def __call__(self, images: Images) -> Evidence:
        """
        Look at further images, in order, and return the evidence after them.

        :param images: as a bundle takes them
        """
        for result in self.bundle.stream(images):
            self.update(result.detectors[self.detector].score)
        return self.evidence


def plot_evidence(monitor: StreamMonitor, path: str | Path) -> None:
    """
    Draw the evidence against the number of images.

    :param monitor: after some images
    :param path: the file to write: .png, .svg or .pdf
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lower()
    if ending not in (".png", ".svg", ".pdf"):
        raise UserError(f"A picture ends in .png, .svg or .pdf, not {Path(path).name!r}.")
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    values = np.clip(monitor.history, 1e-12, None)
    axes.plot(np.arange(1, len(values) + 1), np.log10(values), color="#2b6cb0")
    axes.axhline(-math.log10(monitor.false_alarm), color="#c53030", linestyle="--", label="alarm")
    if monitor.alarm is not None:
        axes.axvline(monitor.alarm + 1, color="#c53030", linewidth=0.8)
    axes.set(xlabel="images", ylabel="evidence (log10)")
    axes.legend(frameon=False)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=ending[1:], dpi=150)


def _martingale(false_alarm: float, seed: int) -> Any:
    try:
        from mapie.exchangeability_testing import OnlineMartingaleTest
    except ImportError:
        raise UserError(
            "Watching a stream needs MAPIE 1.4 or later, which is not installed: pip install "
            "'dpn-plugin[monitor]'."
        ) from None
    return OnlineMartingaleTest(test_level=false_alarm, warn=False, random_state=seed)
