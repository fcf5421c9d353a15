"""``dpn list``: everything that can be picked by name."""

from typing import Annotated, Any

import typer

from dpn_plugin.cli.output import JsonOption, print_json, print_note, print_table
from dpn_plugin.cli.recipes import list_recipes
from dpn_plugin.errors import UserError, choices, unknown_name
from dpn_plugin.plugins import KINDS, plugins, registry

#: the kinds of entries, and the recipes, which are not entries of plugins
_LISTED = (*KINDS, "recipes")
_COLUMNS = ("name", "aliases", "summary", "package")


def listing(
    kind: Annotated[str, typer.Argument(help=f"{choices(_LISTED)}.")],
    pattern: Annotated[
        str | None,
        typer.Argument(help="Names or aliases with wildcards: 'dpn-*'."),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="For detectors: show which are applicable to it, and why others are not."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """
    List what can be picked by name.

    Backbones are those that plugins add; with a PATTERN ('*' for all of them) timm's own follow.
    Recipes are shown with their main settings, with --json with all of them.
    """
    if kind not in _LISTED:
        raise unknown_name("kind", kind, _LISTED)
    if kind == "recipes" and backbone is None:
        list_recipes(pattern, as_json)
        return
    if backbone is not None:
        _list_applicable(kind, pattern, backbone, as_json)
        return
    found = _records(kind, pattern)
    if as_json:
        print_json(found + _timm_records(kind, pattern))
        return
    # our own first, because timm takes seconds to import
    _print_records(kind, found)
    hosted = _timm_records(kind, pattern)
    if hosted:
        _print_records("backbones of timm", hosted)
    if not found and not hosted:
        print_note(f"No {KINDS[kind]} matches {pattern!r}." if pattern else f"There are no {kind}.")
    if kind == "backbones" and pattern is None:
        print_note("timm's own backbones: dpn list backbones '*'")


def _list_applicable(kind: str, pattern: str | None, backbone: str, as_json: bool) -> None:
    if kind != "detectors":
        raise UserError(
            f"--backbone shows which detectors are applicable to it; it does not filter {kind}."
        )
    rows = _applicability(registry.list_detectors(pattern), backbone)
    if as_json:
        print_json([{"name": name, "not_applicable": reason} for name, reason in rows])
        return
    marked = [(name, f"not applicable: {why}" if why else "applicable") for name, why in rows]
    print_table(f"detectors on {backbone}", ("name", "applicable"), marked)


def _applicability(names: list[str], backbone: str) -> list[tuple[str, str | None]]:
    from dpn_plugin.backbones import create_backbone
    from dpn_plugin.detectors import why_not_applicable

    # neither the weights nor the number of classes decide which detectors are applicable
    model = create_backbone(backbone, num_classes=10)
    return [(name, why_not_applicable(name, model)) for name in names]


def _print_records(title: str, records: list[dict[str, Any]]) -> None:
    if records:
        rows = [{**each, "aliases": ", ".join(each["aliases"])}.values() for each in records]
        print_table(title, _COLUMNS, map(tuple, rows))


def _records(kind: str, pattern: str | None) -> list[dict[str, Any]]:
    entries = registry.entries(kind, pattern)
    sources = plugins().entries(kind)
    return [
        _record(each.name, each.aliases, each.summary, sources[each.name.lower()][1].package)
        for each in entries
    ]


def _timm_records(kind: str, pattern: str | None) -> list[dict[str, Any]]:
    if kind != "backbones" or pattern is None:
        return []
    import timm

    ours = set(registry.list_backbones())
    return [_record(name, (), "", "timm") for name in timm.list_models(pattern) if name not in ours]


def _record(name: str, aliases: tuple[str, ...], summary: str, package: str) -> dict[str, Any]:
    return dict(zip(_COLUMNS, (name, list(aliases), summary, package), strict=True))
