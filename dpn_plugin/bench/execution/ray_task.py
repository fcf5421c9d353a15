"""One run on a worker of a Ray cluster, and the files that it copies back."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from queue import Queue

from dpn_plugin._files import cannot_write, creating_folder
from dpn_plugin.bench.execution.workers import Message, carry_out_remotely
from dpn_plugin.bench.executor import RunResult
from dpn_plugin.bench.plan import Plan
from dpn_plugin.errors import UserError

_CHUNK = 16 * 2**20
#: where a run that was trained elsewhere is put in a scratch folder
TRAINED = "trained"


def read_chunks(folder: Path, root: Path) -> Iterator[tuple[str, bytes]]:
    """
    Return the files of a folder in chunks: pairs of a name and the next bytes of the file.

    :param folder: whose files are sent
    :param root: names are relative to it
    """
    for path in sorted(folder.rglob("*")):
        # hidden files are locks and temporary files
        if path.is_file() and not any(part.startswith(".") for part in path.parts[-2:]):
            with path.open("rb") as file:
                chunk = file.read(_CHUNK)
                while True:
                    yield path.relative_to(root).as_posix(), chunk
                    if not (chunk := file.read(_CHUNK)):
                        break


def append_chunk(root: Path, name: str, chunk: bytes) -> None:
    """
    Append a chunk to a file.

    :param root: the folder that receives the files
    :param name: from :func:`read_chunks`
    :param chunk: the next bytes of the file
    :raises UserError: if the name leads out of the folder, or the disk is full
    """
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise UserError(f"A file was sent for {name}, which is outside of the results.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(chunk)
    except OSError as error:
        raise cannot_write(path, error) from error


class FileTransfer:
    """
    Receives files for a folder, where nothing is visible before all have arrived.

    :param out: the folder of the benchmark
    :param name: of this transfer
    """

    def __init__(self, out: Path, name: str) -> None:
        self.out = out
        self.received = out / ".transfers" / name
        shutil.rmtree(self.received, ignore_errors=True)  # of a session that was killed

    def add(self, name: str, chunk: bytes) -> None:
        """
        Keep a chunk.

        :param name: from :func:`read_chunks`
        :raises UserError: if it leads out of the folder, or the disk is full
        """
        append_chunk(self.received, name, chunk)

    def finish(self) -> None:
        """Move every folder to its place, stored outputs before the run that refers to them."""
        folders = {path.parent for path in self.received.rglob("*") if path.is_file()}
        for folder in sorted(folders, key=lambda f: (not _is_stored_output(f), f)):
            target = self.out / folder.relative_to(self.received)
            with creating_folder(target, replace=not _is_stored_output(folder)) as temporary:
                for path in folder.iterdir():
                    if path.is_file():
                        path.rename(temporary / path.name)
        shutil.rmtree(self.received, ignore_errors=True)


def _is_stored_output(folder: Path) -> bool:
    return folder.parent.name == "store"


@dataclass(frozen=True)
class RayTask:
    """
    What a worker gets.

    :param plan: with absolute paths
    :param index: of the run
    :param session: identifies the benchmark, whose data workers keep from one run to the next, and
        names a file in the output folder by which a worker recognises the folder
    :param scratch: work in a scratch folder, even if the output folder is shared
    :param on_driver: the run has files already, which were not sent along
    :param threads: number of threads that compute
    :param version: of dpn-plugin on the driver
    """

    plan: Plan
    index: int
    session: str
    scratch: bool
    on_driver: bool
    threads: int
    version: str


def stream_messages(task: RayTask, files: list[tuple[str, bytes]]) -> Iterator[Message]:
    """
    Carry out a run and return its messages.

    The first is ``accepted``. Then come those of :func:`carry_out_remotely`, with a ``file`` before
    the last one for every chunk that must be copied back. ``needs_files`` ends the stream early if
    files of the run are missing.

    :param task: what to do
    :param files: the files of the run from the driver
    """
    yield "accepted", ()
    if version("dpn-plugin") != task.version:
        reason = f"a worker has dpn-plugin {version('dpn-plugin')}, not {task.version}"
        yield "result", (RunResult(task.index, reason=reason),)
    elif not task.scratch and (task.plan.out / task.session).is_file():
        yield from _messages(task)
    elif task.on_driver:
        yield "needs_files", ()
    else:
        with tempfile.TemporaryDirectory(prefix="dpn-") as name:
            yield from _messages_from_scratch(task, files, Path(name))


def _messages_from_scratch(
    task: RayTask, files: list[tuple[str, bytes]], out: Path
) -> Iterator[Message]:
    for name, chunk in files:
        append_chunk(out, name, chunk)
    # the data outlives the folder: it serves the following runs of the session, too
    plan = task.plan.moved(out, trained=out / TRAINED).without_cache()
    for message in _messages(replace(task, plan=plan)):
        if message[0] == "result":
            # not the folders of other runs, which were sent along for their networks
            for folder in (plan.runs[task.index].folder, out / "store"):
                yield from (("file", chunk) for chunk in read_chunks(folder, out))
        yield message


def _messages(task: RayTask) -> Iterator[Message]:
    """Carry out the run in a thread, and pass on its messages in this one."""
    messages: Queue[Message | BaseException] = Queue()
    threading.Thread(target=_carry_out, args=(task, messages), daemon=True).start()
    while True:
        message = messages.get()
        if isinstance(message, BaseException):
            raise message
        yield message
        if message[0] in ("result", "cannot_write"):
            return


def _carry_out(task: RayTask, messages: "Queue[Message | BaseException]") -> None:
    try:
        carry_out_remotely(task.plan, task.index, task.session, task.threads, messages.put)
    except BaseException as error:
        messages.put(error)
