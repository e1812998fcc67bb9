"""Read local files, which must be regular files, and limit the size of documents."""

import errno
import os
import stat
from contextlib import suppress
from glob import escape
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Any

from mmcnb.errors import InputError, worded
from mmcnb.samples.paths import PathLike, expanded

DOCUMENT_BYTES = 64 * 2**20  # maximum size of a document that describes a store or fit


def check_file(path: PathLike) -> os.stat_result:
    """Check that a path is a regular file; reading a pipe or a device may never end.

    Returns
    -------
    os.stat_result
        Status of the file.

    Raises
    ------
    InputError
        If the path does not exist, or is a folder, a pipe, a socket or a device.
    """
    try:
        found = Path(expanded(path)).stat()
    except FileNotFoundError as error:
        raise absent_error(path) from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): check the path."
        ) from error
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
        kind = kinds.get(stat.S_IFMT(found.st_mode), "device")
        remedy = "copy its contents to a file and give that"
        raise InputError(f"{path} is a {kind}, not a regular file: {remedy}.")
    return found


def absent_error(path: PathLike) -> InputError:
    """Return the error for a path that does not exist.

    It suggests files and stores of the same folder whose names differ only by an
    ending.
    """
    from mmcnb.samples.formats import is_name_of_rows

    place = Path(expanded(path))
    names = []
    with suppress(OSError, ValueError):
        for other in sorted(place.parent.glob(f"{escape(place.name)}.*")):
            if is_name_of_rows(other):
                names.append(f"{path}{other.name.removeprefix(place.name)}")
    hint = f"; perhaps {' or '.join(names[:3])} is meant" if names else ""
    return InputError(f"{path} does not exist: check the path{hint}.")


def open_file(path: PathLike) -> BufferedReader:
    """Open a regular file to read its bytes.

    Parameters
    ----------
    path : path
        The file; ``~/`` is expanded.

    Returns
    -------
    BufferedReader
        The open file.

    Raises
    ------
    InputError
        If the path is not a regular file, or is not readable.
    """
    check_file(path)
    with worded(f"{path} cannot be read", "check its permissions", OSError):
        return Path(expanded(path)).open("rb")


def read_document(path: PathLike) -> bytes:
    """Return the contents of a regular file of at most 64 MiB.

    Raises
    ------
    InputError
        If the file cannot be opened, or is larger than 64 MiB.
    """
    with open_file(path) as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, DOCUMENT_BYTES) + 1)
    if len(content) > DOCUMENT_BYTES:
        raise InputError(
            f"{path} has more than {DOCUMENT_BYTES:,} bytes, too many for a "
            "description of a store or fit: replace it."
        )
    return content


def files_below(place: Path) -> set[tuple[str, int, int]]:
    """Return the paths, sizes and modification times of all files below a path.

    If the path is a file, the result describes only this file.
    """
    found = set()
    for path in (place, *place.rglob("*")):
        with suppress(OSError):  # the file has been removed in the meantime
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                found.add((str(path), status.st_size, status.st_mtime_ns))
    return found


def file_identity(path: PathLike, *known: Any) -> str:
    """Return a hash of a file's size, its modification time and ``known``."""
    status = check_file(path)
    facts = (*known, status.st_size, status.st_mtime_ns)
    return blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def check_chunk_file(path: Path, most: int) -> None:
    """Check that a chunk file is a regular file of at most ``most`` bytes.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    OSError
        If the file is not a regular file, or is larger than ``most`` bytes.
    """
    # A chunk whose path is a dangling link is damaged, not missing, so use the status
    # of the link itself.
    status = path.stat() if path.exists() else path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes")
