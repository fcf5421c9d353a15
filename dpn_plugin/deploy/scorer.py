"""The networks and detectors of a bundle at work on one batch."""

from collections.abc import Mapping
from threading import RLock
from typing import Any

import torch
from torch import Tensor

from dpn_plugin.detectors import GaussianKL, NotApplicable, create_detector, reads, scores
from dpn_plugin.errors import UserError
from dpn_plugin.evaluation import BINARY, FOR_AVERAGES, OWN_SCORE
from dpn_plugin.runs import Predictor, TrainedRun

Outputs = Mapping[str, Tensor]


class BundledDetector:
    """
    A detector, or what takes its place where a method has a score of its own.

    :param name: a detector by name, ``binary`` for the OOD classifier of the method ``binary``, or
        ``own-score`` for the score that a loss has trained
    :param predictor: the networks that it is wired to
    :param options: arguments of its class
    :raises UserError: if the method cannot be scored with it
    """

    def __init__(self, name: str, predictor: Predictor, options: Mapping[str, Any]) -> None:
        self.name = name
        self.one_by_one = False
        self.detector: Any = None
        method = predictor.method
        if (name == BINARY) != method.has_ood_classifier:
            raise NotApplicable(_binary_message(name, method.name))
        if name == OWN_SCORE:
            if not method.has_own_score:
                raise NotApplicable(f"A run of the method {method.name!r} has no {OWN_SCORE!r}.")
        elif method.averages:
            _check_averages(name, method.name)
            self.detector = None if name == "dpn-mi" else create_detector(name, **options)
        elif name != BINARY:
            self.detector = create_detector(name, predictor.classifier, **options)
            self.detector.to(next(predictor.parameters()).device)

    @property
    def reads(self) -> str:
        """What it scores: ``logits``, ``features``, ``inputs``, or an output of the networks."""
        if self.detector is None:
            own = {BINARY: "ood_logits", OWN_SCORE: "own_score"}
            return own.get(self.name, "mutual_information")
        return reads(self.detector)

    @property
    def gives_sources(self) -> bool:
        """Whether it tells correct, misclassified and OOD samples apart."""
        detector = self.detector
        return isinstance(detector, GaussianKL) and bool(
            detector.shares is not None and detector.shares[2] > 0
        )

    def scores(self, outputs: Outputs, x: Tensor) -> Tensor:
        """
        Return one score per sample, float64 on the CPU.

        :param outputs: of the networks
        :param x: the inputs of the networks
        """
        if not len(x):
            return torch.empty(0, dtype=torch.float64)
        if self.one_by_one and len(x) > 1:
            rows = range(len(x))
            parts = [({k: v[i : i + 1] for k, v in outputs.items()}, x[i : i + 1]) for i in rows]
            return torch.cat([self.scores(*part) for part in parts])
        if self.reads in ("mutual_information", "own_score"):
            return outputs[self.reads].cpu().double()
        if self.reads == "ood_logits":
            return (outputs["ood_logits"][:, 1] - outputs["ood_logits"][:, 0]).cpu().double()
        arrays = {name: tensor.cpu().numpy() for name, tensor in outputs.items()}
        labels = torch.full((len(x),), -1)
        return scores(self.detector, arrays, lambda: [(x, labels)]).double()


class BatchScorer:
    """
    The networks of a run, and detectors that score what they compute.

    :param run: a finished run
    :param device: where to compute
    """

    def __init__(self, run: TrainedRun, device: torch.device) -> None:
        self.run, self.device = run, device
        self.predictor = Predictor(run).to(device)
        # dropout, hooks in the networks and gradients are shared by all threads
        self._lock = RLock()
        self.detectors: list[BundledDetector] = []

    def __call__(self, batch: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """
        Return the outputs of the networks for a batch, and each detector's scores by name.

        :param batch: images or points, as the transform of the run takes them
        """
        x = self.run.transform(batch.to(self.device))
        # all detectors of inputs run the networks again
        with self._lock:
            outputs = self._outputs(x)
            found = {each.name: each.scores(outputs, x) for each in self.detectors}
        return outputs, found

    def _outputs(self, x: Tensor) -> dict[str, Tensor]:
        # the masks of dropout depend on the place of a sample in the batch
        size = 1 if self.predictor.method.passes > 1 else max(1, len(x))
        with torch.inference_mode():
            parts = [self.predictor.outputs(each) for each in x.split(size)]
        return {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}


def _check_averages(name: str, method: str) -> None:
    if name not in FOR_AVERAGES:
        raise UserError(
            f"{method} averages predictions, which have no {name} score; those with one are "
            f"{', '.join(FOR_AVERAGES)}."
        )


def _binary_message(name: str, method: str) -> str:
    if name == BINARY:
        return f"'binary' is the second network of the method 'binary', and this run is {method!r}."
    return f"A run of the method {method!r} is scored with its own 'binary', not with {name!r}."
