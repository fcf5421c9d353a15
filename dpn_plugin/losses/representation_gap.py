"""The objective that separates in-domain and OOD samples by their precision."""

import torch
from torch import Tensor

from dpn_plugin.errors import UserError
from dpn_plugin.losses.checks import check_number
from dpn_plugin.losses.grouped import GroupedLoss
from dpn_plugin.papers import REPRESENTATION_GAP, loss_info


class RepresentationGapLoss(GroupedLoss):
    r"""
    Loss from *Towards Maximizing the Representation Gap between In-Domain & Out-of-Distribution
    Examples*.

    .. math::
        \mathcal{L} =
        \mathbb{E}_{in}\Bigl[-\ln p_y - \frac{\lambda_{in}}{K} \sum_c \sigma(z_c)\Bigr]
        + \gamma\, \mathbb{E}_{out}\Bigl[-\frac1K \sum_c \ln p_c
        - \frac{\lambda_{out}}{K} \sum_c \sigma(z_c)\Bigr],
        \quad p = \operatorname{softmax}(z)

    A positive :math:`\lambda_{out}` raises the logits of OOD samples together: all classes get the
    same concentration above one, with the density around the centre of the simplex. A negative one
    lowers them: concentrations below one, with the density at the corners of the simplex. With
    :math:`\lambda_{in} = \lambda_{out} = 0` this is outlier exposure.

    The cross-entropies do not depend on a shift of all logits and the sigmoids saturate, so the
    loss leaves the precision :math:`\alpha_0 = \sum_c e^{z_c}` to the optimizer. An anchor
    :math:`w > 0` determines it. It adds

    .. math:: w\, (\ln \alpha_0 - t)^2

    to each bracket, with the target :math:`t_{in}` or :math:`t_{out}`.

    .. note:: The expectations are taken over each group separately. The authors average one batch
        of 64 in-domain and 32 OOD samples, which is :math:`\gamma = 0.5` up to a constant factor.

    .. note:: The anchor is not part of the paper, and zero unless given.
    """

    info = loss_info(REPRESENTATION_GAP, supervised=True)

    def __init__(
        self,
        lambda_in: float,
        lambda_out: float,
        gamma: float = 0.5,
        reduction: str = "mean",
        num_classes: int | None = None,
        anchor: float = 0.0,
        log_precision_in: float | None = None,
        log_precision_out: float | None = None,
    ) -> None:
        r"""
        Create the loss.

        :param lambda_in: :math:`\lambda_{in}`, the weight of the precision of in-domain samples
        :param lambda_out: :math:`\lambda_{out}`, the same for OOD samples
        :param gamma: weight :math:`\gamma > 0` of the OOD samples; the paper takes 0.5 for images
            and 1.0 for its synthetic set
        :param reduction: one of ``mean``, ``sum`` or ``none``
        :param num_classes: number of classes that the logits must have; any if ``None``
        :param anchor: weight :math:`w \geq 0` of the anchor
        :param log_precision_in: :math:`t_{in}`, the target of :math:`\ln \alpha_0` of in-domain
            samples; needed with an anchor
        :param log_precision_out: :math:`t_{out}`, the same for OOD samples
        """
        super().__init__(check_number("gamma", gamma, above=0), reduction, num_classes)
        self.lambda_in = check_number("lambda_in", lambda_in)
        self.lambda_out = check_number("lambda_out", lambda_out)
        self.anchor = check_number("anchor", anchor, least=0)
        self.log_precision_in = _target("log_precision_in", log_precision_in, self.anchor)
        self.log_precision_out = _target("log_precision_out", log_precision_out, self.anchor)

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the cross-entropy minus the weighted mean sigmoid, plus the anchor."""
        in_domain = target >= 0
        log_p = torch.log_softmax(logits, dim=1)
        label = target.clamp(min=0).unsqueeze(1)
        fit = torch.where(in_domain, log_p.gather(1, label).squeeze(1), log_p.mean(dim=1))
        strength = torch.where(in_domain, fit.new_full((), self.lambda_in), self.lambda_out)
        values = -fit - strength * torch.sigmoid(logits).mean(dim=1)
        return values + self._anchor(logits, in_domain) if self.anchor else values

    def _anchor(self, logits: Tensor, in_domain: Tensor) -> Tensor:
        goal = logits.new_full((), self.log_precision_in)
        goal = torch.where(in_domain, goal, self.log_precision_out)
        return self.anchor * (torch.logsumexp(logits, dim=1) - goal) ** 2

    def extra_repr(self) -> str:
        """Return the arguments for ``repr``."""
        text = f"lambda_in={self.lambda_in}, lambda_out={self.lambda_out}, gamma={self.gamma}"
        if not self.anchor:
            return text
        return (
            f"{text}, anchor={self.anchor}, log_precision_in={self.log_precision_in}, "
            f"log_precision_out={self.log_precision_out}"
        )


def _target(name: str, value: float | None, anchor: float) -> float:
    if value is None and anchor:
        raise UserError(f"An anchor of {anchor:g} needs {name}, a target of log(alpha0).")
    if value is not None and not anchor:
        raise UserError(f"{name}={value} has no effect without an anchor: set anchor above 0.")
    return 0.0 if value is None else check_number(name, value)
