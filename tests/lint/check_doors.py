"""
Check that rooms are imported through their doors, and by import statements only.

A room is a package directly below ``dpn_plugin``; its door is the ``__all__`` of the package. Other
rooms import a name from the door, never from a module or a package inside the room. Inside a room
modules import each other directly. Modules directly below ``dpn_plugin`` may be imported by all.

A module named in a string would be invisible to this check and to import-linter, so such strings
are allowed only where a name is data; see ``NAMES_AS_DATA``. Every room and every module directly
below the package has to appear in the layers of import-linter in pyproject.toml.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from source_tree import PACKAGE, main, modules

#: files, below the package, in which names of modules are data, and why
NAMES_AS_DATA = {
    "__init__.py": "public names that are imported on first use",
    "cli/commands.py": "the table of commands; a command is imported when it runs",
    "plugins/builtin.py": "references of entries, which are imported on first use",
    "plugins/bridges.py": "names that the hosts import on first use",
    "plugins/host_status.py": "names of the hosts, which are imported by name",
    "plugins/hookspecs.py": "Entry.resolve imports the reference that an entry was given",
}
#: calls whose arguments may name modules: worker processes import them before they start work
PRELOADS = {"set_forkserver_preload"}
#: calls that find a data file in a package; a room may do that with its own
RESOURCES = {"files", "PackageLoader"}
IMPORTS = {"import_module", "__import__"}

MODULE_NAME = re.compile(rf"{PACKAGE}(\.\w+)*\.?(:\w+)?")


def problems(root: Path) -> list[str]:
    """Return a line ``file:line: message`` for every violation."""
    doors = {path.name: exported_names(path / "__init__.py") for path in _rooms(root)}
    doors[""] = exported_names(root / PACKAGE / "__init__.py")
    found = []
    for path, tree in modules(root):
        file = _File(path, tree, doors, first_level(root))
        found += [f"{path}:{line}: {message}" for line, message in file.violations()]
    return found + missing_layers(root)


def first_level(root: Path) -> list[str]:
    """Return the packages and modules directly below the package."""
    files = [path.stem for path in (root / PACKAGE).glob("*.py") if path.stem[:2] != "__"]
    return sorted([*files, *(path.name for path in _rooms(root))])


def _rooms(root: Path) -> list[Path]:
    return sorted(path.parent for path in (root / PACKAGE).glob("*/__init__.py"))


def exported_names(path: Path) -> set[str]:
    """Return the strings in the ``__all__`` of a module."""
    names: set[str] = set()
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = getattr(statement, "targets", None) or [statement.target]
            if ast.unparse(targets[0]) == "__all__" and statement.value:
                names |= {text for _, text in _strings(statement.value)}
    return names


def missing_layers(root: Path) -> list[str]:
    """Return a line for every room or module that no layer of import-linter names."""
    path = root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    layers = [
        layer
        for contract in tomllib.loads(text)["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and PACKAGE in contract.get("containers", ())
        for layer in contract["layers"]
    ]
    covered = {name.strip(" ()") for layer in layers for name in re.split(r"[:|]", layer)}
    line = next((i for i, each in enumerate(text.splitlines(), 1) if each.startswith("layers")), 1)
    return [
        f"{path.name}:{line}: no layer names {PACKAGE}.{name}."
        for name in first_level(root)
        if name not in covered
    ]


class _File:
    """
    One module of the package.

    :param path: below the root, e.g. ``dpn_plugin/data/samples.py``
    :param tree: its syntax tree
    :param doors: the names that each room exports; ``""`` is the package itself
    :param children: the rooms and modules directly below the package
    """

    def __init__(
        self, path: Path, tree: ast.Module, doors: dict[str, set[str]], children: list[str]
    ) -> None:
        self.tree, self.doors, self.children = tree, doors, children
        self.below = path.relative_to(PACKAGE)
        #: the dotted name of the package that the module is in
        self.package = list(path.parent.parts)
        self.room = self.package[1] if len(self.package) > 1 else None

    def violations(self) -> list[tuple[int, str]]:
        """Return line and message of every violation, in the order of lines."""
        found = [*self._imports(), *self._attributes()]
        if self.below.as_posix() not in NAMES_AS_DATA:
            found += [*self._module_names(), *self._computed_imports()]
        return sorted(found)

    def _imports(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    yield from self._import(node.lineno, each.name, [])
            elif isinstance(node, ast.ImportFrom):
                names = [each.name for each in node.names]
                yield from self._import(node.lineno, self._absolute(node), names)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        start = self.package[: len(self.package) - node.level + 1]
        return ".".join([*start, *filter(None, [node.module])])

    def _import(self, line: int, module: str, names: list[str]) -> Iterator[tuple[int, str]]:
        package, *inner = module.split(".")
        room = inner[0] if inner else ""
        if package != PACKAGE or room not in self.doors or (room and room == self.room):
            return
        door = ".".join([PACKAGE, *inner[:1]])
        if len(inner) > 1:
            yield line, f"{module} is inside the room {room}: import the name from {door}."
            return
        for name in names:
            if name not in self.doors[room] and (room or name not in self.children):
                yield line, f"{door} does not export {name!r}: add it to __all__, or do not use it."

    def _attributes(self) -> Iterator[tuple[int, str]]:
        """Yield uses of a room as a module, such as ``data.samples`` after importing ``data``."""
        aliases = self._room_aliases()
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Attribute):
                continue
            room = aliases.get(ast.unparse(node.value))
            if room and room != self.room and node.attr not in self.doors[room]:
                yield node.lineno, f"{PACKAGE}.{room} does not export {node.attr!r}."

    def _room_aliases(self) -> dict[str, str]:
        aliases = {f"{PACKAGE}.{room}": room for room in self.doors if room}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and self._absolute(node) == PACKAGE:
                aliases |= {each.asname or each.name: each.name for each in node.names}
            elif isinstance(node, ast.Import):
                parts = [(each.asname, each.name.split(".")) for each in node.names]
                aliases |= {name: part[1] for name, part in parts if name and len(part) == 2}
        return {alias: room for alias, room in aliases.items() if room in self.doors}

    def _module_names(self) -> Iterator[tuple[int, str]]:
        allowed = {id(node) for call in self._calls(PRELOADS) for node, _ in _strings(call)}
        for call in self._calls(RESOURCES):
            own = f"{PACKAGE}.{self.room}"
            allowed |= {id(node) for node, text in _strings(call) if text == own}
        for node, text in _strings(self.tree):
            if id(node) not in allowed and self._names_module(text):
                yield node.lineno, f"{text!r} names a module in a string: use an import statement."

    def _names_module(self, text: str) -> bool:
        # "dpn_plugin" alone is the name of the distribution's group of entry points
        if not text.startswith(f"{PACKAGE}.") or not MODULE_NAME.fullmatch(text):
            return False
        first = re.split(r"[.:]", text)[1]
        return not first or first in self.children

    def _computed_imports(self) -> Iterator[tuple[int, str]]:
        for call in self._calls(IMPORTS):
            name = call.args[0] if call.args else None
            known = isinstance(name, ast.Constant) and isinstance(name.value, str)
            if not known or name.value.startswith((".", PACKAGE)):
                yield call.lineno, f"{ast.unparse(call)} hides an import: use an import statement."

    def _calls(self, names: Iterable[str]) -> Iterator[ast.Call]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
                yield node


def _strings(tree: ast.AST) -> list[tuple[ast.Constant, str]]:
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [(node, node.value) for node in constants if isinstance(node.value, str)]


if __name__ == "__main__":
    main(problems)
