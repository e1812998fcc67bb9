"""Stop a command cleanly on SIGINT and SIGTERM.

A second signal ends the process immediately. Signals after the end of the work are
ignored.
"""

import math
import os
import signal
import socket
import threading
import time
from typing import Any, Self

# Signals within this time are a single request to stop; see `StopSignals`.
SAME_PRESS_SECONDS = 0.5
AT_ONCE = (
    b"mmcnb: stopped at once; "
    b"the next command that writes here removes the half-written output.\n"
)


class StopSignals:
    """A context manager in which SIGTERM interrupts the work like Ctrl-C.

    Signals within half a second of the first are ignored, because Ctrl-C often arrives
    twice, and supervisors send SIGINT and SIGTERM together. A later signal means that
    the user does not want to wait until half-written outputs have been removed.

    Parameters
    ----------
    for_good : bool
        Whether the process ends after the ``with`` block. If so, a later signal in the
        block ends the process with exit code 130, and signals after the block are
        ignored. Otherwise, a later signal raises KeyboardInterrupt again.

    Attributes
    ----------
    has_interrupted : bool
        Whether a signal has raised KeyboardInterrupt. Code that catches this exception
        may raise a different error instead.
    """

    def __init__(self, for_good: bool) -> None:
        self.for_good = for_good
        self.has_interrupted = False
        self._first = math.inf
        self._is_done = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may set handlers. Shells start background commands with
        # SIGINT ignored, which must not change.
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
        """Record that the outputs are in place, so that a first signal is ignored."""
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

        Python runs signal handlers only in the main thread, and only after compiled
        code returns. The wakeup socket receives a byte for each signal immediately.
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
