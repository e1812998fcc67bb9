"""Plan how a fit uses each column of a table, and explain why."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mmcnb.errors import InputError
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.frames import is_stream, table_of_stream
from mmcnb.samples.paths import checked_path
from mmcnb.tables.base import BaseTable
from mmcnb.tables.files import FileTable, refuse_csv_options
from mmcnb.tables.frames import is_frame, table_of_frame
from mmcnb.tables.open import check_is_table
from mmcnb.tables.options import TableOptions, changed_options, named_options
from mmcnb.tables.reader import TableReader
from mmcnb.tables.remedies import options_of_files, options_of_frames

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class TablePlan:
    """A plan for how a fit uses each column of a table.

    Printing a plan shows one line per column. Plans are immutable: `keep`, `drop` and
    `with_options` return a new plan. ``fit(table, columns=plan)`` reads the table
    according to a plan.

    Attributes
    ----------
    columns : DataFrame
        One row for each column of the table. The columns of this frame are "column"
        (the name), "type" (of the cells), "missing" and "distinct" (the numbers of
        missing cells and of distinct values), and "becomes" (what the column becomes,
        with the reason if it is left out).
    notes : list of str
        Sentences about cells that are changed and columns that are left out.
    n_samples : int
        Number of rows of the table.
    encoding : Encoding
        Description of the columns, which determines how cells become numbers.
    options : TableOptions
        Options for reading the table, as passed to `table_plan`.
    """

    columns: "pd.DataFrame"
    notes: Sequence[str]
    n_samples: int
    encoding: Encoding
    options: TableOptions
    _table: Any = field(repr=False)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of numbers that a fit uses."""
        return self.encoding.feature_names

    def keep(self, *columns: str | int) -> "TablePlan":
        """Return a plan that keeps columns that would otherwise be left out.

        Parameters
        ----------
        *columns : str or int
            Names or zero-based indices of the columns.
        """
        dropped = [name for name in self.options.drop or () if name not in columns]
        kept = [*(self.options.keep or ()), *columns]
        return self.with_options(keep=kept, drop=dropped)

    def drop(self, *columns: str | int) -> "TablePlan":
        """Return a plan that leaves columns out.

        Parameters
        ----------
        *columns : str or int
            Names or zero-based indices of the columns.
        """
        kept = [name for name in self.options.keep or () if name not in columns]
        return self.with_options(keep=kept, drop=[*(self.options.drop or ()), *columns])

    def with_options(self, **options: Any) -> "TablePlan":
        """Return a plan with some options changed.

        Parameters
        ----------
        **options
            Options of `mmcnb.read_table`; all other options are unchanged.
        """
        return _planned(self._table, changed_options(self.options, options))

    def __str__(self) -> str:
        """Return the number of rows, one line for each column, and the notes."""
        lines = [f"{self.n_samples:,} rows", self.columns.to_string(index=False)]
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def table_plan(table: Any, **options: Any) -> TablePlan:
    """Plan how a fit would use each column of a table, without fitting a model.

    All rows of the table are read.

    Parameters
    ----------
    table : path or data frame
        Any table that `mmcnb.read_table` accepts.
    **options
        Options of `mmcnb.read_table`, such as ``keep``, ``drop``, ``text`` or
        ``na_values``.

    Returns
    -------
    TablePlan

    Raises
    ------
    InputError
        If the table cannot be read, or if an option is unknown or does not apply to the
        table.

    Examples
    --------
    >>> import pandas as pd
    >>> import mmcnb
    >>> table = pd.DataFrame(
    ...     {"size": ["12 kg", "7 kg", "9 kg"] * 9, "customer_id": range(27)}
    ... )
    >>> plan = mmcnb.table_plan(table.assign(age=[20, 31, 44] * 9))
    >>> plan.feature_names
    ['size', 'age']
    >>> plan.keep("customer_id").feature_names
    ['size', 'customer_id', 'age']
    """
    if is_stream(table):
        table = table_of_stream(table)
    return _planned(table, named_options(options))


def _planned(table: Any, options: TableOptions) -> TablePlan:
    import pandas as pd

    opened: BaseTable
    in_words_of_source: Callable[[], AbstractContextManager[None]]
    if isinstance(table, str | os.PathLike):
        path = checked_path(table)
        check_is_table(path)
        in_words_of_source = options_of_files
        opened = FileTable(path, options)
    elif is_frame(table):
        refuse_csv_options("a data frame", options)
        in_words_of_source = options_of_frames
        opened = table_of_frame(table)
    else:
        raise InputError(
            "table must be a data frame or the path of a table, not "
            f"{type(table).__name__}."
        )
    # A fit fills missing values from neighbours by default.
    of_fit = options
    if options.missing == "auto":
        of_fit = replace(options, missing="neighbors")
    with in_words_of_source():
        reader = TableReader(opened, of_fit)
        reader.with_final_types(lambda: None)
    columns = pd.DataFrame(reader.listing()).rename(columns={"name": "column"})
    return TablePlan(
        columns=columns,
        notes=reader.notes,
        n_samples=reader.n_read,
        encoding=reader.encoding,
        options=options,
        _table=table,
    )
