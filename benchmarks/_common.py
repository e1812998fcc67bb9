"""What the studies share: options, goals, tidy frames, and how they are printed and kept."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import data_loaders
import mmcnb
from mmcnb.errors import InputError

UCI = (
    "echocardiogram",
    "spectf",
    "heart",
    "haberman",
    "liver",
    "ionosphere",
    "house-votes",
    "clean1",
    "breast",
    "german",
    "waveform-1v2",
)
MNIST_PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9")
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "zarr", "piqp")


@dataclass(frozen=True)
class Options:
    """What the command line asks of a study.

    Parameters
    ----------
    out : Path
        Folder for the CSV files and, while a study runs, its stores.
    quick : bool, default=False
        Fewer rows where a study is long.
    seeds : int or None, default=None
        Repeats; None is the study's own number.
    rows : int or None, default=None
        At most so many rows of each data set; None for all.
    parts : tuple of str, default=()
        Parts of a study that has several; none are all.
    smoke : bool, default=False
        Tiny sizes of the same code; comes with `quick`, one seed and few rows.
    jobs : int, default=1
        Processes that compute cells beside each other.
    retry : bool, default=False
        Compute the cells again that failed.
    """

    out: Path
    quick: bool = False
    seeds: int | None = None
    rows: int | None = None
    parts: tuple[str, ...] = ()
    smoke: bool = False
    jobs: int = 1
    retry: bool = False

    @property
    def scale(self) -> str:
        """``"full"``, ``"quick"`` or ``"smoke"``."""
        return "smoke" if self.smoke else "quick" if self.quick else "full"


@dataclass(frozen=True)
class Goal:
    """A figure and the bound it should keep.

    Parameters
    ----------
    what : str
        What was measured.
    figure, bound : float
        The figure, and its bound in the same unit.
    unit : str, default=""
        Unit for people.
    at_least : bool, default=False
        Whether the bound is a lower one.
    """

    what: str
    figure: float
    bound: float
    unit: str = ""
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether the figure keeps its bound; a figure that is NaN does not."""
        return bool(self.figure >= self.bound if self.at_least else self.figure <= self.bound)

    def row(self) -> dict[str, Any]:
        """The goal as a row of a table."""
        return {
            "goal": self.what,
            "figure": self.figure,
            "bound": f"{'>=' if self.at_least else '<='} {self.bound:g}",
            "unit": self.unit,
            "verdict": "reached" if self.reached else "missed",
        }


@dataclass(frozen=True)
class Result:
    """What a study found.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Tables by name; the name is that of the CSV file too.
    goals : list of Goal
        The goals of the study.
    shown : tuple of str or None, default=None
        Tables that are printed; None for all.
    """

    tables: dict[str, pd.DataFrame]
    goals: list[Goal] = field(default_factory=list)
    shown: tuple[str, ...] | None = None


class Data(NamedTuple):
    """A data set in memory, or a store with the classes of its rows.

    Parameters
    ----------
    name : str
        Its name.
    X : ndarray, csr_matrix or path
        The rows.
    y : ndarray of shape (n_samples,)
        The classes, for measuring only.
    """

    name: str
    X: Any
    y: np.ndarray


def load(name: str, options: Options, most: int | None = None) -> Data:
    """Load a data set, or a random draw of it where fewer rows are asked for.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls it.
    options : Options
        Bound of the rows.
    most : int or None, default=None
        Another bound.

    Returns
    -------
    Data
        In memory.
    """
    return load_rows(name, rows_of(name, options, most))


class NoData(InputError):
    """A data set that is not here and cannot be had, or is damaged."""


def load_rows(name: str, rows: int | None = None) -> Data:
    """Load a data set, or a random draw of at most so many rows.

    Raises
    ------
    NoData
        If it cannot be had.
    """
    try:
        return Data(name, *data_loaders.load(name, rows=_at_most(name, rows)))
    except InputError as error:
        raise NoData(str(error)) from error


def rows_of(name: str, options: Options, most: int | None = None) -> int | None:
    """How many rows of a data set to draw; None for all."""
    bounds = [bound for bound in (options.rows, most) if bound is not None]
    return _at_most(name, min(bounds)) if bounds else None


def sizes_within(sizes: Sequence[int], options: Options) -> list[int]:
    """Numbers of rows up to what the options allow; that alone where all are above.

    Examples
    --------
    >>> from pathlib import Path
    >>> from benchmarks._common import Options, sizes_within
    >>> [sizes_within((100, 200), Options(Path("out"), rows=rows)) for rows in (None, 150, 50)]
    [[100, 200], [100], [50]]
    """
    return [n for n in sizes if n <= (options.rows or n)] or [options.rows or sizes[0]]


def size_of(name: str) -> int | None:
    """How many rows a data set has; None for a synthetic one, which has as many as are asked for."""
    return next((fact["n_samples"] for fact in data_loaders.registry() if fact["name"] == name), None)


def _at_most(name: str, rows: int | None) -> int | None:
    return None if rows is None else min(rows, size_of(name) or rows)


def parts_of(options: Options, parts: Iterable[str]) -> tuple[str, ...]:
    """The parts that are asked for; all where none are.

    Raises
    ------
    InputError
        If the study has no such part.
    """
    known = tuple(parts)
    for name in options.parts:
        if name not in known:
            raise InputError(f"there is no part called {name!r}; choose from {', '.join(known)}.")
    return options.parts or known


def say(text: str) -> None:
    """Tell on standard error what is being done."""
    print(f"benchmarks: {text}", file=sys.stderr, flush=True)


def warn_if_busy() -> None:
    """Say so where other work would spoil the times."""
    if not hasattr(os, "getloadavg"):
        return
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        say(f"the machine is busy (load {load:.1f} on {cores} cores): times and ratios are not to be trusted")


@contextmanager
def temporary_folder(options: Options) -> Iterator[Path]:
    """A folder below ``--out`` for stores, removed at the end."""
    parent = options.out / "tmp"
    parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=parent) as name:
            yield Path(name)
    finally:
        if not any(parent.iterdir()):
            parent.rmdir()


def versions() -> dict[str, Any]:
    """What a figure depends on: versions of libraries, and the machine."""
    libraries = {name: version(name) for name in LIBRARIES}
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    return {"mmcnb": mmcnb.__version__, **libraries, **machine}


def publish(study: str, result: Result, options: Options) -> None:
    """Print the tables and goals of a study, and write them as CSV.

    Parameters
    ----------
    study : str
        Name of the study.
    result : Result
        What it found.
    options : Options
        Where to write.
    """
    facts = versions()
    print(f"\n== {study}: {', '.join(f'{name} {value}' for name, value in facts.items())}")
    for name, frame in result.tables.items():
        write_table(frame.assign(**facts), options.out / f"{name}.csv")
        if result.shown is None or name in result.shown:
            print(f"\n{name}\n{plain(frame)}")
    if result.goals:
        goals = pd.DataFrame([goal.row() for goal in result.goals])
        write_table(goals.assign(**facts), options.out / f"{study}-goals.csv")
        print(f"\n{plain(goals)}")
        if options.quick or options.rows:
            print("Fewer rows than the goals are set for: these verdicts are only a hint.")


def plain(frame: pd.DataFrame) -> str:
    """A frame as text for people, errors in per cent."""
    formats: dict[str, Any] = {name: "{:.1%}".format for name in frame.columns if "error" in name}
    return frame.to_string(index=False, formatters=formats, float_format="{:.4g}".format, na_rep="")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path aside, which takes the place of ``path`` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as CSV, aside and then in its place."""
    with whole_file(path) as aside:
        frame.to_csv(aside, index=False)
