"""The networks of a trained run at test time: one call gives everything that detectors need."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone, mc_dropout
from dpn_plugin.runs.readout import has_relu_evidence, log_concentrations
from dpn_plugin.runs.trained_run import TrainedRun


class Predictor(nn.Module):
    """
    The networks of a run, used as its method requires: alone, averaged over members or over passes
    with dropout, or with a second network that separates in-domain from OOD samples.

    :param run: a finished run
    """

    def __init__(self, run: TrainedRun) -> None:
        super().__init__()
        self.method = run.method
        self.backbones = nn.ModuleList(run.load_network(each) for each in run.method.networks)
        self.seed = run.config.seed
        classifier = run.method.networks[0]
        self.log_concentrations = log_concentrations(classifier, run.num_classes)
        self.has_relu_evidence = has_relu_evidence(classifier, run.num_classes)
        self.eval()

    @property
    def classifier(self) -> Backbone:
        """The network that classifies, or the first of an ensemble."""
        backbone = self.backbones[0]
        assert isinstance(backbone, Backbone)
        return backbone

    def _backbones(self) -> list[Backbone]:
        return [each for each in self.backbones if isinstance(each, Backbone)]

    def forward(self, x: Tensor) -> Tensor:
        """Return log-concentrations (log-probabilities if predictions are averaged), B x K."""
        return self.outputs(x)["logits"]

    def outputs_of_features(self, features: Tensor) -> dict[str, Tensor]:
        """
        Return what :meth:`outputs` does, from the features of a frozen network.

        :param features: B x D, which all networks of the run have in common
        """
        if self.method.averages:
            return _average(self._log_probabilities(features, of_features=True))
        logits, *others = (each.head(features) for each in self._backbones())
        return self._complete(logits, features, others[0] if others else None)

    def outputs(self, x: Tensor) -> dict[str, Tensor]:
        """
        Return everything that detectors need about a batch.

        ``logits`` as :meth:`forward` gives them. ``features`` of the classifier, unless predictions
        are averaged; then ``mutual_information`` of prediction and member. ``ood_logits``, B x 2,
        if a second network separates OOD samples. ``own_score`` if the loss has trained one.
        ``evidence_logits``, the raw outputs, for evidential networks whose evidence is that of a
        ReLU.

        :param x: a batch, transformed
        """
        if self.method.averages:
            return _average(self._log_probabilities(x))
        outputs = self.classifier.outputs(x)
        ood_logits = self.backbones[1](x) if self.method.has_ood_classifier else None
        return self._complete(outputs.logits, outputs.features, ood_logits)

    def _complete(
        self, logits: Tensor, features: Tensor, ood_logits: Tensor | None
    ) -> dict[str, Tensor]:
        branch, own_score = self.classifier.branch, None
        if branch is not None:
            own_score = branch.own_score(logits, features)
            logits = branch.logits(logits, features)
        of_dirichlet = self.log_concentrations
        found = {"logits": logits if of_dirichlet is None else of_dirichlet(logits)}
        found["features"] = features
        if own_score is not None:
            found["own_score"] = own_score
        if self.has_relu_evidence:
            found["evidence_logits"] = logits
        if ood_logits is not None:
            found["ood_logits"] = ood_logits
        return found

    def _log_probabilities(self, x: Tensor, of_features: bool = False) -> Tensor:
        """Return the log-probabilities of all members or passes, M x B x K."""
        functions = [each.head if of_features else each for each in self._backbones()]
        if self.method.passes > 1:
            passes = self._dropout_passes(functions[0], x)
        else:
            passes = (function(x) for function in functions)
        return torch.log_softmax(torch.stack(list(passes)).float(), dim=-1)

    def _dropout_passes(self, function: Callable[[Tensor], Tensor], x: Tensor) -> Iterator[Tensor]:
        # a random stream of its own: results neither depend on the caller's nor change it
        with torch.random.fork_rng(), mc_dropout(self.classifier):
            torch.manual_seed(self.seed)
            for _ in range(self.method.passes):
                yield function(x)


def _average(log_p: Tensor) -> dict[str, Tensor]:
    mean = torch.logsumexp(log_p, dim=0) - torch.log(torch.tensor(float(len(log_p))))
    divergence = (log_p.exp() * (log_p - mean)).sum(dim=-1)
    return {"logits": mean, "mutual_information": divergence.mean(dim=0).clamp(min=0)}
