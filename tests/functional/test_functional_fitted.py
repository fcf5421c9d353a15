"""The fitted polynomials of float32 against mpmath, eager and compiled."""

import shutil

import mpmath
import pytest
import torch
from exact_dirichlet import MEASURES, measures
from logit_cases import logits_of

from dpn_plugin import functional
from dpn_plugin.functional.fitted import _G, _H, fitted_remainders, polynomial

POINTS = torch.linspace(1e-4, 1, 400, dtype=torch.float64)  # v = 1 / (1 + a)


def exact_g(a: mpmath.mpf) -> mpmath.mpf:
    return mpmath.digamma(a + 1) - mpmath.log(a)


def exact_h_small(a: mpmath.mpf) -> mpmath.mpf:
    stirling = a - mpmath.log(2 * mpmath.pi) / 2
    return mpmath.loggamma(a + 1) + stirling - a * mpmath.digamma(a + 1) + 1


def test_polynomials_have_errors_below_5e_8_on_the_whole_interval() -> None:
    g, h = (polynomial(coefficients, POINTS).tolist() for coefficients in (_G, _H))
    with mpmath.workdps(40):
        for i, v in enumerate(POINTS.tolist()):
            a = 1 / mpmath.mpf(v) - 1
            log = mpmath.log(1 + a)
            assert abs(g[i] - (log - mpmath.digamma(a + 1)) / v) < 5e-8
            assert abs(h[i] - (exact_h_small(a) - log / 2)) < 5e-8


def test_remainders_have_six_digits_for_small_and_large_arguments() -> None:
    z = torch.linspace(-60, 60, 241)
    g, h = (values.tolist() for values in fitted_remainders(z))
    with mpmath.workdps(60):
        for i, each in enumerate(z.tolist()):
            a = mpmath.exp(mpmath.mpf(each))
            assert g[i] == pytest.approx(float(exact_g(a)), rel=1e-6)
            # absolute, scaled by the logarithm that h contains
            assert h[i] == pytest.approx(float(exact_h_small(a)), abs=5e-7 * (1 + abs(each)))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_float32_has_four_digits() -> None:
    logits = logits_of("anywhere", 40, 10, bound=30).float()
    ours = functional.dirichlet_measures(logits, compile=True)._asdict()
    for i, sample in enumerate(logits.tolist()):
        exact = measures(sample)
        for name in set(MEASURES) & set(ours):
            if abs(exact[name]) > 1e-10:
                assert ours[name][i].item() == pytest.approx(float(exact[name]), rel=1e-4), name
