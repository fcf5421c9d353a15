"""Detectors on features of unit length, against features that are scaled by hand."""

import copy
import pickle

import numpy as np
import pytest
import torch
from pytorch_ood.detector import RMD, Mahalanobis

import dpn_plugin
from dpn_plugin.backbones import create_backbone
from dpn_plugin.detectors import fit, reads, scores, tune
from dpn_plugin.errors import UserTypeError

CLASSES, ROWS, PIXELS = 3, 90, 32
HOSTS = {"mahalanobis-pp": Mahalanobis, "rmd-pp": RMD}


@pytest.fixture(scope="module")
def backbone() -> object:
    torch.manual_seed(0)
    return create_backbone("test_resnet", CLASSES, image_size=PIXELS).eval()


def no_batches() -> None:
    pytest.fail("inputs were requested")


def outputs(rows: int, seed: int, width: int = 6) -> dict[str, np.ndarray]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % CLASSES
    features = torch.randn(rows, width, generator=generator)
    features[:, :CLASSES] += 3 * torch.nn.functional.one_hot(labels, CLASSES)
    features *= 10 ** torch.randn(rows, 1, generator=generator)  # lengths that mean nothing
    arrays = {"features": features, "logits": features[:, :CLASSES], "labels": labels}
    return {name: each.numpy() for name, each in arrays.items()}


def by_hand(features: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(features / np.sqrt((features**2).sum(axis=1, keepdims=True)))


@pytest.mark.parametrize("name", HOSTS)
def test_the_score_is_the_hosts_for_features_scaled_by_hand(name: str) -> None:
    train, test = outputs(ROWS, 0), outputs(30, 1)
    reference = HOSTS[name](None)
    reference.fit_features(by_hand(train["features"]), torch.from_numpy(train["labels"]))
    expected = reference.predict_features(by_hand(test["features"]))
    detector = dpn_plugin.create_detector(name)
    detector.fit_features(torch.from_numpy(train["features"]), torch.from_numpy(train["labels"]))
    found = detector.predict_features(torch.from_numpy(test["features"]))
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    plain = HOSTS[name](None)
    plain.fit_features(torch.from_numpy(train["features"]), torch.from_numpy(train["labels"]))
    assert not torch.allclose(plain.predict_features(torch.from_numpy(test["features"])), found)


@pytest.mark.parametrize("name", HOSTS)
def test_scores_do_not_depend_on_the_length_and_need_no_forward_pass(name: str) -> None:
    train, test = outputs(ROWS, 0), outputs(30, 1)
    detector = fit(dpn_plugin.create_detector(name), train, no_batches)
    found = scores(detector, test, no_batches)
    longer = {**test, "features": test["features"] * 7}
    torch.testing.assert_close(scores(detector, longer, no_batches), found, rtol=1e-4, atol=1e-4)
    assert "2505.18032" in detector.info.paper.url


@pytest.mark.parametrize("name", HOSTS)
def test_the_option_gives_the_same_scores_as_the_name(name: str) -> None:
    train, test = outputs(ROWS, 0), outputs(30, 1)
    option = dpn_plugin.create_detector(name.removesuffix("-pp"), normalize=True)
    named = dpn_plugin.create_detector(name)
    expected = scores(fit(named, train, no_batches), test, no_batches)
    found = scores(fit(option, train, no_batches), test, no_batches)
    torch.testing.assert_close(found, expected)
    for again in (copy.deepcopy(option), pickle.loads(pickle.dumps(option))):
        torch.testing.assert_close(scores(again, test, no_batches), expected)


OPTIONAL = ["gmm", "fdbd", "nci", "mahalanobis", "rmd", "dice", "react", "ash"]


@pytest.mark.parametrize("name", OPTIONAL)
def test_every_detector_of_features_takes_the_option(name: str, backbone: object) -> None:
    x = torch.randn(ROWS, 3, PIXELS, PIXELS, generator=torch.Generator().manual_seed(1))
    y = torch.arange(ROWS) % CLASSES
    with torch.no_grad():
        features = backbone.encoder(x)
    arrays = {"features": features.numpy(), "labels": y.numpy()}
    scaled = {**arrays, "features": by_hand(arrays["features"]).numpy()}
    option = dpn_plugin.create_detector(name, backbone, normalize=True)
    assert reads(option) == "features"
    plain = fit(dpn_plugin.create_detector(name, backbone), scaled, no_batches)
    expected = scores(plain, scaled, no_batches)
    fit(option, arrays, no_batches)
    found = scores(option, arrays, no_batches)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * float(expected.std()) + 1e-6)
    with torch.no_grad():
        of_inputs = option.predict(x.to(features.dtype)).float()
    torch.testing.assert_close(of_inputs, found.float(), rtol=1e-2, atol=float(expected.std()) / 50)


def test_vim_takes_the_option() -> None:
    # apart from the others: on features of an untrained network its subspace is rounding error
    train, test = outputs(ROWS, 0), outputs(30, 1)
    options = {"d": 3, "w": torch.eye(CLASSES, 6), "b": torch.zeros(CLASSES)}
    scaled = [{**each, "features": by_hand(each["features"]).numpy()} for each in (train, test)]
    plain = fit(dpn_plugin.create_detector("vim", **options), scaled[0], no_batches)
    option = dpn_plugin.create_detector("vim", normalize=True, **options)
    found = scores(fit(option, train, no_batches), test, no_batches)
    expected = scores(plain, scaled[1], no_batches)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_knn_keeps_its_own_option() -> None:
    assert dpn_plugin.create_detector("knn", normalize=False).normalize is False


def test_tuning_works_on_unit_length() -> None:
    train = outputs(ROWS, 0)
    held_out = outputs(ROWS, 1)
    held_out["labels"] = np.where(np.arange(ROWS) < 30, -1, held_out["labels"])
    detector = dpn_plugin.create_detector("gmm", normalize=True)
    tune(detector, train, no_batches, held_out, no_batches)
    assert torch.isfinite(scores(detector, held_out, no_batches)).all()


@pytest.mark.parametrize(("name", "kind"), [("dpn-mi", "logits"), ("odin", "inputs")])
def test_other_detectors_refuse_the_option(name: str, kind: str, backbone: object) -> None:
    with pytest.raises(UserTypeError, match=f"reads {kind}: normalize=True is an option of"):
        dpn_plugin.create_detector(name, backbone, normalize=True)
