"""Arrays and a JSON header in one file, which is written atomically.

The format is NumPy's .npz format: an uncompressed zip archive with a checksum of each
member. Archives may be damaged or malicious, so they are checked when they are read.
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
    """Error for a file that is not an archive, or is a damaged archive."""


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
        Path of the file. An existing file is replaced.
    header : mapping
        Header, whose values JSON can represent.
    arrays : mapping of str to ndarray
        Numeric arrays, by name.
    part : Path or None, default=None
        Temporary file, as in `atomic_write`.

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then left unchanged.
    """
    text = json.dumps({"arrays": sorted(arrays)} | dict(header)).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with atomic_write(path, part=part) as file:
        np.savez(file, **members)


def read_archive(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the arrays of an archive.

    The arrays never occupy more memory in total than the size of the file.

    Returns
    -------
    header : dict
        Header of the archive.
    arrays : dict of str to ndarray
        Arrays, by name.

    Raises
    ------
    InputError
        If the path is not a regular file or is not readable.
    DamagedArchiveError
        If the file is not an archive or is damaged.
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
    """Raise BadZipFile if members are compressed, overlap or have the same name.

    Members overlap if the sum of their sizes exceeds ``n_bytes``, the size of the file.
    """
    entries = members.infolist()
    if any(entry.compress_type != ZIP_STORED for entry in entries):
        raise BadZipFile("a member is compressed")
    claimed = sum(entry.file_size for entry in entries)
    if claimed > n_bytes or len(set(members.namelist())) != len(entries):
        raise BadZipFile("members overlap")
