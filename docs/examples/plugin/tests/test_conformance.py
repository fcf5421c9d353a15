"""The conformance checks of dpn-plugin for everything in this package, one test per check."""

from dpn_plugin.testing import parametrize_with_checks


@parametrize_with_checks(plugins=["dpn-example-plugin"])
def test_conformance(check):
    check()
