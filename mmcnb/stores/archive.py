"""Arrays and a JSON header in one file, which appears complete or not at all and is checked when it is read.

It is NumPy's .npz: a zip without compression, with a checksum of each member. What it
claims is believed as little as other input.
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
    """A file that is not what was written."""


def write_archive(
    path: PathLike,
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    part: Path | None = None,
) -> None:
    """Write an archive.

    Parameters
    ----------
    path : path
        The file; one that is there is replaced.
    header : mapping
        What JSON can express.
    arrays : mapping of str to ndarray
        The arrays, of numbers, by name.
    part : Path or None, default=None
        As in `atomic_write`.

    Raises
    ------
    OSError
        It cannot be written; what was there stays.
    """
    text = json.dumps({"arrays": sorted(arrays)} | dict(header)).encode()
    with atomic_write(path, part=part) as file:
        np.savez(file, header=np.frombuffer(text, np.uint8), **arrays)  # type: ignore[arg-type]


def read_archive(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of an archive; no more is read than the file has bytes.

    Raises
    ------
    InputError
        There is no regular file, or it may not be read.
    DamagedArchiveError
        It is no archive, or is damaged.
    """
    file = open_file(path)
    try:
        with file, ZipFile(file) as members:
            _check_members(members, Path(path).stat().st_size)
            arrays = {
                name.removesuffix(".npy"): read_member(members, name)
                for name in members.namelist()
            }
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
    """Refuse an archive that claims more than it has bytes, as one does that is compressed, or damaged."""
    listed = members.infolist()
    if any(member.compress_type != ZIP_STORED for member in listed):
        raise BadZipFile("a member is compressed")
    if sum(member.file_size for member in listed) > n_bytes or len(
        set(members.namelist())
    ) != len(listed):
        raise BadZipFile("members lie in one another")
