"""Read plain or compressed text in pieces of whole lines, and parse LIBSVM text.

A line of LIBSVM text is ``label index:value index:value ...``.
"""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from mmcnb._config import format_bytes
from mmcnb._progress import progress
from mmcnb.errors import InputError, one_line, worded
from mmcnb.samples.files import open_file
from mmcnb.samples.matrix import CSRBlock, all_finite
from mmcnb.samples.npy import Rows
from mmcnb.samples.transcode import UTF8Reader

# Bytes of text that are parsed at a time, a small part of a conversion's memory.
PIECE_BYTES = 2**21
# Maximum number of bytes in a line, or in a quoted cell with line breaks.
LONGEST_LINE = 2**26
# The number of columns is this index + 1, and must fit into an int32 index of SciPy.
LARGEST_INDEX = 2**31 - 2
_LINE = re.compile(rb"\s*[-+.\d]\S*(\s+(qid:\d+|\d+:\S+))*\s*(#.*)?$")
_SEVERAL_LABELS = re.compile(rb"\s*\d+(,\d+)+(\s+\d+:[-+.\deE]+){2,}\s*(#.*)?$")


def _open_zstd(raw: IO[bytes]) -> Any:
    import pyarrow

    return pyarrow.CompressedInputStream(raw, "zstd")


_OPENERS: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
# First bytes of a compressed file, by its usual file name extension.
_PACKED = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\0"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
}


def plain_name(path: Path) -> str:
    """Return the file name in lower case, without a compression extension like .gz."""
    return path.stem.lower() if path.suffix.lower() in _OPENERS else path.name.lower()


def compression(path: Path) -> str | None:
    """Return the usual extension of a compressed file; None if it is not compressed.

    The first bytes decide, because some programs unpack a file and keep its name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mmcnb.samples.text import compression
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.csv.gz")
    ...     _ = path.write_text("a,b\\n1,2\\n")
    ...     compression(path) is None
    True
    """
    with open_file(path) as file:
        head = file.read(512)
    for ending, first_bytes in _PACKED.items():
        if first_bytes.match(head):
            return ending
    ending = path.suffix.lower()
    # A file that has the extension of a compressed file, but not these first bytes, is
    # damaged unless it contains text.
    is_text = b"\n" in head and b"\0" not in head and not _is_binary(head)
    return ending if ending in _OPENERS and not is_text else None


def _is_binary(head: bytes) -> bool:
    """Return whether the first bytes of a text are not UTF-8.

    The last character may be incomplete.
    """
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3
    return False


@contextmanager
def open_text(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file, and its text after decompression.

    Raise InputError if the file cannot be opened, or read in the ``with`` block.
    """
    opener = _OPENERS.get(compression(path) or "", nullcontext)
    known = EOFError, zlib.error, lzma.LZMAError, OSError
    damage = worded(f"{path} cannot be read", "get the file again", *known)
    with damage, open_file(path) as file, opener(file) as text:
        yield file, text


def first_bytes(path: Path) -> bytes:
    """Return the first 64 KiB of a text file after decompression."""
    with open_text(path) as (_, text):
        return text.read(2**16)


def count_byte(text: bytes | memoryview, byte: bytes) -> int:
    """Count the occurrences of a byte in a text.

    This is faster than ``bytes.count``, because it uses vector instructions.

    Examples
    --------
    >>> from mmcnb.samples.text import count_byte
    >>> count_byte(b"1,2\\n3,4\\n", b"\\n")
    2
    """
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(byte)))


def first_line_of_windows(path: Path) -> int:
    """Return the number of the first line that is not UTF-8; 0 if all lines are UTF-8.

    Raises
    ------
    InputError
        If most non-ASCII characters are valid UTF-8, because the text is then damaged
        UTF-8 instead of text in another encoding; or if the file is not text.
    """
    first_line = 0
    n_utf8 = 0
    n_others = 0
    for line, piece in read_pieces(path, show_progress=False):
        text = piece.decode("utf-8", "replace")
        n_wrong = text.count("\ufffd")
        # A non-ASCII character has two to four bytes in UTF-8, and U+FFFD has three.
        n_utf8 += (len(text.encode()) - len(text) - 2 * n_wrong) // 2
        n_others += n_wrong
        if n_wrong and not first_line:
            place = text.find("\ufffd")
            first_line = line + text.count("\n", 0, place)
        if n_wrong and b"\0" in piece:
            raise InputError(
                f"{path}, line {first_line}: this is neither text nor UTF-16: "
                "save the table as a CSV file."
            )
    if n_utf8 > n_others:
        raise InputError(
            f"{path}, line {first_line}: this is not UTF-8 text, but other lines are: "
            "correct it, or pass another encoding (--encoding cp1252)."
        )
    return first_line


def read_pieces(
    path: Path,
    show_progress: bool | None = None,
    quoted: bool = False,
    codec: str | None = None,
    least_lines: int = 1,
) -> Iterator[tuple[int, bytes]]:
    """Read a text file in pieces of whole lines.

    Parameters
    ----------
    path : Path
        The file: plain, .gz, .bz2, .xz or .zst.
    show_progress : bool or None, default=None
        Whether to show a progress bar. None shows it on a terminal.
    quoted : bool, default=False
        Whether cells in double quotes may contain line breaks; pieces do not end inside
        such a cell.
    codec : str or None, default=None
        Python's name for the encoding, from which the text is converted to UTF-8
        without a byte order mark. None yields the bytes of the file unchanged.
    least_lines : int, default=1
        Minimum number of lines in a piece, unless the piece exceeds 16 * PIECE_BYTES
        bytes.

    Yields
    ------
    line, piece : int, bytes
        Number of the first line of the piece, from 1, and the lines.

    Raises
    ------
    InputError
        If no line ends within `LONGEST_LINE` bytes, for example after an unclosed
        quote.
    """
    size = path.stat().st_size
    line = 1
    rest = b""
    shown = 0
    with (
        open_text(path) as (file, text),
        progress(size, f"reading {path.name}", "B", show_progress) as bar,
    ):
        source = text if codec is None else UTF8Reader(text, codec, str(path))
        while data := source.read(PIECE_BYTES):
            bar.update(file.tell() - shown)
            shown = file.tell()
            rest += data
            is_long = len(rest) >= 16 * PIECE_BYTES
            if not is_long and count_byte(rest, b"\n") < least_lines:
                continue
            end = _end_of_lines(rest, quoted)
            if end:
                lines = rest[:end]
                yield line, lines
                line += count_byte(lines, b"\n")
                rest = rest[end:]
            elif len(rest) > LONGEST_LINE:
                raise InputError(
                    f"{path}, line {line}: no line ends in the next "
                    f"{format_bytes(len(rest))}: check that it is text, and that each "
                    "quote in it is closed."
                )
        if rest:
            yield line, rest


def _end_of_lines(text: bytes, quoted: bool) -> int:
    """Return the end of the last complete line whose end is not inside quotes."""
    end = text.rfind(b"\n") + 1
    view = memoryview(text)
    is_open = quoted and count_byte(view[:end], b'"') % 2 == 1
    while end and is_open:
        before = text.rfind(b"\n", 0, end - 1) + 1
        is_open ^= count_byte(view[before:end], b'"') % 2 == 1
        end = before
    return end


def looks_like_libsvm(path: Path) -> bool:
    """Return whether the first line that is not a comment could be LIBSVM text.

    Several labels, as in ``2,5 1:0.5 3:1``, must be followed by at least two
    ``index:value`` pairs, because a single pair could be a time of day after a number
    with a decimal comma.
    """
    with open_text(path) as (_, text):
        lines = text.read(2**16).splitlines()
    line = next((line for line in lines if line.split(b"#")[0].strip()), b"")
    if b"," in line:
        return bool(_SEVERAL_LABELS.match(line))
    return bool(_LINE.match(line))


class LabelsError(InputError):
    """Error for LIBSVM text with missing, multiple or non-integer labels."""


def read_libsvm(
    path: Path,
    dtype: np.dtype,
    zero_based: bool,
    n_features: int | None,
    show_progress: bool | None,
    with_labels: bool = True,
) -> Iterator[Rows]:
    """Read LIBSVM text, piece by piece.

    Blank lines and ``#`` comments are skipped. Column indices must increase within a
    line, as LIBSVM requires. If labels are not read and the first row has no label,
    blank lines are rows of zeros.

    Parameters
    ----------
    path : Path
        The file: plain, .gz, .bz2, .xz or .zst.
    dtype : dtype
        Type of the values: float32 or float64.
    zero_based : bool
        Whether columns are numbered from 0 instead of 1.
    n_features : int or None
        Number of columns; InputError is raised for a larger index. None allows any
        index.
    show_progress : bool or None
        Whether to show a progress bar. None shows it on a terminal.
    with_labels : bool, default=True
        Whether to read labels. False ignores the text before the first ``index:value``
        pair of a line.

    Yields
    ------
    Rows
        The rows of a piece of the text.

    Raises
    ------
    LabelsError
        If a line has several labels, no label, or a label that is not an integer.
    InputError
        If a line is malformed; the message names the line number.
    """
    parsed = partial(
        _parsed,
        dtype=dtype,
        zero_based=zero_based,
        most=n_features or LARGEST_INDEX + 1,
    )
    has_labels: bool | None = None  # None until a line is neither blank nor a comment
    for line, piece in read_pieces(path, show_progress):
        text = piece
        if not with_labels:
            if has_labels is None:
                has_labels = _has_labels(piece)
            text = _without_labels(piece, blank_is_row=has_labels is False)
        try:
            rows = parsed(text)
        except (ValueError, OverflowError) as error:
            raise _fault_of_line(path, line, text, parsed) from error
        if rows.y is not None and len(rows.y):
            yield rows if with_labels else rows._replace(y=None)


def _fault_of_line(
    path: Path, first: int, piece: bytes, parsed: Callable[[bytes], Rows]
) -> InputError:
    """Return the error for the first line in a piece of text that fails to parse."""
    for number, text in enumerate(piece.split(b"\n"), start=first):
        fault = _fault(text, parsed)
        if not fault:
            continue
        line = f"{path}, line {number}"
        label = _label_of(text)
        if label:
            fault = _fault(_without_labels(text), parsed)
            if not fault:
                return LabelsError(f"{line} has {label}")
        return InputError(
            f"{line} is not LIBSVM text ({fault}): write an integer label, "
            "then index:value pairs with increasing indices."
        )
    return InputError(f"{path} is not LIBSVM text: get the file again.")


def _fault(text: bytes, parsed: Callable[[bytes], Rows]) -> str:
    """Return the reason why a text fails to parse, or "" if it can be parsed."""
    try:
        parsed(text)
    except (ValueError, OverflowError) as error:
        return one_line(error)
    return ""


def _label_of(line: bytes) -> str:
    """Describe the invalid label of a line.

    The result is "" if the line does not begin with numbers.
    """
    label = line.split(maxsplit=1)[0].decode("utf-8", "replace")
    if _PAIR.match(label):
        return "no label"
    if _NUMBERS.match(label):
        kind = "several labels" if "," in label else "a label that is not an integer"
        return f"{kind} ({label})"
    return ""


def _has_labels(text: bytes) -> bool | None:
    """Return whether the first row of a text has a label, or None if it has no rows."""
    for line in text.splitlines():
        words = line.split(b"#")[0].split()
        if words:
            return _PAIR.match(words[0].decode("utf-8", "replace")) is None
    return None


def _without_labels(text: bytes, blank_is_row: bool = False) -> bytes:
    """Return LIBSVM text in which the label of each line is 0.

    If ``blank_is_row``, the label 0 is also written in blank lines.
    """
    text = _NO_LABEL.sub(b"0 ", _LABEL.sub(b"0", text))
    return _BLANK.sub(b"0", text) if blank_is_row else text


_PAIR = re.compile(r"\d+:")
_NUMBERS = re.compile(r"[-+.\deE]+(,[-+.\deE]+)*$")
# What may precede the pairs of a line: a word without a colon, or nothing.
_LABEL = re.compile(rb"^[ \t]*[^\s:#]+(?=[ \t\r]|$)", re.MULTILINE)
_NO_LABEL = re.compile(rb"^[ \t]*(?=\d+:)", re.MULTILINE)
_BLANK = re.compile(rb"^[ \t]*(?=\r?\n)", re.MULTILINE)


def _parsed(text: bytes, dtype: np.dtype, zero_based: bool, most: int) -> Rows:
    """Parse LIBSVM text; raise ValueError with the reason if the text is invalid."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(io.BytesIO(text), dtype=dtype, zero_based=True)
    indices = X.indices if zero_based else X.indices - 1
    width = int(indices.max(initial=-1)) + 1
    with np.errstate(invalid="ignore"):
        labels = y.astype(np.int64)
    faults = {
        "a number has an underscore": _UNDERSCORE.search(text),
        "its label is not an integer": (labels != y).any(),
        f"a value is not a finite number of {dtype}": not all_finite(X.data),
        "index 0 needs --zero-based (zero_based=True)": indices.min(initial=0) < 0,
        f"it has more than {most:,} columns": width > most,
    }
    for fault, is_present in faults.items():
        if is_present:
            raise ValueError(fault)
    return Rows(CSRBlock(X.data, indices, X.indptr.astype(np.int64), width), labels)


_UNDERSCORE = re.compile(rb"^[^#\n]*_", re.MULTILINE)  # Python reads 1_000 as 1000
