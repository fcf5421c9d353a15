"""Two benchmarks that write to one folder at the same time."""

import os
import signal
from pathlib import Path

from dpn_process import Dpn
from folders import check_same

BUSY = "Another dpn bench is at work in"


def start_and_stop(reference: Dpn, out: Path) -> Dpn:
    """Return a benchmark that was stopped with SIGSTOP in the middle of its work."""
    dpn = Dpn(reference.suite, out, signal=signal.SIGSTOP, at=len(reference.events) // 2).start()
    dpn.wait_for_event()
    return dpn


def test_a_second_benchmark_is_refused(reference: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "the second starts in the middle of the first")
    one = start_and_stop(reference, tmp_path / "out")
    two = Dpn(reference.suite, one.out)
    code = two.run()
    os.kill(one.process.pid, signal.SIGCONT)
    assert one.finish() == 0, one.output
    assert code == 2
    assert BUSY in two.output
    record_property("observed", f"exit 2: {BUSY} OUT; then the first: {one.summary}")
    check_same(one.out, reference.out)


def test_both_start_at_once(reference: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "both start at once")
    both = [Dpn(reference.suite, tmp_path / "out").start() for _ in range(2)]
    ended = {each.finish(): each for each in both}
    assert sorted(ended) == [0, 2], [each.output for each in both]
    assert BUSY in ended[2].output
    record_property("observed", f"one: exit 2; the other: {ended[0].summary}")
    check_same(ended[0].out, reference.out)


def test_a_killed_benchmark_holds_no_lock(reference: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "the first is killed, the second starts at once")
    one = start_and_stop(reference, tmp_path / "out")
    os.kill(one.process.pid, signal.SIGKILL)
    two = Dpn(reference.suite, one.out)
    assert one.finish() == -signal.SIGKILL
    assert two.run() == 0, two.output
    record_property("observed", f"again: {two.summary}")
    check_same(one.out, reference.out)
