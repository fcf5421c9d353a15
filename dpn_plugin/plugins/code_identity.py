"""The code behind an entry: results that it made are recomputed when it changes."""

import hashlib
import json
from collections.abc import Iterable
from importlib import metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from dpn_plugin.plugins.discovery import OWN_PACKAGE, Source
from dpn_plugin.plugins.hookspecs import Entry
from dpn_plugin.plugins.manager import plugins

#: packages whose version identifies their code, and the distributions that they come from
_VERSIONED = {
    "dpn_plugin": OWN_PACKAGE,
    "benchmark_suites": OWN_PACKAGE,
    "pytorch_ood": "pytorch-ood",
    "timm": "timm",
}


def code_identity(kind: str, name: str) -> str:
    """
    Return the distribution, version and source hash of an entry.

    It is empty for code that the recorded versions identify: ours and the hosts', unless they are
    installed in editable mode. For a plugin, the sources of its whole package are hashed, since a
    detector may use other modules of it.

    :param kind: a key of ``KINDS``
    :param name: a name or an alias; it may be unknown, such as a backbone of timm
    """
    found = plugins().entries(kind).get(name.lower())
    if found is None:
        return ""
    entry, source = found
    if source.package != OWN_PACKAGE:
        return f"{source} {_package_hash(_module(entry, source))}"
    module = _module(entry, source)
    distribution = _VERSIONED.get(module.partition(".")[0], OWN_PACKAGE)
    return f"{source} {_module_hash(module)}" if _is_editable(distribution) else ""


def _module(entry: Entry, source: Source) -> str:
    """Return the module that defines an entry; an object may be an instance of a class of ours."""
    if isinstance(entry.factory, str):
        return entry.factory.partition(":")[0]
    return source.point.module


def _module_hash(module: str) -> str:
    spec = _find(module)
    files = [Path(spec.origin)] if spec and spec.origin else []
    return _hash_files(files)


def _package_hash(module: str) -> str:
    spec = _find(module.partition(".")[0])
    folders = [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
    if not folders:
        return _module_hash(module)
    return _hash_files(path for folder in folders for path in folder.rglob("*.py"))


def _find(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module)
    except (ImportError, ValueError):
        return None


def _hash_files(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _is_editable(distribution: str) -> bool:
    try:
        url = metadata.distribution(distribution).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return True  # a source tree that is not installed
    return bool(url and json.loads(url).get("dir_info", {}).get("editable"))
