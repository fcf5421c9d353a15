"""What a trained run computed for a data set: one forward pass, stored under a content hash."""

from dpn_plugin.outputs.chunks import CHUNK_BYTES, chunks, score_chunks
from dpn_plugin.outputs.entry import StoredOutputs
from dpn_plugin.outputs.features import FrozenFeatures
from dpn_plugin.outputs.fit_sets import FIT_SAMPLES, FitSets
from dpn_plugin.outputs.key import OutputKey
from dpn_plugin.outputs.run_outputs import CALIBRATION, HELD_OUT, RunOutputs
from dpn_plugin.outputs.store import OutputStore

__all__ = [
    "CALIBRATION",
    "CHUNK_BYTES",
    "FIT_SAMPLES",
    "HELD_OUT",
    "FitSets",
    "FrozenFeatures",
    "OutputKey",
    "OutputStore",
    "RunOutputs",
    "StoredOutputs",
    "chunks",
    "score_chunks",
]
