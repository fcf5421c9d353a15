"""The check of rooms and doors finds violations that are planted in a small package."""

from pathlib import Path

import pytest
from trees import run_check, write_tree

PYPROJECT = """
    [[tool.importlinter.contracts]]
    type = "layers"
    containers = ["dpn_plugin"]
    layers = ["bench", "data | plugins", "_files : errors"]
"""
#: two rooms, one of them with an inner package, that use each other correctly
TREE = {
    "pyproject.toml": PYPROJECT,
    "dpn_plugin/__init__.py": """
        from importlib import import_module

        __all__ = ["load"]


        def __getattr__(name):
            return getattr(import_module("dpn_plugin.data"), name)
    """,
    "dpn_plugin/__main__.py": "from dpn_plugin.bench import run\n",
    "dpn_plugin/errors.py": "class UserError(ValueError): ...\n",
    "dpn_plugin/_files.py": "from dpn_plugin.errors import UserError\n",
    "dpn_plugin/data/__init__.py": """
        from dpn_plugin.data.samples import Samples
        from dpn_plugin.data.sources import load

        __all__ = ["Samples", "load"]
    """,
    "dpn_plugin/data/samples.py": "class Samples: ...\n",
    "dpn_plugin/data/sources/__init__.py": "from ..samples import Samples\n\nload = Samples\n",
    "dpn_plugin/plugins/__init__.py": "__all__: list[str] = []\n",
    "dpn_plugin/plugins/builtin.py": 'LOSS = "dpn_plugin.data.sources:load"\n',
    "dpn_plugin/bench/__init__.py": """
        from importlib import import_module
        from importlib.resources import files
        from multiprocessing import set_forkserver_preload

        import dpn_plugin.data as named
        from dpn_plugin import data
        from dpn_plugin._files import UserError
        from dpn_plugin.data import Samples

        __all__ = ["run"]
        GROUP = "dpn_plugin"
        MESSAGE = "Return dpn_plugin.data.Samples(inputs)."
        FUNCTION = "dpn_plugin.load"


        def run():
            set_forkserver_preload(["dpn_plugin.bench", "numpy"])
            import_module("ray")
            files("dpn_plugin.bench")
            return data.load, named.Samples
    """,
}


def problems(root: Path, **planted: str) -> list[str]:
    """Return the problems of the tree with a module ``bench/planted.py``, without its path."""
    files = {**TREE, **{f"dpn_plugin/bench/{name}.py": text for name, text in planted.items()}}
    write_tree(root, files)
    code, lines = run_check("check_doors.py", root)
    assert code == (lines != ["No problems."])
    return [line.removeprefix("dpn_plugin/bench/planted.py:") for line in lines]


def test_it_accepts_a_package_that_uses_doors(tmp_path: Path) -> None:
    assert problems(tmp_path) == ["No problems."]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from dpn_plugin.data.samples import Samples", "dpn_plugin.data.samples is inside"),
        ("from dpn_plugin.data.sources import load", "dpn_plugin.data.sources is inside"),
        ("from ..data.samples import Samples", "dpn_plugin.data.samples is inside"),
        ("import dpn_plugin.data.samples", "dpn_plugin.data.samples is inside"),
        ("from dpn_plugin.data import samples", "does not export 'samples'"),
        ("from dpn_plugin.data import *", "does not export '*'"),
        ("from dpn_plugin.plugins import builtin", "does not export 'builtin'"),
        ("from dpn_plugin import nothing", "dpn_plugin does not export 'nothing'"),
        ("from dpn_plugin import data; data.samples", "does not export 'samples'"),
        ("import dpn_plugin.data as d; d.samples", "does not export 'samples'"),
        ("import dpn_plugin; dpn_plugin.data.samples", "does not export 'samples'"),
        ("if TYPE_CHECKING:\n    from dpn_plugin.data.samples import Samples", "is inside"),
        ("def f():\n    from dpn_plugin.data.samples import Samples", "is inside"),
        ("HOME = 'dpn_plugin.data'", "'dpn_plugin.data' names a module in a string"),
        ("HOME = 'dpn_plugin.data.samples:Samples'", "names a module in a string"),
        ("HOME = f'dpn_plugin.{name}'", "'dpn_plugin.' names a module in a string"),
        ("files('dpn_plugin.data')", "'dpn_plugin.data' names a module in a string"),
        ("importlib.import_module(HOME)", "importlib.import_module(HOME) hides an import"),
        ("import_module('.samples', 'x')", "hides an import"),
        ("import_module('dpn_plugin')", "hides an import"),
        ("__import__(name)", "__import__(name) hides an import"),
    ],
)
def test_it_finds_a_planted_violation(text: str, problem: str, tmp_path: Path) -> None:
    (line,) = problems(tmp_path, planted=text + "\n")
    assert problem in line
    assert line.split(":")[0] == str(1 + text.count("\n"))


@pytest.mark.parametrize("call", ["import_module", "__import__"])
def test_it_finds_the_name_and_the_call_of_a_hidden_import(call: str, tmp_path: Path) -> None:
    lines = problems(tmp_path, planted=f"HOME = 'dpn_plugin.data'\n\n{call}(HOME)\n")
    assert [line.split(": ")[0] for line in lines] == ["1", "3"]


@pytest.mark.parametrize("name", ["metrics/__init__", "_signals"])
def test_it_finds_a_module_that_no_layer_names(name: str, tmp_path: Path) -> None:
    write_tree(tmp_path, {f"dpn_plugin/{name}.py": "__all__ = []\n"})
    top = name.split("/")[0]
    assert problems(tmp_path) == [f"pyproject.toml:4: no layer names dpn_plugin.{top}."]
