"""
Time the Dirichlet measures.

    python benchmark_suites/speed/measures.py

compares one pass of ``dirichlet_measures`` with the approach of the reference implementation
(scipy's psi and gammaln on exp(logits), five measures one by one) in the same run, on one thread.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from scipy.special import gammaln, psi

from dpn_plugin.functional import DirichletMeasures, dirichlet_measures

SHAPES = ((100_000, 10), (50_000, 100))
ROUNDS = 7


def reference(logits: np.ndarray) -> dict[str, np.ndarray]:
    """Return the five measures as in the reference implementation, each computed separately."""
    return {
        "max_p": _probabilities(logits).max(axis=1),
        "entropy": -(_probabilities(logits) * np.log(_probabilities(logits))).sum(axis=1),
        "mutual_information": _mutual_information(logits),
        "log_precision": np.log(np.exp(logits).sum(axis=1)),
        "differential_entropy": _differential_entropy(logits),
    }


def _probabilities(logits: np.ndarray) -> np.ndarray:
    alpha = np.exp(logits)
    return alpha / alpha.sum(axis=1, keepdims=True)


def _mutual_information(logits: np.ndarray) -> np.ndarray:
    alpha = np.exp(logits)
    alpha0 = alpha.sum(axis=1, keepdims=True)
    p = alpha / alpha0
    return -(p * (np.log(p) - psi(alpha + 1) + psi(alpha0 + 1))).sum(axis=1)


def _differential_entropy(logits: np.ndarray) -> np.ndarray:
    alpha = np.exp(logits)
    alpha0 = alpha.sum(axis=1, keepdims=True)
    normaliser = gammaln(alpha).sum(axis=1) - gammaln(alpha0[:, 0])
    return normaliser - ((alpha - 1) * (psi(alpha) - psi(alpha0))).sum(axis=1)


def best_times(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the best of several rounds; they alternate, so that a busy machine slows all alike."""
    for function in functions.values():
        function()  # warm-up
    times = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name] = min(times[name], time.process_time() - start)
    return times


def _check_agreement(logits: torch.Tensor, ours: DirichletMeasures) -> None:
    # the reference needs float64: in float32 it is less accurate than ours
    expected = reference(logits.double().numpy())
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(ours, name), values, rtol=1e-3, atol=1e-4, err_msg=name)


def main() -> None:
    """Print one line per shape: seconds of the reference, and our speed-ups."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print(f"{'logits':>14} {'scipy':>9} {'eager':>8} {'compiled':>9}")
    for shape in SHAPES:
        logits = 4 * torch.randn(shape, generator=generator)
        array = logits.numpy()
        for compile in (False, True):
            _check_agreement(logits, dirichlet_measures(logits, compile=compile))
        times = best_times(
            {
                "scipy": partial(reference, array),
                "eager": partial(dirichlet_measures, logits),
                "compiled": partial(dirichlet_measures, logits, compile=True),
            },
            ROUNDS,
        )
        eager, compiled = (times["scipy"] / times[name] for name in ("eager", "compiled"))
        size = f"{shape[0]} x {shape[1]}"
        print(f"{size:>14} {times['scipy']:>8.3f}s {eager:>7.1f}x {compiled:>8.1f}x")


if __name__ == "__main__":
    main()
