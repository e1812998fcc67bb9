"""Entries of a checkpoint: the total of a pass in a file, and the mark of the pass.

An entry is an archive of the arrays of a total. Its header has the fingerprint of the
pass and the form of the total.
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

# Ending of files being written. A folder has one writer at a time, so a file that a
# killed process left is overwritten.
PART = ".part"


def fingerprint(*values: Any) -> str:
    """Return the blake2b of passes, their parameters, and whatever they depend on.

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
    form = json.dumps(_encode(_by_names(values), arrays))
    digest = hashlib.blake2b(form.encode(), digest_size=16)
    for array in arrays:
        digest.update(f"\n{array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _by_names(value: Any) -> Any:
    """Return a value with names and values of its fields in place of each dataclass."""
    if is_dataclass(value):
        named = [
            (field.name, _by_names(getattr(value, field.name)))
            for field in fields(value)
            if field.compare
        ]
        return type(value).__qualname__, named
    if isinstance(value, list):
        return list(map(_by_names, value))
    if isinstance(value, tuple):  # a named one counts as a plain one
        return tuple(map(_by_names, value))
    return value


def write_entry(path: Path, mark: str, total: Any) -> None:
    """Write the total of a pass to a file, which appears complete or not at all.

    Parameters
    ----------
    path : Path
        The file; one that is there is replaced.
    mark : str
        Fingerprint of the pass.
    total : None, bool, int, float, str, ndarray, NumPy number, CSR array, list or tuple
        What the pass gave; a list or tuple has values of these types.

    Raises
    ------
    OSError
        If it cannot be written; what stood there still stands.
    """
    arrays: list[np.ndarray] = []
    header = {"pass": mark, "total": _encode(total, arrays)}
    _check_numbers(arrays)
    members = {str(number): array for number, array in enumerate(arrays)}
    write_archive(path, header, members, Path(f"{path}{PART}"))


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
    DamagedArchiveError
        If it is not what was written.
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
        # The archive is whole, but no entry.
        raise DamagedArchiveError from error


def _check_numbers(arrays: Iterable[np.ndarray]) -> None:
    if any(array.dtype.kind not in "biuf" for array in arrays):
        raise ValueError("an array of a total contains numbers alone")


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value as JSON, which names arrays by their numbers in a list."""
    # Before float: a NumPy float64 is a float.
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
        f"a value of type {type(value).__qualname__} cannot be kept in a journal"
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
            raise ValueError("no total that a pass gives")
    return form
