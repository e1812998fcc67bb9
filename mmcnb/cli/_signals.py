"""SIGINT and SIGTERM end a command in order.

A second signal ends it at once; when its work is done, neither does.
"""

import math
import os
import signal
import socket
import threading
import time
from typing import Any, Self

SAME_PRESS_SECONDS = 0.5
AT_ONCE = (
    b"mmcnb: stopped at once; "
    b"the next command that writes here removes what was half-written.\n"
)


class StopSignals:
    """Let SIGTERM interrupt the work as Ctrl-C does, in the ``with`` block.

    Signals that follow the first within half a second are ignored, because Ctrl-C often
    arrives twice, and a supervisor sends both. A later signal means that it takes too
    long to clear away what was half-written.

    Parameters
    ----------
    for_good : bool
        Whether the process ends after the block. Then it ignores both signals there,
        and a later signal in the block ends it with exit code 130. Otherwise a later
        signal interrupts too.
    """

    def __init__(self, for_good: bool) -> None:
        self.for_good = for_good
        self._first = math.inf
        self._is_done = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread receives signals. A shell ignores SIGINT for commands in
        # the background, and they stay ignored.
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
        """Note that the outputs are in place, so that nothing is left to interrupt."""
        self._is_done = True

    def _interrupt(self, *_: object) -> None:
        since = self._first
        self._first = min(self._first, time.monotonic())
        is_first = math.isinf(since)
        is_later = time.monotonic() - since >= SAME_PRESS_SECONDS
        if (is_first and not self._is_done) or (is_later and not self.for_good):
            raise KeyboardInterrupt

    def _listen(self) -> None:
        """Wait for signals in a thread, as the main thread may run compiled code."""
        waiting, woken = socket.socketpair()
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

        # The default value keeps a reference to the socket, which would be closed
        # otherwise.
        def listen(woken: socket.socket = woken) -> None:
            first = math.inf
            while waiting.recv(1):
                first = min(first, time.monotonic())
                if time.monotonic() - first >= SAME_PRESS_SECONDS:
                    os.write(2, AT_ONCE)
                    os._exit(130)

        threading.Thread(target=listen, daemon=True).start()
