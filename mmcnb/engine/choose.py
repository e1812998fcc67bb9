"""Which engine runs the passes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mmcnb._config import configured, is_client
from mmcnb.engine.dask import DaskEngine, connection
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
    engine = configured("engine", engine)
    if engine is None:
        return ThreadEngine(n_jobs, show_progress)
    return DaskEngine(engine, n_jobs, show_progress)


def connected(engine: Any = None) -> AbstractContextManager[Any]:
    """Stay connected to the cluster of an engine: ``with`` blocks inside this one share its client.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        As in `open_engine`.

    Returns
    -------
    context manager of dask.distributed.Client or None
        None where the engine is threads.
    """
    engine = configured("engine", engine)
    return nullcontext() if engine is None else connection(engine)


def portable(engine: Any) -> Any:
    """An engine as another process can use it: a client as the address of its scheduler."""
    return engine.scheduler.address if is_client(engine) and engine.scheduler is not None else engine
