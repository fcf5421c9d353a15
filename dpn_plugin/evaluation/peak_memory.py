"""The memory that a piece of work needs."""

import re
from contextlib import suppress
from pathlib import Path

import torch


class PeakMemory:
    """
    The peak of memory since this object was created, above what was in use then.

    On a GPU this is what torch allocates, elsewhere the resident memory of the process, where the
    system (Linux) reports it.

    :param device: where the work is done
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.before: int | None = torch.cuda.memory_allocated(device)
        else:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # resets the peak
            self.before = _status("VmRSS")

    def measure(self) -> int | None:
        """Return the peak so far in bytes, or ``None`` if it is unknown."""
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
