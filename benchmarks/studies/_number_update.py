"""Part ``update`` of ``number``: updates with a new direction of embeddings."""

import warnings
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import facts
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.tables import Result, goals_of

ROWS = 5000
QUICK_ROWS = 2000
COLUMNS = 100
CLUSTERS = 8
SPREAD = 0.06  # standard deviation of each column; the centres have length 1
FREEDOM = 4  # degrees of freedom of heavy tails
NOISE = 0.12  # share of scattered rows
NOISE_SPREAD = 0.09
OTHERS = 500  # number of rows in old directions beside a new direction
DRIFT = 0.25  # distance by which all rows have moved
KINDS = ("Gaussian", "unit", "heavy", "heavy unit", "noise unit")
COSINE = "heavy unit"  # rows of any length, compared by metric="cosine"
SAME = "same"
MOVED = "moved"
NEW_SIZES = (100, 300, 1000)
TITLES = ("together", "kept", "pure", "warned", "high")


class Update(NamedTuple):
    """Old rows, the rows of an update, and which of the latter have a new direction."""

    old: np.ndarray
    new: np.ndarray
    is_new: np.ndarray


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each kind of rows and each update, with the number given and not given."""
    settings = {"rows": options.sized(ROWS, QUICK_ROWS)}
    cases = [f"{size} new" for size in options.pick(NEW_SIZES, (300,), (100,))]
    cases += [SAME, MOVED]
    kinds = options.pick(KINDS, KINDS, KINDS[:1])
    numbers = ("unknown", "given")
    for kind, case, number, seed in product(kinds, cases, numbers, options.repeats(10)):
        yield Run(
            kind,
            FRONT_DOOR,
            seed,
            parameters={"case": case, "number": number},
            settings=settings,
        )


def compute(run: Run) -> dict[str, Any]:
    """Fit the old rows, and update the model."""
    data = update_of(
        run.dataset, run.parameters["case"], run.settings["rows"], run.seed
    )
    model: Any = mmcnb.MaximumMarginClustering(
        n_clusters=CLUSTERS if run.parameters["number"] == "given" else None,
        metric="cosine" if run.dataset == COSINE else "euclidean",
        random_state=run.seed,
    )
    before = model.fit(data.old).labels_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.update(data.new)
    after = model.predict(data.old)
    measures = facts(data.old) | {
        "kept": np.mean(after == before),
        "warned": float(bool(caught)),
        "high": float(model.report_["trust"]["level"] == "high"),
        "clusters": np.unique(after).size,
        "new clusters": np.setdiff1d(model.labels_, before).size,
    }
    if data.is_new.any():
        inside = model.labels_[data.is_new]
        largest = np.bincount(inside + 1)[1:].argmax() if inside.max() >= 0 else -1
        n_others = np.count_nonzero(after == largest)
        n_others += np.count_nonzero(model.labels_[~data.is_new] == largest)
        n_together = np.count_nonzero(inside == largest)
        measures["together"] = n_together / inside.size
        measures["pure"] = n_together / (n_together + n_others)
    return measures


def update_of(kind: str, case: str, n_rows: int, seed: int) -> Update:
    """Draw old rows in eight directions, and the rows of an update.

    The case "300 new" has 300 rows in a ninth direction and 500 rows in the old
    directions. "same" has 300 rows in the old directions, and "moved" has such rows,
    moved away from these directions.

    Examples
    --------
    >>> from benchmarks.studies._number_update import update_of
    >>> data = update_of("unit", "100 new", 1000, 0)
    >>> data.old.shape, data.new.shape, int(data.is_new.sum())
    ((1000, 100), (600, 100), 100)
    """
    random = np.random.default_rng(seed)
    centres = _unit(random.normal(size=(CLUSTERS + 1, COLUMNS)))

    def rows(directions: np.ndarray) -> np.ndarray:
        noise = SPREAD * random.normal(size=(directions.size, COLUMNS))
        if kind.startswith("heavy"):
            chi = random.chisquare(FREEDOM, size=(directions.size, 1))
            noise *= np.sqrt(FREEDOM / chi)
        return np.asarray(centres[directions] + noise)

    old = rows(random.integers(0, CLUSTERS, n_rows))
    if kind.startswith("noise"):
        scattered = random.normal(0, NOISE_SPREAD, old.shape)
        is_scattered = random.random((n_rows, 1)) < NOISE
        old = np.where(is_scattered, scattered, old)
    n_new = int(case.split()[0]) if case not in (SAME, MOVED) else 0
    n_others = OTHERS if n_new else 300
    others = random.integers(0, CLUSTERS, n_others)
    new = rows(np.append(np.full(n_new, CLUSTERS), others))
    if case == MOVED:
        new += DRIFT * _unit(random.normal(size=(1, COLUMNS)))
    if kind.endswith("unit") and kind != COSINE:
        old = _unit(old)
        new = _unit(new)
    is_new = np.arange(len(new)) < n_new
    return Update(old.astype(np.float32), new.astype(np.float32), is_new)


def _unit(rows: np.ndarray) -> np.ndarray:
    """Divide rows by their lengths."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def tables(frame: pd.DataFrame) -> Result:
    """Return means by kind, update and number, with goals for new rows together and old labels kept."""
    frame = frame[frame["status"] == OK].reindex(
        columns=[*frame.columns, *(name for name in TITLES if name not in frame)]
    )
    keys = ["dataset", "case", "number"]
    figures = [*TITLES, "new clusters"]
    grouped = frame.groupby(keys, sort=False)
    table = grouped[figures].mean()
    table["least kept"] = grouped["kept"].min()
    by_number = frame.groupby("number", sort=False)[["together", "kept"]].mean()
    together = by_number["together"].drop("given", errors="ignore")
    title = "update, number {}: "
    goals = goals_of(together, 0.95, title + "new rows together", "%", True)
    goals += goals_of(by_number["kept"], 0.99, title + "old rows kept", "%", True)
    return Result({"number-update": table.reset_index()}, goals)
