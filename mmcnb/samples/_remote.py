"""Stores behind an address: ``http://``, ``memory://``, ``s3://`` and whatever else fsspec opens."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from zarr.abc.store import ByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, WrapperStore

from mmcnb.errors import InputError
from mmcnb.samples._inventory import read_key

PAUSES = (0.2, 0.8)  # seconds before a request is made again

Answer = TypeVar("Answer")


class RemoteStore(WrapperStore[FsspecStore]):
    """A store that asks again, and tells a connection that fails from bytes that are damaged.

    Parameters
    ----------
    store : FsspecStore
    url : str
        Its address, for messages and for opening it again.
    """

    def __init__(self, store: FsspecStore, url: str) -> None:
        super().__init__(store)
        self.url = url

    def _with_store(self, store: FsspecStore) -> "RemoteStore":
        return type(self)(store, self.url)

    def __str__(self) -> str:
        return self.url

    @property
    def supports_listing(self) -> bool:
        """Servers of web pages need not list folders, nor list them whole."""
        return not self.url.startswith(("http://", "https://"))

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Bytes stored under a key; None where the server says that there are none."""
        value = await self._ask(key, lambda: self._store.get(key, prototype, byte_range))
        most = _most_bytes(byte_range)
        if value is not None and most is not None and len(value) > most:
            raise InputError(
                f"{self.url}: the server sends whole files where a part of {key} was asked for, which "
                "shards need: copy the store to this machine, or write it without shards."
            )
        return value

    async def exists(self, key: str) -> bool:
        """Whether a key is there."""
        return await self._ask(key, lambda: self._store.exists(key))

    async def _ask(self, key: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        for pause in PAUSES:
            try:
                return await ask()
            except Exception:  # each protocol has its own exceptions
                await asyncio.sleep(pause)
        try:
            return await ask()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            raise InputError(
                f"{self.url}: {key} could not be fetched ({reason}): "
                "check the address and the connection, then try again."
            ) from error

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names below a key; none where the server does not list folders."""
        if self.supports_listing:
            async for name in self._store.list_dir(prefix):
                yield name


def _most_bytes(byte_range: ByteRequest | None) -> int | None:
    if isinstance(byte_range, RangeByteRequest):
        return byte_range.end - byte_range.start
    return byte_range.suffix if isinstance(byte_range, SuffixByteRequest) else None


def open_address(url: str) -> tuple[RemoteStore, str]:
    """The store an address lies in, from its root, and the path inside.

    Raises
    ------
    InputError
        A package is missing, or the address is none.
    """
    root = url.rstrip("/")
    store = _open_store(root)
    while True:
        parent = root.rpartition("/")[0]
        if parent.endswith(("/", ":")) or "://" not in parent or not _is_store(parent):
            return RemoteStore(store, root), url.rstrip("/")[len(root) + 1 :]
        root, store = parent, _open_store(parent)


def _open_store(url: str) -> FsspecStore:
    try:
        return FsspecStore.from_url(url, read_only=True)
    except ImportError as error:
        raise InputError(
            f"{url}: a package that reads such addresses is missing ({error}): "
            "install it, as by pip install 'mmcnb[remote]'."
        ) from error
    except Exception as error:  # each protocol has its own exceptions
        raise InputError(f"{url} is no address that can be read ({error}): check it.") from error


def _is_store(url: str) -> bool:
    """Whether a group can be found at an address, which may well be forbidden to ask."""
    try:
        return any(read_key(_open_store(url), mark) is not None for mark in ("zarr.json", ".zgroup"))
    except Exception:
        return False
