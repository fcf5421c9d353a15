"""One unit on a worker of a cluster, told as a stream: how it goes, its files, its end."""

import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from queue import Queue

from dpn_plugin.bench.executor import Outcome
from dpn_plugin.bench.on_ray.parcel import append, packed
from dpn_plugin.bench.teller import Word, tell_unit
from dpn_plugin.bench.workshop import Job

__all__ = ["TRAINED", "Order", "unit_stream"]

#: where a run that was trained elsewhere arrives in a scratch folder
TRAINED = "trained"


@dataclass(frozen=True)
class Order:
    """
    What a worker is sent.

    :param job: with absolute paths
    :param index: of the unit
    :param session: names the benchmark: workers keep its data from one unit to the next; and a
        file in the output folder, by which a worker knows the folder
    :param scratch: work in a scratch folder, also if the output folder is here
    :param at_home: the unit has files already, which were not sent along
    :param threads: that compute
    :param version: of dpn-plugin at home
    """

    job: Job
    index: int
    session: str
    scratch: bool
    at_home: bool
    threads: int
    version: str


def unit_stream(order: Order, known: list[tuple[str, bytes]]) -> Iterator[Word]:
    """
    :param order: what to do
    :param known: the unit's files from home
    :return: the words of :func:`tell_unit`; before them ``begun``; before the last ``file`` for
        every piece that must go home; ``asked`` instead of all if files are missing
    """
    yield "begun", ()
    if version("dpn-plugin") != order.version:
        reason = f"a worker has dpn-plugin {version('dpn-plugin')}, not {order.version}"
        yield "end", (Outcome(order.index, reason=reason),)
    elif not order.scratch and (order.job.out / order.session).is_file():
        yield from _words(order)
    elif order.at_home:
        yield "asked", ()
    else:
        with tempfile.TemporaryDirectory(prefix="dpn-") as name:
            yield from _in_scratch(order, known, Path(name))


def _in_scratch(order: Order, known: list[tuple[str, bytes]], out: Path) -> Iterator[Word]:
    for name, piece in known:
        append(out, name, piece)
    for word in _words(replace(order, job=_moved(order.job, out))):
        if word[0] == "end":
            for part in ("runs", "store"):
                yield from (("file", piece) for piece in packed(out / part, out))
        yield word


def _moved(job: Job, out: Path) -> Job:
    units = tuple(
        replace(
            unit,
            folder=out / unit.folder.relative_to(job.out),
            trained=out / TRAINED if unit.trained else None,
        )
        for unit in job.plan.units
    )
    return replace(job, out=out, plan=replace(job.plan, units=units))


def _words(order: Order) -> Iterator[Word]:
    """Work in a thread, and tell in this one."""
    words: Queue[Word | BaseException] = Queue()
    threading.Thread(target=_work, args=(order, words), daemon=True).start()
    while True:
        word = words.get()
        if isinstance(word, BaseException):
            raise word
        yield word
        if word[0] in ("end", "full"):
            return


def _work(order: Order, words: "Queue[Word | BaseException]") -> None:
    try:
        tell_unit(order.job, order.index, order.session, order.threads, words.put)
    except BaseException as error:
        words.put(error)
