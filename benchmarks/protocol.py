"""Measure a run: its data, warm-up, seconds, memory, and quality."""

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import psutil
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

import data_loaders
import mmcnb
from mmcnb.metrics import (
    adjusted_rand_index,
    balanced_clustering_error,
    clustering_accuracy,
)
from mmcnb.stores import create_csr_store, create_dense_store, open_class_labels

# Without labels, as a user fits; or as in the paper, where the classes may select
# parameters.
LABEL_FREE = "label-free"
PAPER = "paper"
ERROR = "balanced_error"
MIB = 2**20
UCI = (
    "echocardiogram",
    "spectf",
    "heart",
    "haberman",
    "liver",
    "ionosphere",
    "house-votes",
    "clean1",
    "breast",
    "german",
    "waveform-1v2",
)
MNIST_PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9")
# sigma in units of the root mean squared distance between two rows: the five values of
# the paper.
PAPER_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
BALANCES = (0.03, 0.1, 0.3, 0.4)  # bounds for two clusters, in the papers' grids
WARM_UP_ROWS = 400
POLL_SECONDS = 0.02
SCAN_THREADS = (1, 2, 4, 8)
Score = Callable[[Any, Any], dict[str, float]]  # function of classes and labels


# -- data ------------------------------------------------------------------------------


class Data(NamedTuple):
    """A data set in memory: its name, its rows, and its classes, which are used only to measure."""

    name: str
    X: Any
    y: np.ndarray


class NoData(mmcnb.InputError):
    """Error for a data set that cannot be found or downloaded, or is damaged."""


def size_of(name: str) -> int | None:
    """Return the number of rows of a data set; None for a synthetic one of any size."""
    for fact in data_loaders.registry():
        if fact["name"] == name:
            return fact["n_samples"]
    return None


def rows_within(name: str, *bounds: int | None) -> int | None:
    """Return the number of rows to draw from a data set within bounds; None for all rows."""
    known = [bound for bound in bounds if bound is not None]
    return min([*known, size_of(name) or known[0]]) if known else None


def load_rows(name: str, rows: int | None = None) -> Data:
    """Load a data set or a sample of its rows; raise `NoData` if it is missing."""
    try:
        return Data(name, *data_loaders.load(name, rows=rows_within(name, rows)))
    except mmcnb.InputError as error:
        raise NoData(str(error)) from error


def draw(
    data: Data, classes: Sequence[int] = (), rows: int | None = None, skip: int = 0
) -> Data:
    """Draw rows of some or all classes with a fixed seed, in their order."""
    candidates = np.arange(len(data.y))
    if classes:
        candidates = np.flatnonzero(np.isin(data.y, classes))
    drawn = np.random.RandomState(0).permutation(candidates)[skip:][:rows]
    chosen = np.sort(drawn)
    return Data(data.name, data.X[chosen], data.y[chosen])


# Each process keeps the last data set, so its rows must not be changed.
load_once = lru_cache(maxsize=1)(load_rows)


def store_once(folder: str, name: str, **how: Any) -> str:
    """Return the path of a Zarr store of a data set with given rows, features and seed."""
    words = "-".join(str(value) for value in how.values())
    return written_once(
        folder, f"{name}-{words}", lambda path: data_loaders.write(name, path, **how)
    )


def written_once(folder: str, name: str, write: Callable[[Path], object]) -> str:
    """Return the path of a Zarr store to write; each process keeps only the last store."""
    path = Path(folder) / str(os.getpid()) / f"{name}.zarr"
    if not path.exists():
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir(parents=True)
        try:
            write(path)
        except mmcnb.InputError as error:
            raise NoData(str(error)) from error
    return str(path)


def write_rows(data: Data, path: Path) -> None:
    """Write a data set in memory to a Zarr store."""
    create = create_csr_store if issparse(data.X) else create_dense_store
    with create(path, data.X.shape[1], data.X.dtype) as writer:
        writer.append(data.X, y=data.y)


def blocks_of(store: str, rows: int) -> Iterator[Any]:
    """Yield the rows of a Zarr store in blocks of a given size."""
    samples = mmcnb.open_samples(store)
    for start in range(0, samples.n_samples, rows):
        yield samples.block(start, min(start + rows, samples.n_samples))


def facts(X: Any) -> dict[str, Any]:
    """Return ``n``, ``d`` and ``digest`` of rows in memory or in a store.

    Examples
    --------
    >>> from benchmarks.protocol import facts, load_once
    >>> found = facts(load_once("rings", 50).X)
    >>> found["n"], found["d"], len(found["digest"])
    (50, 2, 32)
    """
    samples = mmcnb.open_samples(X)
    return {"n": samples.n_samples, "d": samples.n_features, "digest": samples.digest}


def mean_squared_distance(X: Any) -> float:
    """Return the mean squared distance between two rows, which is gamma0 in the papers.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.protocol import mean_squared_distance
    >>> mean_squared_distance(np.array([[0.0], [2.0]]))
    2.0
    """
    values = X.data if hasattr(X, "indptr") else X.ravel()
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    squares = np.einsum("i,i->", values, values, dtype=np.float64)
    return float(2 * (squares / X.shape[0] - mean @ mean))


def gamma_of(width: float, gamma0: float) -> float:
    """Return gamma = 1/(2 sigma²) for sigma = width · sqrt(gamma0)."""
    return 1 / (2 * width**2 * gamma0)


def with_gamma(given: Mapping[str, Any], X: Any) -> dict[str, Any]:
    """Return the parameters with the relative ``width``, if any, replaced by gamma."""
    if "width" not in given:
        return dict(given)
    others = {name: value for name, value in given.items() if name != "width"}
    return others | {"gamma": gamma_of(given["width"], mean_squared_distance(X))}


def known_balance(y: np.ndarray) -> float:
    """Return the smallest of the papers' bounds of abs(sum(y))/n that two classes satisfy.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.protocol import known_balance
    >>> known_balance(np.array([0] * 5 + [1] * 4))
    0.3
    """
    _, counts = np.unique(y, return_counts=True)
    imbalance = np.ptp(counts) / len(y)
    for bound in BALANCES:
        if bound >= imbalance:
            return bound
    return BALANCES[-1]


# -- quality, seconds and memory -------------------------------------------------------


def clustering(y: Any, labels: Any) -> dict[str, float]:
    """Return the balanced error (of two classes), the error and the adjusted Rand index, as fractions.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.protocol import clustering
    >>> clustering(np.array([0, 0, 1, 1]), [1, 1, 0, 0])
    {'balanced_error': 0.0, 'error': 0.0, 'ari': 1.0}
    """
    scores = {}
    if np.unique(y).size == 2:
        scores[ERROR] = float(balanced_clustering_error(y, labels))
    scores["error"] = 1 - float(clustering_accuracy(y, labels))
    scores["ari"] = adjusted_rand_index(y, labels)
    return scores


def of_store(store: str, labels: Any, score: Score = clustering) -> dict[str, Any]:
    """Return facts of a Zarr store, and scores of the labels of its rows."""
    return facts(store) | score(np.asarray(open_class_labels(store)), labels)


def fit(estimator: Any, X: Any, **options: Any) -> Any:
    """Fit without the warnings about clusters, because the tables show how good the clusters are."""
    with warnings.catch_warnings():
        for category in (mmcnb.ClusterWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        return estimator.fit(X, **options)


def timed(estimator: Any, X: Any) -> dict[str, float]:
    """Fit, and return the seconds and the peak memory of the fit."""
    reset_peak()
    started = time.perf_counter()
    fit(estimator, X)
    return {"seconds": time.perf_counter() - started, "peak_mib": peak_mib()}


def scored(data: Data, estimator: Any, score: Score = clustering) -> dict[str, Any]:
    """Fit to a data set; return its facts, measures of the fit, and scores."""
    compiled = {"compile_seconds": compile_seconds(data.X, estimator)}
    measures = facts(data.X) | compiled | timed(estimator, data.X)
    return measures | score(data.y, estimator.labels_)


_compiled: dict[tuple[Any, ...], float] = {}


def compile_seconds(X: Any, estimator: Any) -> float:
    """Return the seconds of an estimator's first fit of such rows; 0 for a peer.

    The first fit compiles the routines that later fits use, whatever their other
    parameters.
    """
    if not type(estimator).__module__.startswith("mmcnb."):
        return 0.0
    given = estimator.get_params()
    kind = (
        issparse(X),
        str(X.dtype),
        type(estimator),
        given.get("n_clusters"),
        given.get("kernel"),
    )
    if kind not in _compiled:
        rows = X[: min(WARM_UP_ROWS, X.shape[0])]
        # A sample smaller than the data, so that the passes over all rows are compiled
        # as well.
        half = max(2, rows.shape[0] // 2)
        few = {"sample_size": half, "n_nodes": half, "eta": 1.0}
        few |= {name: given.get(name) for name in ("n_clusters", "kernel")}
        first = type(estimator)(
            **{name: few[name] for name in few.keys() & given.keys()}, random_state=0
        )
        started = time.perf_counter()
        fit(first, rows)
        _compiled[kind] = time.perf_counter() - started
    return _compiled[kind]


def turns(
    methods: Mapping[str, Callable[[], object]], repeats: int
) -> dict[str, float]:
    """Return median seconds of methods that take turns; the first turn is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for turn in range(repeats + 1):
        for name, method in methods.items():
            started = time.perf_counter()
            method()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def bare_scans(store: str) -> dict[str, Callable[[], object]]:
    """Return a bare scan of a store for each number of threads."""
    return {
        f"bare scan, {threads} threads": partial(_bare_scan, store, threads)
        for threads in SCAN_THREADS
    }


def best_bare_scan(store: str, repeats: int) -> float:
    """Return the median seconds of a bare scan of a store with the best number of threads."""
    return min(turns(bare_scans(store), repeats).values())


def _bare_scan(store: str, threads: int) -> None:
    """Read and decode every chunk of a dense store once, and discard it."""
    import zarr

    array = zarr.open_group(store, mode="r")["X"]
    assert isinstance(array, zarr.Array)
    step = (array.shards or array.chunks)[0]

    def read(start: int) -> None:
        # The chunk is not kept, because the rows may not fit in memory.
        array[start : start + step]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, range(0, array.shape[0], step)))


def reset_peak() -> None:
    """Reset the peak of resident memory, if the system supports it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mib() -> float:
    """Return the peak of resident memory since `reset_peak` in MiB; NaN if unknown."""
    process = psutil.Process()
    peak = _linux_peak(process)
    if not peak:
        peak = getattr(process.memory_info(), "peak_wset", float("nan"))
    return peak / MIB


def _high_water(process: psutil.Process) -> float:
    """Return the peak resident bytes of a process, or else its current bytes; 0 if it has ended."""
    try:
        now = process.memory_info()
        return _linux_peak(process) or getattr(now, "peak_wset", now.rss)
    except (OSError, psutil.Error):
        return 0


def _linux_peak(process: psutil.Process) -> float:
    """Return the peak resident bytes that Linux reports; 0 without this report."""
    status = Path(f"/proc/{process.pid}/status")
    try:
        text = status.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    return 0


# -- processes -------------------------------------------------------------------------


def run_and_watch(
    command: list[str], environment: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], int]:
    """Run a command that prints JSON, and watch the memory of its processes.

    Variables of ``environment`` are added to those of this process.

    Returns
    -------
    report : dict
        The printed report.
    peak : int
        Largest sum of the peak resident bytes of the command's process and its
        descendants. If the system does not record peaks, the bytes at each poll are
        used instead.
    """
    peak = 0
    how: dict[str, Any] = {"env": os.environ | dict(environment or {}), "text": True}
    # A pipe that nobody reads would block a process with a long report.
    with (
        TemporaryFile("w+") as out,
        subprocess.Popen(command, stdout=out, **how) as process,
    ):
        while process.poll() is None:
            peak = max(peak, _tree_peak(process.pid))
            time.sleep(POLL_SECONDS)
        out.seek(0)
        printed = out.read()
    if process.returncode != 0:
        raise mmcnb.InputError(
            f'"{" ".join(command[2:5])}" ended with code {process.returncode}; '
            "see above."
        )
    return json.loads(printed), peak


def _tree_peak(pid: int) -> int:
    try:
        root = psutil.Process(pid)
        return int(sum(map(_high_water, [root, *root.children(recursive=True)])))
    except (OSError, psutil.Error):  # the process has ended
        return 0


def fit_store(
    store: str, seed: int, *words: object, score: Score = clustering
) -> dict[str, Any]:
    """Run ``mmcnb fit`` on a store, in a process that is watched.

    Parameters
    ----------
    store : str
        Zarr store.
    seed : int
        Seed of the fit. *words : object Further options of the command, such as
        ``"--memory-limit", "1GiB"``.
    score : callable, default=clustering
        Function of classes and labels that returns scores.

    Returns
    -------
    dict
        The result of `of_store`, seconds of the fit and of labelling, peak memory,
        passes, and, if the method has them, reads, sweeps, gap and the weights of
        kernels.
    """
    import zarr

    path = Path(store).with_suffix(f".{seed}.model")
    labels = Path(store).with_suffix(f".{seed}.labels.zarr")
    options = [
        "--model",
        path,
        "--labels",
        labels,
        "--random-state",
        seed,
        *words,
        "--overwrite",
        "--json",
    ]
    report, polled = run_and_watch(
        [sys.executable, "-m", "mmcnb", "fit", store, *map(str, options)]
    )
    model = mmcnb.load(path)
    measures = {
        "seconds": report["fit_seconds"],
        "label_seconds": report["labels_seconds"],
        "peak_mib": max(report["peak_memory_bytes"], polled) / MIB,
        "passes": report["passes"],
    }
    measures |= sweeps_of(model)
    measures |= {"gap": report["gap"]} if report["gap"] is not None else {}
    measures |= (
        {"weights": weights_of(model)} if hasattr(model, "kernel_weights_") else {}
    )
    return of_store(store, zarr.open_array(str(labels), mode="r")[:], score) | measures


def sweeps_of(model: Any) -> dict[str, int]:
    """Return how many times a fit read and swept its rows; an empty dict if it has no sweeps."""
    last = model.history_.tail(1).to_dict("records")
    return {name: int(last[0][name]) for name in ("reads", "sweeps")} if last else {}


def weights_of(model: Any) -> str:
    """Return the weights of several kernels by name; "" for one kernel."""
    names = model.kernel_names_
    if len(names) == 1:
        return ""
    pairs = zip(names, model.kernel_weights_, strict=True)
    return "; ".join(f"{name}: {weight:.2f}" for name, weight in pairs)
