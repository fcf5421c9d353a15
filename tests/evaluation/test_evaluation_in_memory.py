"""``dpn_plugin.evaluate``: a model and loaders that exist, timm or not."""

import copy

import numpy as np
import pytest
import timm
import torch
from pytorch_ood.detector import EnergyBased
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18

import dpn_plugin
from dpn_plugin.backbones import tensors_hash
from dpn_plugin.errors import UserError, UserTypeError
from dpn_plugin.metrics import RESULT_COLUMNS

QUICK = ["energy", "knn", "mahalanobis-pp", "vim", "react", "odin"]


def loader(samples: int = 40, shift: float = 0.0, label: int | None = None, **options):
    generator = torch.Generator().manual_seed(int(shift * 10) + samples)
    x = torch.randn(samples, 3, 32, 32, generator=generator) + shift
    y = torch.arange(samples) % 4 if label is None else torch.full((samples,), label)
    return DataLoader(TensorDataset(x, y), batch_size=16, **options)


def network(name: str = "test_resnet") -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model(name, num_classes=4).eval()


def value(table, detector: str, metric: str = "auroc", dataset: str = "other") -> float:
    rows = table[(table.detector == detector) & (table.task == "ood") & (table.metric == metric)]
    return float(rows[rows.dataset == dataset].value.iloc[0])


class Counted(nn.Module):
    """A network that counts the samples that pass through it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.seen = model, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += len(x)
        return self.model(x)


def test_the_table_has_the_columns_of_results_csv_and_the_figures_of_scikit_learn() -> None:
    model, inside, outside = network(), loader(), loader(30, 0.5, -1)
    table = dpn_plugin.evaluate(
        model, in_domain=inside, ood={"other": outside}, fit=loader(60), detectors=QUICK
    )
    assert list(table.columns) == list(RESULT_COLUMNS)
    assert table.attrs["not_run"] == {}
    with torch.no_grad():
        energies = [
            torch.cat([EnergyBased(model).predict(x) for x, _ in each])
            for each in (inside, outside)
        ]
        correct = torch.cat([model(x).argmax(1) == y for x, y in inside])
    truth = np.repeat([0, 1], [40, 30])
    assert value(table, "energy-based") == pytest.approx(roc_auc_score(truth, torch.cat(energies)))
    accuracy = table[table.metric == "accuracy"].value.iloc[0]
    assert accuracy == pytest.approx(float(correct.float().mean()))


@pytest.mark.parametrize("name", ["resnet18", "given", "dotted", "functions"])
def test_models_that_timm_does_not_know_work_with_detectors_of_features(name: str) -> None:
    torch.manual_seed(0)
    model = resnet18(num_classes=4).eval()
    parts = {}
    if name == "given":
        parts = {"head": model.fc}
    elif name == "dotted":
        parts = {"encoder": "avgpool", "head": "fc"}
    elif name == "functions":
        features = nn.Sequential(*list(model.children())[:-1], nn.Flatten())
        parts = {"encoder": features, "head": lambda z: model.fc(z)}
    sets = {"in_domain": loader(), "ood": {"other": loader(30, 0.5, -1)}, "fit": loader(60)}
    table = dpn_plugin.evaluate(model, **sets, detectors=["knn", "react", "vim"], **parts)
    ours = timm.create_model("resnet18", num_classes=4).eval()
    ours.load_state_dict(model.state_dict())  # the same names and the same network
    same = dpn_plugin.evaluate(ours, **sets, detectors=["knn", "react", "vim"])
    for detector in ("knn", "react"):
        assert value(table, detector) == pytest.approx(value(same, detector), abs=2e-3)
    if name == "functions":
        assert "linear head" in table.attrs["not_run"]["vim"]
    else:
        assert value(table, "vim") == pytest.approx(value(same, "vim"), abs=2e-3)


def test_every_set_passes_through_the_model_once() -> None:
    model = Counted(resnet18(num_classes=4)).eval()
    dpn_plugin.evaluate(
        model,
        loader(),
        {"one": loader(30, 0.5, -1), "two": loader(20, 0.7, -1)},
        detectors=["energy", "msp", "dpn-mi"],
    )
    # the first two samples are used a few more times to find the head
    assert model.seen - (40 + 30 + 20) <= 8


def test_detectors_that_do_not_apply_are_listed_with_the_reason() -> None:
    sets = {"in_domain": loader(), "ood": {"other": loader(30, 0.5, -1)}}
    with pytest.warns(UserWarning, match="were not run"):
        table = dpn_plugin.evaluate(
            network("test_vit"), **sets, detectors=["energy", "knn", "gram"]
        )
    assert "pass fit=" in table.attrs["not_run"]["knn"]
    assert "feature maps" in table.attrs["not_run"]["gram"]
    assert set(table.detector) == {"", "energy-based"}


def test_a_model_without_a_separable_classifier_says_what_to_pass() -> None:
    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3 * 32 * 32, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * self.layer(x.flatten(1))

    sets = {"in_domain": loader(), "ood": {"other": loader(30, 0.5, -1)}, "fit": loader(60)}
    with pytest.warns(UserWarning, match="were not run"):
        table = dpn_plugin.evaluate(Doubled(), **sets, detectors=["energy", "knn"])
    assert "pass encoder=" in table.attrs["not_run"]["knn"]
    assert value(table, "energy-based") >= 0
    with pytest.raises(UserError, match="does not turn the features into the logits"):
        dpn_plugin.evaluate(Doubled(), **sets, head="layer")
    with pytest.raises(UserError, match="layer"):
        dpn_plugin.evaluate(Doubled(), **sets, head="layr")


def test_a_model_is_identified_by_its_weights_and_stays_as_it_was() -> None:
    model, sets = network(), {"in_domain": loader(), "ood": {"other": loader(30, 0.5, -1)}}
    model.train()
    first = dpn_plugin.evaluate(model, **sets, detectors="energy")
    again = dpn_plugin.evaluate(copy.deepcopy(model), **sets, detectors="energy")
    assert model.training
    assert first.attrs["weights"] == again.attrs["weights"]
    assert first.equals(again)
    with torch.no_grad():
        next(model.parameters()).add_(0.5)  # the object is the same, the model is not
    other = dpn_plugin.evaluate(model, **sets, detectors="energy")
    assert other.attrs["weights"] != first.attrs["weights"] == tensors_hash(network().state_dict())
    assert other.backbone.iloc[0] != first.backbone.iloc[0]
    assert not other.value.equals(first.value)


def test_labels_below_zero_decide_which_samples_are_ood() -> None:
    inside, outside = loader(), loader(30, 0.5, -1)
    mixed = DataLoader(inside.dataset + outside.dataset, batch_size=16)
    foreign = loader(30, 0.5, 2)  # SVHN has labels of its own
    expected = value(
        dpn_plugin.evaluate(network(), inside, {"other": outside}, None, "odin"), "odin"
    )
    for first, second in ((inside, mixed), (mixed, outside), (inside, foreign)):
        table = dpn_plugin.evaluate(network(), first, {"other": second}, detectors="odin")
        assert value(table, "odin") == pytest.approx(expected)


def test_groups_have_means_and_held_out_data_gives_calibration() -> None:
    ood = {"far.a": loader(30, 0.5, -1), "far.b": loader(30, 1.0, -1)}
    table = dpn_plugin.evaluate(
        network(), loader(), ood, detectors="energy", held_out=loader(50), name="mine"
    )
    each = [value(table, "energy-based", dataset=name) for name in ("a", "b")]
    assert value(table, "energy-based", dataset="far") == pytest.approx(np.mean(each))
    assert "calibration" in set(table.task)
    assert set(table.backbone) == {"mine"}


BAD = {
    "other shapes": (
        lambda: {"other": [(torch.zeros(4, 3, 16, 16), torch.zeros(4).int())]},
        "shape",
    ),
    "no pairs": (lambda: {"other": [torch.zeros(4, 3, 32, 32)]}, "pairs"),
    "wrong labels": (
        lambda: {"other": [(torch.zeros(4, 3, 32, 32), torch.zeros(3).int())]},
        "labels",
    ),
    "a generator": (lambda: {"other": iter(loader())}, "several times"),
    "nothing": (lambda: {"other": []}, "is empty"),
    "no table": (lambda: loader(), "by name"),
    "a group": (lambda: {"medium.other": loader()}, r"near\.NAME"),
}


@pytest.mark.parametrize("case", BAD)
def test_loaders_that_do_not_fit_are_refused_in_a_sentence(case: str) -> None:
    ood, message = BAD[case]
    with pytest.raises(UserError, match=message):
        dpn_plugin.evaluate(network(), loader(), ood(), detectors="energy")


def test_models_and_labels_that_do_not_fit_are_refused() -> None:
    ood = {"other": loader(30, 0.5, -1)}
    with pytest.raises(UserTypeError, match="torch module"):
        dpn_plugin.evaluate(lambda x: x, loader(), ood)
    with pytest.raises(UserError, match="logits B x K"):
        dpn_plugin.evaluate(nn.Identity(), loader(), ood)
    with pytest.raises(UserError, match="label 9, and the model 4 classes"):
        dpn_plugin.evaluate(network(), loader(30, 0.0, 9), ood)


def test_a_loader_that_shuffles_is_no_test_data_for_detectors_of_inputs() -> None:
    with pytest.warns(UserWarning, match="were not run"):
        table = dpn_plugin.evaluate(
            network(), loader(shuffle=True), {"other": loader(30, 0.5, -1)}, detectors="odin"
        )
    assert "shuffle=False" in table.attrs["not_run"]["odin"]


class Reads:
    """A loader that counts how often it is iterated over."""

    def __init__(self, source: DataLoader) -> None:
        self.source, self.reads = source, 0

    def __iter__(self):
        self.reads += 1
        return iter(self.source)


def test_detectors_of_inputs_share_a_second_pass_with_the_figures_of_each_alone() -> None:
    names = ["gram", "nacue", "odin", "multi-mahalanobis", "mahalanobis-odin"]
    sets = {"in_domain": loader(), "fit": loader(60)}
    outside = Reads(loader(30, 0.5, -1))
    together = dpn_plugin.evaluate(network(), **sets, ood={"in_domain": outside}, detectors=names)
    assert together.attrs["not_run"] == {}
    assert outside.reads == 2  # for the outputs, and for all of these detectors
    for name in names:
        ood = {"in_domain": loader(30, 0.5, -1)}
        alone = dpn_plugin.evaluate(network(), **sets, ood=ood, detectors=[name])
        rows = together[together.detector == name].reset_index(drop=True)
        assert rows.equals(alone[alone.detector == name].reset_index(drop=True))
