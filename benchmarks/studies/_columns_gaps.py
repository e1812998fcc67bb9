"""Part ``gaps`` of ``columns``: tables with four kinds of gaps, filled from the nearest rows or by the median."""

from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import Data, compile_seconds, load_once, timed
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies.peers import with_noise
from benchmarks.tables import Result

ROWS = 3000
REAL = ("wine", "iris", "wdbc", "optdigits", "satellite", "segment", "pendigits")
# Where gaps are: at random, in 10 % or 30 % of the cells; more often where the value is
# large; or where the value of another column is large.
WHOLE = "none"
KINDS = (WHOLE, "a tenth", "three tenths", "high values", "another column high")
FILLS = ("neighbors", "median")
GIVEN = "given"
UNKNOWN = "unknown"


class Made(NamedTuple):
    """A synthetic table: the numbers of its classes and columns."""

    n_classes: int
    n_columns: int

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"made-{self.n_classes}-{self.n_columns}"


MADE = [
    Made(*sizes)
    for sizes in (
        (3, 4),
        (4, 6),
        (5, 8),
        (6, 10),
        (8, 12),
        (10, 30),
        (3, 20),
        (5, 5),
    )
]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield tables with each kind of gaps, filled in both ways, with k given and not given."""
    rows = min(options.rows or ROWS, ROWS)
    names = [made.name for made in MADE] + list(REAL)
    names = options.pick(names, names[::3], names[:1])
    for name, kind, fill, number, seed in product(
        names, KINDS, FILLS, (GIVEN, UNKNOWN), options.repeats(1)
    ):
        if kind == WHOLE and fill != FILLS[0]:
            continue
        parameters = {"gaps": kind, "missing": fill, "number": number}
        yield Run(name, FRONT_DOOR, seed, parameters, settings={"rows": rows})


def compute(run: Run) -> dict[str, Any]:
    """Fit the default to one table with gaps."""
    data = table_of(run.dataset, run.settings["rows"])
    kind = run.parameters["gaps"]
    frame = pd.DataFrame(with_gaps(data.X, kind, run.dataset)).add_prefix("x")
    X: Any = frame
    if run.parameters["missing"] != FILLS[0]:
        X = mmcnb.read_table(frame, missing=run.parameters["missing"])
    n_clusters: Any = None
    if run.parameters["number"] == GIVEN:
        n_clusters = int(np.unique(data.y).size)
    model = estimator(FRONT_DOOR, n_clusters, random_state=run.seed)
    measures: dict[str, Any] = {"compile_seconds": compile_seconds(data.X, model)}
    measures |= timed(model, X)
    return measures | with_noise(data.y, np.asarray(model.labels_))


def table_of(name: str, rows: int) -> Data:
    """Return the numbers in a table, and its classes."""
    if name in REAL:
        return load_once(name, rows)
    sizes = Made(*map(int, name.split("-")[1:]))
    draw = np.random.default_rng(crc32(name.encode()))
    centres = 2.5 * draw.standard_normal((sizes.n_classes, sizes.n_columns))
    y = draw.integers(0, sizes.n_classes, rows)
    return Data(name, centres[y] + draw.standard_normal((rows, sizes.n_columns)), y)


def with_gaps(X: np.ndarray, kind: str, name: str) -> np.ndarray:
    """Return rows with gaps in half of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._columns_gaps import with_gaps
    >>> rows = np.random.default_rng(0).normal(size=(400, 4))
    >>> np.isnan(with_gaps(rows, "three tenths", "rows")).any(axis=0).sum()
    np.int64(2)
    """
    X = np.array(X, np.float64)
    if kind == WHOLE:
        return X
    draw = np.random.default_rng(crc32(f"{name} {kind}".encode()))
    order = draw.permutation(X.shape[1])
    n_gaps = max(1, X.shape[1] // 2)
    whole = order[n_gaps:]
    places = X.argsort(axis=0).argsort(axis=0) / len(X)
    gaps = np.zeros(X.shape, bool)
    for column in order[:n_gaps]:
        if kind == "a tenth":
            share: Any = 0.1
        elif kind == "three tenths":
            share = 0.3
        elif kind == "high values":
            share = 0.6 * places[:, column]
        else:
            share = 0.6 * places[:, draw.choice(whole)]
        gaps[:, column] = draw.random(len(X)) < share
    gaps[gaps.all(axis=1)] = False
    X[gaps] = np.nan
    return X


def tables(frame: pd.DataFrame) -> Result:
    """Return the mean index by kind of gaps, and over all tables with gaps."""
    frame = frame[frame["status"] == OK]
    is_made = frame["dataset"].str.startswith("made")
    frame = frame.assign(tables=np.where(is_made, "made", "real"))
    by_kind = frame.pivot_table(
        "ari", ["tables", "gaps"], ["number", "missing"], "mean", sort=False
    )
    by_kind.columns = [" ".join(names) for names in by_kind.columns]
    of_gaps = frame[frame["gaps"] != WHOLE]
    means = of_gaps.pivot_table("ari", "missing", "number", "mean", sort=False)
    return Result(
        {
            "columns-gaps": means.reset_index(),
            "columns-gaps-by-kind": by_kind.reset_index(),
        },
        shown=("columns-gaps", "columns-gaps-by-kind"),
    )
