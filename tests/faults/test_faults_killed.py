"""``kill -9`` at twenty moments, and again and again."""

import re
import signal
from pathlib import Path
from random import Random

import pytest
from dpn_process import Dpn
from folders import check_same

random = Random(4)
#: in thousandths of all events
MOMENTS = sorted(random.sample(range(1000), 20))


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(moment: int, first: Dpn, tmp_path: Path, record_property) -> None:
    at = moment * len(first.events) // 1000
    record_property("fault", "kill -9")
    record_property("where", f"event {at} of {len(first.events)}: {_plain(first.events[at])}")
    dpn = Dpn(first.suite, tmp_path / "out", at=at)
    assert dpn.run() == -signal.SIGKILL
    assert _plain(dpn.events[-1]) == _plain(first.events[at])
    again = Dpn(first.suite, dpn.out)
    assert again.run() == 0, again.said
    record_property("seen", f"again: {again.done}")
    check_same(dpn.out, first.out)


def test_killed_again_and_again(first: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "kill -9, again and again")
    kills, out = 0, tmp_path / "out"
    while (dpn := Dpn(first.suite, out, at=random.randint(60, 120))).run() == -signal.SIGKILL:
        kills += 1
        assert kills < 60
    record_property("where", f"{kills} times, every 60 to 120 events")
    assert dpn.process.exitcode == 0, dpn.said
    record_property("seen", f"at last: {dpn.done}")
    check_same(out, first.out)


def _plain(event: str) -> str:
    """:return: the event without folders, which are many, and without what is made up"""
    kind, _, path = event.partition(" ")
    name = re.sub(r"(^\.|\.[a-z0-9_]{8}(?=\.tmp)|(?<=writing-).*)", "", Path(path).name)
    return f"{kind.removeprefix('os.')} {name}".strip()
