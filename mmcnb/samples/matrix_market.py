"""Matrix Market files: sparse rows of ``coordinate`` files, dense ones of ``array``."""

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.io

from mmcnb.errors import InputError, shown, worded
from mmcnb.samples.base import Samples, in_memory
from mmcnb.samples.entries import Entries, HeldEntries, check_limit
from mmcnb.samples.text import open_text, read_pieces

BANNER = "%%MatrixMarket matrix coordinate real general"
REMEDY = "get the file again, or write it with scipy.io.mmwrite"
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
HEAD_BYTES = 2**20  # with all comments above the size line
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|[-+]?(nan|inf)", re.I)


class Header(NamedTuple):
    """What the first lines of a Matrix Market file say.

    Attributes
    ----------
    form : {"coordinate", "array"}
    field : {"real", "double", "integer", "unsigned-integer", "pattern"}
    symmetry : {"general", "symmetric", "skew-symmetric"}
    n_rows, n_columns : int
    n_entries : int
        Lines that follow.
    line : int
        Number of the first of them, from 1.
    """

    form: str
    field: str
    symmetry: str
    n_rows: int
    n_columns: int
    n_entries: int
    line: int


def read_header(path: Path) -> Header:
    """Read the first lines of a Matrix Market file.

    Raises
    ------
    InputError
        They are not those of a matrix of real numbers.
    """
    with open_text(path) as (_, text):
        lines = text.read(HEAD_BYTES).split(b"\n")
    banner = lines[0].decode("utf-8", "replace").lower().split()
    if banner[:1] != ["%%matrixmarket"] or len(banner) != 5 or banner[1] != "matrix":
        raise InputError(
            f"{path}, line 1: this is not the first line of a Matrix Market file, such "
            f"as '{BANNER}': {REMEDY}, or name a table .csv or .txt."
        )
    _, _, form, field, symmetry = banner
    is_known = form in ("coordinate", "array") and symmetry in SYMMETRIES
    if field == "complex" or symmetry == "hermitian":
        raise InputError(
            f"{path}, line 1: the matrix has complex numbers, which are not supported: "
            "write its real part, such as with scipy.io.mmwrite(path, X.real)."
        )
    if not is_known or field not in FIELDS or (form, field) == ("array", "pattern"):
        raise InputError(
            f"{path}, line 1: a matrix as '{form} {field} {symmetry}' is unknown: "
            f"{REMEDY}."
        )
    for number, line in enumerate(lines[1:], start=2):
        if line.strip() and not line.startswith(b"%"):
            sizes = _sizes(path, number, line, 3 if form == "coordinate" else 2)
            n_rows, n_columns = sizes[:2]
            n_entries = sizes[2] if form == "coordinate" else n_rows * n_columns
            _check_square(path, number, symmetry, n_rows, n_columns)
            return Header(
                form, field, symmetry, n_rows, n_columns, n_entries, number + 1
            )
    raise InputError(f"{path} ends before its size line: {REMEDY}.")


def _sizes(path: Path, number: int, line: bytes, n_sizes: int) -> list[int]:
    words = line.split()
    if len(words) != n_sizes or not all(
        re.match(rb"\d{1,18}$", word) for word in words
    ):
        what = "rows, columns and entries" if n_sizes == 3 else "rows and columns"
        text = shown(line.decode("utf-8", "replace").strip())
        raise InputError(
            f"{path}, line {number}: {text} is not the numbers of {what}: {REMEDY}."
        )
    return [int(word) for word in words]


def _check_square(
    path: Path, number: int, symmetry: str, n_rows: int, n_columns: int
) -> None:
    if symmetry != "general" and n_rows != n_columns:
        raise InputError(
            f"{path}, line {number}: a {symmetry} matrix has as many rows as columns, "
            f"not {n_rows:,} and {n_columns:,}: {REMEDY}."
        )


# -- entries of a sparse matrix --------------------------------------------------------


def read_entries(path: Path, header: Header) -> Iterator[Entries]:
    """Read the entries of a ``coordinate`` file in their order, some at a time.

    Raises
    ------
    InputError
        A line is no entry, or the file has more or fewer than its size line says.
    """
    n_read = 0
    n_lines_above = header.line - 1
    for first, piece in read_pieces(path):
        line = first
        while line <= n_lines_above and piece:
            piece = piece.partition(b"\n")[2]
            line += 1
        if not n_read:
            # SciPy passes over more numbers in a line than it needs.
            _check_lines(path, header, line, b"\n".join(piece.split(b"\n", 100)[:100]))
        entries = _parsed_piece(path, header, line, piece)
        n_read += len(entries.rows)
        if n_read > header.n_entries:
            raise _count_error(path, header, "more")
        yield _with_mirrored(entries, header.symmetry)
    if n_read < header.n_entries:
        raise _count_error(path, header, f"only {n_read:,}")


def _count_error(path: Path, header: Header, found: str) -> InputError:
    line = header.line - 1
    return InputError(
        f"{path}, line {line}: the size line says {header.n_entries:,} entries, but "
        f"the file has {found}: get the file again."
    )


def _parsed_piece(path: Path, header: Header, line: int, piece: bytes) -> Entries:
    n_lines = piece.count(b"\n") + (not piece.endswith(b"\n") and piece != b"")
    try:
        entries = _parsed(header, piece, n_lines)
    except (ValueError, OverflowError):
        _check_lines(path, header, line, piece)
        kept = [text for text in piece.split(b"\n") if text.strip()]
        with worded(f"{path} cannot be read", REMEDY):
            entries = _parsed(header, b"\n".join(kept), len(kept))
    is_whole = header.field.endswith("integer")
    if is_whole and (entries.values % 1).any():
        _check_lines(path, header, line, piece)
    return entries


def _parsed(header: Header, piece: bytes, n_lines: int) -> Entries:
    """Parse lines by SciPy, as a file with no others.

    It would cut a number that is not whole in a file of integers.
    """
    field = "pattern" if header.field == "pattern" else "real"
    first = f"%%MatrixMarket matrix coordinate {field} general\n"
    sizes = f"{header.n_rows} {header.n_columns} {n_lines}\n"
    text = b"".join((first.encode(), sizes.encode(), piece))
    found = scipy.io.mmread(io.BytesIO(text), spmatrix=False)
    rows, columns = found.coords
    return Entries(rows, columns, found.data.astype(np.float64, copy=False))


def _check_lines(path: Path, header: Header, first: int, piece: bytes) -> None:
    """Raise InputError about the first line of a piece that is no entry."""
    n_words = 2 if header.field == "pattern" else 3
    is_whole = header.field.endswith("integer")
    for number, text in enumerate(piece.split(b"\n"), start=first):
        words = text.split()
        if not words:
            continue
        fault = ""
        if len(words) != n_words:
            fault = f"has {len(words)} numbers, not {n_words}"
        elif not (_is_place(words[0], header.n_rows)):
            fault = f"has a row outside 1 to {header.n_rows:,}"
        elif not (_is_place(words[1], header.n_columns)):
            fault = f"has a column outside 1 to {header.n_columns:,}"
        elif n_words == 3 and not _NUMBER.match(words[2]):
            fault = "has a value that is no number"
        elif n_words == 3 and is_whole and float(words[2]) % 1:
            fault = "has a value that is no integer, as line 1 says"
        if fault:
            line = shown(text.decode("utf-8", "replace").strip())
            raise InputError(f"{path}, line {number}: {line} {fault}: {REMEDY}.")


def _is_place(word: bytes, most: int) -> bool:
    return word.isdigit() and len(word) < 19 and 1 <= int(word) <= most


def _with_mirrored(entries: Entries, symmetry: str) -> Entries:
    """Return entries with those that a symmetric matrix does not list."""
    if symmetry == "general":
        return entries
    sign = -1.0 if symmetry == "skew-symmetric" else 1.0
    others = entries.taken(entries.rows != entries.columns)
    return Entries(
        rows=np.concatenate((entries.rows, others.columns)),
        columns=np.concatenate((entries.columns, others.rows)),
        values=np.concatenate((entries.values, sign * others.values)),
    )


def hold_entries(
    path: Path,
    header: Header,
    memory_limit: str | int | None,
    shape: tuple[int, int],
    placed: Callable[[Entries], Entries],
) -> Samples:
    """Read the entries of a file as sparse rows.

    Parameters
    ----------
    path : Path
    header : Header
        Of the file.
    memory_limit : str, int or None
    shape : tuple of int
        Of the rows.
    placed : callable
        Gives the entries of the rows for some of the file.
    """
    most = header.n_entries * (1 if header.symmetry == "general" else 2)
    held = HeldEntries(str(path), shape, most, memory_limit)
    for entries in read_entries(path, header):
        held.append(placed(entries))
    return held.samples()


# -- files -----------------------------------------------------------------------------


def open_matrix_market(
    path: str | os.PathLike[str], memory_limit: str | int | None = None
) -> Samples:
    """Open the rows of a Matrix Market file, plain or compressed.

    Parameters
    ----------
    path : path
    memory_limit : str, int or None, default=None
        Entries beyond it are in scratch files.

    Raises
    ------
    InputError
        The file is damaged, or has no real numbers.
    MemoryLimitError
        A dense matrix does not fit.
    """
    place = Path(path)
    header = read_header(place)
    if header.form == "array":
        return _read_array(place, header, memory_limit)
    shape = header.n_rows, header.n_columns
    return hold_entries(place, header, memory_limit, shape, lambda entries: entries)


def _read_array(path: Path, header: Header, memory_limit: str | int | None) -> Samples:
    """Read a dense matrix, which is written by columns, so that it is read whole."""
    n_bytes = 8 * header.n_rows * header.n_columns
    check_limit(str(path), 2 * n_bytes, memory_limit)
    remedy = "get the file again"
    with (
        open_text(path) as (_, text),
        worded(f"{path} cannot be read", remedy, ValueError, OverflowError),
    ):
        rows = np.ascontiguousarray(scipy.io.mmread(text))
    samples = in_memory(rows, str(path))
    samples.held_bytes = rows.nbytes
    return samples
