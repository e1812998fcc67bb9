"""The default bandwidth and ridge: classes found, beside the best in a grid.

``python -m benchmarks selection [--quick] [--seeds N]`` fits `UnsupervisedRLS` by
default, and at nine settings: bandwidths sigma of 0.4, 0.55 and 0.75 times the root
mean squared distance, and ridges of 1e-4, 3e-4 and 1e-3 a row. Figures are adjusted
Rand indices, means over the seeds (three by default). The best in the grid by that mean
is found with the known classes, and the loss is how far the default lies below. MNIST
pairs are 4,000 rows; ``--quick`` leaves them out.
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
    """The default and every point of the grid, in turn for each seed."""
    for name in options.pick((*SETS, *MNIST_PAIRS), SETS, ("moons",)):
        rows = {"rows": options.rows_of(name, ROWS.get(name))}
        for seed, given in product(range(options.seeds or 3), POINTS):
            yield Run(
                name,
                "UMC-RLS",
                seed,
                parameters=given,
                protocol=PAPER if "width" in given else LABEL_FREE,
                settings=rows,
            )


def compute(run: Run) -> dict[str, Any]:
    """One fit."""
    from sklearn.metrics import adjusted_rand_score

    data = _load(run.dataset, run.settings["rows"])
    given = run.parameters
    k = len(np.unique(data.y))
    taken = protocol.with_gamma(given, data.X)
    model = estimator(LEAST_SQUARES, k, random_state=run.seed, **taken)
    found = protocol.scored(
        data, model, lambda y, labels: {"ari": adjusted_rand_score(y, labels)}
    )
    found |= {"clusters": k}
    setting = (
        " ".join(f"{name}={value:g}" for name, value in given.items())
        if "width" in given
        else ""
    )
    found |= {"setting": setting or DEFAULT}
    return found | {"found_gamma": model.gamma_, "found_alpha": model.alpha_}


def _load(name: str, rows: int | None) -> Data:
    if name != "moons":
        return protocol.load_once(name, rows)
    from sklearn.datasets import make_moons

    return Data(name, *make_moons(rows, noise=0.1, random_state=0))


def tables(frame: pd.DataFrame) -> Result:
    """Means of each setting, and the loss of the default; there is no goal."""
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
    """One row a data set: the default, the best setting, and the loss of the default."""
    keys = ["dataset", "n", "clusters"]
    table = means.pivot(index=keys, columns="setting", values="ari")
    ari = table.loc[pd.MultiIndex.from_frame(means[keys].drop_duplicates())]
    points = ari[[name for name in means["setting"].unique() if name != DEFAULT]]
    columns = {
        DEFAULT: ari[DEFAULT],
        "best in grid": points.max(axis=1),
        "best setting": points.idxmax(axis=1),
        "loss of default": points.max(axis=1) - ari[DEFAULT],
    }
    return pd.DataFrame(columns).reset_index()
