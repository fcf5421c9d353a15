"""Temperatures recovered from data that was made with them."""

import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn.functional import cross_entropy, nll_loss

from dpn_plugin.errors import UserError
from dpn_plugin.metrics import fit_temperature, fit_translation


def sampled(probabilities):
    # not the seed of the logits: the same stream of numbers would correlate both
    generator = torch.Generator().manual_seed(1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(1)


def logits_of(count, classes, scale):
    generator = torch.Generator().manual_seed(0)
    return scale * torch.randn(count, classes, generator=generator, dtype=torch.float64)


def edl_log_p(z, t):
    alpha = torch.relu(z + t) + 1
    return (alpha / alpha.sum(dim=1, keepdim=True)).log()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_a_known_temperature_is_recovered(temperature):
    logits = logits_of(30_000, 10, 3 * temperature)
    labels = sampled(torch.softmax(logits / temperature, dim=1))
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.03)


def test_no_other_temperature_is_more_likely():
    logits = logits_of(500, 7, 5)
    labels = sampled(torch.softmax(logits / 2, dim=1))
    loss = lambda t: cross_entropy(logits / t, labels).item()  # noqa: E731
    best = minimize_scalar(loss, bounds=(0.1, 30), method="bounded", options={"xatol": 1e-9})
    assert fit_temperature(logits.float(), labels) == pytest.approx(best.x, rel=1e-5)


def test_scaled_logits_give_a_scaled_temperature():
    logits = logits_of(400, 5, 2)
    labels = sampled(torch.softmax(logits, dim=1))
    assert fit_temperature(10 * logits, labels) == pytest.approx(
        10 * fit_temperature(logits, labels)
    )


def test_faultless_held_out_data_leaves_the_temperature_at_one(caplog):
    logits = logits_of(50, 4, 3)
    assert fit_temperature(logits, logits.argmax(dim=1)) == 1.0
    assert "no temperature" in caplog.text


def test_held_out_data_below_chance_leaves_the_temperature_at_one(caplog):
    logits = logits_of(50, 4, 3)
    assert fit_temperature(logits, logits.argmin(dim=1)) == 1.0
    assert "no temperature" in caplog.text


@pytest.mark.parametrize("translation", [-2.0, 0.0, 3.0])
def test_a_known_translation_is_recovered(translation):
    logits = logits_of(40_000, 5, 20)
    labels = sampled(edl_log_p(logits, translation).exp())
    assert fit_translation(logits, labels) == pytest.approx(translation, abs=0.5)


def test_no_other_translation_is_more_likely():
    logits = logits_of(300, 6, 8)
    labels = sampled(edl_log_p(logits, 2).exp())
    losses = [nll_loss(edl_log_p(logits, t), labels) for t in torch.linspace(-40, 200, 5001)]
    found = nll_loss(edl_log_p(logits, fit_translation(logits, labels)), labels)
    assert found <= min(losses) + 1e-12


@pytest.mark.parametrize("fit", [fit_temperature, fit_translation])
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3), torch.zeros(3), "Expected logits"),
        (torch.zeros(3, 2), torch.zeros(2), "Expected logits"),
        (torch.zeros(0, 2), torch.zeros(0), "Expected logits"),
        (torch.full((3, 2), float("nan")), torch.zeros(3), "NaN or infinite"),
        (torch.zeros(3, 2), -torch.ones(3), "classes from 0 to 1"),
        (torch.zeros(3, 2), torch.full((3,), 2), "classes from 0 to 1"),
    ],
)
def test_input_that_cannot_be_fitted_is_refused(fit, logits, labels, message):
    with pytest.raises(UserError, match=message):
        fit(logits, labels)
