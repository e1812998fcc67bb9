"""One-hot encoding of categories."""

from collections.abc import Sequence

import numpy as np

UNKNOWN = -1  # code of categories that do not occur in the fit


def widen(
    block: np.ndarray, n_categories: Sequence[int | None], keeps_gaps: bool = False
) -> np.ndarray:
    """Replace category codes by columns of 0 and 1 (one-hot encoding).

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        Numbers or category codes. NaN represents a missing category, and `UNKNOWN` a
        category that does not occur in the column in the fit.
    n_categories : sequence of int or None
        Number of categories of each column; None for a numeric column, which is copied.
    keeps_gaps : bool, default=False
        Whether a missing category is encoded as NaN instead of 0 in all of its columns.

    Returns
    -------
    ndarray
        The wider block, or the block itself if no column has categories.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.one_hot import widen
    >>> widen(np.array([[0.5, 1.0], [1.5, np.nan]]), [None, 2]).tolist()
    [[0.5, 0.0, 1.0], [1.5, 0.0, 0.0]]
    """
    if not has_categories(n_categories):
        return block
    wide = np.zeros((len(block), n_columns_of(n_categories)), block.dtype)
    first = 0
    for numbers, n_values in zip(block.T, n_categories, strict=True):
        if n_values is None:
            wide[:, first] = numbers
        else:
            rows = np.flatnonzero(numbers >= 0)
            wide[rows, first + numbers[rows].astype(np.intp)] = 1
            if keeps_gaps:
                wide[np.isnan(numbers), first : first + n_values] = np.nan
        first += n_columns_of([n_values])
    return wide


def has_categories(n_categories: Sequence[int | None]) -> bool:
    """Return whether any column has categories, so that `widen` changes the block."""
    return any(n_values is not None for n_values in n_categories)


def n_columns_of(n_categories: Sequence[int | None]) -> int:
    """Return the number of columns that `widen` returns."""
    return sum(1 if n_values is None else n_values for n_values in n_categories)


def narrow(wide: np.ndarray, n_categories: Sequence[int | None]) -> np.ndarray:
    """Replace columns of 0 and 1 by category codes, as the inverse of `widen`.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples.one_hot import narrow
    >>> narrow(np.array([[0.5, 1.0, 0.0], [1.5, 0.0, 0.0]]), [None, 2]).tolist()
    [[0.5, 0.0], [1.5, -1.0]]
    """
    columns = []
    first = 0
    for n_values in n_categories:
        values = wide[:, first : first + n_columns_of([n_values])]
        first += n_columns_of([n_values])
        numbers = values[:, 0]
        if n_values is not None:
            has_one = (values == 1).any(axis=1)
            numbers = np.where(has_one, values.argmax(axis=1), UNKNOWN)
            numbers = np.where(np.isnan(values[:, 0]), np.nan, numbers)
        columns.append(numbers)
    return np.stack(columns, axis=1).astype(wide.dtype, copy=False)
