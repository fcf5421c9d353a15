"""``kill -9`` at twenty moments, and repeatedly."""

import re
import signal
from pathlib import Path
from random import Random

import pytest
from dpn_process import Dpn
from folders import check_same

random = Random(4)
#: moments in thousandths of all events
MOMENTS = sorted(random.sample(range(1000), 20))


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(moment: int, reference: Dpn, tmp_path: Path, record_property) -> None:
    at = moment * len(reference.events) // 1000
    record_property("fault", "kill -9")
    record_property(
        "where", f"event {at} of {len(reference.events)}: {_describe(reference.events[at])}"
    )
    dpn = Dpn(reference.suite, tmp_path / "out", at=at)
    assert dpn.run() == -signal.SIGKILL
    assert _describe(dpn.events[-1]) == _describe(reference.events[at])
    again = Dpn(reference.suite, dpn.out)
    assert again.run() == 0, again.output
    record_property("observed", f"again: {again.summary}")
    check_same(dpn.out, reference.out)


def test_killed_repeatedly(reference: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "kill -9, repeatedly")
    kills, out = 0, tmp_path / "out"
    while (dpn := Dpn(reference.suite, out, at=random.randint(60, 120))).run() == -signal.SIGKILL:
        kills += 1
        assert kills < 60
    record_property("where", f"{kills} times, every 60 to 120 events")
    assert dpn.process.exitcode == 0, dpn.output
    record_property("observed", f"in the end: {dpn.summary}")
    check_same(out, reference.out)


def _describe(event: str) -> str:
    """Return the event without folders, and without the random part of temporary names."""
    kind, _, path = event.partition(" ")
    name = re.sub(r"(^\.|\.[0-9a-f]{8}(?=\.tmp))", "", Path(path).name)
    return f"{kind.removeprefix('os.')} {name}".strip()
