"""Stop a command cleanly on SIGINT and SIGTERM.

A second signal ends the process at once. When the work is done, signals are ignored.
"""

import math
import os
import signal
import socket
import threading
import time
from typing import Any, Self

# Signals this close together are one request to stop: see `StopSignals`.
SAME_PRESS_SECONDS = 0.5
AT_ONCE = (
    b"mmcnb: stopped at once; "
    b"the next command that writes here removes the half-written output.\n"
)


class StopSignals:
    """Make SIGTERM interrupt the work in the ``with`` block, as Ctrl-C does.

    Signals within half a second of the first are ignored, because Ctrl-C often arrives
    twice, and supervisors send SIGINT and SIGTERM together. A later signal means that
    the user does not want to wait until half-written outputs have been removed.

    Parameters
    ----------
    for_good : bool
        Whether the process ends after the block. If so, a later signal in the block
        ends the process with exit code 130, and signals after the block are ignored.
        Otherwise a later signal raises KeyboardInterrupt again.

    Attributes
    ----------
    has_interrupted : bool
        Whether a signal has raised KeyboardInterrupt. Code that catches it may raise
        another error in its place.
    """

    def __init__(self, for_good: bool) -> None:
        self.for_good = for_good
        self.has_interrupted = False
        self._first = math.inf
        self._is_done = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may set handlers. Shells start background commands with
        # SIGINT ignored, and it has to stay so.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        if self._before and self.for_good:
            self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if self.for_good:
                handler = signal.SIG_IGN
            signal.signal(number, handler or signal.SIG_DFL)

    def done(self) -> None:
        """Record that the outputs are in place; a first signal is ignored from now."""
        self._is_done = True

    def _interrupt(self, *_: object) -> None:
        since = self._first
        self._first = min(self._first, time.monotonic())
        is_first = math.isinf(since)
        is_later = time.monotonic() - since >= SAME_PRESS_SECONDS
        if (is_first and not self._is_done) or (is_later and not self.for_good):
            self.has_interrupted = True
            raise KeyboardInterrupt

    def _listen(self) -> None:
        """Watch for a second signal in a thread.

        Python runs signal handlers in the main thread alone, and not before compiled
        code returns. The wakeup socket gets a byte from each signal immediately.
        """
        waiting, woken = socket.socketpair()
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

        # The default value keeps a reference to the socket. Without it, the socket
        # would be garbage-collected and closed.
        def listen(woken: socket.socket = woken) -> None:
            first = math.inf
            while waiting.recv(1):
                first = min(first, time.monotonic())
                if time.monotonic() - first >= SAME_PRESS_SECONDS:
                    os.write(2, AT_ONCE)
                    os._exit(130)

        threading.Thread(target=listen, daemon=True).start()
