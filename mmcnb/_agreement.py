"""Adjusted Rand index of two labelings, computed from their contingency table."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def adjusted_rand_index(counts: "np.ndarray | csr_array") -> float:
    """Compute the adjusted Rand index of two labelings from their contingency table.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (k, l), int64
        Contingency table. Entry (i, j) is the number of rows with label i in the first
        labeling and label j in the second.

    Returns
    -------
    float
        Adjusted Rand index: 1 if the labelings are equal up to renumbering, and about 0
        on average for random labels. It can be negative.

    References
    ----------
    L. Hubert and P. Arabie, Comparing partitions, eq. (5).

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb._agreement import adjusted_rand_index
    >>> adjusted_rand_index(np.array([[0, 2], [2, 0]]))
    1.0
    """

    cells = counts.ravel() if isinstance(counts, np.ndarray) else counts.data
    in_both = _pairs(cells)
    in_first = _pairs(counts.sum(axis=1))
    in_second = _pairs(counts.sum(axis=0))
    if in_both == in_first == in_second:
        return 1.0
    n = int(counts.sum())
    expected = in_first * in_second / (n * (n - 1) // 2)
    largest = (in_first + in_second) / 2
    return (in_both - expected) / (largest - expected)


def _pairs(sizes: np.ndarray) -> int:
    """Return the number of pairs of rows in the same group, given the group sizes.

    Python integers are used because they cannot overflow.
    """
    return sum(size * (size - 1) // 2 for size in sizes[sizes > 1].tolist())
