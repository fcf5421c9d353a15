"""Fitting, scoring and tuning from stored outputs."""

import numpy as np
import pytest
import torch
from pytorch_ood import detector as host
from pytorch_ood.api import FeaturesDetector, LogitsDetector
from torch import Tensor, nn

import dpn_plugin
from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import GaussianKL, NotApplicable, fit, reads, scores, tune
from dpn_plugin.detectors.gaussian_kl import SOURCES
from dpn_plugin.errors import UserError

CLASSES, WIDTH = 3, 6


def no_batches() -> None:
    pytest.fail("inputs were requested")


def outputs(rows: int, seed: int = 0, ood: int = 0) -> dict[str, np.ndarray]:
    """Three clusters of features and their coordinates as logits; OOD samples are at the origin."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % CLASSES
    features = torch.randn(rows, WIDTH, generator=generator)
    features[:, :CLASSES] += 5 * nn.functional.one_hot(labels, CLASSES)
    features[rows - ood :] = 0.5 * torch.randn(ood, WIDTH, generator=generator)
    labels[rows - ood :] = -1
    logits = features[:, :CLASSES].clone()
    return {"logits": logits.numpy(), "features": features.numpy(), "labels": labels.numpy()}


class NeverCalled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pytest.fail("the model ran")


def head() -> nn.Linear:
    layer = nn.Linear(WIDTH, CLASSES)
    layer.weight.data, layer.bias.data = torch.eye(CLASSES, WIDTH), torch.zeros(CLASSES)
    return layer


STORED = {
    "dpn-gaussian-kl": {},
    "temperature-scaling": {},
    "open-max": {"tailsize": 5},
    "kl-matching": {},
    "knn": {"k": 3, "encoder": NeverCalled()},
    "mahalanobis": {"encoder": NeverCalled()},
    "rmd": {"encoder": NeverCalled()},
    "gmm": {"encoder": NeverCalled()},
    "she": {"encoder": NeverCalled(), "head": head()},
    "vim": {"encoder": NeverCalled(), "d": 3, "w": head().weight, "b": head().bias},
}


def create(name: str) -> object:
    options = STORED[name]
    return dpn_plugin.create_detector(name, **options) if options else create_on_logits(name)


def create_on_logits(name: str) -> object:
    return dpn_plugin.create_detector(name, NeverCalled())


@pytest.mark.parametrize("name", STORED)
def test_stored_outputs_need_no_forward_pass(name: str) -> None:
    train, test = outputs(90, ood=30), outputs(30, seed=1)
    detector = fit(create(name), train, no_batches)
    found = scores(detector, test, no_batches)
    assert found.shape == (30,)
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("name", sorted(set(STORED) - {"dpn-gaussian-kl"}))
def test_detectors_of_the_host_are_fitted_without_outliers(name: str) -> None:
    train, test = outputs(90, ood=30), outputs(30, seed=1)
    known = {key: array[:60] for key, array in train.items()}
    with_ood = scores(fit(create(name), train, no_batches), test, no_batches)
    without = scores(fit(create(name), known, no_batches), test, no_batches)
    torch.testing.assert_close(with_ood, without)


def test_gaussian_kl_is_fitted_with_outliers() -> None:
    train = outputs(300, ood=100)
    detector = fit(GaussianKL(), train, no_batches)
    sources = detector.predict_source(torch.from_numpy(train["logits"]))  # raises without outliers
    assert (sources[200:].argmax(dim=1) == SOURCES.index("ood")).float().mean() > 0.8


@pytest.mark.parametrize("name", STORED)
def test_scores_are_the_same_for_any_batching(name: str) -> None:
    detector = fit(create(name), outputs(90, ood=30), no_batches)
    test = outputs(12, seed=1)
    rows = [{key: array[i : i + 1] for key, array in test.items()} for i in range(12)]
    alone = torch.cat([scores(detector, each, no_batches) for each in rows])
    torch.testing.assert_close(alone, scores(detector, test, no_batches), rtol=1e-5, atol=1e-7)


def test_rmd_is_exact_for_linearly_dependent_features() -> None:
    train, test = outputs(60), outputs(12, seed=1)
    for each in (train, test):  # as after a layer norm
        each["features"] -= each["features"].mean(axis=1, keepdims=True)
    found = scores(fit(host.RMD(None), train, no_batches), test, no_batches)
    z, y, x = (torch.from_numpy(a) for a in (train["features"], train["labels"], test["features"]))
    z, x, ridge = z.double(), x.double(), 1e-6 * torch.eye(WIDTH).double()
    means = torch.stack([z[y == c].mean(dim=0) for c in range(CLASSES)])

    def distance(centre: Tensor, scatter: Tensor) -> Tensor:
        centred = x - centre
        return (centred * torch.linalg.solve(scatter + ridge, centred.T).T).sum(dim=1)

    within, around = z - means[y], z - z.mean(dim=0)
    classes = torch.stack([distance(mean, within.T @ within) for mean in means])
    expected = classes.min(dim=0).values - distance(z.mean(dim=0), around.T @ around)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-8)


def test_open_max_scores_one_sample_as_in_a_batch_of_all_classes() -> None:
    detector = fit(create_on_logits("open-max"), outputs(90), no_batches)
    test = outputs(9, seed=1)  # every class is predicted, so the host's own scores are right
    expected = detector.predict_logits(torch.from_numpy(test["logits"]))
    one = {key: array[:1] for key, array in test.items()}
    torch.testing.assert_close(scores(detector, one, no_batches), expected[:1])


def test_the_default_precision_is_restored_after_an_error() -> None:
    train = {**outputs(30), "labels": np.full(30, 2)}  # no class 0: the host asserts
    with pytest.raises(UserError, match="Mahalanobis cannot be fitted"):
        fit(host.Mahalanobis(None), train, no_batches)
    assert torch.get_default_dtype() == torch.float32


def test_the_error_of_the_host_is_part_of_the_message() -> None:
    with pytest.raises(UserError, match=r"KNN cannot be fitted: k=50 exceeds .* \(30\)"):
        fit(host.KNN(None), outputs(30), no_batches)


def test_missing_features_are_named_in_one_sentence() -> None:
    logits = {"logits": outputs(30)["logits"], "labels": outputs(30)["labels"]}
    reason = "KNN needs features, and this model gives logits and labels."
    with pytest.raises(NotApplicable, match=reason):
        fit(host.KNN(None), logits, no_batches)


class Broken(LogitsDetector):
    model = None

    def predict_logits(self, logits: Tensor) -> Tensor:
        return torch.where(logits[:, 0] > 0, torch.nan, logits[:, 0])


class PerPixel(LogitsDetector):
    def predict_logits(self, logits: Tensor) -> Tensor:
        return logits


def test_scores_that_are_not_finite_are_counted() -> None:
    test = {"logits": np.array([[1.0, 0], [-1, 0], [2, 0]], np.float32)}
    with pytest.raises(UserError, match="Broken gives 2 of 3 scores that are not finite"):
        scores(Broken(), test, no_batches)
    with pytest.raises(UserError, match=r"PerPixel gives scores of shape \(3, 2\)"):
        scores(PerPixel(), test, no_batches)


class OnlyInputs(FeaturesDetector):
    """Derived from the base class for features, without any of its methods."""

    requires_fit = True

    def __init__(self) -> None:
        self.batch_sizes: list[int] = []

    def fit(self, data_loader: object) -> "OnlyInputs":
        self.batch_sizes = [len(y) for _ in range(2) for _, y in data_loader]
        return self

    def predict(self, x: Tensor) -> Tensor:
        return x.flatten(1).sum(dim=1)


def test_a_detector_without_methods_for_features_gets_inputs() -> None:
    labels = torch.tensor([0, -1, 1, 2, -1, -1])
    x = torch.arange(6.0)[:, None]

    def batches() -> object:
        return zip(x.split(2), labels.split(2), strict=True)

    detector = fit(OnlyInputs(), {}, batches)
    assert reads(detector) == "inputs"
    assert detector.batch_sizes == [1, 2, 1, 2]  # twice, and without OOD samples
    assert torch.equal(scores(detector, {}, batches), x[:, 0])


@pytest.mark.parametrize("name", ["mahalanobis-odin", "odin", "nacue", "grad-norm", "mcd"])
def test_running_a_model_does_not_change_its_state(name: str) -> None:
    torch.manual_seed(0)
    backbone = create_backbone("test_resnet", CLASSES, image_size=16, drop_rate=0.5).train()
    backbone.model.layer1.eval()
    modes = [module.training for module in backbone.modules()]
    weights = {key: value.clone() for key, value in backbone.state_dict().items()}
    kept = torch.ones_like(backbone.weight)
    backbone.model.get_classifier().weight.grad = kept
    x, y = torch.randn(12, 3, 16, 16), torch.arange(12) % CLASSES
    stored = backbone.eval().outputs(x).features.detach().numpy()
    for module, mode in zip(backbone.modules(), modes, strict=True):
        module.training = mode

    stream = torch.random.get_rng_state()
    detector = dpn_plugin.create_detector(name, backbone)
    train = {"features": stored, "labels": y.numpy()}
    first, second = (
        scores(fit(detector, train, lambda: [(x, y)]), {}, lambda: [(x, y)]) for _ in range(2)
    )
    torch.testing.assert_close(first, second)
    assert torch.equal(torch.random.get_rng_state(), stream)
    assert [module.training for module in backbone.modules()] == modes
    gradients = [each.grad for each in backbone.parameters() if each.grad is not None]
    assert len(gradients) == 1
    assert gradients[0] is kept
    assert torch.equal(kept, torch.ones_like(kept))
    for key, value in backbone.state_dict().items():
        assert torch.equal(value, weights[key])


def test_tuning_chooses_a_possible_number_of_neighbours() -> None:
    detector = host.KNN(NeverCalled())
    detector.hyperparameter_space = {"k": [1, 5, 1000]}
    train, held_out = outputs(90, ood=30), outputs(60, seed=1, ood=30)
    best = tune(detector, train, no_batches, held_out, no_batches)
    assert best["k"] == detector.k
    assert best["k"] in (1, 5)  # there are 60 training samples, so no 1000 neighbours
    assert isinstance(detector.encoder, NeverCalled)
    assert scores(detector, held_out, no_batches).shape == (60,)


def test_tuning_inverts_the_differential_entropy_if_outliers_have_the_lower() -> None:
    detector = dpn_plugin.create_detector("dpn-dent")
    held_out = outputs(60, ood=30)
    held_out["logits"][30:] -= 8
    assert tune(detector, held_out, no_batches, held_out, no_batches) == {"invert": True}
    assert detector.invert
    assert detector.model is None


def test_tuning_a_detector_without_hyperparameters_only_fits_it() -> None:
    detector, train = host.GMM(None), outputs(60)
    assert tune(detector, train, no_batches, train, no_batches) == {}
    assert scores(detector, train, no_batches).shape == (60,)


def test_tuning_needs_held_out_samples_of_both_kinds() -> None:
    with pytest.raises(UserError, match="held-out outliers"):
        tune(host.KNN(None), outputs(90), no_batches, outputs(30), no_batches)
