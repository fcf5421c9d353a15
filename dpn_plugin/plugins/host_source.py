"""The classes that pytorch-ood exports, read from its source without importing it."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

# Names that their authors write as one word; splitting at capitals would separate them.
_ONE_WORD = {"ViM", "fDBD", "ReAct", "NNGuide"}

# Before a capital that follows a lower-case letter (max-logit), and before the last capital of a
# sequence of capitals if it starts a word (kl-matching).
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def host_folders() -> list[Path]:
    """Return the folder of the installed pytorch-ood; empty if there is none."""
    spec = find_spec("pytorch_ood")
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def kebab_case(name: str) -> str:
    """
    Return the name of a class in lower case with hyphens: ``"kl-matching"`` for ``"KLMatching"``.

    An acronym is one word, and so are the names that their authors write as one.
    """
    return name.lower() if name in _ONE_WORD else _WORD_START.sub("-", name).lower()


def exported_classes(folder: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the classes that a package imports from its own modules, with their names."""
    for statement in parsed(folder / "__init__.py").body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 1 and statement.module:
            wanted = {alias.name for alias in statement.names}
            for name, node in _classes_of_module(folder / statement.module):
                if name in wanted:
                    yield name, node


def _classes_of_module(path: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    if path.is_dir():
        yield from exported_classes(path)
    else:
        yield from ((node.name, node) for node in classes(parsed(path.with_suffix(".py"))))


def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    """Return the classes that a module defines."""
    return (node for node in module.body if isinstance(node, ast.ClassDef))


def summary(node: ast.ClassDef) -> str:
    """Return the title of the paper in ``info``, or the first sentence of the docstring."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "Paper":
            fields = {each.arg: each.value for each in call.keywords}
            if isinstance(title := fields.get("title"), ast.Constant):
                return str(title.value)
    sentence = re.split(r"(?<=\.)\s", ast.get_docstring(node) or "", maxsplit=1)[0]
    return " ".join(sentence.split()).replace("*", "")
