"""Which engine runs the passes."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any, ClassVar

from mmcnb._config import LOCAL, check_engine, configured, is_client
from mmcnb.engine.dask import DaskEngine
from mmcnb.engine.run import Engine, ThreadEngine
from mmcnb.errors import InputError

CONNECT_SECONDS = 5


def open_engine(
    engine: Any = None, n_jobs: int | None = None, show_progress: bool | None = False
) -> AbstractContextManager[Engine]:
    """The engine that was asked for, to be used in a ``with`` block.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        None is what `mmcnb.config` says, and otherwise threads of this process; a client, or the
        address of its scheduler, is a Dask cluster; ``"local:4"`` is a cluster of four worker
        processes on this machine, which ends with the block.
    n_jobs : int or None, default=None
        Threads of this process.
    show_progress : bool or None, default=False
        None shows a bar where standard error is a terminal.

    Returns
    -------
    context manager of Engine

    Raises
    ------
    InputError
        If ``engine`` is none of these, Dask is not installed, or no scheduler answers.
    """
    chosen = configured("engine", engine)
    if chosen is None:
        return ThreadEngine(n_jobs, show_progress)
    return _open_dask(chosen, n_jobs, show_progress)


@contextmanager
def _open_dask(engine: Any, n_jobs: int | None, show_progress: bool | None) -> Iterator[Engine]:
    with connected(engine) as client, DaskEngine(client, n_jobs, show_progress) as opened:
        yield opened


@contextmanager
def connected(engine: Any = None) -> Iterator[Any]:
    """Stay connected to the cluster of an engine: blocks within this one share its client.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        As in `open_engine`.

    Yields
    ------
    dask.distributed.Client or None
        None where the engine is threads.
    """
    engine = configured("engine", engine)
    check_engine(engine)
    if not isinstance(engine, str):
        yield engine
        return
    with _Connection.to(engine) as client:
        yield client


def portable(engine: Any) -> Any:
    """An engine as another process can use it: a client as the address of its scheduler."""
    return engine.scheduler.address if is_client(engine) and engine.scheduler is not None else engine


class _Connection:
    """A client of our own, shared by the blocks that are open for one address in this process."""

    _lock = RLock()
    _open: ClassVar["dict[str, _Connection]"] = {}

    def __init__(self, address: str) -> None:
        self.address, self.users = address, 0
        self.client, self.cluster = _connect(address)

    @classmethod
    @contextmanager
    def to(cls, address: str) -> Iterator[Any]:
        """The client of an address; the last to leave closes it."""
        with cls._lock:
            connection = cls._open.get(address)
            if connection is None or connection.client.status != "running":
                connection = cls._open[address] = cls(address)
            connection.users += 1
        try:
            yield connection.client
        finally:
            with cls._lock:
                connection.users -= 1
                if connection.users == 0:
                    if cls._open.get(address) is connection:
                        del cls._open[address]
                    connection.close()

    def close(self) -> None:
        """Leave the cluster, and end it where it is ours."""
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()


def _connect(address: str) -> tuple[Any, Any]:
    """A client, and the cluster where it is started here."""
    local = LOCAL.fullmatch(address)
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            f"engine={address!r} needs Dask; install it with `pip install 'mmcnb[dask]'`."
        ) from error
    if local:
        cluster = LocalCluster(
            n_workers=int(local[1]),
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            worker_dashboard_address=None,
            silence_logs=logging.CRITICAL,  # what a worker has to say is raised here
        )
        return Client(cluster, set_as_default=False), cluster
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False), None
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({_first_line(error)}); check the address and that it "
            "runs (`dask scheduler`)."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
