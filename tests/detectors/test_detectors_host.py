"""The detectors inside pytorch-ood's own Benchmark and GridSearch."""

import pytest
import torch
from pytorch_ood.benchmark import Benchmark
from pytorch_ood.detector import EnergyBased
from pytorch_ood.metrics import OODMetrics
from pytorch_ood.utils import GridSearch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, TensorDataset

from dpn_plugin.detectors import (
    DifferentialEntropy,
    GaussianKL,
    MaxProbability,
    MutualInformation,
    Precision,
    PredictiveEntropy,
)

CLASSES = 3


def in_domain(seed: int) -> TensorDataset:
    """Confident logits as inputs; a tenth of the labels is wrong."""
    generator = torch.Generator().manual_seed(seed)
    predicted = torch.arange(150) % CLASSES
    logits = torch.randn(150, CLASSES, generator=generator)
    logits += 6 * torch.nn.functional.one_hot(predicted, CLASSES)
    labels = torch.where(torch.arange(150) % 10 == 0, (predicted + 1) % CLASSES, predicted)
    return TensorDataset(logits, labels)


def outliers(seed: int, mean: float) -> TensorDataset:
    """Logits far below zero, like those of a network trained with DPN-."""
    generator = torch.Generator().manual_seed(seed)
    logits = mean + torch.randn(120, CLASSES, generator=generator)
    return TensorDataset(logits, torch.full((120,), -1))


class OutlierSets(Benchmark):
    ood_names = ("near", "far")

    def train_set(self) -> Dataset:
        return in_domain(0)

    def test_sets(self, known: bool = True, unknown: bool = True) -> list[Dataset]:
        ood = [outliers(2, -3.0), outliers(3, -8.0)]
        return [ConcatDataset([in_domain(1), each]) for each in ood]


def mixed_loader(seed: int) -> DataLoader:
    return DataLoader(ConcatDataset([in_domain(seed), outliers(seed, -5.0)]), batch_size=64)


@pytest.mark.parametrize(
    "detector", [MaxProbability, PredictiveEntropy, MutualInformation, Precision]
)
def test_benchmark_agrees_with_the_metrics_of_the_scores(detector: type) -> None:
    results = OutlierSets().evaluate(
        detector(torch.nn.Identity()), loader_kwargs={"batch_size": 50}
    )
    assert [result["Dataset"] for result in results] == ["near", "far"]
    for result, dataset in zip(results, OutlierSets().test_sets(), strict=True):
        logits, labels = next(iter(DataLoader(dataset, batch_size=len(dataset))))
        metrics = OODMetrics().update(detector.score(logits), labels).compute()
        assert result["AUROC"] == pytest.approx(metrics["AUROC"])
        assert result["AUROC"] > 0.9


def test_benchmark_evaluates_all_at_once_and_precision_like_energy() -> None:
    model = torch.nn.Identity()
    fitted = GaussianKL(model).fit(mixed_loader(4))
    detectors = [Precision(model), EnergyBased(model), DifferentialEntropy(model), fitted]
    results = OutlierSets().evaluate(detectors, loader_kwargs={"batch_size": 50})
    rocs = {(result["Detector"], result["Dataset"]): result["AUROC"] for result in results}
    assert len(rocs) == 8
    for dataset in OutlierSets.ood_names:
        assert rocs["Precision", dataset] == rocs["EnergyBased", dataset]
        assert rocs["DifferentialEntropy", dataset] < 0.2
        assert rocs["GaussianKL", dataset] > 0.95


def test_grid_search_finds_the_inversion() -> None:
    detector = DifferentialEntropy(torch.nn.Identity())
    search = GridSearch(detector, fit_loader=None, val_loader=mixed_loader(5))
    assert search.run() == {"invert": True}
    assert detector.invert
    assert search.best_score_ > 0.9
    assert [result["score"] for result in search.results_] == pytest.approx(
        [1 - search.best_score_, search.best_score_]
    )


def test_grid_search_does_not_invert_for_flat_outliers() -> None:
    flat = TensorDataset(0.1 * torch.randn(120, CLASSES), torch.full((120,), -1))
    confident = TensorDataset(in_domain(6).tensors[0] + 3, in_domain(6).tensors[1])
    loader = DataLoader(ConcatDataset([confident, flat]), batch_size=64)
    detector = DifferentialEntropy(torch.nn.Identity())
    assert GridSearch(detector, fit_loader=None, val_loader=loader).run() == {"invert": False}
