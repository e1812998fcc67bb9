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

import mmcnb
from mmcnb.datasets import make_block
from mmcnb.estimators.advice import count_advice, gamma_advice, spread_advice
from mmcnb.samples import open_samples
from mmcnb.samples._zarr import chunk_advice
from mmcnb.stores import describe_store

# -- columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_one_column_with_most_of_the_variance_is_named(sparse):
    X = np.random.default_rng(0).standard_normal((300, 3)) * [1.0, 30.0, 1.0]
    X = sp.csr_array(X) if sparse else X
    (sentence,) = spread_advice(X)
    assert sentence.startswith("column 1 has more than 99% of the variance")
    assert "scale='standard'" in sentence
    assert sentence.count(".") == 1
    (sentence,) = spread_advice(X, ["age", "income", "height"])
    assert sentence.startswith("column 'income' has")


@pytest.mark.parametrize("factors", [[1.0, 5.0, 1.0], [1.0, 1000.0], [0.0, 0.0, 1.0], [30.0, 30.0, 1.0]])
def test_columns_that_share_the_variance_or_are_too_few_are_not_named(factors):
    X = np.random.default_rng(0).standard_normal((300, len(factors))) * factors
    assert list(spread_advice(X)) == []


def ordinary(name):
    rng = np.random.default_rng(0)
    return {
        "digits": lambda: load_digits().data,
        "iris": lambda: load_iris().data,
        "blobs": lambda: make_blobs(500, 20, centers=5, random_state=0)[0],
        "moons": lambda: make_block("moons", 0, 500, 8)[0],
        "pixels": lambda: np.pad(rng.integers(0, 256, (200, 40)), ((0, 0), (0, 20))) * 1.0,
        "one-hot": lambda: np.eye(12)[rng.integers(0, 12, 400)],
    }[name]()


@pytest.mark.parametrize("name", ["digits", "iris", "blobs", "moons", "pixels", "one-hot"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_ordinary_rows_hear_nothing(name, form):
    X = form(ordinary(name))
    assert [*spread_advice(X), *count_advice(X), *gamma_advice("auto", X)] == []


@pytest.mark.parametrize("name", ["adult", "mnist", "optdigits"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_real_rows_hear_nothing(name, form):
    import data_loaders

    try:
        X, _ = data_loaders.load(name, rows=1000)
    except mmcnb.InputError as error:
        pytest.skip(f"{name} is not here: {error}")
    X = form(X.toarray() if sp.issparse(X) else X)
    for rows in (X, X * 255):
        assert [*spread_advice(rows), *count_advice(rows)] == []


def test_a_fit_warns_of_its_widest_column_by_name_and_scaling_ends_it():
    wine = load_wine()
    X = pd.DataFrame(wine.data, columns=wine.feature_names)
    model = mmcnb.UnsupervisedRLS(3, random_state=0, n_init=1)
    with pytest.warns(mmcnb.ClusterWarning, match="column 'proline' has more than 99% of the variance"):
        model.fit(X)
    assert any("'proline'" in sentence for sentence in model.report_["warnings"])
    model.set_params(scale="standard").fit(X)
    assert model.report_["warnings"] == []


# -- counts ------------------------------------------------------------------------------------


def documents(n=300, words=800, seed=0):
    """Documents of very different length, their words drawn by Zipf's law."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, words + 1)
    lengths = rng.lognormal(4, 1, n).astype(int) + 5
    return sp.csr_array(np.array([rng.multinomial(length, shares / shares.sum()) for length in lengths]))


def test_counts_of_words_hear_of_weights_and_weighted_ones_do_not():
    from sklearn.feature_extraction.text import TfidfTransformer

    X = documents()
    (sentence,) = count_advice(X)
    assert "TfidfTransformer" in sentence
    assert "log-normalise" in sentence
    assert list(count_advice(TfidfTransformer().fit_transform(X))) == []
    assert list(count_advice(X.astype(bool).astype(float))) == []
    assert list(count_advice(X.toarray())) == []
    assert list(count_advice(-X)) == []
    with pytest.warns(mmcnb.ClusterWarning, match="look like counts"):
        mmcnb.UnsupervisedRLS(2, random_state=0, n_init=1).fit(X.astype(float))


def test_a_sparse_table_with_a_few_whole_numbers_is_no_table_of_words():
    table = np.c_[np.eye(40)[np.arange(200) % 40], np.arange(200) % 90, np.arange(200) % 7]
    assert list(count_advice(sp.csr_array(table))) == []


# -- gamma -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "what"), [(1e4, "leaves each row alone"), (1e-7, "makes all rows alike")])
def test_gamma_far_off_hears_the_range_that_is_tried(gamma, what):
    X, _ = make_blobs(200, 4, centers=2, random_state=0)
    for rows in (X, sp.csr_array(X)):
        (sentence,) = gamma_advice(gamma, rows)
        assert what in sentence
        low, high = (float(word) for word in sentence.split("give about ")[1].split(", or")[0].split(" to "))
        assert list(gamma_advice(low, rows)) == list(gamma_advice(high, rows)) == []
        assert "gamma='auto'" in sentence
    with pytest.warns(mmcnb.ClusterWarning, match=what):
        mmcnb.KernelKMeans(2, gamma=gamma, random_state=0).fit(X)


# -- chunks ------------------------------------------------------------------------------------


def stored(folder, chunks, shape=(6000, 40)):
    array = zarr.create_array(folder / "rows.zarr", shape=shape, chunks=chunks, dtype="f4")
    array[:] = np.random.default_rng(0).standard_normal(shape)
    return folder / "rows.zarr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "what"), [((16, 40), "most of a read is overhead"), ((512, 1), "1 of 40")]
)
def test_chunks_that_make_reading_slow_are_told_of_with_the_command(tmp_path, chunks, what):
    path = stored(tmp_path, chunks)
    sentence = chunk_advice(open_samples(path))
    assert what in sentence
    assert f"`mmcnb convert {path} OUT.zarr`" in sentence
    assert describe_store(path)["advice"] == sentence
    with pytest.warns(EfficiencyWarning, match="mmcnb convert"):
        model = mmcnb.CPMMC(random_state=0, n_init=1, sample_size=200).fit(path)
    assert sentence in model.report_["warnings"]


def test_chunks_that_mmcnb_writes_are_fine(tmp_path):
    with mmcnb.stores.create_dense_store(tmp_path / "dense.zarr", n_features=40) as writer:
        writer.append(np.random.default_rng(0).standard_normal((30_000, 40)))
    with mmcnb.stores.create_csr_store(tmp_path / "csr.zarr", n_features=40) as writer:
        writer.append(sp.eye_array(40).tocsr())
    for name in ("dense", "csr"):
        assert chunk_advice(open_samples(tmp_path / f"{name}.zarr")) is None


# -- the verdict -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_verdict_has_a_line_for_each(tmp_path):
    X = np.random.default_rng(0).standard_normal((6000, 40)) * np.r_[100.0, np.ones(39)]
    array = zarr.create_array(tmp_path / "rows.zarr", shape=X.shape, chunks=(16, 40), dtype="f4")
    array[:] = X
    settings = ("gamma=1000", "n_init=1", "max_iter=1", "random_state=0")
    options = ["--method", "kernel-kmeans", *(word for one in settings for word in ("--set", one))]
    command = [
        sys.executable,
        "-m",
        "mmcnb",
        "fit",
        str(array.store.root),
        "--model",
        str(tmp_path / "model"),
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("warning")]
    for what in ("column 0 has", "gamma=1000 leaves each row alone", "overhead", "did not converge"):
        assert sum(what in line for line in told) == 1, (what, done.stdout)
    assert "EfficiencyWarning" not in done.stderr
    assert "ClusterWarning" not in done.stderr


def test_a_fit_that_does_not_converge_says_so_and_reports_it():
    X = np.random.default_rng(0).standard_normal((6000, 4))
    model = mmcnb.KernelKMeans(5, max_iter=1, n_init=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    said = [str(one.message) for one in caught if one.category is ConvergenceWarning]
    assert not model.converged_
    assert said == [one for one in json.loads(json.dumps(model.report_))["warnings"] if "converge" in one]
    assert len(said) == 1
