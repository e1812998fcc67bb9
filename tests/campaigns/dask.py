"""Workers of a Dask cluster are killed, halted, restarted or lost while a fit runs there.

Promised: a fit on a cluster ends with the bits of the same fit in threads, or with one
sentence, within a time-out. It is never wrong and never hangs, whatever becomes of
workers and scheduler, also where fits share a client. Workers of other versions, and
workers that cannot open the rows, are told in a sentence.

A try starts a fit in a thread, waits for a moment of it, and disturbs the cluster.
"""

import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TRIES = 60
CI_TRIES = 2
SECONDS = 120

PATIENCE = (
    12.0  # seconds that a fit waits for workers to come back, instead of a minute
)
# a worker without a heartbeat is lost to the scheduler, instead of after five minutes
LOST_AFTER = "3s"
LONGEST = 60.0  # seconds of a try until a fit must have ended
# of rounds over all kinds, in turn: with 0 Dask cannot make lost data again
GRAPH_BYTES = (
    4 * 2**20,
    0,
)
PARAMETERS = {
    "gamma": 2.0,
    "n_landmarks": 8,
    "n_init": 1,
    "sample_size": 150,
    "random_state": 0,
    "n_jobs": 1,
}
SETTINGS = {
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.worker-ttl": LOST_AFTER,
    "distributed.comm.timeouts.connect": "5s",
}


@cache
def rows() -> Path:
    """A store of several groups of rows, which goes with this process."""
    from mmcnb.datasets import write_synthetic

    _folders.append(tempfile.TemporaryDirectory(prefix="campaign-dask-"))
    path = Path(_folders[0].name, "rows.zarr")
    write_synthetic("moons", path, 300_000, 2, random_state=1)
    return path


_folders: list[tempfile.TemporaryDirectory[str]] = []
_clusters: list[Any] = []  # the cluster that tries share, and its client


def fit(store: Any, engine: Any = None) -> bytes:
    """The bits of a fit."""
    from mmcnb import ClusterWarning, SparseKernelMMC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)
        model = SparseKernelMMC(**PARAMETERS, engine=engine).fit(store)
    arrays = model.model_.arrays()
    return (
        b"".join(arrays[name].tobytes() for name in sorted(arrays))
        + model.labels_.tobytes()
    )


@cache
def expected() -> bytes:
    """The bits of the fit in threads."""
    return fit(str(rows()))


def start_cluster() -> tuple[Any, Any]:
    """A cluster of two worker processes, and its client."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set(SETTINGS)
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        worker_dashboard_address=None,
        silence_logs=50,
    )
    return cluster, Client(cluster, set_as_default=False)


def shared_cluster() -> tuple[Any, Any]:
    """The cluster of this process with both workers, started anew where a try has broken it."""
    if _clusters:
        try:
            _clusters[1].wait_for_workers(2, timeout=20)
            return _clusters[0], _clusters[1]
        except (TimeoutError, OSError):
            close_cluster()
    _clusters[:] = start_cluster()
    return _clusters[0], _clusters[1]


def close_cluster() -> None:
    """End the shared cluster."""
    for one in reversed(_clusters):
        one.close(timeout=10)
    _clusters.clear()


class Cluster:
    """What a disturbance may do to the workers of a client."""

    def __init__(self, cluster: Any, client: Any, draw: np.random.Generator) -> None:
        self.cluster = cluster
        self.client = client
        self.draw = draw
        self.processes = self._running()

    def _running(self) -> list[int]:
        """The worker processes that run now."""
        return [worker.pid for worker in self.cluster.workers.values() if worker.pid]

    def signal(self, name: str, count: int = 1) -> None:
        """Send a signal to some workers."""
        for process in self.draw.permutation(self.processes)[:count]:
            with suppress(ProcessLookupError):
                os.kill(int(process), getattr(signal, f"SIG{name}"))

    def kill_again(self) -> None:
        """Kill workers, and those that nannies start in their place."""
        for _ in range(3):
            self.signal("KILL")
            time.sleep(self.draw.uniform(0.2, 2))
            self.processes = self._running()

    def halt(self) -> None:
        """Halt a worker for a while."""
        self.signal("STOP")
        time.sleep(self.draw.uniform(0.2, 2))
        self.signal_all("CONT")

    def signal_all(self, name: str) -> None:
        """Send a signal to all workers."""
        self.signal(name, len(self.processes))


DISTURBANCES: dict[str, Callable[[Cluster], Any]] = {
    "one killed": lambda cluster: cluster.signal("KILL"),
    "both killed": lambda cluster: cluster.signal_all("KILL"),
    "killed again and again": Cluster.kill_again,
    "one halted": Cluster.halt,
    "one halted for good": lambda cluster: cluster.signal("STOP"),
    "restarted": lambda cluster: cluster.client.restart(timeout=30),
    "all gone": lambda cluster: cluster.cluster.scale(0),
    "scheduler closed": lambda cluster: cluster.cluster.close(timeout=10),
    "client closed": lambda cluster: cluster.client.close(timeout=10),
    "rows are not there": lambda cluster: None,  # these three are made before the fit
    "another version": lambda cluster: None,
    "two fits at once": lambda cluster: None,
    "two fits at once, one killed": lambda cluster: cluster.signal("KILL"),
}
KINDS = tuple(DISTURBANCES)
ENDS_THE_CLUSTER = {
    "one halted for good",
    "all gone",
    "scheduler closed",
    "client closed",
    "another version",
}
MUST_REFUSE = {"rows are not there", "another version"}
MUST_END = {
    "one killed",
    "one halted",
    "restarted",
    "two fits at once",
    "two fits at once, one killed",
}


def pretend(name: str) -> None:
    """Let a worker have another version of a library."""
    import mmcnb
    from mmcnb.engine import checkpoint

    if name == "mmcnb":
        mmcnb.__version__ = "0.1.0"
    else:
        known = checkpoint.version
        checkpoint.version = lambda asked: "0.1.0" if asked == name else known(asked)


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Fit on a cluster, disturb it meanwhile, and compare with the fit in threads."""
    from mmcnb.engine import dask as engine

    engine.PATIENCE_SECONDS = PATIENCE
    engine.GRAPH_BYTES = GRAPH_BYTES[seed // len(KINDS) % 2]
    draw = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    bits = expected()
    store = str(rows())
    seconds = usual_seconds()
    cluster = Cluster(*shared_cluster(), draw)
    if kind == "another version":
        cluster.client.run(pretend, str(draw.choice(["mmcnb", "numba", "numpy"])))
    if kind == "rows are not there":
        store = moved_rows(folder)
    answers: list[Any] = []
    fits = [
        threading.Thread(
            target=answer_of, args=(answers, store, cluster.client), daemon=True
        )
        for _ in range(2 if "two" in kind else 1)
    ]
    began = time.monotonic()
    for thread in fits:
        thread.start()
    delay = draw.uniform(0, seconds)
    time.sleep(delay)
    try:
        DISTURBANCES[kind](cluster)
        for thread in fits:
            thread.join(max(0.0, began + LONGEST - time.monotonic()))
            assert not thread.is_alive(), (
                f"{kind}: a fit still runs after {LONGEST:.0f} s"
            )
    finally:
        cluster.signal_all("CONT")
        if kind in ENDS_THE_CLUSTER:
            close_cluster()
    judged = sorted({judge(kind, answer, bits) for answer in answers})
    return {"answer": " and ".join(judged), "kind": kind, "delay": round(delay, 3)}


def moved_rows(folder: Path) -> Any:
    """Samples that are open here, and that no worker can open."""
    from mmcnb import open_samples

    place = shutil.copytree(rows(), folder / "rows.zarr")
    samples = open_samples(str(place))
    place.rename(folder / "elsewhere.zarr")
    return samples


def answer_of(answers: list[Any], store: Any, client: Any) -> None:
    """Append the bits of a fit, or what it raised."""
    try:
        answers.append(fit(store, client))
    except BaseException as error:
        answers.append(error)


@cache
def usual_seconds() -> float:
    """How long a fit takes on the cluster that nothing disturbs."""
    seconds = []
    for _ in range(2):  # workers load mmcnb in the first
        began = time.monotonic()
        bits = fit(str(rows()), shared_cluster()[1])
        seconds.append(time.monotonic() - began)
        assert bits == expected(), "the bits of Dask are not those of threads"
    return min(seconds)


def judge(kind: str, answer: Any, bits: bytes) -> str:
    """Whether a fit gave the bits of threads, or one sentence where it may."""
    from mmcnb import InputError

    if not isinstance(answer, BaseException):
        assert answer == bits, f"{kind}: the answer differs from that of threads"
        assert kind not in MUST_REFUSE, f"{kind}: the fit went on"
        return "same"
    assert isinstance(answer, InputError), f"{kind}: {type(answer).__name__}: {answer}"
    assert "\n" not in str(answer), f"{kind}: {answer}"
    assert kind not in MUST_END, f"{kind}: {answer}"
    return "one sentence"
