"""The default bandwidth and ridge: error of the clusters, beside the best settings in a grid.

``python -m benchmarks selection [--quick] [--seeds N]`` fits `UnsupervisedRLS` with its
defaults, and with nine settings: bandwidths sigma of 0.4, 0.55 and 0.75 times the root
mean squared distance, and ridges of 1e-4, 3e-4 and 1e-3 per row. Figures are adjusted
Rand indices, averaged over the seeds (three by default). The setting with the largest
mean is found with the known classes, and the loss is how far the default is below it.
MNIST pairs have 4,000 rows; ``--quick`` leaves them out.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import protocol
from benchmarks.methods import LEAST_SQUARES, estimator
from benchmarks.protocol import LABEL_FREE, MNIST_PAIRS, PAPER, Data
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result

SETS = ("iris", "moons", "ionosphere", "breast", "optdigits", "usps-1v4", "usps-5v8")
ROWS = {"moons": 1000, **dict.fromkeys(MNIST_PAIRS, 4000)}
WIDTHS = (0.4, 0.55, 0.75)
ALPHAS = (1e-4, 3e-4, 1e-3)
GRID = tuple(
    {"width": width, "alpha": alpha} for width, alpha in product(WIDTHS, ALPHAS)
)
POINTS: tuple[dict[str, Any], ...] = ({}, *GRID)
DEFAULT = "default"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the default and every point of the grid, in turn for each seed."""
    for name in options.pick((*SETS, *MNIST_PAIRS), SETS, ("moons",)):
        rows = {"rows": options.rows_of(name, ROWS.get(name))}
        for seed, point in product(range(options.seeds or 3), POINTS):
            yield Run(
                name,
                "UMC-RLS",
                seed,
                parameters=point,
                protocol=PAPER if "width" in point else LABEL_FREE,
                settings=rows,
            )


def compute(run: Run) -> dict[str, Any]:
    """Fit once."""
    data = _load(run.dataset, run.settings["rows"])
    point = run.parameters
    k = len(np.unique(data.y))
    parameters = protocol.with_gamma(point, data.X)
    model = estimator(LEAST_SQUARES, k, random_state=run.seed, **parameters)
    setting = " ".join(f"{name}={value:g}" for name, value in point.items())
    return protocol.scored(data, model, _index) | {
        "clusters": k,
        "setting": setting or DEFAULT,
        "found_gamma": model.gamma_,
        "found_alpha": model.alpha_,
    }


def _index(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import adjusted_rand_score

    return {"ari": adjusted_rand_score(y, labels)}


def _load(name: str, rows: int | None) -> Data:
    if name != "moons":
        return protocol.load_once(name, rows)
    from sklearn.datasets import make_moons

    return Data(name, *make_moons(rows, noise=0.1, random_state=0))


def tables(frame: pd.DataFrame) -> Result:
    """Return means for each setting, and the loss of the default; there is no goal."""
    keys = ["dataset", "n", "clusters", "setting"]
    means = frame.groupby(keys, sort=False)[["ari", "seconds"]].mean().reset_index()
    losses = losses_of(means)
    lost = losses.set_index("dataset")["loss of default"]
    worst = pd.DataFrame(
        [
            {
                "mean loss": lost.mean(),
                "worst loss": lost.max(),
                "worst on": lost.idxmax(),
            }
        ],
        [DEFAULT],
    )
    worst = worst.rename_axis("choice").reset_index()
    found = {
        "selection-settings": means,
        "selection": losses,
        "selection-losses": worst,
    }
    return Result(found, shown=("selection", "selection-losses"))


def losses_of(means: pd.DataFrame) -> pd.DataFrame:
    """Return one row per data set: the default, the best setting, and the loss."""
    keys = ["dataset", "n", "clusters"]
    by_setting = means.pivot(index=keys, columns="setting", values="ari")
    order = pd.MultiIndex.from_frame(means[keys].drop_duplicates())
    table = by_setting.loc[order]
    default = table[DEFAULT]
    settings = means["setting"].unique()
    points = table[settings[settings != DEFAULT]]
    best = points.max(axis=1)
    columns = {
        DEFAULT: default,
        "best in grid": best,
        "best setting": points.idxmax(axis=1),
        "loss of default": best - default,
    }
    return pd.DataFrame(columns).reset_index()
