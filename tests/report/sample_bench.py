"""Folders as ``dpn bench`` leaves them, made of invented logits and truly measured figures."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from dpn_plugin.detectors import GaussianKL
from dpn_plugin.functional import entropy, mutual_information, one_minus_max_p
from dpn_plugin.metrics import (
    RESULT_COLUMNS,
    calibration_metrics,
    misclassification_metrics,
    ood_metrics,
    softmax_confidence,
)
from dpn_plugin.outputs import Ingredients, OutputStore
from dpn_plugin.training import Recipe, TrainConfig

DETECTORS = {
    "dpn-maxp": one_minus_max_p,
    "dpn-entropy": entropy,
    "dpn-mi": mutual_information,
}
#: how far OOD logits fall, by method
SKILL = {"baseline": 0.1, "oe": 0.5, "dpn-minus": 1.0}


@dataclass
class SampleBench:
    """A benchmark to invent."""

    suite: str = "digits"
    title: str = "Handwritten digits against letters"
    backbone: str = "test_resnet"
    methods: tuple[str, ...] = tuple(SKILL)
    seeds: tuple[int, ...] = (0, 1, 2)
    near: tuple[str, ...] = ("letters",)
    far: tuple[str, ...] = ("noise", "textures")
    classes: int = 5
    samples: int = 240
    warnings: tuple[str, ...] = ()
    not_run: tuple[dict, ...] = ()
    rows: list[dict] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        """Write the folder."""
        for method in self.methods:
            for seed in self.seeds:
                self._write_run(folder, method, seed)
        pd.DataFrame(self.rows, columns=RESULT_COLUMNS).to_csv(folder / "results.csv", index=False)
        (folder / "bench.json").write_text(json.dumps(self._record()))
        return folder

    def _record(self) -> dict:
        sets = {"near": self.near, "far": self.far}
        return {
            "format": 1,
            "suite": self.suite,
            "title": self.title,
            "backbones": [self.backbone],
            "methods": list(self.methods),
            "detectors": list(DETECTORS),
            "seeds": list(self.seeds),
            "sets": {
                group: {
                    name: {"source": f"npz:{name}.npz", "samples": self.samples} for name in own
                }
                for group, own in sets.items()
            },
            "in_domain": {
                "source": "sklearn:digits",
                "samples": 1500,
                "classes": [str(index) for index in range(self.classes)],
            },
            "in_domain_test": {"source": "sklearn:digits", "samples": self.samples},
            "outliers": {"outliers": {"source": "npz:outliers.npz"}},
            "versions": {"dpn-plugin": "0.1.0", "torch": "2.9.0"},
            "device": "cpu",
            "started": "2026-01-02T03:04:05+00:00",
            "seconds": 83.2,
            "warnings": list(self.warnings),
            "not_run": list(self.not_run),
            "command": f"dpn bench {self.suite} --backbone {self.backbone}",
        }

    def _write_run(self, folder: Path, method: str, seed: int) -> None:
        random = np.random.default_rng([seed, len(method)])
        store, run = (
            OutputStore(folder / "store"),
            folder / f"runs/{self.backbone}/{method}/seed-{seed}",
        )
        run.mkdir(parents=True)
        skill = SKILL.get(method, 1.0)
        test = self._in_domain(random)
        keys: dict = {"in_domain_test": _stored(store, test, f"{method} {seed} test")}
        sets = {}
        for group, names in (("near", self.near), ("far", self.far)):
            drop = skill * (0.7 if group == "near" else 1.6)
            own = {name: self._out(random, drop) for name in names}
            keys[group] = {n: _stored(store, a, f"{method} {seed} {n}") for n, a in own.items()}
            sets |= {(group, name): arrays for name, arrays in own.items()}
        self._measure(method, seed, test, sets)
        record = {"backbone": self.backbone, "method": method, "seed": seed, "outputs": keys}
        (run / "evaluation.json").write_text(json.dumps(record))
        (run / "run.json").write_text(json.dumps(self._run_record(method, seed)))
        _history(random).to_csv(run / "history.csv", index=False)

    def _run_record(self, method: str, seed: int) -> dict:
        config = TrainConfig(
            backbone=self.backbone,
            method=method,
            in_domain="sklearn:digits",
            recipe=Recipe(optimizer="sgd", lr=0.1, epochs=8, batch_size=64, outlier_batch_size=32),
            seed=seed,
        )
        return {
            "config": config.model_dump(mode="json"),
            "networks": {},
            "classes": [str(index) for index in range(self.classes)],
            "input_shape": [1, 8, 8],
            "transform": {"mean": [0.5], "std": [0.5], "size": [8, 8]},
            "finished": True,
        }

    def _in_domain(self, random: np.random.Generator) -> dict[str, torch.Tensor]:
        labels = random.integers(self.classes, size=self.samples)
        logits = random.normal(0, 2.0, (self.samples, self.classes))
        logits[np.arange(self.samples), labels] += 4.5
        return {"logits": torch.tensor(logits).float(), "labels": torch.tensor(labels)}

    def _out(self, random: np.random.Generator, drop: float) -> dict[str, torch.Tensor]:
        logits = random.normal(0, 1.6 / (1 + drop), (self.samples, self.classes))
        logits[:, 0] += 2.5 / (1 + drop)
        labels = torch.full((self.samples,), -1)
        return {"logits": torch.tensor(logits - drop).float(), "labels": labels}

    def _measure(self, method: str, seed: int, test: dict, sets: dict) -> None:
        def add(task: str, detector: str, dataset: str, figures: dict[str, float]) -> None:
            identity = (self.suite, self.backbone, method, seed, task, detector, dataset)
            for metric, value in figures.items():
                self.rows.append(dict(zip(RESULT_COLUMNS, (*identity, metric, value), strict=True)))

        logits, labels = test["logits"], test["labels"]
        correct = logits.argmax(dim=1) == labels
        add("classification", "", "", {"accuracy": float(correct.float().mean())})
        for detector, score in DETECTORS.items():
            found = {key: ood_metrics(score(logits), score(a["logits"])) for key, a in sets.items()}
            for (_, name), figures in found.items():
                add("ood", detector, name, figures)
            for group, figures in _group_means(found).items():
                add("ood", detector, group, figures)
            figures = misclassification_metrics(score(logits), correct)
            add("misclassification", detector, "", figures)
        for (_, name), arrays in sets.items():
            sure, unsure = softmax_confidence(logits), softmax_confidence(arrays["logits"])
            add("calibration", "", name, calibration_metrics(sure, correct, unsure))
            both = torch.cat([logits, arrays["logits"]]), torch.cat([labels, arrays["labels"]])
            add("gap", "", name, GaussianKL().fit_logits(*both).gap())


def _group_means(found: dict[tuple[str, str], dict[str, float]]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[dict[str, float]]] = {}
    for (group, _), figures in found.items():
        groups.setdefault(group, []).append(figures)
    return {group: pd.DataFrame(each).mean().to_dict() for group, each in groups.items()}


def _stored(store: OutputStore, arrays: dict[str, torch.Tensor], name: str) -> str:
    ingredients = Ingredients(weights=name, data="invented", transform=None, split="test")
    store.write(ingredients, [arrays])
    return ingredients.key


def _history(random: np.random.Generator) -> pd.DataFrame:
    epochs = np.arange(1, 9)
    loss = np.exp(-epochs / 3) + random.normal(0, 0.02, len(epochs))
    return pd.DataFrame(
        {
            "network": "classifier",
            "epoch": epochs,
            "loss": loss,
            "accuracy": 1 - loss / 2,
            "held_out_loss": loss + 0.05,
            "held_out_accuracy": 0.95 - loss / 2,
        }
    )
