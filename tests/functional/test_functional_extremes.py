"""Large, small and confident logits: no overflow and no ties."""

import pytest
import torch
from exact_dirichlet import MEASURES
from logit_cases import KINDS, logits_of

from dpn_plugin import functional

#: measures that are finite for all logits; D.Ent itself grows like 1/alpha
ALWAYS_FINITE = tuple(name for name in MEASURES if name != "differential_entropy")


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEASURES)
def test_finite_up_to_80_in_float32(name: str, kind: str, classes: int) -> None:
    logits = logits_of(kind, 200, classes, bound=80).float()
    assert getattr(functional, name)(logits).isfinite().all()


@pytest.mark.parametrize("corner", [(80.0, 80.0), (-80.0, -80.0), (80.0, -80.0), (-80.0, 80.0)])
def test_finite_in_the_corners(corner: tuple[float, float]) -> None:
    logits = torch.full((1, 1000), corner[0])
    logits[0, 0] = corner[1]
    for name, value in functional.dirichlet_measures(logits)._asdict().items():
        assert value.isfinite().all(), name


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("values", [(1e3, 1e3), (-1e3, -1e3), (1e3, -1e3), (-1e3, 1e3)])
@pytest.mark.parametrize("name", ALWAYS_FINITE)
def test_logits_of_a_thousand_have_finite_values_and_gradients(
    name: str, values: tuple[float, float], classes: int
) -> None:
    logits = torch.full((1, classes), values[0])
    logits[0, 0] = values[1]
    logits.requires_grad_()
    value = getattr(functional, name)(logits)
    value.sum().backward()
    assert value.isfinite().all()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_log_of_differential_entropy_is_exact_where_the_value_overflows(classes: int) -> None:
    logits = torch.full((1, classes), -500.0)
    assert functional.differential_entropy(logits).item() == -torch.inf
    # -D.Ent = sum_c 1/alpha_c - K/alpha_0 + ..., with alpha_0 = K alpha_c
    expected = 500 + torch.log(torch.tensor(classes - 1.0)).item()
    assert functional.log_neg_differential_entropy(logits).item() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("classes", [2, 3, 100])
def test_strongly_ood_samples_do_not_tie(classes: int, dtype: torch.dtype) -> None:
    far, further = torch.tensor([[-25.0], [-40.0]], dtype=dtype).repeat(1, classes).split(1)
    far[0, 0] += 1
    further[0, 0] += 1
    for name in ("log_precision", "differential_entropy"):
        function = getattr(functional, name)
        assert function(far).item() > function(further).item(), name
    function = functional.log_neg_differential_entropy
    assert function(far).item() < function(further).item()


@pytest.mark.parametrize("name", ["one_minus_max_p", "entropy", "mutual_information"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_confident_samples_do_not_tie(name: str, dtype: torch.dtype) -> None:
    logits = torch.zeros(30, 10, dtype=dtype)
    logits[:, 3] = torch.linspace(20, 70, 30)
    assert (getattr(functional, name)(logits).diff() < 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits = logits_of("anywhere", 20, 5, bound=30).to(dtype)
    for ours, single in zip(
        functional.dirichlet_measures(logits),
        functional.dirichlet_measures(logits.float()),
        strict=True,
    ):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, single)
