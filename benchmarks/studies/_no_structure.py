"""Part ``alarms`` of ``no-structure``: clusters found in six kinds of clouds without structure."""

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

# CORRELATION: of a column with the next one. TAIL: degrees of freedom of heavy tails.
CORRELATION = 0.7
TAIL = 3
ROWS = (100, 300, 1000, 5000)
COLUMNS = (2, 5, 15, 50)
QUICK_ROWS = 1000
SMOKE_COLUMNS = (2, 15)
MORE_THAN_ONE = "more than one cluster"
HIGH = "trust is high"


class Cloud(NamedTuple):
    """A sample from a distribution without clusters.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    rows, columns : int
        Numbers of rows and columns.
    """

    kind: str
    rows: int
    columns: int

    @property
    def name(self) -> str:
        """Name in the tables, which also determines the half."""
        return f"{self.kind}, {self.rows} x {self.columns}"

    @property
    def half(self) -> str:
        """The half of the name."""
        return half_of(self.name)


def correlated(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw Gaussian columns, each of which is correlated with the previous one."""
    X = random.standard_normal((rows, columns))
    rest = np.sqrt(1 - CORRELATION**2)  # gives each column a standard deviation of 1
    for j in range(1, columns):
        X[:, j] = CORRELATION * X[:, j - 1] + rest * X[:, j]
    return X


def in_ball(random: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Draw rows uniform in the unit ball."""
    X = random.standard_normal((rows, columns))
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    return directions * random.random((rows, 1)) ** (1 / columns)


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
    """Draw the rows of a cloud, which are determined by its name and the seed.

    Examples
    --------
    >>> from benchmarks.studies._no_structure import Cloud, rows_of
    >>> rows_of(Cloud("uniform", 5, 2), 0).shape
    (5, 2)
    """
    random = np.random.default_rng([crc32(cloud.name.encode()), seed])
    return KINDS[cloud.kind](random, cloud.rows, cloud.columns).astype(np.float32)


def clouds_of(options: Options) -> list[Cloud]:
    """Return the clouds of a scale: a hundred, those of few rows, or a few."""
    largest = LARGE[-1].rows
    most = options.pick(largest, QUICK_ROWS, QUICK_ROWS)
    most = min(most, options.rows or largest)
    columns = options.pick(COLUMNS, COLUMNS, SMOKE_COLUMNS)
    shapes = [Cloud(*shape) for shape in product(KINDS, ROWS, columns)]
    small = [cloud for cloud in (*shapes, *LARGE) if cloud.rows <= most]
    if small:
        return small
    rows = min(most, ROWS[0])
    return [Cloud(kind, rows, width) for kind, width in product(KINDS, columns)]


# -- false alarms ----------------------------------------------------------------------


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the default, without a number of clusters, on each cloud."""
    for seed, cloud in product(options.repeats(1), clouds_of(options)):
        yield Run(cloud.name, FRONT_DOOR, seed, settings={"cloud": list(cloud)})


def compute(run: Run) -> dict[str, Any]:
    """Return how many clusters are found, and their trust."""
    X = rows_of(Cloud(*run.settings["cloud"]), run.seed)
    model: Any = mmcnb.MaximumMarginClustering(n_clusters=None, random_state=run.seed)
    measures = facts(X) | {"compile_seconds": compile_seconds(X, model)}
    measures |= timed(model, X)
    measures["clusters"] = model.n_clusters_
    measures["trust"] = model.report_["trust"]["level"]
    return measures


def tables(frame: pd.DataFrame, name: str) -> Result:
    """Return the share of false alarms over all clouds, and by kind, rows and columns.

    The goal is that no false alarm has high trust.
    """
    frame = frame[frame["status"] == OK]
    kinds = frame["dataset"].str.rpartition(", ")[0]
    frame = frame.rename(columns={"n": "rows", "d": "columns"}).assign(kind=kinds)
    frame[MORE_THAN_ONE] = frame["clusters"] > 1
    frame[HIGH] = frame[MORE_THAN_ONE] & (frame["trust"] == "high")
    table = shares(frame, (MORE_THAN_ONE, HIGH))
    share_of_all = float(table[HIGH].iloc[0])
    goal = Goal("without structure: trust is high", share_of_all, 0.0)
    return Result({name: table}, [goal])


def shares(frame: pd.DataFrame, figures: Sequence[str]) -> pd.DataFrame:
    """Return the means of some columns over all runs, and by kind, rows and columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._no_structure import shares
    >>> frame = pd.DataFrame({"kind": ["uniform", "Laplace"], "alarm": [0, 1]})
    >>> frame = frame.assign(rows=100, columns=2)
    >>> shares(frame, ["alarm"])[["of", "sets", "alarm"]].to_numpy().tolist()[:3]
    [['all', 2, 0.5], ['uniform', 1, 0.0], ['Laplace', 1, 1.0]]
    """
    every = frame.assign(by="", of="all")
    parts = [every, frame.assign(by="kind", of=frame["kind"])]
    for key in ("rows", "columns"):
        rising = frame.sort_values(key, kind="stable")
        parts.append(rising.assign(by=key, of=rising[key].astype(str)))
    groups = pd.concat(parts).groupby(["by", "of"], sort=False)
    table = groups[list(figures)].mean().astype(float)
    table.insert(0, "sets", groups.size())
    return table.reset_index()


def alarms(name: str) -> Section:
    """Return the section that counts false alarms, with the name of its table."""
    return Section(grid, compute, partial(tables, name=name))
