"""The three Gaussians, their score, their sources and their gap."""

import warnings

import numpy as np
import pytest
import torch
from pytorch_ood.api import ModelNotSetException, RequiresFittingException, Task
from scipy.stats import multivariate_normal
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from dpn_plugin import functional
from dpn_plugin.detectors import GaussianKL, representation
from dpn_plugin.detectors.gaussian_kl import SOURCES


def sample(
    correct: int = 300, wrong: int = 60, ood: int = 200, classes: int = 4, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits like those of DPN-: confident if correct, lower if wrong, far below zero if OOD."""
    generator = torch.Generator().manual_seed(seed)
    count = correct + wrong + ood
    logits = torch.randn(count, classes, generator=generator, dtype=torch.float64)
    predicted = torch.arange(count) % classes
    height = torch.cat([torch.full((correct,), 9.0), torch.full((wrong + ood,), 5.0)])
    logits += height.unsqueeze(1) * torch.nn.functional.one_hot(predicted, classes)
    logits[correct + wrong :] -= 7
    labels = predicted.clone()
    labels[correct : correct + wrong] = (predicted[correct : correct + wrong] + 1) % classes
    labels[correct + wrong :] = -1
    return logits, labels


def groups(logits: Tensor, labels: Tensor) -> dict[str, np.ndarray]:
    """The points of each source, computed from the definition."""
    points = torch.stack(
        [
            torch.softmax(logits, dim=1).amax(dim=1),
            torch.log(-torch.distributions.Dirichlet(logits.exp()).entropy()),
        ],
        dim=1,
    ).numpy()
    right = (logits.argmax(dim=1) == labels).numpy()
    ood = (labels < 0).numpy()
    return {"correct": points[right], "misclassified": points[~right & ~ood], "ood": points[ood]}


def densities(fit: tuple[Tensor, Tensor], points: np.ndarray) -> dict[str, np.ndarray]:
    return {
        source: multivariate_normal(found.mean(axis=0), np.cov(found.T)).pdf(points)
        for source, found in groups(*fit).items()
    }


def test_points_are_max_p_and_log_of_negative_differential_entropy() -> None:
    logits, labels = sample()
    expected = np.concatenate(list(groups(logits, labels).values()))
    assert representation(logits).numpy() == pytest.approx(expected, rel=1e-7)


def test_the_score_is_the_likelihood_ratio() -> None:
    fit, (logits, _) = sample(seed=1), sample(seed=2)
    n = densities(fit, representation(logits).numpy())
    expected = np.log(n["ood"]) - np.log(300 / 360 * n["correct"] + 60 / 360 * n["misclassified"])
    scores = GaussianKL().fit_logits(*fit).predict_logits(logits).numpy()
    usable = np.isfinite(expected)
    assert usable.sum() > 400
    assert scores[usable] == pytest.approx(expected[usable], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("ood_prior", [0.1, 0.5, 0.9])
def test_sources_follow_the_rule_of_bayes(ood_prior: float) -> None:
    fit, (logits, _) = sample(seed=1), sample(seed=2)
    n = densities(fit, representation(logits).numpy())
    shares = (1 - ood_prior) * 300 / 360, (1 - ood_prior) * 60 / 360, ood_prior
    joint = np.stack([w * n[source] for w, source in zip(shares, SOURCES, strict=True)], axis=1)
    found = GaussianKL(ood_prior=ood_prior).fit_logits(*fit).predict_source(logits).numpy()
    assert found.sum(axis=1) == pytest.approx(1)
    assert found == pytest.approx(joint / joint.sum(axis=1, keepdims=True), abs=1e-5)


def test_sources_are_predicted() -> None:
    detector = GaussianKL().fit_logits(*sample(seed=1))
    logits, labels = sample(seed=2)
    truth = torch.where(labels < 0, 2, (logits.argmax(dim=1) != labels).long())
    assert (detector.predict_source(logits).argmax(dim=1) == truth).double().mean() > 0.95


def test_the_gap_is_the_divergence_of_the_sample_moments() -> None:
    fit = sample()
    moments = {
        source: (torch.from_numpy(found.mean(axis=0)), torch.from_numpy(np.cov(found.T)))
        for source, found in groups(*fit).items()
    }
    pairs = [("correct", "ood"), ("ood", "correct"), ("misclassified", "ood")]
    pairs.append(("ood", "misclassified"))
    gap = GaussianKL().fit_logits(*fit).gap()
    assert set(gap) == {f"kl_{a}_{b}" for a, b in pairs}
    for a, b in pairs:
        expected = functional.gaussian_kl(*moments[a], *moments[b]).item()
        assert gap[f"kl_{a}_{b}"] == pytest.approx(expected, rel=1e-5)


def test_without_ood_samples_the_score_is_minus_the_in_domain_density() -> None:
    fit, (logits, _) = sample(ood=0), sample(seed=2)
    detector = GaussianKL().fit_logits(*fit)
    found = groups(*fit)
    n = [
        multivariate_normal(found[s].mean(axis=0), np.cov(found[s].T)).logpdf(
            representation(logits)
        )
        for s in SOURCES[:2]
    ]
    expected = -np.logaddexp(n[0] + np.log(300 / 360), n[1] + np.log(60 / 360))
    assert detector.predict_logits(logits).numpy() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    for method in (detector.gap, lambda: detector.predict_source(logits)):
        with pytest.raises(ValueError, match="needs OOD samples"):
            method()


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_fewer_than_three_misclassified_samples_are_left_out(wrong: int) -> None:
    logits, labels = sample(wrong=wrong)
    with pytest.warns(UserWarning, match=f"{wrong} misclassified samples are too few"):
        detector = GaussianKL().fit_logits(logits, labels)
    sources = detector.predict_source(logits)
    assert (sources[:, 1] == 0).all()
    assert sources.isfinite().all()
    gap = detector.gap()
    assert np.isnan([gap["kl_misclassified_ood"], gap["kl_ood_misclassified"]]).all()
    assert gap["kl_correct_ood"] > 0
    assert detector.predict_logits(logits).isfinite().all()


def test_some_spread_is_added_to_a_group_without_any() -> None:
    logits, labels = sample()
    logits[labels < 0] = torch.tensor([-2.0, -3.0, -3.0, -3.0], dtype=torch.float64)
    variance = representation(logits).var(dim=0).numpy()
    detector = GaussianKL().fit_logits(logits, labels)
    scores = detector.predict_logits(logits)
    assert scores.isfinite().all()
    assert scores[labels < 0].min() > scores[labels >= 0].max()
    covariance = detector.factors[2] @ detector.factors[2].T
    assert covariance.diagonal().numpy() == pytest.approx(1e-6 * variance)
    assert np.isfinite(list(detector.gap().values())).all()


def test_a_group_on_a_line_gets_a_ridge() -> None:
    logits, labels = sample()
    one = torch.tensor([[9.0, 0.0, 0.0, 0.0], [9.5, 0.0, 0.0, 0.0]], dtype=torch.float64)
    right = logits.argmax(dim=1) == labels
    logits[right], labels[right] = one.repeat(150, 1), 0
    assert GaussianKL().fit_logits(logits, labels).predict_logits(logits).isfinite().all()


@pytest.mark.parametrize("noise", [0.0, 1e-15])
def test_samples_that_are_all_the_same_are_refused(noise: float) -> None:
    logits = torch.tensor([[2.9, 0.1, 0.3]], dtype=torch.float64).repeat(23, 1)
    logits += noise * torch.randn(23, 3)
    with pytest.raises(ValueError, match="logits must differ: all have the same"):
        GaussianKL().fit_logits(logits, torch.zeros(23, dtype=torch.long))


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"correct": 2}, "at least 3 correctly classified in-domain samples to fit, not 2"),
        ({"correct": 0}, "at least 3 correctly classified in-domain samples to fit, not 0"),
        ({"ood": 2}, "no OOD samples or at least 3, not 2"),
        ({"ood": 1}, "no OOD samples or at least 3, not 1"),
    ],
)
def test_too_few_samples_are_refused_with_their_number(counts: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianKL().fit_logits(*sample(**counts))


def test_two_classes_work_also_at_the_uniform_dirichlet() -> None:
    logits, labels = sample(classes=2)
    detector = GaussianKL().fit_logits(logits, labels)
    ood = detector.predict_source(logits)[:, 2]
    assert ((ood > 0.5) == (labels < 0)).double().mean() > 0.9
    uniform = torch.zeros(1, 2)
    assert detector.predict_logits(uniform).isfinite().all()
    assert detector.predict_source(uniform).sum().item() == pytest.approx(1)


def test_extreme_logits_have_finite_scores_and_sources_that_sum_to_one() -> None:
    detector = GaussianKL().fit_logits(*sample())
    logits = torch.tensor([[1e3, 0, 0, 0], [-1e3, -1e3, -1e3, -1e3], [80.0, 80, 80, 80]])
    assert detector.predict_logits(logits).isfinite().all()
    assert detector.predict_source(logits).sum(dim=1).tolist() == pytest.approx([1, 1, 1])


def test_a_data_loader_keeps_the_ood_samples() -> None:
    logits, labels = sample()
    loader = DataLoader(TensorDataset(logits, labels), batch_size=64)
    model = torch.nn.Identity()
    fitted = GaussianKL(model).fit(loader)
    expected = GaussianKL().fit_logits(logits, labels)
    assert fitted.gap() == expected.gap()
    assert torch.equal(fitted.to("cpu")(logits), expected.predict_logits(logits))


def test_a_model_with_weights_is_fitted_without_its_gradients() -> None:
    logits, labels = sample()
    model = torch.nn.Linear(4, 4).double()
    torch.nn.init.eye_(model.weight)
    torch.nn.init.zeros_(model.bias)
    loader = DataLoader(TensorDataset(logits, labels), batch_size=100)
    detector = GaussianKL(model).fit(loader)
    assert not detector.means.requires_grad
    assert detector.gap() == pytest.approx(GaussianKL().fit_logits(logits, labels).gap())


def test_every_task_that_info_claims_runs() -> None:
    logits, labels = sample(correct=30, wrong=10, ood=24)
    pixels = logits.reshape(4, 4, 4, 4).movedim(-1, 1)
    assert GaussianKL.info.tasks == {Task.CLASSIFICATION, Task.SEGMENTATION}
    rows = GaussianKL().fit_logits(logits, labels)
    maps = GaussianKL().fit_logits(pixels, labels.reshape(4, 4, 4))
    assert maps.gap() == pytest.approx(rows.gap())
    expected = rows.predict_logits(logits).reshape(4, 4, 4)
    torch.testing.assert_close(maps.predict_logits(pixels), expected)
    sources = rows.predict_source(logits).reshape(4, 4, 4, 3)
    torch.testing.assert_close(maps.predict_source(pixels), sources)


def test_a_second_fit_replaces_the_first() -> None:
    detector = GaussianKL().fit_logits(*sample(seed=1)).fit_logits(*sample(ood=0))
    with pytest.raises(ValueError, match="gap needs OOD samples"):
        detector.gap()


def test_all_methods_raise_before_the_fit() -> None:
    detector, logits = GaussianKL(), torch.zeros(1, 3)
    assert detector.requires_fit
    for method in (detector.predict_logits, detector.predict_source):
        with pytest.raises(RequiresFittingException):
            method(logits)
    with pytest.raises(RequiresFittingException):
        detector.gap()


def test_inputs_without_a_model_are_refused() -> None:
    detector = GaussianKL().fit_logits(*sample())
    with pytest.raises(ModelNotSetException):
        detector.predict(torch.zeros(1, 4))
    with pytest.raises(ModelNotSetException):
        detector.fit(DataLoader(TensorDataset(*sample())))


@pytest.mark.parametrize("ood_prior", [0.0, 1.0, -0.1, 1.5, float("nan"), "half", None])
def test_a_prior_is_between_zero_and_one(ood_prior: object) -> None:
    with pytest.raises(
        ValueError, match=f"ood_prior must be .* between 0 and 1, not {ood_prior!r}"
    ):
        GaussianKL(ood_prior=ood_prior)


@pytest.mark.parametrize("shape", [(559,), (560, 1), (560, 4)])
def test_labels_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="y must have one label per sample"):
        GaussianKL().fit_logits(sample()[0], torch.zeros(shape, dtype=torch.long))


def test_a_label_beyond_the_classes_is_refused() -> None:
    logits, labels = sample()
    labels[7] = 4
    with pytest.raises(ValueError, match="y must be below the number of classes, 4, not 4"):
        GaussianKL().fit_logits(logits, labels)


def test_a_good_fit_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianKL().fit_logits(*sample())
