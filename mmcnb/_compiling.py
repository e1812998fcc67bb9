"""Clock for the time that this process has spent compiling.

`mmcnb._numba` starts and stops the clock. This module does not import numba, so reading
the clock does not import numba either.
"""

import logging
import threading
import time

logger = logging.getLogger("mmcnb")


class CompileClock:
    """A clock that runs while at least one thread compiles.

    Examples
    --------
    >>> from mmcnb._compiling import CompileClock
    >>> CompileClock().seconds
    0.0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running = 0  # number of threads that are compiling now
        self._since = 0.0
        self._total = 0.0

    def start(self) -> None:
        """Record that a thread starts compiling a routine and the routines it calls."""
        with self._lock:
            if self.running == 0:
                self._since = time.perf_counter()
                if self._total == 0.0:
                    logger.info("compiling (once)")
            self.running += 1

    def stop(self) -> None:
        """Record that a thread has finished compiling a routine."""
        with self._lock:
            self.running -= 1
            if self.running == 0:
                self._total += time.perf_counter() - self._since

    @property
    def seconds(self) -> float:
        """Wall-clock seconds that this process has spent compiling so far."""
        with self._lock:
            now = time.perf_counter() - self._since if self.running else 0.0
            return self._total + now


CLOCK = CompileClock()


def times() -> tuple[float, float]:
    """Return the reading of a clock that stops during compilation, and compile time.

    Both are in seconds. The first value is meaningful only as a difference between two
    calls.
    """
    compiled = CLOCK.seconds
    return time.perf_counter() - compiled, compiled
