"""What is public refuses arguments that do not fit, and changes nothing else."""

import inspect
import math
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from numpydoc.docscrape import FunctionDoc

import mmcnb
from mmcnb import kernels
from mmcnb.kernels import unchecked
from mmcnb.kernels._checks import Array, Flag, Number, Rows, Signs, Starts, Whole, checked, takes
from mmcnb.samples import CSRBlock
from tests.kernels.arguments import BY_ROWS, good_arguments
from tests.kernels.inputs import DTYPES

BOUNDED = [
    (name, argument)
    for name in kernels.__all__
    for argument, kind in getattr(kernels, name).takes.items()
    if isinstance(kind, Number) and kind.least > -math.inf
]


def copied(given):
    return {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in given.items()}


def call(routine, given):
    """What a routine returns and the arrays it was given, after the call."""
    found = routine(*given.values())
    found = found if isinstance(found, tuple) else (found,)
    return [*(value for value in found if value is not None), *given.values()]


@pytest.mark.parametrize("name", kernels.__all__)
@settings(max_examples=10)
@drawn(seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES))
def test_checked_and_unchecked_give_the_same_bits(name, seed, dtype):
    given = good_arguments(name, seed, dtype)
    checked = call(getattr(kernels, name), copied(given))
    plain = call(getattr(unchecked, name), copied(given))
    for one, other in zip(checked, plain, strict=True):
        np.testing.assert_array_equal(one, other)


# -- what does not fit -------------------------------------------------------------------------


def strided(value):
    """The same values, each second one of a larger array."""
    twice = np.repeat(value, 2, axis=-1)
    return twice[..., ::2]


def locked(value):
    value = value.copy()
    value.flags.writeable = False
    return value


def with_first(value, number):
    value = value.copy()
    value.flat[0] = number
    return value


def other_sizes(kind, value, others):
    """One more along each axis whose size is in another shape too, or is a number."""
    known = [symbol for other in others for symbol, _ in axes_of(other)]
    for k, axis in enumerate(kind.axes):
        symbol = axis[0]
        if symbol.isdigit() or symbol in known or kind.axes.count(axis) > 1:
            yield np.concatenate([value, np.take(value, [0], axis=k)], axis=k)


def axes_of(kind):
    return kind.axes if isinstance(kind, Array) else [(getattr(kind, "size", ""), 0)]


def wrong_arrays(kind, value, others):
    yield "a list"
    yield value.tolist()
    yield np.ma.masked_array(value)
    yield value[None]
    yield value.astype(np.complex64)
    yield value.astype(">i2")
    yield value.astype(value.dtype.newbyteorder() if value.itemsize > 1 else bool)
    yield from other_sizes(kind, value, others)
    if value.size > 1 and value.shape[-1] > 1:
        yield strided(value)
    if kind.written:
        yield locked(value)
    if isinstance(kind, Starts):
        yield with_first(value, -1)
        yield value + 10**6
        yield value[::-1].copy() + np.arange(len(value))[::-1]
    elif isinstance(kind, Signs):
        yield with_first(value, 0)
    elif kind.below is not None:
        yield with_first(value, kind.least - 1)
        yield with_first(value, 10**6)
    elif isinstance(kind.least, int):
        yield with_first(value, kind.least - 1)
    elif kind.least is not None:
        yield value * 0 - 1


def wrong_values(kind, value, others):
    yield from (None, "1", [1], math.nan)
    if isinstance(kind, Flag):
        yield from (0, 1.0)
    elif isinstance(kind, Whole):
        yield from (kind.least - 1, 1.5, 10**30)
    elif isinstance(kind, Number):
        yield from ([math.inf] if kind.finite else []) + ([-1.0] if kind.least == 0 else [])


@pytest.mark.parametrize("name", kernels.__all__)
def test_each_argument_that_does_not_fit_is_named(name):
    routine, given = getattr(kernels, name), good_arguments(name, seed=4)
    for argument, kind in routine.takes.items():
        others = [other for key, other in routine.takes.items() if key != argument]
        wrong = wrong_arrays if isinstance(kind, Array) else wrong_values
        for value in wrong(kind, given[argument], others):
            with pytest.raises(mmcnb.InputError) as raised:
                routine(**copied(given) | {argument: value})
            sentence = str(raised.value)
            assert argument in sentence, (argument, value, sentence)
            assert sentence.endswith(".")
            assert len(sentence.split()) <= 30


@pytest.mark.parametrize(("name", "argument"), BOUNDED)
def test_a_number_may_be_the_least_that_is_asked_for(name, argument):
    given = good_arguments(name)
    least = getattr(kernels, name).takes[argument].least
    checked_too = call(getattr(kernels, name), copied(given) | {argument: least})
    plain = call(getattr(unchecked, name), copied(given) | {argument: float(least)})
    for one, other in zip(checked_too, plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_number_that_is_a_size_must_be_that_of_the_arrays_before_it():
    @checked
    @takes(low=Array("(k,)", "float64"), n_clusters=Whole(size="k"))
    def routine(low, n_clusters):
        return n_clusters

    assert routine(np.ones(2), 2) == 2
    with pytest.raises(mmcnb.InputError, match=r"^n_clusters=3 does not fit; give 2, as k=2 in low\.$"):
        routine(np.ones(2), 3)


@pytest.mark.parametrize("name", kernels.__all__)
def test_arrays_of_nothing_are_refused_or_give_no_rows(name):
    routine, given = getattr(kernels, name), good_arguments(name)
    empty = {key: value[:0] if isinstance(value, np.ndarray) else value for key, value in given.items()}
    rows_alone = all(
        kind.axes[0] == ("rows", 0) for kind in routine.takes.values() if isinstance(kind, Array)
    )
    if rows_alone:
        assert sum(np.sum(value) for value in call(routine, empty) if isinstance(value, np.ndarray)) == 0
    else:
        with pytest.raises(mmcnb.InputError):
            routine(**empty)


def test_sentences_say_what_is_there_and_what_is_needed():
    X, B = np.zeros((100, 5)), np.zeros((7, 3))
    sentences = {
        "B of shape (p, d) has 3 columns; give 5, as d=5 in X.": (X, B, 0.5, np.empty((100, 7))),
        "out of shape (rows, p) has 9 rows; give 100, as rows=100 in X.": (X, X[:7], 0.5, np.empty((9, 7))),
        "B of shape (p, d) has 0 rows; give at least 1.": (X, X[:0], 0.5, np.empty((100, 0))),
        "gamma=nan is out of range; give a finite number of at least 0.": (
            X,
            X,
            np.nan,
            np.empty((100, 100)),
        ),
        "X is of dtype int64 and not float32 or float64; give X.astype(np.float64).": (
            X.astype(int),
            B,
            1,
            X,
        ),
        "X is of type list; give a NumPy array of shape (rows, d).": ([[1.0]], B, 1, X),
        'X is not an aligned array in C order; give np.require(X, requirements="CA").': (X.T, B, 1, X),
        "out is not an aligned array in C order; give one made by np.empty.": (
            X,
            X,
            1,
            np.empty((100, 200)).T,
        ),
    }
    for sentence, arguments in sentences.items():
        with pytest.raises(mmcnb.InputError) as raised:
            kernels.rbf_kernel_block_into(*arguments)
        assert str(raised.value) == sentence


def test_columns_out_of_range_are_refused_where_rows_are_read_and_nowhere_else():
    block = CSRBlock(np.ones(4), np.array([9, 0, 2, 1]), np.array([1, 2, 3]), 3)
    np.testing.assert_array_equal(kernels.decision_values(block, np.arange(3.0), 0), [0, 2])
    with pytest.raises(mmcnb.InputError, match=r"^indices\[2\] is 2; give values in \[0, p\), with p=2\.$"):
        kernels.decision_values(block._replace(n_features=2), np.arange(2.0), 0)
    with pytest.raises(mmcnb.InputError, match=r"^indptr goes from 1 to 5; .* to at most stored=4\.$"):
        kernels.decision_values(block._replace(indptr=np.array([1, 2, 5])), np.arange(3.0), 0)
    with pytest.raises(mmcnb.InputError, match=r"^coef of shape \(p,\) has 2 values; give 3, as p=3 in F\.$"):
        kernels.decision_values(block, np.arange(2.0), 0)


def test_rows_may_be_a_sparse_array_of_scipys():
    rows = scipy.sparse.random_array((6, 4), density=0.5, format="csr", rng=0)
    np.testing.assert_allclose(kernels.decision_values(rows, np.arange(4.0), 1), rows @ np.arange(4.0) + 1)


@pytest.mark.parametrize("name", BY_ROWS)
def test_each_array_of_csr_rows_that_does_not_fit_is_named(name):
    routine, given = getattr(kernels, name), good_arguments(name, seed=4, sparse=True)
    first, block = next(iter(given.items()))
    kinds, _ = routine.takes[first].of_csr(first, block, {})
    for part, kind in kinds.items():
        others = [other for key, other in kinds.items() if key != part]
        for value in wrong_arrays(kind, getattr(block, part), others):
            with pytest.raises(mmcnb.InputError, match=part):
                routine(**given | {first: block._replace(**{part: value})})


def test_rules_over_several_arguments():
    def refused(name, match, **wrong):
        with pytest.raises(mmcnb.InputError, match=match):
            getattr(kernels, name)(**good_arguments(name, 1) | wrong)

    four = np.ones((1, 4), np.int8)
    refused("evolve_labels", "^M has 2 columns; .* 4\\.$", M=np.ones((4, 2)), population=four, matrix=True)
    refused("evolve_labels", "^limit=0 is below 3", M=np.eye(3), population=np.ones((1, 3), np.int8), limit=0)
    refused("size_multipliers", "^low adds up to", low=np.full(4, 9), high=np.full(4, 9), **_scores())
    refused(
        "steepest_moves",
        r"^high\[0\] is 1; give values at least low",
        low=np.full(2, 2),
        high=np.full(2, 1),
        **_pairs(),
    )


def _scores():
    return {"scores": np.eye(4), "weights": np.ones(4), "start": np.zeros(4)}


def _pairs():
    return {"R": np.eye(6), "labels": np.arange(6) % 2}


# -- what is said ------------------------------------------------------------------------------


def text_of(kind):
    """A type as docstrings write it."""
    if isinstance(kind, Flag):
        return "bool"
    if isinstance(kind, Whole):
        return f"int, at least {kind.least}"
    if isinstance(kind, Number):
        return f"float, at least {kind.least}" if kind.least > -math.inf else "float"
    use = "overwritten" if kind.written else "or rows in CSR form" if isinstance(kind, Rows) else ""
    return ", ".join(filter(None, [f"ndarray of shape {kind.shape}", kind.dtype, kind.bounds, use]))


@pytest.mark.parametrize("name", kernels.__all__)
def test_docstrings_say_what_is_checked(name):
    routine = getattr(kernels, name)
    parameters = inspect.signature(routine).parameters
    assert list(routine.takes) == list(parameters)
    doc = FunctionDoc(routine)
    said = {one: entry.type for entry in doc["Parameters"] for one in entry.name.split(", ")}
    assert {key: text.partition(", default=")[0] for key, text in said.items()} == {
        key: text_of(kind) for key, kind in routine.takes.items()
    }
    assert {key: text.partition(", default=")[2] for key, text in said.items()} == {
        key: "" if one.default is one.empty else str(one.default) for key, one in parameters.items()
    }
    assert [entry.type for entry in doc["Raises"]] == ["InputError"]


@pytest.mark.parametrize("name", kernels.__all__)
def test_wrappers_are_functions_that_can_be_pickled(name):
    routine = getattr(kernels, name)
    assert inspect.isfunction(routine)
    assert routine.__name__ == name
    assert pickle.loads(pickle.dumps(routine)) is routine


def test_an_int_compiles_nothing_anew():
    X, out = np.ones((2, 3)), np.empty((2, 2))
    kernels.rbf_kernel_block_into(X, X, 1.0, out)
    before = len(unchecked.rbf_kernel_block_into.signatures)
    kernels.rbf_kernel_block_into(X, X, 1, out)
    kernels.rbf_kernel_block_into(X, X, np.float32(1), out)
    assert len(unchecked.rbf_kernel_block_into.signatures) == before
