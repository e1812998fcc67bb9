"""CSV tables: numbers, an optional header and an optional column of class labels."""

import csv
import io
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples._text import opened, plain_name

CELLS_AT_ONCE = 2**16
Row = tuple[int, list[str]]  # number of its line, from 1, and its cells


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
        numbers = all(_is_number(cell) for column, cell in enumerate(top) if column != self._label)
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
                if column == self._label or (_is_number(cell) and self._fits(cell)):
                    continue
                name = f" ({self._header[column].strip()!r})" if self._header else ""
                what = "not a finite number" if _is_number(cell) else "not a number"
                raise InputError(
                    f"{self.path}, line {line}, column {column}{name}: {cell!r} is {what} ({self._dtype}): "
                    "correct it, drop the row, or name the column of class labels with --label-column."
                )

    def _fits(self, cell: str) -> bool:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float64(cell).astype(self._dtype)))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_whole(cell: str) -> bool:
    return _is_number(cell) and float(cell).is_integer()
