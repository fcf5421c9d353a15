"""Every method trains, and its predictor gives what detectors need."""

import pandas as pd
import pytest
import torch
from tiny_runs import digits, points, weight_hashes

import dpn_plugin
from dpn_plugin.errors import UserError
from dpn_plugin.plugins.pytorch_ood_losses import dpn_methods
from dpn_plugin.runs import Predictor
from dpn_plugin.training import train

#: as-is trains nothing; the others are in test_training_rivals.py
ELSEWHERE = {"as-is", "energy-ft", "mixoe", "pixmix", *(entry.name for entry in dpn_methods())}
METHODS = [name for name in dpn_plugin.list_methods() if name not in ELSEWHERE]


def settings(method: str) -> dict:
    return {"drop_rate": 0.3} if method == "mcdp" else {}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_and_predicts(method: str, tmp_path) -> None:
    run = train(points(method, epochs=8, **settings(method)), tmp_path, device="cpu")
    history = pd.read_csv(tmp_path / "history.csv")
    for name, rows in history.groupby("network"):
        # the temperature of a distillation changes what its training loss measures
        distils = method == "ensemble-distillation" and name == "classifier"
        loss = rows["held_out_loss" if distils else "loss"]
        assert loss.iloc[-1] < loss.iloc[0]
        assert rows["held_out_accuracy"].iloc[-1] > 0.8
    assert set(history["network"]) == {each.name for each in run.method.trained_networks}
    with torch.inference_mode():
        outputs = Predictor(run).outputs(torch.randn(5, 2))
    assert outputs["logits"].shape == (5, 3)
    assert ("ood_logits" in outputs) == (method == "binary")
    assert ("mutual_information" in outputs) == (method in ("mcdp", "deep-ensemble"))


@pytest.mark.parametrize("backbone", ["test_resnet", "test_vit"])
def test_timm_models_learn_digits(backbone: str, tmp_path) -> None:
    run = train(digits(backbone=backbone), tmp_path, device="cpu")
    first, last = run.record.networks["classifier"].history
    assert last.loss < first.loss
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_an_ensemble_averages_probabilities_of_members_that_differ(tmp_path) -> None:
    run = train(points("deep-ensemble", options={"members": 2}), tmp_path, device="cpu")
    x = torch.randn(7, 2)
    with torch.inference_mode():
        members = [run.load_network(network)(x).softmax(1) for network in run.method.networks]
        logits = Predictor(run)(x)
    assert not torch.equal(*members)
    torch.testing.assert_close(logits.exp(), (members[0] + members[1]) / 2)


def test_dropout_passes_differ_but_are_repeatable(tmp_path) -> None:
    run = train(points("mcdp", drop_rate=0.5, options={"passes": 4}), tmp_path, device="cpu")
    predictor, x = Predictor(run), torch.randn(7, 2)
    with torch.inference_mode():
        first, again = predictor.outputs(x), predictor.outputs(x)
    assert torch.equal(first["logits"], again["logits"])
    assert (first["mutual_information"] > 0).any()


def test_a_network_without_dropout_is_refused_before_the_training(tmp_path) -> None:
    with pytest.raises(UserError, match="drop_rate"):
        train(points("mcdp"), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dpn-minus", {"lambda_out": 0.0}),
        ("dpn-plus", {"lambda_in": 0.0}),
        ("dpn-rev", {"ood_concentration": 0.1}),
    ],
)
def test_the_ablations_of_the_paper_change_the_training(method: str, options, tmp_path) -> None:
    plain = train(points(method, epochs=1), tmp_path / "plain", device="cpu")
    changed = train(points(method, epochs=1, options=options), tmp_path / "changed", device="cpu")
    losses = [run.record.networks["classifier"].history[0].loss for run in (plain, changed)]
    assert abs(losses[0] - losses[1]) > 1e-3


def test_minus_without_its_regularisers_is_outlier_exposure(tmp_path) -> None:
    ablated = points("dpn-minus", options={"lambda_in": 0.0, "lambda_out": 0.0})
    minus = train(ablated, tmp_path / "minus", device="cpu")
    exposure = train(points("oe"), tmp_path / "oe", device="cpu")
    histories = [run.record.networks["classifier"].history for run in (minus, exposure)]
    for ours, theirs in zip(*histories, strict=True):
        assert (ours.loss_in, ours.loss_out) == (theirs.loss_in, theirs.loss_out)


def test_the_regulariser_of_edl_grows_with_the_epochs(tmp_path) -> None:
    # same data, same seed: only the annealing differs
    slow = train(points("edl", options={"annealing_epochs": 100}), tmp_path / "a", device="cpu")
    fast = train(points("edl", options={"annealing_epochs": 2}), tmp_path / "b", device="cpu")
    first, second = (run.record.networks["classifier"].history for run in (slow, fast))
    assert first[0].loss == second[0].loss  # the first epoch has no regulariser in either
    assert first[-1].loss < second[-1].loss


def test_options_that_a_method_lacks_are_refused(tmp_path) -> None:
    with pytest.raises(TypeError, match=r"no option 'lambda_ou'. Did you mean 'lambda_out'"):
        train(points("dpn-minus", options={"lambda_ou": 0}), tmp_path, device="cpu")
    with pytest.raises(UserError, match="'baseline' has no option 'members'"):
        train(points("baseline", options={"members": 3}), tmp_path, device="cpu")
    with pytest.raises(UserError, match="2 or more, not 1"):
        train(points("deep-ensemble", options={"members": 1}), tmp_path, device="cpu")
    assert weight_hashes(tmp_path) == {}
