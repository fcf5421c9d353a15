"""Scores of one detector that were computed together with those of others."""

from dataclasses import dataclass, field

from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.evaluation.record import DetectorEvaluation


@dataclass
class PreparedScores:
    """
    The scores of all sets, or why there are none.

    :param scores: by the name of the set
    :param error: what was raised when the detector was fitted or scored
    :param warnings: messages of the detector
    :param seconds: its time, with its share of what the detectors have in common
    :param peak_memory: of all detectors together
    """

    scores: dict[str, Tensor] = field(default_factory=dict)
    error: Exception | None = None
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    peak_memory: int | None = None

    @property
    def is_to_be_tried_alone(self) -> bool:
        """Whether there are no scores for a reason that may lie in the others, such as memory."""
        return self.error is not None and not isinstance(self.error, UserError)

    def of(self, set_name: str) -> Tensor:
        """Return the scores of a set, or raise what its detector raised."""
        if self.error is not None:
            raise self.error
        return self.scores[set_name]

    def add_to(self, found: DetectorEvaluation) -> None:
        """Add time, memory and warnings to those of the detector's evaluation."""
        found.seconds = round(found.seconds + self.seconds, 3)
        found.warnings = list(dict.fromkeys([*self.warnings, *found.warnings]))
        known = [each for each in (found.peak_memory, self.peak_memory) if each is not None]
        found.peak_memory = max(known, default=None)
