"""Public routines refuse arguments that do not fit their docstrings."""

import inspect
import math
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from numpydoc.docscrape import FunctionDoc

import mmcnb
from mmcnb import kernels
from mmcnb.kernels import unchecked
from mmcnb.samples import CSRBlock
from tests.kernels.arguments import BY_ROWS, good_arguments, written

NINES = np.full(4, 9)
ONES = np.ones(4, np.int8)
CSR_TYPES = {
    "data": "of shape (stored,)",
    "indices": "of shape (stored,), in [0, columns)",
    "indptr": "of shape (rows + 1,), rising",
}


def types_of(name):
    """The type of each argument, as the docstring has it."""
    entries = FunctionDoc(getattr(kernels, name))["Parameters"]
    return {
        argument: entry.type for entry in entries for argument in entry.name.split(", ")
    }


def sizes_of(text):
    """Names of the sizes of an array, or none."""
    shape = re.search(r"\((.*?),?\)", text)
    return [axis.split()[0] for axis in shape[1].split(", ")] if shape else []


def copied(given):
    return {
        key: value.copy() if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }


def call(routine, given):
    """What a routine returns, and the arrays that it was given, after the call."""
    returned = routine(*given.values())
    return [*(returned if isinstance(returned, tuple) else [returned]), *given.values()]


def with_first(value, number):
    value = value.copy()
    value.flat[0] = number
    return value


def locked(value):
    value = value.copy()
    value.flags.writeable = False
    return value


def wrong_arrays(text, value, others):
    """Arrays that do not fit a type: of other kinds, orders, sizes and values."""
    yield from ("a list", value.tolist(), np.ma.masked_array(value), value[None])
    yield from (value.astype(np.complex64), value.astype(">i2"))
    yield value.astype(value.dtype.newbyteorder() if value.itemsize > 1 else bool)
    if value.shape[-1] > 1:
        yield np.repeat(value, 2, axis=-1)[..., ::2]
    sizes = sizes_of(text)
    for k, size in enumerate(sizes):
        if size in others or sizes.count(size) > 1:
            yield np.concatenate([value, np.take(value, [0], axis=k)], axis=k)
    if "overwritten" in text:
        yield locked(value)
    if "rising" in text:
        yield from (
            with_first(value, -1),
            value + 10**6,
            value[::-1] + np.arange(len(value))[::-1],
        )
    elif "-1 or +1" in text:
        yield with_first(value, 0)
    elif least := re.search(r"(?:in \[|at least )(\S+?)(?:,|$)", text):
        yield with_first(value, int(least[1].replace("low", "0")) - 1)
        if "in [" in text:
            yield with_first(value, 10**6)
        elif value.dtype == float:
            yield with_first(value, math.nan)


def wrong_values(text):
    yield from (None, "1", [1], math.nan)
    if text.startswith("bool"):
        yield from (0, 1.0)
    elif text.startswith("int"):
        yield from (int(re.search(r"at least (\d)", text)[1]) - 1, 1.5, 10**30)
    elif "at least" in text:
        yield from (-1.0, math.inf)


@pytest.mark.parametrize("name", kernels.__all__)
def test_each_argument_that_does_not_fit_its_docstring_is_named(name):
    routine = getattr(kernels, name)
    given = good_arguments(name, seed=4)
    types = types_of(name)
    assert list(types) == list(inspect.signature(routine).parameters)
    assert [entry.type for entry in FunctionDoc(routine)["Raises"]] == ["InputError"]
    assert [key for key, text in types.items() if "overwritten" in text] == written(
        name
    )
    for argument, text in types.items():
        others = {
            size for key in types if key != argument for size in sizes_of(types[key])
        }
        is_array = isinstance(given[argument], np.ndarray)
        for value in (
            wrong_arrays(text, given[argument], others)
            if is_array
            else wrong_values(text)
        ):
            with pytest.raises(
                mmcnb.InputError, match=rf"(?s)\b{argument}\b.*\.$"
            ) as raised:
                routine(**copied(given) | {argument: value})
            assert len(str(raised.value).split()) <= 30


@pytest.mark.parametrize("name", BY_ROWS)
def test_each_array_of_csr_rows_that_does_not_fit_is_named(name):
    given = good_arguments(name, seed=4, sparse=True)
    first, block = next(iter(given.items()))
    for part, text in CSR_TYPES.items():
        others = {
            size
            for key in CSR_TYPES
            if key != part
            for size in sizes_of(CSR_TYPES[key])
        }
        for value in wrong_arrays(text, getattr(block, part), others):
            with pytest.raises(mmcnb.InputError, match=part):
                getattr(kernels, name)(
                    **given | {first: block._replace(**{part: value})}
                )


@pytest.mark.parametrize("name", kernels.__all__)
def test_a_number_may_be_the_least_that_is_asked_for(name):
    for argument, text in types_of(name).items():
        least = re.search(r"^(?:float|int), at least (\d)", text)
        # which the labels must keep
        if least and argument not in (
            "limit",
            "n_clusters",
        ):
            given = good_arguments(name) | {argument: int(least[1])}
            checked = call(getattr(kernels, name), copied(given))
            plain = copied(given) | {
                argument: float(least[1]) if "float" in text else int(least[1])
            }
            for one, other in zip(
                checked, call(getattr(unchecked, name), plain), strict=True
            ):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", kernels.__all__)
def test_arrays_of_nothing_are_refused_or_give_no_rows(name):
    routine = getattr(kernels, name)
    given = good_arguments(name)
    types = types_of(name)
    empty = {
        key: value[:0] if isinstance(value, np.ndarray) else value
        for key, value in given.items()
    }
    if all(sizes_of(text)[0] == "rows" for text in types.values() if sizes_of(text)):
        assert (
            sum(
                np.sum(value)
                for value in call(routine, empty)
                if isinstance(value, np.ndarray)
            )
            == 0
        )
    else:
        with pytest.raises(mmcnb.InputError):
            routine(**empty)


def test_sentences_say_what_is_there_and_what_is_needed():
    X = np.zeros((100, 5))
    B = np.zeros((7, 3))
    out = np.empty((100, 100))
    sentences = {
        "B of shape (p, d) has 3 columns; give 5, as d=5 in X.": (X, B, 0.5, out),
        "out of shape (rows, p) has 9 rows; give 100, as rows=100 in X.": (
            X,
            X[:7],
            0.5,
            out[:9, :7].copy(),
        ),
        "B of shape (p, d) has 0 rows; give at least 1.": (X, X[:0], 0.5, out),
        "gamma=nan is out of range; give a finite number of at least 0.": (
            X,
            X,
            math.nan,
            out,
        ),
        "X is of dtype int64 and not float32 or float64; give X.astype(np.float64).": (
            X.astype(int),
            B,
            1,
            out,
        ),
        "X is of type list; give a NumPy array of shape (rows, d).": (
            [[1.0]],
            B,
            1,
            out,
        ),
        "X is not an aligned array in C order; "
        'give np.require(X, requirements="CA").': (
            X.T,
            B,
            1,
            out,
        ),
        "out is not an aligned array in C order; give one made by np.empty.": (
            X,
            X,
            1,
            out.T,
        ),
    }
    for sentence, arguments in sentences.items():
        with pytest.raises(mmcnb.InputError) as raised:
            kernels.rbf_kernel_block_into(*arguments)
        assert str(raised.value) == sentence


def test_columns_out_of_range_are_refused_where_rows_are_read_and_nowhere_else():
    block = CSRBlock(np.ones(4), np.array([9, 0, 2, 1]), np.array([1, 2, 3]), 3)
    np.testing.assert_array_equal(
        kernels.decision_values(block, np.arange(3.0), 0), [0, 2]
    )
    with pytest.raises(
        mmcnb.InputError,
        match=r"^indices\[2\] is 2; give values in \[0, p\), with p=2\.$",
    ):
        kernels.decision_values(block._replace(n_features=2), np.arange(2.0), 0)
    with pytest.raises(
        mmcnb.InputError, match=r"^indptr goes from 1 to 5; .* to at most stored=4\.$"
    ):
        kernels.decision_values(
            block._replace(indptr=np.array([1, 2, 5])), np.arange(3.0), 0
        )
    with pytest.raises(
        mmcnb.InputError,
        match=r"^coef of shape \(p,\) has 2 values; give 3, as p=3 in F\.$",
    ):
        kernels.decision_values(block, np.arange(2.0), 0)


def test_rows_may_be_a_sparse_array_of_scipys():
    rows = scipy.sparse.random_array((6, 4), density=0.5, format="csr", rng=0)
    np.testing.assert_allclose(
        kernels.decision_values(rows, np.arange(4.0), 1), rows @ np.arange(4.0) + 1
    )


@pytest.mark.parametrize(
    ("name", "sentence", "arguments"),
    [
        (
            "evolve_labels",
            r"^M has 2 columns; .* 4\.$",
            (np.ones((4, 2)), True, np.ones((1, 4), np.int8), 9, 1, 1, 1, 0),
        ),
        (
            "evolve_labels",
            "^limit=2 is below 3",
            (np.eye(3), True, np.ones((1, 3), np.int8), 2, 1, 1, 1, 0),
        ),
        (
            "flip_labels",
            r"^M has 2 columns; .* 4\.$",
            (np.ones((4, 2)), True, ONES, np.ones(2), np.array([0])),
        ),
        (
            "flip_labels",
            "^flips has 1 more than once",
            (np.eye(4), True, ONES, np.ones(4), np.array([1, 1])),
        ),
        (
            "nystroem_map",
            "^gram has values that are not finite",
            (np.full((2, 2), np.inf), 0.0),
        ),
        (
            "size_multipliers",
            "^low adds up to",
            (np.eye(4), NINES, NINES, np.ones(4), np.zeros(4)),
        ),
        (
            "size_multipliers",
            "^low adds up to",
            (np.eye(4), 0 * NINES, NINES, 10 * NINES.astype(float), np.zeros(4)),
        ),
        (
            "steepest_moves",
            r"^high\[0\] is 8; .* at least low",
            (np.eye(4), 0 * NINES, NINES, NINES - 1, 1, True),
        ),
    ],
)
def test_rules_over_several_arguments(name, sentence, arguments):
    with pytest.raises(mmcnb.InputError, match=sentence):
        getattr(kernels, name)(*arguments)


def test_routines_are_functions_that_can_be_pickled_and_others_are_unknown():
    for name in kernels.__all__:
        routine = getattr(kernels, name)
        assert inspect.isfunction(routine)
        assert routine.__name__ == name
        assert pickle.loads(pickle.dumps(routine)) is routine
    assert set(kernels.__all__) <= set(dir(kernels))
    with pytest.raises(AttributeError, match="no attribute 'sigmoid_kernel_block'"):
        kernels.sigmoid_kernel_block


def test_import_loads_no_numba():
    code = "import sys, mmcnb.kernels; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_int_compiles_nothing_anew():
    X = np.ones((2, 3))
    out = np.empty((2, 2))
    kernels.rbf_kernel_block_into(X, X, 1.0, out)
    before = len(unchecked.rbf_kernel_block_into.signatures)
    kernels.rbf_kernel_block_into(X, X, 1, out)
    kernels.rbf_kernel_block_into(X, X, np.float32(1), out)
    assert len(unchecked.rbf_kernel_block_into.signatures) == before
