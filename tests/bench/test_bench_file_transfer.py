"""Files that are copied back from a worker without the output folder."""

from pathlib import Path

import pytest

from dpn_plugin.bench.execution import ray_task
from dpn_plugin.bench.execution.ray_task import FileTransfer, read_chunks
from dpn_plugin.errors import UserError


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ray_task, "_CHUNK", 5)
    for name, text in {
        "runs/net/run.json": "twelve bytes",
        "runs/net/empty.csv": "",
        "store/key/logits.npy": "numbers",
        "store/.key.x1.tmp.lock": "a lock",
        "store/.unfinished.tmp/logits.npy": "half",
    }.items():
        path = tmp_path / "worker" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "worker"


def send(worker: Path, driver: Path) -> FileTransfer:
    transfer = FileTransfer(driver, "0")
    for name, chunk in read_chunks(worker, worker):
        assert len(chunk) <= 5
        transfer.add(name, chunk)
    return transfer


def test_nothing_is_visible_before_all_files_have_arrived(worker: Path, tmp_path: Path) -> None:
    driver = tmp_path / "driver"
    transfer = send(worker, driver)
    assert [path.name for path in driver.iterdir()] == [".transfers"]
    transfer.finish()
    found = {str(p.relative_to(driver)): p.read_text() for p in driver.rglob("*") if p.is_file()}
    assert found["runs/net/run.json"] == "twelve bytes"
    assert found["runs/net/empty.csv"] == ""
    assert found["store/key/logits.npy"] == "numbers"
    assert not any("half" in text or "a lock" in text for text in found.values())


def test_a_newer_run_replaces_and_stored_outputs_stay(worker: Path, tmp_path: Path) -> None:
    driver = tmp_path / "driver"
    for name in ("runs/net/old.csv", "store/key/logits.npy"):
        (driver / name).parent.mkdir(parents=True)
        (driver / name).write_text("from before")
    send(worker, driver).finish()
    assert sorted(path.name for path in (driver / "runs" / "net").iterdir()) == [
        "empty.csv",
        "run.json",
    ]
    assert (driver / "store/key/logits.npy").read_text() == "from before"


def test_an_incomplete_transfer_of_a_killed_session_is_discarded(
    worker: Path, tmp_path: Path
) -> None:
    send(worker, tmp_path / "driver")
    send(worker, tmp_path / "driver").finish()
    assert (tmp_path / "driver/runs/net/run.json").read_text() == "twelve bytes"


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "runs/../../../outside"])
def test_no_name_leads_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="outside of the results"):
        FileTransfer(tmp_path / "driver", "0").add(name, b"")
