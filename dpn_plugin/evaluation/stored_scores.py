"""The scores of a detector for all test sets of a run, kept in the store beside the outputs."""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.outputs import OutputKey, OutputStore

_SCORES = "scores"


def write_scores(
    store: OutputStore, run: OutputKey, detector: str, scores: Mapping[str, Tensor]
) -> str:
    """
    Store the scores of one detector and return the hash of their key.

    Paired comparisons resample them. The key holds a hash of the scores themselves: a detector
    that is evaluated again with another result has another entry.

    :param store: that of the run's outputs
    :param run: the key of the run's outputs for the in-domain test samples
    :param detector: its name
    :param scores: of every test set by name
    """
    joined = torch.cat([each.detach().cpu() for each in scores.values()])
    joined = joined if joined.dtype in (torch.float32, torch.float64) else joined.double()
    extra = {
        "detector": detector,
        "sets": [[name, len(each)] for name, each in scores.items()],
        "content": hashlib.sha256(joined.numpy().tobytes()).hexdigest(),
    }
    key = OutputKey(run.weights, run.data, run.transform, split=_SCORES, extra=extra)
    store.write(key, [{_SCORES: joined}])
    return key.hash


def read_scores(store: OutputStore, key_hash: str) -> dict[str, Tensor]:
    """
    Return the stored scores of one detector by the name of the test set.

    :param store: that of the run's outputs
    :param key_hash: what :func:`write_scores` returned
    :raises UserError: if they are missing, damaged, or not what :func:`write_scores` writes
    """
    stored = store.open(key_hash)
    if stored is None:
        raise UserError(f"The scores {key_hash} are missing or damaged; bench again.")
    try:
        sizes = {str(name): int(size) for name, size in stored.key.extra["sets"]}
        scores = torch.tensor(stored.arrays[_SCORES], dtype=torch.float64)
        return dict(zip(sizes, scores.split(list(sizes.values())), strict=True))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:  # a stranger's folder
        raise UserError(f"The entry {key_hash} of the store holds no scores.") from error
