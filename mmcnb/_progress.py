"""Progress of long work: a bar on a terminal or in a notebook, else a line at times."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

DELAY = 0.5  # seconds; shorter work shows no bar
LINE_SECONDS = 30.0  # between two lines


class Lines:
    """Plain lines on standard error, in place of a bar.

    Parameters
    ----------
    total : int or None, default=None
        Units in the whole; None if it is not known.
    interval : float, default=inf
        Least seconds between two lines; infinity prints none.

    Examples
    --------
    >>> from mmcnb._progress import Lines
    >>> Lines(10, 30.0).update(5)  # quick work says nothing
    """

    # Whether all work prints lines if there can be no bar; the command line sets it.
    elsewhere = False

    def __init__(self, total: int | None = None, interval: float = math.inf) -> None:
        self.total = total
        self.interval = interval
        self.desc = ""
        self.done = 0
        self.last_time = time.perf_counter()

    def update(self, n: int) -> None:
        """Report that ``n`` more units are done."""
        self.done += n
        now = time.perf_counter()
        if sys.stderr is not None and now - self.last_time >= self.interval:
            self.last_time = now
            share = f"{self.done:,} done"
            if self.total:
                share = f"{min(1.0, self.done / self.total):.0%}"
            print(f"{self.desc}, {share}", file=sys.stderr, flush=True)


class Progress:
    """Takes reports of work; no work fails for what shows them.

    Parameters
    ----------
    shown : tqdm or Lines
        Shows the reports.
    stage : str
        Name of the work, or of its first stage.

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
        """Another stage of the work begins."""
        self.stage = stage
        self.shown.desc = f"mmcnb: {stage}"
        self.update(0)

    def update(self, n: int) -> None:
        """Report that ``n`` more units are done; 0 shows that time goes on."""
        with suppress(Exception):
            self.shown.update(n)


@contextmanager
def lines_elsewhere() -> Iterator[None]:
    """Within this block, work prints lines if standard error is no terminal."""
    before = Lines.elsewhere
    Lines.elsewhere = True
    try:
        yield
    finally:
        Lines.elsewhere = before


def shows_bars() -> bool:
    """Return whether a bar can be seen: on a terminal, or in a notebook."""
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
    """Show how far a long piece of work has come.

    Parameters
    ----------
    total : int or None
        Number of units in the whole; None if it is not known.
    description : str
        Name of the work.
    unit : str, default="rows"
        Name of a unit.
    enabled : bool or None, default=None
        None shows a bar on a terminal and in a notebook.
    lines : bool, default=False
        Whether lines are printed if there is no bar; the command line always prints
        them.

    Yields
    ------
    Progress
        Takes the reports.
    """
    if not (shows_bars() if enabled is None else enabled):
        prints_lines = enabled is None and (lines or Lines.elsewhere)
        interval = LINE_SECONDS if prints_lines else math.inf
        yield Progress(Lines(total, interval), description)
        return
    from tqdm.auto import tqdm

    # Reports of 0 refresh a bar that waits for no units; stages differ in speed, so the
    # mean one counts.
    shown = {
        "unit": f" {unit}",
        "unit_scale": True,
        "miniters": 0,
        "delay": DELAY,
        "leave": False,
    }
    with tqdm(total=total, desc=f"mmcnb: {description}", smoothing=0, **shown) as bar:
        yield Progress(bar, description)
