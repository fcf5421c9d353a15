"""``dpn check`` on plugins that each break one rule."""

import json
from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from dpn_plugin.cli import app

HOOK = """
from dpn_plugin import Entry, hookimpl
@hookimpl
def dpn_suites():
"""

BAD = {
    "kit_bad_import": ("import there_is_no_such_module", "can be loaded", "there_is_no_such"),
    "kit_bad_exit": ("raise SystemExit(3)", "can be loaded", "into a function main()"),
    "kit_bad_hook": (
        HOOK + "    raise RuntimeError('out of order')",
        "has hooks that give entries",
        "out of order",
    ),
    "kit_bad_spelling": (
        HOOK.replace("dpn_suites", "dpn_suite") + "    return []",
        "has hooks that are spelt right",
        "did you mean 'dpn_suites'",
    ),
    "kit_bad_return": (HOOK + "    return 'text'", "has hooks that give entries", "gave a str"),
    "kit_bad_item": (HOOK + "    return ['text']", "has hooks that give entries", "gave a str"),
    "kit_bad_name": (
        HOOK + "    yield Entry('Digits', 'json:dumps', 'taken')",
        "has unique names",
        "belongs to dpn-plugin",
    ),
    "kit_bad_twice": (
        HOOK + "    yield Entry('a', 'json:dumps', 'x')\n    yield Entry('A', 'json:dumps', 'y')",
        "has unique names",
        "Choose another name",
    ),
    "kit_bad_factory": (
        HOOK + "    yield Entry('lost', 'no_such_module:Name', 'lost')",
        "has factories that can be imported",
        "as in an import",
    ),
    "kit_bad_summary": (
        HOOK + "    yield Entry('no_summary', 'json:dumps', '')",
        "has one line about every entry",
        "one line",
    ),
    "kit_bad_suite": (
        HOOK + "    from pathlib import Path\n    yield Entry('odd', Path(__file__), 'no TOML')",
        "names methods and sources that exist",
        "not valid TOML",
    ),
    "kit_bad_method": (
        HOOK.replace("dpn_suites", "dpn_methods") + "    yield Entry('odd', dict, 'no method')",
        "trains with a loss that exists",
        "Method",
    ),
    "kit_bad_backbone": (
        HOOK.replace("dpn_suites", "dpn_backbones") + "    yield Entry('odd_net', dict, 'no net')",
        "is known to timm",
        "entry point",
    ),
}


def checked(module: str, source: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / f"{module}.py").write_text(dedent(source))
    monkeypatch.syspath_prepend(folder)
    done = CliRunner().invoke(app, ["check", module, "--json"])
    return done.exit_code, {each["name"]: each for each in json.loads(done.stdout)}


@pytest.mark.parametrize("module", BAD)
def test_a_bad_plugin_fails_the_check_with_the_reason(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, rule, words = BAD[module]
    code, found = checked(module, source, tmp_path, monkeypatch)
    assert code == 1
    assert found[rule]["outcome"] == "failed"
    assert words in found[rule]["message"]


@pytest.mark.parametrize(
    ("module", "line", "words"),
    [
        ("kit_slow", "import time; time.sleep(1.1)", "takes 1."),
        ("kit_heavy", "import sys; sys.modules.setdefault('torch', sys)", "imports torch"),
    ],
)
def test_a_slow_import_is_a_warning_and_no_failure(
    module: str, line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found = checked(module, f"{line}\n{HOOK}    return []", tmp_path, monkeypatch)
    assert code == 0
    assert found["can be imported quickly"]["outcome"] == "warned"
    assert words in found["can be imported quickly"]["message"]


def test_a_source_that_no_suite_names_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = HOOK.replace("dpn_suites", "dpn_datasets") + "    yield Entry('odd', dict, 'odd')"
    code, found = checked("kit_source", source, tmp_path, monkeypatch)
    assert code == 0
    assert "check_dataset('odd:ARGUMENT')" in found["is named in a suite"]["message"]


def test_an_unknown_plugin_is_bad_input() -> None:
    done = CliRunner().invoke(app, ["check", "pytorch-odd"])
    assert done.exit_code == 2
    assert "Did you mean 'pytorch-ood'" in done.stderr
