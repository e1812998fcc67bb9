"""Read a sheet of an Excel or LibreOffice workbook; its header is found as in CSV."""

import csv
import datetime
import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from mmcnb._config import format_bytes
from mmcnb._machine import available_memory
from mmcnb.errors import InputError, worded
from mmcnb.samples.files import open_file
from mmcnb.tables.arrow import FLOAT64, TEXT
from mmcnb.tables.columnar_file import OpenedFile, opened_in_memory
from mmcnb.tables.csv_head import N_LINES, HeadReader
from mmcnb.tables.marks import ERRORS, marks_of_numbers
from mmcnb.tables.options import TableOptions

Row = list[Any]
CELL_FACTOR = 8  # upper bound of the bytes of Python objects per byte of the sheet


def open_excel(path: Path, options: TableOptions) -> OpenedFile:
    """Read a whole sheet of a workbook into memory."""
    with worded(
        f"{path} needs python-calamine", "pip install 'mmcnb[excel]'", ImportError
    ):
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    _check_size(path)
    remedy = "save it again as .xlsx, or as CSV"
    with (
        worded(f"{path} is locked", "save it without a password", PasswordError),
        worded(f"{path} cannot be read as a workbook", remedy, CalamineError, OSError),
        open_file(path) as file,
    ):
        # Given a path, the library would infer the format from the file extension.
        workbook = CalamineWorkbook.from_filelike(file)
        wanted = options.sheet
        if options.encoding is not None and wanted not in workbook.sheet_names:
            wanted = None  # in new workbooks, the sheets may have other names
        name, notes = _sheet(path, workbook, wanted)
        sheet = workbook.get_sheet_by_name(name)
        rows = sheet.to_python(skip_empty_area=False)
        merged = sheet.merged_cell_ranges or []
    rows = _tidy(_with_merged(rows, merged))
    if not rows:
        raise InputError(
            f"{path}: the sheet {name!r} has no rows: name another sheet (--sheet)."
        )
    head_options = replace(
        options, delimiter=",", decimal=".", thousands=None, codec=None
    )
    reader = HeadReader(path, head_options, marks_of_numbers(options, "").to_pylist())
    head = reader.read(_lines(rows[: 2 * N_LINES]), is_sure=True)
    body = rows[head.first_row - 1 :]
    columns = {}
    for k, label in enumerate(head.names):
        columns[label] = _array([row[k] for row in body])
    opened = opened_in_memory(pa.table(columns))
    return opened._replace(has_names=head.has_names, notes=(*notes, *head.notes))


def _check_size(path: Path) -> None:
    """Raise InputError if reading a whole workbook would exceed the free memory."""
    n_bytes = path.stat().st_size
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            n_bytes = max(member.file_size for member in archive.infolist())
    free = available_memory()
    if free and CELL_FACTOR * n_bytes > free:
        raise InputError(
            f"{path} needs about {format_bytes(CELL_FACTOR * n_bytes)} of memory, and "
            f"{format_bytes(free)} are free: save the sheet as CSV, which is read in "
            "pieces."
        )


def _sheet(
    path: Path, workbook: Any, wanted: str | int | None
) -> tuple[str, list[str]]:
    """Return the name of the sheet to read, and a note if other sheets have rows."""
    names = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if "WorkSheet" in str(sheet.typ) and "Visible" in str(sheet.visible)
    ] or workbook.sheet_names
    if wanted is not None:
        if wanted in workbook.sheet_names:
            return str(wanted), []
        if str(wanted).isdigit() and int(wanted) < len(names):
            return names[int(wanted)], []
        raise InputError(
            f"{path} has no sheet {wanted!r}: name one of {', '.join(names)} (--sheet)."
        )
    full = [name for name in names if workbook.get_sheet_by_name(name).height > 0]
    if len(full) < 2:
        return (full or names)[0], []
    others = ", ".join(map(repr, full[1:6]))
    note = (
        f"{path}: the sheet {full[0]!r} was read, but not {others}; "
        f"mmcnb.read_table({str(path)!r}, sheet={full[1]!r}) (--sheet {full[1]!r}) "
        "reads another sheet."
    )
    return full[0], [note]


def _with_merged(rows: list[Row], merged: Iterable[Any]) -> list[Row]:
    """Fill merged cells, and join a two-line header if its upper cells are merged.

    A cell that is merged across all columns is a title, and remains unchanged.
    """
    width = max(map(len, rows), default=0)
    names_above: set[int] = set()
    for (top, left), (bottom, right) in merged:
        if top >= len(rows):
            continue
        value = rows[top][left]
        if left == right:
            for row in rows[top : bottom + 1]:
                row[left] = value
        elif right - left + 1 < width and top == bottom and isinstance(value, str):
            rows[top][left : right + 1] = [value] * (right - left + 1)
            names_above.add(top)
    for top in sorted(names_above)[:1]:
        below = rows[top + 1] if top + 1 < len(rows) else []
        if below and all(isinstance(cell, str) for cell in below):
            pairs = zip(rows[top], below, strict=True)
            joined = [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]
            rows[top : top + 2] = [joined]
    return rows


def _tidy(rows: list[Row]) -> list[Row]:
    """Replace blank and error cells with None, and remove empty rows and columns."""
    for row in rows:
        for k, cell in enumerate(row):
            if isinstance(cell, str) and (not cell.strip() or cell.strip() in ERRORS):
                row[k] = None
    rows = [row for row in rows if any(cell is not None for cell in row)]
    used = sorted({k for row in rows for k, cell in enumerate(row) if cell is not None})
    return [[row[k] for k in used] for row in rows]


def _lines(rows: Sequence[Row]) -> list[bytes]:
    """Return rows as lines of CSV text."""
    lines = []
    for row in rows:
        line = io.StringIO()
        cells = [" ".join(_text(cell).split()) for cell in row]
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
        lines.append(line.getvalue().encode())
    return lines


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ")
    return str(cell)


def _array(cells: list[Any]) -> pa.Array:
    """Return cells as an Arrow array, converted to texts if their types are mixed."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {float, int}:
        numbers = pa.array(cells, FLOAT64)
        is_whole = all(
            cell is None or (float(cell).is_integer() and abs(cell) < 2**53)
            for cell in cells
        )
        return numbers.cast(pa.int64()) if is_whole and kinds else numbers
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array(map(_moment, cells), pa.timestamp("us"))
    if len(kinds) == 1 and str not in kinds:
        return pa.array(cells)
    return pa.array([None if cell is None else _text(cell) for cell in cells], TEXT)


def _moment(day: datetime.date | None) -> datetime.datetime | None:
    if day is None or isinstance(day, datetime.datetime):
        return day
    return datetime.datetime.combine(day, datetime.time())
