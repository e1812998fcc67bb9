"""Passes that the workers of a Dask cluster can import."""

import os
import signal
import time
from pathlib import Path

from tests.engine.fakes import OrderedSum


class Named(OrderedSum):
    """The process in which each group was finished, with the sum."""

    def group(self, total, start):
        return [(start, os.getpid())], total[1]


class Deadly(OrderedSum):
    """Kills the process at one block, as often as files are left in a folder."""

    def __init__(self, folder, at):
        self.folder = folder
        self.at = at

    def block(self, rows, start, stop):
        if start == self.at:
            for path in Path(self.folder).iterdir():
                path.unlink(missing_ok=True)
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return super().block(rows, start, stop)


class Interrupted(OrderedSum):
    """Slow blocks; the client is interrupted when it combines the first groups."""

    def block(self, rows, start, stop):
        time.sleep(0.02)
        return super().block(rows, start, stop)

    def combine(self, total, other):
        if len(other[0]) > 1:
            raise KeyboardInterrupt
        return super().combine(total, other)


class TimedOut(OrderedSum):
    """Ends as what waits for a server in vain."""

    def block(self, rows, start, stop):
        raise TimeoutError("no answer")


class Lacking(OrderedSum):
    """Fails as what a worker lacks does."""

    def __reduce__(self):
        return __import__, ("mmcnb.later",)
