"""Stop a command cleanly on SIGINT or SIGTERM.

The first signal removes unfinished outputs and ends the command, unless the outputs are
already in place. A second signal ends the process immediately.
"""

import math
import os
import signal
import socket
import threading
import time
from typing import Any, Self

# Signals within this many seconds count as one request to stop; see `StopSignals`.
SAME_PRESS_SECONDS = 0.5
AT_ONCE = (
    b"mmcnb: stopped at once; "
    b"the next command that writes here removes the half-written output.\n"
)


class StopSignals:
    """Context manager in which SIGTERM raises KeyboardInterrupt, as SIGINT does.

    Further signals within half a second of the first are ignored, because Ctrl-C often
    arrives twice and supervisors send SIGINT and SIGTERM together. A later signal means
    that the user does not want to wait until unfinished outputs have been removed.

    Parameters
    ----------
    for_good : bool
        Whether the process ends after the ``with`` block. If True, a later signal in
        the block ends the process with exit code 130, and signals after the block are
        ignored. If False, a later signal raises KeyboardInterrupt again.

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
        # Only the main thread may set signal handlers. If SIGINT is ignored, as in
        # background commands of a shell, it must remain ignored.
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
        """Record that the outputs are written; the next signal is then ignored.

        This applies only if no signal has arrived before.
        """
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
        """Start a thread that watches for a second signal.

        Python runs signal handlers only in the main thread, and only after compiled
        code returns. The wakeup socket receives a byte for each signal immediately.
        """
        waiting, woken = socket.socketpair()
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

        # The default value is a reference to the socket, without which the socket would
        # be garbage-collected and closed.
        def listen(woken: socket.socket = woken) -> None:
            first = math.inf
            while waiting.recv(1):
                first = min(first, time.monotonic())
                if time.monotonic() - first >= SAME_PRESS_SECONDS:
                    os.write(2, AT_ONCE)
                    os._exit(130)

        threading.Thread(target=listen, daemon=True).start()
