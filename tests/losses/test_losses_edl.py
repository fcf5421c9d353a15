"""The evidential loss against its formulas, its annealing, and the region without evidence."""

import warnings

import mpmath
import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Dirichlet, kl_divergence

from dpn_plugin.losses import EvidentialLoss, evidential_log_concentration

FORMS = ("digamma", "log", "mse")
EVIDENCES = {
    "relu": torch.relu,
    "exp": torch.exp,
    "softplus": lambda z: torch.log(1 + torch.exp(z)),
}


def data_term(form, alpha, y):
    """The data term of one sample, from special functions on the concentrations."""
    s = alpha.sum()
    if form == "digamma":
        return torch.digamma(s) - torch.digamma(alpha[y])
    if form == "log":
        return s.log() - alpha[y].log()
    right = torch.eye(len(alpha), dtype=alpha.dtype)[y]
    model = Dirichlet(alpha)
    return ((right - model.mean) ** 2 + model.variance).sum()


def divergence(alpha, y):
    alpha = alpha.clone()
    alpha[y] = 1
    return kl_divergence(Dirichlet(alpha), Dirichlet(torch.ones_like(alpha)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("evidence", EVIDENCES)
@pytest.mark.parametrize("epoch", [0, 3, 10, 50])
def test_values_are_the_formulas_of_the_paper(form, evidence, epoch, logits):
    loss = EvidentialLoss(form, evidence, annealing_epochs=10, reduction="none")
    loss.set_epoch(epoch)
    target = torch.tensor([0, 1, 2, 2, 1, 0])
    alphas = 1 + EVIDENCES[evidence](logits)
    expected = [
        data_term(form, alpha, y) + min(1, epoch / 10) * divergence(alpha, y)
        for alpha, y in zip(alphas, target, strict=True)
    ]
    torch.testing.assert_close(loss(logits, target), torch.stack(expected))


def test_the_data_terms_are_expectations_under_the_dirichlet():
    torch.manual_seed(0)
    z, y = torch.tensor([[1.0, 4.0, 0.5]]), torch.tensor([0])
    p = Dirichlet(1 + z[0]).sample((200_000,))
    sampled = {
        "digamma": -p[:, 0].log().mean(),
        "log": -Categorical(p.mean(dim=0)).probs[0].log(),
        "mse": ((torch.tensor([1.0, 0.0, 0.0]) - p) ** 2).sum(dim=1).mean(),
    }
    for form, expected in sampled.items():
        loss = EvidentialLoss(form)
        loss.set_epoch(0)
        torch.testing.assert_close(loss(z, y), expected, rtol=0.01, atol=0)


def exact(form, row, y):
    """The loss with exponential evidence and full divergence, with 80 digits."""
    with mpmath.workdps(80):
        alpha = [1 + mpmath.exp(z) for z in row]
        s = mpmath.fsum(alpha)
        p = [a / s for a in alpha]
        data = {
            "digamma": mpmath.digamma(s) - mpmath.digamma(alpha[y]),
            "log": mpmath.log(s / alpha[y]),
            "mse": mpmath.fsum(
                ((c == y) - q) ** 2 + q * (1 - q) / (s + 1) for c, q in enumerate(p)
            ),
        }[form]
        alpha[y] = mpmath.mpf(1)
        s = mpmath.fsum(alpha)
        kl = mpmath.loggamma(s) - mpmath.loggamma(len(row))
        for a in alpha:
            kl += (a - 1) * (mpmath.digamma(a) - mpmath.digamma(s)) - mpmath.loggamma(a)
        return float(data + kl)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", [[50, -50, 0], [50, 50, 50], [-50, -50, -50], [-50, 20, 49.5]])
@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-4), (torch.float64, 1e-9)])
def test_exact_up_to_fifty(form, row, y, dtype, rtol):
    value = EvidentialLoss(form, "exp")(torch.tensor([row], dtype=dtype), torch.tensor([y]))
    assert value.item() == pytest.approx(exact(form, row, y), rel=rtol, abs=rtol * 1e-2)


def test_the_square_error_has_a_gradient_for_a_confident_wrong_class():
    z = torch.tensor([[40.0, 0.0]], requires_grad=True)
    loss = EvidentialLoss("mse", "exp")
    loss.set_epoch(0)
    loss(z, torch.tensor([1])).backward()
    # d/dz_0 of 2 p_0^2 with p_1 = 2 e^-40, and of the variance p_0 p_1 / S, which is negligible
    assert z.grad[0, 0].item() == pytest.approx(4 * 2 * mpmath.exp(-40), rel=1e-4)


@pytest.mark.parametrize("evidence", EVIDENCES)
def test_log_concentrations_are_exact(evidence):
    z = torch.linspace(-30, 30, 121, dtype=torch.float64)
    torch.testing.assert_close(
        evidential_log_concentration(z, evidence), torch.log1p(EVIDENCES[evidence](z))
    )


def test_log_concentrations_do_not_overflow():
    z = torch.tensor([-1e4, 1e4])
    assert evidential_log_concentration(z, "exp").tolist() == [0, 1e4]
    for evidence in ("relu", "softplus"):
        value = evidential_log_concentration(z, evidence)
        torch.testing.assert_close(value, torch.log1p(torch.tensor([0, 1e4])))


def test_the_divergence_grows_with_the_epochs():
    loss = EvidentialLoss(annealing_epochs=4)
    assert loss.kl_weight == 1
    weights = []
    for epoch in range(6):
        loss.set_epoch(epoch)
        weights.append(loss.kl_weight)
    assert weights == [0, 0.25, 0.5, 0.75, 1, 1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", [[-5.0, -5.0, -5.0], [-1.0, -40.0, -0.5], [-1e3, -1e4, -900.0]])
def test_without_evidence_the_right_class_rises(form, row):
    z = torch.tensor([row], requires_grad=True)
    EvidentialLoss(form)(z, torch.tensor([1])).backward()
    assert z.grad[0, 1] < 0


def test_the_term_for_samples_without_evidence_is_zero_at_the_border(logits):
    step = torch.tensor([0.0, 1e-9, -1e-9], dtype=torch.float64)
    rows = torch.stack([step, step - 1, step - 2], dim=1)
    values = EvidentialLoss(reduction="none")(rows, torch.tensor([2, 2, 2]))
    torch.testing.assert_close(values, torch.full_like(values, 1.5), rtol=0, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [0.0, -3.0])
def test_a_head_that_starts_without_evidence_learns(form, bias):
    x, y = torch.eye(3), torch.arange(3)
    head = nn.Linear(3, 3)
    nn.init.zeros_(head.weight)
    nn.init.constant_(head.bias, bias)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.2)
    loss = EvidentialLoss(form, "relu", annealing_epochs=40)
    for epoch in range(80):
        loss.set_epoch(epoch)
        optimizer.zero_grad()
        loss(head(x), y).backward()
        optimizer.step()
    assert (head(x).argmax(dim=1) == y).all()
    assert (head(x).diagonal() > 0).all()


def test_ood_samples_are_discarded_with_a_warning(evidential, logits, target):
    with pytest.warns(UserWarning, match="Discarding samples with targets < 0"):
        values = evidential(reduction="none")(logits, target)
    assert (values[target < 0] == 0).all()
    inside = target >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clean = evidential()(logits[inside], target[inside])
    torch.testing.assert_close(clean, values[inside].mean())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "brier"}, "form must be 'digamma', 'log' or 'mse', not 'brier'"),
        ({"evidence": "gelu"}, "evidence must be 'relu', 'exp' or 'softplus', not 'gelu'"),
        ({"annealing_epochs": 0}, "annealing_epochs must be at least 1, not 0"),
    ],
)
def test_bad_options_are_refused_with_what_is_allowed(options, message):
    with pytest.raises(ValueError, match=message):
        EvidentialLoss(**options)


def test_bad_epochs_and_evidence_are_named():
    with pytest.raises(ValueError, match="epoch must be at least 0, not -1"):
        EvidentialLoss().set_epoch(-1)
    with pytest.raises(TypeError, match="epoch must be an integer, not float"):
        EvidentialLoss().set_epoch(0.5)
    with pytest.raises(ValueError, match="evidence must be"):
        evidential_log_concentration(torch.zeros(1, 2), "sigmoid")
