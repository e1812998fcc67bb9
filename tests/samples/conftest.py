"""Rows to read, and the storage they can have."""

import numpy as np
import pytest
import scipy.sparse
import zarr


@pytest.fixture
def rng():
    """A generator with a fixed seed."""
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    """Dense float32 rows; more than two reduction blocks."""
    return rng.normal(size=(9000, 7)).astype(np.float32)


@pytest.fixture
def csr(rng):
    """Sparse float32 rows, some of them empty."""
    matrix = scipy.sparse.random_array((9000, 40), density=0.1, rng=rng, dtype=np.float32, format="csr")
    matrix.sort_indices()
    return matrix


@pytest.fixture
def write_csr(tmp_path):
    """A function that writes a CSR group in AnnData's encoding and gives its store's path."""

    def write(data, indices, indptr, shape, chunks=1000, zarr_format=3, name="foreign.zarr", path="X"):
        root = zarr.open_group(tmp_path / name, mode="w", zarr_format=zarr_format)
        attributes = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
        if shape is not None:
            attributes["shape"] = [int(n) for n in shape]
        group = root.create_group(path, attributes=attributes)
        for part, values in (("data", data), ("indices", indices), ("indptr", indptr)):
            array = group.create_array(part, shape=values.shape, dtype=values.dtype, chunks=(chunks,))
            array[:] = values
        return tmp_path / name

    return write
