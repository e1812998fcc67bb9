"""Read Zarr stores at addresses that fsspec supports, such as ``s3://bucket/x.zarr``.

Web servers are not trusted: their responses are limited in size and duration, and
redirects to other hosts are refused.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, WrapperStore

from mmcnb.errors import InputError, worded
from mmcnb.samples.paths import read_key

PAUSES = (0.2, 0.8)  # seconds before the first and the second retry
SECONDS = 30.0  # timeout of a request; received bytes extend it
LEAST_RATE = 2**15  # number of received bytes that extend the timeout by one second
# Default limit on the size of a value, in bytes.
METADATA_BYTES = 64 * 2**20


class RemoteStore(WrapperStore[FsspecStore]):
    """A remote store that retries failed requests before it raises InputError.

    Parameters
    ----------
    store : FsspecStore
        Store from which values are requested.
    url : str
        Address of the store, for messages and for opening the store again.
    patient : bool, default=True
        Whether to retry failed requests.
    """

    def __init__(self, store: FsspecStore, url: str, patient: bool = True) -> None:
        super().__init__(store)
        self.url = url
        self.patient = patient
        self.is_web = url.startswith(("http://", "https://"))

    def __str__(self) -> str:
        return self.url

    @property
    def supports_listing(self) -> bool:
        """Whether the store can list the contents of folders.

        This is False for web servers, whose listings may be incomplete.
        """
        return not self.is_web

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: Any = None,
        most: int = METADATA_BYTES,
    ) -> Buffer | None:
        """Return the bytes stored under a key, or None if the key does not exist.

        The response of a web server may have at most ``most`` bytes or, if
        ``byte_range`` has a length, at most that many bytes.
        """
        fault = (
            f"{key} has more than {most:,} bytes, which is too long: "
            "get the store from elsewhere"
        )
        whole = (
            f"the server sends whole files instead of the requested part of {key}: "
            "copy the store to this machine, or write it without shards"
        )
        if isinstance(byte_range, RangeByteRequest):
            most = byte_range.end - byte_range.start
            fault = whole
        elif isinstance(byte_range, SuffixByteRequest):
            most = byte_range.suffix
            fault = whole
        with worded(
            f"{self.url}: {key} could not be fetched",
            "check the address and the connection, or try again later",
        ):
            for pause in (*(PAUSES if self.patient else ()), None):
                try:
                    async with (
                        _bounded(f"{self.url}: {fault}.", most)
                        if self.is_web
                        else nullcontext()
                    ):
                        return await self._store.get(key, prototype, byte_range)
                except Exception as error:  # each protocol has its own exceptions
                    if pause is None and isinstance(error, TimeoutError):
                        raise InputError(
                            f"{self.url}: {key} did not arrive within {SECONDS:g} s "
                            f"plus 1 s for each {LEAST_RATE // 1024} KiB: check "
                            "the connection, or copy the store to this machine."
                        ) from error
                    if pause is None or isinstance(error, InputError):
                        raise
                    await asyncio.sleep(pause)
        raise AssertionError

    async def get_ranges(
        self, key: str, parts: Any, *, prototype: BufferPrototype, **_how: Any
    ) -> Any:
        """Yield one list with the index and bytes of each part, which `get` reads."""
        yield [
            *enumerate(
                await asyncio.gather(
                    *[self.get(key, prototype, part) for part in parts]
                )
            )
        ]


@asynccontextmanager
async def _bounded(fault: str, most: int) -> AsyncIterator[None]:
    """Limit the size and the duration of the response to a request."""
    async with asyncio.timeout(SECONDS) as deadline:
        end = asyncio.get_running_loop().time() + SECONDS

        def take(n_bytes: int) -> None:
            if n_bytes > most:
                raise InputError(fault)
            deadline.reschedule(end + n_bytes / LEAST_RATE)

        _take.set(take)
        yield


_take: ContextVar[Callable[[int], None]] = ContextVar("_take")
"""Function that checks the number of bytes that the current request has received."""


async def _open_session(**options: Any) -> Any:
    """Open an aiohttp session that limits the size and duration of responses.

    The session follows redirects only within the same host.
    """
    import aiohttp

    class Bounded(aiohttp.ClientResponse):
        """A response that stops reading when it exceeds the limits of its request."""

        async def read(self) -> bytes:
            parts = []
            n_bytes = 0
            take = _take.get()
            try:
                take(self.content_length or 0 if self.method != "HEAD" else 0)
                async for part in self.content.iter_any():
                    parts.append(part)
                    n_bytes += len(part)
                    take(n_bytes)
            except BaseException:
                self.close()  # do not read the rest of the response
                raise
            return b"".join(parts)

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_stay)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=SECONDS)
    given: dict[str, Any] = {
        "timeout": timeout,
        "response_class": Bounded,
        "trace_configs": [trace],
    }
    return aiohttp.ClientSession(**given | options)


async def _stay(_session: Any, _context: Any, answer: Any) -> None:
    """Raise InputError for a redirect to another host; http may redirect to https."""
    place = (
        answer.response.headers.get("Location")
        or answer.response.headers.get("URI")
        or ""
    )
    here = answer.response.url
    there = here.join(type(here)(place))
    upgraded = (here.scheme, there.scheme, here.port, there.port) == (
        "http",
        "https",
        80,
        443,
    )
    if there.host != here.host or not (there.origin() == here.origin() or upgraded):
        fault = f"{here}: the server redirects to {str(there)[:200]}"
        raise InputError(f"{fault}: give that address if you trust it.")


def open_address(url: str) -> tuple[RemoteStore, str]:
    """Return the store that contains a URL, and the path inside the store.

    Raises
    ------
    InputError
        If a required package is missing, or if the address is invalid.
    """
    root = url.rstrip("/")
    while _is_store(parent := root.rpartition("/")[0]):
        root = parent
    return RemoteStore(_open_store(root), root), url.rstrip("/")[len(root) + 1 :]


def _open_store(url: str) -> FsspecStore:
    options = (
        {"get_client": _open_session} if url.startswith(("http://", "https://")) else {}
    )
    remedy = "install it, for example with pip install 'mmcnb[remote]'"
    with (
        # Each protocol has its own exceptions.
        worded(f"{url} is not an address that can be read", "check it"),
        worded(
            f"{url}: a package that reads such addresses is missing",
            remedy,
            ImportError,
        ),
    ):
        return FsspecStore.from_url(url, options, read_only=True)


def _is_store(url: str) -> bool:
    """Return whether a URL is the address of a Zarr group.

    The result is False if the request fails.
    """
    if "://" not in url or url.endswith("/"):
        return False
    try:
        store = RemoteStore(_open_store(url), url, patient=False)
        return any(
            read_key(store, mark) is not None for mark in ("zarr.json", ".zgroup")
        )
    except Exception:
        return False
