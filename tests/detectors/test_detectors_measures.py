"""The detectors that score by one measure."""

import pytest
import torch
from pytorch_ood.api import LogitsDetector, ModelNotSetException, Task
from pytorch_ood.detector import EnergyBased, MaxSoftmax
from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.detectors import (
    DifferentialEntropy,
    MaxProbability,
    MutualInformation,
    Precision,
    PredictiveEntropy,
)

SCORES = {
    MaxProbability: lambda logits: 1 - torch.softmax(logits, dim=1).amax(dim=1),
    PredictiveEntropy: lambda logits: torch.special.entr(torch.softmax(logits, dim=1)).sum(dim=1),
    MutualInformation: functional.mutual_information,
    Precision: lambda logits: -torch.logsumexp(logits, dim=1),
    DifferentialEntropy: lambda logits: -torch.log(-functional.differential_entropy(logits)),
}


def random_logits(*shape: int, scale: float = 5.0) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("detector", SCORES)
def test_the_score_is_its_definition(detector: type[LogitsDetector]) -> None:
    logits = random_logits(50, 7)
    expected = SCORES[detector](logits)
    torch.testing.assert_close(detector().predict_logits(logits), expected)
    torch.testing.assert_close(detector.score(logits), expected)


@pytest.mark.parametrize("detector", SCORES)
def test_every_task_that_info_claims_runs(detector: type[LogitsDetector]) -> None:
    shapes = {Task.CLASSIFICATION: (4, 3), Task.SEGMENTATION: (2, 3, 5, 6)}
    assert detector.info.tasks == set(shapes)
    for task in detector.info.tasks:
        shape = shapes[task]
        scores = detector().predict_logits(random_logits(*shape))
        assert scores.shape == shape[:1] + shape[2:]
        assert scores.isfinite().all()


@pytest.mark.parametrize("detector", SCORES)
def test_info_cites_the_paper_that_the_docstring_names(detector: type[LogitsDetector]) -> None:
    assert detector.info.paper.title in " ".join(detector.__doc__.split())
    assert detector.info.paper.url.startswith("https://arxiv.org/abs/")
    assert not detector.requires_fit


@pytest.mark.parametrize("detector", SCORES)
def test_a_model_gives_the_logits(detector: type[LogitsDetector]) -> None:
    model = torch.nn.Linear(4, 3)
    x = torch.randn(6, 4)
    built = detector(model).to("cpu")
    assert built.device == torch.device("cpu")
    assert torch.equal(built(x), detector().predict_logits(model(x)))


@pytest.mark.parametrize("detector", SCORES)
def test_inputs_without_a_model_are_refused(detector: type[LogitsDetector]) -> None:
    with pytest.raises(ModelNotSetException):
        detector().predict(torch.zeros(1, 4))


@pytest.mark.parametrize("detector", SCORES)
def test_bad_logits_are_refused(detector: type[LogitsDetector]) -> None:
    with pytest.raises(ValueError, match="logits must be finite; 1 of 3"):
        detector().predict_logits(torch.tensor([[0.0, 1.0, torch.nan]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(2000, 10), (1, 10, 40, 40)])
def test_precision_ranks_exactly_like_energy(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    logits = random_logits(*shape).to(dtype)
    ours, energy = Precision().predict_logits(logits), EnergyBased(None).predict_logits(logits)
    torch.testing.assert_close(ours, energy)
    order = energy.flatten().argsort()
    # neighbours may only change places within the rounding of either sum
    rounding = 4 * torch.finfo(dtype).eps * energy.abs().max()
    assert (ours.flatten()[order].diff() >= -rounding).all()
    if dtype == torch.float64:
        assert torch.equal(ours.flatten().argsort(), order)


def test_max_probability_ranks_like_max_softmax() -> None:
    logits = random_logits(500, 5, scale=2.0)
    ours, theirs = (
        d.predict_logits(logits).argsort() for d in (MaxProbability(), MaxSoftmax(None))
    )
    assert torch.equal(ours, theirs)


def test_max_probability_has_no_ties_where_max_softmax_has() -> None:
    logits = torch.zeros(20, 10)
    logits[:, 0] = torch.linspace(20, 60, 20)
    assert len(MaxSoftmax(None).predict_logits(logits).unique()) == 1
    assert (MaxProbability().predict_logits(logits).diff() < 0).all()


@pytest.mark.parametrize("detector", SCORES)
def test_a_flat_sample_scores_above_a_confident_one(detector: type[LogitsDetector]) -> None:
    confident, flat = torch.tensor([[9.0, 1.0, 1.0]]), torch.tensor([[0.0, 0.0, 0.0]])
    score = detector().predict_logits
    assert score(flat).item() > score(confident).item()


def test_the_differential_entropy_of_sparse_samples_is_low_unless_inverted() -> None:
    confident, sparse = torch.tensor([[9.0, 1.0, 1.0]]), torch.full((1, 3), -5.0)
    plain, inverted = (DifferentialEntropy(invert=v).predict_logits for v in (False, True))
    assert plain(sparse).item() < plain(confident).item()
    assert inverted(sparse).item() > inverted(confident).item()


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
def test_differential_entropy_is_ranked_as_it_is(classes: int, scale: float) -> None:
    logits = random_logits(2000, classes, scale=scale)
    expected = functional.differential_entropy(logits).argsort()
    assert torch.equal(DifferentialEntropy().predict_logits(logits).argsort(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_differential_entropy_that_overflows_has_a_finite_score(
    classes: int, dtype: torch.dtype
) -> None:
    steps = torch.linspace(0, 1e4, 300, dtype=dtype)
    logits = torch.cat([steps.new_zeros(300, 1), -steps.unsqueeze(1).repeat(1, classes - 1)], dim=1)
    assert not functional.differential_entropy(logits).isfinite().all()
    scores = DifferentialEntropy().predict_logits(logits)
    assert scores.isfinite().all()
    assert (scores.diff() < 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_uniform_density_of_two_classes_has_the_largest_finite_score(
    dtype: torch.dtype,
) -> None:
    sizes = torch.tensor([0.0, 1e-17, 1e-12, 1e-6, 1e-3, 1.0], dtype=dtype)
    logits = torch.stack([sizes, -sizes], dim=1)
    scores = DifferentialEntropy().predict_logits(logits)
    assert scores.isfinite().all()
    assert (scores.diff() < 0).all()


@pytest.mark.parametrize("invert", [1, "yes", None])
def test_invert_is_true_or_false(invert: object) -> None:
    with pytest.raises(TypeError, match=f"invert must be True or False, not {invert!r}"):
        DifferentialEntropy(invert=invert)
