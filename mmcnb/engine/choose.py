"""Which engine runs the passes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mmcnb._config import check_engine, configured, is_client
from mmcnb.engine.dask import Connection, DaskEngine
from mmcnb.engine.run import Engine, ThreadEngine


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
    with Connection.to(engine) as client:
        yield client


def portable(engine: Any) -> Any:
    """An engine as another process can use it: a client as the address of its scheduler."""
    return engine.scheduler.address if is_client(engine) and engine.scheduler is not None else engine
