"""Detectors that share passes give the scores that the hosts give alone, to the last digit."""

from collections.abc import Iterator

import pytest
import torch
from pytorch_ood.api import Detector, GradientDetector
from pytorch_ood.detector import Gram, MultiMahalanobis
from torch import Tensor

from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import NotApplicable, Together, create_detector, fits_on, reads
from dpn_plugin.detectors.stored.host_workarounds import fit_layers
from dpn_plugin.detectors.stored.inputs import Batches, Loader
from dpn_plugin.detectors.stored.openmax import open_max_scores
from dpn_plugin.detectors.stored.shortcuts import gram_vector
from dpn_plugin.detectors.wiring import preserved_state
from dpn_plugin.plugins import registry

CLASSES, BATCH = 3, 24
READ_INPUTS = (
    "gram", "nacue", "multi-mahalanobis", "mahalanobis-odin", "odin", "rank-feat", "mcd",
    "grad-norm", "grad-uncertainty",
)  # fmt: skip


def samples(count: int, seed: int, scale: float = 1.0, ood: int = 0) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed)) * scale
    labels = torch.arange(count) % CLASSES
    labels[count - ood :] = -1
    return x, labels


def batches(x: Tensor, y: Tensor) -> Batches:
    return lambda: zip(x.split(BATCH), y.split(BATCH), strict=True)


TRAIN, TESTS = samples(60, 0, ood=5), (samples(53, 1), samples(41, 2, 1.5))


class Alone:
    """A detector as pytorch-ood runs it, without anything of ours around it."""

    def __init__(self, detector: Detector, model: torch.nn.Module) -> None:
        self.detector, self.model = detector, model

    def fit(self) -> None:
        with preserved_state([self.model]):
            if isinstance(self.detector, MultiMahalanobis):
                fit_layers(self.detector, Loader(batches(*TRAIN)))
            elif fits_on(self.detector) == "features":
                self._fit_features()
            elif self.detector.requires_fit:
                self.detector.fit(Loader(batches(*TRAIN)))

    def _fit_features(self) -> None:
        known = TRAIN[1] >= 0
        with torch.no_grad():
            self.detector.fit_features(self.model.encoder(TRAIN[0][known]), TRAIN[1][known])

    def scores(self, x: Tensor) -> Tensor:
        gradients = isinstance(self.detector, GradientDetector)
        with preserved_state([self.model]), torch.set_grad_enabled(gradients):
            return torch.cat([self.detector.predict(part).detach() for part in x.split(BATCH)])


def scorable(backbone: str) -> dict[str, Detector]:
    """New detectors that read inputs, for weights that are always the same."""
    torch.manual_seed(0)
    model = create_backbone(backbone, CLASSES, image_size=32, stem="default", drop_rate=0.2).eval()
    found = {}
    for name in READ_INPUTS:
        try:
            found[name] = create_detector(name, model)
        except NotApplicable:
            continue
    return found


def model_of(detectors: dict[str, Detector]) -> torch.nn.Module:
    return detectors["odin"].model


@pytest.mark.parametrize("backbone", ["test_resnet", "test_vit", "test_convnext"])
def test_scores_are_those_of_the_host_alone(backbone: str) -> None:
    alone, ours = scorable(backbone), scorable(backbone)
    references = {name: Alone(each, model_of(alone)) for name, each in alone.items()}
    for each in references.values():
        each.fit()
    together = Together(ours)
    fit_all(together, ours)
    for x, y in TESTS:
        found = together.score(batches(x, y))
        assert not together.failures
        for name, each in references.items():
            expected = each.scores(x)
            assert torch.equal(found[name], expected), name
            assert expected.std() > 0


def fit_all(together: Together, detectors: dict[str, Detector]) -> None:
    fitted = [name for name, each in detectors.items() if each.requires_fit]
    together.fit((name for name in fitted if fits_on(detectors[name]) == "inputs"), batches(*TRAIN))
    for name in fitted:
        if fits_on(detectors[name]) == "features":
            Alone(detectors[name], model_of(detectors))._fit_features()


def test_the_list_has_every_detector_that_reads_inputs() -> None:
    torch.manual_seed(0)
    model = create_backbone("test_resnet", CLASSES, image_size=32, stem="default", drop_rate=0.2)
    model.eval()
    found = set()
    for name in registry.list_detectors():
        try:
            if reads(create_detector(name, model)) == "inputs":
                found.add(name)
        except NotApplicable:
            continue
    assert found == set(READ_INPUTS)


@pytest.mark.parametrize("shape", [(3, 1), (17, 4), (64, 49), (300, 1), (600, 9)])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_gram_vectors_in_parts_are_those_of_a_whole_batch(shape: tuple[int, int], p: int) -> None:
    maps = torch.randn(37, shape[0], shape[1], 1, generator=torch.Generator().manual_seed(p))
    assert torch.equal(gram_vector(maps, p), Gram._gram_vector(maps, p))


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_open_max_with_tables_is_the_host_with_a_row_for_every_class(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(200) % 5
    logits = torch.randn(200, 5, generator=generator) + 4 * torch.eye(5)[labels]
    for weight in (1.0, 0.5):
        detector = create_detector("open-max", euclid_weight=weight).fit_logits(logits, labels)
        tests = torch.randn(rows, 5, generator=generator) * 3
        distributions = detector._openmax.distributions
        found = open_max_scores(detector, tests)
        assert detector._openmax.distributions is distributions
        expected = detector.predict_logits(torch.cat([tests, torch.eye(5)]))[:rows]
        assert torch.equal(found, expected)


class Counting:
    """Counts the passes of a model through its first layer."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.passes = 0
        first = next(each for each in model.modules() if isinstance(each, torch.nn.Conv2d))
        compute = first.forward

        def counted(x: Tensor) -> Tensor:
            self.passes += 1
            return compute(x)

        first.forward = counted


def test_feature_maps_are_computed_once_for_all_detectors() -> None:
    detectors = {name: each for name, each in scorable("test_resnet").items() if name != "mcd"}
    together, counting = Together(detectors), Counting(model_of(detectors))
    fit_all(together, detectors)
    assert counting.passes == 3 + 1  # three batches of training data, and their stored features
    counting.passes = 0
    together.score(batches(*samples(2 * BATCH, 1)))
    assert not together.failures
    assert counting.passes == 2 * 3  # ODIN and MahalanobisODIN run a perturbed input each


class Broken(Detector):
    """Fails in its second batch."""

    requires_fit = True

    def fit(self, loader: Iterator[tuple[Tensor, Tensor]]) -> "Broken":
        for index, _ in enumerate(loader):
            if index:
                raise KeyError("no more")
        return self

    def predict(self, x: Tensor) -> Tensor:
        raise KeyError("nothing")


def test_a_detector_that_fails_does_not_disturb_the_others() -> None:
    expected, detectors = scorable("test_resnet"), scorable("test_resnet")
    broken = {"broken in fit": Broken(), **detectors, "broken in predict": Broken()}
    reference, together = Together(expected), Together(broken)
    fit_all(reference, expected)
    together.fit(
        ["broken in fit", *(n for n in detectors if fits_on(detectors[n]) == "inputs")],
        batches(*TRAIN),
    )
    assert set(together.failures) == {"broken in fit"}
    Alone(detectors["mahalanobis-odin"], model_of(detectors))._fit_features()
    found = together.score(batches(*TESTS[0]))
    assert set(together.failures) == {"broken in fit", "broken in predict"}
    scores = reference.score(batches(*TESTS[0]))
    assert found.keys() == scores.keys()
    assert all(torch.equal(found[name], scores[name]) for name in found)


def test_an_interruption_ends_all_detectors() -> None:
    detectors = scorable("test_resnet")
    together = Together(detectors)

    def interrupted() -> Iterator[tuple[Tensor, Tensor]]:
        yield from list(batches(*TRAIN)())[:1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together.fit(["gram", "nacue"], interrupted)
    model = model_of(detectors)
    assert "forward_features" not in vars(model.model)
    assert all(each.requires_grad for each in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_the_time_of_detectors_adds_up() -> None:
    together = Together(scorable("test_resnet"))
    fit_all(together, together.detectors)
    together.score(batches(*TESTS[0]))
    seconds = {name: together.seconds(name) for name in together.detectors}
    assert all(each > 0 for each in seconds.values())
