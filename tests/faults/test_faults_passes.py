"""Faults in the middle of a forward pass, which is then continued."""

import re
import shutil
import signal
from itertools import pairwise
from pathlib import Path

import pytest
from dpn_process import Dpn
from folders import check_same
from test_faults_disk import last_message

#: just before a chunk counts
CHUNK = re.compile(r"os\.rename store/\.(\w{64})\.part/\.chunks\.json\.\w+\.tmp")


@pytest.fixture(scope="module")
def chunked(reference: Dpn, workspace: Path) -> Dpn:
    """The same benchmark with a chunk for every batch, which gives the same files."""
    dpn = Dpn(reference.suite, workspace / "chunked", chunk=1)
    assert dpn.run() == 0, dpn.output
    check_same(dpn.out, reference.out)
    return dpn


def chunk_events(dpn: Dpn) -> list[int]:
    return [i for i, event in enumerate(dpn.events) if CHUNK.fullmatch(event)]


def killed_in_a_pass(chunked: Dpn, out: Path, share: float) -> tuple[Dpn, Path]:
    """Return a benchmark that was killed in a pass, and the folder of the unfinished entry."""
    moments, names = chunk_events(chunked), chunked.events
    # not in the first chunk of a pass, of which nothing is kept
    later = [i for before, i in pairwise(moments) if names[before][:80] == names[i][:80]]
    at = later[int(share * (len(later) - 1))]
    dpn = Dpn(chunked.suite, out, at=at, chunk=1)
    assert dpn.run() == -signal.SIGKILL
    (part,) = out.glob("store/.*.part")
    return dpn, part


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_killed_in_a_pass(
    share: float, chunked: Dpn, reference: Dpn, tmp_path: Path, record_property
) -> None:
    dpn, _ = killed_in_a_pass(chunked, tmp_path / "out", share)
    record_property("fault", "kill -9 in a pass")
    record_property("where", f"event {dpn.at} of {len(chunked.events)}")
    again = Dpn(reference.suite, dpn.out, chunk=1)
    assert again.run() == 0, again.output
    record_property("observed", f"again: {len(chunk_events(again))} chunks computed")
    assert len(chunk_events(dpn)) + len(chunk_events(again)) <= len(chunk_events(chunked)) + 1
    check_same(dpn.out, reference.out)


def test_a_chunk_that_does_not_fit_on_the_disk(
    chunked: Dpn, reference: Dpn, tmp_path: Path, record_property
) -> None:
    largest = max(path.stat().st_size for path in reference.out.glob("store/*/*.npy"))
    record_property("fault", "full disk while a chunk is written")
    record_property("where", f"the last chunk of {largest} bytes")
    dpn = Dpn(reference.suite, tmp_path / "out", largest=largest - 1, chunk=1)
    code = dpn.run()
    record_property("observed", f"exit {code}: {last_message(dpn)}")
    assert code == 2
    assert "File too large" in dpn.output
    assert len(list(dpn.out.glob("store/.*.part/chunks.json"))) == 1
    again = Dpn(reference.suite, dpn.out, chunk=1)
    assert again.run() == 0, again.output
    check_same(dpn.out, reference.out)


@pytest.mark.parametrize("damage", ["one bit", "truncated", "record emptied", "removed"])
def test_a_chunk_that_is_damaged_before_its_pass_is_continued(
    damage: str, chunked: Dpn, reference: Dpn, tmp_path: Path, record_property
) -> None:
    dpn, part = killed_in_a_pass(chunked, tmp_path / "out", 0.9)
    record_property("fault", f"unfinished outputs, {damage}")
    path = max(part.glob("*.npy"), key=lambda each: each.stat().st_size)
    record_property("where", path.name)
    if damage == "one bit":
        content = bytearray(path.read_bytes())
        content[200] ^= 1
        path.write_bytes(content)
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "record emptied":
        (part / "chunks.json").write_bytes(b"")
    else:
        shutil.rmtree(part)
    again = Dpn(reference.suite, dpn.out, chunk=1)
    assert again.run() == 0, again.output
    record_property("observed", f"again: {len(chunk_events(again))} chunks computed")
    check_same(dpn.out, reference.out)
