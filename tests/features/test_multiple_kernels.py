"""Several kernels side by side, and functions as kernels: the same values in any form of rows."""

import json
import pickle
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel

from mmcnb.errors import InputError
from mmcnb.features.kernel import (
    CallableKernel,
    Kernel,
    MultipleKernels,
)
from mmcnb.samples import BLOCK_ROWS, open_samples

LAPLACIAN = CallableKernel(partial(laplacian_kernel, gamma=0.4), "laplacian")
MATERN = CallableKernel(Matern(2.0), "matern")
NAMED = (
    Kernel("rbf", 0.3),
    Kernel("linear"),
    Kernel("poly", 0.2, 2, 0.5),
    Kernel("rbf", 0.01),
)
SUBSETS = (np.array([1, 4]), None, np.array([0, 1, 2, 3, 4, 5]), np.array([1, 4]))
EMPTY_OF_DATA = np.array([6])


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * BLOCK_ROWS + 9, 7)) * (
        rng.random((2 * BLOCK_ROWS + 9, 7)) < 0.6
    )
    X[:, EMPTY_OF_DATA] = 0.0
    X[3] = 0.0
    return X


def csr_block(X):
    return open_samples(scipy.sparse.csr_array(X)).block(0, len(X))


def stack_of(functions):
    return MultipleKernels(
        (*NAMED, *functions), (*SUBSETS, *[np.array([0, 2, 6])] * len(functions))
    )


@pytest.mark.parametrize(
    ("dtype", "out", "sparse"),
    [
        (np.float32, np.float32, False),
        (np.float64, np.float64, False),
        (np.float64, np.float64, True),
        pytest.param(
            np.float64, np.float32, False, marks=[pytest.mark.slow, pytest.mark.nightly]
        ),
        pytest.param(
            np.float32, np.float64, True, marks=[pytest.mark.slow, pytest.mark.nightly]
        ),
    ],
)
def test_a_stack_is_its_kernels_side_by_side_bit_by_bit(X, dtype, out, sparse):
    rows = X[:500].astype(dtype)
    basis = X[600:611].astype(dtype)
    stack = stack_of([LAPLACIAN] if sparse else [LAPLACIAN, MATERN])
    values = stack(csr_block(rows) if sparse else rows, basis, out)
    assert values.dtype == out
    assert values.flags.c_contiguous
    assert (
        values.shape
        == (500, 11 * len(stack.kernels))
        == (500, stack.against(basis).n_features)
    )
    for kernel, columns, place in zip(
        stack.kernels, stack.columns, stack.slices(11), strict=True
    ):
        seen = np.ascontiguousarray(rows if columns is None else rows[:, columns])
        vectors = np.ascontiguousarray(basis if columns is None else basis[:, columns])
        alone = kernel(csr_block(seen) if sparse else seen, vectors, out)
        np.testing.assert_array_equal(values[:, place], alone)


@pytest.mark.parametrize("form", [scipy.sparse.csr_matrix, np.asfortranarray, list])
def test_values_of_any_form_become_an_array(X, form):
    found = CallableKernel(lambda rows, basis: form(rows @ basis.T), "mine")(
        X[:5], X[:2], np.float32
    )
    assert type(found) is np.ndarray
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, (X[:5] @ X[:2].T).astype(np.float32))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda K: K.T,
            r"returned values of shape \(2, 5\), but \(5, 2\) was expected",
        ),
        (lambda K: None, "returned values of type object"),
        (lambda K: K.astype(str), "returned values of type <U"),
        (
            lambda K: np.where(np.arange(10).reshape(5, 2) == 7, np.nan, K),
            "returned nan .* row 3 .* vector 1",
        ),
        (lambda K: np.full((5, 2), 1e300), r"returned inf \(float32\)"),
    ],
)
def test_values_that_are_none_are_one_sentence(X, spoil, sentence):
    kernel = CallableKernel(lambda rows, basis: spoil(rows @ basis.T), "mine")
    for rows in (X[:5], csr_block(X[:5])):
        with pytest.raises(
            InputError, match=rf"^kernel mine {sentence}[^\n]*; pass [^\n]*\.$"
        ):
            kernel(rows, X[:2], np.float32)


def test_function_of_dense_rows_alone_says_so_of_sparse_rows(X):
    with pytest.raises(
        InputError,
        match=r"^kernel matern failed on sparse rows \([^\n]*; pass dense rows",
    ):
        MATERN(csr_block(X[:5]), X[:2])


def test_maps_travel_with_one_basis_and_nothing_worked_out(X):
    stack = stack_of([LAPLACIAN])
    basis = np.ascontiguousarray(X[:500])
    values = stack.against(basis)
    before = values.block(csr_block(X[:9]), np.float64)
    data = pickle.dumps(values)
    assert len(data) < basis.nbytes + 4000
    np.testing.assert_array_equal(
        pickle.loads(data).block(csr_block(X[:9]), np.float64), before
    )
    for kernel in (NAMED[0], LAPLACIAN):
        again = pickle.loads(pickle.dumps(kernel.against(basis)))
        np.testing.assert_array_equal(
            again.block(X[:9], np.float32), kernel(X[:9], basis, np.float32)
        )


def test_facts_describe_named_kernels_and_no_functions(X):
    with pytest.raises(
        InputError,
        match=r"^kernel laplacian is a function, which a model file cannot store;",
    ):
        stack_of([LAPLACIAN]).to_dict()
    stack = stack_of([])
    again = MultipleKernels.restore(json.loads(json.dumps(stack.to_dict())))
    assert again.kernels == NAMED
    assert [None if columns is None else columns.dtype for columns in again.columns][
        :2
    ] == [np.int64, None]
    np.testing.assert_array_equal(again(X[:9], X[:3]), stack(X[:9], X[:3]))
    assert Kernel.restore(json.loads(json.dumps(NAMED[2].to_dict()))) == NAMED[2]
