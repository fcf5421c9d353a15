"""One forward pass of a model for every batch, whatever the number of detectors that read it."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone


@dataclass
class Pass:
    """
    What a model computed for a batch before its head.

    :param leaf: the batch; it requires a gradient if the pass was recorded for one
    :param hidden: what ``forward_features`` returned
    :param layers: the outputs of inner layers
    :param version: of ``hidden``; an operation in place changes it
    """

    leaf: Tensor
    hidden: Tensor
    layers: dict[nn.Module, Tensor]
    version: int = field(init=False)

    def __post_init__(self) -> None:
        self.version = self.hidden._version


class SharedForward:
    """
    Stands in for ``forward_features`` of a timm model and computes it once for a batch.

    Every call with the current batch gets the result of the first one, bit for bit what another
    pass would give; a call with any other input computes. A call that asks for the gradient of the
    batch gets it from the graph of the first pass. Nothing is shared while a module of the model is
    in training mode (dropout) or has hooks, or after a weight was changed.

    :param backbone: its model is the one whose passes are shared
    :param layers: inner layers whose outputs are kept
    :param gradients: whether a pass is recorded, so that gradients can be taken
    """

    def __init__(self, backbone: Backbone, layers: Sequence[nn.Module], gradients: bool) -> None:
        self.backbone, self.model = backbone, backbone.model
        self.compute: Callable[..., Any] = backbone.model.forward_features
        self.layers, self.gradients = tuple(dict.fromkeys(layers)), gradients
        self.seconds = 0.0
        self.held: Tensor | None = None
        self._found: tuple[Any, Pass | None] | None = None
        self._attached: Pass | None = None

    def hold(self, x: Tensor | None) -> None:
        """Make ``x`` the current batch, or none; what was computed for the last one is dropped."""
        self.held, self._found = x, None

    def __call__(self, x: Tensor, *args: Any, **options: Any) -> Any:
        """Return what ``forward_features`` returns."""
        if args or any(each is not None for each in options.values()):
            return self.compute(x, *args, **options)
        if self._attached is not None and x is self._attached.leaf:
            attached, self._attached = self._attached, None
            return attached.hidden
        found = self.find(x)
        if found is not None and not torch.is_grad_enabled():
            return found.hidden.detach()
        if found is not None and x.requires_grad and found.leaf.requires_grad:
            return _Replayed.apply(x, found)
        return self.compute(x)

    def find(self, x: Tensor) -> Pass | None:
        """Return the pass of the current batch, ``None`` if ``x`` is another input."""
        if self.held is None or not _is_same(x, self.held):
            return None
        state = _state(self.model)
        if state is None:
            return None
        if self._found is None or self._found[0] != state or _was_changed(self._found[1]):
            self._found = state, self._run(self.held)
        return self._found[1]

    def logits(self, found: Pass) -> Tensor | None:
        """
        Return the logits of a pass with its graph.

        :param found: a pass of this model that was recorded
        :return: ``None`` if the model does not compute its logits from ``forward_features``
        """
        self._attached = found
        with torch.enable_grad():
            logits = self.backbone(found.leaf)
        unused, self._attached = self._attached is not None, None
        return None if unused else logits

    def _run(self, x: Tensor) -> Pass | None:
        start = time.perf_counter()
        gradients = self.gradients and x.is_floating_point()
        with torch.set_grad_enabled(gradients), _constant(self.model.parameters()):
            leaf = x.detach().requires_grad_(gradients)
            with recorded_outputs(self.layers) as outputs:
                hidden = self.compute(leaf)
        self.seconds += time.perf_counter() - start
        layers = {self.layers[index]: output for index, output in outputs.items()}
        return Pass(leaf, hidden, layers) if isinstance(hidden, Tensor) else None


class _Replayed(torch.autograd.Function):
    """The result of a pass for the same input, with the gradient that its graph gives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, found: Pass) -> Tensor:
        ctx.found = found
        return found.hidden.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        found = ctx.found
        (of_input,) = torch.autograd.grad(found.hidden, found.leaf, gradient, retain_graph=True)
        return of_input, None


class SharedForwards:
    """
    The shared passes of all models of some detectors.

    :param forwards: one for each model
    """

    def __init__(self, forwards: Sequence[SharedForward]) -> None:
        self.forwards = forwards

    @property
    def seconds(self) -> float:
        """The time of all passes so far."""
        return sum(each.seconds for each in self.forwards)

    def of(self, model: nn.Module) -> SharedForward | None:
        """Return the shared passes of a backbone, or of its timm model."""
        models = (getattr(model, "model", None), model)
        return next((each for each in self.forwards if each.model in models), None)

    @contextmanager
    def batch(self, x: Tensor) -> Iterator[None]:
        """Within the block, ``x`` is the current batch."""
        try:
            for each in self.forwards:
                each.hold(None if x.is_inference() else x)
            yield
        finally:
            for each in self.forwards:
                each.hold(None)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within the block, every call computes."""
        held = [(each, each.held) for each in self.forwards]
        try:
            for each, _ in held:
                each.held = None
            yield
        finally:
            for each, x in held:
                each.held = x


@contextmanager
def shared_forwards(
    modules: Iterable[nn.Module], layers: Iterable[nn.Module], gradients: bool
) -> Iterator[SharedForwards]:
    """
    Within the block, the passes of all backbones inside ``modules`` can be shared.

    :param modules: those of some detectors
    :param layers: inner layers whose outputs the detectors read
    :param gradients: whether a detector takes the gradient of its input
    """
    inside = dict.fromkeys(each for module in modules for each in module.modules())
    backbones = {each.model: each for each in inside if isinstance(each, Backbone)}
    kept = [*layers, *(layer for each in inside for layer in getattr(each, "read_layers", ()))]
    with ExitStack() as stack:
        forwards = []
        for backbone in backbones.values():
            own = set(backbone.model.modules())
            forwards.append(
                SharedForward(backbone, [layer for layer in kept if layer in own], gradients)
            )
            stack.enter_context(_installed(forwards[-1]))
        yield SharedForwards(forwards)


@contextmanager
def recorded_outputs(layers: Sequence[nn.Module]) -> Iterator[dict[int, Tensor]]:
    """Within the block, record the outputs of layers by index, in the order in which they run."""
    outputs: dict[int, Tensor] = {}

    def recorder(index: int) -> Callable[..., None]:
        def record(module: nn.Module, inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                outputs[index] = output

        return record

    hooks = [each.register_forward_hook(recorder(index)) for index, each in enumerate(layers)]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _installed(forward: SharedForward) -> Iterator[None]:
    attributes = vars(forward.model)
    before = attributes.get("forward_features")
    attributes["forward_features"] = forward
    try:
        yield
    finally:
        if before is None:
            del attributes["forward_features"]
        else:
            attributes["forward_features"] = before


@contextmanager
def _constant(parameters: Iterable[nn.Parameter]) -> Iterator[None]:
    """Within the block, parameters require no gradient: only that of the input will be taken."""
    changed = [each for each in parameters if each.requires_grad]
    try:
        for each in changed:
            each.requires_grad_(False)
        yield
    finally:
        for each in changed:
            each.requires_grad_(True)


def _state(model: nn.Module) -> tuple[Any, ...] | None:
    """Return what identifies the weights; ``None`` if a call must not be skipped."""
    found: list[Any] = []
    for module in model.modules():
        if module.training or module._forward_hooks or module._forward_pre_hooks:
            return None
        if module._backward_hooks or module._backward_pre_hooks:
            return None
        for own in (module._parameters, module._buffers):
            found += [(id(each), each._version) for each in own.values() if each is not None]
    return tuple(found)


def _is_same(x: Tensor, batch: Tensor) -> bool:
    if x is batch:
        return True
    if x.shape != batch.shape or x.dtype != batch.dtype or x.device != batch.device:
        return False
    try:  # a tensor inside torch.func.vmap or grad has no address
        return x.data_ptr() == batch.data_ptr() and x.stride() == batch.stride()
    except RuntimeError:
        return False


def _was_changed(found: Pass | None) -> bool:
    return found is not None and found.hidden._version != found.version
