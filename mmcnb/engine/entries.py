"""Entries of a checkpoint: files that store the total and fingerprint of a pass.

An entry is an archive of the arrays that the total contains. The header of the archive
contains the fingerprint of the pass and the structure of the total.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.stores.archive import DamagedArchiveError, read_archive, write_archive

# Suffix of files that are being written. A checkpoint has one writer at a time, so a
# file with this suffix that a killed process left behind can be overwritten.
PART = ".part"


def fingerprint(*values: Any) -> str:
    """Return a BLAKE2b hash of values, such as passes and their parameters.

    Parameters
    ----------
    *values : None, bool, int, float, str, ndarray, list, tuple, or dataclass of these
        Values to hash. Dataclass fields with ``compare=False`` are left out.

    Returns
    -------
    str
        Hexadecimal digest. Values with the same types and bits have the same digest in
        every process.
    """
    arrays: list[np.ndarray] = []
    form = json.dumps(_encode(_by_names(values), arrays))
    digest = hashlib.blake2b(form.encode(), digest_size=16)
    for array in arrays:
        digest.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _by_names(value: Any) -> Any:
    """Return ``value`` with each dataclass replaced by its name and its fields."""
    if is_dataclass(value):
        named = [
            (field.name, _by_names(getattr(value, field.name)))
            for field in fields(value)
            if field.compare
        ]
        return type(value).__qualname__, named
    if isinstance(value, list):
        return list(map(_by_names, value))
    if isinstance(value, tuple):  # a named tuple is treated as a plain tuple
        return tuple(map(_by_names, value))
    return value


def write_entry(path: Path, mark: str, total: Any) -> None:
    """Write the total of a pass to a file atomically.

    Parameters
    ----------
    path : Path
        Path of the file. An existing file is replaced.
    mark : str
        Fingerprint of the pass.
    total : None, bool, int, float, str, ndarray, NumPy number, CSR array, list or tuple
        Total of the pass. Items of lists and tuples must also have one of these types.

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then left unchanged.
    """
    arrays: list[np.ndarray] = []
    header = {"pass": mark, "total": _encode(total, arrays)}
    _check_numbers(arrays)
    members = {str(number): array for number, array in enumerate(arrays)}
    write_archive(path, header, members, Path(f"{path}{PART}"))


def read_entry(path: Path) -> tuple[str, Any]:
    """Read an entry written by `write_entry`.

    Parameters
    ----------
    path : Path
        Path of the file.

    Returns
    -------
    mark : str
        Fingerprint of the pass.
    total : object
        Total of the pass, with the types and bits that it had when it was written.

    Raises
    ------
    InputError
        If the file does not exist or is not readable.
    DamagedArchiveError
        If the file is damaged or is not an entry.
    """
    header, arrays = read_archive(path)
    try:
        _check_numbers(arrays.values())
        return str(header["pass"]), _decode(header["total"], arrays)
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        # The archive is intact, but its content is not an entry.
        raise DamagedArchiveError from error


def _check_numbers(arrays: Iterable[np.ndarray]) -> None:
    if any(array.dtype.kind not in "biuf" for array in arrays):
        raise ValueError("an array of a total contains values that are not numbers")


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Append the arrays in a value to ``arrays``, and return the value in JSON form.

    The index in ``arrays`` replaces each array.
    """
    # NumPy values must be tested first, because a NumPy float64 is also a float.
    if isinstance(value, np.ndarray | np.generic):
        kind = "array" if isinstance(value, np.ndarray) else "number"
        arrays.append(np.asarray(value))
        return {kind: str(len(arrays) - 1)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_encode(part, arrays) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(part, arrays) for part in value]}
    if getattr(value, "format", None) == "csr":
        parts = _encode([value.data, value.indices, value.indptr], arrays)
        return {"csr": parts, "shape": value.shape}
    raise TypeError(
        f"a value of type {type(value).__qualname__} cannot be stored in a checkpoint"
    )


def _decode(form: Any, arrays: dict[str, np.ndarray]) -> Any:
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
            raise ValueError("not the total of a pass")
    return form
