"""Which rows of their source some rows are: numbers in their file, or names."""

import json
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

FILE = "file"  # the column of the files of a folder
ROW = "row"  # the column of row numbers
INDEX = "index"  # the column of row names that have no name of their own


class Names(Protocol):
    """One name a row, read as they are needed."""

    def read(self, start: int, stop: int) -> Any:
        """Return the names of the rows ``start <= row < stop``."""


@dataclass(frozen=True)
class KeptNames:
    """Names in memory."""

    values: np.ndarray

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the names of the rows ``start <= row < stop``."""
        return self.values[start:stop]


@dataclass(frozen=True)
class ChosenNames:
    """Names of some rows of a source that has names for all of its rows.

    Parameters
    ----------
    names : Names
        Of all rows.
    numbers : ndarray of int64 of shape (n_rows,)
        The rows, in order.
    """

    names: Names
    numbers: np.ndarray

    def read(self, start: int, stop: int) -> Any:
        """Return the names of the rows ``start <= row < stop`` of these."""
        rows = self.numbers[start:stop]
        if not len(rows):
            return self.names.read(0, 0)
        first = int(rows[0])
        return self.names.read(first, int(rows[-1]) + 1)[rows - first]


@dataclass(frozen=True)
class RowIndex:
    """Which rows of their source some rows are.

    Without any of the fields but the first, they are all rows of the source, in order.

    Attributes
    ----------
    n_samples : int
    files : tuple of str
        Files of a folder; none if the source is no folder.
    lengths : tuple of int
        Rows that are here of each file of a folder.
    numbers : Names or None
        Number of each row in its file, from 0. None: the first rows of each file.
    names : Names or None
        Names of the rows, which stand in place of their numbers.
    name : hashable
        Name of the names, such as that of their column; None if they have none.
    own : pandas.Index or None
        The index of a data frame.
    levels : tuple of (hashable, Names)
        Several names a row in place of one, of an index of pandas with such levels.
    """

    n_samples: int
    files: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    numbers: Names | None = None
    names: Names | None = None
    name: Hashable = None
    own: "pd.Index | None" = None
    levels: tuple[tuple[Hashable, Names], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what is read from a file goes with them."""
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
        """Whether rows have only their numbers among the rows that are here."""
        return self.is_numbered and self.numbers is None and not self.files

    @property
    def is_numbered(self) -> bool:
        """Whether rows have numbers and no names."""
        return self.names is None and self.own is None and not self.levels

    @property
    def keys(self) -> list[str]:
        """Names of `columns`."""
        if self.own is not None:
            return _level_names(self.own.names)
        files = [FILE] if self.files else []
        if self.levels:
            return [*files, *_level_names([name for name, _ in self.levels])]
        if self.names is None:
            return [*files, ROW]
        return [*files, _name_of_names(self.name)]

    def columns(self, start: int, stop: int) -> dict[str, Any]:
        """Return the columns that say which rows ``start <= row < stop`` are."""
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
        """Return what a row is called; None if it has only its number."""
        if self.is_plain:
            return None
        columns = self.columns(row, row + 1).values()
        values = [_plain_values(column)[0] for column in columns]
        return values[0] if len(values) == 1 else ", ".join(map(str, values))

    def files_of(self, start: int, stop: int) -> np.ndarray:
        """Return the number of the file of each of some rows."""
        offsets = np.cumsum(self.lengths)
        return np.searchsorted(offsets, np.arange(start, stop), side="right")

    def numbers_of(self, start: int, stop: int) -> np.ndarray:
        """Return the numbers of some rows in their files."""
        if self.numbers is not None:
            return np.asarray(self.numbers.read(start, stop))
        rows = np.arange(start, stop)
        if not self.files:
            return rows
        firsts = np.concatenate(([0], np.cumsum(self.lengths)))
        return rows - firsts[self.files_of(start, stop)]

    def to_pandas(self) -> "pd.Index":
        """Return an index of pandas; row numbers that count from 0 take no memory."""
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
    """Return values as pandas takes them; it does not know NumPy's texts."""
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "T" else array


def _name_of_names(name: Hashable) -> str:
    """Return the name of a column of names, which is none of numbers or files."""
    if name is None or str(name) in ("", FILE, ROW):
        return INDEX
    return str(name)


def _level_names(levels: Sequence[Hashable]) -> list[str]:
    """Return a name for the column of each level of an index of pandas."""
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
    """Return what the index of a frame says; None if it counts its rows from 0.

    Parameters
    ----------
    index : pandas.Index
        Of the whole frame.
    taken : RowIndex or None, default=None
        The rows of the frame that take part; None for all.
    """
    import pandas as pd

    if taken is not None and not taken.is_numbered:  # by a column
        return taken
    has_gaps = taken is not None and taken.numbers is not None
    is_count = isinstance(index, pd.RangeIndex) and index.equals(
        pd.RangeIndex(len(index))
    )
    if is_count:
        return taken if has_gaps else None
    if taken is None:
        return RowIndex(len(index), own=index)
    kept = taken.numbers_of(0, taken.n_samples)
    return replace(taken, own=index[kept] if has_gaps else index[: len(kept)])


def range_of_pandas(
    metadata: Mapping[bytes, bytes] | None, n_rows: int
) -> "pd.Index | None":
    """Return the index that the metadata of a file describe without a column.

    None if there is none, if it counts from 0, or if it is of another number of rows.
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
    """Notes which rows of a table are taken while they are read.

    Parameters
    ----------
    files : sequence of str
        Files of a folder; none for one file.
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
        """Note the next rows: numbers in one file that rise, and their names."""
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

    def index(self, name: str | None = None) -> RowIndex:
        """Return which rows were taken; ``name`` is that of their names."""
        numbers = None
        if not self._is_whole:
            numbers = KeptNames(np.concatenate(self._pieces))
        names = None
        if self._names:
            names = KeptNames(np.concatenate(self._names))
        return RowIndex(
            n_samples=sum(self._lengths),
            files=self._files,
            lengths=tuple(self._lengths) if self._files else (),
            numbers=numbers,
            names=names,
            name=name if names is not None else None,
        )
