"""
One file for each scheme; each has ``load(argument, *, split, root)``.

This module holds what several schemes share.
"""

import os
from pathlib import Path

from dpn_plugin.errors import MissingData, UserError

__all__ = ["find_path", "refuse_split"]


def find_path(scheme: str, argument: str, root: Path, base: str | Path | None) -> Path:
    """
    Return the path of an existing file or folder.

    :param scheme: the scheme of the source, for the message
    :param argument: the path that the user wrote
    :param root: folder of downloaded data sets, searched last
    :param base: folder of the suite file, searched first
    :raises MissingData: if there is none, with the paths that were tried
    """
    path = Path(os.path.expanduser(argument))  # leaves the home of an unknown user unexpanded
    places = [Path(place) / path for place in (base, root) if place is not None]
    for place in places:
        # Path.exists raises for names that the file system does not allow
        if os.path.exists(place):
            return place
    tried = " or ".join(dict.fromkeys(str(place.absolute()) for place in places))
    raise MissingData(f"{scheme}:{argument} was not found: there is no {tried}.")


def refuse_split(source: str, split: str | None) -> None:
    """
    Raise if a split is given for a source that has none.

    :param source: the source, for the message
    :param split: the split that the user asked for
    :raises UserError: if there is one
    """
    if split is not None:
        raise UserError(f"{source} has no splits: leave out split = {split!r}.")
