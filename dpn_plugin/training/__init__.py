"""Train any timm backbone with any method by name."""

from dpn_plugin.training.config import TrainConfig
from dpn_plugin.training.predictor import Predictor
from dpn_plugin.training.recipe import Recipe, list_recipes
from dpn_plugin.training.run import Run, open_run
from dpn_plugin.training.stopping import Stopped
from dpn_plugin.training.train import train

__all__ = [
    "Predictor",
    "Recipe",
    "Run",
    "Stopped",
    "TrainConfig",
    "list_recipes",
    "open_run",
    "train",
]
