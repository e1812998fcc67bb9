"""Studies of several parts: those that are asked for, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from benchmarks._common import Goal, Options, Result, parts_of, say
from benchmarks._journal import Journal
from mmcnb.errors import InputError

Tables = tuple[dict[str, pd.DataFrame], list[Goal]]
Part = Callable[[Options, Journal], Tables]


def run_parts(parts: Mapping[str, Part], options: Options, journal: Journal) -> Result:
    """Run the parts that are asked for; one that finds nothing does not stop the others.

    Parameters
    ----------
    parts : mapping of str to callable
        All parts by name; each takes options and journal, and returns its tables and goals.
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals of all of them.

    Raises
    ------
    InputError
        If a part is not known, or none of them found anything.
    """
    tables: dict[str, pd.DataFrame] = {}
    goals: list[Goal] = []
    fault: InputError | None = None
    for name in parts_of(options, parts):
        try:
            found, reached = parts[name](options, journal)
        except InputError as error:
            say(f"{name} is left out: {error}")
            fault = error
            continue
        tables |= found
        goals += reached
    if fault and not tables:
        raise fault
    return Result(tables, goals)
