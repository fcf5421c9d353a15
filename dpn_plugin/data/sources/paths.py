"""Where the path of a source leads."""

import os
from pathlib import Path

from dpn_plugin.errors import UserError

__all__ = ["located", "refuse_split"]


def located(source: str, argument: str, root: Path, base: str | Path | None) -> Path:
    """
    :param source: the scheme, for the message
    :param argument: the path that the user wrote
    :param root: folder of downloaded data sets, looked into last
    :param base: folder of the suite file, looked into first
    :raises UserError: if there is nothing, saying where it was looked for
    """
    path = Path(os.path.expanduser(argument))  # which leaves ~nobody as it is
    places = [Path(place) / path for place in (base, root) if place is not None]
    for place in places:
        # a name that the system cannot have is not there; Path.exists raises for it
        if os.path.exists(place):
            return place
    tried = " or ".join(dict.fromkeys(str(place.absolute()) for place in places))
    raise UserError(f"{source}:{argument} was not found: there is no {tried}.")


def refuse_split(source: str, split: str | None) -> None:
    """:raises UserError: if a split is given for a source that has none"""
    if split is not None:
        raise UserError(f"{source} has no splits: leave out split = {split!r}.")
