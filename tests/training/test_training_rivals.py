"""Methods of pytorch-ood's losses, and those that mix samples or fine-tune a network, train."""

from typing import Any

import pytest
import torch
from sklearn.metrics import roc_auc_score
from tiny_runs import CallAtStep, digits, points, weight_hashes

from dpn_plugin.data import load
from dpn_plugin.errors import UserError
from dpn_plugin.plugins import registry
from dpn_plugin.plugins.pytorch_ood_losses import dpn_methods
from dpn_plugin.runs import Predictor, Recipe, TrainConfig, TrainedRun, method_of
from dpn_plugin.training import train

HOST = [entry.name for entry in dpn_methods()]
#: they describe one class: what their features keep of the classes is not their objective
ONE_CLASS = ("deep-sad", "deep-svdd")
#: virtual outliers of a few samples instead of a thousand
VOS = {"sample_number": 10, "sample_from": 50}


def options(method: str) -> dict[str, Any]:
    return VOS if method == "vos" else {}


def six_epochs(method: str, **changes: Any) -> TrainConfig:
    recipe = Recipe.named("small", epochs=6, batch_size=32, outlier_batch_size=16)
    in_domain = {"source": "sklearn:digits", "classes": {"first": 7}, "limit": 600}
    return digits(method, recipe=recipe, in_domain=in_domain, **changes)


def noise_auroc(run: TrainedRun, output: str) -> float:
    """Return the AUROC of an output of a run for digits against noise."""
    inside = load("sklearn:digits?classes=0-6", root="data").all_rows()[-200:]
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(256, inside.shape, dtype=torch.uint8, generator=generator)
    predictor = Predictor(run)
    with torch.inference_mode():
        found = predictor.outputs(run.transform(torch.cat([inside, noise])))[output]
    score = found if found.ndim == 1 else -found.amax(dim=1)
    return float(roc_auc_score([0] * len(inside) + [1] * len(noise), score))


@pytest.mark.parametrize("method", [name for name in HOST if name not in ONE_CLASS])
def test_a_method_of_the_hosts_losses_learns_and_predicts(method: str, tmp_path) -> None:
    run = train(points(method, epochs=8, options=options(method)), tmp_path, device="cpu")
    history = run.record.networks["classifier"].history
    assert min(each.held_out_loss for each in history[1:]) < history[0].held_out_loss or (
        history[-1].loss < history[0].loss
    )
    assert history[-1].held_out_accuracy > 0.8
    with torch.inference_mode():
        outputs = Predictor(run).outputs(torch.randn(5, 2))
    assert outputs["logits"].shape == (5, 3)
    assert ("own_score" in outputs) == run.method.has_own_score


@pytest.mark.parametrize("method", ONE_CLASS)
def test_one_class_methods_shrink_the_sphere_and_detect_noise(method: str, tmp_path) -> None:
    run = train(six_epochs(method), tmp_path, device="cpu")
    history = run.record.networks["classifier"].history
    assert history[-1].held_out_loss < 0.8 * history[0].held_out_loss
    assert history[-1].held_out_accuracy > 0.2  # a seventh by guessing
    assert noise_auroc(run, "own_score") > 0.6


@pytest.mark.parametrize("method", ["energy-ft", "mixoe", "pixmix", "cac", "confidence"])
def test_methods_classify_images_better_than_chance(method: str, tmp_path) -> None:
    run = train(six_epochs(method), tmp_path, device="cpu")
    assert run.record.networks["classifier"].history[-1].held_out_accuracy > 0.8


@pytest.mark.parametrize("method", ["energy-ft", "mixoe"])
def test_fine_tuning_starts_from_the_baseline_at_a_tenth_of_the_rate(method, tmp_path) -> None:
    run = train(points(method), tmp_path / method, device="cpu")
    baseline = train(points("baseline", outliers=()), tmp_path / "baseline", device="cpu")
    networks = run.record.networks
    assert networks["initial"].sha256 == baseline.record.networks["classifier"].sha256
    assert networks["classifier"].sha256 != networks["initial"].sha256
    rates = [networks[name].history[0].lr for name in ("classifier", "initial")]
    assert rates[0] == pytest.approx(0.1 * rates[1])


def test_energy_margins_separate_the_energies_of_both_kinds(tmp_path) -> None:
    margins = {"margin_in": -12.0, "margin_out": 0.0, "lr_factor": 1.0}
    run = train(points("energy-ft", epochs=25, options=margins), tmp_path, device="cpu")
    predictor = Predictor(run)
    generator = torch.Generator().manual_seed(0)
    with torch.inference_mode():
        inside = predictor(torch.tensor([[0.0, 0.0]]) + torch.randn(20, 2, generator=generator))
        around = 12 * torch.nn.functional.normalize(torch.randn(50, 2, generator=generator))
        outside = predictor(around)
    assert float(inside.logsumexp(1).mean()) > float(outside.logsumexp(1).mean()) + 2


@pytest.mark.parametrize("method", ["vos", "confidence", "ii", "mixoe", "mchad"])
def test_a_killed_training_ends_with_the_same_weights(method: str, tmp_path) -> None:
    config = points(method, options=options(method), init_from=None)
    train(config, tmp_path / "whole", device="cpu")

    def die() -> None:
        raise KeyboardInterrupt

    steps = len(method_of(config).trained_networks) * 16
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed", device="cpu", monitor=Dying(steps - 6, die))
    train(config, tmp_path / "killed", device="cpu")
    assert weight_hashes(tmp_path / "killed") == weight_hashes(tmp_path / "whole")


class Dying(CallAtStep):
    """Counts the steps of all networks of a run."""

    def started(self, steps: int, done: int) -> None:
        pass


def test_mixed_images_are_those_of_an_uninterrupted_training(tmp_path) -> None:
    config = digits("pixmix")
    train(config, tmp_path / "whole", device="cpu")

    def die() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed", device="cpu", monitor=CallAtStep(7, die))
    train(config, tmp_path / "killed", device="cpu")
    assert weight_hashes(tmp_path / "killed") == weight_hashes(tmp_path / "whole")


def test_options_reach_the_mixing_the_loss_and_the_rate() -> None:
    given = {"form": "cutmix", "alpha": 2.0, "gamma": 1.0, "lr_factor": 0.5}
    method = method_of(points("mixoe", options=given))
    assert dict(method.mixing_options) == {"form": "cutmix", "alpha": 2.0}
    assert dict(method.loss_options) == {"gamma": 1.0}
    assert method.lr_factor == 0.5
    assert dict(method_of(points("logit-norm")).loss_options) == {"t": 0.04}


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("mixoe", {"frm": "mixup"}, "has no option 'frm'. Did you mean 'form'"),
        ("mixoe", {"form": "cutmix"}, "use form=mixup"),
        ("mixoe", {"lr_factor": 2}, "lr_factor must be a number above 0 and at most 1, not 2"),
        ("baseline", {"lr_factor": 0.5}, "fine-tunes nothing"),
        ("pixmix", {}, "not points"),
        ("energy-ft", {"margin": -3}, "margin_in"),
        ("cac", {"alpha": -1}, "alpha"),
        ("energy-margin", {}, "No method trains with the loss 'energy-margin'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_trained(
    method: str, given: dict[str, Any], says: str, tmp_path
) -> None:
    with pytest.raises((UserError, TypeError), match=says):
        train(points(method, options=given), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_methods_that_learn_from_outliers_refuse_to_train_without_any(tmp_path) -> None:
    with pytest.raises(UserError, match="'vos-reg' needs outliers to train with"):
        train(points("vos-reg", outliers=()), tmp_path / "out", device="cpu")


def test_every_loss_of_logits_and_labels_is_a_method_by_its_name() -> None:
    for entry in dpn_methods():
        method = registry.load("methods", entry.name)
        assert (method.name, method.loss) == (entry.name, entry.name)
        assert registry.load("losses", entry.name) is not None
