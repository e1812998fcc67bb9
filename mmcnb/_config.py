"""Process-wide settings, which apply if a parameter of an estimator is None."""

import math
import operator
import re
import sys
from threading import Lock
from typing import Any, ClassVar, Self

from mmcnb import _machine
from mmcnb.errors import InputError, shown

# Resident bytes of the interpreter and the imported libraries, measured with `python -m
# tests.campaigns memory`.
LIBRARIES = 360 * 2**20
ADDRESS = re.compile(r"(tcp|tls|ucx|ucxx|ws|wss|inproc)://.+")
LOCAL = re.compile(r"local:([1-9]\d*)")
MOST_THREADS = 2**16


class config:
    """Process-wide settings, which estimators use by default.

    Only the settings that are passed are changed. The change applies immediately, in
    all threads. If `config` is used in a ``with`` statement, the previous settings are
    restored at the end of the block. A parameter of an estimator takes precedence over
    the setting unless the parameter is None.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, optional
        Engine that runs the passes over the rows: threads of this process (None), a
        Dask cluster (a client or the address of its scheduler), or a new Dask cluster
        on this machine (``"local:4"`` for four processes).
    memory_limit : str, int or None, optional
        Limit on the resident memory of the process: a string with a unit, such as
        ``"512MiB"``, or a number of bytes. None means half of the free memory.
    n_jobs : int or None, optional
        Number of threads of this process. None and -1 mean all cores, and -2 means all
        cores but one.

    Raises
    ------
    InputError
        If a setting is invalid. In this case, no setting is changed.

    Examples
    --------
    >>> import mmcnb
    >>> with mmcnb.config(memory_limit="1GiB", n_jobs=1):
    ...     model = mmcnb.CPMMC(random_state=0)
    ...     labels = model.fit_predict([[0.0], [0.1], [2.0], [2.1]])
    >>> labels.tolist()
    [0, 0, 1, 1]
    """

    _lock = Lock()
    _settings: ClassVar[dict[str, Any]] = {
        "engine": None,
        "memory_limit": None,
        "n_jobs": None,
    }

    # The default is Ellipsis, because None is a valid setting.
    def __init__(
        self, engine: Any = ..., memory_limit: Any = ..., n_jobs: Any = ...
    ) -> None:
        checks = {
            "engine": check_engine,
            "memory_limit": resolve_memory_limit,
            "n_jobs": n_threads,
        }
        passed = {"engine": engine, "memory_limit": memory_limit, "n_jobs": n_jobs}
        passed = {name: value for name, value in passed.items() if value is not ...}
        for name, value in passed.items():
            checks[name](value)
        with config._lock:
            self._before = {name: config._settings[name] for name in passed}
            config._settings.update(passed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with config._lock:
            config._settings.update(self._before)


def configured(name: str, value: Any) -> Any:
    """Return ``value`` or, if it is None, the process-wide setting called ``name``."""
    return config._settings[name] if value is None else value


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` requests.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads. -1 means all cores, and -2 means all cores but one. None
        means the setting of `mmcnb.config` or, if it is not set, all cores.

    Returns
    -------
    int
        Number of threads, at least 1.

    Raises
    ------
    InputError
        If ``n_jobs`` is not an integer, is 0, or has a magnitude above 65,536.
    """
    n_jobs = configured("n_jobs", n_jobs)
    cores = _machine.cores()
    if n_jobs is None:
        return cores
    try:
        n_jobs = operator.index(n_jobs)
    except TypeError:
        fault = f"n_jobs={shown(n_jobs)} is not a whole number"
        raise InputError(
            f"{fault}; give a positive one, or -1 for all cores."
        ) from None
    if abs(n_jobs) > MOST_THREADS:
        raise InputError(
            f"n_jobs={n_jobs} is more than {MOST_THREADS} threads; "
            "give -1 for all cores."
        )
    if n_jobs == 0:
        raise InputError(
            "n_jobs=0 means no threads; give a positive number, or -1 for all cores."
        )
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def generator(random_state: Any) -> Any:
    """Return a RandomState, as scikit-learn's ``check_random_state`` does.

    Raises
    ------
    InputError
        If ``random_state`` is neither None, an integer from 0 to 2**32 - 1, nor a
        RandomState.
    """
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        fault = f"random_state={shown(random_state)} is not a seed"
        remedy = "give a whole number from 0 to 2**32 - 1, a RandomState, or None"
        raise InputError(f"{fault}; {remedy}.") from error


def check_verbose(verbose: Any) -> None:
    """Raise InputError if ``verbose`` is neither a bool nor an integer."""
    try:
        operator.index(verbose)
    except TypeError:
        if type(verbose).__name__ not in ("bool", "bool_"):
            raise InputError(
                f"verbose={shown(verbose)} is not an integer; give 0 or 1."
            ) from None


def resolve_memory_limit(memory_limit: str | int | None) -> int:
    """Return the memory limit in bytes.

    Parameters
    ----------
    memory_limit : str, int or None
        The limit, in a form that `parse_bytes` accepts. None means the setting of
        `mmcnb.config` or, if it is not set, half of the free memory, but at least twice
        the memory of the libraries.
    """
    memory_limit = configured("memory_limit", memory_limit)
    if memory_limit is None:
        return max(_machine.available_memory() // 2, LIBRARIES * 2)
    return parse_bytes(memory_limit)


def parse_bytes(text: str | int | float) -> int:
    """Parse a number of bytes such as ``"512MiB"``, ``"1.5 GB"`` or ``2**30``.

    Parameters
    ----------
    text : str, int or float
        A number, optionally followed by a unit in upper or lower case. KiB, MiB, GiB,
        TiB and K, M, G, T are powers of 1,024. KB, MB, GB and TB are powers of 1,000.

    Returns
    -------
    int
        Number of bytes.

    Raises
    ------
    InputError
        If the text is not a positive number of bytes.

    Examples
    --------
    >>> from mmcnb._config import parse_bytes
    >>> parse_bytes("512MiB")
    536870912
    """
    match = re.fullmatch(
        r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(I?)(B?)\s*", str(text).upper(), re.ASCII
    )
    size = 0
    if match is not None:
        number, unit, binary, byte = match.groups()
        size = int(
            float(number)
            * (1000 if byte and not binary else 1024) ** " KMGT".index(unit or " ")
        )
    if size <= 0:
        raise InputError(
            f"memory_limit={shown(text)} is not a number of bytes; "
            "write it like '512MiB'."
        )
    return size


def format_bytes(size: float, up: bool = False) -> str:
    """Format a number of bytes for display, in a form that `parse_bytes` can read.

    Parameters
    ----------
    size : float
        Number of bytes.
    up : bool, default=False
        Whether to round up to whole MiB, for a limit that must be sufficient.

    Returns
    -------
    str
        Number with a unit, such as ``"1.5 GiB"``. Numbers below 100 have at most three
        significant digits, and larger numbers are rounded to integers. If ``up``, the
        result is a whole number of MiB.

    Examples
    --------
    >>> from mmcnb._config import format_bytes
    >>> format_bytes(3 * 2**29), format_bytes(3 * 2**29 + 1, up=True)
    ('1.5 GiB', '1537 MiB')
    """
    if up:
        return f"{math.ceil(size / 2**20)} MiB"
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(size) >= 1024 and len(units) > 1:
        size = size / 1024
        units = units[1:]
    return f"{size:.3g} {units[0]}" if size < 100 else f"{size:.0f} {units[0]}"


def check_engine(engine: Any) -> None:
    """Raise InputError if ``engine`` is not a valid value of the setting.

    Valid values are None, an address, and a connected synchronous Dask client.
    """
    if engine is None:
        return
    if isinstance(engine, str):
        if not LOCAL.fullmatch(engine) and not ADDRESS.fullmatch(engine):
            raise InputError(
                f"engine={engine!r} is not the address of a Dask scheduler; "
                "write it like 'tcp://host:8786', "
                "or 'local:4' for four worker processes on this machine."
            )
    elif not is_client(engine):
        raise InputError(
            f"engine={shown(engine)} is not an engine; give a dask.distributed.Client, "
            "the address of its scheduler such as 'tcp://host:8786', "
            "'local:4' for four processes here, or None for threads."
        )
    elif engine.asynchronous:
        raise InputError(
            "engine is an asynchronous Dask client; "
            "give one made with asynchronous=False."
        )
    elif engine.status != "running":
        raise InputError(
            f"engine is a Dask client that is {engine.status}; connect a new one."
        )


def is_client(engine: Any) -> bool:
    """Return whether an object is a Dask client, without importing Dask."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(engine, distributed.Client)
