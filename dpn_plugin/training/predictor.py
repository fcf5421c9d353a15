"""A trained run at test time: one call gives all that detectors need."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone, mc_dropout
from dpn_plugin.losses import evidential_log_concentration
from dpn_plugin.training.run import Run

__all__ = ["Predictor"]


class Predictor(nn.Module):
    """
    The networks of a run, used as the method says: alone, averaged over members or over passes
    with dropout, or with a second network that tells OOD samples apart.

    :param run: a finished run
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.method = run.method
        self.backbones = nn.ModuleList(run.backbone(each) for each in run.method.networks)
        self.seed = run.config.seed
        self.eval()

    @property
    def classifier(self) -> Backbone:
        """The network that classifies, or the first of an ensemble."""
        backbone = self.backbones[0]
        assert isinstance(backbone, Backbone)
        return backbone

    def forward(self, x: Tensor) -> Tensor:
        """:return: log-concentrations (log-probabilities where predictions are averaged), B x K"""
        return self.outputs(x)["logits"]

    def outputs(self, x: Tensor) -> dict[str, Tensor]:
        """
        :param x: a batch, transformed
        :return: ``logits``, as :meth:`forward` gives them; ``features`` of the classifier unless
            predictions are averaged; then ``mutual_information`` of prediction and member;
            ``ood_logits``, B x 2, where a second network tells OOD samples apart;
            ``evidence_logits``, as the network gave them, where they are evidence
        """
        if self.method.averages:
            return _averaged(self._log_probabilities(x))
        outputs = self.classifier.outputs(x)
        found = {"logits": self._log_concentrations(outputs.logits), "features": outputs.features}
        if self.method.evidence is not None:
            found["evidence_logits"] = outputs.logits
        if self.method.detects_apart:
            found["ood_logits"] = self.backbones[1](x)
        return found

    def _log_concentrations(self, logits: Tensor) -> Tensor:
        if self.method.evidence is None:
            return logits
        return evidential_log_concentration(logits, self.method.evidence)

    def _log_probabilities(self, x: Tensor) -> Tensor:
        """:return: M x B x K, of members or passes"""
        passes = self._dropout_passes(x) if self.method.passes > 1 else self._members(x)
        return torch.log_softmax(torch.stack(list(passes)).float(), dim=-1)

    def _members(self, x: Tensor) -> Iterator[Tensor]:
        return (backbone(x) for backbone in self.backbones)

    def _dropout_passes(self, x: Tensor) -> Iterator[Tensor]:
        # a stream of its own, so that results neither depend on nor disturb the caller's
        with torch.random.fork_rng(), mc_dropout(self.classifier):
            torch.manual_seed(self.seed)
            for _ in range(self.method.passes):
                yield self.classifier(x)


def _averaged(log_p: Tensor) -> dict[str, Tensor]:
    mean = torch.logsumexp(log_p, dim=0) - torch.log(torch.tensor(float(len(log_p))))
    divergence = (log_p.exp() * (log_p - mean)).sum(dim=-1)
    return {"logits": mean, "mutual_information": divergence.mean(dim=0).clamp(min=0)}
