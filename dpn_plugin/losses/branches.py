"""
Small modules beside a network's classifier that some losses train: centres, confidences, energies.

A branch is part of the network: its tensors are optimised, averaged and stored with the weights,
and at test time it turns the network's outputs into those that a method is used with.
"""

import torch
from pytorch_ood.model.centers import RunningCenters
from torch import Tensor, nn
from torch.nn import functional as F


def squared_distances(points: Tensor, centres: Tensor) -> Tensor:
    r"""
    Return :math:`\lVert x_i - \mu_c \rVert^2`, shape :math:`B \times C`.

    :param points: shape :math:`B \times D`
    :param centres: shape :math:`C \times D`
    """
    # expanded: the differences of all points and centres, B x C x D, would not fit into memory
    norms = points.square().sum(dim=1, keepdim=True) + centres.square().sum(dim=1)
    return (norms - 2 * points @ centres.T).clamp(min=0)


class Branch(nn.Module):
    """A module that reads the outputs of a network; by itself it changes nothing."""

    def logits(self, logits: Tensor, features: Tensor) -> Tensor:
        """
        Return the logits that classify, B x K.

        :param logits: of the network's classifier, B x K
        :param features: that the classifier reads, B x D
        """
        return logits

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor | None:
        """
        Return the score of the method itself, B; larger is more OOD. ``None`` if it has none.

        :param logits: of the network's classifier, B x K
        :param features: that the classifier reads, B x D
        """
        return None


class Centres(Branch):
    r"""
    Centres in the space of the network's outputs, one unit vector for each class at first.

    The class is that of the nearest centre: the logits are :math:`-\lVert z - \mu_c \rVert^2`.

    :param num_classes: number of classes
    :param magnitude: length of the centres
    :param fixed: whether the centres stay where they are
    """

    def __init__(self, num_classes: int, magnitude: float = 1.0, fixed: bool = False) -> None:
        super().__init__()
        self.centres = nn.Parameter(magnitude * torch.eye(num_classes), requires_grad=not fixed)

    def distances(self, logits: Tensor) -> Tensor:
        """Return the squared distances to all centres, B x K."""
        return squared_distances(logits, self.centres)

    def logits(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the negative squared distances, B x K."""
        return -self.distances(logits)


class MeanCentres(Branch):
    r"""
    The means of the classes in the space of the normalised outputs, averaged over batches.

    The class is that of the nearest mean.

    :param num_classes: number of classes
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        # without it, the objective falls without bound when all outputs are scaled up
        self.norm = nn.BatchNorm1d(num_classes, affine=False)
        self.running = RunningCenters(num_classes, num_classes)

    def embed(self, logits: Tensor) -> Tensor:
        """Return the normalised outputs, B x K."""
        return self.norm(logits)

    def logits(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the negative squared distances, B x K."""
        return -squared_distances(self.embed(logits), self.running.centers)


class FeatureCentres(Branch):
    r"""
    Learned centres in the space of the features; the score is the distance to the nearest.

    :param num_classes: number of classes
    :param width: of the features
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(num_classes, width))

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the squared distance to the nearest centre."""
        return squared_distances(features, self.centres).amin(dim=1)


class OneCentre(Branch):
    """
    One centre of all in-domain features, which does not move; the score is the distance to it.

    It is the mean of the first batch, because a network could otherwise be trained towards a centre
    that its features never reach.

    :param width: of the features
    """

    centre: Tensor
    is_set: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(1, width))
        self.register_buffer("is_set", torch.tensor(False))

    def distance(self, features: Tensor) -> Tensor:
        """Return the squared distance to the centre, B."""
        return squared_distances(features, self.centre).squeeze(1)

    def set_once(self, features: Tensor) -> None:
        """Put the centre at the mean of in-domain features, unless it is set already."""
        if not self.is_set and len(features):
            self.centre.copy_(features.detach().mean(dim=0, keepdim=True))
            self.is_set.fill_(True)

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the squared distance to the centre."""
        return self.distance(features)


class Background(Branch):
    """
    The logit of a background class; the score are the odds of that class.

    :param width: of the features
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.background = nn.Linear(width, 1)

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the log-odds of the background against all classes."""
        return self.background(features).squeeze(1) - logits.logsumexp(dim=1)


class Confidence(Branch):
    """
    The logit of a confidence in the prediction; the score is its complement.

    :param width: of the features
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.confidence = nn.Linear(width, 1)

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the negative logit of the confidence."""
        return -self.confidence(features).squeeze(1)


class WeightedEnergy(Branch):
    """
    An energy with a weight for each class and a logistic regression of it, as VOS trains them.

    :param num_classes: number of classes
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.weights = nn.Linear(num_classes, 1, bias=False)
        nn.init.uniform_(self.weights.weight)  # as the authors do; a ReLU removes negative ones
        self.regression = nn.Linear(1, 2)

    def own_score(self, logits: Tensor, features: Tensor) -> Tensor:
        """Return the log-odds of the regression, whose second output is in-domain."""
        log_weights = F.relu(self.weights.weight).clamp(min=torch.finfo(logits.dtype).tiny).log()
        energy = -(logits + log_weights).logsumexp(dim=1, keepdim=True)
        outputs = self.regression(energy)
        return outputs[:, 0] - outputs[:, 1]
