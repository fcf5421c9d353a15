"""Which plugins are loaded, and when."""

from typing import Any

import pytest

GOOD = """
    from dpn_plugin import Entry, hookimpl
    @hookimpl
    def dpn_detectors():
        yield Entry("{name}", "json:dumps", "from {name}")
"""


@pytest.fixture
def two_plugins(site: Any) -> Any:
    for name in ("alpha", "beta"):
        site.install(f"ood-{name}", GOOD.format(name=name))
    return site


def third_party(report: Any) -> list[str]:
    return [each["plugin"] for each in report["plugins"] if each["package"] != "dpn-plugin"]


def test_the_environment_names_the_plugins_to_load(two_plugins: Any) -> None:
    printed = two_plugins.python(
        """
        import os
        from dpn_plugin.plugins import plugins
        for allowed in ["", ",", "ood-beta", "ood-beta, ood-alpha"]:
            os.environ["DPN_PLUGINS"] = allowed
            assert not plugins().failures
            print(*(plugin.source.point.name for plugin in plugins().loaded))
        """
    )
    own = "builtin pytorch-ood suites"
    assert printed.splitlines() == [
        own,
        own,
        f"{own} ood-beta",
        f"{own} ood-alpha ood-beta",
    ]


def test_an_unknown_name_in_the_environment_is_reported(two_plugins: Any) -> None:
    report = two_plugins.dpn_json("plugins", DPN_PLUGINS="ood-beta,ood-alfa")
    assert third_party(report) == ["ood-beta"]
    (failure,) = report["failures"]
    assert failure["plugin"] == "ood-alfa"
    assert "did you mean 'ood-alpha'" in failure["message"]


def test_no_plugins_on_the_command_line_loads_only_our_own(two_plugins: Any) -> None:
    done = two_plugins.run("-m", "dpn_plugin", "--no-plugins", "list", "detectors")
    assert "dpn-mi" in done.stdout
    assert "alpha" not in done.stdout.split()
    assert "alpha" in two_plugins.run("-m", "dpn_plugin", "list", "detectors").stdout.split()


def test_a_plugin_that_lists_names_during_its_import_is_loaded_later(site: Any) -> None:
    # It cannot be loaded in the middle of its import; that result must not be cached.
    site.install(
        "ood-eager",
        "import dpn_plugin\ndpn_plugin.list_detectors()\n"
        + "\n".join(line[4:] for line in GOOD.format(name="eager").splitlines()),
    )
    assert (
        site.python("import ood_eager, dpn_plugin; print(dpn_plugin.list_detectors('eager'))")
        == "['eager']\n"
    )


def test_a_hook_that_lists_its_own_kind_gets_the_names_of_earlier_plugins(site: Any) -> None:
    site.install(
        "ood-curious",
        """
        import dpn_plugin
        @dpn_plugin.hookimpl
        def dpn_losses():
            for name in dpn_plugin.list_losses("dpn-*"):
                yield dpn_plugin.Entry(f"twice-{name}", dict, "again")
        """,
    )
    names = [each["name"] for each in site.dpn_json("list", "losses", "twice-*")]
    ours = ("fwd", "minus", "minus-anchored", "plus", "plus-anchored", "rev")
    assert names == [f"twice-dpn-{name}" for name in ours]


def test_without_an_installation_there_are_no_entries_and_a_sentence_says_why(site: Any) -> None:
    # as in a source tree that was never installed: the metadata cannot be found
    printed = site.python(
        """
        from importlib import metadata
        metadata.distributions = lambda: []
        import dpn_plugin
        from dpn_plugin.plugins import plugins
        (failure,) = plugins().failures
        print(failure.package, failure.message)
        try:
            dpn_plugin.list_losses()
        except dpn_plugin.errors.UserError as error:
            print(error)
        """
    )
    reported, raised = printed.splitlines()
    assert reported.startswith("dpn-plugin its entry points are not installed")
    assert raised.startswith("There is no loss to choose from. dpn-plugin: its entry points")
