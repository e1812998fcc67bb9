"""SIGINT and SIGTERM end a command in order, a second one at once, and neither when its work is done."""

import math
import os
import signal
import socket
import threading
import time
from typing import Any, Self

SAME_PRESS_SECONDS = 0.5
AT_ONCE = b"mmcnb: stopped at once; the next command that writes here removes what was half-written.\n"


class StopSignals:
    """SIGTERM interrupts the work as Ctrl-C does, in the ``with`` block.

    Signals that follow the first within half a second are not heard: a key bounces, and
    a supervisor sends both. A later one means that it takes too long to clear away what
    was half-written.

    Parameters
    ----------
    for_good : bool
        Whether the process has nothing left to do after the block but to end. Then it
        hears neither signal there, and a later signal in the block ends it, with exit
        code 130. Otherwise that one interrupts too.
    """

    def __init__(self, for_good: bool) -> None:
        self.for_good = for_good
        self._first = math.inf
        self._is_done = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread hears signals; those that a shell ignores in the
        # background stay ignored.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._interrupt)
        if self._before and self.for_good:
            self._listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, old in self._before.items():
            signal.signal(
                number, signal.SIG_IGN if self.for_good else old or signal.SIG_DFL
            )

    def done(self) -> None:
        """The outputs are in their places, so that nothing is left to stop but the report."""
        self._is_done = True

    def _interrupt(self, *_: object) -> None:
        since = self._first
        self._first = min(self._first, time.monotonic())
        is_first = math.isinf(since)
        is_later = time.monotonic() - since >= SAME_PRESS_SECONDS
        if (is_first and not self._is_done) or (is_later and not self.for_good):
            raise KeyboardInterrupt

    def _listen(self) -> None:
        """Let a thread hear signals, also while compiled code keeps the main thread from it."""
        waiting, woken = socket.socketpair()
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)

        def listen(
            woken: socket.socket = woken,
        ) -> None:  # which would be closed if nobody held it
            first = math.inf
            while waiting.recv(1):
                first = min(first, time.monotonic())
                if time.monotonic() - first >= SAME_PRESS_SECONDS:
                    os.write(2, AT_ONCE)
                    os._exit(130)

        threading.Thread(target=listen, daemon=True).start()
