"""
Fuzz a reader of files with atheris: ``python tests/fuzz/fuzz.py suites|npz|store -runs=100000``.

Whatever the bytes are, a reader gives a result or raises ``UserError``. Anything else, a hang or
more than 2 GiB of memory stops the fuzzer, which leaves the bytes in ``crash-*`` for a test.
Arguments after the reader's name are libFuzzer's; folders among them hold further seeds.
"""

import hashlib
import io
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["dpn_plugin", "tomllib", "zipfile", "numpy.lib"]):
    import tomllib  # noqa: F401
    import zipfile  # noqa: F401

    from dpn_plugin.bench.suite import load_suite
    from dpn_plugin.data.sources import from_npz
    from dpn_plugin.outputs import Ingredients, OutputStore

import torch

from dpn_plugin.errors import UserError

FOLDER = Path(tempfile.mkdtemp(prefix="dpn-fuzz-"))
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=20000"]


def suites(content: bytes) -> None:
    """The reader of suite files."""
    path = FOLDER / "fuzzed.toml"
    path.write_bytes(content)
    load_suite(str(path))


def npz(content: bytes) -> None:
    """The reader of archives."""
    path = FOLDER / "fuzzed.npz"
    path.write_bytes(content)
    from_npz.load(str(path), split=None, root=FOLDER)


MADE_OF = Ingredients("w", "d", None, "test")


def store(content: bytes) -> None:
    """The reader of stored outputs, their record and one array in turn, with a forged hash."""
    folder = FOLDER / "store" / MADE_OF.key
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "logits.npy").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    record = f'{{"sha256": "{digest}", "shape": [2, 3], "dtype": "<f4"}}'
    ingredients = '{"weights":"w","data":"d","transform":null,"split":"test","extra":{}}'
    entry = f'{{"ingredients": {ingredients}, "arrays": {{"logits": {record}}}}}'
    (folder / "entry.json").write_bytes(content if content[:1] == b"{" else entry.encode())
    OutputStore(FOLDER / "store").open(MADE_OF.key)


READERS: dict[str, Callable[[bytes], None]] = {"suites": suites, "npz": npz, "store": store}


def seeds(reader: str) -> Iterator[bytes]:
    """:return: good files, to begin with"""
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
        return
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, images=images, labels=labels, classes=np.array(["a", "b"]))
        yield stream.getvalue()


def main() -> None:
    """Fuzz the reader that the first argument names."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in READERS:
        sys.exit(f"usage: fuzz.py {'|'.join(READERS)} [libFuzzer's arguments]")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # damaged files make NumPy and zipfile warn
    logging.disable()
    corpus = FOLDER / "seeds"
    corpus.mkdir()
    for number, content in enumerate(seeds(name)):
        (corpus / str(number)).write_bytes(content)

    def once(content: bytes) -> None:
        try:
            READERS[name](content)
        except UserError as error:
            if not str(error):
                raise

    atheris.Setup([sys.argv[0], *LIMITS, *sys.argv[2:], str(corpus)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
