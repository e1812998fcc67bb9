import numpy as np

DTYPES = ["float32", "float64"]


def rows_and_basis(rows, d, p, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, d)).astype(dtype), rng.standard_normal((p, d)).astype(dtype)


def sparse_rows(rows, d, dtype="float64", seed=0):
    """CSR triplet with empty rows, rows of all lengths and columns in random order."""
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(rows)]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(np.int64)
    indices = np.concatenate([*columns, []]).astype(np.int32)
    return rng.standard_normal(len(indices)).astype(dtype), indices, indptr
