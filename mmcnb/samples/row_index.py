"""Identify the rows of a source by their numbers in a file or by their names."""

import json
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

FILE = "file"  # name of the column with the file of each row, if the source is a folder
ROW = "row"  # name of the column with row numbers
INDEX = "index"  # name of the column with row names, if the source does not name it


class Names(Protocol):
    """Names of rows, which are read when they are needed."""

    def read(self, start: int, stop: int) -> Any:
        """Return the names of the rows ``start <= row < stop``."""


@dataclass(frozen=True)
class KeptNames:
    """Row names in memory."""

    values: np.ndarray

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the names of the rows ``start <= row < stop``."""
        return self.values[start:stop]


@dataclass(frozen=True)
class ChosenNames:
    """Names of some of the rows of a source.

    Parameters
    ----------
    names : Names
        Names of all rows of the source.
    numbers : ndarray of int64 of shape (n_rows,)
        Indices of the selected rows in the source, in increasing order.
    """

    names: Names
    numbers: np.ndarray

    def read(self, start: int, stop: int) -> Any:
        """Return the names of the selected rows ``start <= row < stop``."""
        rows = self.numbers[start:stop]
        if not len(rows):
            return self.names.read(0, 0)
        first = int(rows[0])
        return self.names.read(first, int(rows[-1]) + 1)[rows - first]


@dataclass(frozen=True)
class RowIndex:
    """Numbers or names that identify rows in their source.

    If only ``n_samples`` is set, the rows are all rows of the source, in order.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    files : tuple of str
        Names of the files in the folder; empty if the source is not a folder.
    lengths : tuple of int
        Number of rows taken from each file of a folder.
    numbers : Names or None
        Zero-based number of each row in its file. None means that the rows are the
        first rows of each file.
    names : Names or None
        Names of the rows, which are used instead of their numbers; None if there are
        none.
    name : hashable
        Name of the column that contains the names; None if it has no name.
    own : pandas.Index or None
        Index of the data frame, if it identifies the rows.
    levels : tuple of (hashable, Names)
        Name and values of each level of a pandas MultiIndex; empty if rows have at most
        one name.
    n_left_out : int or None
        Number of rows of the source that were left out; None if it is unknown.
    """

    n_samples: int
    files: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    numbers: Names | None = None
    names: Names | None = None
    name: Hashable = None
    own: "pd.Index | None" = None
    levels: tuple[tuple[Hashable, Names], ...] = ()
    n_left_out: int | None = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, with all names and numbers in memory."""
        state = dict(vars(self))
        for field in ("numbers", "names"):
            if state[field] is not None:
                values = _plain_values(state[field].read(0, self.n_samples))
                state[field] = KeptNames(values)
        levels = []
        for name, names in self.levels:
            values = _plain_values(names.read(0, self.n_samples))
            levels.append((name, KeptNames(values)))
        return state | {"levels": tuple(levels)}

    @property
    def is_plain(self) -> bool:
        """Whether the rows are identified only by their position."""
        return self.is_numbered and self.numbers is None and not self.files

    @property
    def is_numbered(self) -> bool:
        """Whether the rows are identified by numbers instead of names."""
        return self.names is None and self.own is None and not self.levels

    @property
    def keys(self) -> list[str]:
        """Names of the columns that `columns` returns."""
        if self.own is not None:
            return _level_names(self.own.names)
        files = [FILE] if self.files else []
        if self.levels:
            return [*files, *_level_names([name for name, _ in self.levels])]
        if self.names is None:
            return [*files, ROW]
        return [*files, _name_of_names(self.name)]

    def columns(self, start: int, stop: int) -> dict[str, Any]:
        """Return the columns that identify the rows ``start <= row < stop``."""
        if self.own is not None:
            return dict(zip(self.keys, _levels(self.own[start:stop]), strict=True))
        values = []
        if self.files:
            files = np.array(self.files, object)
            values.append(files[self.files_of(start, stop)])
        if self.levels:
            values += [names.read(start, stop) for _, names in self.levels]
        elif self.names is None:
            values.append(self.numbers_of(start, stop))
        else:
            values.append(self.names.read(start, stop))
        return dict(zip(self.keys, values, strict=True))

    def name_of(self, row: int) -> object:
        """Return the name of a row, or None if rows are identified only by position."""
        if self.is_plain:
            return None
        columns = self.columns(row, row + 1).values()
        values = [_plain_values(column)[0] for column in columns]
        return values[0] if len(values) == 1 else ", ".join(map(str, values))

    def files_of(self, start: int, stop: int) -> np.ndarray:
        """Return the index of the file of each of the rows ``start <= row < stop``."""
        offsets = np.cumsum(self.lengths)
        return np.searchsorted(offsets, np.arange(start, stop), side="right")

    def numbers_of(self, start: int, stop: int) -> np.ndarray:
        """Return the numbers of the rows ``start <= row < stop`` within their files."""
        if self.numbers is not None:
            return np.asarray(self.numbers.read(start, stop))
        rows = np.arange(start, stop)
        if not self.files:
            return rows
        firsts = np.concatenate(([0], np.cumsum(self.lengths)))
        return rows - firsts[self.files_of(start, stop)]

    def to_pandas(self) -> "pd.Index":
        """Return a pandas index that identifies the rows.

        Rows that are identified only by their position have a RangeIndex.
        """
        import pandas as pd

        if self.own is not None:
            return self.own
        if self.is_plain:
            return pd.RangeIndex(self.n_samples)
        columns = self.columns(0, self.n_samples)
        values = [_plain_values(column) for column in columns.values()]
        if len(values) == 1:
            return pd.Index(values[0], name=None if self.names is None else self.name)
        names: list[Hashable] = list(columns)
        if self.levels:
            names[-len(self.levels) :] = [name for name, _ in self.levels]
        return pd.MultiIndex.from_arrays(values, names=names)


def _plain_values(values: Any) -> Any:
    """Return values that pandas accepts.

    Strings in NumPy's StringDType, which pandas does not support, become objects.
    """
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "T" else array


def _name_of_names(name: Hashable) -> str:
    """Return a name for the column of row names.

    The result is `INDEX` if there is no name, or if it is `ROW` or `FILE`.
    """
    if name is None or str(name) in ("", FILE, ROW):
        return INDEX
    return str(name)


def _level_names(levels: Sequence[Hashable]) -> list[str]:
    """Return a distinct column name for each level of a pandas index."""
    if len(levels) == 1:
        return [_name_of_names(levels[0])]
    names: list[str] = []
    for number, name in enumerate(levels):
        is_taken = name is None or str(name) in ("", FILE, ROW, *names)
        names.append(f"level_{number}" if is_taken else str(name))
    return names


def _levels(index: "pd.Index") -> list[Any]:
    return [index.get_level_values(level) for level in range(index.nlevels)]


def index_of_frame(index: Any, taken: RowIndex | None = None) -> RowIndex | None:
    """Return the row index of a data frame; None if it counts the rows from 0.

    Parameters
    ----------
    index : pandas.Index
        Index of the whole frame.
    taken : RowIndex or None, default=None
        The rows of the frame that are used; None if all are used.
    """
    import pandas as pd

    if taken is not None and not taken.is_numbered:  # a column names the rows
        return taken
    has_gaps = taken is not None and taken.numbers is not None
    is_part = taken is not None and taken.n_left_out != 0
    is_count = isinstance(index, pd.RangeIndex) and index.equals(
        pd.RangeIndex(len(index))
    )
    if is_count:
        return taken if is_part else None
    if taken is None:
        return RowIndex(len(index), own=index)
    kept = taken.numbers_of(0, taken.n_samples)
    return replace(taken, own=index[kept] if has_gaps else index[: len(kept)])


def range_of_pandas(
    metadata: Mapping[bytes, bytes] | None, n_rows: int
) -> "pd.Index | None":
    """Return the RangeIndex that pandas recorded in the metadata of a file.

    The result is None if the metadata has no RangeIndex, or if this index counts from 0
    or does not have ``n_rows`` entries.
    """
    import pandas as pd

    with suppress(KeyError, ValueError, TypeError, AttributeError):
        (field,) = json.loads((metadata or {})[b"pandas"])["index_columns"]
        index = pd.RangeIndex(
            field["start"], field["stop"], field["step"], name=field["name"]
        )
        if len(index) == n_rows and index_of_frame(index) is not None:
            return index
    return None


class RowsTaken:
    """Record of which rows of a table are used, made while the table is read.

    Parameters
    ----------
    files : sequence of str
        Files of a folder; empty for a single file.
    """

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files = files
        self._lengths = [0] * max(1, len(files))
        self._pieces: list[np.ndarray] = []
        self._names: list[np.ndarray] = []
        self._is_whole = True

    def add(
        self, file: int, numbers: np.ndarray, names: np.ndarray | None = None
    ) -> None:
        """Record the numbers and, if given, the names of the next rows of a file.

        The numbers must increase.
        """
        n_rows = len(numbers)
        if not n_rows:
            return
        first = self._lengths[file]
        if self._is_whole and (
            numbers[0] != first or numbers[-1] != first + n_rows - 1
        ):
            self._is_whole = False
            self._pieces = [np.arange(length) for length in self._lengths if length]
        if not self._is_whole:
            self._pieces.append(numbers)
        self._lengths[file] += n_rows
        if names is not None:
            self._names.append(names)

    def index(self, n_source: int, name: str | None = None) -> RowIndex:
        """Return the index of all recorded rows.

        ``n_source`` is the number of rows of the table, and ``name`` is the name of the
        column that contains their names.
        """
        n_samples = sum(self._lengths)
        numbers = None
        if not self._is_whole:
            numbers = KeptNames(np.concatenate(self._pieces))
        names = None
        if self._names:
            names = KeptNames(np.concatenate(self._names))
        return RowIndex(
            n_samples=n_samples,
            files=self._files,
            lengths=tuple(self._lengths) if self._files else (),
            numbers=numbers,
            names=names,
            name=name if names is not None else None,
            n_left_out=n_source - n_samples,
        )
