"""The client of a Dask cluster: one of the caller, or one for an address, shared while it is in use."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any

from mmcnb._config import LOCAL, check_engine
from mmcnb.errors import InputError

CONNECT_SECONDS = 5.0


@dataclass
class _Shared:
    """A client of our own, and how many ``with`` blocks use it."""

    client: Any
    users: int = 0


_shared: dict[str, _Shared] = {}  # by address
_sharing = RLock()


@contextmanager
def connection(engine: Any) -> Iterator[Any]:
    """The client of a cluster: ``engine`` itself, or one for its address.

    The ``with`` blocks that are open for one address in this process share a client; the last to end closes
    it, and the cluster where it was started here.
    """
    check_engine(engine)
    if not isinstance(engine, str):
        yield engine
        return
    with _sharing:
        shared = _shared.get(engine)
        if shared is None or shared.client.status != "running":
            shared = _shared[engine] = _Shared(_connect(engine))
        shared.users += 1
    try:
        yield shared.client
    finally:
        with _sharing:
            shared.users -= 1
            if shared.users == 0:
                if _shared.get(engine) is shared:
                    del _shared[engine]
                shared.client.close()
                if shared.client.cluster is not None:
                    shared.client.cluster.close()


def _connect(address: str) -> Any:
    """A client; its ``cluster`` is None unless it is started here."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            f"engine={address!r} needs Dask; install it with `pip install 'mmcnb[dask]'`."
        ) from error
    if local := LOCAL.fullmatch(address):
        cluster = LocalCluster(
            n_workers=int(local[1]),
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            worker_dashboard_address=None,
            silence_logs=logging.CRITICAL,  # what a worker has to say is raised here
        )
        return Client(cluster, set_as_default=False)
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(
            f"no Dask scheduler answers at {address} ({reason}); check the address and that it "
            "runs (`dask scheduler`)."
        ) from error
