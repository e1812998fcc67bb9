"""Speed on this machine: the default beside k-means and other libraries, its first fit and its memory.

``python -m benchmarks speed [--quick] [--part NAME ...]`` prints one table. Its parts:

fits     the default, given the number of clusters, and `SparseKernelMMC` on a9a and on
         four pairs of digits of MNIST. Synthetic rows of the same shapes replace data
         sets that are not available
made     20,000 blobs in 50 columns around ten centres: the default with and without the
         number of clusters, MiniBatchKMeans, one start of FAISS and of SuperKMeans,
         fast_hdbscan, EVoC, and UMAP with HDBSCAN. A library that is not installed has
         a row that says so
first    CPU seconds of a first fit minus those of a second fit, in a separate process:
         the default with an empty compile cache, and then its first fit with two
         clusters
memory   peak memory of ``mmcnb fit`` with the default within 512 MiB, in a separate
         process: a9a, 10⁶ sparse texts, and 10⁷ rows of rings in 32 columns and
         8,000,000 in 64
convert  ``mmcnb convert`` of a CSV file with 20 columns of numbers, beside
         ``pyarrow.csv.read_csv``, which only reads it

Seconds are medians of five runs in which all methods take turns, after a first run that
compiles and is not counted; "compile_seconds" are those of the first run. "ratio" is
the median of the ratios to a peer in the same turn: to scikit-learn's
``KMeans(n_init=10)`` or, for conversions, to pyarrow. ``--quick`` has three runs, one
pair of digits, fewer texts, no rings, and no UMAP. Labels of 10⁸ rows are measured by
``python -m benchmarks scale --part labels``.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mmcnb
from benchmarks import libraries
from benchmarks.journal import say
from benchmarks.methods import FRONT_DOOR, HINGE, KMEANS, MINIBATCH, estimator
from benchmarks.protocol import (
    MNIST_PAIRS,
    Data,
    NoData,
    facts,
    fit,
    load_rows,
    store_once,
    timed,
    turns,
    write_rows,
    written_once,
)
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies import limits, startup, table_speed
from benchmarks.studies._made import texts
from benchmarks.studies.peers import installed, why_missing, with_noise
from benchmarks.tables import Result
from mmcnb import InputError
from mmcnb.datasets import make_block
from mmcnb.stores import convert

REPEATS = 5
QUICK_REPEATS = 3
A9A = "a9a"
BLOBS = "blobs"
UNKNOWN = f"{FRONT_DOOR}, number unknown"
ON_SETS = (KMEANS, FRONT_DOOR, HINGE)
OTHERS = (
    *libraries.ENGINES,
    libraries.FAST_DENSITY,
    libraries.EVOC,
    libraries.UMAP_DENSITY,
)
ON_BLOBS = (KMEANS, FRONT_DOOR, UNKNOWN, MINIBATCH, *OTHERS)
SLOW = (libraries.UMAP_DENSITY,)  # takes half a minute per run
BLOB_ROWS = 20_000
BLOB_COLUMNS = 50
CENTRES = 10
# Rows and columns of the data sets; on average, a row of a9a has 14 ones.
LIKE_A9A = (32_561, 123)
WORDS_OF_A9A = 14
LIKE_A_PAIR = (14_000, 784)
FIRST = {
    "default": "first fit, empty compile cache",
    "two clusters": "then the first fit with 2 clusters",
}
LIMIT = 512  # MiB
STORES = {
    "rings": limits.Shape("rings", 10_000_000, 32, 2),
    "rings, 64 columns": limits.Shape("rings", 8_000_000, 64, 2),
}
TEXTS = "texts"
TEXT_ROWS = 1_000_000
QUICK_TEXT_ROWS = 20_000
# The plan for more columns needs more than the limit.
TEXT_COLUMNS = 100
TEXT_WORDS = 20
CSV_ROWS = 1_000_000
QUICK_CSV_ROWS = 100_000
CONVERT = "mmcnb convert"
PYARROW = "pyarrow"
COLUMNS = [
    "part",
    "dataset",
    "n",
    "d",
    "method",
    "seconds",
    "ratio",
    "to",
    "compile_seconds",
    "peak_mib",
    "clusters",
    "ari",
    "note",
]
Rows = Iterator[dict[str, Any]]


class Part(NamedTuple):
    """A part of the study: its runs, their computation, and its rows of the table."""

    runs: Callable[[Options], Runs]
    compute: Callable[[Run], dict[str, Any]]
    rows: Callable[[pd.DataFrame], Rows]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the runs of the requested parts, or of all parts."""
    for name in options.parts:
        if name not in PARTS:
            raise InputError(
                f"there is no part called {name!r}; choose from {', '.join(PARTS)}."
            )
    for name in options.parts or PARTS:
        for run in PARTS[name].runs(options):
            yield run._replace(part=name)


def compute(run: Run) -> dict[str, Any]:
    """Measure a run of one of the parts."""
    return PARTS[run.part].compute(run)


def tables(frame: pd.DataFrame) -> Result:
    """Return the table of all parts."""
    notes = frame.get("note", pd.Series("", frame.index)).fillna("")
    noted = frame.assign(note=notes.where(frame["reason"] == "", frame["reason"]))
    rows: list[dict[str, Any]] = []
    for name, runs in noted.groupby("part", sort=False):
        rows += [{"part": name, **row} for row in PARTS[str(name)].rows(runs)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return Result({"speed": table.astype({"n": "Int64", "d": "Int64"})})


# -- fits in memory --------------------------------------------------------------------


def fits(options: Options) -> Runs:
    """Yield each method on each data set, turn by turn."""
    names = options.pick((A9A, *MNIST_PAIRS), (A9A, MNIST_PAIRS[0]), (A9A,))
    for name in names:
        settings = {"rows": options.rows_of(name), "n_clusters": 2}
        for seed, method in product(options.repeats(REPEATS, QUICK_REPEATS), ON_SETS):
            yield Run(name, method, seed, settings=settings)


def made(options: Options) -> Runs:
    """Yield each installed method on the blobs, turn by turn."""
    rows = options.sized(BLOB_ROWS, BLOB_ROWS)
    settings = {"rows": rows, "n_clusters": CENTRES}
    asked = [one for one in ON_BLOBS if not (options.quick and one in SLOW)]
    for seed, method in product(
        options.repeats(REPEATS, QUICK_REPEATS), installed(asked)
    ):
        yield Run(BLOBS, method, seed, settings=settings)


def compute_fit(run: Run) -> dict[str, Any]:
    """Measure the time of a fit, after a first fit in this process."""
    rows = run.settings["rows"]
    data, missing = rows_of(run.dataset, rows)
    k = run.settings["n_clusters"]
    compiled = compile_seconds(run.dataset, rows, run.method, k)
    model = model_of(run.method, k, run.seed)
    measures = facts(data.X) | timed(model, data.X) | {"compile_seconds": compiled}
    measures["note"] = missing or library_of(run.method)
    measures["stands_in"] = int(missing != "")
    return measures | with_noise(data.y, np.asarray(model.labels_))


@lru_cache(maxsize=1)
def rows_of(name: str, rows: int | None) -> tuple[Data, str]:
    """Return rows of a data set, cached for the next run, or synthetic rows of the same shape with the reason."""
    if name == BLOBS:
        assert rows is not None
        X, y = make_block(
            "blobs", 0, rows, BLOB_COLUMNS, random_state=0, n_clusters=CENTRES
        )
        return Data(name, X, y), ""
    try:
        return load_rows(name, rows), ""
    except NoData as error:
        reason = str(error)
    say(f"synthetic rows replace {name}: {reason}")
    if name == A9A:
        n, d = LIKE_A9A
        return texts(min(n, rows or n), d, 2, WORDS_OF_A9A), reason
    n, d = LIKE_A_PAIR
    return Data(name, *make_block("blobs", 0, min(n, rows or n), d)), reason


@lru_cache
def compile_seconds(dataset: str, rows: int | None, method: str, k: int) -> float:
    """Fit once, so that later fits do not compile, and return the seconds of compilation."""
    of_library = libraries.first_seconds(method)
    model = model_of(method, k, 0)
    fit(model, rows_of(dataset, rows)[0].X)
    report = getattr(model, "report_", {})
    return of_library + report.get("compile_seconds", 0.0)


def model_of(method: str, k: int, seed: int) -> Any:
    """Return an unfitted method; k-means has ten starts."""
    if method == UNKNOWN:
        return mmcnb.MaximumMarginClustering(random_state=seed)
    starts = {"n_init": 10} if method == KMEANS else {}
    return estimator(method, k, random_state=seed, **starts)


def library_of(method: str) -> str:
    """Return the version of a peer's library; "" for scikit-learn and for mmcnb.

    Every table has the versions of these two in any case.
    """
    if method not in libraries.PACKAGES:
        return ""
    package = libraries.PACKAGES[method][1]
    return f"{package} {version(package)}"


def rows_of_fits(frame: pd.DataFrame) -> Rows:
    """Yield medians for each method, and the libraries that are missing."""
    for dataset, runs in frame.groupby("dataset", sort=False):
        peer = runs[runs["method"] == KMEANS].set_index("seed")["seconds"]
        for method, own in runs.groupby("method", sort=False):
            seconds = own.set_index("seed")["seconds"]
            stands_in = own.get("stands_in", pd.Series(0.0)).max() > 0
            yield {
                "dataset": f"made, like {dataset}" if stands_in else dataset,
                "n": own["n"].max(),
                "d": own["d"].max(),
                "method": method,
                "seconds": seconds.median(),
                "ratio": (seconds / peer).median(),
                "to": KMEANS,
                "compile_seconds": own["compile_seconds"].max(),
                "clusters": own["clusters"].median(),
                "ari": own["ari"].mean(),
                "note": own["note"].iloc[0],
            }
        if dataset == BLOBS:
            for method in OTHERS:
                if reason := why_missing(method):
                    yield {"dataset": dataset, "method": method, "note": reason}


# -- the first fit ---------------------------------------------------------------------


def first(options: Options) -> Runs:
    """Yield one run for both first fits; none in a smoke run, because it compiles everything."""
    if not options.smoke:
        yield Run(BLOBS, FRONT_DOOR, 0)


def compute_first(run: Run) -> dict[str, Any]:
    """Measure the CPU seconds of first fits minus those of second fits.

    The first process starts with an empty compile cache, and the second process uses
    the cache that the first has filled.
    """
    with tempfile.TemporaryDirectory() as cache:
        default = startup.fit_twice(cache, run.method)
        two = startup.fit_twice(cache, run.method, 2)
    return {
        "seconds": default["seconds"] + two["seconds"],
        "default": default["first_fit"] - default["second_fit"],
        "two clusters": two["first_fit"] - two["second_fit"],
    }


def rows_of_first(frame: pd.DataFrame) -> Rows:
    """Yield the two first fits."""
    for run in frame.to_dict("records"):
        for name, dataset in FIRST.items():
            yield {
                "dataset": dataset,
                "method": run["method"],
                "seconds": run.get(name),
                "note": run["reason"] or "CPU seconds beyond a second fit",
            }


# -- memory ----------------------------------------------------------------------------


def memory(options: Options) -> Runs:
    """Yield the default on a9a, and on each store that is not too large."""
    yield Run(A9A, FRONT_DOOR, 0, settings={"rows": options.rows_of(A9A)})
    rows = options.sized(TEXT_ROWS, QUICK_TEXT_ROWS)
    yield Run(TEXTS, FRONT_DOOR, 0, settings={"rows": rows})
    if not options.quick:
        for name, shape in STORES.items():
            rows = options.sized(shape.rows, shape.rows)
            yield Run(name, FRONT_DOOR, 0, settings={"rows": rows})


def compute_memory(run: Run) -> dict[str, Any]:
    """Measure the peak of a fit in a separate process."""
    rows = run.settings["rows"]
    if run.dataset == A9A:
        store = store_once(run.folder, A9A, rows=rows)
    elif run.dataset == TEXTS:
        data = texts(rows, TEXT_COLUMNS, 2, TEXT_WORDS)
        store = written_once(run.folder, TEXTS, partial(write_rows, data))
    else:
        shape = STORES[run.dataset]._replace(rows=rows)
        name = f"rings-{shape.columns}"
        store = written_once(run.folder, name, partial(limits.write, shape))
    return limits.fit_within(store, 2, LIMIT, run.seed)


def rows_of_memory(frame: pd.DataFrame) -> Rows:
    """Yield the peak of each fit, or the smallest limit that its plan needs."""
    for run in frame.to_dict("records"):
        least = run.get("refused")
        is_refused = isinstance(least, str) and least != ""
        note = run["reason"]
        if is_refused:
            note = f"refused; the plan needs {least}"
        yield {
            "dataset": run["dataset"],
            "n": run["n"],
            "d": run["d"],
            "method": f"{FRONT_DOOR}, within {LIMIT} MiB",
            "seconds": run["seconds"],
            "peak_mib": np.nan if is_refused else run["peak_mib"],
            "ari": run.get("ari"),
            "note": note,
        }


# -- files -----------------------------------------------------------------------------


def files(options: Options) -> Runs:
    """Yield one run, in which the two ways to read the file take turns."""
    rows = options.sized(CSV_ROWS, QUICK_CSV_ROWS)
    settings = {"rows": rows, "turns": options.repeats(REPEATS, QUICK_REPEATS).stop}
    yield Run("numbers.csv", CONVERT, 0, settings=settings)


def compute_convert(run: Run) -> dict[str, Any]:
    """Measure the conversion of a file, and a bare read."""
    import pyarrow.csv

    rows = run.settings["rows"]
    with tempfile.TemporaryDirectory(dir=run.folder or None) as folder:
        path = Path(folder, "rows.csv")
        table_speed.write(path, rows, 0)
        store = path.with_name("rows.zarr")
        ways: dict[str, Callable[[], object]] = {
            CONVERT: partial(convert, path, store, overwrite=True, progress=False),
            PYARROW: lambda: pyarrow.csv.read_csv(path),
        }
        seconds = turns(ways, run.settings["turns"])
    return {
        "n": rows,
        "d": table_speed.COLUMNS,
        "seconds": seconds[CONVERT],
        "pyarrow_seconds": seconds[PYARROW],
    }


def rows_of_convert(frame: pd.DataFrame) -> Rows:
    """Yield the conversion and the bare read."""
    for run in frame.to_dict("records"):
        for method, name in ((CONVERT, "seconds"), (PYARROW, "pyarrow_seconds")):
            yield {
                "dataset": run["dataset"],
                "n": run["n"],
                "d": run["d"],
                "method": method,
                "seconds": run.get(name),
                "ratio": run.get(name, np.nan) / run.get("pyarrow_seconds", np.nan),
                "to": PYARROW,
                "note": run["reason"],
            }


PARTS = {
    "fits": Part(fits, compute_fit, rows_of_fits),
    "made": Part(made, compute_fit, rows_of_fits),
    "first": Part(first, compute_first, rows_of_first),
    "memory": Part(memory, compute_memory, rows_of_memory),
    "convert": Part(files, compute_convert, rows_of_convert),
}
