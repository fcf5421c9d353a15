"""The images of a benchmark's report: chosen by stored outputs, written once, repaired."""

import base64
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_bench import DIGITS, POINTS, bench, suite_file

from dpn_plugin import functional
from dpn_plugin.backbones import Backbone
from dpn_plugin.data import load
from dpn_plugin.detectors import GaussianKL
from dpn_plugin.evaluation import SamplesRecord, read_evaluation, read_samples
from dpn_plugin.outputs import OutputStore
from dpn_plugin.report import write_report
from dpn_plugin.runs import open_run, read_held_out

METHODS = ("baseline", "dpn-minus", "mcdp", "binary")
MEASURES = {
    "dpn-maxp": functional.one_minus_max_p,
    "dpn-entropy": functional.entropy,
    "dpn-mi": functional.mutual_information,
    "dpn-precision": lambda logits: -functional.log_precision(logits),
    "dpn-dent": lambda logits: -functional.log_neg_differential_entropy(logits),
}


def run_folder(out: Path, method: str) -> Path:
    return out / f"runs/test_resnet/{method}/seed-0"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("samples")
    bench(suite_file(out, DIGITS), out, methods=METHODS)
    return out


def shown(out: Path, method: str) -> SamplesRecord:
    record = read_samples(run_folder(out, method))
    assert record is not None
    return record


def logits_of(out: Path, method: str, name: str) -> torch.Tensor:
    evaluation = read_evaluation(run_folder(out, method))
    group, _, own = name.partition(".")
    key = getattr(evaluation.outputs, group)
    stored = OutputStore(out / "store").open(key[own] if own else key)
    return torch.from_numpy(np.array(stored.arrays["logits"])).double()


def test_every_set_has_its_accepted_samples_and_the_in_domain_ones_come_last(out: Path) -> None:
    for method in METHODS:
        found = [(each.kind, each.group, each.dataset) for each in shown(out, method).groups]
        assert found == [
            ("accepted", "near", "seven"),
            ("accepted", "near", "eight"),
            ("accepted", "far", "noise"),
            ("accepted", "far", "flower"),
            ("rejected", "", ""),
            ("misclassified", "", ""),
        ]


def test_the_accepted_samples_have_the_lowest_scores(out: Path) -> None:
    record = shown(out, "dpn-minus")
    for group in record.groups[:4]:
        logits = logits_of(out, "dpn-minus", f"{group.group}.{group.dataset}")
        scores = MEASURES[record.detector](logits)
        assert group.total == len(scores)
        assert group.count == int((scores <= record.threshold).sum())
        best = torch.argsort(scores, stable=True)[: min(6, group.count)]
        assert [each.index for each in group.samples] == best.tolist()
        for each in group.samples:
            assert each.predicted == str(int(logits[each.index].argmax()))
            assert each.actual is None
            for name, measure in MEASURES.items():
                value = float(measure(logits[each.index : each.index + 1]))
                assert each.scores[name] == pytest.approx(value, rel=1e-5, abs=1e-6)


def test_in_domain_samples_are_rejected_above_the_threshold_or_misclassified(out: Path) -> None:
    record = shown(out, "dpn-minus")
    rejected, wrong = record.groups[4:]
    scores = MEASURES[record.detector](logits_of(out, "dpn-minus", "in_domain_test"))
    assert rejected.count == int((scores > record.threshold).sum())
    order = torch.argsort(-scores, stable=True)[: min(6, rejected.count)]
    assert [each.index for each in rejected.samples] == order.tolist()
    assert wrong.count >= len(wrong.samples) > 0
    assert all(each.predicted != each.actual for each in wrong.samples)
    found = [scores[each.index] for each in wrong.samples]
    assert found == sorted(found)


def test_sources_are_those_of_the_scorer_fitted_to_the_held_out_samples(out: Path) -> None:
    held_out = read_held_out(open_run(run_folder(out, "dpn-minus")))
    detector = GaussianKL().fit_logits(held_out["logits"], held_out["labels"])
    group = next(each for each in shown(out, "dpn-minus").groups if each.samples)
    logits = logits_of(out, "dpn-minus", f"{group.group}.{group.dataset}")
    for each in group.samples:
        expected = detector.predict_source(logits[each.index : each.index + 1])[0].tolist()
        found = each.sources
        assert found is not None
        found = [found.correct, found.misclassified, found.ood]
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_a_thumbnail_is_the_image_of_its_position(out: Path) -> None:
    images = load("sklearn:digits?classes=7", root=out, image_size=(8, 8), channels=1).inputs
    group = next(each for each in shown(out, "baseline").groups if each.dataset == "seven")
    assert group.samples
    for each in group.samples:
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(each.png))))
        assert np.array_equal(pixels, images[each.index, 0].numpy())


def test_methods_without_dirichlet_outputs_show_what_they_have(out: Path) -> None:
    names = {"mcdp": {"dpn-maxp", "dpn-entropy", "dpn-mi"}}
    names["binary"] = {"binary", "dpn-maxp", "dpn-entropy"}
    for method, expected in names.items():
        record = shown(out, method)
        samples = [each for group in record.groups for each in group.samples]
        assert samples
        assert all(each.scores.keys() == expected and not each.sources for each in samples)
        assert "no Dirichlet distribution" in record.no_sources
    assert shown(out, "binary").detector == "binary"


def test_a_repeated_benchmark_keeps_them_and_repairs_damaged_ones(
    out: Path, tmp_path: Path, monkeypatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    paths = sorted(copy.glob("runs/*/*/*/samples.json"))
    assert len(paths) == len(METHODS)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}
    # neither needs a network: all outputs are stored
    monkeypatch.setattr(Backbone, "forward", None)
    monkeypatch.setattr(Backbone, "outputs", None)
    bench(copy / "mine.toml", copy, methods=METHODS)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths} == before
    damaged, removed = paths[:2]
    damaged.write_bytes(damaged.read_bytes().replace(b'"threshold": ', b'"threshold": 1'))
    removed.unlink()
    monitor = bench(copy / "mine.toml", copy, methods=METHODS)
    assert [each for each in monitor.warnings if "written again" in each]
    assert {path: path.read_bytes() for path in paths} == {p: c for p, (_, c) in before.items()}


def test_points_in_the_plane_have_no_samples(tmp_path: Path) -> None:
    bench(suite_file(tmp_path, POINTS), tmp_path, methods=("baseline",))
    assert not list(tmp_path.rglob("samples.json"))
    page = write_report(tmp_path).read_text("utf-8")
    assert 'id="samples"' not in page
    assert 'href="#samples"' not in page
