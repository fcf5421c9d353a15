"""The detector that scales logits by a normalised density of the features."""

import pytest
import torch
from pytorch_ood.api import ModelNotSetException, RequiresFittingException
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpn_plugin import functional
from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import DensityAware, create_detector
from dpn_plugin.errors import UserError


@pytest.fixture
def data():
    """Features of three classes around different means, with different spreads."""
    torch.manual_seed(0)
    y = torch.arange(3).repeat(60)
    return 4 * torch.randn(3, 5)[y] + (1 + y[:, None]) * torch.randn(180, 5), y


@pytest.fixture
def head():
    torch.manual_seed(1)
    return nn.Linear(5, 3).requires_grad_(False)


def test_the_density_is_a_sum_of_gaussians_with_shrunk_covariances(data, head):
    x, y = data
    detector = DensityAware(head=head).fit_features(x, y)
    total = sum(
        multivariate_normal(
            x[y == k].double().mean(0).numpy(), ledoit_wolf(x[y == k].double().numpy())[0]
        ).pdf(x[:10].double().numpy())
        for k in range(3)
    )
    torch.testing.assert_close(detector.log_density(x[:10]).exp(), torch.from_numpy(total))


def test_the_logits_are_multiplied_by_the_normalised_density(data, head):
    x, y = data
    detector = DensityAware(head=head).fit_features(x, y)
    density = detector.log_density(x)
    scale = (density - density.min()) / (density.max() - density.min())
    expected = scale[:, None] * head(x).double()
    torch.testing.assert_close(detector.scaled_logits(x), expected)
    scores = detector.predict_features(x)
    torch.testing.assert_close(scores, -functional.log_precision(expected))


@pytest.mark.parametrize(
    ("measure", "expected"), [("precision", -1.0986123), ("maxp", 2 / 3), ("entropy", 1.0986123)]
)
def test_far_from_the_training_data_all_concentrations_are_one(data, head, measure, expected):
    detector = DensityAware(head=head, measure=measure).fit_features(*data)
    far = detector.predict_features(torch.full((2, 5), 1e4))
    torch.testing.assert_close(far, torch.full((2,), expected, dtype=torch.float64))


def test_fewer_samples_than_features_have_a_density():
    torch.manual_seed(0)
    y = torch.arange(2).repeat(6)
    detector = DensityAware(head=nn.Linear(40, 2)).fit_features(torch.randn(12, 40), y)
    assert torch.isfinite(detector.log_density(torch.randn(5, 40))).all()


def test_ood_samples_are_left_out_of_the_fit(data, head):
    x, y = data
    both = torch.cat([x, torch.full((4, 5), 1e3)]), torch.cat([y, torch.full((4,), -1)])
    with_ood, without = DensityAware(head=head), DensityAware(head=head)
    with_ood.fit_features(*both)
    without.fit_features(x, y)
    assert torch.equal(with_ood.means, without.means)


@pytest.mark.parametrize("backbone", ["test_resnet", "test_vit"])
def test_any_backbone_provides_what_it_needs(backbone):
    torch.manual_seed(0)
    size = 32 if backbone == "test_resnet" else 160
    model = create_backbone(backbone, 3, in_chans=1, image_size=size).eval()
    x, y = torch.randn(12, *model.input_size), torch.arange(3).repeat(4)
    detector = create_detector("daedl", model).fit(DataLoader(TensorDataset(x, y), batch_size=6))
    with torch.no_grad():
        scores = detector.predict(x)
        features = model.encoder(x)
    torch.testing.assert_close(scores, detector.predict_features(features), rtol=1e-4, atol=1e-5)
    assert scores.std() > 0


def test_mistakes_are_named(data, head):
    x, y = data
    with pytest.raises(UserError, match=r"Unknown measure 'max'. Did you mean 'maxp'"):
        DensityAware(head=head, measure="max")
    with pytest.raises(UserError, match="at least two samples of each"):
        DensityAware(head=head).fit_features(x[:1], y[:1])
    with pytest.raises(UserError, match="all equal"):
        DensityAware(head=head).fit_features(torch.ones(4, 5), torch.tensor([0, 0, 1, 1]))
    with pytest.raises(RequiresFittingException):
        DensityAware(head=head).predict_features(x)
    with pytest.raises(ModelNotSetException):
        DensityAware().fit_features(x, y).predict_features(x)
    with pytest.raises(ModelNotSetException):
        DensityAware(head=head).fit_features(x, y).predict(x)
