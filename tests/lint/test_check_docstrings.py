"""The check of docstrings finds missing ones and those that start with a field."""

from pathlib import Path

from trees import run_check, write_tree

MODULE = '''
"""A module."""

from typing import Protocol, overload


def good():
    """Return one."""

    def nested(): ...


def bare(): ...


def field():
    """:return: one"""


class Monitor(Protocol):
    """
    :param x: a number
    """

    def started(self): ...

    async def ended(self):
        """
        :param x: a number
        """

    def forward(self): ...

    def __call__(self): ...

    def _private(self): ...

    @property
    def value(self):
        """The value."""

    @value.setter
    def value(self, value): ...

    @overload
    def several(self): ...


if True:

    def conditional(): ...


class _Private:
    def method(self): ...


def _private(): ...
'''


def test_it_finds_every_public_name_without_a_sentence(tmp_path: Path) -> None:
    write_tree(tmp_path, {"dpn_plugin/room/part.py": MODULE})
    code, lines = run_check("check_docstrings.py", tmp_path)
    assert code == 1
    found = {line.split(": ", 1)[1].split(" ", 1)[0]: line for line in lines}
    assert list(found) == [
        "bare", "field", "Monitor", "started", "ended", "forward", "conditional",
    ]  # fmt: skip
    assert found["bare"].startswith("dpn_plugin/room/part.py:12: bare has no docstring")
    assert "starts with ':return:'" in found["field"]
    assert "starts with ':param'" in found["Monitor"]


def test_it_accepts_a_tree_without_problems(tmp_path: Path) -> None:
    write_tree(tmp_path, {"dpn_plugin/part.py": 'def good():\n    """Return one."""\n'})
    assert run_check("check_docstrings.py", tmp_path) == (0, ["No problems."])
