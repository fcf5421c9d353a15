"""Warnings are collected, and each kind is shown once."""

import logging
import warnings

from dpn_plugin.evaluation import collect_warnings, join_messages


def test_each_kind_is_shown_once_and_all_are_kept() -> None:
    shown: list[str] = []
    with collect_warnings(shown.append) as collector:
        for count in (1, 2, 2):
            warnings.warn(f"{count} samples are too few")
        logging.getLogger("dpn_plugin.somewhere").warning("The disk is %s", "slow")
        logging.getLogger("pytorch_ood.detector").warning("adjusted to 62")
        logging.getLogger("pytorch_ood.detector").info("not shown")
        warnings.warn("old", DeprecationWarning)
        assert collector.since(1) == ["2 samples are too few", "The disk is slow", "adjusted to 62"]
    assert shown == ["1 samples are too few", "The disk is slow", "adjusted to 62"]


def test_afterwards_warnings_are_printed_as_before(caplog, recwarn) -> None:
    shown: list[str] = []
    with collect_warnings(shown.append):
        pass
    logging.getLogger("dpn_plugin.somewhere").warning("logged as before")
    warnings.warn("printed as before")
    assert "logged as before" in caplog.text
    assert [str(each.message) for each in recwarn] == ["printed as before"]
    assert shown == []


def test_equal_messages_of_several_runs_become_one() -> None:
    messages = [("oe seed 0", "2 are few"), ("oe seed 1", "1 are few"), ("edl seed 0", "other")]
    assert join_messages(messages) == [
        "2 are few (oe seed 0 and 1 more runs)",
        "other (edl seed 0)",
    ]
