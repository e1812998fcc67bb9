"""Labels that the last pass of a fit keeps: those of `predict`, and no read of their own."""

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import mmcnb
from mmcnb._progress import Lines
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, open_samples
from mmcnb.stores import create_dense_store
from tests.samples.test_reads import RecordingStore

N = GROUP_ROWS + 3001
FITS = {
    "landmarks": lambda **given: mmcnb.UnsupervisedRLS(3, n_landmarks=12, sample_size=300, n_init=1, **given),
    "graph": lambda **given: front_door(kernel="graph", **given),
    "margin": lambda **given: front_door(kernel="linear", **given),
    "default": lambda **given: front_door(**given),
}


def front_door(**given):
    return mmcnb.MaximumMarginClustering(3, n_nodes=300, **{"random_state": 0} | given)


def blobs():
    """Three groups that touch."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    return (8.0 * rng.standard_normal((3, 3))[y] + rng.standard_normal((N, 3))).astype(np.float32)


def in_order(y):
    """Rows of three groups far apart, the group of each given."""
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 30.0]])
    return (centres[y] + np.random.default_rng(0).standard_normal((len(y), 2))).astype(np.float32)


def opened(folder, X):
    """Rows behind a store that counts what is got from it."""
    with create_dense_store(folder / "rows.zarr", X.shape[1], chunk_rows=BLOCK_ROWS) as writer:
        writer.append(X)
    store = RecordingStore(LocalStore(folder / "rows.zarr"))
    samples = open_samples(zarr.open_group(store, mode="r"))
    samples.is_reopenable = True
    store.gets.clear()
    return samples, store.gets


def most_gets(gets):
    """How often a chunk was got, other than the first, from which the order of the clusters is guessed."""
    return max(count for key, count in gets.items() if not key.endswith("c/0/0"))


@pytest.mark.parametrize("fit", FITS)
def test_labels_come_with_the_last_pass(fit, tmp_path, keep_columns_in):
    keep_columns_in("recompute")
    samples, gets = opened(tmp_path, blobs())
    model = FITS[fit](random_state=0, n_jobs=2).fit(samples)
    assert most_gets(gets) == model.history_["reads"].iloc[-1]
    np.testing.assert_array_equal(model.labels_, model.predict(samples))
    gets.clear()
    written = FITS[fit](random_state=0, n_jobs=1).fit_model(samples, out=tmp_path / "labels.zarr")
    assert most_gets(gets) == written.history_["reads"].iloc[-1]
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "labels.zarr", mode="r")[:], model.labels_)


def test_labels_are_read_apart_where_a_cluster_comes_sooner_than_the_sample_says(tmp_path, keep_columns_in):
    keep_columns_in("recompute")
    y = np.repeat([0, 1, 2], [N // 3, N // 3, N - 2 * (N // 3)])
    y[BLOCK_ROWS + 5] = 2  # alone, and hardly in the sample
    samples, gets = opened(tmp_path, in_order(y))
    model = FITS["graph"]().fit(samples)
    assert most_gets(gets) == model.history_["reads"].iloc[-1] + 1
    np.testing.assert_array_equal(model.labels_, np.array([0, 2, 1])[y])
    np.testing.assert_array_equal(model.labels_, model.predict(samples))


def test_the_order_of_sorted_rows_is_seen_in_the_sample(tmp_path, keep_columns_in):
    keep_columns_in("recompute")
    y = np.repeat([2, 0, 1], [N // 3, N // 3, N - 2 * (N // 3)])
    samples, gets = opened(tmp_path, in_order(y))
    model = FITS["graph"]().fit(samples)
    assert most_gets(gets) == model.history_["reads"].iloc[-1]
    np.testing.assert_array_equal(model.labels_, np.array([1, 2, 0])[y])


@pytest.mark.parametrize("fit", ["landmarks", "graph", "margin"])
def test_a_checkpoint_gives_the_labels_of_a_fit_that_was_kept_elsewhere(fit, tmp_path):
    samples, _ = opened(tmp_path, blobs())
    expected = FITS[fit](random_state=0).fit(samples).labels_
    for name in ("first", "resumed"):
        model = FITS[fit](random_state=0, checkpoint=tmp_path / "checkpoint")
        model.fit_model(samples, out=tmp_path / f"{name}.zarr")
        np.testing.assert_array_equal(zarr.open_array(tmp_path / f"{name}.zarr", mode="r")[:], expected)
    model = FITS[fit](random_state=0, checkpoint=tmp_path / "checkpoint").fit(samples)
    assert model.history_["resumed"].iloc[-1]
    np.testing.assert_array_equal(model.labels_, expected)


@pytest.fixture
def counted(monkeypatch):
    """The rows of each report to the progress of fits, and those that were expected."""
    reports, totals = [], []

    def recorded(lines, n):
        totals[:] = [lines.total]
        reports.extend([n] if n else [])

    monkeypatch.setattr(Lines, "update", recorded)
    return reports, totals


@pytest.mark.parametrize("fit", ["landmarks", "graph"])
def test_progress_counts_on_the_sample_and_the_passes(fit, tmp_path, keep_columns_in, counted):
    keep_columns_in("recompute")
    samples, _ = opened(tmp_path, blobs()[:GROUP_ROWS])
    model = FITS[fit](random_state=0, verbose=1).fit(samples)
    reports, totals = counted
    passes = 1 if fit == "graph" else model.max_passes
    assert totals == [(1 + passes) * samples.n_samples]
    assert reports == [samples.n_samples] * model.history_["reads"].iloc[-1]
    assert len(reports) <= 1 + passes


def test_progress_counts_what_a_checkpoint_recalls_as_done(tmp_path, keep_columns_in, counted):
    keep_columns_in("recompute")
    samples, _ = opened(tmp_path, blobs()[:GROUP_ROWS])
    fit, (reports, _) = (
        FITS["landmarks"](random_state=0, verbose=1, checkpoint=tmp_path / "checkpoint"),
        counted,
    )
    fit.fit(samples)
    first = list(reports)
    reports.clear()
    fit.fit(samples)
    assert reports[: len(first)] == first
    assert fit.history_["resumed"].iloc[-1]
