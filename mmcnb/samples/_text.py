"""Text files, plain or compressed: LIBSVM text and CSV tables, read piece by piece.

A line of LIBSVM text is ``label index:value index:value ...``; a CSV table has an optional header and an
optional column of class labels.
"""

import bz2
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from mmcnb._progress import progress
from mmcnb.errors import InputError
from mmcnb.samples.matrix import CSRBlock, all_finite

PIECE_BYTES = 2**21  # text parsed at once: small beside the memory that conversion needs anyway
CELLS_AT_ONCE = 2**16  # cells of a CSV table held as Python strings
LARGEST_INDEX = 2**31 - 2  # with it the number of columns is still an int32, as SciPy's indices are
_LINE = re.compile(rb"\s*[-+.\d]\S*(\s+(qid:\d+|\d+:\S+))*\s*(#.*)?$")
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

Row = tuple[int, list[str]]  # number of its line, from 1, and its cells


def plain_name(path: Path) -> str:
    """File name in lower case without the ending of its compression."""
    return path.stem.lower() if path.suffix.lower() in _OPENERS else path.name.lower()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason}): convert its encoding.") from error
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # gzip and bz2 report damage without
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        raise InputError(f"{path} cannot be decompressed ({error}): get the file again.") from error


@contextmanager
def opened(path: Path, show_progress: bool | None = None) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    """Open a file's text as bytes, with a function that brings the progress bar up to date."""
    shown = 0

    def tell() -> None:
        nonlocal shown
        if raw.tell() != shown:
            bar.update(raw.tell() - shown)
            shown = raw.tell()

    with reading(path), path.open("rb") as raw:
        opener, total = _OPENERS.get(path.suffix.lower()), path.stat().st_size
        with (
            progress(total, f"reading {path.name}", "B", show_progress) as bar,
            opener(raw, "rb") if opener else raw as text,
        ):
            yield text, tell


def read_pieces(path: Path, show_progress: bool | None = None) -> Iterator[tuple[int, bytes]]:
    """Read a text file in pieces of whole lines.

    Parameters
    ----------
    path : Path
        Plain, .gz, .bz2 or .xz.
    show_progress : bool or None, default=None
        None shows a bar on a terminal.

    Yields
    ------
    line, piece : int, bytes
        Number of the piece's first line, from 1, and its lines.
    """
    with opened(path, show_progress) as (text, tell):
        line, rest = 1, b""
        while data := text.read(PIECE_BYTES):
            tell()
            end = data.rfind(b"\n") + 1
            if not end:
                rest += data
                continue
            piece = rest + data[:end]
            rest = data[end:]
            yield line, piece
            line += piece.count(b"\n")
        if rest:
            yield line, rest


def first_line(path: Path) -> bytes:
    """First line with something other than a comment on it; empty if none comes soon."""
    with opened(path, show_progress=False) as (text, _):
        lines = text.read(2**16).splitlines()
    return next((line for line in lines if line.split(b"#")[0].strip()), b"")


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
    if not _is_whole(fields[0]):
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
        if value is None or not _is_finite(value, dtype):
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


def _number(text: bytes | str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_whole(text: bytes | str) -> bool:
    value = _number(text)
    return value is not None and value.is_integer()


def _is_finite(value: float, dtype: np.dtype) -> bool:
    """Whether a number is finite in a type that may be narrower than its own."""
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float64(value).astype(dtype)))


def _show(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


class CSVTable:
    """Rows of a CSV or TSV file.

    The first line is a header when a cell outside the label column is not a number. Class labels stay as
    they are where the first one is a whole number. Otherwise they are names, numbered in the order of their
    first appearance.

    Parameters
    ----------
    path : Path
        Plain, .gz, .bz2 or .xz; a tab divides the cells of a .tsv file, a comma those of others.
    dtype : dtype
        float32 or float64.
    label_column : str, int or None, default=None
        Name in the header, or number from 0 (negative from the end), of the column of labels.
    show_progress : bool or None, default=None

    Attributes
    ----------
    n_features : int
    class_names : list of str or None
        Names of the labels read so far; None where labels are numbers.
    """

    def __init__(
        self, path: Path, dtype: np.dtype, label_column: str | int | None, show_progress: bool | None = None
    ) -> None:
        self.path, self._dtype, self._show_progress = path, dtype, show_progress
        self._delimiter = "\t" if plain_name(path).endswith(".tsv") else ","
        head = list(islice(self._rows(show_progress=False), 2))
        if not head:
            raise InputError(f"{path} has no rows: give it at least one.")
        top = head[0][1]
        self._width = len(top)
        self._label = self._label_number(label_column, top)
        numbers = all(_number(cell) is not None for column, cell in enumerate(top) if column != self._label)
        self._has_header = isinstance(label_column, str) or not numbers
        self._header = top if self._has_header else None
        self.n_features = self._width - (self._label is not None)
        body = head[self._has_header :]
        if not body:
            raise InputError(f"{path} has a header and no rows: give it at least one.")
        first, label = body[0][1], self._label
        named = label is not None and len(first) == self._width and not _is_whole(first[label])
        self.class_names: list[str] | None = [] if named else None
        self._codes: dict[str, int] = {}

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Rows and class labels, some at a time."""
        rows = self._rows(self._show_progress)
        if self._has_header:
            next(rows)
        at_once = max(1, CELLS_AT_ONCE // self._width)
        while part := list(islice(rows, at_once)):
            self._check_widths(part)
            labels = None if self._label is None else self._labels(part)
            yield self._numbers(part), labels

    def _rows(self, show_progress: bool | None) -> Iterator[Row]:
        with (
            opened(self.path, show_progress) as (data, tell),
            io.TextIOWrapper(data, encoding="utf-8-sig", newline="") as text,
        ):
            lines = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True)
            try:
                for cells in lines:
                    if cells and (len(cells) > 1 or cells[0].strip()):
                        yield lines.line_num, cells
                    tell()
            except csv.Error as error:
                raise InputError(f"{self.path}, line {lines.line_num}: {error}; correct it.") from error

    def _label_number(self, label_column: str | int | None, first: list[str]) -> int | None:
        if label_column is None:
            return None
        names = [cell.strip() for cell in first]
        if isinstance(label_column, str):
            if label_column in names:
                return names.index(label_column)
            raise InputError(
                f"{self.path}, line 1: no column is named {label_column!r} among {', '.join(names[:10])}: "
                "name one of these, or give its number from 0 (--label-column)."
            )
        if not -self._width <= label_column < self._width:
            raise InputError(
                f"{self.path}: there is no column {label_column} among {self._width}: "
                "count from 0, or from -1 backwards (--label-column)."
            )
        return label_column % self._width

    def _check_widths(self, part: list[Row]) -> None:
        for line, cells in part:
            if len(cells) != self._width:
                raise InputError(
                    f"{self.path}, line {line}: {len(cells)} cells where the first line has {self._width}: "
                    "correct or remove the line."
                )

    def _labels(self, part: list[Row]) -> np.ndarray:
        column = self._label
        assert column is not None
        texts = [cells[column].strip() for _, cells in part]
        if self.class_names is None:
            for (line, _), text in zip(part, texts, strict=True):
                if not _is_whole(text):
                    raise InputError(
                        f"{self.path}, line {line}: label {text!r} is not a whole number as those before: "
                        "correct it, or use names in all lines."
                    )
            return np.array([int(float(text)) for text in texts], dtype=np.int64)
        for text in texts:
            if text not in self._codes:
                self._codes[text] = len(self._codes)
                self.class_names.append(text)
        return np.array([self._codes[text] for text in texts], dtype=np.int64)

    def _numbers(self, part: list[Row]) -> np.ndarray:
        label = self._label
        rows = (cells if label is None else cells[:label] + cells[label + 1 :] for _, cells in part)
        try:
            values = np.fromiter(map(float, chain.from_iterable(rows)), np.float64)
        except ValueError:
            self._raise_fault(part)
        with np.errstate(over="ignore"):
            block = values.astype(self._dtype, copy=False).reshape(len(part), self.n_features)
        if not np.isfinite(block).all():
            self._raise_fault(part)
        return block

    def _raise_fault(self, part: list[Row]) -> None:
        for line, cells in part:
            for column, cell in enumerate(cells):
                value = _number(cell)
                if column == self._label or (value is not None and _is_finite(value, self._dtype)):
                    continue
                name = f" ({self._header[column].strip()!r})" if self._header else ""
                what = "not a number" if value is None else "not a finite number"
                raise InputError(
                    f"{self.path}, line {line}, column {column}{name}: {cell!r} is {what} ({self._dtype}): "
                    "correct it, drop the row, or name the column of class labels with --label-column."
                )
