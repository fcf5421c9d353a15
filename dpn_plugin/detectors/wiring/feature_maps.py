"""Feature maps of the last and of inner layers of a backbone, always B x C x H x W."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dpn_plugin.backbones import Backbone
from dpn_plugin.detectors.wiring.preserved_state import preserved_state
from dpn_plugin.detectors.wiring.shared_forward import SharedForward, recorded_outputs
from dpn_plugin.errors import UserError

#: the paper on NAC uses the four stages of a ResNet
LAYERS = 4


class NotApplicable(UserError):
    """A detector cannot be used with a model. The message is one sentence with the reason."""


class FinalMaps(nn.Module):
    """
    The last feature maps of a backbone, B x C x H x W, and the head that maps them to logits.

    :param backbone: the backbone that computes the maps
    :param size: height and width of the maps
    :param channels_last: whether the backbone itself computes them as B x H x W x C
    """

    def __init__(self, backbone: Backbone, size: Sequence[int], channels_last: bool) -> None:
        super().__init__()
        self.source = backbone
        self.size = tuple(size)
        self.channels_last = channels_last

    def forward(self, x: Tensor) -> Tensor:
        """Return the feature maps; contiguous, because hosts take views of them."""
        return self.source.feature_maps(x).contiguous()

    def head(self, maps: Tensor) -> Tensor:
        """Return the logits B x K of feature maps."""
        hidden = maps.permute(0, 2, 3, 1) if self.channels_last else maps
        return self.source.read(self.source.model.forward_head(hidden))


def final_maps(backbone: Backbone) -> FinalMaps:
    """
    Return the last feature maps of a backbone.

    :raises NotApplicable: if the backbone has none
    """
    with _example_input(backbone) as x:
        hidden, maps = backbone.model.forward_features(x), backbone.outputs(x).feature_maps
    if maps is None:
        raise NotApplicable(f"needs feature maps, and {backbone.name} has none")
    return FinalMaps(backbone, maps.shape[2:], hidden.shape != maps.shape)


def inner_layers(backbone: Backbone) -> list[nn.Module]:
    """
    Return the last layers in timm's ``feature_info``, in the order of computation.

    :raises NotApplicable: if it has none
    """
    return [module for module, _ in _inner(backbone)]


def spatial_mean(backbone: Backbone) -> Callable[[Tensor], Tensor]:
    """Return a function that averages an inner layer's output over positions or tokens: B x C."""
    axes = {3: (1,), 4: (1, 2) if _channels_last(_inner(backbone)) else (2, 3)}

    def mean(hidden: Tensor) -> Tensor:
        return hidden.mean(axes[hidden.ndim]) if hidden.ndim in axes else hidden.flatten(1)

    return mean


def stages(backbone: Backbone) -> list[nn.Module]:
    """
    Return modules to apply one after the other, each of which returns feature maps B x C x H x W.

    Each belongs to a later layer; the maps of the last one are the input of the head.

    :raises NotApplicable: if the backbone has no feature maps
    """
    last, inner = final_maps(backbone), _inner(backbone)
    layers = [module for module, output in inner[:-1] if output.ndim == 4]
    first = _First(last, layers, _channels_last(inner))
    return [first, *(_Next(first, index + 1) for index in range(len(layers)))]


class _First(nn.Module):
    """
    Runs the whole model, returns the feature maps of the first layer and keeps the others.

    Hosts expect a plain sequence of layers, which few models are; the following modules return the
    maps kept here.
    """

    def __init__(self, last: FinalMaps, layers: Sequence[nn.Module], channels_last: bool) -> None:
        super().__init__()
        self.last = last
        self.layers = tuple(layers)  # not a ModuleList: the backbone contains them already
        self.channels_last = channels_last
        self.kept: list[Tensor] = []

    @property
    def read_layers(self) -> tuple[nn.Module, ...]:
        """The layers whose outputs are read; a shared pass keeps them."""
        return self.layers

    def forward(self, x: Tensor) -> Tensor:
        final, outputs = self._shared(x) or self._computed(x)
        self.kept = [*map(self._maps, outputs), final]
        return self.kept[0]

    def _shared(self, x: Tensor) -> tuple[Tensor, list[Tensor]] | None:
        forward = self.last.source.model.forward_features
        if torch.is_grad_enabled() or not isinstance(forward, SharedForward):
            return None
        found = forward.find(x)
        if found is None or not found.layers.keys() >= set(self.layers):
            return None
        return self.last(x), [found.layers[layer].detach() for layer in self.layers]

    def _computed(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        with recorded_outputs(self.layers) as outputs:
            final = self.last(x)
        return final, [outputs[index] for index in range(len(self.layers))]

    def _maps(self, hidden: Tensor) -> Tensor:
        return hidden.permute(0, 3, 1, 2).contiguous() if self.channels_last else hidden


class _Next(nn.Module):
    """Returns the kept feature maps of a later layer; its input is ignored."""

    def __init__(self, first: _First, index: int) -> None:
        super().__init__()
        self.first = first
        self.index = index

    def forward(self, previous: Tensor) -> Tensor:
        return self.first.kept[self.index]


def _inner(backbone: Backbone) -> list[tuple[nn.Module, Tensor]]:
    """Return the last layers and their outputs, without layers that did not return a tensor."""
    modules = dict(backbone.model.named_modules())
    names = [each["module"] for each in getattr(backbone.model, "feature_info", None) or ()]
    layers = [modules[name] for name in names if name in modules]
    with _example_input(backbone) as x, recorded_outputs(layers) as outputs:
        backbone(x)
    ran = [(layers[index], output) for index, output in outputs.items()]
    if not ran:
        raise NotApplicable(f"needs layers by name, and timm names none of {backbone.name}")
    return ran[-LAYERS:]


def _channels_last(inner: Sequence[tuple[nn.Module, Tensor]]) -> bool:
    # images are square: the two axes of equal length are the positions
    maps = [output for _, output in inner if output.ndim == 4]
    return bool(maps) and maps[-1].shape[1] == maps[-1].shape[2] != maps[-1].shape[3]


@contextmanager
def _example_input(backbone: Backbone) -> Iterator[Tensor]:
    """Within the block, provide one input of zeros for a model in evaluation mode."""
    with preserved_state([backbone]), torch.no_grad():
        yield torch.zeros(1, *backbone.input_size, device=next(backbone.parameters()).device)
