"""Files of a data set, from a folder the user names or a download."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mmcnb import InputError

from ._dataset import File

DATA_DIR_VARIABLE = "MMCNB_DATA_DIR"
_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
}


@dataclass(frozen=True)
class Source:
    """Folder to look for files in.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Folder with the files; None takes the environment variable MMCNB_DATA_DIR.
    base_url : str or None, default=None
        Server with the layout of a data folder, in place of the publishers' own
        addresses.
    cache_dir : path-like or None, default=None
        Folder for downloads; None is the user's cache folder.
    download : bool, default=True
        Ask the publisher for a file that is not here.

    Examples
    --------
    >>> from mmcnb.datasets import Source
    >>> Source("data", download=False).data_dir
    'data'
    """

    data_dir: str | os.PathLike[str] | None = None
    base_url: str | None = None
    cache_dir: str | os.PathLike[str] | None = None
    download: bool = True

    def content(self, file: File, page: str) -> bytes:
        """Content of a file, found or downloaded, checked and unpacked.

        Parameters
        ----------
        file : File
            The file; it may lie in the data folder packed with xz, gzip or bzip2.
        page : str
            The publisher's page, for the error message.

        Returns
        -------
        bytes
            The content; a file that is published as .gz is unpacked too.

        Raises
        ------
        InputError
            If the file is neither here nor to be had, or is not the file that was
            published.
        """
        path = self.find(file) or self._download(file, page)
        published = _read(path, packing=path.name.removeprefix(Path(file.path).name))
        digest = hashlib.sha256(published).hexdigest()
        if file.sha256 not in (None, digest):
            raise InputError(
                f"{path} is not the file that was published: its sha256 is {digest} and should be "
                f"{file.sha256}; get it from {file.url or page}."
            )
        return _unpack(published, Path(file.path).suffix, path)

    def find(self, file: File) -> Path | None:
        """Find a file in the data folder, as it is or packed.

        Parameters
        ----------
        file : File
            The file.

        Returns
        -------
        Path or None
            None if the folder lacks it, or there is no folder.

        Raises
        ------
        InputError
            If the data folder is not a folder.
        """
        folder = self._folder
        if folder is None:
            return None
        if not folder.is_dir():
            raise InputError(
                f"{folder} is not a folder; set {DATA_DIR_VARIABLE} to the folder with the data."
            )
        paths = (folder / (file.path + suffix) for suffix in ("", *_UNPACK))
        return next((path for path in paths if path.is_file()), None)

    def has(self, file: File) -> bool:
        """Say whether a file is here, in the data folder or among the downloads.

        Parameters
        ----------
        file : File
            The file.

        Returns
        -------
        bool
            True if no download is needed.
        """
        cache = self._cache
        return self.find(file) is not None or (
            cache is not None and (cache / file.path).is_file()
        )

    @property
    def _folder(self) -> Path | None:
        folder = self.data_dir or os.environ.get(DATA_DIR_VARIABLE)
        return Path(folder) if folder else None

    @property
    def _cache(self) -> Path | None:
        if self.cache_dir is not None:
            return Path(self.cache_dir)
        if find_spec("pooch") is None:
            return None
        import pooch

        return Path(pooch.os_cache("mmcnb"))

    def _download(self, file: File, page: str) -> Path:
        missing = f"{file.path} is not in the data folder ({self._folder or DATA_DIR_VARIABLE + ' is not set'})"
        folder = f"set {DATA_DIR_VARIABLE} to a folder that contains {file.path}"
        remedy = f"get it from {page} and {folder}"
        url = f"{self.base_url.rstrip('/')}/{file.path}" if self.base_url else file.url
        if url is None and file.made:
            raise InputError(
                f"{missing}, and nobody serves it, as it was made from {page}: {folder}."
            )
        if url is None:
            raise InputError(
                f"{missing}, and its publisher serves it only packed (.Z): {remedy}, unpacked."
            )
        cache = self._cache
        if not self.download and not self.has(file):
            raise InputError(
                f"{missing}, and downloads are switched off: allow them, or {remedy}."
            )
        if cache is None:
            raise InputError(
                f"{missing}, and downloads need pooch: pip install 'mmcnb[data]', or {remedy}."
            )
        import pooch

        cached = cache / file.path
        pooch.get_logger().setLevel("WARNING")
        try:
            pooch.retrieve(
                url,
                known_hash=file.sha256,
                fname=cached.name,
                path=cached.parent,
                downloader=pooch.HTTPDownloader(
                    timeout=60, progressbar=sys.stderr.isatty()
                ),
            )
        except OSError as error:
            raise InputError(
                f"{missing}, and {url} cannot be had ({_reason(error)}): {remedy}."
            ) from error
        except ValueError as error:
            # Pooch's first sentence says which hash was expected and which one came.
            told = str(error).partition(". ")[0]
            raise InputError(
                f"{url} is not the file that was published ({told}): {remedy}."
            ) from error
        return cached


def _read(path: Path, packing: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from error
    return _unpack(content, packing, path)


def _unpack(content: bytes, suffix: str, path: Path) -> bytes:
    try:
        return _UNPACK.get(suffix, bytes)(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path} is damaged ({error}); get it again.") from error


def _reason(error: OSError) -> str:
    response = getattr(error, "response", None)
    if response is None:
        return type(error).__name__
    response.close()  # pooch leaves the connection of a refused download open
    return f"HTTP status {response.status_code}"
