"""Progress of long work: a bar on a terminal or in a notebook, or lines of text."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

DELAY = 0.5  # seconds before a bar appears, so that short work does not show a bar
LINE_SECONDS = 30.0  # seconds between two lines if no bar can be shown


class Lines:
    """Display that prints lines of text on standard error instead of a bar.

    Parameters
    ----------
    total : int or None, default=None
        Total number of units of work, or None if it is unknown.
    interval : float, default=inf
        Minimum number of seconds between two lines. If it is infinite, no lines are
        printed.

    Examples
    --------
    >>> from mmcnb._progress import Lines
    >>> Lines(10, 30.0).update(5)  # quick work prints nothing
    """

    # Whether all work prints lines if no bar can be shown. The command line sets this
    # to True.
    elsewhere = False

    def __init__(self, total: int | None = None, interval: float = math.inf) -> None:
        self.total = total
        self.interval = interval
        self.desc = ""
        self.done = 0
        self.last_time = time.perf_counter()

    def update(self, n: int) -> None:
        """Add ``n`` finished units, and print a line if the interval has passed."""
        self.done += n
        now = time.perf_counter()
        if sys.stderr is not None and now - self.last_time >= self.interval:
            self.last_time = now
            share = f"{self.done:,} done"
            if self.total:
                share = f"{min(1.0, self.done / self.total):.0%}"
            print(f"{self.desc}, {share}", file=sys.stderr, flush=True)


class Progress:
    """Progress of long work; errors of the display do not interrupt the work.

    Parameters
    ----------
    shown : tqdm or Lines
        Display that shows the progress.
    stage : str
        Name of the work or of its first stage.

    Examples
    --------
    >>> from mmcnb._progress import Lines, Progress
    >>> progress = Progress(Lines(10), "sample")
    >>> progress.enter("search")
    >>> progress.stage
    'search'
    """

    def __init__(self, shown: Any, stage: str) -> None:
        self.shown = shown
        self.enter(stage)

    def enter(self, stage: str) -> None:
        """Show the name of a stage that begins."""
        self.stage = stage
        self.shown.desc = f"mmcnb: {stage}"
        self.update(0)

    def update(self, n: int) -> None:
        """Add ``n`` finished units; 0 only refreshes the display."""
        with suppress(Exception):
            self.shown.update(n)


@contextmanager
def lines_elsewhere() -> Iterator[None]:
    """Show progress as lines of text in the ``with`` block if no bar can be shown."""
    before = Lines.elsewhere
    Lines.elsewhere = True
    try:
        yield
    finally:
        Lines.elsewhere = before


def shows_bars() -> bool:
    """Return whether a bar can be shown, on a terminal or in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    is_seen = sys.stderr is not None and sys.stderr.isatty()
    return is_seen or (shell is not None and "IPKernelApp" in shell.config)


@contextmanager
def progress(
    total: int | None,
    description: str,
    unit: str = "rows",
    enabled: bool | None = None,
    lines: bool = False,
) -> Iterator[Progress]:
    """Show the progress of long work during the ``with`` block.

    Parameters
    ----------
    total : int or None
        Total number of units of work, or None if it is unknown.
    description : str
        Name of the work.
    unit : str, default="rows"
        Name of the units.
    enabled : bool or None, default=None
        Whether to show a bar. None shows it on a terminal or in a notebook.
    lines : bool, default=False
        Whether to print lines of text if ``enabled`` is None and no bar can be shown.
        The command line prints these lines even if ``lines`` is False.

    Yields
    ------
    Progress
        Object whose method ``update`` must be called when units are finished.
    """
    if not (shows_bars() if enabled is None else enabled):
        prints_lines = enabled is None and (lines or Lines.elsewhere)
        interval = LINE_SECONDS if prints_lines else math.inf
        yield Progress(Lines(total, interval), description)
        return
    from tqdm.auto import tqdm

    # With miniters=0, an update by 0 units refreshes the bar. With smoothing=0, the
    # remaining time is estimated from the mean speed so far, because the speed differs
    # between stages.
    shown = {
        "unit": f" {unit}",
        "unit_scale": True,
        "miniters": 0,
        "delay": DELAY,
        "leave": False,
    }
    with tqdm(total=total, desc=f"mmcnb: {description}", smoothing=0, **shown) as bar:
        yield Progress(bar, description)
