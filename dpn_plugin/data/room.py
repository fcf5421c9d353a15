"""Is there room for data that only says how large it is?"""

import os

from dpn_plugin.errors import UserError

__all__ = ["MOST_SAMPLES", "check_room"]

#: more samples than any memory holds, whatever they are
MOST_SAMPLES = 10**9


def check_room(size: int, what: str) -> None:
    """
    :param size: bytes that are needed
    :param what: what needs them, to begin the message with
    :raises UserError: if that is more than the memory of this machine
    """
    if size > _memory():
        raise UserError(
            f"{what} declares {size / 2**30:,.0f} GiB of data, more than the memory of this "
            f"machine ({_memory() / 2**30:,.0f} GiB)."
        )


def _memory() -> int:
    if not hasattr(os, "sysconf"):  # Windows does not tell
        return 1 << 36
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
