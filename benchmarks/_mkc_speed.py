"""Figures 1-3 of the MKC paper: seconds against rows, kernels and eta, and beside each kernel alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import Cell, facts
from benchmarks._common import Data, Goal, Options, say, sizes_within
from benchmarks._compare import timed
from benchmarks._journal import Journal
from benchmarks._mkc_data import MKC, MNIST, SETS, TABLE2, load_set, rows_of_set, sigma0_of
from benchmarks._mkc_fits import FORM, QUICK_ROWS, compile_kernels, gamma_of, polynomial
from benchmarks._parts import Tables
from benchmarks._statistics import log_slope
from mmcnb.errors import InputError

TURNS = 3
SIZES, QUICK_SIZES, SMOKE_SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000), (250, 500, 1000), (100, 200)
KERNELS, QUICK_KERNELS = tuple(range(1, 11)), (1, 2, 3)
ETAS, QUICK_ETAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001), (0.1, 0.01)
KERNELS_SET = "digits0689"
LANDMARKS, SAMPLE = 200, 1000
FRACTION = 0.3  # sigma = (f sigma0)²
MOST_SLOPE = 1.1
COUNTS: dict[str, tuple[str, ...]] = {
    "sets": (),
    "rows": ("passes", "rounds"),
    "kernels": (),
    "eta": ("planes",),
}  # of each figure
ALONE = {"K1 linear, alone": ["K1"], "K2 polynomial, alone": ["K2"], "K3 Gaussian, alone": ["K3"]}
THREE = ["K1", "K2", "K3"]


def speed(options: Options, journal: Journal) -> Tables:
    """The four figures, each of them a part of its own for the report."""
    tables: dict[str, pd.DataFrame] = {}
    goals = []
    for figure in (against_singles, against_rows, against_kernels, against_eta):
        try:
            tables |= figure(options, journal)
        except InputError as error:
            say(f"speed is not whole: {error}")
    if not tables:
        raise InputError("no figure of the seconds could be made; see above.")
    axes = {"n": "mkc-speed-rows", "kernels": "mkc-speed-kernels", "eta": "mkc-speed-eta"}
    rows = []
    for axis, name in axes.items():
        if name in tables:
            found = log_slope(tables[name][axis], tables[name]["seconds"])
            rows.append({"seconds against": axis, "slope": found.value, "low": found.low, "high": found.high})
            if axis == "n" and np.isfinite(found.value):
                what = "seconds against n, with landmarks: slope"
                goals.append(Goal(what, found.value, MOST_SLOPE))
    return tables | {"mkc-speed-slopes": pd.DataFrame(rows)}, goals


def cell(
    name: str, rows: int | None, kernels: Sequence[Any], options: Options, axis: str, value: Any, **given: Any
) -> Cell:
    """Seconds of one fit; what the figure varies is the method, or a parameter."""
    compute = partial(timed_fits, name, rows, kernels, 1 if options.quick else TURNS, COUNTS[axis], given)
    varied, method = ({}, value) if axis == "sets" else ({axis: value}, MKC)
    return Cell(name, method, 0, compute, varied, part=f"speed, {axis}")


def timed_fits(
    name: str,
    rows: int | None,
    kernels: Sequence[Any],
    repeats: int,
    counted: Sequence[str],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Compute a cell: median seconds of some fits, after one that is not counted.

    Parameters
    ----------
    name : str
        One of `SETS`.
    rows : int or None
        At most so many rows.
    kernels : sequence of str or int
        Of the paper's three, "K1", "K2" and "K3"; or the places of some Gaussians.
    repeats : int
        Fits that are timed.
    counted : sequence of str
        Of "passes" over the rows, "rounds" a start and C, and "planes", the most of a round.
    given : mapping
        More parameters of the estimator.

    Returns
    -------
    dict
        Facts of the data, measures, and what is counted.
    """
    data = load_set(name, rows)
    chosen = [kernel_of(data, rows, one) for one in kernels]
    compiled, seconds, memory = compile_kernels(data), [], []
    for _ in range(repeats + 1):
        model = mmcnb.MultipleKernelClustering(SETS[name].n_clusters, kernels=chosen, random_state=0, **given)
        measures = timed(model, data.X)
        seconds.append(measures["seconds"])
        memory.append(measures["peak_mib"])
    history = model.history_
    rounds = history.groupby(["stage", "start", "C"], dropna=False)["round"].max().mean() + 1
    counts = {"rounds": float(rounds), "passes": len(history), "planes": int(history["planes"].max())}
    measures = {
        "seconds": statistics.median(seconds[1:]),
        "peak_mib": max(memory),
        "compile_seconds": compiled,
    }
    return facts(data.X) | measures | {name: counts[name] for name in counted}


def kernel_of(data: Data, rows: int | None, which: str | int) -> Any:
    """One of the paper's three kernels, or a Gaussian by its place: their widths spread around one.

    Examples
    --------
    >>> from benchmarks._common import Data
    >>> from benchmarks._mkc_speed import kernel_of
    >>> kernel_of(Data("any", None, None), None, "K1")
    'linear'
    """
    if which == "K1":
        return "linear"
    if which == "K2":
        return polynomial(2)
    place = 0 if which == "K3" else int(which)
    step = (place + 1) // 2 * (-1) ** place
    return "rbf", {"gamma": gamma_of((FRACTION * sigma0_of(data.name, rows) * 2 ** (step / 2)) ** 2)}


def against_singles(options: Options, journal: Journal) -> dict[str, pd.DataFrame]:
    """Fig. 1: MKC of three kernels beside the sum of a fit of each alone."""
    names = ("digits1v7", "digits0689")[: 1 if options.smoke else None] if options.quick else tuple(TABLE2)
    cells = [
        cell(name, _rows(name, options), kernels, options, "sets", method, **FORM, basis="exact")
        for name in names
        for method, kernels in (*ALONE.items(), (MKC, THREE))
    ]
    table = _told(journal.rows(cells), "dataset", "method").pivot(
        index="dataset", columns="method", values="seconds"
    )
    table = table.reindex(names)[[method for method in (*ALONE, MKC) if method in table]]
    if set(table) == {*ALONE, MKC}:
        table["MKC / sum"] = table[MKC] / table[[*ALONE]].sum(axis=1, skipna=False)
    return {"mkc-speed-sets": table.reset_index().rename_axis(columns=None)}


def against_rows(options: Options, journal: Journal) -> dict[str, pd.DataFrame]:
    """Fig. 2: seconds and rounds against rows of MNIST 0-4, with landmarks."""
    sizes = SMOKE_SIZES if options.smoke else QUICK_SIZES if options.quick else SIZES
    given = {"threshold": "fixed", "n_landmarks": LANDMARKS, "sample_size": SAMPLE}
    cells = [cell(MNIST, n, THREE, options, "rows", n, **given) for n in sizes_within(sizes, options)]
    return {"mkc-speed-rows": _told(journal.rows(cells), "n", *COUNTS["rows"])}


def against_kernels(options: Options, journal: Journal) -> dict[str, pd.DataFrame]:
    """Fig. 3, left: seconds against the number of Gaussians."""
    rows, given = _rows(KERNELS_SET, options), {**FORM, "basis": "exact"}
    counts = QUICK_KERNELS if options.quick else KERNELS
    cells = [cell(KERNELS_SET, rows, range(count), options, "kernels", count, **given) for count in counts]
    return {"mkc-speed-kernels": _told(journal.rows(cells), "kernels", "n")}


def against_eta(options: Options, journal: Journal) -> dict[str, pd.DataFrame]:
    """Fig. 3, right: seconds against the violation that a fit stops at."""
    rows, given = _rows(KERNELS_SET, options), {**FORM, "basis": "exact"}
    etas = QUICK_ETAS if options.quick else ETAS
    cells = [cell(KERNELS_SET, rows, THREE, options, "eta", eta, **given, eta=eta) for eta in etas]
    return {"mkc-speed-eta": _told(journal.rows(cells), "eta", "n", *COUNTS["eta"])}


def _told(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Columns of the cells that did not fail, and their seconds."""
    return frame.loc[frame["status"] == "ok", [*columns, "seconds"]]


def _rows(name: str, options: Options) -> int | None:
    return rows_of_set(name, options, QUICK_ROWS if options.quick else None)
