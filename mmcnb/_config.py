"""Settings of the process."""

from threading import Lock
from typing import Any, Self


class config:
    """Choose, for the whole process, who runs the passes of fits that do not say so themselves.

    The setting holds from the call on, in all threads; used in a ``with`` block, what held before
    holds again at its end. An estimator's own ``engine`` comes first.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, default=None
        None is threads of this process; a client, or the address of its scheduler, is a Dask
        cluster; ``"local:4"`` is a cluster of four processes on this machine.

    Examples
    --------
    >>> import mmcnb
    >>> with mmcnb.config(engine="local:2"):
    ...     pass  # what is fitted here runs in two worker processes
    """

    _lock = Lock()
    _engine: Any = None

    def __init__(self, engine: Any = None) -> None:
        with config._lock:
            self._before, config._engine = config._engine, engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with config._lock:
            config._engine = self._before


def configured_engine() -> Any:
    """The engine that holds for this process."""
    return config._engine
