"""The order of the columns changes no label, to the bit."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array

import mmcnb
from tests.estimators.front_door import front_door


def blobs(n=400, d=7, k=4, dtype=np.float64):
    rng = np.random.default_rng(d)
    means = rng.normal(0, 2.5, (k, d))
    rows = means[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    return (rows * rng.uniform(0.5, 2, d)).astype(dtype)


def overlapping(n=300):
    """Clusters that are barely apart, so that rounding decides about them."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 5, n)
    logs = rng.normal(0, 1, (5, 4))[kind] + rng.normal(0, 1.5, (n, 1))
    return np.exp((logs + rng.normal(0, 0.3, (n, 4))) / 4 + 1).round(2)


def topics(n=400, d=300):
    rng = np.random.default_rng(2)
    frequencies = rng.dirichlet(np.full(d, 0.05), 5)[rng.integers(0, 5, n)]
    counts = np.array([rng.multinomial(30, row) for row in frequencies])
    return csr_array(np.log1p(counts))


def with_gaps(n=400):
    rows = blobs(n)
    return np.where(np.random.default_rng(4).random(rows.shape) < 0.1, np.nan, rows)


def with_gaps_and_ties(n=400):
    """Columns of the same numbers, so that many rows are equally near but for rounding."""
    rng = np.random.default_rng(5)
    kind = np.arange(n) % 4
    steps = np.arange(n) // 4 % 7
    columns = []
    for _ in range(7):
        column = 20 * rng.permutation(4)[kind] + steps
        for k in range(4):
            column[kind == k] = rng.permutation(column[kind == k])
        columns.append(column)
    rows = np.array(columns).T * 0.1
    rows[rng.random(n) < 0.4, 0] = np.nan
    return rows


def mixed(n=400):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        np.exp(blobs(n, 5) / 4) * [1, 10, 100, 1, 1], columns=[*"abcde"]
    )
    frame["flag"] = rng.integers(0, 2, n)
    frame["late"] = frame["flag"].to_numpy()[::-1]
    frame["city"] = rng.choice(["Bern", "Oslo", "Rome"], n)
    frame["plan"] = rng.choice(["basic", "pro"], n)
    frame["visits"] = rng.poisson(2, n)
    return frame


CASES = {
    "dense": (blobs(), {}),
    "two columns": (blobs(d=2), {}),
    "overlapping": (overlapping(), {}),
    "more columns than axes": (blobs(d=70), {}),
    "float32": (blobs(dtype=np.float32), {}),
    "a number": (blobs(), {"n_clusters": 4}),
    "two of many": (blobs(d=5), {"n_clusters": 2}),
    "a linear machine": (blobs(), {"n_clusters": 3, "kernel": "linear"}),
    "directions": (blobs(d=12), {"metric": "cosine"}),
    "noise": (blobs(), {"noise": "auto"}),
    "not scaled": (blobs() * np.arange(1, 8), {"scale": None}),
    "scaled by all rows": (blobs() * np.arange(1, 8), {"scale": "standard"}),
    "more rows than nodes": (blobs(2500), {"n_nodes": 400}),
    "an inverted file": (blobs(6000), {"n_clusters": 4}),
    "sparse": (topics(), {}),
    "sparse directions": (topics(), {"metric": "cosine", "n_clusters": 5}),
    "a frame": (mixed(), {}),
    "gaps": (with_gaps(), {}),
    "a frame with gaps": (pd.DataFrame(with_gaps()).add_prefix("a"), {}),
    "gaps and ties": (with_gaps_and_ties(), {}),
    "a frame, a number": (mixed(), {"n_clusters": 3}),
}


def arranged(X, order):
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, order]
    if isinstance(X, csr_array):
        return csc_array(X)[:, order].tocsr()
    return np.ascontiguousarray(X[:, order])


def orders(d):
    return [np.arange(d)[::-1], np.random.default_rng(d).permutation(d)]


def same_answers(one, X, other, Y):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(Y))
    np.testing.assert_array_equal(one.score_outliers(X), other.score_outliers(Y))
    assert one.objective_ == other.objective_
    assert one.report_["trust"]["level"] == other.report_["trust"]["level"]


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_columns_changes_no_bit(case):
    X, options = CASES[case]
    model = front_door(**options).fit(X)
    for order in orders(X.shape[1]):
        Y = arranged(X, order)
        same_answers(model, X, front_door(**options).fit(Y), Y)


def test_weighted_rows_of_columns_in_any_order_have_the_same_labels():
    X = blobs(300)
    weights = 1 + np.arange(300) % 3
    model = front_door().fit(X, sample_weight=weights)
    for order in orders(7):
        other = front_door().fit(X[:, order], sample_weight=weights)
        np.testing.assert_array_equal(model.labels_, other.labels_)


def test_files_names_and_arrays_change_no_bit_in_any_order(tmp_path):
    frame = pd.DataFrame(overlapping(), columns=["length", "width", "height", "mass"])
    labels = front_door().fit(frame.to_numpy()).labels_
    path = tmp_path / "rows.csv"
    for order in orders(4):
        frame.iloc[:, order].to_csv(path, index=False)
        np.testing.assert_array_equal(front_door().fit(path).labels_, labels)
        renamed = frame.iloc[:, order].set_axis(["z", "b", "y", "a"], axis=1)
        np.testing.assert_array_equal(front_door().fit(renamed).labels_, labels)


def test_a_saved_model_labels_rows_as_before_and_takes_in_others(tmp_path):
    X = blobs(600, 9)
    order = orders(9)[1]
    model = front_door().fit(X)
    other = front_door().fit(X[:, order])
    other.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X[:, order]), model.labels_)
    new = blobs(600, 9)[::3] + 40.0  # a cluster of its own
    model.update(new)
    loaded.update(new[:, order])
    np.testing.assert_array_equal(model.labels_, loaded.labels_)


def test_errors_name_the_column_of_the_user():
    X = blobs(100, 5)
    model = front_door(scale=None).fit(X)
    assert model.model_.column_order is not None
    for column in range(5):
        far = X.copy()
        far[:, column] *= 1e200
        with pytest.raises(mmcnb.InputError, match=f"column {column} has the largest"):
            front_door(scale=None).fit(far)
        with pytest.raises(mmcnb.InputError, match=f"column {column} has the largest"):
            model.predict(far)
