"""Clusters matched to those of an earlier partition, so they keep their numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def matched(table: np.ndarray) -> np.ndarray:
    """Give new clusters the numbers of earlier ones with the largest common weight.

    Two clusters match if they have at least half of the weight of one of them in
    common.

    Parameters
    ----------
    table : ndarray of shape (a, b)
        Common weight of a earlier clusters and b new ones.

    Returns
    -------
    ndarray of shape (b,), int64
        Numbers, each once; a new cluster without a match has a number from a on.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.match import matched
    >>> matched(np.array([[0, 90, 4], [80, 5, 0]]))
    array([1, 0, 2])
    """
    a, b = table.shape
    of_earlier = table.sum(axis=1, keepdims=True)
    lighter = np.minimum(of_earlier, table.sum(axis=0))
    weight = np.where(2 * table >= lighter, table, 0)
    earlier, new = linear_sum_assignment(weight, maximize=True)
    is_match = weight[earlier, new] > 0
    numbers = np.full(b, -1)
    numbers[new[is_match]] = earlier[is_match]
    is_new = numbers < 0
    numbers[is_new] = a + np.arange(np.count_nonzero(is_new))
    return numbers


def changes(
    table: np.ndarray, before: Sequence[float], after: Sequence[float]
) -> list[dict[str, Any]]:
    """Return what became of each number that has rows before or after.

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
    moved = table * (1 - np.eye(len(table)))
    of_earlier = table.sum(axis=1, keepdims=True)
    is_split = (2 * moved > table.sum(axis=0)).any(axis=1)
    is_merged = (2 * moved > of_earlier).any(axis=0)
    is_gone = np.equal(after, 0)
    is_new = np.equal(before, 0)
    kinds = np.select(
        [is_gone, is_new, is_split, is_merged],
        ["gone", "new", "split", "merged"],
        "kept",
    ).tolist()
    rows = []
    for number, kind in enumerate(kinds):
        sizes = {"before": before[number], "after": after[number]}
        if any(sizes.values()):
            rows.append({"number": number, "change": kind} | sizes)
    return rows
