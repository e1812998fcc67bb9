"""Read Matrix Market files, which are sparse (``coordinate``) or dense (``array``)."""

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
from mmcnb.samples.entries import Entries, HeldEntries
from mmcnb.samples.reading import check_reading
from mmcnb.samples.text import open_text, read_pieces

BANNER = "%%MatrixMarket matrix coordinate real general"
REMEDY = "get the file again, or write it with scipy.io.mmwrite"
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
HEAD_BYTES = 2**20  # the size line and all comments above it must fit into these bytes
OF_NUMBERS = b"0123456789 \t\r\n+-.eEnNaAiIfF"
_NUMBER = re.compile(rb"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf)$", re.IGNORECASE)


class Header(NamedTuple):
    """The header of a Matrix Market file: its banner and its size line.

    Attributes
    ----------
    form : {"coordinate", "array"}
        Layout of the matrix: sparse ("coordinate") or dense ("array").
    field : {"real", "double", "integer", "unsigned-integer", "pattern"}
        Type of the values. A "pattern" file lists no values, and its entries are 1.
    symmetry : {"general", "symmetric", "skew-symmetric"}
        Symmetry of the matrix. Unless it is "general", the file lists no entries above
        the diagonal.
    n_rows, n_columns : int
        Shape of the matrix.
    n_entries : int
        Number of values in the file, which has one line for each of them.
    line : int
        One-based number of the line below the size line.
    """

    form: str
    field: str
    symmetry: str
    n_rows: int
    n_columns: int
    n_entries: int
    line: int

    @property
    def has_integers(self) -> bool:
        """Whether all values are integers."""
        return self.field.endswith("integer")


def read_header(path: Path) -> Header:
    """Read the header of a Matrix Market file.

    Raises
    ------
    InputError
        If the header does not describe a matrix of real numbers.
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
            "write its real part, for example with scipy.io.mmwrite(path, X.real)."
        )
    if not is_known or field not in FIELDS or (form, field) == ("array", "pattern"):
        raise InputError(
            f"{path}, line 1: the matrix type '{form} {field} {symmetry}' is unknown: "
            f"{REMEDY}."
        )
    for number, line in enumerate(lines[1:], start=2):
        if line.strip() and not line.startswith(b"%"):
            sizes = _sizes(path, number, line, 3 if form == "coordinate" else 2)
            n_rows, n_columns = sizes[:2]
            n_entries = _n_values(symmetry, n_rows, n_columns)
            if form == "coordinate":
                n_entries = sizes[2]
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
            f"{path}, line {number}: {text} must give the numbers of {what}: {REMEDY}."
        )
    return [int(word) for word in words]


def _n_values(symmetry: str, n_rows: int, n_columns: int) -> int:
    """Return the number of values that the file of a dense matrix lists."""
    if symmetry == "general":
        return n_rows * n_columns
    if symmetry == "symmetric":
        return n_rows * (n_rows + 1) // 2
    return n_rows * (n_rows - 1) // 2


def _check_square(
    path: Path, number: int, symmetry: str, n_rows: int, n_columns: int
) -> None:
    if symmetry != "general" and n_rows != n_columns:
        raise InputError(
            f"{path}, line {number}: a {symmetry} matrix has as many rows as columns, "
            f"not {n_rows:,} and {n_columns:,}: {REMEDY}."
        )


# -- lines below the size line ---------------------------------------------------------


class Lines(NamedTuple):
    """Entries parsed from consecutive lines of a file.

    Attributes
    ----------
    places : tuple of ndarray of int
        Zero-based row and column indices of the entries; empty for a dense matrix.
    values : ndarray of float64
        Values of the entries.
    """

    places: tuple[np.ndarray, ...]
    values: np.ndarray


def read_lines(path: Path, header: Header) -> Iterator[Lines]:
    """Read the entries in the lines below the size line, in pieces of many lines.

    Raises
    ------
    InputError
        If a line is malformed, or if the number of lines differs from the number that
        the size line announces.
    """
    n_read = 0
    for first, piece in read_pieces(path):
        line = first
        while line < header.line and piece:
            piece = piece.partition(b"\n")[2]
            line += 1
        # SciPy crashes on an empty piece, and if the last line has no line feed.
        if not piece.strip():
            continue
        if not piece.endswith(b"\n"):
            piece += b"\n"
        if not n_read:
            # SciPy ignores additional numbers in a line, so the first 100 lines of the
            # file are checked here.
            _check_lines(path, header, line, b"\n".join(piece.split(b"\n", 100)[:100]))
        lines = _parsed_piece(path, header, line, piece)
        n_read += len(lines.values)
        if n_read > header.n_entries:
            raise _count_error(path, header, "more")
        yield lines
    if n_read < header.n_entries:
        raise _count_error(path, header, f"only {n_read:,}")


def _count_error(path: Path, header: Header, found: str) -> InputError:
    line = header.line - 1
    return InputError(
        f"{path}, line {line}: the size line announces {header.n_entries:,} values, "
        f"but the file has {found}: get the file again."
    )


def _parsed_piece(path: Path, header: Header, line: int, piece: bytes) -> Lines:
    try:
        # SciPy crashes on some characters that are not part of numbers.
        if piece.translate(None, OF_NUMBERS):
            raise ValueError
        lines = _parsed(header, piece, piece.count(b"\n"))
    except (ValueError, OverflowError):
        _check_lines(path, header, line, piece)
        kept = [b" ".join(text.split()) for text in piece.split(b"\n")]
        kept = [text + b"\n" for text in kept if text]
        with worded(f"{path} cannot be read", REMEDY):
            lines = _parsed(header, b"".join(kept), len(kept))
    if header.has_integers and (np.rint(lines.values) != lines.values).any():
        _check_lines(path, header, line, piece)
    return lines


def _parsed(header: Header, piece: bytes, n_lines: int) -> Lines:
    """Parse a piece of text that consists of ``n_lines`` lines with SciPy.

    Integers are parsed as real numbers, because SciPy would truncate a value such as
    1.5 in a file of integers; the caller checks that they are integers.
    """
    field = "pattern" if header.field == "pattern" else "real"
    sizes = f"{n_lines} 1"
    if header.form == "coordinate":
        sizes = f"{header.n_rows} {header.n_columns} {n_lines}"
    above = f"%%MatrixMarket matrix {header.form} {field} general\n{sizes}\n"
    source = io.BytesIO(b"".join((above.encode(), piece)))
    found = scipy.io.mmread(source, spmatrix=False)
    if header.form == "array":
        return Lines((), found.ravel())
    return Lines(found.coords, found.data.astype(np.float64, copy=False))


def _check_lines(path: Path, header: Header, first: int, piece: bytes) -> None:
    """Raise InputError for the first malformed line in a piece of text, if any."""
    for number, text in enumerate(piece.split(b"\n"), start=first):
        words = text.split()
        fault = _fault(words, header) if words else ""
        if fault:
            line = shown(text.decode("utf-8", "replace").strip())
            raise InputError(f"{path}, line {number}: {line} {fault}: {REMEDY}.")


def _fault(words: list[bytes], header: Header) -> str:
    """Return what is wrong with a line, given its words, or "" if the line is valid."""
    n_places = 2 if header.form == "coordinate" else 0
    n_words = n_places + (header.field != "pattern")
    if len(words) != n_words:
        return f"has {len(words)} numbers, not {n_words}"
    if n_places and not _is_place(words[0], header.n_rows):
        return f"has a row outside 1 to {header.n_rows:,}"
    if n_places and not _is_place(words[1], header.n_columns):
        return f"has a column outside 1 to {header.n_columns:,}"
    for value in words[n_places:]:
        if not _NUMBER.match(value):
            return "has a value that is not a number"
        if header.has_integers and float(value) % 1:
            return "has a value that is not an integer, but line 1 declares integers"
    return ""


def _is_place(word: bytes, most: int) -> bool:
    return word.isdigit() and len(word) < 19 and 1 <= int(word) <= most


# -- sparse rows -----------------------------------------------------------------------


def _with_mirrored(entries: Entries, symmetry: str) -> Entries:
    """Return all entries of a matrix, given the entries in its file.

    The file of a symmetric matrix omits the entries above the diagonal.
    """
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
        The file.
    header : Header
        Header of the file.
    memory_limit : str, int or None
        Limit on the resident memory; entries that do not fit are written to scratch
        files. None means the same as in `open_samples`.
    shape : tuple of int
        Number of rows and columns of the result.
    placed : callable
        Function that converts entries of the file to entries of the result, for example
        by swapping rows and columns.
    """
    most = header.n_entries * (1 if header.symmetry == "general" else 2)
    held = HeldEntries(str(path), shape, most, memory_limit)
    for lines in read_lines(path, header):
        rows, columns = lines.places
        entries = Entries(rows, columns, lines.values)
        held.append(placed(_with_mirrored(entries, header.symmetry)))
    return held.samples()


# -- files -----------------------------------------------------------------------------


def open_matrix_market(
    path: str | os.PathLike[str], memory_limit: str | int | None = None
) -> Samples:
    """Open the rows of a Matrix Market file, plain or compressed.

    Parameters
    ----------
    path : path
        The file.
    memory_limit : str, int or None, default=None
        Limit on the resident memory; entries that do not fit are written to scratch
        files. None means the same as in `open_samples`.

    Raises
    ------
    InputError
        If the file is damaged, or its values are not real numbers.
    MemoryLimitError
        If a dense matrix does not fit into the limit.
    """
    place = Path(path)
    header = read_header(place)
    if header.form == "array":
        return _read_array(place, header, memory_limit)
    shape = header.n_rows, header.n_columns
    return hold_entries(place, header, memory_limit, shape, lambda entries: entries)


def _read_array(path: Path, header: Header, memory_limit: str | int | None) -> Samples:
    """Read a dense matrix in full, because the file lists it column by column."""
    n_bytes = 8 * header.n_rows * header.n_columns
    check_reading(str(path), 2 * n_bytes, memory_limit)
    values = np.empty(header.n_entries)
    n_read = 0
    for lines in read_lines(path, header):
        n_lines = len(lines.values)
        values[n_read : n_read + n_lines] = lines.values
        n_read += n_lines
    rows = _filled(values, header)
    samples = in_memory(rows, str(path))
    samples.held_bytes = rows.nbytes
    return samples


def _filled(values: np.ndarray, header: Header) -> np.ndarray:
    """Return a dense matrix, given its values as listed in the file, column by column.

    The file of a symmetric matrix lists only the values on and below the diagonal.
    """
    shape = header.n_rows, header.n_columns
    if header.symmetry == "general":
        return np.ascontiguousarray(values.reshape(shape[::-1]).T)
    is_skew = header.symmetry == "skew-symmetric"
    rows = np.zeros(shape)
    start = 0
    for column in range(shape[1]):
        first = column + is_skew
        below = values[start : start + shape[0] - first]
        rows[column, first:] = -below if is_skew else below
        rows[first:, column] = below
        start += len(below)
    return rows
