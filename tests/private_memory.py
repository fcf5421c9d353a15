"""The private memory of a process."""

import threading
from pathlib import Path


def private_bytes():
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


class PeakPrivate(threading.Thread):
    """
    Samples the private memory of this process until :meth:`stop` returns its peak.

    Pages of a mapped file do not count: they are the system's cache, which all processes share, and
    how many of them are mapped at a time is the system's choice.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.ended = 0, threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.002):
            self.peak = max(self.peak, private_bytes())

    def stop(self):
        self.ended.set()
        self.join()
        return self.peak
