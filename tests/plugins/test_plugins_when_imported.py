"""Actions run when a module is completely imported, and never break its import."""

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

import dpn_plugin_autoload
from dpn_plugin.plugins import plugins
from dpn_plugin_autoload import is_being_imported, when_imported

#: a module that asks for an action for itself in the middle of its import, as `import timm` does
HALF = """
import sys, dpn_plugin_autoload
seen = []
dpn_plugin_autoload.when_imported(__name__, lambda module: seen.append(hasattr(module, "end")))
assert seen == [] and dpn_plugin_autoload.is_being_imported(__name__)
end = True
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules on the path; modules, actions and failures are removed afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(dpn_plugin_autoload, "_actions", dict(dpn_plugin_autoload._actions))
    before = set(sys.modules)
    yield tmp_path
    dpn_plugin_autoload.failures.clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_in_the_middle_of_its_import_is_complete_first(folder: Path) -> None:
    (folder / "half_module.py").write_text(HALF)
    module = importlib.import_module("half_module")
    assert module.seen == [True]
    assert type(module.__spec__) is ModuleSpec
    assert not is_being_imported("half_module")


def test_a_later_import_and_one_that_is_over_are_seen(folder: Path) -> None:
    (folder / "later_module.py").write_text("end = True")
    seen: list[ModuleType] = []
    when_imported("later_module", seen.append)
    assert importlib.util.find_spec("later_module")
    assert seen == []
    module = importlib.import_module("later_module")
    assert seen == [module]
    when_imported("later_module", seen.append)
    assert seen == [module, module]


def test_an_action_sees_the_module_as_imported(folder: Path) -> None:
    (folder / "whole_module.py").write_text("")
    states: list[bool] = []
    when_imported("whole_module", lambda _: states.append(is_being_imported("whole_module")))
    importlib.import_module("whole_module")
    assert states == [False]


def test_an_import_that_fails_calls_nothing_until_one_succeeds(folder: Path) -> None:
    (folder / "failing_module.py").write_text("1 / 0")
    seen: list[ModuleType] = []
    when_imported("failing_module", seen.append)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("failing_module")
    assert seen == []
    (folder / "failing_module.py").write_text("value = 'no longer failing'")
    importlib.invalidate_caches()
    module = importlib.import_module("failing_module")
    assert seen == [module]


def test_an_action_that_raises_is_a_failure_of_ours_and_the_others_run(folder: Path) -> None:
    (folder / "good_module.py").write_text("")
    seen: list[ModuleType] = []

    def raising(module: ModuleType) -> None:
        raise RuntimeError("out of order")

    when_imported("good_module", raising)
    when_imported("good_module", seen.append)
    assert importlib.import_module("good_module") in seen
    (failure,) = [each for each in plugins().failures if each.plugin == "autoload"]
    assert failure.package == "dpn-plugin"
    assert failure.message == "names are missing in good_module (RuntimeError: out of order)"


def test_a_spec_that_cannot_be_watched_does_not_break_the_import(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slotted(ModuleSpec):
        __slots__ = ("extra",)

        def __setattr__(self, name: str, value: object) -> None:
            if name == "__class__":
                raise TypeError("this class is fixed")
            super().__setattr__(name, value)

    class Finder:
        def find_spec(self, name: str, path: object, target: object) -> ModuleSpec | None:
            found = PathFinder.find_spec(name, [str(folder)]) if name == "odd_module" else None
            return found and Slotted(name, found.loader, origin=found.origin)

    (folder / "odd_module.py").write_text("end = True")
    when_imported("odd_module", print)
    ours = [each for each in sys.meta_path if type(each).__module__ == "dpn_plugin_autoload"]
    rest = [each for each in sys.meta_path if each not in ours]
    monkeypatch.setattr(sys, "meta_path", [*ours, Finder(), *rest])
    assert importlib.import_module("odd_module").end
    assert [name for name, _ in dpn_plugin_autoload.failures] == ["odd_module"]
