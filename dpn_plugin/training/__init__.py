"""Train any timm backbone with any method by name."""

from dpn_plugin.training.data import (
    TrainingData,
    load_calibration,
    load_in_domain,
    load_training_data,
    split_in_domain,
)
from dpn_plugin.training.monitor import SilentMonitor, StepMetrics, TrainingMonitor
from dpn_plugin.training.timing import TrainingTimes, time_training
from dpn_plugin.training.train import train
from dpn_plugin.training.trainer import Trainer

__all__ = [
    "SilentMonitor",
    "StepMetrics",
    "Trainer",
    "TrainingData",
    "TrainingMonitor",
    "TrainingTimes",
    "load_calibration",
    "load_in_domain",
    "load_training_data",
    "split_in_domain",
    "time_training",
    "train",
]
