"""LIBSVM text: ``label index:value index:value ...`` a line."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._text import read_pieces
from mmcnb.samples.matrix import CSRBlock, all_finite

LARGEST_INDEX = 2**31 - 2
_LINE = re.compile(rb"\s*[-+.\d]\S*(\s+(qid:\d+|\d+:\S+))*\s*(#.*)?$")


def looks_like_libsvm(line: bytes) -> bool:
    """Whether a line could be LIBSVM text."""
    return bool(_LINE.match(line)) and b"," not in line


def read_libsvm(
    path: Path,
    dtype: np.dtype,
    zero_based: bool = False,
    n_features: int | None = None,
    show_progress: bool | None = None,
) -> Iterator[tuple[CSRBlock, np.ndarray]]:
    """Read LIBSVM text, piece by piece.

    Blank lines and ``#`` comments are passed over; columns must rise within a line, as LIBSVM
    demands.

    Parameters
    ----------
    path : Path
        Plain, .gz, .bz2 or .xz.
    dtype : dtype
        float32 or float64.
    zero_based : bool, default=False
        Columns are numbered from 0 instead of 1.
    n_features : int or None, default=None
        Refuse columns beyond it.
    show_progress : bool or None, default=None

    Yields
    ------
    block, labels : CSRBlock, ndarray of int64

    Raises
    ------
    InputError
        A line is malformed; it is named.
    """
    from sklearn.datasets import load_svmlight_file

    for line, piece in read_pieces(path, show_progress):
        try:
            X, y = load_svmlight_file(io.BytesIO(piece), dtype=dtype, zero_based=zero_based)
            with np.errstate(invalid="ignore"):  # labels that are not whole numbers are refused below
                labels = y.astype(np.int64)
            good = all_finite(X.data) and bool((labels == y).all())
            width = int(X.indices.max(initial=-1)) + 1
            good = good and width <= (n_features or LARGEST_INDEX + 1)
        except (ValueError, OverflowError):
            good = False
        if not good:
            _explain(path, line, piece, dtype, zero_based, n_features)
        if len(labels):
            yield CSRBlock(X.data, X.indices, X.indptr.astype(np.int64), width), labels


def _explain(
    path: Path, first: int, piece: bytes, dtype: np.dtype, zero_based: bool, n_features: int | None
) -> None:
    """Find the line that the fast parser refused, and say what is wrong with it."""
    for number, line in enumerate(piece.split(b"\n"), start=first):
        fault = line_fault(line, dtype, zero_based, n_features)
        if fault:
            raise InputError(f"{path}, line {number}: {fault}.")
    raise InputError(f"{path}, lines from {first}: this is not LIBSVM text; correct or remove them.")


def line_fault(line: bytes, dtype: np.dtype, zero_based: bool, n_features: int | None) -> str | None:
    """What is wrong with a line of LIBSVM text, with the remedy; None if it is right."""
    fields = line.split(b"#")[0].split()
    if not fields:
        return None
    label = _number(fields[0])
    if label is None or not label.is_integer():
        return f"label {_show(fields[0])} is not a whole number; class labels must be integers"
    last = -1
    for field in fields[1:]:
        if field.startswith(b"qid:"):
            continue
        column, colon, text = field.partition(b":")
        if not colon or not re.fullmatch(rb"[-+]?\d+", column):
            return f"{_show(field)} is not of the form index:value; correct or remove the line"
        index = int(column)
        value = _number(text)
        if value is None or not np.isfinite(_cast(value, dtype)):
            return f"value {_show(text)} of index {index} is not a finite number ({dtype}); correct it"
        if index == 0 and not zero_based:
            return "index 0 found where columns are numbered from 1; give --zero-based (zero_based=True)"
        if index < 0 or index > LARGEST_INDEX:
            return f"index {index} is outside 0..{LARGEST_INDEX}; correct it"
        if n_features is not None and index >= n_features + (not zero_based):
            return f"index {index} is beyond the {n_features} features said; raise --features or correct it"
        if index == last:
            return f"index {index} comes twice; each column may be given once a line"
        if index < last:
            return f"index {index} comes after {last}; columns must rise within a line, so sort them"
        last = index
    return None


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _cast(value: float, dtype: np.dtype) -> float:
    with np.errstate(over="ignore"):
        return float(np.asarray(value).astype(dtype))


def _show(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
