"""How far two labelings of the same rows agree, from counts of their pairs of labels."""

import numpy as np

COUNTED_ROWS = 2**20  # at once


def contingency(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Count rows by their two labels, block by block.

    Parameters
    ----------
    one, other : ndarray of shape (n,)
        Two labels of each row: integers or strings.

    Returns
    -------
    ndarray of shape (n_labels of one, n_labels of other), int64
        Counts, with the labels of both in sorted order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb._agreement import contingency
    >>> contingency(np.array([0, 0, 7]), np.array(["b", "a", "b"]))
    array([[1, 1],
           [0, 1]])
    """
    rows, columns = np.unique(one), np.unique(other)
    counts = np.zeros((rows.size, columns.size), np.int64)
    for start in range(0, one.shape[0], COUNTED_ROWS):
        block = slice(start, start + COUNTED_ROWS)
        places = np.searchsorted(rows, one[block]), np.searchsorted(columns, other[block])
        np.add.at(counts, places, 1)
    return counts


def adjusted_rand_index(counts: np.ndarray) -> float:
    """The adjusted Rand index of two labelings, from the counts of their pairs of labels.

    Parameters
    ----------
    counts : ndarray of shape (k, l), int
        Rows with each pair of labels.

    Returns
    -------
    float
        1 where the labelings part the rows alike, and about 0 at random.

    References
    ----------
    L. Hubert and P. Arabie, Comparing partitions, eq. (5).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb._agreement import adjusted_rand_index
    >>> adjusted_rand_index(np.array([[2, 0], [0, 3]]))
    1.0
    """

    def pairs(sizes: np.ndarray) -> int:
        return sum(size * (size - 1) // 2 for size in sizes.ravel().tolist())  # exact, whatever the number

    n = int(counts.sum())
    both, one, other = pairs(counts), pairs(counts.sum(axis=1)), pairs(counts.sum(axis=0))
    if both == one == other:
        return 1.0
    expected = one * other / (n * (n - 1) // 2)
    return (both - expected) / ((one + other) / 2 - expected)
