"""A progress bar on a terminal, silence elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

DELAY = 0.5  # seconds; shorter work shows no bar


class Progress(Protocol):
    """What a progress context yields."""

    def update(self, n: int) -> object:
        """Report that ``n`` more units are done."""


class _Silent:
    def update(self, n: int) -> None:
        """Ignore the report."""


@contextmanager
def progress(
    total: int | None, description: str, unit: str = "rows", enabled: bool | None = None
) -> Iterator[Progress]:
    """Show how far a long piece of work has come.

    Parameters
    ----------
    total : int or None
        Number of units in the whole; None where it is not known.
    description : str
        What is being done.
    unit : str, default="rows"
        What is counted.
    enabled : bool or None, default=None
        None shows a bar when standard error is a terminal.

    Yields
    ------
    Progress
        An object whose ``update(n)`` reports ``n`` more units.
    """
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield _Silent()
        return
    from tqdm import tqdm

    with tqdm(
        total=total, desc=description, unit=f" {unit}", unit_scale=True, leave=False, delay=DELAY
    ) as bar:
        yield bar
