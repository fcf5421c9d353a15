"""A model that was left in training mode is refused by every detector by name."""

import copy
import inspect
import pickle

import pytest
import timm
import torch
from pytorch_ood.api import Detector
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import dpn_plugin
from dpn_plugin.backbones import Backbone, create_backbone
from dpn_plugin.detectors import fit, scores, why_not_applicable
from dpn_plugin.errors import UserError

REFUSED = r"in training mode.*Call model\.eval\(\) first"
X, Y = torch.rand(8, 3, 32, 32), torch.arange(8) % 4


@pytest.fixture
def model() -> Backbone:
    torch.manual_seed(0)
    return create_backbone("test_resnet", 4, image_size=32, drop_rate=0.5).eval()


def loader() -> DataLoader:
    return DataLoader(TensorDataset(X, Y), batch_size=4)


@pytest.mark.parametrize("name", [n for n in dpn_plugin.list_detectors() if n != "mcd"])
def test_every_detector_refuses_until_the_model_is_in_evaluation_mode(
    name: str, model: Backbone
) -> None:
    if why_not_applicable(name, model):
        pytest.skip("it does not apply to this backbone")
    detector = dpn_plugin.create_detector(name, model.train())
    for call in (lambda: detector.predict(X), lambda: detector(X), lambda: detector.fit(loader())):
        with pytest.raises(UserError, match=f"Detector '{name}' .*{REFUSED}"):
            call()
    model.eval()
    if not detector.requires_fit:
        assert detector(X).shape == (8,)


def test_dropout_is_what_mcd_wants(model: Backbone) -> None:
    assert dpn_plugin.create_detector("mcd", model.train())(X).shape == (8,)


@pytest.mark.parametrize("kind", ["timm", "plain", "inside a backbone"])
def test_any_kind_of_model_is_refused(kind: str, model: Backbone) -> None:
    plain = nn.Sequential(nn.Flatten(), nn.Linear(3072, 4))
    given = {"timm": timm.create_model("test_resnet", num_classes=4), "plain": plain}
    wrong = given.get(kind, model)
    model.model.train()  # the timm model inside is being trained
    with pytest.raises(UserError, match=REFUSED):
        dpn_plugin.create_detector("dpn-mi", wrong)(X)


def test_an_encoder_that_is_given_as_an_option_is_refused(model: Backbone) -> None:
    detector = dpn_plugin.create_detector("knn", encoder=model.train().encoder, k=1)
    with pytest.raises(UserError, match=REFUSED):
        detector.fit(loader())
    model.eval()
    assert detector.fit(loader())(X).shape == (8,)


def test_logits_and_features_need_no_mode(model: Backbone) -> None:
    assert dpn_plugin.create_detector("msp", model.train()).predict_logits(torch.rand(2, 4)).ndim
    knn = dpn_plugin.create_detector("knn", model, k=1)
    assert (
        knn.fit_features(torch.rand(4, 5), torch.zeros(4)).predict_features(torch.rand(2, 5)).ndim
    )


def test_our_own_use_keeps_the_mode(model: Backbone) -> None:
    detector = dpn_plugin.create_detector("gram", model.train())
    fit(detector, {"labels": Y.numpy()}, loader)
    assert len(scores(detector, {}, loader)) == 8
    assert all(module.training for module in model.modules())


def test_a_copy_checks_its_own_model(model: Backbone) -> None:
    detector = dpn_plugin.create_detector("dpn-mi", model)
    for twin in (copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))):
        assert twin.predict.models[0] is twin.model is not model
        twin.model.train()
        torch.testing.assert_close(detector(X), detector.predict(x=X))
        with pytest.raises(UserError, match=REFUSED):
            twin(X)
        twin.model.eval()
        torch.testing.assert_close(twin(X), detector(X))


def test_methods_look_like_themselves(model: Backbone) -> None:
    detector = dpn_plugin.create_detector("energy", model)
    plain = type(detector)(model)
    assert isinstance(detector, Detector)
    assert inspect.signature(detector.predict) == inspect.signature(plain.predict)
    assert detector.predict.__doc__ == plain.predict.__doc__


def test_a_detector_without_a_model_keeps_its_methods() -> None:
    assert "predict" not in vars(dpn_plugin.create_detector("dpn-mi"))
