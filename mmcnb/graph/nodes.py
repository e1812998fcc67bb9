"""Nodes of a graph: find the distinct rows of a sample, block by block."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from hashlib import blake2b
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_array

from mmcnb.samples.matrix import range_error, row_blocks

# The products of two blocks take as much memory as the eigensolver of the covariance
# matrix, so processing two blocks at once does not raise the peak.
BLOCKS_AT_ONCE = 2
Result = TypeVar("Result")

Each = Callable[..., Iterable]
"""Callable that maps a function over items like `map`, possibly in several threads."""

Matrix: TypeAlias = np.ndarray | csr_array
"""Dense or CSR rows."""


def finite(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Wrap a function of rows so that it raises InputError if a result overflows."""

    @wraps(function)
    def checked(*arguments: object) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            values = function(*arguments)
        if not np.isfinite(values).all():
            rows = next(filter(lambda value: hasattr(value, "shape"), arguments))
            raise range_error("differences or sums of the values overflow", rows)
        return values

    return checked


def of_row_blocks(
    sample: Matrix, function: Callable[[Matrix], Result], each: Each
) -> Iterator[Result]:
    """Yield the results of a function for each block of rows of a sample."""
    blocks = row_blocks(sample)
    for block in blocks:
        following = itertools.islice(blocks, BLOCKS_AT_ONCE - 1)
        yield from each(function, [block, *following])


def distinct_rows(sample: Matrix, each: Each = map) -> tuple[Matrix, np.ndarray]:
    """Return the distinct rows of a dense or CSR sample, compared bit by bit.

    Parameters
    ----------
    sample : ndarray or csr_array of shape (m, d)
        The rows; CSR rows must have ascending column indices.
    each : callable, default=map
        Maps a function over items, possibly in several threads.

    Returns
    -------
    rows : ndarray or csr_array of shape (p, d)
        The distinct rows, in the order in which they first occur.
    number : ndarray of shape (m,), int64
        For each row of the sample, the index of the equal row in ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.nodes import distinct_rows
    >>> distinct_rows(np.array([[3.0], [1.0], [3.0]]))[1]
    array([0, 1, 0])
    """
    digests = np.concatenate(list(of_row_blocks(sample, _digests, each)))
    _, first, number = np.unique(digests, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rows = sample
    if first.size < sample.shape[0]:
        rows = sample[first[order]]
    return rows, np.argsort(order)[number.ravel()]


def _digests(rows: Matrix) -> np.ndarray:
    """Return a digest of each row; equal rows have the same digest."""
    parts: Iterable[bytes]
    if hasattr(rows, "indptr"):
        stored: csr_array = rows.copy()
        stored.eliminate_zeros()
        parts = (
            stored.indices[start:stop].tobytes() + stored.data[start:stop].tobytes()
            for start, stop in itertools.pairwise(stored.indptr)
        )
    else:
        # Adding 0 turns -0 into 0, which has different bytes.
        parts = map(np.ndarray.tobytes, rows + 0.0)
    digests = b"".join(blake2b(part, digest_size=16).digest() for part in parts)
    return np.frombuffer(digests, "V16")
