"""Part ``costs`` of ``choice``: time and memory of the default's candidates, of sparse texts, and of fits."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods import FRONT_DOOR, KMEANS, estimator
from benchmarks.protocol import (
    MNIST_PAIRS,
    Data,
    compile_seconds,
    facts,
    fit,
    fit_store,
    load_once,
    of_store,
    store_once,
    timed,
    turns,
    written_once,
)
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._made import texts
from benchmarks.studies._sets import QUICK_ROWS
from benchmarks.tables import Result, goals_of
from mmcnb.datasets import make_block
from mmcnb.stores import create_csr_store

CANDIDATES = "candidates"
TEXT = "sparse text"
MEMORY = "memory"
TIME = "time"
DIGITS = "mnist"
BLOBS = "blobs"
TEXTS = "texts"
RINGS = "rings"
A9A = "a9a"
# CLUSTERS: of the graphs; FEATURES: of the synthetic rows.
CLUSTERS = 10
FEATURES = 10
VOCABULARY = 10**5
WORDS = 60
TOPICS = 20
TEXT_ROWS = 10**6
QUICK_TEXT_ROWS = 20_000
FEWEST_TEXTS = 2000
TEXT_BLOCK = 20_000
RING_ROWS = 10**7
QUICK_RING_ROWS = 10**6
RING_FEATURES = 32
LIMIT = "512MiB"
LIMIT_MIB = 512
# The default of ``n_nodes``.
N_NODES = 20_000
FITS = 5
STAGES = ("graph_seconds", "choice_seconds", "label_seconds")
# Seconds to compute and compare the candidates; only texts have a layout.
MOST_SECONDS = {
    DIGITS: 1.5,
    BLOBS: 1.5,
    TEXTS: 5.0,
}
MOST_TIME = {A9A: 4.5, **dict.fromkeys(MNIST_PAIRS, 1.2)}  # relative to k-means


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield graphs, texts, stores, and the data sets of the comparison with k-means."""
    nodes = options.sized(N_NODES, N_NODES)
    every = not options.smoke
    for name in (DIGITS, BLOBS, TEXTS) if every else (BLOBS, TEXTS):
        yield Run(name, CANDIDATES, 0, settings={"rows": nodes})
    rows = max(FEWEST_TEXTS, options.sized(TEXT_ROWS, QUICK_TEXT_ROWS))
    yield Run(TEXTS, TEXT, 0, settings={"rows": rows})
    rings = {
        "rows": options.sized(RING_ROWS, QUICK_RING_ROWS),
        "features": RING_FEATURES,
        "random_state": 0,
    }
    sizes = (
        {A9A: {"rows": options.rows_of(A9A)}, RINGS: rings} if every else {RINGS: rings}
    )
    for name, how in sizes.items():
        yield Run(name, MEMORY, 0, settings={"how": how})
    for name in MOST_TIME if every else (A9A,):
        bound = options.rows_of(name, QUICK_ROWS if options.quick else None)
        yield Run(
            name, TIME, 0, settings={"rows": bound, "fits": options.pick(FITS, FITS, 1)}
        )


def compute(run: Run) -> dict[str, Any]:
    """Measure the cost of one run."""
    measure = {
        CANDIDATES: of_candidates,
        TEXT: of_texts,
        MEMORY: of_memory,
        TIME: beside_kmeans,
    }
    return measure[run.method](run)


def of_candidates(run: Run) -> dict[str, Any]:
    """Measure the stages of a fit: the graph, computing and comparing candidates, and labelling."""
    X = rows_of(run)
    model = estimator(FRONT_DOOR, CLUSTERS, random_state=run.seed)
    for _ in range(2):
        history = (
            fit(model, X)
            .history_.dropna(subset="stage")
            .drop_duplicates("stage", keep="last")
        )
    seconds = np.diff(history["seconds"], prepend=0.0)
    told = {"taken": model.candidate_, "left_out": len(model.report_["left_out"])}
    return (
        facts(X)
        | {"seconds": history["seconds"].iloc[-1]}
        | dict(zip(STAGES, seconds, strict=True))
        | told
    )


def rows_of(run: Run) -> Any:
    """Return digits, blobs or texts in memory."""
    rows = run.settings["rows"]
    if run.dataset == DIGITS:
        return load_once(DIGITS, rows).X
    if run.dataset == TEXTS:
        return unit_texts(rows).X
    return make_block("blobs", 0, rows, FEATURES, n_clusters=CLUSTERS, random_state=0)[
        0
    ]


def unit_texts(rows: int, seed: int = 0) -> Data:
    """Generate texts about some topics, scaled to length 1; as in TF-IDF, rare words have larger weights."""
    from sklearn.preprocessing import normalize

    made = texts(rows, VOCABULARY, TOPICS, WORDS, seed)
    made.X.data *= np.log1p(made.X.indices)  # words with large numbers are rare
    return made._replace(X=normalize(made.X))


def write_texts(path: Path, rows: int) -> None:
    """Write texts to a store, block by block."""
    with create_csr_store(path, VOCABULARY, "float32") as store:
        for number, start in enumerate(range(0, rows, TEXT_BLOCK)):
            block = unit_texts(min(TEXT_BLOCK, rows - start), number)
            store.append(block.X, y=block.y)


def of_texts(run: Run) -> dict[str, Any]:
    """Return the seconds and the peak memory of a fit of a store of texts, without compilation."""
    load_once.cache_clear()  # cached rows of other runs would count as memory
    rows = run.settings["rows"]
    store = written_once(run.folder, f"{TEXTS}-{rows}", partial(write_texts, rows=rows))
    model = estimator(FRONT_DOOR, TOPICS, random_state=run.seed)
    compiled = {"compile_seconds": compile_seconds(unit_texts(FEWEST_TEXTS).X, model)}
    measures = compiled | timed(model, store)
    return of_store(store, model.labels_) | measures | {"taken": model.candidate_}


def of_memory(run: Run) -> dict[str, Any]:
    """Return the peak memory of ``mmcnb fit`` of two clusters within a limit.

    A fit without a limit fills the compile cache.
    """
    store = store_once(run.folder, run.dataset, **run.settings["how"])
    two = "--n-clusters", "2"
    fit_store(store, run.seed, *two)
    return fit_store(store, run.seed, *two, "--memory-limit", LIMIT)


def beside_kmeans(run: Run) -> dict[str, Any]:
    """Return median seconds of the default and of k-means with ten starts.

    The two methods take turns, and the first turn, which compiles, is not counted.
    """
    X = run.data.X
    models = {FRONT_DOOR: estimator(FRONT_DOOR, 2, random_state=run.seed)}
    models[KMEANS] = estimator(KMEANS, 2, n_init=10, random_state=run.seed)
    seconds = turns(
        {name: partial(fit, model, X) for name, model in models.items()},
        run.settings["fits"],
    )
    ratio = seconds[FRONT_DOOR] / seconds[KMEANS]
    return facts(X) | {
        "seconds": seconds[FRONT_DOOR],
        "kmeans_seconds": seconds[KMEANS],
        "ratio": ratio,
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return a table of each kind of cost, and the goals."""
    frame = frame[frame["status"] == OK].set_index("dataset")
    of = {
        name: part.dropna(axis="columns", how="all")
        for name, part in frame.groupby("method")
    }
    found = dict[str, pd.DataFrame]()
    goals = []
    if CANDIDATES in of:
        found["costs-candidates"] = of[CANDIDATES][
            ["n", "d", *STAGES, "taken", "left_out"]
        ]
        goals += goals_of(
            of[CANDIDATES]["choice_seconds"],
            MOST_SECONDS,
            "{}: candidates and choice",
            "s",
        )
    if TEXT in of:
        rate = 1e6 * of[TEXT]["seconds"] / of[TEXT]["n"]
        columns = [
            "n",
            "d",
            "seconds",
            "microseconds a row",
            "peak_mib",
            "ari",
            "taken",
        ]
        found["costs-texts"] = of[TEXT].assign(**{"microseconds a row": rate})[columns]
    if MEMORY in of:
        found["costs-memory"] = of[MEMORY][
            ["n", "d", "peak_mib", "seconds", "label_seconds", "ari"]
        ]
        goals += goals_of(
            of[MEMORY]["peak_mib"],
            LIMIT_MIB,
            f"{{}}: peak memory within {LIMIT}",
            "MiB",
        )
    if TIME in of:
        found["costs-time"] = of[TIME][["n", "d", "seconds", "kmeans_seconds", "ratio"]]
        goals += goals_of(of[TIME]["ratio"], MOST_TIME, "{}: time", "of k-means")
    return Result(
        {f"choice-{name}": table.reset_index() for name, table in found.items()}, goals
    )
