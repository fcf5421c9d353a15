"""Runs whose networks are heads on the features of given weights, which stay as they are."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from dpn_plugin.backbones import Backbone, base_hash, create_head
from dpn_plugin.data import Augmentation, Batches, Samples, Transform
from dpn_plugin.errors import UserError
from dpn_plugin.runs.config import TrainConfig
from dpn_plugin.runs.method_options import method_of
from dpn_plugin.runs.methods import Network
from dpn_plugin.runs.networks import attach_branch, create_network
from dpn_plugin.runs.readout import num_outputs

_BATCH = 256
#: said of every network that gets a new classifier, which a frozen one always does
_NEW_HEAD = r"(?s).*starts from random weights"


@dataclass(frozen=True)
class View:
    """
    One augmented view of a data set; the same for all methods and seeds.

    :param number: decides the random numbers
    :param augmentation: of the images
    """

    number: int
    augmentation: Augmentation

    def batches(
        self, samples: Samples, size: int, start: int = 0, step: int = 1
    ) -> Iterator[Tensor]:
        """
        Return augmented images, batch by batch.

        :param samples: the images
        :param size: of a batch
        :param start: number of the first batch
        :param step: from one batch to the next; those between are not read
        """
        generator = torch.Generator().manual_seed(self.number)
        batches, at = Batches(samples, size, shuffle=False), 0
        for number, (x, _) in enumerate(batches.epoch(0, start, step)):
            # the numbers of a batch follow those of all batches before it
            for _ in range(at, start + number * step):
                self.augmentation.skip(size, generator)
            at = start + number * step + 1
            yield self.augmentation(x, generator)


#: the images as they are
NO_VIEW = View(0, Augmentation())


@dataclass(frozen=True)
class FrozenBase:
    """
    A network that computes features and is not trained.

    :param backbone: with a classifier that is not used
    :param transform: what brings a batch of images to it
    :param sha256: the hash of its weights, without the classifier
    """

    backbone: Backbone
    transform: Transform
    sha256: str

    def features(self, images: Iterable[Tensor], device: torch.device) -> Iterator[Tensor]:
        """
        Return the features of batches, on the CPU, batch by batch.

        :param images: what :meth:`View.batches` gives
        :param device: where to compute
        """
        encoder = self.backbone.to(device).eval().encoder
        for x in images:
            with torch.inference_mode():
                yield encoder(self.transform(x.to(device))).float().cpu()

    def as_points(
        self, samples: Samples, view: View | None = None, *, device: torch.device
    ) -> Samples:
        """Return the samples, or a view of them, with features in the place of images."""
        images = (view or NO_VIEW).batches(samples, _BATCH)
        return replace(samples, inputs=torch.cat(list(self.features(images, device))))


def is_frozen(config: TrainConfig) -> bool:
    """Return whether a run trains heads alone."""
    return config.recipe.freeze and method_of(config).trains


def load_base(config: TrainConfig, shape: tuple[int, ...]) -> FrozenBase:
    """
    Return the network below the heads of a run.

    :param config: the configuration of the run
    :param shape: of one image, C x H x W
    :raises UserError: if no weights are given, or they cannot be had
    """
    if not config.has_given_weights:
        raise UserError(
            "freeze keeps the weights that are given, and none are: use --pretrained or --weights "
            "FILE (in a suite: pretrained = true or weights in [train])."
        )
    if len(shape) != 3:
        raise UserError("freeze is for images: there are no given weights for points.")
    # dropout belongs to the head: passes of mcdp must not change the features
    recipe = config.recipe.model_copy(update={"drop_rate": 0.0})
    config = config.model_copy(update={"recipe": recipe})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NEW_HEAD)
        # its own classifier is not used; a seed, because that must not depend on the caller
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            backbone = create_network(config, Network("classifier", "ce"), shape, 2)
    mean, std, interpolation, crop = backbone.preprocessing
    size = (backbone.input_size[1], backbone.input_size[2])
    transform = Transform(mean, std, size, interpolation, crop)
    return FrozenBase(backbone.eval(), transform, base_hash(backbone))


def head_of(config: TrainConfig, network: Network, width: int, num_classes: int) -> Backbone:
    """
    Return an untrained head, with weights from torch's random state.

    :param config: the configuration of the run
    :param network: which network of the method
    :param width: of the features
    :param num_classes: number of in-domain classes
    """
    make = partial(create_head, config.backbone, width)
    head = config.recipe.head
    # a recipe's drop_rate is that before the classifier, which the head is
    drop_rate = head.drop_rate or config.recipe.drop_rate or 0.0
    backbone = make(num_outputs(network, num_classes), head.hidden, drop_rate)
    attach_branch(backbone, network)
    return backbone
