"""Clusters matched to those of an earlier partition, so that they keep their numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def matched(table: np.ndarray) -> np.ndarray:
    """Numbers of new clusters: those of earlier ones, so that the common weight is the largest.

    Two clusters match if they have at least half of the weight of one of them in
    common.

    Parameters
    ----------
    table : ndarray of shape (a, b)
        Common weight of a earlier clusters and b new ones.

    Returns
    -------
    ndarray of shape (b,), int64
        Each once; a new cluster without a match has a number from a on.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.match import matched
    >>> matched(np.array([[0, 90, 4], [80, 5, 0]]))
    array([1, 0, 2])
    """
    a, b = table.shape
    lighter = np.minimum(table.sum(axis=1, keepdims=True), table.sum(axis=0))
    alike = np.where(2 * table >= lighter, table, 0)
    numbers, (one, other) = np.full(b, -1), linear_sum_assignment(alike, maximize=True)
    numbers[other] = np.where(alike[one, other] > 0, one, -1)
    numbers[numbers < 0] = a + np.arange(np.count_nonzero(numbers < 0))
    return numbers


def changes(
    table: np.ndarray, before: Sequence[float], after: Sequence[float]
) -> list[dict[str, Any]]:
    """What became of each number that has rows before or after.

    Parameters
    ----------
    table : ndarray of shape (c, c)
        Common weight of earlier clusters and new ones, each by its number.
    before, after : sequence of c numbers
        Rows of the earlier clusters, and of the new ones.

    Returns
    -------
    list of dict
        "number"; "change": "kept", "split" if another cluster has most of its rows from
        it, "merged" if most rows of another one are in it, "new" or "gone"; rows
        "before" and "after".

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.match import changes
    >>> table = np.array([[60, 0, 40], [0, 9, 0], [0, 0, 0]])
    >>> [one["change"] for one in changes(table, [100, 9, 0], [60, 9, 40])]
    ['split', 'kept', 'new']
    """
    others = table * (1 - np.eye(len(table)))
    is_split = (2 * others > table.sum(axis=0)).any(axis=1)
    is_merged = (2 * others > table.sum(axis=1, keepdims=True)).any(axis=0)
    cases = [np.equal(after, 0), np.equal(before, 0), is_split, is_merged]
    kinds = np.select(cases, ["gone", "new", "split", "merged"], "kept").tolist()
    return [
        {"number": number, "change": kind, "before": old, "after": new}
        for number, (kind, old, new) in enumerate(
            zip(kinds, before, after, strict=True)
        )
        if old or new
    ]
