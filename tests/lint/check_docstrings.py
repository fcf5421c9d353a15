"""
Check that public functions, methods and classes have a docstring that starts with a sentence.

Nested functions, dunder methods, and members of private classes are not public.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from source_tree import main, modules

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
#: definitions whose docstring stands at another definition of the same name
REPEATED = {"overload", "setter", "deleter"}


def problems(root: Path) -> list[str]:
    """Return a line ``file:line: message`` for every public name without a summary sentence."""
    return [
        f"{path}:{each.lineno}: {each.name} {problem}"
        for path, tree in modules(root)
        for each in public_definitions(tree)
        if (problem := problem_of(each))
    ]


def public_definitions(parent: ast.AST) -> Iterator[Definition]:
    """Yield the public definitions in a module or class, without those inside functions."""
    for each in ast.iter_child_nodes(parent):
        if not isinstance(each, Definition):
            yield from public_definitions(each)
        elif not each.name.startswith("_"):
            yield each
            if isinstance(each, ast.ClassDef):
                yield from public_definitions(each)


def problem_of(definition: Definition) -> str | None:
    """Return what is wrong with the docstring of a definition, or ``None``."""
    if REPEATED & {_last_name(each) for each in definition.decorator_list}:
        return None
    docstring = ast.get_docstring(definition)
    if not docstring:
        return "has no docstring: say in one sentence what it is or returns."
    if docstring.startswith(":"):
        field = docstring.split()[0]
        return f"has a docstring that starts with {field!r}: start with a sentence."
    return None


def _last_name(decorator: ast.expr) -> str:
    return ast.unparse(decorator).split("(")[0].split(".")[-1]


if __name__ == "__main__":
    main(problems)
