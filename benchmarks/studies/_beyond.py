"""Part ``beyond`` of ``scale``: the estimated cost of fits on more machines than are available.

The constants are bytes and CPU seconds, which depend little on other work on the
machine. The study measures the cost of a group of empty rows in Dask tasks of one and
of eight groups; of opening a store, per chunk; of writing labels and reading them back;
and of the default, with labels and a checkpoint, on half circles in 128 columns, with
two numbers of rows and one worker. A model adds these costs for more rows and workers.
It assumes one core for each worker, one for client and scheduler together, and the rate
of `STORAGE`. The seconds of client and scheduler are a lower bound, because they are
measured with empty groups.

The confirmation fits rows that the workers generate. The constants come from two small
fits with one worker, and the model predicts a larger fit with several processes.
"""

import logging
import math
import shutil
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import psutil

from benchmarks.methods import FRONT_DOOR, estimator
from benchmarks.protocol import fit, peak_mib, reset_peak, written_once
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result
from mmcnb import ClusterWarning, open_samples
from mmcnb.datasets import make_block, write_synthetic
from mmcnb.engine.dask import GROUPS_AHEAD, DaskEngine, groups_of_task
from mmcnb.engine.session import History
from mmcnb.samples import GROUP_ROWS, Samples
from mmcnb.stores import LabelsWriter, create_dense_store

COLUMNS = 128
ROW_BYTES = 4 * COLUMNS
CHUNK_ROWS = 8192  # of a store with rows of this width
CLUSTERS = 10
CONFIRMED_COLUMNS = 8
EXAMINED = 10**6  # largest number of rows that the second pass of the default examines
FAR_ROWS = 4000  # largest number of rows that this pass returns from a group
FAR_ROW_BYTES = 16  # the row number and the distance
STORAGE = 50e9  # bytes per second to all workers together; an assumption
LARGE = tuple(product((10**9, 10**10), (10, 100, 1000)))
REPEATS = 5
MOST_OFF = 0.2  # largest error, relative to the measured figure
LEAST_GAIN = 0.05  # smallest relative gain in the seconds of a group by larger tasks
TASKS = "tasks"
OPENING = "opening"
LABELS = "labels"
FIT = "fit"
CONFIRM = "confirm"
MIB = 2**20


class GeneratedRows(Samples):
    """Rows of half circles that each process generates for itself, block by block.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.

    Examples
    --------
    >>> from benchmarks.studies._beyond import GeneratedRows
    >>> rows = GeneratedRows(10**10, 8)
    >>> bool((rows.block(10**9, 10**9 + 5)[2] == rows.gather([10**9 + 2])[0]).all())
    True
    """

    is_reopenable = True
    checksummed = True

    def __init__(self, n_samples: int, n_features: int) -> None:
        self._describe("generated rows", (n_samples, n_features), np.dtype("float32"))

    def block(self, start: int, stop: int) -> np.ndarray:
        """Generate rows of a range."""
        stop = min(stop, self.n_samples)
        return make_block("arcs", start, stop, self.n_features, n_clusters=CLUSTERS)[0]

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Generate single rows."""
        return np.concatenate([self.block(int(row), int(row) + 1) for row in rows])


class EmptyRows(GeneratedRows):
    """Rows of zeros in one column, which take almost no time.

    Examples
    --------
    >>> from benchmarks.studies._beyond import EmptyRows
    >>> EmptyRows(10, 1).block(8, 12).shape
    (2, 1)
    """

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return zeros for a range of rows."""
        return np.zeros((min(stop, self.n_samples) - start, 1), np.float32)


class EmptyPass:
    """A pass that computes nothing."""

    def block(self, rows: Any, start: int, stop: int) -> int:
        """Return a total without reading the rows."""
        return 0

    def combine(self, total: int, other: int) -> int:
        """Return the total of two ranges."""
        return 0


# -- runs ------------------------------------------------------------------------------


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the fits of two sizes, the confirmation, and the constants."""
    # At most the number of rows that the second pass examines.
    few, many = options.pick((3 * 10**5, 10**6), (2 * 10**5, 6 * 10**5), (1000, 2000))
    yield Run(FIT, FRONT_DOOR, 0, settings={"sizes": [few, many], "workers": 1})
    yield Run(CONFIRM, FRONT_DOOR, 0, settings={"sizes": [few, many], "workers": 1})
    sizes = [options.rows or options.pick(10**7, 2 * 10**6, 3000)]
    settings = {"sizes": sizes, "workers": options.pick(8, 8, 2)}
    yield Run(CONFIRM, FRONT_DOOR, 1, settings=settings)
    groups = options.pick(10**5, 2 * 10**4, 80)
    for size in (1, GROUPS_AHEAD):
        settings = {"groups": groups}
        yield Run(TASKS, "Dask", 0, parameters={"size": size}, settings=settings)
    chunks = options.pick(10**5, 2 * 10**4, 100)
    yield Run(OPENING, "store", 0, settings={"chunks": chunks})
    groups = options.pick(500, 100, 2)
    yield Run(LABELS, "store", 0, settings={"groups": groups})


def compute(run: Run) -> dict[str, Any]:
    """Measure constants or fits."""
    measures = {TASKS: tasks, OPENING: opening, LABELS: labels}
    return measures.get(run.dataset, fits)(run)


def cpu_seconds(function: Callable[[], Any]) -> list[float]:
    """Return the CPU seconds of this process in several calls of a function."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        function()
        seconds.append(time.process_time() - began)
    return seconds


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """Start a local cluster of processes of one thread each, and yield its client."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            # The workers share the memory of this machine with other programs.
            memory_limit=psutil.virtual_memory().total,
        ) as machines,
        Client(machines, set_as_default=False) as client,
    ):
        yield client


def tasks(run: Run) -> dict[str, Any]:
    """Send empty groups, several per task, and measure the CPU seconds of client and scheduler."""
    groups = run.settings["groups"] // REPEATS
    size = run.parameters["size"]
    rows = EmptyRows(groups * GROUP_ROWS, 1)
    with (
        cluster_of(1) as client,
        DaskEngine(client) as engine,
        patch("mmcnb.engine.dask.groups_of_task", return_value=size),
    ):

        def send() -> int:
            return sum(engine.groups(EmptyPass(), rows))

        send()
        seconds = cpu_seconds(send)
    return {
        "sent_groups": groups * REPEATS,
        "group_seconds": statistics.median(seconds) / groups,
        "least_seconds": min(seconds) / groups,
        "most_seconds": max(seconds) / groups,
    }


def opening(run: Run) -> dict[str, Any]:
    """Open a store of many small chunks; measure the seconds, the bytes of its chunk list, and memory."""
    chunks = run.settings["chunks"]
    path = Path(run.folder) / "chunks.zarr"
    with create_dense_store(path, 1, "float32", chunk_rows=1, overwrite=True) as store:
        store.append(np.arange(chunks, dtype=np.float32)[:, None])
    process = psutil.Process()
    before = process.memory_info().rss
    samples = open_samples(path)
    memory = max(process.memory_info().rss - before, 0)
    del samples
    seconds = cpu_seconds(lambda: open_samples(path))
    record = (path / "zarr.json").stat().st_size
    shutil.rmtree(path)
    return {
        "open_seconds": statistics.median(seconds) / chunks,
        "open_bytes": memory / chunks,
        "record_bytes": record / chunks,
    }


def labels(run: Run) -> dict[str, Any]:
    """Write groups of labels, and read them back as the client does at the end of a fit."""
    groups = run.settings["groups"]
    path = Path(run.folder) / "labels.zarr"
    random = np.random.default_rng(0)
    group = random.integers(CLUSTERS, size=GROUP_ROWS).astype(np.int32)
    written = []
    read = []
    for _ in range(REPEATS):
        with LabelsWriter(path, groups * GROUP_ROWS, overwrite=True) as writer:
            sink = writer.sink()
            began = time.process_time()
            digests = [sink.write(n * GROUP_ROWS, group) for n in range(groups)]
            written.append(time.process_time() - began)
            began = time.process_time()
            writer.finish_chunks(digests)
            read.append(time.process_time() - began)
    size = bytes_of(path)
    shutil.rmtree(path)
    return {
        "write_seconds": statistics.median(written) / groups,
        "read_back_seconds": statistics.median(read) / groups,
        "label_bytes": size / groups,
    }


def bytes_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fits(run: Run) -> dict[str, Any]:
    """Fit rows of one or two sizes on a local cluster whose routines are compiled."""
    measures: dict[str, Any] = {}
    workers = run.settings["workers"]
    with cluster_of(workers) as client:
        for number, rows in enumerate(run.settings["sizes"]):
            samples: Samples = GeneratedRows(rows, CONFIRMED_COLUMNS)
            if run.dataset == FIT:
                samples = open_samples(store_of(run, rows))
            if number == 0:
                # Each worker gets a group, so that every worker loads the routines.
                most = min(rows, workers * GROUP_ROWS)
                warm_up = GeneratedRows(most, samples.n_features)
                fit(default(client), warm_up)
            measured = fit_and_watch(client, samples, Path(run.folder))
            names = {"rows": rows, "workers": workers} | measured
            measures |= {f"{name}, {number}": value for name, value in names.items()}
    return measures


def store_of(run: Run, rows: int) -> str:
    """Write half circles in 128 columns, unless the store exists."""

    def write(path: Path) -> None:
        write_synthetic("arcs", path, rows, COLUMNS, 0, n_clusters=CLUSTERS)

    return written_once(run.folder, f"arcs-{rows}", write)


def default(client: Any) -> Any:
    """Return the default estimator without a number of clusters."""
    model = estimator(FRONT_DOOR, CLUSTERS, random_state=0, n_jobs=1, engine=client)
    return model.set_params(n_clusters=None)


def fit_and_watch(client: Any, rows: Samples, folder: Path) -> dict[str, Any]:
    """Fit with labels; return the CPU seconds of each stage, tasks, bytes, and peak memory."""
    out = folder / "labels.zarr"
    journal = folder / "journal"
    for path in (out, journal):
        shutil.rmtree(path, ignore_errors=True)
    model = default(client)
    if not isinstance(rows, GeneratedRows):  # generated rows have no identity
        model.set_params(checkpoint=journal)
    reset_peak()
    client.run(reset_peak)
    before = sent_by_workers(client)
    with watched(client) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        model.fit_model(rows, out=out)
    return watch.seconds() | {
        "tasks": watch.tasks,
        "passes": watch.passes,
        "broadcast_bytes": watch.broadcast_bytes,
        "sent_bytes": sent_by_workers(client) - before,
        "journal_bytes": bytes_of(journal),
        "client_mib": peak_mib(),
        "worker_mib": max(client.run(peak_mib).values()),
    }


def sent_by_workers(client: Any) -> int:
    """Return the bytes that workers have sent, to the client and to each other."""

    def of_worker(dask_worker: Any) -> int:
        return int(dask_worker.transfer_outgoing_bytes_total)

    return sum(client.run(of_worker).values())


def cpu_of_process() -> float:
    """Return the CPU seconds of this process so far."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


class Mark(NamedTuple):
    """CPU seconds up to the end of a stage."""

    stage: str
    client: float
    workers: float


class Watch(logging.Handler):
    """Records the CPU seconds at the end of each stage, and counts passes and tasks.

    The end of a pass is a message of the logger; the end of another stage is a row of
    the fit's history.

    Parameters
    ----------
    client : distributed.Client
        Client of a local cluster.
    """

    def __init__(self, client: Any) -> None:
        super().__init__(logging.INFO)
        self.cluster = client
        self.passes = 0
        self.tasks = 0
        self.broadcast_bytes = 0
        self.marks: list[Mark] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record the end of a pass."""
        if record.getMessage().startswith(("read ", "swept ")):
            self.passes += 1
            self.mark(f"pass {self.passes}")

    def mark(self, stage: str) -> None:
        """Record the end of a stage."""
        workers = sum(self.cluster.run(cpu_of_process).values())
        self.marks.append(Mark(stage, time.process_time(), workers))

    def seconds(self) -> dict[str, float]:
        """Return the CPU seconds of client and workers, in total and for each stage."""
        first = self.marks[0]
        last = self.marks[-1]
        seconds = {
            "client_seconds": last.client - first.client,
            "worker_seconds": last.workers - first.workers,
        }
        for before, after in pairwise(self.marks):
            seconds[f"client {after.stage}"] = after.client - before.client
            seconds[f"workers {after.stage}"] = after.workers - before.workers
        return seconds


@contextmanager
def watched(client: Any) -> Iterator[Watch]:
    """Watch a fit in a ``with`` block."""
    from distributed.diagnostics.plugin import SchedulerPlugin

    watch = Watch(client)
    record = History.record
    send = DaskEngine.send

    class TaskCounter(SchedulerPlugin):
        def transition(
            self, key: Any, start: str, finish: str, *_: Any, **__: Any
        ) -> None:
            watch.tasks += finish == "memory" and str(key).startswith("mmcnb-group")

    def record_and_mark(history: History, row: dict[str, Any]) -> None:
        stage = row["stage"]
        record(history, row)
        watch.mark(stage)

    def count_and_send(engine: DaskEngine, data: bytes, name: str) -> Any:
        watch.broadcast_bytes += len(data)
        return send(engine, data, name)

    logger = logging.getLogger("mmcnb")
    level = logger.level
    scheduler = client.cluster.scheduler
    counter = TaskCounter()
    scheduler.add_plugin(counter, name="mmcnb-task-counter")
    logger.addHandler(watch)
    logger.setLevel(logging.INFO)
    watch.mark("start")
    try:
        with (
            patch.object(History, "record", record_and_mark),
            patch.object(DaskEngine, "send", count_and_send),
        ):
            yield watch
        watch.mark("end")
    finally:
        logger.removeHandler(watch)
        logger.setLevel(level)
        scheduler.remove_plugin(name="mmcnb-task-counter")


# -- the model -------------------------------------------------------------------------


def cost_model(rows: Any, costs: Any) -> tuple[float, float]:
    """Fit a fixed cost of at least 0, and a cost per row.

    Examples
    --------
    >>> from benchmarks.studies._beyond import cost_model
    >>> cost_model([1000, 10_000], [3.0, 12.0])
    (2.0, 0.001)
    """
    each = max((costs[-1] - costs[0]) / (rows[-1] - rows[0]), 0.0)
    return float(max(costs[0] - each * rows[0], 0.0)), float(each)


class Constants(NamedTuple):
    """Costs that do not depend on the method.

    ``group`` and ``task`` are CPU seconds of client and scheduler; other seconds are
    CPU seconds of the process that does the work.
    """

    group: float  # a group in a task, including its share of the call that sends it
    task: float  # a task
    open_seconds: float
    open_bytes: float
    record_bytes: float
    write_seconds: float
    read_back_seconds: float
    label_bytes: float

    def group_seconds(self, size: int) -> float:
        """Return the seconds per group for tasks of several groups.

        Examples
        --------
        >>> from benchmarks.studies._beyond import Constants
        >>> Constants(0.001, 0.004, 0, 0, 0, 0, 0, 0).group_seconds(8)
        0.0015
        """
        return self.group + self.task / size


class FitCosts(NamedTuple):
    """Costs of a fit: fixed costs, and pairs of a fixed cost and a cost per row.

    The cost of the client's search on a sample does not depend on the number of rows.
    The second pass examines a random sample, to find rows that are far from all nodes.
    """

    passes: int
    search: float  # CPU seconds
    workers: tuple[float, float]  # CPU seconds; the fixed cost is per worker
    examined: float  # CPU seconds of workers per row that the second pass examines
    sent: tuple[float, float]  # bytes
    broadcast: tuple[float, float]  # bytes to each worker, and per examined row
    client_mib: float
    worker_mib: float


def costs_of(measured: Mapping[str, Any], constants: Constants) -> FitCosts:
    """Return the costs of a fit, from measurements of two sizes with one worker."""
    rows = [measured["rows, 0"], measured["rows, 1"]]
    sending = measured["tasks, 1"] * constants.group_seconds(1)

    def parts(name: str) -> tuple[float, float]:
        costs = [measured.get(f"{name}, {number}", 0.0) for number in (0, 1)]
        return cost_model(rows, [0.0 if pd.isna(cost) else cost for cost in costs])

    # The third pass reads some of the rows, and the second pass also examines them.
    examined = max(parts("workers pass 2")[1] - parts("workers pass 3")[1], 0.0)
    fixed, each = parts("worker_seconds")
    return FitCosts(
        passes=int(measured["passes, 1"]),
        # A waiting client also uses CPU, so the difference between the two sizes is not
        # used as the cost of sending. The cost of empty groups is a lower bound.
        search=max(measured["client_seconds, 1"] - sending, 0.0),
        workers=(fixed, each - examined),
        examined=examined,
        sent=parts("sent_bytes"),
        broadcast=parts("broadcast_bytes"),
        client_mib=float(measured["client_mib, 1"]),
        worker_mib=float(measured["worker_mib, 1"]),
    )


def expected(
    costs: FitCosts, constants: Constants, rows: int, workers: int
) -> dict[str, float]:
    """Return the resources that a fit with labels needs.

    Parameters
    ----------
    costs : FitCosts
        Costs of the method, from fits with one group per task.
    constants : Constants
        Costs that do not depend on the method.
    rows, workers : int
        Rows, and workers of one thread each.

    Returns
    -------
    dict
        CPU seconds of the client with its scheduler and of all workers, tasks, bytes
        that workers send, and MiB of the client and of a worker.

    Examples
    --------
    >>> from benchmarks.studies._beyond import Constants, FitCosts, expected
    >>> costs = FitCosts(2, 2.0, (0.5, 6e-6), 0, (1e6, 0), (1e6, 0), 400, 300)
    >>> constants = Constants(0, 0.001, 0, 0, 0, 0, 0, 0)
    >>> needs = expected(costs, constants, 10**9, 100)
    >>> needs["tasks"], needs["worker_seconds"], needs["sent_bytes"]
    (15260, 6050.0, 116000000.0)
    """
    groups = math.ceil(rows / GROUP_ROWS)
    size = groups_of_task(groups, workers)
    sending = costs.passes * groups * constants.group_seconds(size)
    examined = min(rows, EXAMINED)
    # The small fits examine all rows, so they return the largest possible number of far
    # rows.
    of_group = max(costs.sent[1] * GROUP_ROWS - FAR_ROW_BYTES * FAR_ROWS, 0.0)
    return {
        "client_seconds": costs.search + sending,
        # Each worker opens the samples and loads the passes.
        "worker_seconds": (
            costs.workers[0] * workers
            + costs.workers[1] * rows
            + costs.examined * examined
        ),
        "tasks": costs.passes * math.ceil(groups / size),
        "sent_bytes": costs.sent[0]
        + of_group * groups
        + FAR_ROW_BYTES * min(FAR_ROWS * groups, examined)
        + (costs.broadcast[0] + costs.broadcast[1] * examined) * (workers - 1),
        "client_mib": costs.client_mib,
        "worker_mib": costs.worker_mib,
    }


def prediction(
    costs: FitCosts, constants: Constants, rows: int, workers: int
) -> dict[str, Any]:
    """Return counts, minutes and memory of a fit of a store, and the part that takes longest.

    Workers, storage, and the client with its scheduler work at the same time, so the
    passes take as long as the slowest of the three. The times of other stages are
    added.

    Examples
    --------
    >>> from benchmarks.studies._beyond import Constants, FitCosts, prediction
    >>> costs = FitCosts(2, 60.0, (0, 6e-6), 0, (1e6, 0), (1e6, 0), 400, 300)
    >>> constants = Constants(0, 0, 0, 0, 0, 0, 0, 0)
    >>> found = prediction(costs, constants, 10**9, 100)
    >>> found["longest"], found["minutes"]
    ('workers', 2.0)
    """
    groups = math.ceil(rows / GROUP_ROWS)
    chunks = math.ceil(rows / CHUNK_ROWS)
    needs = expected(costs, constants, rows, workers)
    together = {
        "workers": needs["worker_seconds"] / workers,
        "storage": costs.passes * rows * ROW_BYTES / STORAGE,
        "client, scheduler": needs["client_seconds"] - costs.search,
    }
    alone = {
        "search": costs.search,
        # The client opens the store first, and then all workers open it at the same
        # time.
        "opening": 2 * chunks * constants.open_seconds,
        "labels read back": groups * constants.read_back_seconds,
    }
    parts = together | alone
    seconds = max(together.values()) + sum(alone.values())
    record = chunks * constants.open_bytes / MIB
    return {
        "rows": rows,
        "workers": workers,
        "read, TB": costs.passes * rows * ROW_BYTES / 1e12,
        "groups a task": groups_of_task(groups, workers),
        "tasks": needs["tasks"],
        "from workers, GB": needs["sent_bytes"] / 1e9,
        "label files, GB": groups * constants.label_bytes / 1e9,
        "CPU of workers, h": needs["worker_seconds"] / 3600,
        **{f"{name}, min": value / 60 for name, value in parts.items()},
        "minutes": seconds / 60,
        "longest": max(parts, key=lambda name: parts[name]),
        "client, MiB": costs.client_mib + record,
        "worker, MiB": costs.worker_mib + record,
    }


# -- tables ----------------------------------------------------------------------------

CONSTANTS = {
    "group": ("a group in a task, client and scheduler", 1e6, "us of CPU"),
    "task": ("a task, client and scheduler", 1e6, "us of CPU"),
    "open_seconds": ("opening a store, a chunk", 1e6, "us of CPU"),
    "open_bytes": ("memory of an open store, a chunk", 1, "bytes"),
    "record_bytes": ("record of a store on disk, a chunk", 1, "bytes"),
    "write_seconds": ("65,536 labels, written", 1e6, "us of CPU"),
    "read_back_seconds": ("65,536 labels, read back by the client", 1e6, "us of CPU"),
    "label_bytes": ("65,536 labels, on disk", 1, "bytes"),
}
CONFIRMED = {
    "client_seconds": ("client and scheduler, CPU s", 1),
    "worker_seconds": ("workers, CPU s", 1),
    "tasks": ("tasks", 1),
    "sent_bytes": ("sent by workers, MB", 1e-6),
    "client_mib": ("client, peak MiB", 1),
    "worker_mib": ("largest worker, peak MiB", 1),
}


def constants_of(frame: pd.DataFrame) -> Constants:
    """Return the measured constants."""
    sizes = frame[frame["dataset"] == TASKS].set_index("size")["group_seconds"]
    task = (sizes[1] - sizes[GROUPS_AHEAD]) / (1 - 1 / GROUPS_AHEAD)
    measured = {"group": sizes[1] - task, "task": task}
    for part in (OPENING, LABELS):
        row = frame[frame["dataset"] == part].iloc[0]
        measured |= {name: row[name] for name in CONSTANTS if pd.notna(row.get(name))}
    return Constants(**{name: float(value) for name, value in measured.items()})


def tables(frame: pd.DataFrame) -> Result:
    """Return the constants, the stages of the fit, the predictions for larger fits, and the confirmation."""
    frame = frame[frame["status"] == "ok"]
    constants = constants_of(frame)
    of_tasks = frame[frame["dataset"] == TASKS]
    names = ["size", "sent_groups", "group_seconds", "least_seconds", "most_seconds"]
    measured = frame[frame["dataset"] == FIT].iloc[0].to_dict()
    costs = costs_of(measured, constants)
    confirmed = confirmation(frame[frame["dataset"] == CONFIRM], constants)
    gain = 1 - constants.group_seconds(GROUPS_AHEAD) / constants.group_seconds(1)
    goals = [
        Goal("beyond: gain of eight groups a task", gain, LEAST_GAIN, at_least=True),
        *(
            Goal(f"beyond: {row['figure']}, model off by", row["off"], MOST_OFF)
            for row in confirmed.to_dict("records")
        ),
    ]
    units = [
        {"constant": text, "value": scale * getattr(constants, name), "unit": unit}
        for name, (text, scale, unit) in CONSTANTS.items()
    ]
    large = [prediction(costs, constants, *sizes) for sizes in LARGE]
    return Result(
        {
            "scale-beyond-tasks": of_tasks[names],
            "scale-beyond-constants": pd.DataFrame(units),
            "scale-beyond-stages": stages(measured),
            "scale-beyond": pd.DataFrame(large),
            "scale-beyond-confirmed": confirmed,
        },
        goals,
    )


def stages(measured: Mapping[str, Any]) -> pd.DataFrame:
    """Return CPU seconds of each stage of the fits with one worker."""
    names = [
        name.removesuffix(", 1").removeprefix("workers ")
        for name, value in measured.items()
        if name.startswith("workers ") and name.endswith(", 1") and pd.notna(value)
    ]
    found = [
        {"rows": measured[f"rows, {number}"], "stage up to": name}
        | {who: measured[f"{who} {name}, {number}"] for who in ("client", "workers")}
        for number, name in product((0, 1), names)
    ]
    for number in (0, 1):
        found.append(
            {
                "rows": measured[f"rows, {number}"],
                "stage up to": "all",
                "client": measured[f"client_seconds, {number}"],
                "workers": measured[f"worker_seconds, {number}"],
                "journal, MiB": measured[f"journal_bytes, {number}"] / MIB,
                "passes to a worker, MiB": (
                    measured[f"broadcast_bytes, {number}"] / MIB
                ),
            }
        )
    return pd.DataFrame(found)


def confirmation(frame: pd.DataFrame, constants: Constants) -> pd.DataFrame:
    """Return measured and expected figures of the fit with several processes."""
    measured = {int(row["seed"]): row for row in frame.to_dict("records")}
    larger = measured[1]
    rows = int(larger["rows, 0"])
    workers = int(larger["workers, 0"])
    needs = expected(costs_of(measured[0], constants), constants, rows, workers)
    return pd.DataFrame(
        [
            {
                "figure": text,
                "rows": rows,
                "processes": workers,
                "measured": scale * larger[f"{name}, 0"],
                "expected": scale * needs[name],
                "off": abs(needs[name] / larger[f"{name}, 0"] - 1),
            }
            for name, (text, scale) in CONFIRMED.items()
        ]
    )
