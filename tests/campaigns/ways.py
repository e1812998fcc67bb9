"""Real tables, by each way in: CSV, frames, Parquet, Arrow, JSON lines and workbooks.

**Promised.** The same table gives the same columns, numbers and sentences, by whatever
way it comes in, or is refused for the same reason.

**Judged** against the CSV file. The tables are those of ``MMCNB_DATA_DIR``, and those
that come with scikit-learn and matplotlib; nothing is downloaded. Each table is tried
by itself first, and later tries have some of its rows and columns. What pandas loses
when it reads a file, such as the zeros of codes, is lost before mmcnb sees it, so that
columns of codes go the ways of texts alone.

**Not promised.** Types that the tables of this campaign have not; made ones are in
`tests/samples/test_one_law.py`.
"""

import bz2
import csv
import gzip
import io
import lzma
import os
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import sklearn

from tests.samples.test_one_law import TYPED, WAYS, Told, csv_file

TRIES = 400
CI_TRIES = 8
SECONDS = 120

MOST_ROWS = 1500
MOST_COLUMNS = 40
# Of a table that goes all ways, some of which have seven rows in a piece.
MOST_CELLS = 6000
ENDINGS = (".data", ".dat", ".test", ".train", ".csv", ".arff")
OPENERS = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
CODE = re.compile(r"0\d+$")
Columns = dict[str, list[str]]


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One table, or a draw of its rows and columns, by all ways in."""
    rng = np.random.default_rng(seed)
    paths = table_paths()
    path = paths[seed % len(paths)]
    columns = read_columns(path)
    if seed >= len(paths):
        columns = draw(rng, columns)
    n_rows = MOST_CELLS // len(columns)
    columns = {name: texts[:n_rows] for name, texts in columns.items()}
    n_rows = len(next(iter(columns.values())))
    ways = dict(WAYS)
    if not any(CODE.match(text) for texts in columns.values() for text in texts):
        ways |= TYPED
    differing = differences(columns, ways, folder)
    what = f"{path.name}, {n_rows} rows, {len(columns)} columns"
    assert not differing, f"{what}: {'; '.join(differing)}"
    return {"answer": "same", "what": what, "ways": len(ways)}


def differences(columns: Columns, ways: dict[str, Any], folder: Path) -> list[str]:
    """Return the ways in that give another table than the CSV file, and how."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = csv_file(columns, folder)
        reference = Told(lambda: path)
        for way, send in ways.items():
            try:
                reference.check_same(Told(lambda send=send: send(columns, folder)), way)
            except AssertionError as error:
                found.append(f"{way}: {' '.join(str(error).split())[:200]}")
    return found


def draw(rng: np.random.Generator, columns: Columns) -> Columns:
    """Draw some rows and columns, in their order."""
    names = list(columns)
    width = int(rng.integers(1, min(len(names), 8) + 1))
    taken = np.sort(rng.choice(len(names), width, replace=False))
    n = len(columns[names[0]])
    rows = np.sort(rng.choice(n, int(rng.integers(2, n + 1)), replace=False))
    return {names[k]: [columns[names[k]][row] for row in rows] for k in taken}


# --- the tables -----------------------------------------------------------------------


@cache
def table_paths() -> list[Path]:
    """Return the files of tables that are on this machine."""
    folders = [
        Path(sklearn.__file__).parent / "datasets",
        Path(matplotlib.get_data_path()),
    ]
    if "MMCNB_DATA_DIR" in os.environ:
        folders.append(Path(os.environ["MMCNB_DATA_DIR"]))
    paths = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            is_table = path.with_suffix("") if path.suffix in OPENERS else path
            if is_table.suffix in ENDINGS and len(read_columns(path)) > 1:
                paths.append(path)
    return paths


@cache
def read_columns(path: Path) -> Columns:
    """Return the first rows of a table as texts by name; none if it is no table."""
    with OPENERS.get(path.suffix, open)(
        path, "rt", encoding="utf-8", errors="replace"
    ) as file:
        text = file.read(4 * MOST_ROWS * 1000)
    lines = [line for line in text.splitlines() if line.strip() and line[0] != "#"]
    names: list[str] | None = None
    if ".arff" in path.name:
        names, lines = arff_parts(lines)
    rows = list(cells_of(lines[: MOST_ROWS + 1]))
    width = len(rows[0]) if rows else 0
    rows = [row for row in rows if len(row) == width][:MOST_ROWS]
    if names is None and ".csv" in path.name and not any(map(is_number, rows[0])):
        names = rows.pop(0)
    if names is None or len(set(names)) < width:
        names = [f"column {k}" for k in range(width)]
    if len(rows) < 2:
        return {}
    taken = list(zip(names, zip(*rows, strict=True), strict=True))[:MOST_COLUMNS]
    return {name: list(texts) for name, texts in taken}


def arff_parts(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return the names and the rows of ARFF text."""
    names = []
    for number, line in enumerate(lines):
        words = line.split(maxsplit=1)
        if words[0].lower() == "@data":
            return names, [row for row in lines[number + 1 :] if row[0] not in "%{"]
        if words[0].lower() == "@attribute":
            name = re.match(r"'([^']*)'|\"([^\"]*)\"|(\S+)", words[1])
            assert name is not None
            names.append(next(filter(None, name.groups())))
    return names, []


def cells_of(lines: list[str]) -> Iterator[list[str]]:
    """Yield the cells of lines with commas, or else with spaces between them."""
    has_commas = bool(lines) and "," in lines[0]
    if not has_commas:
        for line in lines:
            yield line.split()
        return
    quote = "'" if any("'" in line for line in lines[:50]) else '"'
    reader = csv.reader(
        io.StringIO("\n".join(lines)), quotechar=quote, skipinitialspace=True
    )
    for cells in reader:
        yield [cell.strip().replace("\n", " ") for cell in cells]


def is_number(text: str) -> bool:
    """Return whether a text is a plain number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
