"""Stores at an address: ``http://``, ``memory://``, ``s3://``, or another of fsspec.

A server is trusted as little as a file: its answers are bounded in bytes and in time,
and it cannot send us on to another host.
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

PAUSES = (0.2, 0.8)  # seconds before a request is made again
SECONDS = 30.0  # for an answer, and more for each byte that came
LEAST_RATE = 2**15  # bytes a second
# most of a document, and of a chunk whose array says nothing of its size
METADATA_BYTES = 64 * 2**20


class RemoteStore(WrapperStore[FsspecStore]):
    """A store that retries requests, and tells lost connections from damaged bytes.

    Parameters
    ----------
    store : FsspecStore
    url : str
        Its address, for messages and for opening it again.
    patient : bool, default=True
        Whether to ask again if a request fails.
    """

    def __init__(self, store: FsspecStore, url: str, patient: bool = True) -> None:
        super().__init__(store)
        self.url = url
        self.patient = patient
        # a server of web pages is asked
        self.is_web = url.startswith(("http://", "https://"))

    def __str__(self) -> str:
        return self.url

    @property
    def supports_listing(self) -> bool:
        """Servers of web pages need not list folders, nor list them whole."""
        return not self.is_web

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: Any = None,
        most: int = METADATA_BYTES,
    ) -> Buffer | None:
        """Return the bytes stored under a key (at most ``most``), or None."""
        fault = (
            f"{key} has more than {most:,} bytes, which it cannot have: "
            "get the store from elsewhere"
        )
        whole = (
            f"the server sends whole files instead of the part of {key} that shards "
            "need: copy the store to this machine, or write it without shards"
        )
        if isinstance(byte_range, RangeByteRequest):
            most = byte_range.end - byte_range.start
            fault = whole
        elif isinstance(byte_range, SuffixByteRequest):
            most = byte_range.suffix
            fault = whole
        with worded(
            f"{self.url}: {key} could not be fetched",
            "check address and connection, or try later",
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
                            f"{self.url}: {key} did not come within {SECONDS:g} s and "
                            f"one more for each {LEAST_RATE // 1024} KiB: check the "
                            "connection, or copy the store to this machine."
                        ) from error
                    if pause is None or isinstance(error, InputError):
                        raise
                    await asyncio.sleep(pause)
        raise AssertionError

    async def get_ranges(
        self, key: str, parts: Any, *, prototype: BufferPrototype, **_how: Any
    ) -> Any:
        """Yield parts of a value by `get`; the wrapped store would not call it."""
        yield [
            *enumerate(
                await asyncio.gather(
                    *[self.get(key, prototype, part) for part in parts]
                )
            )
        ]


@asynccontextmanager
async def _bounded(fault: str, most: int) -> AsyncIterator[None]:
    """Bound the answer to a request in bytes and in time."""
    async with asyncio.timeout(SECONDS) as deadline:
        end = asyncio.get_running_loop().time() + SECONDS

        def take(n_bytes: int) -> None:
            if n_bytes > most:
                raise InputError(fault)
            deadline.reschedule(end + n_bytes / LEAST_RATE)

        _take.set(take)
        yield


_take: ContextVar[Callable[[int], None]] = ContextVar("_take")
"""Counts the bytes of the answer to a request that have come, and refuses too many."""


async def _open_session(**options: Any) -> Any:
    """Open a session of aiohttp that bounds answers and stays with its host."""
    import aiohttp

    class Bounded(aiohttp.ClientResponse):
        """An answer that is read as far as it may go."""

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
                self.close()  # the rest on its way is not read
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
    """Refuse an answer that leads to another host; http may lead to https."""
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
        fault = f"{here}: the server sends requests on to {str(there)[:200]}"
        raise InputError(f"{fault}: give that address if you trust it.")


def open_address(url: str) -> tuple[RemoteStore, str]:
    """The store an address lies in, from its root, and the path inside.

    Raises
    ------
    InputError
        A package is missing, or the address is none.
    """
    root = url.rstrip("/")
    while _is_store(parent := root.rpartition("/")[0]):
        root = parent
    return RemoteStore(_open_store(root), root), url.rstrip("/")[len(root) + 1 :]


def _open_store(url: str) -> FsspecStore:
    options = (
        {"get_client": _open_session} if url.startswith(("http://", "https://")) else {}
    )
    remedy = "install it, as by pip install 'mmcnb[remote]'"
    with (
        # each protocol has its own exceptions
        worded(f"{url} is no address that can be read", "check it"),
        worded(
            f"{url}: a package that reads such addresses is missing",
            remedy,
            ImportError,
        ),
    ):
        return FsspecStore.from_url(url, options, read_only=True)


def _is_store(url: str) -> bool:
    """Return whether a group can be found at an address; a server may forbid to ask."""
    if "://" not in url or url.endswith("/"):
        return False
    try:
        store = RemoteStore(_open_store(url), url, patient=False)
        return any(
            read_key(store, mark) is not None for mark in ("zarr.json", ".zgroup")
        )
    except Exception:
        return False
