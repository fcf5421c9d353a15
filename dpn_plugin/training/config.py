"""The words of a training run: what identifies it, and what it may be continued with."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dpn_plugin.data import SourceSpec
from dpn_plugin.training.recipe import Recipe

__all__ = ["TrainConfig", "differences"]


#: seeds of the members of an ensemble follow from it, and torch takes 64 bits
MOST_SEED = 2**32 - 1


class TrainConfig(BaseModel):
    """
    Everything that decides the weights. Two runs with equal configurations on one machine end with
    equal weights; where they run (device, workers, folders) is not part of it.

    :param backbone: a timm id
    :param stem: ``"auto"``, ``"default"`` or ``"small"``
    :param method: name of a training method
    :param options: options of the method, e.g. ``{"lambda_out": 0.0}`` or ``{"members": 5}``
    :param in_domain: training data; a part is held out for selection
    :param hold_back: share of the training data kept back for tests, for sources without a test
        split; the same samples whatever the seed
    :param channels: 1 or 3; images keep their own without it
    :param outliers: OOD training data, if the method needs any: one source or several
    :param seed: of weights, order, augmentation and dropout
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backbone: str
    method: str
    in_domain: SourceSpec
    hold_back: float = Field(0.0, ge=0, lt=1)
    channels: int | None = None
    outliers: tuple[SourceSpec, ...] = ()
    recipe: Recipe
    stem: str = "auto"
    pretrained: bool = False
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, le=MOST_SEED)

    @field_validator("outliers", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if value is None:
            return ()
        return value if isinstance(value, list | tuple) else (value,)


def differences(ours: dict[str, Any], theirs: dict[str, Any], prefix: str = "") -> list[str]:
    """:return: every key that differs between two configurations, as ``key: theirs -> ours``"""
    found = []
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key), theirs.get(key)
        if isinstance(mine, dict) and isinstance(other, dict):
            found += differences(mine, other, f"{prefix}{key}.")
        elif mine != other:
            found.append(f"{prefix}{key}: {other!r} -> {mine!r}")
    return found
