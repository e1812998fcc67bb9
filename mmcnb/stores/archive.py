"""Arrays and a JSON header in one file, which is written atomically.

The format is NumPy's .npz: an uncompressed zip archive with a checksum of each member.
Archives are not trusted: they are checked when they are read.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from mmcnb.samples.files import open_file
from mmcnb.samples.npy import read_member
from mmcnb.samples.paths import PathLike
from mmcnb.stores.atomic import atomic_write


class DamagedArchiveError(Exception):
    """A file that is not an archive, or differs from what was written."""


def write_archive(
    path: PathLike,
    header: Mapping[str, object],
    arrays: Mapping[str, np.ndarray],
    part: Path | None = None,
) -> None:
    """Write an archive.

    Parameters
    ----------
    path : path
        The file; an existing file is replaced.
    header : mapping
        Header, with values that JSON can represent.
    arrays : mapping of str to ndarray
        Arrays of numbers, by name.
    part : Path or None, default=None
        Temporary file; see `atomic_write`.

    Raises
    ------
    OSError
        If the file cannot be written; an existing file is unchanged.
    """
    text = json.dumps({"arrays": sorted(arrays)} | dict(header)).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with atomic_write(path, part=part) as file:
        np.savez(file, **members)


def read_archive(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of an archive.

    Together, the arrays never take more memory than the size of the file.

    Raises
    ------
    InputError
        If the path is not a regular file, or is not readable.
    DamagedArchiveError
        If the file is not an archive, or is damaged.
    """
    file = open_file(path)
    try:
        with file, ZipFile(file) as members:
            _check_members(members, Path(path).stat().st_size)
            arrays = {}
            for name in members.namelist():
                arrays[name.removesuffix(".npy")] = read_member(members, name)
        header = dict(json.loads(arrays.pop("header").tobytes()))
        if sorted(arrays) != header.get("arrays", sorted(arrays)):
            raise BadZipFile("an array is missing")
    except (
        BadZipFile,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
    ) as error:
        raise DamagedArchiveError from error
    return header, arrays


def _check_members(members: ZipFile, n_bytes: int) -> None:
    """Raise BadZipFile if an archive claims more bytes than its file has."""
    entries = members.infolist()
    if any(entry.compress_type != ZIP_STORED for entry in entries):
        raise BadZipFile("a member is compressed")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > n_bytes or len(set(members.namelist())) != len(entries):
        raise BadZipFile("members overlap")
