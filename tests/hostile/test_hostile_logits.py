"""Logits and labels of any kind: a figure or an error with a message, never a wrong number."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dpn_plugin
from dpn_plugin import functional
from dpn_plugin.metrics import misclassification_metrics, ood_metrics

DETECTORS = ("dpn-maxp", "dpn-entropy", "dpn-mi", "dpn-precision", "dpn-dent", "dpn-gaussian-kl")
LOSSES = ("edl", "oe", "dpn-fwd", "dpn-rev", "dpn-plus", "dpn-minus-anchored")
TYPES = st.sampled_from(
    [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.bool]
)
VALUES = st.sampled_from([0.0, 1.0, -3.5, 60.0, -60.0, 1e4, torch.nan, torch.inf, -torch.inf])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    count = 1
    for length in shape:
        count *= length
    values = draw(st.lists(VALUES, min_size=count, max_size=count))
    with_values = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return (
        with_values.nan_to_num().to(t)
        if not (t := draw(TYPES)).is_floating_point
        else with_values.to(t)
    )


def result_or_refusal(function, *arguments: object) -> object:
    """Return the result, or ``None`` if an error with a message was raised."""
    try:
        return function(*arguments)
    except (TypeError, ValueError) as error:
        if not str(error):
            raise
        return None


@settings(max_examples=200)
@given(logits=tensors())
def test_measures(logits: Tensor) -> None:
    found = result_or_refusal(functional.dirichlet_measures, logits)
    if found is not None:
        assert logits.isfinite().all()
        assert not any(getattr(found, name).isnan().any() for name in ("max_p", "entropy"))
        assert found.mutual_information.isfinite().all()


@settings(max_examples=80)
@given(logits=tensors(), name=st.sampled_from(DETECTORS))
def test_detectors(logits: Tensor, name: str) -> None:
    detector = dpn_plugin.create_detector(name)
    if detector.requires_fit:
        generator = torch.Generator().manual_seed(0)
        known = torch.randn(
            60, max(2, logits.shape[1] if logits.dim() > 1 else 2), generator=generator
        )
        labels = torch.cat([known[:40].argmax(1), torch.full((20,), -1)])
        labels[:10] = (labels[:10] + 1) % known.shape[1]
        detector.fit_logits(known, labels)
    found = result_or_refusal(detector.predict_logits, logits)
    if found is not None:
        assert not found.isnan().any()


@settings(max_examples=80)
@given(logits=tensors(), labels=tensors())
def test_fitting(logits: Tensor, labels: Tensor) -> None:
    result_or_refusal(dpn_plugin.create_detector("dpn-gaussian-kl").fit_logits, logits, labels)


@settings(max_examples=150)
@given(
    logits=tensors(),
    target=tensors()
    | st.lists(st.integers(-3, 9), max_size=4).map(lambda x: torch.tensor(x).long()),
    name=st.sampled_from(LOSSES),
)
def test_losses(logits: Tensor, target: Tensor, name: str) -> None:
    found = result_or_refusal(dpn_plugin.create_loss(name, num_classes=3), logits, target)
    if found is not None:
        assert target.dtype == torch.int64
        assert len(target) == len(logits)
        assert not logits.isnan().any()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("target", [torch.tensor([3]), torch.tensor([99]), torch.tensor([2**62])])
def test_a_label_out_of_range_is_refused(name: str, target: Tensor) -> None:
    with pytest.raises(ValueError, match="3"):
        dpn_plugin.create_loss(name, num_classes=3)(torch.zeros(1, 3), target)


@settings(max_examples=150)
@given(inside=tensors(), outside=tensors())
def test_metrics(inside: Tensor, outside: Tensor) -> None:
    found = result_or_refusal(ood_metrics, inside, outside)
    if found is not None:
        assert all(0 <= value <= 1 for value in found.values())
    result_or_refusal(misclassification_metrics, inside, outside)
