"""
Shorter ways to the scores of some detectors of pytorch-ood 0.4, the same to the last digit.

Each calls the host's own ``predict`` and replaces a part that it computes more than once, or in
matrices that do not fit in the cache of a processor. What a shortcut needs may be missing for a
model; then the host computes as it always does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from pytorch_ood.api import Detector, GradientDetector
from pytorch_ood.detector import NACUE, ODIN, GradNorm, GradUncertainty, Gram, MahalanobisODIN
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone, head_modules
from dpn_plugin.detectors.wiring import Pass, SharedForward, SharedForwards

#: classes that take the gradient of their input, or of inner layers, and no other
TAKES_GRADIENT = (ODIN, MahalanobisODIN, NACUE)

#: bytes of Gram matrices at a time: the host makes those of a whole batch, often 256 MB
_GRAM_BYTES = 2**20


def score_batch(detector: Detector, x: Tensor, shared: SharedForwards) -> Tensor:
    """
    Return the scores of the current batch.

    :param detector: reads inputs; fitted, if it needs to be
    :param x: the current batch of ``shared``
    :param shared: the passes of the detector's model
    """
    kind = type(detector)
    shares = kind in TAKES_GRADIENT or not isinstance(detector, GradientDetector)
    with torch.set_grad_enabled(isinstance(detector, GradientDetector)):
        if kind in (GradNorm, GradUncertainty):
            features = _features(detector, x, shared)
            if features is not None:
                with _replaced(detector, model=HeadOnly(detector.model)):
                    return detector.predict(features)
        if not shares:  # it may take any gradient, and needs a pass of its own
            with shared.paused():
                return detector.predict(x)
        with shortcuts(detector, shared):
            return detector.predict(x)


@contextmanager
def shortcuts(detector: Detector, shared: SharedForwards) -> Iterator[None]:
    """Within the block, let ``fit`` and ``predict`` of a detector take their shortcuts."""
    changes: dict[str, Any] = {}
    if type(detector) is Gram:
        changes = {"_gram_vector": gram_vector}
    elif type(detector) is NACUE:
        forward = shared.of(detector.model)
        if forward is not None:
            tapped = Tapped(detector.model, forward, detector.layers)
            changes = {"model": tapped, "layers": list(tapped.taps)}
    with _replaced(detector, **changes):
        yield


def gram_vector(feature: Tensor, p: int) -> Tensor:
    """
    Return the row sums of Gram matrices of order p: B x C.

    :param feature: feature maps B x C x ...
    :param p: the order
    """
    powers = (feature.detach() ** p).flatten(2)
    channels = powers.shape[1]
    rows = max(1, _GRAM_BYTES // (powers.element_size() * channels**2))
    parts = (torch.matmul(each, each.transpose(1, 2)).sum(dim=2) for each in powers.split(rows))
    sums = torch.cat(list(parts))
    return sums.sign() * sums.abs() ** (1 / p)


class Tapped(nn.Module):
    """
    A model whose inner layers can be read, with the gradients of all of them from one backward.

    NACUE takes the gradient of one layer after the other, each with a backward pass of its own
    through all later layers. Here the first of these computes all.

    :param backbone: the model
    :param forward: its shared passes
    :param layers: the layers; ``taps`` stand in for them
    """

    def __init__(self, backbone: Backbone, forward: SharedForward, layers: list[nn.Module]) -> None:
        super().__init__()
        self.source = backbone
        self.forward_pass, self.layers = forward, tuple(layers)
        self.taps = nn.ModuleList(nn.Identity() for _ in layers)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, and let the taps return what their layers returned."""
        found = self.forward_pass.find(x)
        gradients = None if found is None else self._gradients(found)
        if gradients is None:
            return self._plain(x)
        own = (each.detach().requires_grad_() for each in gradients.layers)
        tapped = [tap(each) for tap, each in zip(self.taps, own, strict=True)]
        return _OneBackward.apply(gradients, *tapped)

    def _gradients(self, found: Pass) -> "_Gradients | None":
        if not found.leaf.requires_grad or not found.layers.keys() >= set(self.layers):
            return None
        logits = self.forward_pass.logits(found)
        if logits is None:
            return None
        return _Gradients(logits, [found.layers[each] for each in self.layers])

    def _plain(self, x: Tensor) -> Tensor:
        hooks = [
            layer.register_forward_hook(lambda module, inputs, output, tap=tap: tap(output))
            for layer, tap in zip(self.layers, self.taps, strict=True)
        ]
        try:
            return self.source(x)
        finally:
            for hook in hooks:
                hook.remove()


class _Gradients:
    """The gradients of inner layers, kept for the last gradient of the logits."""

    def __init__(self, logits: Tensor, layers: list[Tensor]) -> None:
        self.logits, self.layers = logits, layers
        self._last: tuple[Tensor, tuple[Tensor, ...]] | None = None

    def of(self, gradient: Tensor) -> tuple[Tensor, ...]:
        if self._last is None or not torch.equal(self._last[0], gradient):
            found = torch.autograd.grad(self.logits, self.layers, gradient, retain_graph=True)
            self._last = gradient, found
        return self._last[1]


class _OneBackward(torch.autograd.Function):
    """Logits as a function of the outputs of inner layers."""

    @staticmethod
    def forward(ctx: Any, gradients: _Gradients, *layers: Tensor) -> Tensor:
        ctx.gradients = gradients
        return gradients.logits.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return None, *ctx.gradients.of(gradient)


class HeadOnly(nn.Module):
    """
    The head of a backbone as a model of features, whose parameters have the same names.

    :param backbone: the backbone
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.model = backbone.model
        self.__dict__["source"] = backbone  # not registered: parameters would have two names
        self.eval()

    def forward(self, features: Tensor) -> Tensor:
        """Return logits."""
        return self.__dict__["source"].head(features)


def _features(detector: Any, x: Tensor, shared: SharedForwards) -> Tensor | None:
    """Return the features of a batch if only the head of the model is differentiated."""
    backbone = detector.model
    if not isinstance(backbone, Backbone) or not backbone.splits or shared.of(backbone) is None:
        return None
    heads = {id(each) for head in head_modules(backbone.model) for each in head.parameters()}
    if not {id(each) for each in detector._selected_params().values()} <= heads:
        return None
    with torch.no_grad():
        return backbone.encoder(x)


@contextmanager
def _replaced(detector: Detector, **changes: Any) -> Iterator[None]:
    """Within the block, a detector has other attributes."""
    attributes = vars(detector)
    before = {name: attributes[name] for name in changes if name in attributes}
    attributes.update(changes)
    try:
        yield
    finally:
        for name in changes:
            del attributes[name]
        attributes.update(before)
