"""``dpn check``: run the conformance checks on a plugin."""

from dataclasses import asdict
from typing import Annotated

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_note, print_table


def check(
    module: Annotated[
        str, typer.Argument(help="A module, an entry point or an installed distribution.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check a plugin and everything that it provides."""
    from dpn_plugin.testing import run_checks

    found = run_checks("plugins", module)
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        rows = [(each.subject, each.name, each.outcome, each.message) for each in found]
        print_table(f"checks of {module}", ("subject", "check", "outcome", "how to fix"), rows)
    failed = sum(each.outcome == "failed" for each in found)
    print_note(f"{failed} of {len(found)} checks failed.")
    if failed:
        raise typer.Exit(1)
