"""Any timm model as logits, pooled features, feature maps and a head."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dpn_plugin.backbones.heads import apply_heads, describe, head_modules, is_linear, perturbed
from dpn_plugin.backbones.inputs import Preprocessing, own_preprocessing
from dpn_plugin.errors import UserError

#: the attribute of a timm model that holds a branch, and the prefix of its tensors
BRANCH = "ood_branch"


class Outputs(NamedTuple):
    """
    The outputs of one forward pass of a backbone.

    :param logits: B x K
    :param features: B x D, what timm's ``forward_head(..., pre_logits=True)`` returns
    :param feature_maps: B x C x H x W, or ``None`` where the family has none (tokens, points)
    """

    logits: Tensor
    features: Tensor
    feature_maps: Tensor | None


class Backbone(nn.Module):
    """
    A timm model with access to its parts: features, feature maps and head.

    The model itself is not changed: ``backbone.model.state_dict()`` has timm's keys.

    :param model: a timm model that returns logits
    :param name: its timm id
    :param stem: ``"default"`` or ``"small"``
    :param input_size: shape of one input, (C, H, W), or (C,) for points

    Attributes: ``preprocessing``, timm's own for this model; ``splits``, whether the logits follow
    from the features through the head (see :meth:`measure`); ``weights_classes``, the number of
    classes of the head in the weights that were given, if any.
    """

    def __init__(self, model: nn.Module, name: str, stem: str, input_size: tuple[int, ...]) -> None:
        super().__init__()
        self.model: Any = model
        self.name = name
        self.stem = stem
        self.input_size = input_size
        self.preprocessing: Preprocessing = own_preprocessing(model, channels=input_size[0])
        self.splits = True
        self.weights_classes: int | None = None
        self._width: int | None = None
        self._readout: Callable[[Tensor], Tensor] | None = None
        self._classes: int | None = None

    @property
    def mean(self) -> tuple[float, ...]:
        """The mean of each channel in timm's configuration of the model."""
        return self.preprocessing.mean

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel in timm's configuration of the model."""
        return self.preprocessing.std

    @property
    def num_classes(self) -> int:
        """The number of logits, K."""
        return self._classes or self.model.num_classes

    @property
    def num_features(self) -> int:
        """The width D of the features that the head takes."""
        # timm's num_features counts the channels of the feature maps; some heads widen them first
        if self._width is not None:
            return self._width
        return self.weight.shape[1] if self.is_linear else self.model.head_hidden_size

    @property
    def branch(self) -> Any:
        """The module that a loss has put beside the classifier, or ``None``."""
        return getattr(self.model, BRANCH, None)

    def attach_branch(self, branch: nn.Module | None) -> None:
        """
        Put a module beside the classifier: its tensors belong to those of the model.

        :param branch: what the loss of the network reads and trains; nothing is done without one
        """
        if branch is not None:
            setattr(self.model, BRANCH, branch)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits B x K."""
        return self.read(self.model(x))

    def read_out(self, readout: Callable[[Tensor], Tensor], num_classes: int) -> None:
        """
        Return logits that are computed from the outputs of the model from now on.

        :param readout: gives B x K for outputs of any width
        :param num_classes: K
        """
        self._readout, self._classes = readout, num_classes

    def read(self, outputs: Tensor) -> Tensor:
        """
        Return the logits of the model's outputs: they themselves, unless there is a readout.

        :param outputs: of the model, one row for each sample
        """
        return outputs if self._readout is None else self._readout(outputs)

    def outputs(self, x: Tensor) -> Outputs:
        """
        Return logits, features and feature maps from one forward pass.

        :param x: images B x C x H x W (or points B x C)
        """
        hidden = self.model.forward_features(x)
        features = self._pooled(hidden)
        heads = head_modules(self.model)
        whole = apply_heads(heads, features) if self.splits else self.model.forward_head(hidden)
        return Outputs(self.read(whole), features, self._maps(hidden))

    def encoder(self, x: Tensor) -> Tensor:
        """Return features B x D."""
        return self._pooled(self.model.forward_features(x))

    def feature_maps(self, x: Tensor) -> Tensor:
        """
        Return feature maps B x C x H x W.

        :param x: images B x C x H x W
        :raises UserError: if the family has none
        """
        maps = self._maps(self.model.forward_features(x))
        if maps is None:
            raise UserError(f"Backbone {self.name!r} has no feature maps, only features.")
        return maps

    def head(self, features: Tensor) -> Tensor:
        """
        Return logits B x K.

        :param features: B x D, as :meth:`encoder` returns them
        :raises UserError: if the logits do not follow from the features
        """
        if not self.splits:
            raise UserError(
                f"The logits of {self.name!r} do not follow from its features through one head."
            )
        return self.read(apply_heads(head_modules(self.model), features))

    @torch.no_grad()
    def measure(self, x: Tensor) -> None:
        """
        Find the width of the features, and whether the head turns them into the model's logits.

        timm's families differ too much for a list of names, so the parts are compared with the
        whole. The result is kept in ``splits`` and ``num_features``.

        :param x: one input, for a model in evaluation mode
        """
        self._width = self.encoder(x).shape[1]
        try:
            with perturbed(self.model):
                logits = self.model(x)
                parts = apply_heads(head_modules(self.model), self.encoder(x))
        except (RuntimeError, TypeError, ValueError, IndexError):
            self.splits = False  # its heads read parts of the features, or something else
            return
        # logits may be of any size in a network that is not trained
        near = 1e-3 * float(logits.abs().max().nan_to_num())
        same = parts.shape == logits.shape
        self.splits = same and torch.allclose(parts, logits, 0.0, near, equal_nan=True)

    @property
    def is_linear(self) -> bool:
        """Whether the head is one linear layer, so that it has a weight and a bias."""
        return self.splits and self._readout is None and is_linear(head_modules(self.model))

    @property
    def head_description(self) -> str:
        """What the head is, for messages: ``"a Linear"``, ``"the average of 2"``."""
        found = describe(head_modules(self.model))
        return found if self._readout is None else f"{found} with a readout"

    @property
    def weight(self) -> Tensor:
        """The weight of the head, K x D. Raises :class:`UserError` where the head is not linear."""
        return self._linear_head().weight.flatten(1)

    @property
    def bias(self) -> Tensor | None:
        """The bias of the head, K. Raises :class:`UserError` where the head is not linear."""
        return self._linear_head().bias

    def check_input(self, shape: Sequence[int]) -> None:
        """
        Check the shape of the data against the input of the model.

        :param shape: shape of one image, (C, H, W), or point, (C,)
        :raises UserError: if the model takes another one
        """
        if tuple(shape) != self.input_size:
            raise UserError(
                f"Backbone {self.name!r} takes inputs of {_readable(self.input_size)},"
                f" the data has {_readable(shape)}."
            )

    def _linear_head(self) -> Any:
        if not self.is_linear:
            raise UserError(
                f"The head of {self.name!r} is not linear but {self.head_description}: no weight, "
                "no bias."
            )
        return head_modules(self.model)[0]

    def _pooled(self, hidden: Any) -> Tensor:
        return self.model.forward_head(hidden, pre_logits=True).flatten(1)

    def _maps(self, hidden: Any) -> Tensor | None:
        if not isinstance(hidden, Tensor) or hidden.ndim != 4:
            return None
        # Swin and others keep channels last; num_features counts the channels before any pooling
        channels_last = hidden.shape[1] != self.model.num_features == hidden.shape[3]
        return hidden.permute(0, 3, 1, 2) if channels_last else hidden


def _readable(shape: Sequence[int]) -> str:
    if len(shape) != 3:
        return f"shape {tuple(shape)}"
    channels, height, width = shape
    return f"{channels} channel{'s' * (channels != 1)} and {height}x{width} pixels"
