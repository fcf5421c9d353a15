"""Suite files by name or path: read, show and copy them."""

import os
import tomllib
from pathlib import Path

from pydantic import ValidationError

from dpn_plugin._files import write_text
from dpn_plugin.bench.suite import Suite
from dpn_plugin.data import clean_spec
from dpn_plugin.errors import UserError, validation_message
from dpn_plugin.plugins import registry, takes


def load_suite(name: str | Path) -> tuple[str, Suite, Path]:
    """
    Read a suite and return its name, the suite, and the folder that its relative paths start from.

    :param name: a suite's name, or the path of a suite file
    :raises UserError: if there is none, or a key in it is wrong
    """
    path = _suite_path(str(name))
    try:
        table = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise UserError(
            f"{path} is not a suite: its tables or lists are nested too deep."
        ) from error
    try:
        suite = Suite.model_validate(table)
    except ValidationError as error:
        raise UserError(f"{path.name}: {validation_message(error, Suite)}") from error
    changes = {f"[methods.{name}]": each.train for name, each in suite.methods.defined.items()}
    for where, train in {"[train]": {}, **changes}.items():
        try:
            suite.train.create_recipe(**train)
        except UserError as error:
            raise UserError(f"{path.name}: {where}: {error}") from error
    return path.stem, suite, path.parent


def read_suite_text(name: str) -> str:
    """
    Return the content of a suite file.

    :param name: a suite's name, or the path of a suite file
    :raises UserError: if there is none, or it cannot be read
    """
    return _read_text(_suite_path(name))


def copy_suite(name: str, path: Path) -> dict[str, Path]:
    """
    Copy a suite file, so that it can be edited.

    :param name: a suite's name, or the path of a suite file
    :param path: the file to write
    :return: sources that the copy does not find, because they are relative to the folder of the
        original, and where the original finds them
    :raises UserError: if there is no such suite, or the file exists
    """
    title, suite, base = load_suite(name)
    if path.suffix != ".toml":
        raise UserError(f"The name of a suite file must end in .toml: {path}.toml, not {path}.")
    if os.path.lexists(path):
        raise UserError(f"{path} exists already. Choose another name, or remove it.")
    write_text(path, _COPY_NOTE.format(title) + read_suite_text(name))
    return _left_behind(suite, base, path.parent)


def _left_behind(suite: Suite, base: Path, folder: Path) -> dict[str, Path]:
    """Return the sources that the original finds in its folder, and a copy does not."""
    return {
        spec.source: base / spec.argument
        for spec in map(clean_spec, suite.sources.values())
        if takes(registry.load("datasets", spec.scheme), "base")
        and not os.path.isabs(spec.argument)
        and os.path.exists(base / spec.argument)
        and not os.path.exists(folder / spec.argument)
    }


_COPY_NOTE = """\
# A copy of the suite {!r}. Relative paths of sources are looked up in the folder of this file, then
# in the data root (--data-root or DPN_DATA_ROOT).
"""


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error


def _suite_path(name: str) -> Path:
    if name.endswith(".toml") or "/" in name:
        # os.path does not raise for names that the system does not allow
        if not os.path.isfile(name):
            raise UserError(f"There is no suite file {name!r}.")
        return Path(name)
    return Path(registry.load("suites", name))
