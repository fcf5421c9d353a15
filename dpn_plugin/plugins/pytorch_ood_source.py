"""
pytorch-ood's detectors, read from its source, because importing it takes seconds.

It is a separate plugin, so that an unexpected change in that source affects no other entries.
"""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from dpn_plugin.plugins.hookspecs import Entry, hookimpl

# Names that their authors write as one word; splitting at capitals would separate them.
_ONE_WORD = {"ViM", "fDBD", "ReAct", "NNGuide"}

# Names that are used in papers and other benchmarks.
_SHORT_NAMES = {
    "EnergyBased": ("energy", "ebo"),
    "KLMatching": ("klm",),
    "KNN": ("deep-knn",),
    "MCD": ("mc-dropout",),
    "Mahalanobis": ("mds",),
    "MaxLogit": ("mls",),
    "MaxSoftmax": ("msp",),
    "MultiMahalanobis": ("mds-ensemble",),
    "NACUE": ("nac",),
    "RMD": ("rmds", "relative-mahalanobis"),
    "TemperatureScaling": ("temp-scaling",),
    "WeightedEBO": ("webo",),
}

# Before a capital that follows a lower-case letter (max-logit), and before the last capital of a
# sequence of capitals if it starts a word (kl-matching).
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@hookimpl
def dpn_detectors() -> Iterator[Entry]:
    """
    Yield an entry for every class of ``pytorch_ood.detector`` that derives from ``Detector``.

    There are none if pytorch-ood is not installed.
    """
    spec = find_spec("pytorch_ood")
    for folder in (spec and spec.submodule_search_locations) or ():
        for name, node in _detectors(Path(folder)).items():
            factory = f"pytorch_ood.detector:{name}"
            yield Entry(kebab_case(name), factory, _summary(node), _aliases(name))


def kebab_case(name: str) -> str:
    """
    Return the name of a class in lower case with hyphens: ``"kl-matching"`` for ``"KLMatching"``.

    An acronym is one word, and so are the names that their authors write as one.
    """
    return name.lower() if name in _ONE_WORD else _WORD_START.sub("-", name).lower()


def _aliases(name: str) -> tuple[str, ...]:
    # The name of the class is found too, because names are compared without case.
    squashed = () if kebab_case(name) == name.lower() else (name.lower(),)
    return squashed + _SHORT_NAMES.get(name, ())


def _detectors(package: Path) -> dict[str, ast.ClassDef]:
    exported = dict(_exported_classes(package / "detector"))
    known = exported | {node.name: node for node in _classes(_parsed(package / "api.py"))}
    return {name: node for name, node in exported.items() if _is_detector(node, known)}


def _exported_classes(folder: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    """The classes that a package imports from its own modules, by name."""
    for statement in _parsed(folder / "__init__.py").body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 1 and statement.module:
            wanted = {alias.name for alias in statement.names}
            for name, node in _classes_of_module(folder / statement.module):
                if name in wanted:
                    yield name, node


def _classes_of_module(path: Path) -> Iterator[tuple[str, ast.ClassDef]]:
    if path.is_dir():
        yield from _exported_classes(path)
    else:
        yield from ((node.name, node) for node in _classes(_parsed(path.with_suffix(".py"))))


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _classes(module: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in module.body if isinstance(node, ast.ClassDef))


def _is_detector(node: ast.ClassDef, known: dict[str, ast.ClassDef]) -> bool:
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return "Detector" in bases or any(
        base in known and base != node.name and _is_detector(known[base], known) for base in bases
    )


def _summary(node: ast.ClassDef) -> str:
    """The title of the paper in ``info``, or the first sentence of the docstring."""
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "Paper":
            fields = {each.arg: each.value for each in call.keywords}
            if isinstance(title := fields.get("title"), ast.Constant):
                return str(title.value)
    sentence = re.split(r"(?<=\.)\s", ast.get_docstring(node) or "", maxsplit=1)[0]
    return " ".join(sentence.split()).replace("*", "")
