"""What the losses do where the exponential of a logit no longer fits into a number."""

import torch
from torch import Tensor

__all__ = ["BOUND", "softened"]

#: e^60 = 1e26 leaves float32 room for sums over classes and for gradients
BOUND = 60.0


def softened(logits: Tensor) -> Tensor:
    r"""
    Logits whose exponential stays representable, the same up to :math:`b = 60`:

    .. math::
        s(z) = z \text{ for } |z| \leq b, \quad
        s(z) = \operatorname{sign}(z)\,\bigl(b + \ln(1 + |z| - b)\bigr) \text{ beyond}

    Above :math:`b` the concentration :math:`e^{s(z)} = e^b (1 + z - b)` continues along the tangent
    of the exponential; below :math:`-b` it is the reciprocal of that. The function and its slope
    are continuous, and the slope :math:`1 / (1 + |z| - b)` is never zero.

    :param logits: any shape
    :return: the same shape
    """
    excess = logits.abs() - BOUND
    beyond = excess > 0
    far = BOUND + torch.log1p(torch.where(beyond, excess, 0.0))
    return torch.where(beyond, torch.sign(logits) * far, logits)
