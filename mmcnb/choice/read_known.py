"""Read and validate the ``partial_labels`` parameter."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mmcnb._fit_warnings import Importance, warn
from mmcnb.choice.known import KnownRows
from mmcnb.errors import InputError
from mmcnb.samples.arrays import plain_values
from mmcnb.samples.row_index import RowIndex

MOST_SHOWN = 10  # rows listed in a message
MOST_ROWS = 2000  # more labels do not change which partition is picked


def read_known_rows(
    partial_labels: Any, n_samples: int, n_clusters: int, index: RowIndex | None = None
) -> KnownRows | None:
    """Validate ``partial_labels``, and return the known labels.

    Parameters
    ----------
    partial_labels : array-like of shape (n_samples,) or mapping
        Label of each row, from 0, where -1 stands for an unknown label; or a mapping
        from row numbers to labels.
    n_samples, n_clusters : int
        Number of rows, and largest possible number of clusters.
    index : RowIndex or None, default=None
        Positions of the rows in their source, if some rows of the source were left out.
        Row numbers in ``partial_labels`` then refer to the source. If None, no row was
        left out.

    Returns
    -------
    KnownRows or None
        At most 2,000 rows, evenly spaced among the rows with a label; None if no row
        has a label.

    Raises
    ------
    InputError
        If a row number or a label is not an integer or is out of range, if the numbers
        of rows and labels differ, or if row numbers are ambiguous because rows were
        left out of several files.

    Warns
    -----
    ClusterWarning
        If rows that have labels in a mapping were left out.

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
            "one label for each row, -1 where it is unknown, or a dict that maps row "
            "numbers to labels."
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
            f"from 0 to {n_clusters - 1}, and -1 where the label is unknown."
        )
    if not rows.size:
        return None
    step = -(-rows.size // MOST_ROWS)
    return KnownRows(rows[::step], labels[::step])


class _Given(NamedTuple):
    """The labels that the user passed, with their row numbers.

    Attributes
    ----------
    rows, labels : ndarray of int64
        Row numbers, and the label of each of these rows.
    last : int
        The largest valid row number.
    numbers : ndarray of int64 or None
        If ``rows`` refers to the source, the row numbers in the source of all rows that
        were not left out. None if ``rows`` refers to these remaining rows.
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
    if labels.shape == (n_samples,):  # a label for each row that was not left out
        numbers = None
    if numbers is not None:
        last = max(labels.size - 1, _last_row(index, numbers))
    return _Given(np.arange(last + 1), labels, last, numbers)


def _numbers_of_rows(index: RowIndex | None, n_samples: int) -> np.ndarray | None:
    """Return the row numbers in the source, or None if no row was left out."""
    if index is None or index.numbers is None:
        return None
    numbers = index.numbers_of(0, n_samples)
    all_numbers = replace(index, numbers=None).numbers_of(0, n_samples)
    return None if np.array_equal(numbers, all_numbers) else numbers


def _last_row(index: RowIndex | None, numbers: np.ndarray) -> int:
    """Return the row number in the source of the last row that was not left out.

    Raise InputError if the source consists of several files.
    """
    if index is not None and index.files:
        raise InputError(
            "partial_labels has row numbers, which are ambiguous, because rows with "
            "missing values were left out of several files; give one label for each "
            f"remaining row, an array of shape ({numbers.size},) with -1 where the "
            "label is unknown."
        )
    return int(numbers[-1])


def _warn_of_rows_left_out(rows: np.ndarray) -> None:
    listed = ", ".join(map(str, rows[:MOST_SHOWN].tolist()))
    if rows.size > MOST_SHOWN:
        listed += f" and {rows.size - MOST_SHOWN} more"
    warn(
        "partial_labels has labels of rows that were left out because of missing "
        f"values ({listed}); these labels are ignored.",
        Importance.PARAMETER,
    )


def _integers(numbers: Any) -> np.ndarray:
    """Convert numbers to int64; raise InputError if one of them is not an integer."""
    values = plain_values(numbers, "partial_labels")
    if values.dtype.kind in "iuf":
        is_in_range = np.abs(values.astype(np.float64)) < 2**63
        if is_in_range.all():
            integers = values.astype(np.int64)
            if (integers == values).all():
                return integers
    raise InputError(
        "partial_labels has a value that is not an integer; "
        "give row numbers and labels as integers."
    )
