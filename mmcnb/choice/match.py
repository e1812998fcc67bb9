"""Match new clusters with earlier clusters, so that they keep their numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def matched(table: np.ndarray) -> np.ndarray:
    """Number new clusters so that matched clusters keep their earlier numbers.

    The one-to-one matching maximises the weight that matched clusters have in common.
    Two clusters match only if their common weight is at least half of the weight of the
    lighter cluster.

    Parameters
    ----------
    table : ndarray of shape (a, b)
        ``table[i, j]`` is the total weight of the rows that are in earlier cluster i
        and in new cluster j.

    Returns
    -------
    ndarray of shape (b,), int64
        Number of each new cluster; all numbers differ. Clusters without a match are
        numbered a, a + 1, ...

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
    """Return the change of each cluster that has rows before or after an update.

    Parameters
    ----------
    table : ndarray of shape (c, c)
        ``table[i, j]`` is the total weight of the rows that are in earlier cluster i
        and in new cluster j. New clusters are numbered by `matched`.
    before, after : sequence of c numbers
        Number of rows in each cluster before and after the update.

    Returns
    -------
    list of dict
        One dictionary for each cluster, with its "number", the number of its rows
        "before" and "after", and its "change". The change is "gone" if the cluster has
        no rows after the update, "new" if it had none before, "split" if most rows of
        another new cluster were in this cluster, "merged" if most rows of another
        earlier cluster are in this cluster now, and otherwise "kept".

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
