"""Seconds of each stage of a fit, and of the fit beside k-means.

``python -m benchmarks profile [--quick] [--seeds N]`` fits the default, the graph
alone, the hinge form, and the least squares form, on one thread, to 1,500 synthetic
rows of 30 columns, adult (a9a), MNIST 3 against 8, all of MNIST, 300 synthetic rows of
10,000 columns, 10⁵ sparse rows of 10⁵ columns, and 10⁷ rows of rings in 50 columns in a
Zarr store within 1 GiB. Each fit runs once before the measurement, so that all routines
are compiled. A second thread samples the stack of the fit every few milliseconds. The
stage is that of the innermost file of mmcnb; compiled routines count for the file that
calls them.

"second thread" is the ratio of the times with one and with two threads. scikit-learn's
``KMeans(n_init=10)``, with its own number of threads, fits the rows in memory, but not
the store. "import" and "compile" are measured in separate new processes: importing the
default estimator, and the compilation that ``python -m benchmarks startup`` measures,
in processor seconds.
"""

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import pandas as pd

import mmcnb
from benchmarks.methods import (
    FRONT_DOOR,
    GRAPH,
    HINGE,
    KMEANS,
    LEAST_SQUARES,
    estimator,
)
from benchmarks.protocol import compile_seconds, facts, fit, load_rows, store_once
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies import startup
from benchmarks.studies._made import genes, texts
from benchmarks.tables import Result

METHODS = (FRONT_DOOR, GRAPH, HINGE, LEAST_SQUARES)
START = "start of the program"
STORE = "rings"
SMALL_ROWS = 1500
SMALL_FEATURES = 30
WIDE_ROWS = {"genes": 300, "texts": 10**5}
WIDE = {
    "genes": lambda rows: genes(rows, 10_000),
    "texts": lambda rows: texts(rows, 10**5, 5, 40),
}
STORE_ROWS = 10**7
QUICK_STORE_ROWS = 10**5
STORE_FEATURES = 50
LIMIT = "1GiB"
PERIOD = 0.002  # seconds between two samples
HOME = Path(mmcnb.__file__).parent
# The stage of each file; a file that is not listed belongs to its folder.
STAGES = {
    "graph/communities.py": "communities",
    "graph/genie.py": "linkage",
    "graph/layout.py": "layout",
    "graph/merge_tree.py": "communities",
    "graph/inverted_file.py": "nearest nodes",
    "hinge/cutting_plane.py": "cutting planes",
    "hinge/training_set.py": "cutting planes",
    "hinge/cccp.py": "cutting planes",
    "hinge/qp.py": "QP",
    "least_squares/partition.py": "local search and paths",
    "choice": "choice",
    "graph": "edges and votes",
    "engine": "passes",
    "features": "features",
    "samples": "rows",
    "estimators": "estimator",
    "hinge": "search of the hinge form",
    "least_squares": "search of least squares",
}
IMPORT = "import mmcnb; mmcnb.MaximumMarginClustering()"


class StageClock(threading.Thread):
    """Counts in which file of mmcnb a thread is while the ``with`` block runs.

    Parameters
    ----------
    watched : int
        Identifier of the thread.
    """

    def __init__(self, watched: int) -> None:
        super().__init__(daemon=True)
        self.watched = watched
        self.looks = Counter[str]()
        self._ends = threading.Event()

    def run(self) -> None:
        """Sample the thread every few milliseconds."""
        while not self._ends.wait(PERIOD):
            self.looks[stage_of(sys._current_frames().get(self.watched))] += 1

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        self.join()

    def shares(self) -> dict[str, float]:
        """Share of the samples in each stage."""
        total = sum(self.looks.values())
        return {stage: count / total for stage, count in sorted(self.looks.items())}


def stage_of(frame: FrameType | None) -> str:
    """Return the stage of the innermost function of mmcnb that has a stage.

    Compiled functions and shared helpers have no stage.

    Examples
    --------
    >>> from benchmarks.studies.profile import stage_of
    >>> stage_of(None)
    'outside'
    """
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(HOME):
            name = path.relative_to(HOME).as_posix()
            folder = name.partition("/")[0]
            if name in STAGES or folder in STAGES:
                return STAGES.get(name, STAGES.get(folder, folder))
        frame = frame.f_back
    return "outside"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each method and k-means on each data set, and the start of the program.

    k-means is fitted only to data sets in memory.
    """
    sets = {"blobs": 2, "a9a": 2, "mnist-3v8": 2, "mnist": 10, "genes": 2, "texts": 5}
    names = options.pick(tuple(sets), ("blobs", "a9a"), ("blobs",))
    for seed in options.repeats(1):
        for name in names:
            settings = {"rows": _rows_of_set(name, options), "n_clusters": sets[name]}
            for method in (*METHODS, KMEANS):
                yield Run(name, method, seed, settings=settings)
        if not options.smoke:
            rows = options.sized(STORE_ROWS, QUICK_STORE_ROWS)
            for method in METHODS:
                yield Run(STORE, method, seed, settings={"rows": rows, "n_clusters": 2})
            yield Run(START, FRONT_DOOR, seed)


def _rows_of_set(name: str, options: Options) -> int | None:
    """Return the number of rows of a data set to use; None for all."""
    if name in WIDE:
        return options.sized(WIDE_ROWS[name], WIDE_ROWS[name])
    return options.rows_of(name, SMALL_ROWS if name == "blobs" else None)


def compute(run: Run) -> dict[str, Any]:
    """Measure a fit on one thread, the shares of its stages, and the seconds with two threads."""
    if run.dataset == START:
        return start_of_the_program()
    X, few = rows_of(run)
    model = estimator(run.method, run.settings["n_clusters"], random_state=run.seed)
    compiled = compile_seconds(few, model)
    measures = facts(X)
    if run.method == KMEANS:
        return measures | {"seconds": seconds_of(model.set_params(n_init=10), X)}
    model.set_params(n_jobs=1)
    if run.dataset == STORE:
        fit(model.set_params(memory_limit=LIMIT), few)
    else:
        fit(model, X)
    with StageClock(threading.get_ident()) as clock:
        seconds = seconds_of(model, X)
    measures["seconds"] = seconds
    measures["two_threads"] = seconds_of(model.set_params(n_jobs=2), X)
    measures["compile_seconds"] = compiled
    for name, share in clock.shares().items():
        measures[f"stage {name}"] = share * seconds
    return measures


def rows_of(run: Run) -> tuple[Any, Any]:
    """Return rows or the path of a store, and some of the rows in memory."""
    rows = run.settings["rows"]
    if run.dataset == STORE:
        store = store_once(
            run.folder, STORE, rows=rows, features=STORE_FEATURES, random_state=0
        )
        return store, mmcnb.open_samples(store).block(0, min(rows, 2**14))
    if run.dataset == "blobs":
        X = mmcnb.datasets.load("blobs", rows=rows, features=SMALL_FEATURES)[0]
    elif run.dataset in WIDE:
        X = WIDE[run.dataset](rows).X
    else:
        X = load_rows(run.dataset, rows).X
    return X, X


def seconds_of(model: Any, X: Any) -> float:
    """Return the wall seconds of a fit."""
    started = time.perf_counter()
    fit(model, X)
    return time.perf_counter() - started


def start_of_the_program() -> dict[str, float]:
    """Measure an import, and the compilation of the first fit.

    Both run in new processes.
    """
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
    imported = time.perf_counter() - started
    fits = startup.compute(Run("blobs", FRONT_DOOR, 0))
    compiled = fits["first_fit"] - fits["second_fit"]
    return {
        "seconds": imported + compiled,
        "stage import": imported,
        "stage compile": compiled,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return seconds beside k-means and with two threads, and the seconds of each stage."""
    means = frame.groupby(["dataset", "method"], sort=False).mean(numeric_only=True)
    ours = means.drop(index=KMEANS, level="method")
    totals = ours[["seconds"]].copy()
    if KMEANS in frame["method"].to_numpy():
        kmeans = means["seconds"].xs(KMEANS, level="method")
        datasets = totals.index.get_level_values(0)
        beside = kmeans.reindex(datasets).to_numpy()
        totals["of k-means"] = totals["seconds"] / beside
    if "two_threads" in ours:
        totals["second thread"] = totals["seconds"] / ours["two_threads"]
    stages = ours.filter(like="stage ")
    stages.columns = stages.columns.str.removeprefix("stage ")
    keys = ["dataset", "method"]
    long = stages.stack().rename("seconds").rename_axis([*keys, "stage"]).reset_index()
    sums = long.groupby(keys)["seconds"].transform("sum")
    long["share"] = long["seconds"] / sums
    ordered = long.sort_values([*keys, "seconds"], ascending=[True, True, False])
    return Result({"profile": totals.reset_index(), "profile-stages": ordered}, [])
