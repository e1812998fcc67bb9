"""Labels that a user knows of some rows, checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mmcnb.choice.known import KnownRows
from mmcnb.errors import InputError
from mmcnb.samples.arrays import plain_values

MOST_ROWS = 2000  # that are used; more do not change which partition is picked


def read_known_rows(
    partial_labels: Any, n_samples: int, n_clusters: int
) -> KnownRows | None:
    """Read the known labels of some rows; None if there are none.

    Parameters
    ----------
    partial_labels : array-like of shape (n_samples,) or mapping
        Labels from 0, and -1 where a row has none; or the labels of some rows by their
        numbers.
    n_samples, n_clusters : int
        Rows, and the most clusters there may be.

    Returns
    -------
    KnownRows or None
        Of at most 2,000 rows, evenly among those that have a label.

    Raises
    ------
    InputError
        If a row or a label is not an integer or out of range, or rows and labels differ
        in number.

    Examples
    --------
    >>> from mmcnb.choice.read_known import read_known_rows
    >>> known = read_known_rows({7: 1, 3: 0, 5: -1}, 10, 2)
    >>> known.rows.tolist(), known.labels.tolist()
    ([3, 7], [0, 1])
    """
    if isinstance(partial_labels, Mapping):
        rows = _integers(list(partial_labels))
        labels = _integers(list(partial_labels.values()))
    else:
        rows = np.arange(n_samples)
        labels = _integers(partial_labels)
    if not rows.shape == labels.shape == (rows.size,):
        raise InputError(
            f"partial_labels has the shape {labels.shape} for {rows.size} rows; give "
            "one label a row, -1 where there is none, or a dict of row numbers and "
            "labels."
        )
    bad = (rows < 0) | (rows >= n_samples)
    if bad.any():
        raise InputError(
            f"partial_labels names row {rows[bad][0]}; "
            f"give row numbers from 0 to {n_samples - 1}."
        )
    rows = rows[labels != -1]
    labels = labels[labels != -1]
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
