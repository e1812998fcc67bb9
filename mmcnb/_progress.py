"""How far long work has come: a bar on a terminal or in a notebook, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from mmcnb._compiling import CLOCK

DELAY = 0.5  # seconds; shorter work shows no bar
LINE_SECONDS = 30.0  # between two lines
TICK_SECONDS = 0.25


class Progress(Protocol):
    """Takes reports of work that is done."""

    def update(self, n: int) -> object:
        """Report that ``n`` more units are done."""


class Lines:
    """Plain lines on standard error, at most one every 30 s.

    Parameters
    ----------
    description : str, default=""
        Name of the work.
    total : int or None, default=None
        Units in the whole, if work reports units.

    Examples
    --------
    >>> from mmcnb._progress import Lines
    >>> Lines("writing", 10).update(5)  # quick work says nothing
    """

    elsewhere = False  # whether all work prints lines if there can be no bar: the command line turns it on

    def __init__(self, description: str = "", total: int | None = None) -> None:
        self.description, self.total = description, total
        self.done, self.told = 0, time.perf_counter()

    def update(self, n: int) -> None:
        """Report that ``n`` more units are done."""
        self.done += n
        share = f"{min(1.0, self.done / self.total):.0%}" if self.total else f"{self.done:,} done"
        self.say(f"{self.description}, {share}")

    def say(self, line: str) -> None:
        """Print a line, unless another one came a short while ago."""
        if sys.stderr is not None and time.perf_counter() - self.told >= LINE_SECONDS:
            self.told = time.perf_counter()
            with suppress(OSError):  # nobody reads it
                print(f"mmcnb: {line}", file=sys.stderr, flush=True)


@contextmanager
def lines_elsewhere() -> Iterator[None]:
    """Within this block, work prints lines if standard error is no terminal."""
    before, Lines.elsewhere = Lines.elsewhere, True
    try:
        yield
    finally:
        Lines.elsewhere = before


def shows_bars() -> bool:
    """Whether a bar can be seen: standard error is a terminal, or this is a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    is_seen = sys.stderr is not None and sys.stderr.isatty()
    return is_seen or (shell is not None and "IPKernelApp" in shell.config)


@contextmanager
def progress(
    total: int | None, description: str, unit: str = "rows", enabled: bool | None = None, lines: bool = False
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
        Whether lines are printed if there is no bar; the command line always prints them.

    Yields
    ------
    Progress
        An object whose ``update(n)`` reports ``n`` more units.
    """
    is_bar = shows_bars() if enabled is None else enabled
    if enabled is None and not is_bar and (lines or Lines.elsewhere):
        yield Lines(description, total)
        return
    from tqdm.auto import tqdm

    shown = {"unit": f" {unit}", "unit_scale": True, "delay": DELAY, "leave": False, "disable": not is_bar}
    with tqdm(total=total, desc=description, **shown) as bar:
        yield bar


class Stages:
    """The stage of a fit, and the share of the whole that is done.

    The stages come one after the other, each with the seconds that it is expected to take. Compilation comes
    in between, whenever a routine is called first. A stage of which nothing is counted goes by its time.

    Parameters
    ----------
    expected : mapping of str to float
        Seconds of each stage, in order; "compiling" among them.
    units : float, default=1.0
        Rows that all passes together read.

    Examples
    --------
    >>> from mmcnb._progress import Stages
    >>> Stages({"compiling": 0.0, "sample": 1.0, "search": 3.0, "passes": 1.0}).stage
    'sample'
    """

    def __init__(self, expected: Mapping[str, float], units: float = 1.0) -> None:
        self.compiling, self.units = expected["compiling"], units
        self.expected = {name: max(s, 1e-3) for name, s in expected.items() if name != "compiling"}
        self.started, self.compiled_before = time.perf_counter(), CLOCK.seconds
        self.entered, self.done, self.share = self._working(), 0.0, 0.0
        self.stage = next(iter(self.expected))

    def enter(self, stage: str) -> None:
        """The fit begins a stage; those before it are over."""
        self.entered, self.stage = self._working(), stage

    def update(self, n: float) -> None:
        """So many more rows were read by the passes."""
        self.done += n

    def skip(self, n: float) -> None:
        """Of the rows that all passes were to read, so many need not be read."""
        left = max(self.units - n, 1.0)
        self.expected[list(self.expected)[-1]] *= left / self.units
        self.units = left

    def position(self) -> tuple[str, float, float]:
        """The name of the work, the share that is done, and the seconds so far."""
        compiled = CLOCK.seconds - self.compiled_before
        names = list(self.expected)
        before = sum(self.expected[name] for name in names[: names.index(self.stage)])
        part = (self._working() - self.entered) / self.expected[self.stage]
        expected = max(self.compiling, compiled)
        if self.stage == names[-1]:  # nearly all is compiled that ever will be
            part, expected = self.done / self.units, compiled
        # A stage that takes longer than was expected stays at 95 %.
        seconds = before + min(part, 0.95) * self.expected[self.stage] + compiled
        whole = sum(self.expected.values()) + expected
        self.share = max(self.share, min(seconds / whole, 0.99))  # a bar that goes back helps nobody
        name = "compiling (once)" if CLOCK.running else self.stage
        return name, self.share, time.perf_counter() - self.started

    def line(self) -> str:
        """The stage, share and expected seconds, in words."""
        name, share, seconds = self.position()
        whole = sum(self.expected.values()) + self.compiling if share < 0.05 else seconds / share
        return f"{name}, {share:.0%} of about {max(whole, seconds):.0f} s"

    def _working(self) -> float:
        """Seconds without compilation."""
        return time.perf_counter() - self.started - (CLOCK.seconds - self.compiled_before)


@contextmanager
def fit_progress(expected: Mapping[str, float], units: float) -> Iterator[Stages]:
    """Show one bar for a whole fit, or lines if no bar can be seen.

    Parameters
    ----------
    expected : mapping of str to float
        Seconds of each stage, as in `Stages`.
    units : float
        Rows that all passes together read.

    Yields
    ------
    Stages
        Takes the reports of the fit.
    """
    from tqdm.auto import tqdm

    stages, lines, over, is_bar = Stages(expected, units), Lines(), threading.Event(), shows_bars()
    each = {"mininterval": 0, "miniters": 0, "smoothing": 0, "delay": DELAY, "leave": False}
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"

    def tick(bar: Any) -> None:
        while not over.wait(TICK_SECONDS):
            with suppress(Exception):  # a fit never fails for its bar
                name, share, _ = stages.position()
                bar.set_description_str(f"mmcnb: {name}", refresh=False)
                bar.update(100 * share - bar.n)
                if not is_bar:
                    lines.say(stages.line())

    with tqdm(total=100, bar_format=form, disable=not is_bar, **each) as bar:
        ticker = threading.Thread(target=tick, args=(bar,), name="mmcnb-progress", daemon=True)
        ticker.start()
        try:
            yield stages
        finally:
            over.set()
            ticker.join()
