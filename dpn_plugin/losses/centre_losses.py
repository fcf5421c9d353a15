"""Losses of pytorch-ood that pull samples towards centres, wired to a network with such centres."""

from typing import Any

from pytorch_ood import loss as host
from torch import Tensor

from dpn_plugin.losses.branches import (
    Branch,
    Centres,
    FeatureCentres,
    MeanCentres,
    OneCentre,
)
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.feature_loss import (
    FeatureLoss,
    NetworkOutputs,
    at_label,
    branch_of,
    cross_entropy,
    spread,
)


class ClassAnchorLoss(FeatureLoss):
    r"""
    Loss from *Class Anchor Clustering: a Loss for Distance-based Open Set Recognition*.

    With the squared distances :math:`d_c` of the network's outputs to fixed anchors,

    .. math:: \mathcal{L} = \alpha\, d_y + \ln\bigl(1 + \sum_{c \neq y} e^{d_y - d_c}\bigr)

    .. note:: The formula is that of the paper and of pytorch-ood's documentation. Its ``CACLoss``
        (0.4.0) leaves the last class out of the sum and counts :math:`c = y` instead.
    """

    info = host.CACLoss.info

    def __init__(
        self,
        num_classes: int,
        magnitude: float = 10.0,
        alpha: float = 0.1,
        reduction: str = "mean",
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes
        :param magnitude: length of the anchors, 10 in the authors' code
        :param alpha: weight :math:`\alpha` of the distance to the right anchor, theirs 0.1
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.magnitude = check_number("magnitude", magnitude, above=0)
        self.alpha = check_number("alpha", alpha, least=0)

    def create_branch(self, width: int) -> Branch:
        """Return the anchors."""
        return Centres(self.num_classes, self.magnitude, fixed=True)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample; zero for OOD samples."""
        distances = branch_of(outputs, Centres).distances(outputs.logits)
        return self.alpha * at_label(distances, target) + cross_entropy(-distances, target)


class CentreLoss(FeatureLoss):
    r"""
    Cross-entropy and the loss from *A Discriminative Feature Learning Approach for Deep Face
    Recognition*.

    .. math:: \mathcal{L} = -\ln p_y + \frac{w}{2} \lVert F(x) - \mu_y \rVert^2

    .. note:: The optimizer moves the centres; the authors move them at a rate of their own.
        pytorch-ood's ``CenterLoss`` is the second term for :math:`w = 2 / K`, without the
        cross-entropy, which keeps features and centres from collapsing into one point.
    """

    info = host.CenterLoss.info

    def __init__(self, num_classes: int, weight: float = 0.003, reduction: str = "mean") -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param weight: of the distance to the right centre; the paper's 0.003
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.weight = check_number("weight", weight, least=0)

    def create_branch(self, width: int) -> Branch:
        """Return centres in the space of the features."""
        return FeatureCentres(self.num_classes, width)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample; zero for OOD samples."""
        centres = branch_of(outputs, FeatureCentres).centres
        # only the centre of the label, instead of the distances to all centres
        offsets = outputs.features - centres[target.clamp(min=0)]
        distances = offsets.square().sum(dim=1, keepdim=True)
        pull = at_label(distances, target.clamp(max=0))
        return cross_entropy(outputs.logits, target) + self.weight / 2 * pull


class MCHADLoss(FeatureLoss):
    """
    Loss from *Multi-Class Hypersphere Anomaly Detection*, see :class:`pytorch_ood.loss.MCHADLoss`.

    The network's outputs are pulled to the learned centre of their class, and those of OOD samples
    are kept away from all centres. The defaults are the authors' for CIFAR-10 with outliers.
    """

    info = host.MCHADLoss.info

    def __init__(
        self,
        num_classes: int,
        radius: float = 0.0,
        margin: float = 4.0,
        weight_center: float = 1.0,
        weight_nll: float = 1.5,
        weight_oe: float = 1e-5,
        reduction: str = "mean",
    ) -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param radius: of the spheres
        :param margin: that OOD samples keep from centres
        :param weight_center: of the distance to the right centre
        :param weight_nll: of the cross-entropy of the negative distances
        :param weight_oe: of the OOD samples
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        weights: dict[str, Any] = {
            "weight_center": check_number("weight_center", weight_center, least=0),
            "weight_nll": check_number("weight_nll", weight_nll, least=0),
            "weight_oe": check_number("weight_oe", weight_oe, least=0),
            "radius": check_number("radius", radius, least=0),
            "margin": check_number("margin", margin, least=0),
        }
        self.loss = host.MCHADLoss(num_classes, num_classes, **weights)

    def create_branch(self, width: int) -> Branch:
        """Return learned centres."""
        return Centres(self.num_classes)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of the batch, as a value of each sample."""
        distances = branch_of(outputs, Centres).distances(outputs.logits)
        return spread(self.loss(distances, target), target)


class IILoss(FeatureLoss):
    """
    Loss from *Learning a Neural-network-based Representation for Open Set Recognition*, see
    :class:`pytorch_ood.loss.IILoss`.

    .. note:: The outputs are normalised over the batch first. Otherwise the loss falls without
        bound when all outputs are scaled up.
    """

    info = host.IILoss.info

    def __init__(self, num_classes: int, alpha: float = 1.0, reduction: str = "mean") -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param alpha: weight of the distance between the two nearest centres
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        alpha = check_number("alpha", alpha, least=0)
        self.loss = host.IILoss(num_classes, num_classes, alpha)

    def create_branch(self, width: int) -> Branch:
        """Return the means of the classes."""
        return MeanCentres(self.num_classes)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of the batch, as a value of each sample."""
        branch = branch_of(outputs, MeanCentres)
        # the means belong to the network, which is used with them later
        self.loss.running_centers = branch.running
        self.loss.train(branch.training)
        in_domain = target >= 0
        value = self.loss(branch.embed(outputs.logits)[in_domain], target[in_domain])
        return spread(value, target)


class DeepSVDDLoss(FeatureLoss):
    r"""
    Loss from *Deep One-Class Classification*, see :class:`pytorch_ood.loss.DeepSVDDLoss`.

    .. math:: \mathcal{L} = \max\{0, \lVert F(x) - \mu \rVert^2 - r^2\} - \ln p_y

    .. note:: The paper trains no classifier. Here one is trained beside it, with the cross-entropy
        of features through which no gradient flows, so that the features are those of the paper.
    """

    info = host.DeepSVDDLoss.info

    def __init__(self, num_classes: int, radius: float = 0.0, reduction: str = "mean") -> None:
        """
        Create the loss.

        :param num_classes: number of classes
        :param radius: of the sphere; 0 is the one-class objective of the paper
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.radius = check_number("radius", radius, least=0)

    def create_branch(self, width: int) -> Branch:
        """Return the centre."""
        return OneCentre(width)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample; zero for OOD samples."""
        distance = _set_centre(outputs, target).distance(outputs.features)
        inside = (distance - self.radius**2).relu() * (target >= 0)
        return inside + _probe(outputs, target)


class DeepSADLoss(FeatureLoss):
    r"""
    Loss from *Deep Semi-Supervised Anomaly Detection*, see :class:`pytorch_ood.loss.DeepSADLoss`.

    .. math::
        \mathcal{L}_{in} = \lVert F(x) - \mu \rVert^2 - \ln p_y, \quad
        \mathcal{L}_{out} = \eta\, (\lVert F(x) - \mu \rVert^2 + \epsilon)^{-1}

    .. note:: The classifier is trained as that of :class:`DeepSVDDLoss`.
    """

    info = host.DeepSADLoss.info

    def __init__(
        self, num_classes: int, eta: float = 1.0, eps: float = 1e-6, reduction: str = "mean"
    ) -> None:
        r"""
        Create the loss.

        :param num_classes: number of classes
        :param eta: weight :math:`\eta` of the OOD samples
        :param eps: :math:`\epsilon`, which keeps the loss finite at the centre
        :param reduction: one of ``mean``, ``sum`` or ``none``
        """
        super().__init__(num_classes, reduction)
        self.eta = check_number("eta", eta, least=0)
        self.eps = check_number("eps", eps, above=0)

    def create_branch(self, width: int) -> Branch:
        """Return the centre."""
        return OneCentre(width)

    def per_sample(self, outputs: NetworkOutputs, target: Tensor) -> Tensor:
        """Return the loss of each sample."""
        distance = _set_centre(outputs, target).distance(outputs.features)
        away = self.eta / (distance + self.eps)
        return (target >= 0) * distance + (target < 0) * away + _probe(outputs, target)


def _set_centre(outputs: NetworkOutputs, target: Tensor) -> OneCentre:
    branch = branch_of(outputs, OneCentre)
    if branch.training:
        branch.set_once(outputs.features[target >= 0])
    return branch


def _probe(outputs: NetworkOutputs, target: Tensor) -> Tensor:
    """Return the cross-entropy of a classifier that does not change the features."""
    assert outputs.head is not None
    return cross_entropy(outputs.head(outputs.features.detach()), target)
