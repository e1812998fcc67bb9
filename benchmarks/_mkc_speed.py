"""Figures 1-3 of the MKC paper: seconds against rows, kernels and eta, and beside each kernel alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd

import mmcnb
from benchmarks._common import Data, Goal, Options, say, slope
from benchmarks._compare import fit
from benchmarks._mkc_data import MKC, MNIST, SETS, TABLE2, distance_range, load_set
from benchmarks._mkc_fits import FORM, gamma_of, polynomial

TURNS = 3
SIZES, QUICK_SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000), (250, 500)
KERNELS, QUICK_KERNELS = tuple(range(1, 11)), (1, 2, 3)
ETAS, QUICK_ETAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001), (0.1, 0.01)
KERNELS_SET, QUICK_ROWS = "digits0689", 200
LANDMARKS, SAMPLE = 200, 1000
FRACTION = 0.3  # sigma = (f sigma0)²
MOST_SLOPE = 1.1


def speed(options: Options) -> tuple[dict[str, pd.DataFrame], list[Goal]]:
    """Medians of a few turns, in which all fits of a table follow each other."""
    frames = {
        "mkc-speed-sets": against_singles(options),
        "mkc-speed-rows": against_rows(options),
        "mkc-speed-kernels": against_kernels(options),
        "mkc-speed-eta": against_eta(options),
    }
    axes = {"n": "mkc-speed-rows", "kernels": "mkc-speed-kernels", "eta": "mkc-speed-eta"}
    slopes = {
        axis: slope(frames[name][axis], frames[name]["seconds"])
        for axis, name in axes.items()
        if len(frames[name]) > 1
    }
    frames["mkc-speed-slopes"] = pd.DataFrame(slopes.items(), columns=["seconds against", "slope"])
    goals = [
        Goal(f"seconds against {axis}, with landmarks: slope", found, MOST_SLOPE)
        for axis, found in slopes.items()
        if axis == "n"
    ]
    return frames, goals


def against_singles(options: Options) -> pd.DataFrame:
    """Fig. 1: MKC of three kernels beside the sum of a fit of each alone."""
    rows = []
    for name in ("digits1v7", "digits0689") if options.quick else TABLE2:
        data = load_set(name, options, QUICK_ROWS if options.quick else None)
        say(f"speed: {name}, {len(data.y):,} rows")
        kernels = three_kernels(data)
        makers: dict[Any, Any] = {one: {"kernels": [kernel]} for one, kernel in kernels.items()}
        makers[MKC] = {"kernels": list(kernels.values())}
        seconds, _ = timed(data, makers, **FORM, basis="exact")
        alone = sum(seconds[one] for one in kernels)
        row = {"dataset": name, "n": len(data.y), **{f"{one} seconds": seconds[one] for one in seconds}}
        rows.append(row | {"MKC / sum": seconds[MKC] / alone})
    return pd.DataFrame(rows)


def against_rows(options: Options) -> pd.DataFrame:
    """Fig. 2: seconds and rounds against rows of MNIST 0-4, with landmarks."""
    whole = load_set(MNIST, options)
    sizes = [n for n in (QUICK_SIZES if options.quick else SIZES) if n <= len(whole.y)] or [len(whole.y)]
    rows = []
    for n in sizes:
        say(f"speed: {n:,} rows of {MNIST}")
        data = load_set(MNIST, options, n)
        maker = {"kernels": list(three_kernels(data).values())}
        seconds, models = timed(
            data, {MKC: maker}, threshold="fixed", n_landmarks=LANDMARKS, sample_size=SAMPLE
        )
        history = models[MKC].history_
        rounds = history.groupby(["stage", "start", "C"], dropna=False)["round"].max().mean() + 1
        rows.append({"n": n, "seconds": seconds[MKC], "rounds": rounds, "passes": len(history)})
    return pd.DataFrame(rows)


def against_kernels(options: Options) -> pd.DataFrame:
    """Fig. 3, left: seconds against the number of Gaussians."""
    data = load_set(KERNELS_SET, options, QUICK_ROWS if options.quick else None)
    say("speed: against kernels")
    makers = {
        count: {"kernels": gaussians(data, count)} for count in (QUICK_KERNELS if options.quick else KERNELS)
    }
    seconds, _ = timed(data, makers, **FORM, basis="exact")
    return pd.DataFrame([{"kernels": count, "seconds": seconds[count]} for count in makers])


def against_eta(options: Options) -> pd.DataFrame:
    """Fig. 3, right: seconds against the violation that a fit stops at."""
    data = load_set(KERNELS_SET, options, QUICK_ROWS if options.quick else None)
    say("speed: against eta")
    kernels = list(three_kernels(data).values())
    makers = {eta: {"kernels": kernels, "eta": eta} for eta in (QUICK_ETAS if options.quick else ETAS)}
    seconds, models = timed(data, makers, **FORM, basis="exact")
    return pd.DataFrame(
        [
            {"eta": eta, "seconds": seconds[eta], "planes": models[eta].history_["planes"].max()}
            for eta in makers
        ]
    )


def three_kernels(data: Data) -> dict[str, Any]:
    """The paper's three kernels."""
    gaussian = ("rbf", {"gamma": gamma_of((FRACTION * distance_range(data.X)) ** 2)})
    return {"K1": "linear", "K2": polynomial(2), "K3": gaussian}


def gaussians(data: Data, count: int) -> list[tuple[str, dict[str, float]]]:
    """Gaussians whose widths spread around one, the same first ones for every count.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._common import Data
    >>> from benchmarks._mkc_speed import gaussians
    >>> data = Data("two rows", np.array([[0.0], [2.0], [3.0]]), np.zeros(3))
    >>> gaussians(data, 2) == gaussians(data, 3)[:2]
    True
    """
    sigma0 = distance_range(data.X)
    steps = [(k + 1) // 2 * (-1) ** k for k in range(count)]
    return [("rbf", {"gamma": gamma_of((FRACTION * sigma0 * 2 ** (step / 2)) ** 2)}) for step in steps]


def timed(
    data: Data, makers: Mapping[Any, dict[str, Any]], **shared: Any
) -> tuple[dict[Any, float], dict[Any, Any]]:
    """Median seconds of each fit over a few turns, and the models of the last turn."""
    k, models = SETS[data.name].n_clusters, {}
    seconds: dict[Any, list[float]] = {name: [] for name in makers}
    for turn in range(TURNS + 1):
        for name, given in makers.items():
            model = mmcnb.MultipleKernelClustering(k, random_state=0, **shared, **given)
            started = time.perf_counter()
            models[name] = fit(model, data.X)
            if turn:  # the first one compiles
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}, models
