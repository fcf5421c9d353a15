"""Benchmark folders with invented logits, and with values that are really computed from them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dpn_plugin._records import write_record
from dpn_plugin.bench import BenchRecord
from dpn_plugin.detectors import GaussianKL
from dpn_plugin.evaluation import DetectorEvaluation, EvaluationRecord, write_scores
from dpn_plugin.functional import entropy, mutual_information, one_minus_max_p
from dpn_plugin.metrics import (
    RESULT_COLUMNS,
    calibration_metrics,
    misclassification_metrics,
    ood_metrics,
    softmax_confidence,
)
from dpn_plugin.outputs import OutputKey, OutputStore
from dpn_plugin.runs import Recipe, RunRecord, TrainConfig

DETECTORS = {
    "dpn-maxp": one_minus_max_p,
    "dpn-entropy": entropy,
    "dpn-mi": mutual_information,
}
#: how much lower the logits of OOD samples are, by method
LOGIT_DROPS = {"baseline": 0.1, "oe": 0.5, "dpn-minus": 1.0}


@dataclass
class SampleBench:
    """The properties of an invented benchmark."""

    suite: str = "digits"
    title: str = "Handwritten digits against letters"
    backbone: str = "test_resnet"
    methods: tuple[str, ...] = tuple(LOGIT_DROPS)
    seeds: tuple[int, ...] = (0, 1, 2)
    near: tuple[str, ...] = ("letters",)
    far: tuple[str, ...] = ("noise", "textures")
    classes: int = 5
    samples: int = 240
    epochs: int = 8
    limit: int | None = None
    selection: str = ""
    warnings: tuple[str, ...] = ()
    not_run: tuple[dict, ...] = ()
    rows: list[dict] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        """Write the folder."""
        for method in self.methods:
            for seed in self.seeds:
                self._write_run(folder, method, seed)
        pd.DataFrame(self.rows, columns=RESULT_COLUMNS).to_csv(folder / "results.csv", index=False)
        write_record(folder / "bench.json", self.record())
        return folder

    def record(self) -> BenchRecord:
        """Return the ``bench.json`` of the benchmark."""
        sets = {"near": self.near, "far": self.far}
        return BenchRecord.model_validate(
            {
                "suite": self.suite,
                "title": self.title,
                "backbones": [self.backbone],
                "methods": list(self.methods),
                "detectors": list(DETECTORS),
                "seeds": list(self.seeds),
                "sets": {
                    group: {
                        name: {
                            "source": f"npz:{name}.npz",
                            "selection": self.selection,
                            "samples": self.samples,
                        }
                        for name in own
                    }
                    for group, own in sets.items()
                },
                "in_domain": {
                    "source": "sklearn:digits",
                    "samples": 1500,
                    "classes": self._class_names(),
                },
                "in_domain_test": {"source": "sklearn:digits", "samples": self.samples},
                "outliers": {
                    "outliers": {
                        "source": "npz:outliers.npz",
                        "selection": "classes=0-169",
                        "samples": 4321,
                    }
                },
                "fingerprints": {},
                "epochs": self.epochs,
                "suite_epochs": 8,
                "limit": self.limit,
                "versions": {"dpn-plugin": "0.1.0", "torch": "2.9.0"},
                "code": {},
                "device": "cpu",
                "started": "2026-01-02T03:04:05+00:00",
                "seconds": 83.2,
                "warnings": list(self.warnings),
                "not_run": list(self.not_run),
                "command": f"dpn bench {self.suite} --backbone {self.backbone}",
            }
        )

    def _class_names(self) -> list[str]:
        return [str(index) for index in range(self.classes)]

    def _write_run(self, folder: Path, method: str, seed: int) -> None:
        random = np.random.default_rng([seed, len(method)])
        store = OutputStore(folder / "store")
        run = folder / f"runs/{self.backbone}/{method}/seed-{seed}"
        test = self._in_domain(random)
        keys: dict[str, Any] = {"in_domain_test": store_outputs(store, test, f"{method} {seed}")}
        sets = {}
        for group, names in (("near", self.near), ("far", self.far)):
            drop = LOGIT_DROPS.get(method, 1.0) * (0.7 if group == "near" else 1.6)
            own = {name: self._ood(random, drop) for name in names}
            keys[group] = {
                name: store_outputs(store, arrays, f"{method} {seed} {name}")
                for name, arrays in own.items()
            }
            sets |= {(group, name): arrays for name, arrays in own.items()}
        self._measure(method, seed, test, sets)
        evaluation = evaluation_record(self.backbone, method, seed, keys)
        evaluation.detectors.update(_store_scores(store, f"{method} {seed}", test, sets))
        write_record(run / "evaluation.json", evaluation)
        write_record(run / "run.json", self._run_record(method, seed, _history(random)))

    def _run_record(self, method: str, seed: int, history: list[dict]) -> RunRecord:
        config = TrainConfig(
            backbone=self.backbone,
            method=method,
            in_domain="sklearn:digits",
            recipe=Recipe(optimizer="sgd", lr=0.1, epochs=8, batch_size=64, outlier_batch_size=32),
            seed=seed,
        )
        return RunRecord.model_validate(
            {
                "config": config,
                "versions": {},
                "device": "cpu",
                "processes": 1,
                "networks": {
                    "classifier": {
                        "sha256": "",
                        "identity": "",
                        "seconds": 1.0,
                        "history": history,
                    }
                },
                "classes": self._class_names(),
                "input_shape": [1, 8, 8],
                "transform": {"mean": [0.5], "std": [0.5], "size": [8, 8]},
                "finished": True,
            }
        )

    def _in_domain(self, random: np.random.Generator) -> dict[str, torch.Tensor]:
        labels = random.integers(self.classes, size=self.samples)
        logits = random.normal(0, 2.0, (self.samples, self.classes))
        logits[np.arange(self.samples), labels] += 4.5
        return {"logits": torch.tensor(logits).float(), "labels": torch.tensor(labels)}

    def _ood(self, random: np.random.Generator, drop: float) -> dict[str, torch.Tensor]:
        logits = random.normal(0, 1.6 / (1 + drop), (self.samples, self.classes))
        logits[:, 0] += 2.5 / (1 + drop)
        labels = torch.full((self.samples,), -1)
        return {"logits": torch.tensor(logits - drop).float(), "labels": labels}

    def _measure(self, method: str, seed: int, test: dict, sets: dict) -> None:
        def add(task: str, detector: str, dataset: str, values: dict[str, float]) -> None:
            identity = (self.suite, self.backbone, method, seed, task, detector, dataset)
            for metric, value in values.items():
                self.rows.append(dict(zip(RESULT_COLUMNS, (*identity, metric, value), strict=True)))

        logits, labels = test["logits"], test["labels"]
        correct = logits.argmax(dim=1) == labels
        add("classification", "", "", {"accuracy": float(correct.float().mean())})
        for detector, score in DETECTORS.items():
            found = {key: ood_metrics(score(logits), score(a["logits"])) for key, a in sets.items()}
            for (_, name), values in found.items():
                add("ood", detector, name, values)
            for group, values in _group_means(found).items():
                add("ood", detector, group, values)
            values = misclassification_metrics(score(logits), correct)
            add("misclassification", detector, "", values)
        for (_, name), arrays in sets.items():
            inside, outside = softmax_confidence(logits), softmax_confidence(arrays["logits"])
            add("calibration", "", name, calibration_metrics(inside, correct, outside))
            both = torch.cat([logits, arrays["logits"]]), torch.cat([labels, arrays["labels"]])
            add("gap", "", name, GaussianKL().fit_logits(*both).gap())


def evaluation_record(
    backbone: str, method: str, seed: int, keys: dict[str, Any]
) -> EvaluationRecord:
    """Return an ``evaluation.json`` without values; ``keys`` are those of stored outputs."""
    return EvaluationRecord.model_validate(
        {
            "identity": {"outputs": {}, "versions": {}},
            "data": {},
            "code": {},
            "backbone": backbone,
            "method": method,
            "seed": seed,
            "outputs": keys,
            "general": [],
            "warnings": [],
            "training_seconds": 1.0,
            "seconds": 1.0,
        }
    )


def store_outputs(store: OutputStore, arrays: dict[str, torch.Tensor], name: str) -> str:
    """Store invented outputs and return the hash of their key."""
    key = OutputKey(weights=name, data="invented", transform=None, split="test")
    store.write(key, [arrays])
    return key.hash


def _store_scores(
    store: OutputStore, name: str, test: dict, sets: dict
) -> dict[str, DetectorEvaluation]:
    """Store the scores of every detector, and return evaluations that refer to them."""
    key = OutputKey(weights=name, data="invented", transform=None, split="test")
    logits = {"in_domain_test": test, **{".".join(name): each for name, each in sets.items()}}
    found = {}
    for detector, score in DETECTORS.items():
        scores = {name: score(arrays["logits"].double()) for name, arrays in logits.items()}
        found[detector] = DetectorEvaluation(scores=write_scores(store, key, detector, scores))
    return found


def _group_means(found: dict[tuple[str, str], dict[str, float]]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[dict[str, float]]] = {}
    for (group, _), values in found.items():
        groups.setdefault(group, []).append(values)
    return {group: pd.DataFrame(each).mean().to_dict() for group, each in groups.items()}


def _history(random: np.random.Generator) -> list[dict]:
    epochs = np.arange(1, 9)
    losses = np.exp(-epochs / 3) + random.normal(0, 0.02, len(epochs))
    return [
        {
            "epoch": epoch,
            "lr": 0.1,
            "loss": loss,
            "loss_in": loss,
            "loss_out": 0.0,
            "accuracy": 1 - loss / 2,
            "held_out_loss": loss + 0.05,
            "held_out_accuracy": 0.95 - loss / 2,
            "seconds": 1.0,
            "images_per_second": 1500.0,
        }
        for epoch, loss in zip(epochs.tolist(), losses.tolist(), strict=True)
    ]
