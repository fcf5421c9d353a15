"""Errors that a user can mend, and the sentence that helps to mend them."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["CannotWrite", "UserError", "choices", "unknown_name"]


class UserError(ValueError):
    """
    A problem in what the user gave. The command line prints the message alone and exits with 2.

    The message is one or two sentences: what was wrong, what is allowed, the nearest match.
    """


class CannotWrite(UserError):
    """A full disk, or a folder that cannot be written: when it is mended, the same may go well."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """
    :param kind: what was looked for, in the singular, e.g. ``"detector"``
    :param name: the name that does not exist
    :param known: the names that do
    :return: an error that offers the nearest names
    """
    known = sorted(known)
    folded = {each.lower(): each for each in known}
    close = [folded[each] for each in get_close_matches(name.lower(), folded, n=3, cutoff=0.5)]
    if close:
        return UserError(f"Unknown {kind} {name!r}. Did you mean {choices(close)}?")
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    listed = f" Known: {', '.join(known[:12])}{more}." if known else ""
    return UserError(f"Unknown {kind} {name!r}.{listed}")


def choices(names: Iterable[str]) -> str:
    """:return: ``'a'``, ``'a' or 'b'``, ``'a', 'b' or 'c'``"""
    quoted = [repr(name) for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
