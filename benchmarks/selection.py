"""Label-free choice of width and ridge by stability: classes found, beside the best in the grid.

``python -m benchmarks selection [--quick] [--seeds N]`` fits `UnsupervisedRLS` as it comes, with
``alpha="auto"`` (which chooses the width too), and at each of nine settings: widths sigma of .4, .55 and .75
times the root mean squared distance, and ridges of 1e-4, 3e-4 and 1e-3 a row. Figures are adjusted Rand
indices, means over the seeds (three unless said); the best in the grid is found with the known classes, by
that mean, and a loss is what a choice lies below it. MNIST pairs are 4,000 rows; ``--quick`` leaves them
out.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import MNIST_PAIRS, Data, Options, Result, load, say
from benchmarks._compare import WARM_UP_ROWS, fit, gamma_of, mean_squared_distance

SETS = ("iris", "moons", "ionosphere", "breast", "optdigits", "usps-1v4", "usps-5v8")
MOONS_ROWS, MNIST_ROWS = 1000, 4000
WIDTHS, ALPHAS = (0.4, 0.55, 0.75), (1e-4, 3e-4, 1e-3)
DEFAULT, AUTO = "default", 'alpha="auto"'


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables; the study has no goal.
    """
    names = [*SETS, *(() if options.quick else MNIST_PAIRS)]
    rows: list[dict[str, Any]] = []
    for name in names:
        data = _load(name, options)
        _fits(Data(name, data.X[:WARM_UP_ROWS], data.y[:WARM_UP_ROWS]), 0)  # compiles
        for seed in range(options.seeds or 3):
            say(f"{name}, {len(data.y):,} rows, seed {seed}")
            rows += _fits(data, seed)
    fits = pd.DataFrame(rows)
    means = fits.groupby(["dataset", "n", "clusters", "setting"], sort=False)[["ARI", "seconds"]].mean()
    facts = _facts(means.reset_index())
    tables = {"selection-fits": fits, "selection-settings": means.reset_index(), "selection": facts}
    return Result(tables | {"selection-losses": _losses(facts)}, shown=("selection", "selection-losses"))


def _load(name: str, options: Options) -> Data:
    if name != "moons":
        return load(name, options, MNIST_ROWS if name in MNIST_PAIRS else None)
    from sklearn.datasets import make_moons

    rows = min(MOONS_ROWS, options.rows or MOONS_ROWS)
    return Data(name, *make_moons(rows, noise=0.1, random_state=0))


def _fits(data: Data, seed: int) -> list[dict[str, Any]]:
    """The default, the choice by stability, and every setting of the grid."""
    k, distance = len(np.unique(data.y)), mean_squared_distance(data.X)
    given: dict[str, dict[str, Any]] = {DEFAULT: {}, AUTO: {"alpha": "auto"}}
    for width, alpha in product(WIDTHS, ALPHAS):
        given[f"width={width:g} alpha={alpha:g}"] = {"gamma": gamma_of(width, distance), "alpha": alpha}
    return [_measure(data, setting, parameters, k, seed) for setting, parameters in given.items()]


def _measure(data: Data, setting: str, parameters: dict[str, Any], k: int, seed: int) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    estimator = mmcnb.UnsupervisedRLS(k, random_state=seed, **parameters)
    started = time.perf_counter()
    fit(estimator, data.X)
    return {
        "dataset": data.name,
        "n": len(data.y),
        "clusters": k,
        "setting": setting,
        "seed": seed,
        "ARI": adjusted_rand_score(data.y, estimator.labels_),
        "seconds": time.perf_counter() - started,
        "gamma": estimator.gamma_,
        "alpha": estimator.alpha_,
    }


def _facts(means: pd.DataFrame) -> pd.DataFrame:
    """One row a data set: the default, the choice, the best setting, and what the first two lose."""
    rows = []
    for keys, part in means.groupby(["dataset", "n", "clusters"], sort=False):
        ARI, seconds = (part.set_index("setting")[name] for name in ("ARI", "seconds"))
        grid = ARI.drop([DEFAULT, AUTO])
        rows.append(
            {
                **dict(zip(("dataset", "n", "clusters"), keys, strict=True)),
                DEFAULT: ARI[DEFAULT],
                AUTO: ARI[AUTO],
                "best in grid": grid.max(),
                "best setting": grid.idxmax(),
                "loss of default": grid.max() - ARI[DEFAULT],
                "loss of auto": grid.max() - ARI[AUTO],
                "auto / default seconds": seconds[AUTO] / seconds[DEFAULT],
            }
        )
    return pd.DataFrame(rows)


def _losses(facts: pd.DataFrame) -> pd.DataFrame:
    """Mean and worst loss of each choice."""
    rows = []
    for choice in ("default", "auto"):
        losses = facts[f"loss of {choice}"]
        worst = facts.loc[losses.idxmax(), "dataset"]
        rows.append(
            {"choice": choice, "mean loss": losses.mean(), "worst loss": losses.max(), "worst on": worst}
        )
    return pd.DataFrame(rows)
