"""What a stored output depends on, and the key that follows from it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Ingredients"]


@dataclass(frozen=True)
class Ingredients:
    """
    Everything that decides what a model says about a data set. Where one of them differs, so does
    the key, and an output of other weights or another transform is never read by mistake.

    :param weights: hash of the model's weights
    :param data: fingerprint of the data set
    :param transform: description of what happens to an image before the model sees it
    :param split: name of the set, e.g. ``"test"``
    :param extra: what else matters, e.g. ``{"passes": 10}``; like the others, it must be JSON
    """

    weights: str
    data: str
    transform: Any
    split: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """
        :return: 64 hexadecimal digits, the same on every machine; safe as the name of a folder
        :raises TypeError: if an ingredient cannot be written as JSON
        """
        return hashlib.sha256(self._canonical().encode()).hexdigest()

    def _canonical(self) -> str:
        try:
            return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Ingredients of a stored output must be plain JSON values: {error}."
            ) from error
