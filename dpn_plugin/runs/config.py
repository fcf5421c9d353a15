"""The configuration of a training run, and the recipes, which are read from recipes.toml."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from dpn_plugin.backbones import WeightsFile
from dpn_plugin.data import Augmentation, SourceSpec
from dpn_plugin.errors import UserError, unknown_name, validation_message

#: pixels along a side: larger than any network takes, and one such image still fits into memory
LARGEST_IMAGE = 8192

#: more than any network is trained for
MOST_EPOCHS = 100_000

#: the seeds of ensemble members are derived from it, and torch accepts 64 bits
LARGEST_SEED = 2**32 - 1


class Schedule(BaseModel):
    """Keywords of timm's ``create_scheduler_v2``, in epochs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    sched: Literal["cosine", "poly", "step", "tanh"] = "cosine"
    decay_epochs: int = Field(90, ge=1, le=MOST_EPOCHS)
    decay_rate: float = Field(0.1, gt=0)
    min_lr: float = Field(0.0, ge=0)
    warmup_epochs: int = Field(0, ge=0, le=MOST_EPOCHS)


class FineTune(BaseModel):
    """
    A short last phase at a low, constant rate.

    :param augmentation: of in-domain images; outliers keep ``outlier_augmentation`` of the recipe
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: int = Field(ge=0, le=MOST_EPOCHS)
    lr: float = Field(gt=0)
    augmentation: Augmentation = Augmentation()


class Head(BaseModel):
    """
    The head on frozen features: linear, or with one hidden layer.

    :param hidden: width of the hidden layer; linear without it
    :param drop_rate: dropout before the last layer
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: int | None = Field(None, ge=1, le=65536)
    drop_rate: float = Field(0.0, ge=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {} if value == "linear" else value


class Recipe(BaseModel):
    """
    Everything about training except the data, the network and the method.

    :param optimizer: a name of timm's ``create_optimizer_v2``
    :param outlier_batch_size: OOD samples beside each in-domain batch
    :param gamma: weight of the OOD samples in the loss
    :param augmentation: of in-domain images
    :param outlier_augmentation: of outliers, in both phases; ``None`` is that of in-domain images
    :param image_size: pixels along a side; images keep their own size without it
    :param hold_out: share of the training data (and of the outliers) kept for selection
    :param calibration: share of the training data that is only used to calibrate thresholds: it
        neither trains, nor selects, nor fits a detector
    :param clip_grad: largest norm of the gradient
    :param ema_decay: keep a moving average of the weights, and select and save that one
    :param amp: bfloat16 in the network; losses stay float32
    :param freeze: keep the given weights; only a head on their features is trained
    :param head: the head on frozen features, ``"linear"`` or ``{hidden = 256, drop_rate = 0.3}``
    :param views: so many augmented views of the training data are passed through a frozen network,
        and epochs take turns; the images themselves, if 1
    :param layer_decay: the factor of the learning rate from each layer to the one before, timm's
        ``layer_decay``; for fine-tuning given weights
    :param freeze_epochs: so many first epochs train the classifier alone
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    optimizer: str
    lr: float = Field(gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Schedule = Schedule()
    epochs: int = Field(ge=1, le=MOST_EPOCHS)
    batch_size: int = Field(ge=1)
    outlier_batch_size: int = Field(ge=1)
    gamma: float = Field(0.5, gt=0)
    augmentation: Augmentation = Augmentation()
    outlier_augmentation: Augmentation | None = None
    fine_tune: FineTune | None = None
    image_size: int | None = Field(None, ge=1, le=LARGEST_IMAGE)
    drop_rate: float | None = Field(None, ge=0, lt=1)
    hold_out: float = Field(0.1, gt=0, lt=1)
    calibration: float = Field(0.0, ge=0, lt=1)
    clip_grad: float | None = Field(None, gt=0)
    ema_decay: float | None = Field(None, gt=0, lt=1)
    amp: bool = False
    channels_last: bool = False
    compile: bool = False
    freeze: bool = False
    head: Head = Head()
    views: int = Field(1, ge=1, le=1000)
    layer_decay: float | None = Field(None, gt=0, le=1)
    freeze_epochs: int = Field(0, ge=0, le=MOST_EPOCHS)

    @property
    def total_epochs(self) -> int:
        """Epochs of both phases."""
        return self.epochs + (self.fine_tune.epochs if self.fine_tune else 0)

    @classmethod
    def named(cls, name: str, **changes: Any) -> "Recipe":
        """
        Return the recipe of this name, with changes.

        :param name: a recipe of :func:`list_recipes`
        :param changes: fields to change; ``None`` keeps the value of the recipe, and a table, e.g.
            ``augmentation={"flip": False}``, keeps the keys that it does not name
        :raises UserError: if there is no such recipe or field, or a value is out of range
        """
        recipes = _recipes()
        if name not in recipes:
            raise unknown_name("recipe", name, recipes)
        given = {key: value for key, value in changes.items() if value is not None}
        try:
            return cls.model_validate(_merge(recipes[name], given))
        except ValidationError as error:
            raise UserError(validation_message(error, cls, kind="training option")) from error


def list_recipes() -> list[str]:
    """Return the names of the recipes."""
    return sorted(_recipes())


def _merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return base | {
        key: _merge(base[key], value)
        if isinstance(value, dict) and isinstance(base.get(key), dict)
        else value
        for key, value in changes.items()
    }


@cache
def _recipes() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("dpn_plugin.runs").joinpath("recipes.toml").read_text("utf-8"))


class TrainConfig(BaseModel):
    """
    Everything that decides the weights.

    Two runs with equal configurations on one machine end with equal weights. Where they run
    (device, workers, folders) is not part of the configuration.

    :param backbone: a timm id
    :param method: name of a training method
    :param in_domain: training data; a part is held out for selection
    :param hold_back: share of the training data kept back for tests, for sources without a test
        split; the same samples whatever the seed
    :param calibration: data to calibrate thresholds with, instead of a share of the training data
    :param channels: 1 or 3; without it, images keep their own
    :param outliers: OOD training data, if the method needs any: one source or several
    :param recipe: how to train
    :param stem: ``"auto"``, ``"default"`` or ``"small"``
    :param pretrained: start from timm's published weights
    :param weights: start from the weights of a file
    :param network_size: pixels along a side of the input of a network that starts from given
        weights; its own if ``None``
    :param init_from: the method, e.g. ``"baseline"``, that trains the weights to start from
    :param options: options of the method, e.g. ``{"lambda_out": 0.0}`` or ``{"members": 5}``
    :param seed: of weights, order, augmentation and dropout
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backbone: str
    method: str
    in_domain: SourceSpec
    hold_back: float = Field(0.0, ge=0, lt=1)
    calibration: SourceSpec | None = None
    channels: int | None = None
    outliers: tuple[SourceSpec, ...] = ()
    recipe: Recipe
    stem: str = "auto"
    pretrained: bool = False
    weights: WeightsFile | None = None
    network_size: int | None = Field(None, ge=1, le=LARGEST_IMAGE)
    init_from: str | None = None
    options: dict[str, bool | int | float | str] = Field(default_factory=dict)
    seed: int = Field(0, ge=0, le=LARGEST_SEED)

    @property
    def has_given_weights(self) -> bool:
        """Whether the networks start from given weights, and so keep their own preprocessing."""
        return self.pretrained or self.weights is not None

    def identity(self) -> dict[str, Any]:
        """Return the configuration without where its weights file is: its hash counts."""
        return self.model_dump(mode="json", exclude={"weights": {"path"}})

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.pretrained and self.weights is not None:
            raise ValueError("Weights come from timm (pretrained) or from a file, not from both.")
        return self

    @model_validator(mode="after")
    def _one_calibration(self) -> Self:
        if self.calibration is not None and self.recipe.calibration:
            raise ValueError("calibration must be a share of the training data or a source")
        return self

    @field_validator("outliers", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if value is None:
            return ()
        return value if isinstance(value, list | tuple) else (value,)
