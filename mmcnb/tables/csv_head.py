"""Interpret the first lines of CSV text: titles, column names, units, and rows."""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mmcnb._fit_warnings import Importance, Note
from mmcnb.errors import InputError
from mmcnb.samples.frames import notes_on_names, unique_names
from mmcnb.samples.text import plain_name
from mmcnb.tables.base import is_numeral
from mmcnb.tables.csv_delimiter import (
    delimiter_of_first_line,
    find_delimiter,
    last_half,
    most_common_width,
)
from mmcnb.tables.csv_header import Verdict, is_header, is_line_of_units
from mmcnb.tables.csv_kinds import kind_of_cell, kinds_of_columns
from mmcnb.tables.csv_lines import Line, decoded, split_lines, tidy
from mmcnb.tables.options import TableOptions

N_LINES = 100  # maximum number of lines that are examined
FEWEST_LINES = 12  # lines that are examined even if they exceed MOST_BYTES
MOST_BYTES = 2**18  # bytes that are examined if there are at least FEWEST_LINES
MOST_TITLES = 60  # maximum number of lines above the column names
MOST_UNITS = 3  # maximum number of lines of units or rules below the names
RULE = re.compile(r"[-=+:| ]*(--|==)[-=+:| ]*")  # a horizontal rule, such as ---+---


class Head(NamedTuple):
    """Interpretation of the first lines of a file.

    Attributes
    ----------
    delimiter : str
        Character that separates cells.
    names : list of str
        Unique names of the columns, or "0", "1", ... if the file has no header.
    has_names : bool
        Whether the file has a header.
    header_line : int
        Number of the last line of the header, counted from 1; 0 if the file has no
        header.
    first_row : int
        Number of the first line of the rows, counted from 1.
    n_blank : int
        Number of cells at the end of rows that have neither a name nor a value, for
        example after a trailing comma.
    kinds : list of (str or None)
        Kind of the cells of each column, as returned by `kinds_of_columns`.
    notes : list of str
        Sentences about lines that are not rows.
    """

    delimiter: str
    names: list[str]
    has_names: bool
    header_line: int
    first_row: int
    n_blank: int
    kinds: list[str | None]
    notes: list[str]


class _Names(NamedTuple):
    """Names of the columns, and the number of blank cells at the end of rows."""

    names: list[str]
    n_blank: int
    notes: list[str]


@dataclass(frozen=True)
class _Shape:
    """Properties of rows, inferred from the first lines of a table.

    Attributes
    ----------
    width : int
        Most common number of cells in a line.
    n_columns : int
        Number of cells up to the last cell that has a value in any row.
    kinds : list of (str or None)
        Kind of the cells of each column.
    texts : list of set of str
        The distinct cells of each column.
    gaps : collection of str
        Markers of missing values.
    """

    width: int
    n_columns: int
    kinds: list[str | None]
    texts: list[set[str]]
    gaps: Collection[str]

    @property
    def has_values(self) -> bool:
        """Whether any column has numbers, quantities, dates or flags."""
        return bool(set(self.kinds) - {None, "text"})

    def is_row(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a line match the columns of the rows.

        In a column of numbers, dates or flags, each cell must have the kind of the
        column. At least one cell must be such a value, or a text that also occurs in
        the rows.
        """
        n_values = 0
        for cell, kind, texts in zip(cells, self.kinds, self.texts, strict=False):
            found = kind_of_cell(cell, self.gaps)
            if found == "gap" or kind is None:
                continue
            if kind == "text":
                n_values += cell.strip() in texts
                continue
            if found != kind and {found, kind} != {"number", "quantity"}:
                return False
            n_values += 1
        return n_values > 0

    def is_full(self, line: Line) -> bool:
        """Return whether a line extends to the last column, or is a row."""
        if self.n_columns == 1 and line.cells == [""]:
            return True
        is_row = len(line.cells) == self.width and self.is_row(line.cells)
        return line.width >= self.n_columns or is_row


class HeadReader:
    """Reader of the first lines of a file.

    Parameters
    ----------
    path : Path
        Path of the file, for messages.
    options : TableOptions
    gaps : collection of str
        Markers of missing values.
    """

    def __init__(
        self, path: Path, options: TableOptions, gaps: Collection[str]
    ) -> None:
        self._path = path
        self._options = options
        self._gaps = frozenset(gaps)

    def read(self, lines: list[bytes], is_sure: bool) -> Head:
        """Decide which of the first lines are titles, names, units and rows.

        Parameters
        ----------
        lines : list of bytes
            The first lines of the file.
        is_sure : bool
            Whether the encoding is certain to be UTF-8.

        Returns
        -------
        Head

        Raises
        ------
        InputError
            If there are no rows, or if a line could contain either column names or
            values. In the latter case, the message lists the options that specify which
            of the two it contains.
        NotUTF8Error
            If a line is not UTF-8 text, and ``is_sure`` is False.
        """
        above = self._options.skip_lines or 0
        if above and above >= len(lines):
            raise InputError(
                f"{self._path} has only {len(lines)} lines: skip fewer than that, for "
                "example with --skip-lines 0."
            )
        given = None
        if above < len(lines):
            given = delimiter_of_first_line(lines[above].decode("utf-8", "replace"))
            above += given is not None
        comment = b""
        while above < len(lines) and lines[above].startswith(b"#"):
            comment = lines[above]
            above += 1
        body = b"".join(_first_lines(lines[above:]))
        text = decoded(body, above + 1, self._path, is_sure)
        delimiter = self._find_delimiter(text, given)
        text = tidy(body, delimiter).decode()
        lines_of_cells = split_lines(text, above + 1, delimiter, self._path, True)
        table = list(islice(filter(self._is_line, lines_of_cells), N_LINES))
        if not table:
            raise InputError(f"{self._path} has no rows: add at least one.")
        names = self._cells_of_comment(comment, delimiter)
        return self._head(table, delimiter, names)

    def _is_line(self, line: Line) -> bool:
        """Return whether a line is not blank.

        Such a line has a value, a delimiter or an empty quoted cell.
        """
        return bool(line.width) or line.cells == [""] or len(line.cells) > 1

    def _find_delimiter(self, text: str, given: str | None) -> str:
        """Return the given delimiter, or the delimiter that divides the lines best."""
        decimal = self._options.decimal
        usual = "\t" if plain_name(self._path).endswith(".tsv") else ","
        delimiter = self._options.delimiter
        if self._options.encoding is not None and (delimiter or "") not in text:
            delimiter = None  # new rows may have a different delimiter
        delimiter = delimiter or given
        if delimiter is None:
            lines = text.splitlines(keepends=True)
            if usual == decimal and not any(usual in line for line in lines[:1]):
                usual = ";"  # a single column of numbers with decimal commas
            first_lines = "".join(islice(lines, N_LINES))
            delimiter = find_delimiter(
                first_lines, usual, self._gaps, decimal, self._path
            )
        if delimiter == decimal and '"' not in text:
            raise InputError(
                f"{self._path}: {decimal!r} cannot be both the delimiter and the "
                "decimal mark: pass another delimiter (--delimiter ';')."
            )
        return delimiter

    def _cells_of_comment(self, comment: bytes, delimiter: str) -> list[str]:
        """Return the cells of a comment line, without the leading ``#``."""
        text = tidy(comment.lstrip(b"# \t"), delimiter).decode("utf-8", "replace")
        cells = next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter), [])
        return list(map(str.strip, cells))

    def _head(self, table: list[Line], delimiter: str, comment: list[str]) -> Head:
        shape = self._shape(table)
        start = self._start(table, shape)
        top = table[start]
        verdict = self._verdict(table[start:], shape)
        if verdict is not Verdict.HEADER and self._are_names(comment, shape):
            return Head(
                delimiter=delimiter,
                names=unique_names(comment),
                has_names=True,
                header_line=top.first - 1,
                first_row=top.first,
                n_blank=0,
                kinds=shape.kinds,
                notes=notes_on_names(str(self._path), comment),
            )
        if verdict is Verdict.DOUBTFUL:
            raise InputError(self._doubt(top, start))
        if verdict is Verdict.ROW:
            if self._options.header is None and any(
                line.width > 1 for line in table[:start]
            ):
                raise InputError(self._other_width(table[0], shape))
            notes = self._notes_on_titles(table[:start])
            names = _Names(list(map(str, range(shape.width))), 0, notes)
            first_row = top.first
        else:
            if len(table) == start + 1:
                raise InputError(
                    f"{self._path} has a header and no rows: add at least one."
                )
            names = self._names(table[start:], shape)
            names.notes[:0] = self._notes_on_titles(table[:start])
            first_row = self._first_row(table[start:], names)
        return Head(
            delimiter=delimiter,
            names=names.names,
            has_names=verdict is Verdict.HEADER,
            header_line=top.number if verdict is Verdict.HEADER else 0,
            first_row=first_row,
            n_blank=names.n_blank,
            kinds=shape.kinds,
            notes=names.notes,
        )

    def _shape(self, table: list[Line]) -> _Shape:
        """Infer the properties of rows from the second half of the examined lines."""
        width = most_common_width(table)
        even = [line for line in last_half(table) if len(line.cells) == width]
        # A last line such as "Source: ..." is not a row.
        rows = [line for line in even if line.width > 1] or even
        n_columns = max(1, *(line.width for line in rows))
        cells = [line.cells for line in rows]
        kinds = kinds_of_columns(cells, n_columns, self._gaps)
        texts = [
            {line.cells[position].strip() for line in even}
            for position in range(n_columns)
        ]
        return _Shape(width, n_columns, kinds, texts, self._gaps)

    # Where the table begins

    def _start(self, table: list[Line], shape: _Shape) -> int:
        """Return the index of the header or, if there is none, of the first row."""
        options = self._options
        if isinstance(options.header, int):
            if options.header >= len(table):
                raise InputError(
                    f"{self._path}: header={options.header} is not among its first "
                    f"{len(table)} lines: count from 0."
                )
            return options.header
        if options.skip_lines is not None:
            return 0
        if options.header == "no":
            return self._first_without_title(table, shape)
        wanted = self._wanted_names()
        for start, line in enumerate(table[:MOST_TITLES]):
            if wanted and wanted <= set(unique_names(_named(line.cells))):
                return start
        start = self._first_full_line(table, shape)
        if start and self._is_short_header(table[start - 1 :], shape):
            start -= 1
        return start

    def _first_without_title(self, table: list[Line], shape: _Shape) -> int:
        """Return the index of the first line that is not a title (a single text)."""
        for start, line in enumerate(table):
            kind = kind_of_cell(line.cells[0], self._gaps)
            if line.width != 1 or shape.n_columns == 1 or kind != "text":
                return start
        return 0

    def _first_full_line(self, table: list[Line], shape: _Shape) -> int:
        """Return the index of the first line as wide as the rows, or of a later header.

        A header may come after an empty line, a title, or lines wider than the rows,
        as long as no row precedes it. If no line qualifies, the index is 0.
        """
        start = 0
        for place in range(1, min(len(table), MOST_TITLES)):
            above = table[place - 1]
            line = table[place]
            is_full = shape.is_full(table[start])
            if is_full and (shape.is_row(above.cells) or not shape.has_values):
                break
            if not shape.is_full(line):
                continue
            if not is_full or (
                self._is_apart(table[start:], place - start, shape)
                and self._names_rows(table[place:])
            ):
                start = place
        return start if shape.is_full(table[start]) else 0

    def _is_apart(self, table: list[Line], place: int, shape: _Shape) -> bool:
        """Return whether the lines above line ``place`` are outside the table.

        ``place`` is an index in ``table``, the lines that have been examined.
        """
        line = table[place]
        above = table[place - 1]
        if line.first > above.number + 1 or above.width > shape.width >= line.width:
            return True
        return above.width < shape.n_columns and not self._names_rows(table)

    def _names_rows(self, table: list[Line]) -> bool:
        """Return whether the first line is certainly the header of the other lines."""
        rows = [line.cells for line in table[1:]]
        return is_header(table[0].cells, rows, self._gaps) is Verdict.HEADER

    def _is_short_header(self, table: list[Line], shape: _Shape) -> bool:
        """Return whether the first line is a header that lacks one column name."""
        top = table[0]
        row = table[1]
        if len(top.cells) != shape.n_columns - 1 or row.first > top.number + 1:
            return False
        kinds = {kind_of_cell(cell, self._gaps) for cell in top.cells}
        return kinds == {"text"} and not self._names_rows(table[1:])

    def _wanted_names(self) -> set[str]:
        """Return the column names that a fit or options require in the header."""
        encoding = self._options.encoding
        if encoding is not None:
            names = [column.name for column in encoding.features]
            return set(names) if encoding.has_names else set()
        return set(self._names_in_options())

    def _names_in_options(self) -> list[str]:
        """Return the column names that occur in options."""
        options = self._options
        references = [options.label_column, options.index_column]
        references += options.drop or ()
        if options.names_columns:
            references += options.columns
        names = []
        for reference in references:
            if isinstance(reference, str):
                cells = next(csv.reader([reference], skipinitialspace=True), [])
                names += [cell.strip() for cell in cells if not is_numeral(cell)]
        return names

    # Names of columns

    def _verdict(self, table: list[Line], shape: _Shape) -> Verdict:
        """Decide whether the first line names the columns."""
        options = self._options
        if options.header == "no":
            return Verdict.ROW
        top = table[0]
        if options.header is not None or self._names_in_options():
            return Verdict.HEADER
        wanted = self._wanted_names()
        if wanted and wanted <= set(unique_names(_named(top.cells))):
            return Verdict.HEADER
        if len(top.cells) < shape.n_columns:
            return Verdict.HEADER
        rows = [line.cells for line in table[1:]]
        cells = top.cells[: max(top.width, shape.n_columns)]
        verdict = is_header(cells, rows, self._gaps)
        if verdict is Verdict.DOUBTFUL and options.encoding is not None:
            return Verdict.ROW
        return verdict

    def _are_names(self, comment: list[str], shape: _Shape) -> bool:
        """Return whether the cells of a comment can be the names of the columns."""
        if self._options.header is not None or len(comment) < 2:
            return False
        kinds = {kind_of_cell(cell, self._gaps) for cell in comment}
        return kinds == {"text"} and len(comment) == shape.width

    def _doubt(self, top: Line, start: int) -> str:
        cells = ", ".join(map(repr, top.cells[:4]))
        more = ", …" if len(top.cells) > 4 else ""
        also = f" with --skip-lines {top.first - 1}" if start else ""
        return (
            f"{self._path}, line {top.number}: {cells}{more} could be column names or "
            "values: pass --header yes if they name the columns, or --header no if "
            f"they are values{also}."
        )

    def _names(self, table: list[Line], shape: _Shape) -> _Names:
        """Return the column names that the first line contains."""
        top = table[0]
        n_columns = shape.n_columns
        longest = max(len(line.cells) for line in table[1:])
        if top.width > max(longest, shape.width) or len(top.cells) < n_columns - 1:
            raise InputError(self._other_width(top, shape))
        cells = top.cells
        notes = []
        if len(top.cells) == n_columns - 1:
            self._check_row_names(table, shape)
            cells = ["", *cells]
            notes.append(
                f"{self._path}: the header in line {top.number} has one name fewer "
                "than rows have cells, so the first column is read as row names."
            )
        names = _named(cells[: max(top.width, n_columns)])
        notes += notes_on_names(str(self._path), names)
        n_blank = max(0, shape.width - len(names))
        return _Names(unique_names(names), n_blank, notes)

    def _other_width(self, top: Line, shape: _Shape) -> str:
        return (
            f"{self._path}, line {top.number}: this header has {len(top.cells)} names, "
            f"but rows below it have {shape.n_columns} cells: correct it, or pass "
            f"--skip-lines {top.number} with --header no for columns without names."
        )

    def _check_row_names(self, table: list[Line], shape: _Shape) -> None:
        """Raise InputError if the column without a name cannot contain row names.

        Row names must be unique and must not be fractional numbers. If there are only
        two columns, and the first contains integers, these must be consecutive, because
        the comma could otherwise be a decimal comma.
        """
        top = table[0]
        rows = [line for line in table[1:] if line.width >= shape.n_columns - 1]
        first = [line.cells[0].strip() for line in rows]
        if shape.n_columns == 2 and all(map(is_numeral, first)) and not _count(first):
            example = ",".join(rows[0].cells)
            raise InputError(
                f"{self._path}, line {top.number}: this header has one name, but rows "
                f"below it have two cells, such as {example!r}: pass --decimal ',' if "
                f"the comma is a decimal point, or --skip-lines {top.number} with "
                "--header no for columns without names."
            )
        has_fractions = shape.kinds[0] == "number" and any(
            "." in cell for cell in first
        )
        if len(set(first)) < len(first) or has_fractions:
            raise InputError(self._other_width(top, shape))

    # Lines that are not rows

    def _first_row(self, table: list[Line], names: _Names) -> int:
        """Return the number of the first line below the header.

        Lines of units, and lines such as "---" below the names, are part of the header.
        """
        place = 1
        while place <= MOST_UNITS and place < len(table) - 1:
            line = table[place]
            rows = [row.cells for row in table[place + 1 :]]
            width = len(names.names)
            if RULE.fullmatch("".join(line.cells)):
                place += 1
                continue
            if not is_line_of_units(line.cells, rows, width, self._gaps):
                break
            units = []
            for name, cell in zip(names.names, line.cells, strict=False):
                if cell.strip():
                    units.append(f"{name} {cell.strip()!r}")
            sentence = (
                f"{self._path}: line {line.number} was read as part of the header, "
                f"not as a row: {_listed(units)}."
            )
            names.notes.append(Note(sentence, Importance.ADVICE))
            place += 1
        return table[place - 1].number + 1

    def _notes_on_titles(self, titles: list[Line]) -> list[str]:
        """Return a sentence about the lines above the table, if there are any."""
        if not titles:
            return []
        texts = []
        for line in titles:
            cells = list(filter(None, map(str.strip, line.cells)))
            if cells:
                texts.append(repr(", ".join(cells)[:60]))
        lines = f"line {titles[0].number} was"
        if len(titles) > 1:
            lines = f"lines {titles[0].first} to {titles[-1].number} were"
        sentence = (
            f"{self._path}: {lines} skipped (neither header nor rows): "
            f"{_listed(texts)}."
        )
        return [Note(sentence, Importance.ADVICE)]


def _first_lines(lines: list[bytes]) -> list[bytes]:
    """Return the first lines, limited to `MOST_BYTES` but at least `FEWEST_LINES`."""
    n_bytes = 0
    for place, line in enumerate(lines):
        n_bytes += len(line)
        if n_bytes > MOST_BYTES and place >= FEWEST_LINES:
            return lines[:place]
    return lines


def _named(cells: list[str]) -> list[str]:
    """Return column names, with "Unnamed: k" for missing names, as in pandas.

    The name of the first column may be empty, because the column may contain row names.
    """
    names = list(map(str.strip, cells))
    for position, name in enumerate(names):
        if position and not name:
            names[position] = f"Unnamed: {position}"
    return names


def _listed(texts: list[str], most: int = 5) -> str:
    """Join up to ``most`` texts with commas, and add the number of other texts."""
    listed = ", ".join(texts[:most])
    if len(texts) > most:
        listed += f" and {len(texts) - most} more"
    return listed


def _count(texts: list[str]) -> bool:
    """Return whether texts are consecutive integers."""
    numbers = list(map(int, texts))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))
