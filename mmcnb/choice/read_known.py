"""Labels that a user knows of some rows, checked."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mmcnb.choice.known import KnownRows
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.row_index import RowIndex

MOST_SHOWN = 10  # rows named in a sentence
MOST_ROWS = 2000  # that are used; more do not change which partition is picked


def read_known_rows(
    partial_labels: Any, n_samples: int, n_clusters: int, index: RowIndex | None = None
) -> KnownRows | None:
    """Read the known labels of some rows; None if there are none.

    Parameters
    ----------
    partial_labels : array-like of shape (n_samples,) or mapping
        Labels from 0, and -1 where a row has none; or the labels of some rows by their
        numbers.
    n_samples, n_clusters : int
        Rows, and the most clusters there may be.
    index : RowIndex or None, default=None
        Which rows of their source these are, if some were left out; row numbers are
        those of the source.

    Returns
    -------
    KnownRows or None
        Of at most 2,000 rows, evenly among those that have a label.

    Raises
    ------
    InputError
        If a row or a label is not an integer or out of range, rows and labels differ in
        number, or rows of several files were left out.

    Warns
    -----
    ClusterWarning
        If some of the labels are of rows that were left out.

    Examples
    --------
    >>> from mmcnb.choice.read_known import read_known_rows
    >>> known = read_known_rows({7: 1, 3: 0, 5: -1}, 10, 2)
    >>> known.rows.tolist(), known.labels.tolist()
    ([3, 7], [0, 1])
    """
    numbers = _numbers_of_rows(index, n_samples)
    given = _given(partial_labels, n_samples, numbers, index)
    rows = given.rows
    labels = given.labels
    if not rows.shape == labels.shape == (rows.size,):
        raise InputError(
            f"partial_labels has the shape {labels.shape} for {rows.size} rows; give "
            "one label a row, -1 where there is none, or a dict of row numbers and "
            "labels."
        )
    bad = (rows < 0) | (rows > given.last)
    if bad.any():
        raise InputError(
            f"partial_labels names row {rows[bad][0]}; "
            f"give row numbers from 0 to {given.last}."
        )
    rows = rows[labels != -1]
    labels = labels[labels != -1]
    if given.numbers is not None:
        places = np.searchsorted(given.numbers[:-1], rows)
        is_left_out = given.numbers[places] != rows
        if isinstance(partial_labels, Mapping) and is_left_out.any():
            _warn_of_rows_left_out(rows[is_left_out])
        rows = places[~is_left_out]
        labels = labels[~is_left_out]
    order = np.argsort(rows)
    rows = rows[order]
    labels = labels[order]
    bad = (labels < 0) | (labels >= n_clusters)
    if bad.any():
        raise InputError(
            f"partial_labels of row {rows[bad][0]} is {labels[bad][0]}; give labels "
            f"from 0 to {n_clusters - 1}, and -1 where there is none."
        )
    if not rows.size:
        return None
    step = -(-rows.size // MOST_ROWS)
    return KnownRows(rows[::step], labels[::step])


class _Given(NamedTuple):
    """Labels as they were given, with the rows that they are of.

    Attributes
    ----------
    rows, labels : ndarray of int64
    last : int
        The last row there is.
    numbers : ndarray of int64 or None
        Those of the rows that are left, if ``rows`` also count others.
    """

    rows: np.ndarray
    labels: np.ndarray
    last: int
    numbers: np.ndarray | None


def _given(
    partial_labels: Any,
    n_samples: int,
    numbers: np.ndarray | None,
    index: RowIndex | None,
) -> _Given:
    last = n_samples - 1
    if isinstance(partial_labels, Mapping):
        if numbers is not None:
            last = _last_row(index, numbers)
        rows = _integers(list(partial_labels))
        labels = _integers(list(partial_labels.values()))
        return _Given(rows, labels, last, numbers)
    labels = _integers(partial_labels)
    if labels.shape == (n_samples,):  # of the rows that are left
        numbers = None
    if numbers is not None:
        last = max(labels.size - 1, _last_row(index, numbers))
    return _Given(np.arange(last + 1), labels, last, numbers)


def _numbers_of_rows(index: RowIndex | None, n_samples: int) -> np.ndarray | None:
    """Return the numbers of rows in their source; None if no row was left out."""
    if index is None or index.numbers is None:
        return None
    numbers = index.numbers_of(0, n_samples)
    all_numbers = replace(index, numbers=None).numbers_of(0, n_samples)
    return None if np.array_equal(numbers, all_numbers) else numbers


def _last_row(index: RowIndex | None, numbers: np.ndarray) -> int:
    """Return the number of the last row, which must be one of a single file."""
    if index is not None and index.files:
        raise InputError(
            "partial_labels names rows of a folder by one number each, but rows with "
            "gaps were left out of its files; give one label for each row that is "
            f"left, an array of shape ({numbers.size},) with -1 where there is none."
        )
    return int(numbers[-1])


def _warn_of_rows_left_out(rows: np.ndarray) -> None:
    listed = ", ".join(map(str, rows[:MOST_SHOWN].tolist()))
    if rows.size > MOST_SHOWN:
        listed += f" and {rows.size - MOST_SHOWN} more"
    warnings.warn(
        f"partial_labels has labels of rows that were left out for their gaps "
        f"({listed}), which are not used.",
        ClusterWarning,
        stacklevel=4,
    )


def _integers(numbers: Any) -> np.ndarray:
    """Return integers of any numeric type as int64."""
    values = plain_values(numbers, "partial_labels")
    if values.dtype.kind in "iuf":
        is_in_range = np.abs(values.astype(np.float64)) < 2**63
        if is_in_range.all():
            integers = values.astype(np.int64)
            if (integers == values).all():
                return integers
    raise InputError(
        "partial_labels holds what is no whole number; "
        "give row numbers and labels as integers."
    )
