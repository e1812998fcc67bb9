"""Rows without structure: six kinds of clouds, and how often clusters are found in them."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.halves import half_of
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import compile_seconds, facts, timed
from benchmarks.run import OK, Options, Run, Runs, Section, frame_of_runs
from benchmarks.tables import Goal, Result

# of a column with the next one; degrees of freedom of heavy tails
CORRELATION = 0.7
TAIL = 3
ROWS = (100, 300, 1000, 5000)
COLUMNS = (2, 5, 15, 50)
QUICK_ROWS = 1000
SMOKE_COLUMNS = (2, 15)
MORE_THAN_ONE = "more than one cluster"
HIGH = "trust is high"


class Cloud(NamedTuple):
    """A draw from one distribution that has no clusters.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    rows, columns : int
        Its shape.
    """

    kind: str
    rows: int
    columns: int

    @property
    def name(self) -> str:
        """Its name in tables, which also decides its half."""
        return f"{self.kind}, {self.rows} x {self.columns}"

    @property
    def half(self) -> str:
        """The half of its name."""
        return half_of(self.name)


def correlated(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Gaussian columns, each of which follows the one before."""
    X = random.standard_normal((rows, columns))
    for j in range(1, columns):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    return X


def in_ball(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Rows uniform in the unit ball."""
    X = random.standard_normal((rows, columns))
    return (
        X
        / np.linalg.norm(X, axis=1, keepdims=True)
        * random.random((rows, 1)) ** (1 / columns)
    )


KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "Gaussian": lambda random, rows, columns: random.standard_normal((rows, columns)),
    "uniform": lambda random, rows, columns: random.random((rows, columns)),
    "correlated Gaussian": correlated,
    "heavy tails": lambda random, rows, columns: random.standard_t(
        TAIL, (rows, columns)
    ),
    "Laplace": lambda random, rows, columns: random.laplace(size=(rows, columns)),
    "uniform ball": in_ball,
}
LARGE = (
    Cloud("Gaussian", 20_000, 10),
    Cloud("uniform", 20_000, 3),
    Cloud("heavy tails", 100_000, 5),
    Cloud("correlated Gaussian", 100_000, 20),
)


def rows_of(cloud: Cloud, seed: int) -> np.ndarray:
    """Draw the rows of a cloud; its name and the seed decide them.

    Examples
    --------
    >>> from benchmarks.studies._no_structure import Cloud, rows_of
    >>> rows_of(Cloud("uniform", 5, 2), 0).shape
    (5, 2)
    """
    random = np.random.default_rng([crc32(cloud.name.encode()), seed])
    return KINDS[cloud.kind](random, cloud.rows, cloud.columns).astype(np.float32)


def clouds_of(options: Options) -> list[Cloud]:
    """The clouds of a scale: a hundred, those of at most 1,000 rows, or a few."""
    most = min(
        options.rows or LARGE[-1].rows,
        options.pick(LARGE[-1].rows, QUICK_ROWS, QUICK_ROWS),
    )
    columns = options.pick(COLUMNS, COLUMNS, SMOKE_COLUMNS)
    every = [*(Cloud(*shape) for shape in product(KINDS, ROWS, columns)), *LARGE]
    few = [
        Cloud(kind, min(most, ROWS[0]), width)
        for kind, width in product(KINDS, columns)
    ]
    return [cloud for cloud in every if cloud.rows <= most] or few


# -- false alarms ----------------------------------------------------------------------


@frame_of_runs
def grid(options: Options) -> Runs:
    """The default on each cloud, with the number of clusters left to it."""
    for seed, cloud in product(options.repeats(1), clouds_of(options)):
        yield Run(cloud.name, FRONT_DOOR, seed, settings={"cloud": list(cloud)})


def compute(run: Run) -> dict[str, Any]:
    """How many clusters are found, and how far they are trusted."""
    X = rows_of(Cloud(*run.settings["cloud"]), run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    found = facts(X) | {"compile_seconds": compile_seconds(X, model)} | timed(model, X)
    return found | {
        "clusters": model.n_clusters_,
        "trust": model.report_["trust"]["level"],
    }


def tables(frame: pd.DataFrame, name: str) -> Result:
    """Shares of false alarms, of all clouds and by kind, rows and columns; the goal: none is trusted."""
    frame = frame[frame["status"] == OK]
    told = {
        MORE_THAN_ONE: frame["clusters"] > 1,
        HIGH: (frame["clusters"] > 1) & (frame["trust"] == "high"),
    }
    frame = frame.assign(kind=frame["dataset"].str.rpartition(", ")[0], **told)
    table = shares(frame.rename(columns={"n": "rows", "d": "columns"}), tuple(told))
    return Result(
        {name: table},
        [Goal("without structure: trust is high", float(table[HIGH].iloc[0]), 0.0)],
    )


def shares(frame: pd.DataFrame, figures: Sequence[str]) -> pd.DataFrame:
    """Means of some columns over all runs, then by kind, by rows and by columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._no_structure import shares
    >>> frame = pd.DataFrame({"kind": ["uniform", "Laplace"], "rows": 100, "columns": 2, "alarm": [0, 1]})
    >>> shares(frame, ["alarm"])[["of", "sets", "alarm"]].to_numpy().tolist()[:3]
    [['all', 2, 0.5], ['uniform', 1, 0.0], ['Laplace', 1, 1.0]]
    """
    parts = [frame.assign(by="", of="all"), frame.assign(by="kind", of=frame["kind"])]
    for key in ("rows", "columns"):
        rising = frame.sort_values(key, kind="stable")
        parts.append(rising.assign(by=key, of=rising[key].astype(str)))
    groups = pd.concat(parts).groupby(["by", "of"], sort=False)
    table = groups[list(figures)].mean().astype(float)
    table.insert(0, "sets", groups.size())
    return table.reset_index()


def alarms(name: str) -> Section:
    """The section that counts false alarms, with the name of its table."""
    return Section(grid, compute, partial(tables, name=name))
