"""What a model said about a data set, stored once under a content hash."""

from dpn_plugin.outputs.chunks import chunks, score_chunks
from dpn_plugin.outputs.collect import collect, collect_shares
from dpn_plugin.outputs.ingredients import Ingredients
from dpn_plugin.outputs.store import OutputStore, Stored

__all__ = [
    "Ingredients",
    "OutputStore",
    "Stored",
    "chunks",
    "collect",
    "collect_shares",
    "score_chunks",
]
