"""``held_out.safetensors``: the logits of held-out samples, to fit detectors without the data."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dpn_plugin._files import file_hash
from dpn_plugin.data import Batches, Samples
from dpn_plugin.errors import UserError
from dpn_plugin.runs.checkpoint import read_tensors, write_weights
from dpn_plugin.runs.folder import HELD_OUT_FILE
from dpn_plugin.runs.predictor import Predictor
from dpn_plugin.runs.trained_run import TrainedRun

_BATCH = 256


def write_held_out(
    run: TrainedRun,
    parts: Sequence[Samples],
    device: torch.device,
    features: Sequence[Samples] | None = None,
) -> str:
    """
    Store the logits and labels of the held-out samples and return the SHA-256 of the file.

    :param run: all of its networks are trained
    :param parts: held-out in-domain samples and, if there are any, held-out outliers
    :param device: where to compute
    :param features: the same samples with features of a frozen network as inputs
    """
    predictor = Predictor(run).to(device)
    if features is None:
        logits = torch.cat([predict_logits(predictor, run, part, device) for part in parts])
    else:
        logits = torch.cat([_logits_of_features(predictor, part, device) for part in features])
    labels = torch.cat([part.labels for part in parts])
    return write_weights(run.folder / HELD_OUT_FILE, {"logits": logits, "labels": labels})


@torch.no_grad()
def _logits_of_features(predictor: Predictor, points: Samples, device: torch.device) -> Tensor:
    found = [
        predictor.outputs_of_features(z.to(device))["logits"].float().cpu()
        for z, _ in Batches(points, _BATCH, shuffle=False).epoch(0)
    ]
    return torch.cat(found)


def read_held_out(run: TrainedRun) -> dict[str, Tensor]:
    """
    Return the ``logits`` and ``labels`` of the held-out samples.

    :raises UserError: if the file is missing, damaged or not one of ours
    """
    path = run.folder / HELD_OUT_FILE
    if not path.is_file() or run.record.files.get(HELD_OUT_FILE) != file_hash(path):
        raise UserError(
            f"{path}, to which detectors are fitted, is missing or damaged; the same dpn train or "
            "dpn bench writes it again."
        )
    held_out = read_tensors(path)
    if held_out.keys() != {"logits", "labels"}:
        raise UserError(f"{path} must hold logits and labels, not {sorted(held_out)}.")
    return held_out


@torch.no_grad()
def predict_logits(
    predictor: Predictor, run: TrainedRun, samples: Samples, device: torch.device
) -> Tensor:
    """Return the logits of all samples, on the CPU."""
    batches = Batches(samples, _BATCH, shuffle=False).epoch(0)
    return torch.cat([predictor(run.transform(x.to(device))).float().cpu() for x, _ in batches])
