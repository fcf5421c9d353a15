"""Two that want to write at once."""

import os
import signal
from pathlib import Path

from dpn_process import Dpn
from folders import check_same

SENTENCE = "Another dpn bench is at work in"


def stopped(first: Dpn, out: Path) -> Dpn:
    """:return: one that stands still in the middle of its work"""
    dpn = Dpn(first.suite, out, signal=signal.SIGSTOP, at=len(first.events) // 2).start()
    dpn.wait_for_event()
    return dpn


def test_a_second_one_is_sent_away(first: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "the second starts in the middle of the first")
    one = stopped(first, tmp_path / "out")
    two = Dpn(first.suite, one.out)
    code = two.run()
    os.kill(one.process.pid, signal.SIGCONT)
    assert one.finish() == 0, one.said
    assert code == 2
    assert SENTENCE in two.said
    record_property("seen", f"exit 2: {SENTENCE} OUT; then the first: {one.done}")
    check_same(one.out, first.out)


def test_both_start_at_once(first: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "both start at once")
    both = [Dpn(first.suite, tmp_path / "out").start() for _ in range(2)]
    ended = {each.finish(): each for each in both}
    assert sorted(ended) == [0, 2], [each.said for each in both]
    assert SENTENCE in ended[2].said
    record_property("seen", f"one: exit 2; the other: {ended[0].done}")
    check_same(ended[0].out, first.out)


def test_the_dead_hold_no_lock(first: Dpn, tmp_path: Path, record_property) -> None:
    record_property("fault", "two writers")
    record_property("where", "the first is killed, the second starts at once")
    one = stopped(first, tmp_path / "out")
    os.kill(one.process.pid, signal.SIGKILL)
    two = Dpn(first.suite, one.out)
    assert one.finish() == -signal.SIGKILL
    assert two.run() == 0, two.said
    record_property("seen", f"again: {two.done}")
    check_same(one.out, first.out)
