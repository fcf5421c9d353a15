"""How much memory something takes."""

import re
from contextlib import suppress
from pathlib import Path

import torch

__all__ = ["Peak"]


class Peak:
    """
    The peak of memory from here on, above what is in use here: on a GPU what torch allocates, else
    the resident memory of the process, where the system (Linux) tells.

    :param device: where the work is done
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.before: int | None = torch.cuda.memory_allocated(device)
        else:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
            self.before = _status("VmRSS")

    @property
    def bytes(self) -> int | None:
        """The peak so far; ``None`` where nobody knows."""
        if self.device.type == "cuda":
            peak: int | None = torch.cuda.max_memory_allocated(self.device)
        else:
            peak = _status("VmHWM")
        return None if peak is None or self.before is None else max(0, peak - self.before)


def _status(name: str) -> int | None:
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None
