"""Find the files of a data set in the user's data folder, or download them."""

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
    """Folders and servers from which the files of data sets are read.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Folder with the files. If None, the environment variable MMCNB_DATA_DIR names
        it.
    base_url : str or None, default=None
        Server to download from instead of the publishers. Its paths are those of a data
        folder.
    cache_dir : path-like or None, default=None
        Folder for downloads; None is the user's cache folder.
    download : bool, default=True
        Whether a file that is in neither folder is downloaded.

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
        """Return the content of a file, which is found or downloaded, checked and unpacked.

        Parameters
        ----------
        file : File
            The file. In the data folder, it may be compressed with xz, gzip or bzip2.
        page : str
            Address of the publisher's page, which the error messages name.

        Returns
        -------
        bytes
            The content, decompressed if the file is published as .gz.

        Raises
        ------
        InputError
            If the file is neither found nor downloaded, or is not the published file.
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
        """Find a file in the data folder, either plain or compressed.

        Parameters
        ----------
        file : File
            The file.

        Returns
        -------
        Path or None
            Path of the file; None if the folder does not contain it, or no folder is
            set.

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
        """Return whether a file is in the data folder or among the downloads.

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
                f"{missing}, and it cannot be downloaded, because it was made from {page}: {folder}."
            )
        if url is None:
            raise InputError(
                f"{missing}, and its publisher serves it only packed (.Z): {remedy}, unpacked."
            )
        cache = self._cache
        if not self.download and not self.has(file):
            raise InputError(
                f"{missing}, and downloads are switched off: allow downloads, or {remedy}."
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
                f"{missing}, and {url} cannot be downloaded ({_reason(error)}): {remedy}."
            ) from error
        except ValueError as error:
            # The first sentence of pooch's message has the expected and the actual
            # hash.
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
    response.close()  # pooch does not close the connection of a refused download
    return f"HTTP status {response.status_code}"
