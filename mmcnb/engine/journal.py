"""Totals of passes as files: whole or not at all, and checked when they are read; the bits come back.

A file holds one line of JSON (the fingerprint of the pass and the form of its total), the arrays of the
total one after the other in NumPy's own format, and a digest of all of it.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

DIGEST_SIZE = 16
COPY_BYTES = 2**20
PART = ".part"  # one writer at a time, so that one name serves and is written over after a kill


class DamagedEntryError(Exception):
    """A file that is not what was written."""


def fingerprint(*values: Any) -> str:
    """blake2b of passes, their parameters and whatever else says what is computed.

    Parameters
    ----------
    *values : None, bool, int, float, str, ndarray, list, tuple, or dataclass of these

    Returns
    -------
    str
        The same in any process for the same types and bits.
    """
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    _add(digest, values)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    kind = type(value).__qualname__
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        digest.update(f"{kind} {array.dtype.str} {np.shape(value)}\n".encode())
        digest.update(array.data)
    elif value is None or isinstance(value, bool | int | float | str):
        digest.update(f"{kind} {value!r}\n".encode())
    elif isinstance(value, list | tuple):
        digest.update(f"{kind} {len(value)}\n".encode())
        for part in value:
            _add(digest, part)
    elif is_dataclass(value):
        digest.update(f"{kind} {len(fields(value))}\n".encode())
        for field in fields(value):
            _add(digest, field.name)
            _add(digest, getattr(value, field.name))
    else:
        raise TypeError(f"a pass with a {kind} among its parameters has no fingerprint")


def write_entry(path: Path, mark: str, total: Any) -> None:
    """Write the total of a pass to a file, whole or not at all.

    Parameters
    ----------
    path : Path
        The file; one that is there is replaced.
    mark : str
        Fingerprint of the pass.
    total : None, bool, int, float, str, ndarray, NumPy number, CSR array, or list or tuple of these
        What the pass gave.

    Raises
    ------
    OSError
        If it cannot be written; what stood there still stands.
    """
    arrays: list[np.ndarray] = []
    head = {"pass": mark, "total": _form(total, arrays), "arrays": len(arrays)}
    with whole_file(path) as file:
        out = _HashingWriter(file)
        out.write(json.dumps(head).encode() + b"\n")
        for array in arrays:
            np.lib.format.write_array(out, array, allow_pickle=False)
        file.write(out.digest.digest())


def read_entry(path: Path) -> tuple[str, Any]:
    """Read what `write_entry` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    mark : str
        Fingerprint of the pass.
    total : object
        What the pass gave, with the same types and bits.

    Raises
    ------
    FileNotFoundError
        If there is none.
    DamagedEntryError
        If it is not what was written.
    """
    with path.open("rb") as file:
        _check_digest(file)
        file.seek(0)
        head = json.loads(file.readline())
        arrays = [np.lib.format.read_array(file, allow_pickle=False) for _ in range(head["arrays"])]
    return head["pass"], _restore(head["total"], arrays)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under its name at the end, on the disk itself, or not at all."""
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _check_digest(file: IO[bytes]) -> None:
    left = file.seek(0, io.SEEK_END) - DIGEST_SIZE
    file.seek(0)
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    while left > 0:
        read = file.read(min(left, COPY_BYTES))
        digest.update(read)
        left -= len(read)
    if left < 0 or file.read() != digest.digest():
        raise DamagedEntryError


class _HashingWriter:
    """A file that keeps a digest of what goes through."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.blake2b(digest_size=DIGEST_SIZE)

    def write(self, part: bytes) -> int:
        self.digest.update(part)
        return self.file.write(part)


def _form(value: Any, arrays: list[np.ndarray]) -> Any:
    """A value as JSON, with its arrays moved to a list."""

    def kept(array: Any) -> int:
        arrays.append(np.asarray(array))
        return len(arrays) - 1

    if isinstance(value, np.generic):  # before float: a float64 is one
        return {"number": kept(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": kept(value)}
    if isinstance(value, tuple):
        return {"tuple": [_form(part, arrays) for part in value]}
    if isinstance(value, list):
        return [_form(part, arrays) for part in value]
    if getattr(value, "format", None) == "csr":
        return {
            "csr": [kept(part) for part in (value.data, value.indices, value.indptr)],
            "shape": value.shape,
        }
    raise TypeError(f"a total of type {type(value).__qualname__} cannot be kept")


def _restore(form: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(form, list):
        return [_restore(part, arrays) for part in form]
    if not isinstance(form, dict):
        return form
    if "number" in form:
        return arrays[form["number"]][()]
    if "array" in form:
        return arrays[form["array"]]
    if "tuple" in form:
        return tuple(_restore(part, arrays) for part in form["tuple"])
    import scipy.sparse as sp

    return sp.csr_array(tuple(arrays[k] for k in form["csr"]), shape=tuple(form["shape"]))
