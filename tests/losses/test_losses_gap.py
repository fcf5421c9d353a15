"""The representation-gap loss: its formula, outlier exposure, and its effect in training."""

import pytest
import torch
from pytorch_ood.loss import OutlierExposureLoss
from torch import nn

import dpn_plugin
from dpn_plugin.losses import RepresentationGapLoss, dpn_minus, dpn_plus


def test_value_is_the_formula_of_the_paper(logits, target):
    loss = RepresentationGapLoss(lambda_in=1.5, lambda_out=-0.25, gamma=0.7)
    inside, outside = [], []
    for z, y in zip(logits, target, strict=True):
        p = z.exp() / z.exp().sum()
        bonus = (1 / (1 + (-z).exp())).mean()
        if y >= 0:
            inside.append(-p[y].log() - 1.5 * bonus)
        else:
            outside.append(-p.log().mean() + 0.25 * bonus)
    expected = torch.stack(inside).mean() + 0.7 * torch.stack(outside).mean()
    torch.testing.assert_close(loss(logits, target), expected)


@pytest.mark.parametrize("shape", [(40, 5), (4, 5, 3, 2)])
def test_without_lambdas_it_is_outlier_exposure(shape):
    logits = 5 * torch.randn(shape)
    target = torch.randint(-1, 5, shape[:1] + shape[2:])
    ours = RepresentationGapLoss(0, 0, gamma=0.5, reduction="none")(logits, target)
    theirs = OutlierExposureLoss(alpha=0.5, reduction="none")(logits, target)
    torch.testing.assert_close(ours, theirs)


def test_outlier_exposure_by_name_is_the_case_without_lambdas(logits, target):
    by_name = dpn_plugin.create_loss("oe", num_classes=3, gamma=0.7)
    expected = RepresentationGapLoss(0, 0, gamma=0.7)(logits, target)
    assert by_name(logits, target) == expected


def test_the_mean_differs_from_pytorch_oods_outlier_exposure_by_the_groups_shares():
    # theirs divides by the whole batch: with n of N samples in-domain and m = N - n OOD,
    # N OE(alpha) = n E_in + alpha m E_out = n [E_in + (alpha m / n) E_out]
    logits, n, m = torch.randn(96, 10), 64, 32
    target = torch.cat([torch.randint(10, (n,)), torch.full((m,), -1)])
    ours = RepresentationGapLoss(0, 0, gamma=0.5)(logits, target)
    theirs = OutlierExposureLoss(alpha=0.5 * n / m)(logits, target)
    torch.testing.assert_close(n / (n + m) * ours, theirs)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_presets_are_those_of_the_paper(classes):
    plus, minus = dpn_plus(classes), dpn_minus(classes)
    assert (plus.lambda_in, plus.lambda_out, plus.gamma) == (1.5, 1 / classes + 0.5, 0.5)
    assert (minus.lambda_in, minus.lambda_out, minus.gamma) == (0.5, 1 / classes - 0.5, 0.5)


@pytest.mark.parametrize("preset", [dpn_plus, dpn_minus])
def test_arguments_replace_the_values_of_the_presets(preset):
    loss = preset(10, lambda_in=0, lambda_out=-0.5, gamma=1.0, reduction="sum")
    assert (loss.lambda_in, loss.lambda_out, loss.gamma) == (0, -0.5, 1.0)
    assert loss.reduction == "sum"


@pytest.mark.parametrize("preset", [dpn_plus, dpn_minus])
def test_presets_need_a_number_of_classes(preset):
    with pytest.raises(ValueError, match="num_classes must be at least 2, not 1"):
        preset(1)
    with pytest.raises(TypeError, match="num_classes must be an integer, not float"):
        preset(10.0)


@pytest.mark.parametrize("name", ["lambda_in", "lambda_out"])
def test_lambdas_must_be_finite_numbers(name):
    with pytest.raises(ValueError, match=f"{name} must be a finite number, not inf"):
        RepresentationGapLoss(**{"lambda_in": 0.5, "lambda_out": 0.5, name: float("inf")})
    with pytest.raises(TypeError, match=f"{name} must be a number, not NoneType"):
        RepresentationGapLoss(**{"lambda_in": 0.5, "lambda_out": 0.5, name: None})


def blobs():
    generator = torch.Generator().manual_seed(1)
    centers = torch.tensor([[-4.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    inside = centers.repeat(60, 1) + 0.8 * torch.randn(180, 2, generator=generator)
    angle = 6.28 * torch.rand(180, generator=generator)
    outside = 13 * torch.stack([angle.cos(), angle.sin()], dim=1)
    target = torch.cat([torch.arange(3).repeat(60), torch.full((180,), -1)])
    # inputs near one: larger inputs give first logits whose sigmoid has no gradient
    return torch.cat([inside, outside]) / 5, target


def trained_logits(loss):
    torch.manual_seed(0)
    x, target = blobs()
    hidden = [nn.Linear(2, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(50, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        loss(model(x), target).backward()
        optimizer.step()
    logits = model(x).detach()
    inside = target >= 0
    assert (logits.argmax(dim=1) == target)[inside].float().mean() > 0.98
    return logits[inside], logits[~inside]


def test_dpn_minus_gives_ood_samples_negative_logits():
    inside, outside = trained_logits(dpn_minus(3, gamma=1.0))
    assert outside.max(dim=1).values.mean() < -2
    assert outside.logsumexp(dim=1).quantile(0.95) < inside.logsumexp(dim=1).quantile(0.05)


def test_dpn_plus_gives_ood_samples_equal_concentrations_above_one():
    _, outside = trained_logits(dpn_plus(3, gamma=1.0))
    assert outside.min(dim=1).values.mean() > 2
    assert outside.softmax(dim=1).max(dim=1).values.mean() < 0.4
