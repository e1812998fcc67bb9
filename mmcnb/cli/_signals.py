"""SIGINT and SIGTERM end a command in order: once, and not when its work is done."""

import signal
import threading
import time
from typing import Any, Self

PATIENCE_SECONDS = 10.0


class StopSignals:
    """SIGTERM interrupts the work as Ctrl-C does, in the ``with`` block.

    Signals that follow the first within ten seconds are not heard: they would interrupt the removal of
    half-written outputs. Later ones are, should that hang.

    Parameters
    ----------
    for_good : bool
        Hear neither after the block, because the process has nothing left to do but to end.
    """

    def __init__(self, for_good: bool) -> None:
        self.for_good = for_good
        self._deaf_until = 0.0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread hears signals; those that a shell ignores in the background stay ignored.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, old in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.for_good else old or signal.SIG_DFL)

    def done(self) -> None:
        """The outputs are in their places, so that nothing is left to stop but the report."""
        self._deaf_until = time.monotonic() + PATIENCE_SECONDS

    def _interrupt(self, *_: object) -> None:
        now = time.monotonic()
        if now >= self._deaf_until:
            self._deaf_until = now + PATIENCE_SECONDS
            raise KeyboardInterrupt
