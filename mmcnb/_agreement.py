"""How far two labelings of the same rows agree, from counts of their pairs of labels."""

from typing import Any

import numpy as np

COUNTED_ROWS = 2**20  # at once


def contingency(one: np.ndarray, other: np.ndarray) -> Any:
    """Count rows by their two labels, block by block.

    Parameters
    ----------
    one, other : ndarray of shape (n,)
        Two labels of each row: integers or strings.

    Returns
    -------
    csr_array of shape (n_labels of one, n_labels of other), int64
        Counts, with the labels of both in sorted order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb._agreement import contingency
    >>> contingency(np.array([0, 0, 7]), np.array(["b", "a", "b"])).toarray()
    array([[1, 1],
           [0, 1]])
    """
    from scipy.sparse import coo_array, csr_array

    rows, columns = np.unique(one), np.unique(other)
    counts = csr_array((rows.size, columns.size), dtype=np.int64)
    for start in range(0, one.shape[0], COUNTED_ROWS):
        block = slice(start, start + COUNTED_ROWS)
        places = np.searchsorted(rows, one[block]), np.searchsorted(columns, other[block])
        counts += coo_array((np.ones(places[0].shape[0], np.int64), places), counts.shape).tocsr()
    return counts


def adjusted_rand_index(counts: Any) -> float:
    """The adjusted Rand index of two labelings, from the counts of their pairs of labels.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (k, l), int64
        Rows with each pair of labels.

    Returns
    -------
    float
        1 if the labelings are the same up to their numbers, and about 0 at random.

    References
    ----------
    L. Hubert and P. Arabie, Comparing partitions, eq. (5).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb._agreement import adjusted_rand_index, contingency
    >>> labels = np.array([0, 0, 1, 1])
    >>> adjusted_rand_index(contingency(labels, 1 - labels))
    1.0
    """

    def pairs(sizes: np.ndarray) -> int:
        return sum(size * (size - 1) // 2 for size in sizes[sizes > 1].tolist())  # exact, whatever the number

    cells = counts.ravel() if isinstance(counts, np.ndarray) else counts.data
    both, one, other = map(pairs, (cells, counts.sum(axis=1), counts.sum(axis=0)))
    if both == one == other:
        return 1.0
    n = int(counts.sum())
    expected = one * other / (n * (n - 1) // 2)
    return (both - expected) / ((one + other) / 2 - expected)
