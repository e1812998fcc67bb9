"""Totals of passes as files: complete or absent, checked when read, with the same bits again.

A file holds a digest of what follows: one line of JSON (the fingerprint of the pass and the form of its
total), and the arrays of the total one after the other in NumPy's own format.
"""

import hashlib
import json
import math
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.samples._files import open_file
from mmcnb.samples._npy import read_header
from mmcnb.stores.atomic import atomic_write

DIGEST_SIZE = 16
PART = ".part"  # one writer at a time, so that one name serves and is written over after a kill
new_digest = partial(hashlib.blake2b, digest_size=DIGEST_SIZE)


class DamagedEntryError(Exception):
    """A file that is not what was written."""


def fingerprint(*values: Any) -> str:
    """blake2b of passes, their parameters and whatever else says what is computed.

    Parameters
    ----------
    *values : None, bool, int, float, str, ndarray, list, tuple, or dataclass of these
        Fields of a dataclass that are not compared are left out.

    Returns
    -------
    str
        The same in any process for the same types and bits.
    """
    arrays: list[np.ndarray] = []
    digest = new_digest(json.dumps(_encode(_plain(values), arrays)).encode())
    for array in arrays:
        digest.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """A value with tuples of its names and values in place of each dataclass."""
    if is_dataclass(value):
        compared = [
            (field.name, _plain(getattr(value, field.name))) for field in fields(value) if field.compare
        ]
        return type(value).__qualname__, compared
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def described(value: Any) -> Any:
    """A parameter as JSON holds it; a large array as a digest of its numbers."""
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return {"digest": fingerprint(value)}
    return value.to_dict() if hasattr(value, "to_dict") else value


def write_entry(path: Path, mark: str, total: Any) -> None:
    """Write the total of a pass to a file, which appears complete or not at all.

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
    head = {"pass": mark, "total": _encode(total, arrays), "arrays": len(arrays)}
    with durable_file(path) as file:
        file.write(bytes(DIGEST_SIZE))
        out = _HashingWriter(file)
        out.write(json.dumps(head).encode() + b"\n")
        for array in arrays:
            np.lib.format.write_array(out, array, allow_pickle=False)
        file.seek(0)
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
    InputError
        If there is none, or it cannot be read.
    DamagedEntryError
        If it is not what was written.
    """
    with open_file(path) as file:
        if file.read(DIGEST_SIZE) != hashlib.file_digest(file, new_digest).digest():
            raise DamagedEntryError
        size = file.tell()
        file.seek(DIGEST_SIZE)
        try:
            head = json.loads(file.readline())
            arrays = [_read_array(file, size) for _ in range(head["arrays"])]
            return str(head["pass"]), _decode(head["total"], arrays)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise DamagedEntryError from error  # whole, and no entry


def _read_array(file: IO[bytes], size: int) -> np.ndarray:
    """An array of numbers from a file of ``size`` bytes, which its header may not exceed."""
    shape, by_columns, dtype = read_header(file)
    n_bytes = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biuf" or n_bytes > size - file.tell():
        raise ValueError("no array that a pass gives")
    array = np.frombuffer(bytearray(file.read(n_bytes)), dtype)
    return array.reshape(shape, order="F" if by_columns else "C")


def durable_file(path: Path) -> AbstractContextManager[IO[bytes]]:
    """A file to write that appears at the end, on the disk itself; there is one writer at a time."""
    return atomic_write(path, part=path.with_name(path.name + PART))


class _HashingWriter:
    """A file that digests what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, new_digest()

    def write(self, part: bytes) -> int:
        self.digest.update(part)
        return self.file.write(part)


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """A value as JSON; its arrays are appended to a list, and stand in the JSON by their numbers."""
    if isinstance(value, np.ndarray | np.generic):  # before float: a float64 is one
        arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_encode(part, arrays) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(part, arrays) for part in value]}
    if getattr(value, "format", None) == "csr":
        return {"csr": _encode([value.data, value.indices, value.indptr], arrays), "shape": value.shape}
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be kept in a journal")


def _decode(form: Any, arrays: list[np.ndarray]) -> Any:
    match form:
        case list():
            return [_decode(part, arrays) for part in form]
        case {"number": number}:
            return arrays[number][()]
        case {"array": number}:
            return arrays[number]
        case {"tuple": parts}:
            return tuple(_decode(parts, arrays))
        case {"csr": parts, "shape": shape}:
            matrix = csr_array(tuple(_decode(parts, arrays)), shape=tuple(shape))
            matrix.check_format(full_check=True)
            return matrix
        case dict():
            raise ValueError("no total that a pass gives")
    return form
