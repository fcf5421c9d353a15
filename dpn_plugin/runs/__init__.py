"""The run folder: configuration, recipe, method, record, checkpoints, and the trained networks."""

from dpn_plugin.runs.as_is import NEEDS_WEIGHTS, load_as_it_is
from dpn_plugin.runs.checkpoint import (
    Checkpoints,
    TrainerState,
    read_tensors,
    read_weights,
    write_weights,
)
from dpn_plugin.runs.config import LARGEST_IMAGE, Recipe, TrainConfig, list_recipes
from dpn_plugin.runs.diagnosis import diagnose
from dpn_plugin.runs.folder import (
    CACHE,
    describe_changes,
    load_or_create_record,
    remove_cache,
    remove_checkpoints,
    remove_leftovers,
    remove_run,
)
from dpn_plugin.runs.frozen import NO_VIEW, FrozenBase, View, head_of, is_frozen, load_base
from dpn_plugin.runs.held_out import (
    HELD_OUT_FILE,
    predict_logits,
    read_held_out,
    write_held_out,
)
from dpn_plugin.runs.history import plot_history, write_history
from dpn_plugin.runs.method_options import (
    check_options,
    method_of,
    training_code,
    why_not_mixed,
)
from dpn_plugin.runs.methods import Method, Network
from dpn_plugin.runs.networks import create_network, reads_features
from dpn_plugin.runs.predictor import Predictor
from dpn_plugin.runs.readout import has_relu_evidence, num_outputs
from dpn_plugin.runs.record import (
    CHECKPOINTS,
    PACKAGES,
    RUN_FILE,
    EpochRecord,
    NetworkRecord,
    RunRecord,
    read_run_record,
    write_run_record,
)
from dpn_plugin.runs.sharing import (
    TrainedNetwork,
    adapted_recipe,
    find_trained_network,
    loss_options,
    network_identity,
)
from dpn_plugin.runs.trained_run import TrainedRun, open_run

__all__ = [
    "CACHE",
    "CHECKPOINTS",
    "HELD_OUT_FILE",
    "LARGEST_IMAGE",
    "NEEDS_WEIGHTS",
    "NO_VIEW",
    "PACKAGES",
    "RUN_FILE",
    "Checkpoints",
    "EpochRecord",
    "FrozenBase",
    "Method",
    "Network",
    "NetworkRecord",
    "Predictor",
    "Recipe",
    "RunRecord",
    "TrainConfig",
    "TrainedNetwork",
    "TrainedRun",
    "TrainerState",
    "View",
    "adapted_recipe",
    "check_options",
    "create_network",
    "describe_changes",
    "diagnose",
    "find_trained_network",
    "has_relu_evidence",
    "head_of",
    "is_frozen",
    "list_recipes",
    "load_as_it_is",
    "load_base",
    "load_or_create_record",
    "loss_options",
    "method_of",
    "network_identity",
    "num_outputs",
    "open_run",
    "plot_history",
    "predict_logits",
    "read_held_out",
    "read_run_record",
    "read_tensors",
    "read_weights",
    "reads_features",
    "remove_cache",
    "remove_checkpoints",
    "remove_leftovers",
    "remove_run",
    "training_code",
    "why_not_mixed",
    "write_held_out",
    "write_history",
    "write_run_record",
    "write_weights",
]
