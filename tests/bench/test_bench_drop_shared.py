"""A suite with overlap = "drop": counted in bench.json, the same in workers and when run again."""

from pathlib import Path

import numpy as np
import pytest
from tiny_bench import DIGITS, bench, file_hashes, record, suite_file

from dpn_plugin.bench import PoolExecutor
from dpn_plugin.errors import UserError
from dpn_plugin.report import write_report

SHARED = {
    'source = "sklearn:digits"\nclasses = [5, 6]': 'source = "npz:outliers.npz"',
    'source = "pytorch_ood:UniformNoise/60"': 'source = "npz:textures.npz"',
}
DROP = {'title = "Digits"': 'title = "Digits"\noverlap = "drop"'}


def suite(folder: Path, changes: dict[str, str]) -> Path:
    """Write a suite whose outliers and test set share ten images, like two real collections."""
    random = np.random.default_rng(0)
    outliers, tests = (random.integers(0, 256, (60, 8, 8), dtype=np.uint8) for _ in range(2))
    tests[::6] = outliers[:10]
    for name, images in (("outliers", outliers), ("textures", tests)):
        np.savez(folder / f"{name}.npz", images=images, labels=np.zeros(60, dtype=np.int64))
    return suite_file(folder, DIGITS, SHARED | changes)


def test_shared_images_stop_a_benchmark_by_default_and_the_message_names_the_option(
    tmp_path: Path,
) -> None:
    words = r"10 of the 60 images of the OOD test set 'noise' are also .* overlap = \"drop\""
    with pytest.raises(UserError, match=words):
        bench(suite(tmp_path, {}), tmp_path / "out")


def test_dropped_images_are_counted_and_reruns_and_workers_see_the_same_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = suite(tmp_path, DROP), tmp_path / "out"
    options = {"methods": ("baseline", "dpn-minus"), "epochs": 1}
    monitor = bench(path, out, **options)
    assert any("10 of the 60 images" in message for message in monitor.warnings)
    found = record(out)
    noise = found["sets"]["far"]["noise"]
    assert (noise["samples"], noise["dropped"]) == (50, 10)
    assert found["in_domain_test"]["dropped"] == 0
    assert any("they were dropped" in message for message in found["warnings"])
    before = file_hashes(out)
    again = bench(path, out, **options)
    assert (again.steps, again.detectors) == (0, [])
    assert file_hashes(out) == before
    bench(path, tmp_path / "pool", executor=PoolExecutor(2), **options)
    pool = record(tmp_path / "pool")
    assert pool["sets"] == found["sets"]
    assert pool["fingerprints"] == found["fingerprints"]
    assert pool["warnings"] == found["warnings"]
    stored = {path.name for path in (tmp_path / "pool/store").iterdir()}
    assert len(stored) == len({path.name for path in (out / "store").iterdir()})
    monkeypatch.setattr("dpn_plugin.report.figures._FIGURES", {})
    page = write_report(out).read_text("utf-8")
    assert "50 samples; 10 shared with other data were dropped" in page
    assert "10 of the 60 images of the OOD test set &#39;noise&#39;" in page


def test_another_word_is_refused(tmp_path: Path) -> None:
    changes = {'title = "Digits"': 'title = "Digits"\noverlap = "ignore"'}
    with pytest.raises(UserError, match=r"overlap.*'error' or 'drop'"):
        bench(suite(tmp_path, changes), tmp_path / "out")
