"""
Fuzz a reader of files with atheris: ``python tests/fuzz/fuzz.py suites|npz|store -runs=100000``.

For any bytes, a reader returns a result or raises ``UserError``. Another error, a hang or more than
2 GiB of memory stops the fuzzer, which writes the bytes to ``crash-*`` for a test. Arguments after
the name of the reader are passed to libFuzzer; folders among them hold further seeds.
"""

import hashlib
import io
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["dpn_plugin", "tomllib", "zipfile", "numpy.lib"]):
    import tomllib  # noqa: F401
    import zipfile  # noqa: F401

    from dpn_plugin.bench import load_suite
    from dpn_plugin.data.sources import from_npz
    from dpn_plugin.outputs import OutputKey, OutputStore

import torch

from dpn_plugin._records import json_hash
from dpn_plugin.errors import UserError
from dpn_plugin.outputs.key import EntryRecord

FOLDER = Path(tempfile.mkdtemp(prefix="dpn-fuzz-"))
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=20000"]


def suites(content: bytes) -> None:
    """Read a suite file."""
    path = FOLDER / "fuzzed.toml"
    path.write_bytes(content)
    load_suite(str(path))


def npz(content: bytes) -> None:
    """Read an archive."""
    path = FOLDER / "fuzzed.npz"
    path.write_bytes(content)
    from_npz.load(str(path), split=None, root=FOLDER)


KEY = OutputKey("w", "d", None, "test")


def store(content: bytes) -> None:
    """Read stored outputs: the bytes are the entry's record, or an array with a forged hash."""
    folder = FOLDER / "store" / KEY.hash
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logits.npy").write_bytes(content)
    entry = content if content[:1] == b"{" else json.dumps(forged_entry(content)).encode()
    (folder / "entry.json").write_bytes(with_hash(entry))
    OutputStore(FOLDER / "store").open(KEY.hash)


def forged_entry(content: bytes) -> dict[str, Any]:
    """Return the record of an entry whose one array is a file with this content."""
    array = {"shape": [2, 3], "dtype": "<f4", "sha256": hashlib.sha256(content).hexdigest()}
    return EntryRecord(key=KEY, arrays={"logits": array}).model_dump(mode="json")


def with_hash(record: bytes) -> bytes:
    """Return a JSON object with the hash of its content; other bytes stay as they are."""
    try:
        content = json.loads(record)
        if isinstance(content, dict):
            content.pop("sha256", None)
            return json.dumps({"sha256": json_hash(content), **content}).encode()
    except (ValueError, RecursionError):
        pass
    return record


READERS: dict[str, Callable[[bytes], None]] = {"suites": suites, "npz": npz, "store": store}


def seeds(reader: str) -> Iterator[bytes]:
    """Return valid files to start from."""
    if reader == "suites":
        yield from (
            path.read_bytes()
            for path in files("benchmark_suites").iterdir()
            if path.name.endswith(".toml")
        )
        return
    images, labels = np.arange(32, dtype=np.uint8).reshape(2, 4, 4), np.array([0, 1])
    stream = io.BytesIO()
    if reader == "store":
        np.save(stream, np.zeros((2, 3), np.float32))
        yield stream.getvalue()
        yield json.dumps(forged_entry(stream.getvalue())).encode()
        return
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, images=images, labels=labels, classes=np.array(["a", "b"]))
        yield stream.getvalue()


def main() -> None:
    """Fuzz the reader that is named by the first argument."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in READERS:
        sys.exit(f"usage: fuzz.py {'|'.join(READERS)} [arguments of libFuzzer]")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # damaged files make NumPy and zipfile warn
    logging.disable()
    corpus = FOLDER / "seeds"
    corpus.mkdir()
    for number, content in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(content)

    def read_once(content: bytes) -> None:
        try:
            READERS[name](content)
        except UserError as error:
            if not str(error):
                raise

    atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[2:], str(corpus)], read_once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
