"""Label-free choice of width and ridge by stability: classes found, beside the best in the grid.

``python -m benchmarks selection [--quick] [--seeds N]`` fits `UnsupervisedRLS` as it comes, with
``alpha="auto"`` (which chooses the width too), and at each of nine settings: widths sigma of .4, .55 and .75
times the root mean squared distance, and ridges of 1e-4, 3e-4 and 1e-3 a row. Figures are adjusted Rand
indices, means over the seeds (three unless said); the best in the grid is found with the known classes, by
that mean, and a loss is what a choice lies below it. MNIST pairs are 4,000 rows; ``--quick`` leaves them
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts, load_once
from benchmarks._common import MNIST_PAIRS, Data, Options, Result, rows_of
from benchmarks._compare import WARM_UP_ROWS, clustering, fit, gamma_of, mean_squared_distance, timed
from benchmarks._journal import Journal

SETS = ("iris", "moons", "ionosphere", "breast", "optdigits", "usps-1v4", "usps-5v8")
SMOKE_SETS = ("moons",)
MOONS_ROWS, MNIST_ROWS = 1000, 4000
WIDTHS, ALPHAS = (0.4, 0.55, 0.75), (1e-4, 3e-4, 1e-3)
DEFAULT, AUTO = "default", 'alpha="auto"'


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables; the study has no goal.
    """
    frame = journal.rows(list(cells_of(options)))
    keys = ["dataset", "n", "clusters", "setting"]
    means = frame.groupby(keys, sort=False)[["ari", "seconds"]].mean().reset_index()
    facts = _facts(means)
    tables = {"selection-settings": means, "selection": facts, "selection-losses": _losses(facts)}
    return Result(tables, shown=("selection", "selection-losses"))


def cells_of(options: Options) -> Iterator[Cell]:
    """The default, the choice by stability, and every setting of the grid, in turn for each seed."""
    sets = SMOKE_SETS if options.smoke else SETS if options.quick else (*SETS, *MNIST_PAIRS)
    for name in sets:
        most = MOONS_ROWS if name == "moons" else MNIST_ROWS if name in MNIST_PAIRS else None
        rows = rows_of(name, options, most)
        for seed in range(options.seeds or 3):
            for given in ({}, {"alpha": "auto"}, *grid()):
                compute = partial(fitted, name, rows, seed, given)
                yield Cell(name, "UMC-RLS", seed, compute, given, PAPER if "width" in given else LABEL_FREE)


def grid() -> Iterator[dict[str, Any]]:
    """Settings of width and ridge."""
    for width, alpha in product(WIDTHS, ALPHAS):
        yield {"width": width, "alpha": alpha}


def fitted(name: str, rows: int | None, seed: int, given: dict[str, Any]) -> dict[str, Any]:
    """Compute a cell: one fit at one setting."""
    data = _load(name, rows)
    k, parameters = len(np.unique(data.y)), dict(given)
    if "width" in parameters:
        parameters["gamma"] = gamma_of(parameters.pop("width"), mean_squared_distance(data.X))
    fit(mmcnb.UnsupervisedRLS(k, random_state=0, **parameters), data.X[:WARM_UP_ROWS])  # compiles
    estimator = mmcnb.UnsupervisedRLS(k, random_state=seed, **parameters)
    measures = timed(estimator, data.X)
    found = facts(data.X) | measures | {"ari": clustering(data.y, estimator.labels_)["ari"]}
    chosen = {"found_gamma": estimator.gamma_, "found_alpha": estimator.alpha_}
    return found | chosen | {"clusters": k, "setting": _setting(given)}


def _setting(given: dict[str, Any]) -> str:
    if "width" in given:
        return f"width={given['width']:g} alpha={given['alpha']:g}"
    return AUTO if given else DEFAULT


def _load(name: str, rows: int | None) -> Data:
    if name != "moons":
        return load_once(name, rows)
    from sklearn.datasets import make_moons

    return Data(name, *make_moons(rows, noise=0.1, random_state=0))


def _facts(means: pd.DataFrame) -> pd.DataFrame:
    """One row a data set: the default, the choice, the best setting, and what the first two lose."""
    rows = []
    for keys, part in means.groupby(["dataset", "n", "clusters"], sort=False):
        ARI, seconds = (part.set_index("setting")[name] for name in ("ari", "seconds"))
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
