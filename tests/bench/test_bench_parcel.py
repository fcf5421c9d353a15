"""Files that come home from a machine without the output folder."""

from pathlib import Path

import pytest

from dpn_plugin.bench.on_ray import parcel
from dpn_plugin.bench.on_ray.parcel import Parcel, packed
from dpn_plugin.errors import UserError


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parcel, "_PIECE", 5)
    for name, text in {
        "runs/net/run.json": "twelve bytes",
        "runs/net/empty.csv": "",
        "store/key/logits.npy": "numbers",
        "store/.writers": "a lock",
        "store/.unfinished.tmp/logits.npy": "half",
    }.items():
        path = tmp_path / "away" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "away"


def sent(away: Path, home: Path) -> Parcel:
    made = Parcel(home, "0")
    for name, piece in packed(away, away):
        assert len(piece) <= 5
        made.add(name, piece)
    return made


def test_nothing_shows_before_all_is_here(away: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = sent(away, home)
    assert [path.name for path in home.iterdir()] == [".parcels"]
    made.unpack()
    found = {str(p.relative_to(home)): p.read_text() for p in home.rglob("*") if p.is_file()}
    assert found["runs/net/run.json"] == "twelve bytes"
    assert found["runs/net/empty.csv"] == ""
    assert found["store/key/logits.npy"] == "numbers"
    assert not any("half" in text or "a lock" in text for text in found.values())


def test_a_newer_run_replaces_and_stored_outputs_stay(away: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("runs/net/old.csv", "store/key/logits.npy"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("from before")
    sent(away, home).unpack()
    assert sorted(path.name for path in (home / "runs" / "net").iterdir()) == [
        "empty.csv",
        "run.json",
    ]
    assert (home / "store/key/logits.npy").read_text() == "from before"


def test_half_a_parcel_of_a_killed_session_is_thrown_away(away: Path, tmp_path: Path) -> None:
    sent(away, tmp_path / "home")
    sent(away, tmp_path / "home").unpack()
    assert (tmp_path / "home/runs/net/run.json").read_text() == "twelve bytes"


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "runs/../../../outside"])
def test_no_name_leads_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="outside of the results"):
        Parcel(tmp_path / "home", "0").add(name, b"")
