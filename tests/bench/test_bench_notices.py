"""Warnings on the way are told once, and nothing of them stays behind."""

import logging
import warnings

from dpn_plugin.bench.notices import joined, noticed


def test_each_kind_is_told_once_and_all_are_kept() -> None:
    told: list[str] = []
    with noticed(told.append) as notices:
        for count in (1, 2, 2):
            warnings.warn(f"{count} samples are too few")
        logging.getLogger("dpn_plugin.somewhere").warning("The disk is %s", "slow")
        logging.getLogger("pytorch_ood.detector").warning("adjusted to 62")
        logging.getLogger("pytorch_ood.detector").info("not told")
        warnings.warn("old", DeprecationWarning)
        assert notices.since(1) == ["2 samples are too few", "The disk is slow", "adjusted to 62"]
    assert told == ["1 samples are too few", "The disk is slow", "adjusted to 62"]


def test_afterwards_warnings_go_where_they_went(caplog, recwarn) -> None:
    told: list[str] = []
    with noticed(told.append):
        pass
    logging.getLogger("dpn_plugin.somewhere").warning("heard by others")
    warnings.warn("seen by others")
    assert "heard by others" in caplog.text
    assert [str(each.message) for each in recwarn] == ["seen by others"]
    assert told == []


def test_runs_that_say_the_same_are_one_line() -> None:
    said = [("oe seed 0", "2 are few"), ("oe seed 1", "1 are few"), ("edl seed 0", "other")]
    assert joined(said) == ["2 are few (oe seed 0 and 1 more runs)", "other (edl seed 0)"]
