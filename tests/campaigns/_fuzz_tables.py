"""Tables of text with columns of every kind, quotes and encodings, sound and spoiled."""

import csv
import datetime
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mmcnb
from mmcnb.stores import convert
from tests.campaigns._fuzz_texts import written
from tests.campaigns._judge import judged, one_of, refusal, same_rows

TEXTS = (
    "a",
    "b c",
    "x,y",
    "x;y",
    'he said "no"',
    '"',
    "line\nbreak",
    "naïve",
    "日本語",
    "İ",
    "z\u0301",
    "a'b",
    "#tag",
    "tab\there",
    "0x-",
    "true?",
    "e5x",
    "\u200bz",
    "\U0001d518",
    "|",
    "=1+1",
    "\\n",
    "a" * 300,
)
NAMES = ("c", "naïve", 'q"', "a,b", "two words", "日", "x;y")
GAPS = ("NA", "?", "-", "None", "null", "nan")
NO_NUMBERS = ("x1", "1.2.3.4x", "½", "--1", "0x1F", "٣", "1e5e5", "2020-01-01", "yes")
DECIMALS = {",": (".",), ";": (".", ","), "\t": (".", ","), "|": (".", ",")}


class Column(NamedTuple):
    """A column of known values: its cells as text, and the numbers that it becomes by their names."""

    kind: str
    cells: list[str]
    numbers: dict[str, np.ndarray]


def filled(numbers: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """Numbers with the median of the others in place of gaps."""
    return np.where(gaps, np.median(numbers[~gaps]), numbers)


def number_column(rng: np.random.Generator, gaps: np.ndarray, decimal: str) -> Column:
    eighths = np.round(rng.normal(size=gaps.size) * 10.0 ** int(rng.integers(0, 6)))
    numbers = eighths / 8 + 0.0  # as exact in float32 as in few digits, and no -0
    cells = [written(value, rng).replace(".", decimal) for value in numbers]
    return Column("number", cells, {"": filled(numbers, gaps)})


def flag_column(rng: np.random.Generator, gaps: np.ndarray, decimal: str) -> Column:
    flags = rng.integers(0, 2, gaps.size)
    words = one_of(rng, (("false", "true"), ("False", "True"), ("FALSE", "TRUE")))
    return Column(
        "flag",
        [words[flag] for flag in flags],
        {"": filled(flags.astype(np.float64), gaps)},
    )


def date_column(rng: np.random.Generator, gaps: np.ndarray, decimal: str) -> Column:
    form = one_of(
        rng, ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")
    )
    first = datetime.datetime(1970, 1, 1)
    texts = [
        (first + datetime.timedelta(seconds=int(rng.integers(-1e9, 4e9)))).strftime(
            form
        )
        for _ in gaps
    ]
    numbers = [
        (datetime.datetime.strptime(text, form) - first).total_seconds()
        for text in texts
    ]
    return Column("date", texts, {"": filled(np.array(numbers), gaps)})


def text_column(rng: np.random.Generator, gaps: np.ndarray, decimal: str) -> Column:
    pool = rng.choice(len(TEXTS), int(rng.integers(1, 8)), replace=False)
    cells = [TEXTS[one_of(rng, pool)] for _ in gaps]
    known = ["" if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
    numbers = {
        f"_{text or 'missing'}": np.array([one == text for one in known])
        for text in sorted({*known})
    }
    return Column(
        "text", cells, {name: one.astype(np.float64) for name, one in numbers.items()}
    )


KINDS: tuple[Callable[[np.random.Generator, np.ndarray, str], Column], ...] = (
    number_column,
    flag_column,
    date_column,
    text_column,
    text_column,
)


def table(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A table of a few columns of any kinds, as text; perhaps a cell, a line or a byte of it is spoiled."""
    n = int(rng.integers(12, 40))
    d = int(rng.integers(1, 6))
    delimiter = one_of(rng, list(DECIMALS))
    decimal = one_of(rng, DECIMALS[delimiter])
    columns = []
    names = [f"{one_of(rng, NAMES)}{k}" for k in range(d)]
    for _ in range(d):
        gaps = rng.random(n) < one_of(rng, (0.0, 0.1))
        column = one_of(rng, KINDS)(rng, gaps & (np.arange(n) > 4), decimal)
        marks = GAPS if d == 1 else (*GAPS, "", "  ")
        for row in np.flatnonzero(gaps & (np.arange(n) > 4)):
            column.cells[row] = one_of(rng, marks)
        columns.append(column)
    lines = [
        list(cells) for cells in zip(*(column.cells for column in columns), strict=True)
    ]
    what, must = (
        spoiled(rng, lines, columns) if rng.random() < 0.4 else ("sound", False)
    )
    path = folder / ("in.csv.gz" if rng.random() < 0.1 else "in.csv")
    whole, wrong = in_bytes(
        rng, text_of(rng, [names, *lines], delimiter), what == "sound"
    )
    if wrong:
        what = wrong
        must = None  # other encodings are recognised
    path.write_bytes(gzip.compress(whole) if path.suffix == ".gz" else whole)
    # All columns are compared, also those that describe the record.
    options: dict[str, Any] = {
        "decimal": decimal,
        "header": "yes",
        "keep": names,
        "dates": "epoch",
        "missing": "median",
    }
    if delimiter != "," or d == 1 or rng.random() < 0.5:
        options["delimiter"] = delimiter
    out = folder / "out.zarr"
    refused = refusal(lambda: convert(path, out, progress=False, **options))
    if refused is not None:
        assert {entry.name for entry in folder.iterdir()} == {path.name}, (
            "a refused table left a file"
        )
        assert refusal(lambda: mmcnb.read_table(path, **options)) is not None, (
            "read_table takes it"
        )
    elif what == "sound":
        compare(path, out, options, columns, names, rng)
    elif is_reported(what):
        notes = mmcnb.read_table(path, **options).notes
        assert notes, f"{what} was taken in silence"
    return judged(refused, must, f"table, {what}")


def is_reported(what: str) -> bool:
    """Whether a table that is spoiled so is not taken without a note about it."""
    kinds = ("number", "flag", "date")
    return what in ("latin-1", *(f"no {kind}" for kind in kinds))


def compare(
    path: Path,
    out: Path,
    options: dict[str, Any],
    columns: list[Column],
    names: list[str],
    rng: Any,
) -> None:
    """The table and its store hold the numbers and names that were drawn."""
    parts = [
        (name + end, one)
        for name, column in zip(names, columns, strict=True)
        for end, one in column.numbers.items()
    ]
    dtype = (
        np.float64 if any(column.kind == "date" for column in columns) else np.float32
    )
    expected = np.column_stack([one for _, one in parts]).astype(dtype)
    for source in (mmcnb.read_table(path, **options), mmcnb.open_samples(out)):
        assert source.feature_names == [name for name, _ in parts], (
            f"{source.feature_names} are other names"
        )
        same_rows(source, expected, rng)


def spoiled(
    rng: np.random.Generator, lines: list[list[str]], columns: list[Column]
) -> tuple[str, bool | None]:
    """Spoil a cell or a line; what was done, and whether it must be refused."""
    row = int(rng.integers(len(lines)))
    place = int(rng.integers(len(columns)))
    what = one_of(rng, ("cell", "short", "long", "infinite"))
    kind = columns[place].kind
    # A cell of another kind is a gap if it is one of many, and so is a missing one.
    if what == "cell":
        lines[row][place] = one_of(rng, NO_NUMBERS)
        return f"no {kind}", None
    if what == "infinite":
        lines[row][place] = one_of(rng, ("inf", "-Infinity", "1e999"))
        return f"infinite {kind}", True if kind == "number" else None
    if what == "short":
        del lines[row][place]
        return what, None
    lines[row].insert(place, "1.5")
    return what, True


def text_of(rng: np.random.Generator, lines: list[list[str]], delimiter: str) -> str:
    """CSV text, with quotes where they are needed or in more cells, and spaces around some."""
    out = io.StringIO()
    quoting = one_of(rng, (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    writer = csv.writer(
        out,
        delimiter=delimiter,
        quoting=quoting,
        lineterminator=one_of(rng, ("\n", "\r\n")),
    )
    spaced = one_of(rng, (0.0, 0.0, 0.2))
    for line in lines:
        writer.writerow(
            [f" {cell} " if rng.random() < spaced else cell for cell in line]
        )
    text = out.getvalue()
    return text if rng.random() < 0.8 else text.rstrip("\r\n")


def in_bytes(rng: np.random.Generator, text: str, is_sound: bool) -> tuple[bytes, str]:
    """The text in an encoding, and what is wrong with it; other encodings and bytes only of sound texts."""
    whole = (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode()
    if not is_sound or rng.random() < 0.7:
        return whole, ""
    way = one_of(rng, ("UTF-16", "latin-1", "a byte", "a quote"))
    if way == "UTF-16":
        return text.encode("utf-16"), way
    if way == "latin-1":
        text = "é" + text.encode("latin-1", "ignore").decode("latin-1")
        return text.encode("latin-1"), way
    place = int(rng.integers(len(whole) - 1))
    return whole[:place] + (b'"' if way == "a quote" else b"\xff") + whole[place:], way
