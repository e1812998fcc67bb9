"""How far two labelings of the same rows agree, from counts of their pairs of labels."""

from typing import Any

import numpy as np


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
    >>> from mmcnb._agreement import adjusted_rand_index
    >>> adjusted_rand_index(np.array([[0, 2], [2, 0]]))
    1.0
    """

    def pairs(sizes: np.ndarray) -> int:
        return sum(
            size * (size - 1) // 2 for size in sizes[sizes > 1].tolist()
        )  # exact, whatever the number

    cells = counts.ravel() if isinstance(counts, np.ndarray) else counts.data
    both, one, other = map(pairs, (cells, counts.sum(axis=1), counts.sum(axis=0)))
    if both == one == other:
        return 1.0
    n = int(counts.sum())
    expected = one * other / (n * (n - 1) // 2)
    return (both - expected) / ((one + other) / 2 - expected)
