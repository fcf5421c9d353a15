"""Good plugins and every kind of bad one in one installation do not affect each other."""

from typing import Any

import pytest

DETECTORS = """
    from dpn_plugin import Entry, hookimpl
    @hookimpl
    def dpn_detectors():
"""

BAD = {
    "bad-import": "import there_is_no_such_module",
    "bad-syntax": "def (",
    "bad-exit": "raise SystemExit(3)",
    "bad-base": """
        class Odd(BaseException):
            def __str__(self):
                raise RuntimeError
        raise Odd
    """,
    "bad-hook": DETECTORS
    + """
        yield Entry("half-way", dict, "given before the hook raises")
        raise RuntimeError("out of order")
    @hookimpl
    def dpn_losses():
        yield Entry("sound-loss", dict, "from the good hook of a bad plugin")
    """,
    "bad-spelling": """
        from dpn_plugin import Entry, hookimpl
        @hookimpl
        def dpn_detector():
            yield Entry("misspelt", dict, "never called")
    """,
    "bad-return": DETECTORS + "        return 'a string'",
    "bad-none": DETECTORS + "        return 7",
    "bad-item": DETECTORS + "        return ['text', Entry('after-text', dict, 'still good')]",
    "bad-entry": DETECTORS + "        return [Entry('a name', dict, 'with a space')]",
    "bad-arguments": DETECTORS.replace("()", "(config)") + "        return []",
    "bad-marker": "def dpn_detectors(): return []",
    "copycat": DETECTORS
    + """
        yield Entry("DPN-MI", dict, "a name of ours")
        yield Entry("Energy", dict, "an alias of ours")
        yield Entry("copycat-own", dict, "its own", aliases=("msp", "cc"))
        yield Entry("vmf", dict, "a name of another plugin, which comes later by its name")
    """,
}


@pytest.fixture(scope="module")
def report(shared_site: Any) -> Any:
    for package, source in BAD.items():
        shared_site.install(package, source)
    shared_site.install("bad-metadata", "", entry_points="[dpn_plugin]\nno equals sign\n")
    shared_site.install(
        "good-vmf",
        """
        from dpn_plugin import Entry, hookimpl
        print("a plugin that prints")
        @hookimpl
        def dpn_detectors():
            print("a hook that prints")
            return [Entry("vmf", "json:dumps", "taken"), Entry("vmf2", "json:dumps", "good")]
        """,
    )
    return shared_site.dpn_json("plugins")


def failures_of(report: Any, package: str) -> list[str]:
    return [each["message"] for each in report["failures"] if each["package"] == package]


def entries_of(report: Any, package: str) -> Any:
    return next(each["entries"] for each in report["plugins"] if each["package"] == package)


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("bad-import", "there_is_no_such_module"),
        ("bad-syntax", "SyntaxError"),
        ("bad-exit", "SystemExit: 3"),
        ("bad-base", "Odd"),
        ("bad-hook", "dpn_detectors failed (RuntimeError: out of order)"),
        ("bad-spelling", "'dpn_detector'; did you mean 'dpn_detectors'?"),
        ("bad-return", "gave a str"),
        ("bad-none", "gave a int"),
        ("bad-item", "gave a str, not an Entry"),
        ("bad-entry", "'a name' must be letters"),
        ("bad-arguments", "config"),
        ("bad-marker", "@dpn_plugin.hookimpl"),
        ("bad-metadata", "entry_points.txt cannot be read"),
    ],
)
def test_a_bad_plugin_is_reported_once_with_its_package(
    report: Any, package: str, words: str
) -> None:
    (message,) = failures_of(report, package)
    assert words in message
    assert {each["version"] for each in report["failures"]} == {"1.2"}


def test_a_good_plugin_among_bad_ones_gives_its_entries(report: Any) -> None:
    assert entries_of(report, "good-vmf") == {"detectors": ["vmf2"]}


def test_all_built_in_entries_are_listed_among_bad_plugins(report: Any) -> None:
    own = [each["entries"] for each in report["plugins"] if each["package"] == "dpn-plugin"]
    assert len(own[0]["detectors"]) == 10
    assert len(own[1]["detectors"]) >= 35
    assert not failures_of(report, "dpn-plugin")


def test_a_raising_hook_adds_no_entries_and_the_other_hooks_do(report: Any) -> None:
    assert entries_of(report, "bad-hook") == {"losses": ["sound-loss"]}


def test_a_wrong_item_does_not_affect_the_other_items(report: Any) -> None:
    assert entries_of(report, "bad-item") == {"detectors": ["after-text"]}


def test_a_repeated_name_is_refused_and_both_packages_are_named(report: Any) -> None:
    by_copycat = failures_of(report, "copycat")
    assert [message.split("'")[1] for message in by_copycat] == ["DPN-MI", "Energy", "msp"]
    assert all("dpn-plugin 0." in message for message in by_copycat)
    assert failures_of(report, "good-vmf") == [
        "detector 'vmf' is refused: copycat 1.2 has that name already"
    ]


def test_a_repeated_alias_is_dropped_and_the_entry_kept(report: Any, shared_site: Any) -> None:
    (listed,) = shared_site.dpn_json("list", "detectors", "copycat-own")
    assert listed["aliases"] == ["cc"]


def test_failures_are_in_the_table(report: Any, shared_site: Any) -> None:
    shown = shared_site.run("-m", "dpn_plugin", "plugins", COLUMNS="200").stdout
    assert "out of order" in shown
    assert "a plugin that prints" not in shown


def test_the_doctor_fails_if_a_plugin_failed(report: Any, shared_site: Any) -> None:
    assert shared_site.run("-m", "dpn_plugin", "doctor", "--json").returncode == 1
