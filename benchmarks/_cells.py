"""One cell of a study: a method on a data set with one seed, its identity, and how it is measured."""

from __future__ import annotations

import json
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import data_loaders
import mmcnb
from benchmarks._common import Data, NoData, load_rows
from mmcnb.errors import InputError, is_interrupt

LABEL_FREE, PAPER = "label-free", "paper"
OK, FAILED, NO_DATA = "ok", "failed", "no data"
MIB = 2**20
KEYS = ("part", "dataset", "protocol", "method", "parameters", "seed")
MEASURES = ("seconds", "compile_seconds", "peak_mib", "n", "d", "digest")


class Cell(NamedTuple):
    """What is computed once and recorded.

    Parameters
    ----------
    dataset, method : str
        Names for the tables.
    seed : int
        Seed of the repeat.
    compute : callable
        Takes nothing and returns a flat mapping: ``seconds``, ``compile_seconds``, ``peak_mib``, ``n``, ``d``
        and ``digest`` where it knows them, and metrics (numbers; texts stay out of the tidy frame). With
        ``--jobs`` it goes to another process: a `functools.partial` of a function of a module, which loads
        its data by `load_once`.
    parameters : mapping, default={}
        Plain values that JSON can hold.
    protocol : {"label-free", "paper"}, default="label-free"
        What a user gets, or the paper's way, which may choose by the known classes.
    part : str, default=""
        Part of a study that has several.

    Examples
    --------
    >>> from benchmarks._cells import Cell
    >>> cell = Cell("heart", "k-means", 0, dict, {"n_init": 10})
    >>> cell.identity
    ('', 'heart', 'label-free', 'k-means', '{"n_init": 10}', 0)
    """

    dataset: str
    method: str
    seed: int
    compute: Callable[[], Mapping[str, Any]]
    parameters: Mapping[str, Any] = {}
    protocol: str = LABEL_FREE
    part: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str, str, int]:
        """What two cells that are the same have in common, in the order of `KEYS`."""
        parameters = json.dumps(dict(self.parameters), sort_keys=True, default=_plain)
        return (self.part, self.dataset, self.protocol, self.method, parameters, int(self.seed))


def measured(compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Compute a cell, and say how it went.

    Parameters
    ----------
    compute : callable
        That of a `Cell`.

    Returns
    -------
    dict
        ``status`` ("ok", "failed", or "no data"), ``reason`` (one line), and ``found``: what was computed,
        with ``seconds`` of the whole and the peak of resident memory where it did not give them.

    Examples
    --------
    >>> from benchmarks._cells import measured
    >>> measured(lambda: {"error": 0.25, "seconds": 1.0})["found"]["error"]
    0.25
    >>> measured(lambda: int("x"))["reason"].partition(" (")[0]
    "ValueError: invalid literal for int() with base 10: 'x'"
    """
    reset_peak()
    started = time.perf_counter()
    try:
        found = dict(compute())
    except NoData as error:
        return {"status": NO_DATA, "reason": _one_line(str(error)), "found": {}}
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        return {"status": FAILED, "reason": _told(error), "found": {}}
    found.setdefault("seconds", time.perf_counter() - started)
    found.setdefault("peak_mib", peak_mib())
    return {"status": OK, "reason": "", "found": {name: _plain(value) for name, value in found.items()}}


def computed(cells: Sequence[Cell], jobs: int = 1) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Compute cells, and hand each over as soon as it is there; with more jobs in any order.

    Parameters
    ----------
    cells : sequence of Cell
        What to compute.
    jobs : int, default=1
        Processes.

    Yields
    ------
    cell : Cell
        One of `cells`.
    outcome : dict
        That of `measured`.

    Raises
    ------
    InputError
        If one of several processes was killed.
    """
    if jobs == 1:
        yield from ((cell, measured(cell.compute)) for cell in cells)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    try:
        for place, outcome in run(delayed(_placed)(place, cell.compute) for place, cell in enumerate(cells)):
            yield cells[place], outcome
    except BrokenExecutor as error:
        raise InputError(
            "a process that computed a cell was killed, for its memory perhaps; run again with fewer --jobs."
        ) from error


def _placed(place: int, compute: Callable[[], Mapping[str, Any]]) -> tuple[int, dict[str, Any]]:
    return place, measured(compute)


@lru_cache(maxsize=1)
def load_once(name: str, rows: int | None = None) -> Data:
    """Load a data set, or a draw of it, and keep the last one for the next cell of this process.

    Parameters
    ----------
    name : str
        What `data_loaders.load` calls it.
    rows : int or None, default=None
        At most so many rows, drawn at random; None for all.

    Returns
    -------
    Data
        In memory; its arrays are shared and are not to be written to.

    Raises
    ------
    NoData
        If the data set cannot be had.
    """
    return load_rows(name, rows)


def store_once(folder: str, name: str, **how: Any) -> str:
    """Write a data set to a Zarr store, and keep the last one for the next cell of this process.

    Parameters
    ----------
    folder : str
        Where to write; the caller removes it.
    name : str
        What `data_loaders.write` calls the data set.
    **how
        Its rows, features and seed.

    Returns
    -------
    str
        Path of the store, one a process.

    Raises
    ------
    NoData
        If the data set cannot be had.
    """
    words = "-".join(str(value) for value in how.values())
    return written_once(folder, f"{name}-{words}", lambda path: data_loaders.write(name, path, **how))


def written_once(folder: str, name: str, write: Callable[[Path], object]) -> str:
    """Path of a Zarr store that a function writes; the last one is kept for the next cell of this process.

    Raises
    ------
    NoData
        If the data set cannot be had.
    """
    path = Path(folder) / str(os.getpid()) / f"{name}.zarr"
    if not path.exists():
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir(parents=True)
        try:
            write(path)
        except InputError as error:
            raise NoData(str(error)) from error
    return str(path)


def facts(X: Any) -> dict[str, Any]:
    """``n``, ``d`` and ``digest`` of rows in memory or in a store, for the row of a cell.

    Examples
    --------
    >>> from benchmarks._cells import facts, load_once
    >>> found = facts(load_once("rings", 50).X)
    >>> found["n"], found["d"], len(found["digest"])
    (50, 2, 32)
    """
    samples = mmcnb.open_samples(X)
    return {"n": samples.n_samples, "d": samples.n_features, "digest": samples.digest}


def reset_peak() -> None:
    """Let the peak of resident memory begin anew, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_mib() -> float:
    """Peak of this process's resident memory since `reset_peak`, in MiB; NaN where there is no /proc."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) * 1024 / MIB if lines else float("nan")


def _plain(value: Any) -> Any:
    """Numbers of NumPy as those of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _told(error: Exception) -> str:
    """One line: the sentence of bad input, or kind, message and place of what nobody foresaw."""
    if isinstance(error, InputError):
        return _one_line(str(error))
    steps = traceback.extract_tb(error.__traceback__)
    place = [step for step in steps if "site-packages" not in step.filename][-1]
    return _one_line(f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})")


def _one_line(text: str) -> str:
    return " ".join(text.split())
