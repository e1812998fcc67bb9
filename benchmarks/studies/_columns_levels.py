"""Part ``levels`` of ``columns``: counts, flags and grades beside numbers, moved together or not.

Synthetic tables have 2 to 6 columns of numbers with 2 to 5 clusters, and one to three
columns with few levels. With "fixed", these columns have the scaling that they have
beside wide clusters. Each table is clustered with the number of its clusters given and
unknown.
"""

from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from benchmarks.halves import half_of
from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import Data, facts, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies.peers import with_noise
from benchmarks.tables import Result

AUTO, FIXED = SCALES = ("auto", "fixed")
GIVEN, UNKNOWN = NUMBERS = ("given", "unknown")
# A count that is independent of the clusters; one whose mean depends on the cluster; one
# that divides each cluster of the numbers into two; a flag and a grade that are
# independent; and three counts, one of which depends on the cluster.
KINDS = ("independent", "shifted", "decisive", "flag and grade", "three counts")
ROWS = (400, 1200, 3000)
DRAWS = 16


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield both scalings of each table, with and without the number of clusters."""
    most = options.rows or options.pick(max(ROWS), max(ROWS), 200)
    runs = product(KINDS, options.repeats(DRAWS, 2), NUMBERS, SCALES)
    for kind, seed, number, scale in runs:
        yield Run(
            kind,
            FRONT_DOOR,
            seed,
            parameters={"scale": scale, "number": number},
            part="levels",
            settings={"rows": most},
        )


def compute(run: Run) -> dict[str, Any]:
    """Fit the default to a table with one scaling of its levels."""
    data = made(run.dataset, run.seed, run.settings["rows"])
    k: Any = None
    if run.parameters["number"] == GIVEN:
        k = np.unique(data.y).size
    scale: Any = AUTO
    if run.parameters["scale"] == FIXED:
        scale = fixed(data.X)
    model = estimator(FRONT_DOOR, k, scale=scale, random_state=run.seed)
    measures = timed(model, data.X) | with_noise(data.y, model.labels_)
    return facts(np.asarray(data.X["number_0"])[:, None]) | measures


def fixed(table: pd.DataFrame) -> dict[str, str | float]:
    """Return the scaling that columns with few levels have beside wide clusters."""
    model = estimator(FRONT_DOOR, 2, scale=AUTO, random_state=0).fit(table)
    scale: dict[str, str | float] = {}
    for row in model.report_["columns"]:
        if row["name"].startswith("number"):
            continue
        if row["kind"] == "few values":
            scale[row["name"]] = 0.35
        else:
            is_log = row["treatment"] == "logarithm"
            scale[row["name"]] = "log" if is_log else "standard"
    return scale


def made(kind: str, seed: int, most_rows: int = max(ROWS)) -> Data:
    """Draw a table of one kind.

    Examples
    --------
    >>> from benchmarks.studies._columns_levels import made
    >>> list(made("flag and grade", 0).X)[-2:]
    ['flag', 'grade']
    """
    draw = np.random.default_rng([crc32(kind.encode()), seed])
    n = min(int(draw.choice(ROWS)), most_rows)
    k = int(draw.integers(2, 6))
    d = int(draw.integers(2, 7))
    y = draw.choice(k, n, p=draw.dirichlet(np.full(k, 4.0)))
    centers = draw.normal(size=(k, d))
    distances = np.linalg.norm(centers[:, None] - centers, axis=2)
    centers *= draw.uniform(3, 7) / distances[np.triu_indices(k, 1)].min()
    values = centers[y] + draw.normal(size=(n, d))
    values = values * draw.uniform(1, 30, d) + draw.uniform(10, 300, d)
    columns: dict[str, np.ndarray] = {}
    for j in range(d):
        columns[f"number_{j}"] = values[:, j].round(2)
    if kind == "independent":
        columns["count"] = draw.poisson(draw.choice([0.3, 0.7, 1, 2, 4]), n)
    elif kind == "shifted":
        columns["count"] = draw.poisson(draw.uniform(0.2, 4, k)[y])
    elif kind == "decisive":
        is_high = draw.random(n) < 0.5
        columns["count"] = draw.poisson(np.where(is_high, 12, 0.3))
        y = y + k * is_high
    elif kind == "flag and grade":
        columns["flag"] = (draw.random(n) < draw.uniform(0.2, 0.6)).astype(np.int64)
        columns["grade"] = draw.integers(1, 5, n)
    else:
        columns["visits"] = draw.poisson(1, n)
        columns["calls"] = draw.poisson(draw.uniform(0.2, 3, k)[y])
        columns["returns"] = draw.poisson(0.4, n)
    return Data(kind, pd.DataFrame(columns), y)


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean index by kind of table, half, number and scaling."""
    frame = frame[frame["status"] == OK]
    names = frame["dataset"] + "-" + frame["seed"].astype(str)
    frame = frame.assign(half=names.map(half_of))
    means = frame.pivot_table(
        "ari", ["dataset", "half"], ["number", "scale"], "mean", sort=False
    )
    means.columns = [" ".join(column) for column in means.columns]
    return Result({"columns-levels": means.reset_index()})
