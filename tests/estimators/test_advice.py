"""What a fit says aloud of columns, counts, gamma, chunks and engine; and that ordinary data hear nothing."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning, EfficiencyWarning
from sklearn.feature_extraction.text import TfidfTransformer

import mmcnb
from mmcnb.estimators.advice import count_advice, gamma_advice, spread_advice
from mmcnb.stores import describe_store

RNG = np.random.default_rng(0)
ORDINARY = {
    "digits": load_digits().data,
    "iris": load_iris().data,
    "blobs": make_blobs(500, 20, centers=5, random_state=0)[0],
    "pixels": np.pad(RNG.integers(0, 256, (200, 40)), ((0, 0), (0, 20))) * 1.0,
    "one-hot": np.eye(12)[RNG.integers(0, 12, 400)],
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_rows_hear_nothing(name, form):
    X = form(ORDINARY[name])
    assert [*spread_advice(X), *count_advice(X), *gamma_advice("auto", X)] == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_one_column_with_most_of_the_variance_is_named(form):
    X = form(np.random.default_rng(0).standard_normal((300, 3)) * [1.0, 30.0, 1.0])
    (sentence,) = spread_advice(X)
    assert sentence.startswith("column 1 has more than 99% of the variance")
    assert "scale='standard'" in sentence
    assert sentence.count(".") == 1
    (sentence,) = spread_advice(X, ["age", "income", "height"])
    assert sentence.startswith("column 'income' has")


@pytest.mark.parametrize(
    "factors", [[1.0, 5.0, 1.0], [1.0, 1000.0], [0.0, 0.0, 1.0], [30.0, 30.0, 1.0]]
)
def test_columns_that_share_the_variance_or_are_too_few_are_not_named(factors):
    X = np.random.default_rng(0).standard_normal((300, len(factors))) * factors
    assert list(spread_advice(X)) == []


def test_a_fit_warns_of_its_widest_column_by_name_and_scaling_ends_it():
    wine = load_wine()
    X = pd.DataFrame(wine.data, columns=wine.feature_names)
    model = mmcnb.UnsupervisedRLS(3, random_state=0, n_init=1)
    with pytest.warns(
        mmcnb.ClusterWarning, match="column 'proline' has more than 99% of the variance"
    ):
        model.fit(X)
    assert any("'proline'" in sentence for sentence in model.report_["warnings"])
    model.set_params(scale="standard").fit(X)
    assert model.report_["warnings"] == []


def test_counts_of_words_hear_of_weights_and_weighted_ones_do_not():
    shares = 1 / np.arange(1, 301)
    lengths = np.random.default_rng(0).lognormal(4, 1, 200).astype(int) + 5
    X = sp.csr_array(
        [
            np.random.default_rng(n).multinomial(n, shares / shares.sum())
            for n in lengths
        ]
    )
    (sentence,) = count_advice(X)
    assert "TfidfTransformer" in sentence
    assert "log-normalise" in sentence
    table = np.c_[
        np.eye(40)[np.arange(200) % 40], np.arange(200) % 90, np.arange(200) % 7
    ]
    for other in (
        TfidfTransformer().fit_transform(X),
        X.astype(bool).astype(float),
        X.toarray(),
        -X,
        sp.csr_array(table),
    ):
        assert list(count_advice(other)) == []
    with pytest.warns(mmcnb.ClusterWarning, match="look like counts"):
        mmcnb.KernelKMeans(2, random_state=0, n_init=1).fit(X.astype(float))


@pytest.mark.parametrize(
    ("gamma", "what"), [(1e4, "is too large: kernel"), (1e-7, "is too small: all")]
)
def test_gamma_far_off_hears_the_range_that_is_tried(gamma, what):
    X, _ = make_blobs(200, 4, centers=2, random_state=0)
    for rows in (X, sp.csr_array(X)):
        (sentence,) = gamma_advice(gamma, rows)
        assert what in sentence
        low, high = (
            float(word)
            for word in sentence.split("pass about ")[1].split(", or")[0].split(" to ")
        )
        assert list(gamma_advice(low, rows)) == list(gamma_advice(high, rows)) == []
        assert "gamma='auto'" in sentence
    with pytest.warns(mmcnb.ClusterWarning, match=what):
        mmcnb.KernelKMeans(2, gamma=gamma, random_state=0).fit(X)


def stored(folder, chunks):
    """A store of which one column has most of the variance."""
    rows = (
        np.random.default_rng(0).standard_normal((6000, 40)) * np.r_[100.0, np.ones(39)]
    )
    zarr.create_array(folder / "rows.zarr", data=rows.astype("f4"), chunks=chunks)
    return folder / "rows.zarr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "what"),
    [((16, 40), "most of the reading time is overhead"), ((512, 1), "1 of 40")],
)
def test_chunks_that_make_reading_slow_are_told_of_with_the_command(
    tmp_path, chunks, what
):
    path = stored(tmp_path, chunks)
    sentence = describe_store(path)["advice"]
    assert what in sentence
    assert f"`mmcnb convert {path} OUT.zarr`" in sentence
    with pytest.warns(EfficiencyWarning, match="mmcnb convert"):
        model = mmcnb.CPMMC(
            random_state=0, n_init=1, sample_size=200, scale="standard"
        ).fit(path)
    assert sentence in model.report_["warnings"]


@pytest.mark.slow
def test_the_verdict_has_a_line_for_each(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mmcnb",
        "fit",
        stored(tmp_path, (16, 40)),
        "--model",
        tmp_path / "model",
    ]
    command += ["--method", "kernel-kmeans", "--random-state", "0"]
    for setting in ("gamma=1000", "n_init=1", "max_iter=1"):
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    start = "mmcnb: warning: "
    lines = [line for line in done.stderr.splitlines() if line.startswith(start)]
    for what in (
        "column 0 has",
        "gamma=1000 is too large",
        "overhead",
        "did not converge",
    ):
        assert sum(what in line for line in lines) == 1, (what, done.stderr)
    assert "EfficiencyWarning" not in done.stderr
    assert "ClusterWarning" not in done.stderr


def test_a_fit_that_does_not_converge_says_so_and_reports_it():
    X = np.random.default_rng(0).standard_normal((600, 4))
    model = mmcnb.KernelKMeans(5, max_iter=1, n_init=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    (sentence,) = [
        str(one.message) for one in caught if one.category is ConvergenceWarning
    ]
    assert not model.converged_
    assert sentence in json.loads(json.dumps(model.report_))["warnings"]
