"""Weights, classes and known labels are read by one rule, and what is no value a row is one sentence."""

import dask.array
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import mmcnb
from mmcnb.errors import InputError
from mmcnb.metrics import balanced_clustering_error
from mmcnb.samples import open_samples
from mmcnb.stores import convert, create_dense_store
from tests.estimators.conftest import make, make_blobs
from tests.estimators.front_door import front_door

N = 40
FIRST = np.arange(N) == 0


@pytest.fixture(scope="module")
def X():
    return make_blobs(N)


def with_first(value):
    """Ones, of which the first is another object."""
    values = np.ones(N, dtype=object)
    values[0] = value
    return values


NO_VALUES = {
    "masked": lambda: np.ma.masked_array(np.ones(N), FIRST),
    "masked in Dask": lambda: dask.array.ma.masked_array(dask.array.ones(N), FIRST),
    "dates": lambda: np.ones(N, "M8[s]"),
    "duration": lambda: with_first(np.timedelta64(1, "s")),
    "complex": lambda: np.ones(N) * 1j,
    "matrix": lambda: np.matrix(np.ones(N)),
    "None": lambda: with_first(None),
    "NA": lambda: pd.Series(pd.array([None, *[1] * (N - 1)], "Int64")),
    "null": lambda: pl.Series([None, *[1] * (N - 1)]),
    "sparse": lambda: scipy.sparse.csr_array(np.ones((N, 1))),
    "generator": lambda: (1 for _ in range(N)),
    "ragged": lambda: [[1], [1, 2]] * (N // 2),
    "a class": lambda: int,
}
ONLY_NUMBERS = {"digits": lambda: ["1"] * N, "mapping": lambda: {"a": 1}}


def sentence(ask, value):
    with pytest.raises(InputError) as error:
        ask(value)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", NO_VALUES | ONLY_NUMBERS)
def test_weights_and_known_labels_are_numbers(X, kind):
    value = (NO_VALUES | ONLY_NUMBERS)[kind]
    assert "sample_weight" in sentence(
        lambda v: make("CPMMC").fit(X, sample_weight=v), value()
    )
    assert "partial_labels" in sentence(
        lambda v: front_door().fit(X, partial_labels=v), value()
    )


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", NO_VALUES)
def test_classes_are_one_value_a_row(X, kind, tmp_path):
    def write(classes):
        with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
            writer.append(X.astype("f4"), classes)

    value = NO_VALUES[kind]
    labels = np.arange(N) % 2
    assert "y_true" in sentence(lambda v: balanced_clustering_error(v, labels), value())
    assert "labels" in sentence(lambda v: mmcnb.partition_score(X, v), value())
    assert "y" in sentence(write, value())
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "form",
    [
        lambda w: w.astype(object),
        lambda w: pd.Series(pd.array(w.astype(int), "Int64")),
        lambda w: pl.Series(w),
        lambda w: dask.array.from_array(w, chunks=7),
        lambda w: np.ma.masked_array(w),
    ],
)
def test_weights_of_any_form_are_the_same(X, form):
    weights = 1.0 + np.arange(N) % 3
    expected, model = (
        make("CPMMC").fit(X, sample_weight=w) for w in (weights, form(weights))
    )
    assert (model.objective_, model.labels_.tobytes()) == (
        expected.objective_,
        expected.labels_.tobytes(),
    )


def damaged(matrix):
    matrix.indices[3] = 10**6
    return matrix


@pytest.mark.parametrize(
    "made",
    [
        lambda X: np.ma.masked_greater(X, 1),
        lambda X: list(np.ma.masked_greater(X, 1)),
        lambda X: X.astype(str),
        lambda X: damaged(scipy.sparse.csc_array(X)),
    ],
    ids=["masked", "list of masked rows", "text", "out of bounds"],
)
def test_every_way_in_refuses_rows_by_the_same_sentence(X, made, tmp_path):
    model = make("CPMMC").fit(X)
    with_nodes = front_door(2).fit(X)
    expected = sentence(open_samples, made(X))
    for ask in (
        make("CPMMC").fit,
        make("CPMMC").fit_model,
        make("CPMMC").plan,
        model.predict,
        model.decision_function,
        model.to_frame,
        front_door().fit,
        mmcnb.UnsupervisedRLS().fit,
        with_nodes.score_outliers,
        lambda rows: with_nodes.labels_at(rows, 2),
        lambda rows: mmcnb.partition_score(rows, np.arange(N) % 2),
        lambda rows: convert(rows, tmp_path / "out.zarr", progress=False),
        lambda rows: model.predict(rows, out=tmp_path / "labels.zarr"),
    ):
        assert sentence(ask, made(X)) == expected
    assert not any(tmp_path.iterdir())
