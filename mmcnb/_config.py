"""Settings of the process, which fits use where their own parameter is None."""

import math
import operator
import re
import sys
from threading import Lock
from typing import Any, ClassVar, Self

from mmcnb import _machine
from mmcnb.errors import InputError, shown

# Resident bytes of the interpreter and compiled libraries: `python -m tests.campaigns
# memory` measures fits.
LIBRARIES = 360 * 2**20
ADDRESS = re.compile(r"(tcp|tls|ucx|ucxx|ws|wss|inproc)://.+")
LOCAL = re.compile(r"local:([1-9]\d*)")
MOST_THREADS = 2**16


class config:
    """Settings of the process, for fits that do not set them themselves.

    Only the settings that are passed change. They hold from the call on, in all
    threads; a ``with`` block restores them at its end. An estimator's own parameter
    comes first.

    Parameters
    ----------
    engine : None, str or dask.distributed.Client, optional
        Who runs the passes over the rows: threads of this process (None), a Dask
        cluster (a client or the address of its scheduler), or a cluster of four
        processes on this machine (``"local:4"``).
    memory_limit : str, int or None, optional
        Resident memory of the process, such as ``"512MiB"``. None is half of what is
        free.
    n_jobs : int or None, optional
        Threads of this process. None and -1 are all cores.

    Raises
    ------
    InputError
        If a setting is none of these; no setting changes then.

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

    # A setting that is not passed is Ellipsis, as None is a value.
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
    """Return a parameter of a fit, or the setting of the process if it is None."""
    return config._settings[name] if value is None else value


def n_threads(n_jobs: int | None) -> int:
    """Return the threads for ``n_jobs``: -1 is all cores, -2 all but one.

    Parameters
    ----------
    n_jobs : int or None
        None is what `mmcnb.config` says, and otherwise all cores.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    InputError
        If it is 0 or no whole number.
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
            "n_jobs=0 asks for no thread; give a positive number, or -1 for all cores."
        )
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def generator(random_state: Any) -> Any:
    """A RandomState, as scikit-learn's ``check_random_state`` gives it.

    Raises
    ------
    InputError
        If it is neither None, a whole number from 0 to 2**32 - 1, nor a RandomState.
    """
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        fault = f"random_state={shown(random_state)} is no seed"
        remedy = "give a whole number from 0 to 2**32 - 1, a RandomState, or None"
        raise InputError(f"{fault}; {remedy}.") from error


def check_verbose(verbose: Any) -> None:
    """Refuse what is neither a truth value nor a whole number."""
    try:
        operator.index(verbose)
    except TypeError:
        if type(verbose).__name__ not in ("bool", "bool_"):
            raise InputError(
                f"verbose={shown(verbose)} is no whole number; give 0 or 1."
            ) from None


def resolve_memory_limit(memory_limit: str | int | None) -> int:
    """Return the limit: the parameter, the setting, or half of the free memory."""
    memory_limit = configured("memory_limit", memory_limit)
    if memory_limit is None:
        return max(_machine.available_memory() // 2, LIBRARIES * 2)
    return parse_bytes(memory_limit)


def parse_bytes(text: str | int | float) -> int:
    """Read a number of bytes such as ``"512MiB"``, ``"1.5 GB"`` or ``2**30``.

    Parameters
    ----------
    text : str, int or float
        A number, optionally followed by a unit. K, M, G and T are powers of 1,024 when
        written KiB, MiB, GiB, TiB or without B, and powers of 1,000 when written KB,
        MB, GB, TB.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    InputError
        If the text is no positive number of bytes.

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
    """Write a number of bytes for people, as `parse_bytes` reads it.

    Parameters
    ----------
    size : float
        Bytes.
    up : bool, default=False
        Round up to whole MiB, for the least that suffices.

    Returns
    -------
    str
        Three digits and a unit, for instance ``"512 MiB"``; or whole MiB.

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
    """Raise InputError unless an engine can run passes, or is None."""
    if engine is None:
        return
    if isinstance(engine, str):
        if not LOCAL.fullmatch(engine) and not ADDRESS.fullmatch(engine):
            raise InputError(
                f"engine={engine!r} is no address of a Dask scheduler; "
                "write it like 'tcp://host:8786', "
                "or 'local:4' for four worker processes on this machine."
            )
    elif not is_client(engine):
        raise InputError(
            f"engine={shown(engine)} is no engine; give a dask.distributed.Client, "
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
    """Whether an object is a client of a Dask cluster. Dask is not loaded for it."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(engine, distributed.Client)
