"""Blocks as NumPy and SciPy know them, and weighted moments of their columns."""

from typing import Any

import numpy as np

from mmcnb.samples import CSRBlock


def as_matrix(rows: Any) -> Any:
    """A block as NumPy or SciPy knows it."""
    if not isinstance(rows, CSRBlock):
        return rows
    import scipy.sparse as sp

    return sp.csr_array(rows[:3], shape=(rows.indptr.shape[0] - 1, rows.n_features))


def stack(parts: list[Any]) -> Any:
    """Matrices one below the other."""
    if hasattr(parts[0], "indptr"):
        import scipy.sparse as sp

        return sp.vstack(parts, format="csr")
    return np.concatenate(parts)


def row_shares(n_samples: int, weights: np.ndarray | None) -> np.ndarray:
    """Share of each row in the total weight."""
    return np.full(n_samples, 1 / n_samples) if weights is None else weights / weights.sum()


def with_short_indices(sample: Any) -> Any:
    """A sample in memory, of which scikit-learn's own estimators take no longer indices than 32 bits."""
    if hasattr(sample, "indptr"):
        sample.indices, sample.indptr = sample.indices.astype(np.int32), sample.indptr.astype(np.int32)
    return sample


def moments(X: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and mean square of each column of dense or CSR rows."""
    import scipy.sparse as sp

    weights = np.ones(X.shape[0]) if weights is None else weights
    square = X.multiply(X) if sp.issparse(X) else np.square(X, dtype=np.float64)
    total = weights.sum()
    return np.asarray(weights @ X).ravel() / total, np.asarray(weights @ square).ravel() / total


def dense(rows: Any) -> np.ndarray:
    """Rows of a dense or CSR matrix as an ndarray."""
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
