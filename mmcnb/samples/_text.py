"""Text files, plain or compressed, as pieces of whole lines."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mmcnb._progress import progress
from mmcnb.errors import InputError

PIECE_BYTES = 2**21
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def plain_name(path: Path) -> str:
    """File name in lower case without the ending of its compression."""
    return path.stem.lower() if path.suffix.lower() in _OPENERS else path.name.lower()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one sentence."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} cannot be decompressed ({error}): get the file again.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason}): convert its encoding.") from error
    except OSError as error:
        if error.errno is None:  # bz2 reports damaged data so
            raise InputError(f"{path} cannot be decompressed ({error}): get the file again.") from error
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


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
