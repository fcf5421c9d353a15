"""Every measure against mpmath, golden values and two more independent references."""

import exact_dirichlet
import pytest
import torch
from exact_dirichlet import MEASURES
from logit_cases import KINDS, logits_of
from torch import Tensor

from dpn_plugin import functional

#: samples of each kind; mpmath needs a second for one of a thousand classes
COUNTS = {2: 24, 3: 16, 10: 6, 100: 2}
CASES = [(kind, classes, count) for classes, count in COUNTS.items() for kind in KINDS]
CASES += [("anywhere", 1000, 1), ("one dominates", 1000, 1)]
#: of a logarithm, a relative error of the argument is an absolute one
LOGARITHMS = ("log_precision", "log_neg_differential_entropy")

GOLDEN = [  # alpha, D.Ent, MI, from 60-digit arithmetic
    ([0.01, 0.01, 101.98], -199.13182, 0.00079299543),
    ([34.0] * 3, -3.4515471, 0.0097398498),
    ([10.0] * 3, -2.2690468, 0.032593412),
    ([3.0] * 3, -1.2180185, 0.10297737),
    ([0.1] * 3, -13.024983, 0.84404824),
    ([2.0] * 100, -370.6306, 0.227139),
    ([0.01] * 99 + [200.0], -9924.412, 0.0199206),
]


def errors(logits: Tensor, smallest: float) -> dict[str, float]:
    """Return the largest error of each measure where the exact value exceeds ``smallest``."""
    values = {name: getattr(functional, name)(logits).tolist() for name in MEASURES}
    worst = dict.fromkeys(MEASURES, 0.0)
    for i, sample in enumerate(logits.tolist()):
        for name, exact in exact_dirichlet.measures(sample).items():
            if abs(exact) > smallest:
                scale = max(1, abs(exact)) if name in LOGARITHMS else abs(exact)
                worst[name] = max(worst[name], float(abs(values[name][i] - exact) / scale))
    return worst


@pytest.mark.parametrize(("kind", "classes", "count"), CASES)
def test_float64_has_nine_digits(kind: str, classes: int, count: int) -> None:
    worst = errors(logits_of(kind, count, classes, bound=60), smallest=1e-20)
    assert max(worst.values()) < 1e-9, worst


@pytest.mark.parametrize(("kind", "classes", "count"), CASES)
def test_float32_has_four_digits(kind: str, classes: int, count: int) -> None:
    worst = errors(logits_of(kind, count, classes, bound=30).float(), smallest=1e-10)
    assert max(worst.values()) < 1e-4, worst


@pytest.mark.parametrize(("alpha", "d_ent", "mi"), GOLDEN)
def test_golden_values(alpha: list[float], d_ent: float, mi: float) -> None:
    measures = functional.dirichlet_measures(torch.tensor([alpha], dtype=torch.float64).log())
    assert measures.differential_entropy.item() == pytest.approx(d_ent, rel=1e-6)
    assert measures.mutual_information.item() == pytest.approx(mi, rel=1e-5)


def test_with_two_classes_only_the_uniform_dirichlet_has_entropy_zero() -> None:
    logits = torch.zeros(1, 2, dtype=torch.float64)
    assert functional.differential_entropy(logits).item() == 0
    assert functional.log_neg_differential_entropy(logits).isfinite().all()
    assert functional.differential_entropy(logits + 1e-6).item() < 0


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_differential_entropy_equals_that_of_torch(classes: int) -> None:
    logits = logits_of("anywhere", 50, classes, bound=3)
    expected = torch.distributions.Dirichlet(logits.exp()).entropy()
    torch.testing.assert_close(functional.differential_entropy(logits), expected)


def test_mutual_information_equals_that_of_samples() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0], [2.0, 2.5, 1.0]], dtype=torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        p = torch.distributions.Dirichlet(logits.exp()).sample((200_000,))
    expected = torch.special.entr(p.mean(dim=0)).sum(-1) - torch.special.entr(p).sum(-1).mean(0)
    torch.testing.assert_close(
        functional.mutual_information(logits), expected, atol=2e-3, rtol=2e-2
    )
