"""What a user calls base kernels, as the kernels that are computed."""

import functools

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import laplacian_kernel

from mmcnb.errors import InputError
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.base_kernels import (
    base_kernels,
    check_base_kernels,
    distinct_kernels,
    kernel_names,
    n_kernels,
)
from mmcnb.features.kernel import CallableKernel, Kernel

X = np.random.default_rng(0).standard_normal((60, 4)) * [1.0, 2.0, 0.5, 3.0]


def made(kernels, columns=None, sample=X):
    check_base_kernels(kernels, columns)
    return base_kernels(kernels, columns, sample)


@pytest.mark.parametrize("unit", [1, 1000])
def test_automatic_kernels_span_widths_around_the_distance_of_two_rows(unit):
    found = made("auto", sample=unit * X)
    distance = 2 * unit**2 * X.var(axis=0).sum()  # mean squared distance of two rows
    linear, poly, *gaussians = found.kernels
    assert (linear.name, poly.name, poly.degree, poly.coef0) == (
        "linear",
        "poly",
        2,
        1.0,
    )
    assert poly.gamma == pytest.approx(1 / distance, rel=0.05)
    widths = [(2 * kernel.gamma * distance) ** -0.5 for kernel in gaussians]
    np.testing.assert_allclose(widths, [0.35, 0.55, 0.9], rtol=0.05)
    assert found.columns == (None,) * 5
    assert (
        n_kernels("auto")
        == len(kernel_names(found))
        == len(set(kernel_names(found)))
        == 5
    )


@pytest.mark.parametrize(
    ("given", "kernel", "name"),
    [
        ("linear", Kernel("linear"), "linear"),
        (["rbf", {"gamma": 0.25}], Kernel("rbf", 0.25), "rbf, gamma=0.25"),
        (
            ("poly", {"gamma": 1}),
            Kernel("poly", 1.0, 3, 1.0),
            "poly, degree=3, gamma=1",
        ),
        (
            ("poly", {"gamma": 1, "degree": 2, "coef0": -1}),
            Kernel("poly", 1.0, 2, -1.0),
            "poly, degree=2, gamma=1, coef0=-1",
        ),
        (Kernel("rbf", 3.0), Kernel("rbf", 3.0), "rbf, gamma=3"),
    ],
)
def test_a_name_a_pair_and_an_object_are_kernels(given, kernel, name):
    found = made([given])
    assert found.kernels == (kernel,)
    assert kernel_names(found) == [name]
    assert n_kernels([given]) == 1


@pytest.mark.parametrize(
    ("name", "gamma"),
    [("rbf", "auto"), ("poly", "mean"), ("rbf", "median"), ("poly", "scale")],
)
def test_a_named_width_is_that_of_the_columns_the_kernel_sees(name, gamma):
    found = made([(name, {"gamma": gamma})] * 2, [None, [1, 3]])
    wanted = [default_gamma(gamma, name, part) for part in (X, X[:, [1, 3]])]
    assert [kernel.gamma for kernel in found.kernels] == pytest.approx(wanted)
    assert wanted[0] != wanted[1]


@pytest.mark.parametrize(
    "kernel", [laplacian_kernel, RBF(2.0), functools.partial(laplacian_kernel, gamma=2)]
)
def test_functions_are_kernels_by_their_name(kernel):
    found = made([kernel])
    (one,) = found.kernels
    assert isinstance(one, CallableKernel)
    np.testing.assert_array_equal(one(X[:5], X[:3]), kernel(X[:5], X[:3]))
    assert kernel_names(found) == [getattr(kernel, "__name__", None) or str(kernel)]


@pytest.mark.parametrize(
    ("part", "form", "numbers", "where"),
    [
        (None, scipy.sparse.csr_array, None, ""),
        ([2, 0, 2], np.asarray, [0, 2], ", 2 columns from 0 on"),
        (slice(1, None), scipy.sparse.csr_array, [1, 2, 3], ", columns 1 to 3"),
        (slice(None, None, -2), np.asarray, [1, 3], ", 2 columns from 1 on"),
        ([True, False, True, False], np.asarray, [0, 2], ", 2 columns from 0 on"),
        (np.array([-1]), np.asarray, [3], ", column 3"),
    ],
)
def test_columns_are_rising_numbers(part, form, numbers, where):
    found = made(["linear"], [part], form(X))
    (seen,) = found.columns
    assert (
        numbers is None
        if seen is None
        else (seen.dtype, seen.tolist()) == (np.int64, numbers)
    )
    assert kernel_names(found) == ["linear" + where]


def test_distinct_kernels_keep_their_columns_and_names():
    whole = made(
        ["linear", "linear", Kernel("rbf", 2.0), "linear"], [None, None, [1], [2]]
    )
    some = distinct_kernels(whole, X)
    assert kernel_names(some) == [
        "linear",
        "rbf, gamma=2, column 1",
        "linear, column 2",
    ]


def test_equal_rows_in_the_columns_of_a_kernel_are_named():
    flat = np.c_[X, np.ones(60)]
    with pytest.raises(
        InputError, match=r"^all rows are equal in the columns of kernels\[1\][^\n]*\.$"
    ):
        made(["linear", "rbf"], [None, [4]], flat)
    with pytest.raises(InputError, match=r"^all rows are equal[^\n]*\.$"):
        made(["linear"], None, np.ones((5, 2)))


@pytest.mark.parametrize(
    "parameters", [{"gamma": True}, {"gamma": 0}, {"gamma": [1]}, {"gamma": np.nan}]
)
def test_a_width_is_a_positive_number_or_a_name(parameters):
    with pytest.raises(
        InputError,
        match=r"^kernels\[0\]: gamma=[^\n]*; give a (positive )?number[^\n]*\.$",
    ):
        check_base_kernels([("rbf", parameters)], None)


@pytest.mark.parametrize("kernel", [("rbf",), ("rbf", 0.5), (1, {}), None, np.eye(30)])
def test_what_is_no_kernel_is_said_in_one_sentence(kernel):
    with pytest.raises(
        InputError, match=r"^kernels\[0\][^\n]* is not a kernel; pass a name, [^\n]*\.$"
    ):
        check_base_kernels([kernel], None)
