"""``evaluation.json``: the figures of one run, sealed with their hash."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpn_plugin.files import write_text
from dpn_plugin.sealed import sealed, unsealed

__all__ = ["EVALUATION", "FAILED", "missing_detectors", "read_evaluation", "write_evaluation"]

EVALUATION = "evaluation.json"
#: how the reason begins where a detector broke: it is tried again, for memory may be free then
FAILED = "failed: "

_log = logging.getLogger(__name__)


def read_evaluation(path: Path) -> dict[str, Any] | None:
    """:return: the content; ``None``, with a warning if it is damaged, where there is none"""
    try:
        return unsealed(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        _log.warning("%s is damaged; the run is evaluated again.", path)
        return None


def write_evaluation(path: Path, content: dict[str, Any]) -> None:
    """Write it, whole or not at all."""
    write_text(path, sealed(content))


def missing_detectors(
    content: dict[str, Any] | None, asked: Sequence[str], tuned: bool
) -> list[str]:
    """
    :param content: of ``evaluation.json``
    :param asked: names
    :param tuned: whether hyper-parameters shall have been searched
    :return: those of the names that are still to be evaluated
    """
    known = {} if content is None else content["detectors"]
    return [name for name in asked if name not in known or not _usable(known[name], tuned)]


def _usable(found: dict[str, Any], tuned: bool) -> bool:
    return found["tuned"] == tuned and not (found["reason"] or "").startswith(FAILED)
