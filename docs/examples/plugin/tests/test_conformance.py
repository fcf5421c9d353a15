"""Every rule of dpn-plugin for everything in this package, one test each."""

from dpn_plugin.testing import parametrize_with_checks


@parametrize_with_checks(plugins=["dpn-example-plugin"])
def test_conformance(check):
    check()
