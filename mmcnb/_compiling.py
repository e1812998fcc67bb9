"""How long this process has compiled; it is read without numba.

`mmcnb._numba` starts and stops the clock.
"""

import logging
import threading
import time

logger = logging.getLogger("mmcnb")


class CompileClock:
    """Wall seconds during which at least one thread compiles.

    Examples
    --------
    >>> from mmcnb._compiling import CompileClock
    >>> CompileClock().seconds
    0.0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running = 0  # threads that compile now
        self._since = 0.0
        self._total = 0.0

    def start(self) -> None:
        """Note that a thread starts to compile a routine, and those that it calls."""
        with self._lock:
            if self.running == 0:
                self._since = time.perf_counter()
                if self._total == 0.0:
                    logger.info("compiling (once)")
            self.running += 1

    def stop(self) -> None:
        """Note that a thread has compiled a routine."""
        with self._lock:
            self.running -= 1
            if self.running == 0:
                self._total += time.perf_counter() - self._since

    @property
    def seconds(self) -> float:
        """Seconds of this process so far."""
        with self._lock:
            now = time.perf_counter() - self._since if self.running else 0.0
            return self._total + now


CLOCK = CompileClock()


def times() -> tuple[float, float]:
    """Return a time without the seconds that this process has compiled, and these."""
    compiled = CLOCK.seconds
    return time.perf_counter() - compiled, compiled
