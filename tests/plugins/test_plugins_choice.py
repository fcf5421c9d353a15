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
def two(site: Any) -> Any:
    for name in ("alpha", "beta"):
        site.install(f"ood-{name}", GOOD.format(name=name))
    return site


def strangers(report: Any) -> list[str]:
    return [each["plugin"] for each in report["plugins"] if each["package"] != "dpn-plugin"]


def test_the_environment_names_the_plugins_to_load(two: Any) -> None:
    printed = two.python(
        """
        import os
        from dpn_plugin.plugins.manager import plugins
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


def test_a_name_in_the_environment_that_nobody_has_is_reported(two: Any) -> None:
    report = two.dpn_json("plugins", DPN_PLUGINS="ood-beta,ood-alfa")
    assert strangers(report) == ["ood-beta"]
    (failure,) = report["failures"]
    assert failure["plugin"] == "ood-alfa"
    assert "did you mean 'ood-alpha'" in failure["message"]


def test_no_plugins_on_the_command_line_loads_our_own_alone(two: Any) -> None:
    done = two.run("-m", "dpn_plugin", "--no-plugins", "list", "detectors")
    assert "dpn-mi" in done.stdout
    assert "alpha" not in done.stdout.split()
    assert "alpha" in two.run("-m", "dpn_plugin", "list", "detectors").stdout.split()


def test_a_plugin_that_is_imported_first_and_asks_for_names_is_whole_in_the_end(site: Any) -> None:
    # While it is being imported it cannot be asked; that must not be remembered.
    site.install(
        "ood-eager",
        "import dpn_plugin\ndpn_plugin.list_detectors()\n"
        + "\n".join(line[4:] for line in GOOD.format(name="eager").splitlines()),
    )
    assert (
        site.python("import ood_eager, dpn_plugin; print(dpn_plugin.list_detectors('eager'))")
        == "['eager']\n"
    )


def test_a_hook_that_asks_for_its_own_kind_gets_the_names_before_it(site: Any) -> None:
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
    assert names == [f"twice-dpn-{name}" for name in ("fwd", "minus", "plus", "rev")]
