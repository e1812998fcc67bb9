"""How often a fit reads its rows, counted at the store."""

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import mmcnb
from mmcnb.datasets import make_block
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, open_samples
from mmcnb.stores import create_dense_store
from mmcnb.stores._label_table import read_values
from tests.samples.test_reads import RecordingStore

ROWS = 5 * GROUP_ROWS // 2  # more than twice the larger sample, so that all stages are run
MOST_READS = 6  # beyond the two of the initialisation: the sample, and the mean with the larger sample


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store of two rings."""
    path = tmp_path_factory.mktemp("reads") / "rings.zarr"
    with create_dense_store(path, 4, chunk_rows=3 * BLOCK_ROWS) as writer:
        writer.append(make_block("rings", 0, ROWS, 4, random_state=0)[0])
    return path


def recorded(path):
    """Rows behind a store that counts what is got from it."""
    store = RecordingStore(LocalStore(path))
    samples = open_samples(zarr.open_group(store, mode="r"))
    samples.is_reopenable = True
    store.gets.clear()
    return samples, store.gets


def estimator():
    return mmcnb.SparseKernelMMC(gamma=2.0, n_landmarks=20, n_init=1, sample_size=500, random_state=0)


@pytest.mark.parametrize("store", ["memory", "recompute"])
def test_each_chunk_is_got_as_often_as_the_history_says(path, store, keep_columns_in, monkeypatch):
    monkeypatch.setattr("mmcnb.engine.plan.CACHED_BYTES", 2**30 if store == "memory" else 0)
    keep_columns_in(store)
    samples, gets = recorded(path)
    history = estimator().fit_model(samples).history_
    reads, sweeps = history["reads"].iloc[-1], history["sweeps"].iloc[-1]
    first_row = ("c/0/0", "X/c/0/0")  # read once more: clusters are numbered by the first row
    counts = {key: count for key, count in gets.items() if key not in first_row}
    assert set(counts.values()) == {reads}
    assert set(history["stage"]) == {"sample", "larger sample", "all rows"}
    assert (history["bytes"] == history["reads"] * samples.n_samples * samples.row_bytes).all()
    if store == "memory":
        assert reads == 2
        assert sweeps > 0
    else:
        assert reads <= 2 + MOST_READS
        assert sweeps == 0


def test_few_reads_end_near_the_optimum_and_say_how_near(path, monkeypatch):
    many = estimator().fit(path)
    monkeypatch.setattr("mmcnb.engine.plan.CACHED_BYTES", 0)
    few = estimator().fit(path)
    last = few.history_.iloc[-1]
    assert few.report_["gap"] == pytest.approx((last.primal - last.objective) / (last.C * last.rho))
    assert few.converged_ == (few.report_["gap"] <= few.eta)
    assert few.objective_ == pytest.approx(many.objective_, rel=0.02)
    assert np.mean(few.labels_ == many.labels_) > 0.999


@pytest.mark.parametrize("ending", ["zarr", "csv"])
def test_labels_of_a_fit_are_those_of_predict_and_read_no_row_of_cached_features(ending, path, tmp_path):
    samples, gets = recorded(path)
    model = estimator().fit_model(samples, out=tmp_path / f"fit.{ending}")
    assert max(gets.values()) == model.history_["reads"].iloc[-1] + 1  # the first row, once more
    assert model.report_["labels_seconds"] > 0
    assert not hasattr(model, "labels_")
    model.predict(samples, out=tmp_path / f"predict.{ending}")
    written, expected = (read_values(tmp_path / f"{name}.{ending}") for name in ("fit", "predict"))
    np.testing.assert_array_equal(written, expected)


def test_predict_reads_no_training_data(path, tmp_path):
    samples, gets = recorded(path)
    model = estimator().fit_model(samples)
    gets.clear()
    with create_dense_store(tmp_path / "new.zarr", 4) as writer:
        writer.append(make_block("rings", 0, 10_000, 4, random_state=1)[0])
    other, others = recorded(tmp_path / "new.zarr")
    labels = model.predict(other)
    assert len(labels) == 10_000
    assert not gets
    assert set(others.values()) == {1}
