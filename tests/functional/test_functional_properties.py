"""Properties that hold for all logits."""

import math
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from logit_cases import logits_of
from torch import Tensor

from dpn_plugin import functional
from dpn_plugin.functional import logits as logits_module

ROUNDING = 1e-12


@st.composite
def batches(draw: st.DrawFn) -> Tensor:
    shape = draw(st.tuples(st.integers(1, 4), st.integers(2, 12)))
    values = draw(arrays("float64", shape, elements=st.floats(-60, 60)))
    return torch.from_numpy(values)


def assert_same(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...]) -> None:
    for name, a, b in zip(functional.DirichletMeasures._fields, ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=ROUNDING, atol=ROUNDING, msg=lambda m, n=name: n + m)


@given(batches(), st.randoms())
def test_the_order_of_classes_does_not_matter(logits: Tensor, random: Random) -> None:
    order = list(range(logits.shape[1]))
    random.shuffle(order)
    assert_same(
        functional.dirichlet_measures(logits), functional.dirichlet_measures(logits[:, order])
    )


@given(batches())
def test_uncertainties_are_ordered_and_bounded(logits: Tensor) -> None:
    classes = logits.shape[1]
    measures = functional.dirichlet_measures(logits)
    assert (measures.mutual_information >= 0).all()
    assert (measures.mutual_information <= measures.entropy * (1 + ROUNDING)).all()
    assert (measures.entropy <= math.log(classes) + ROUNDING).all()
    assert (measures.max_p >= 1 / classes - ROUNDING).all()
    assert (measures.max_p <= 1).all()


@given(batches())
def test_no_dirichlet_is_flatter_than_the_uniform_one(logits: Tensor) -> None:
    bound = -math.lgamma(logits.shape[1])
    d_ent = functional.differential_entropy(logits)
    assert (d_ent <= bound + ROUNDING * (1 + abs(bound))).all()


@given(batches())
def test_the_two_forms_of_max_p_and_of_differential_entropy_agree(logits: Tensor) -> None:
    measures = functional.dirichlet_measures(logits)
    torch.testing.assert_close(1 - measures.max_p, functional.one_minus_max_p(logits))
    floored = (-measures.differential_entropy).clamp(min=1e-37)
    torch.testing.assert_close(floored.log(), measures.log_neg_differential_entropy)


@given(batches(), st.floats(0.5, 20))
def test_more_evidence_of_the_same_mean_means_less_mutual_information(
    logits: Tensor, more: float
) -> None:
    logits = logits / 3  # within [-20, 20], so that no value is lost in rounding
    less = functional.mutual_information(logits + more)
    assert (less <= functional.mutual_information(logits)).all()
    torch.testing.assert_close(functional.entropy(logits + more), functional.entropy(logits))


@given(batches())
def test_single_functions_agree_with_the_one_pass_function(logits: Tensor) -> None:
    single = [getattr(functional, name)(logits) for name in functional.DirichletMeasures._fields]
    assert_same(functional.dirichlet_measures(logits), tuple(single))


@given(batches())
def test_samples_are_independent_of_each_other(logits: Tensor) -> None:
    rows = [functional.dirichlet_measures(row) for row in logits.split(1)]
    alone = tuple(torch.cat(values) for values in zip(*rows, strict=True))
    assert_same(functional.dirichlet_measures(logits), alone)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 1, 1), (3, 10, 2, 1)])
def test_a_map_of_logits_has_the_measures_of_its_pixels(shape: tuple[int, ...]) -> None:
    batch, classes, height, width = shape
    rows = logits_of("anywhere", batch * height * width, classes, bound=30)
    pixels = rows.reshape(batch, height, width, classes).movedim(-1, 1)
    assert pixels.shape == shape
    expected = [v.reshape(batch, height, width) for v in functional.dirichlet_measures(rows)]
    assert_same(functional.dirichlet_measures(pixels), tuple(expected))


@pytest.mark.parametrize("chunk", [1, 7, 30, 31])
def test_the_chunk_size_does_not_change_results(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits = logits_of("anywhere", 23, 3, bound=30)
    whole = functional.dirichlet_measures(logits)
    monkeypatch.setattr(logits_module, "CHUNK", chunk)
    assert_same(functional.dirichlet_measures(logits), whole)


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4, 5), (2, 3, 0, 5)])
def test_empty_logits_give_empty_measures(shape: tuple[int, ...]) -> None:
    for value in functional.dirichlet_measures(torch.zeros(shape)):
        assert value.shape == shape[:1] + shape[2:]


def test_memory_layout_does_not_matter() -> None:
    logits = logits_of("anywhere", 12, 6, bound=30)
    strided = logits.T.contiguous().T
    assert not strided.is_contiguous()
    assert_same(functional.dirichlet_measures(strided), functional.dirichlet_measures(logits))
