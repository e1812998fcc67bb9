"""Least squares clusters: the same bits in every storage, by any threads or workers, in few reads."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.exceptions import ConvergenceWarning
from zarr.storage import LocalStore

import mmcnb
from mmcnb.engine.plan import RowShape
from mmcnb.least_squares.search import search_needs
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.samples.test_reads import RecordingStore

pytestmark = pytest.mark.slow

N = 2 * GROUP_ROWS + 3001  # three groups of blocks, so that workers share them
QUICK = {"n_init": 1, "sample_size": 300, "n_landmarks": 12, "max_passes": 3, "random_state": 0, "n_jobs": 1}
CASES = {
    "free": {"n_clusters": 2},
    "held": {"n_clusters": 4},
    "shares": {"n_clusters": 3, "cluster_sizes": [0.5, 0.3, 0.2], "scale": "standard"},
}
cases = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def dense():
    """Curved groups that overlap, so that passes change labels."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(-3, 3, (4, 3))
    return (centres[rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])] + rng.standard_normal((N, 3))).astype("f4")


@pytest.fixture(scope="module")
def csr(dense):
    return scipy.sparse.csr_array(np.where(dense > 0.5, dense, 0))


@pytest.fixture(scope="module")
def dense_stores(dense, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    zarr.create_array(folder / "30,000.zarr", data=dense, chunks=(30_000, 2))
    zarr.create_array(folder / "sharded.zarr", data=dense, chunks=(5000, 3), shards=(20_000, 3))
    with create_dense_store(folder / "ours.zarr", 3, chunk_rows=3 * BLOCK_ROWS) as writer:
        writer.append(dense)
    return [folder / name for name in ("30,000.zarr", "sharded.zarr", "ours.zarr")]


@pytest.fixture(scope="module")
def csr_store(csr, tmp_path_factory):
    path = tmp_path_factory.mktemp("csr") / "rows.zarr"
    with create_csr_store(path, 3) as writer:
        writer.append(csr)
    return path


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(1).integers(0, 4, N).astype(float)


def fitted(case, X, sample_weight=None, **parameters):
    settings = QUICK | CASES[case] | parameters
    return mmcnb.UnsupervisedRLS(**settings).fit(X, sample_weight=sample_weight)


def facts(model, probe):
    """What must be the same to the bit."""
    told = model.history_[["stage", "start", "round", "objective", "changed"]].to_numpy(dtype=str)
    rule = model.model_.rule
    values = model.decision_function(probe).tobytes(), model.transform(probe[:50]).tobytes()
    arrays = model.labels_.tobytes(), rule.coef.tobytes(), rule.offset.tobytes()
    return *arrays, *values, model.objective_, model.report_, told.tolist()


# Each case is weighted either here or below, on CSR rows.
@pytest.mark.slow
@pytest.mark.parametrize(("case", "weighted"), [("free", False), ("held", True), ("shares", False)])
def test_dense_storages_threads_and_clusters_give_the_same_bits(
    dense, dense_stores, weights, dask_client, case, weighted
):
    omega = weights if weighted else None
    expected = facts(fitted(case, dense, omega), dense[:9000])
    lazy = dask.array.from_array(dense, chunks=(30_000, 3))
    ways = [(dense, {"n_jobs": 2}), (lazy, {"n_jobs": 2}), (lazy, {"engine": dask_client(2)})]
    ways += [(store, {"n_jobs": 1 + number % 2}) for number, store in enumerate(dense_stores)]
    ways += [(dense_stores[2], {"engine": dask_client(workers)}) for workers in (1, 2)]
    for number, (storage, manner) in enumerate(ways):
        model = fitted(case, storage, omega, **manner)
        assert facts(model, dense[:9000]) == expected, number
        np.testing.assert_array_equal(model.predict(storage), model.labels_)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "weighted"), [("free", True), ("held", False), ("shares", True)])
def test_csr_storages_threads_and_clusters_give_the_same_bits(
    csr, csr_store, weights, dask_client, case, weighted
):
    omega = weights if weighted else None
    lazy = dask.array.from_array(csr.toarray(), chunks=(50_000, 3)).map_blocks(scipy.sparse.csr_matrix)
    expected = facts(fitted(case, csr, omega), csr[:9000])
    ways = [(csr, {"n_jobs": 2}), (csr_store, {"n_jobs": 2}), (lazy, {})]
    ways.append((csr_store, {"engine": dask_client(2)}))
    for number, (storage, manner) in enumerate(ways):
        assert facts(fitted(case, storage, omega, **manner), csr[:9000]) == expected, number


@pytest.mark.parametrize("case", ["free", "held"])
def test_dense_and_csr_rows_agree(csr, case):
    sparse, plain = fitted(case, csr), fitted(case, csr.toarray())
    assert sparse.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    assert np.mean(sparse.labels_ == plain.labels_) > 0.999


@cases
def test_features_kept_elsewhere_or_nowhere_give_the_same_bits(dense_stores, dense, keep_columns_in, case):
    expected = facts(fitted(case, dense_stores[2]), dense[:9000])
    for store in ("scratch", "recompute"):
        keep_columns_in(store)
        assert facts(fitted(case, dense_stores[2], n_jobs=2), dense[:9000]) == expected, store


def test_a_limit_that_keeps_no_features_gives_the_same_bits(tmp_path):
    """Two columns and 300 landmarks: kernel columns of 1.1 GiB are computed anew rather than written."""
    n = 15 * GROUP_ROWS
    rng = np.random.default_rng(0)
    with create_dense_store(tmp_path / "rows.zarr", 2) as writer:
        for _ in range(0, n, GROUP_ROWS):
            turn = rng.integers(3, size=GROUP_ROWS) * 2
            rows = np.c_[np.cos(turn), np.sin(turn)] * 4 + rng.standard_normal((GROUP_ROWS, 2))
            writer.append(rows.astype("f4"))
    quick = {"n_clusters": 3, "n_landmarks": 300, "sample_size": 400, "max_passes": 1}
    model = fitted("held", tmp_path / "rows.zarr", n_jobs=2, memory_limit="450MiB", **quick)
    last = model.history_.iloc[-1]
    assert (last["reads"], last["sweeps"]) == (2, 0)
    assert np.bincount(model.labels_).min() > 0.25 * n


@pytest.fixture
def recorded(dense_stores):
    """Rows behind a store that counts what is got from it."""
    store = RecordingStore(LocalStore(dense_stores[2]))
    samples = open_samples(zarr.open_group(store, mode="r"))
    samples.is_reopenable = True
    store.gets.clear()
    return samples, store.gets


@cases
@pytest.mark.parametrize("store", ["memory", "recompute"])
def test_each_chunk_is_got_as_often_as_the_history_says(recorded, keep_columns_in, store, case):
    keep_columns_in(store)
    samples, gets = recorded
    settings = QUICK | CASES[case]
    model = mmcnb.UnsupervisedRLS(**settings).fit_model(samples)
    history, passes = model.history_, (model.history_["stage"] == "all rows").sum()
    reads = history["reads"].iloc[-1]
    expected = dict.fromkeys(gets, reads)
    expected["X/c/0/0"] += store == "recompute"  # the first rows tell the likely order of the clusters
    assert gets == expected
    assert reads == (2 if store == "memory" else 1 + passes)
    assert passes == 1
    assert history["sweeps"].iloc[-1] == 1 + passes - reads
    assert (history["bytes"] == history["reads"] * N * samples.row_bytes).all()
    gets.clear()
    model.predict(samples)
    assert set(gets.values()) == {1}  # the labels


def test_labels_that_a_larger_sample_leaves_unsettled_take_more_passes(
    dense, dense_stores, dask_client, keep_columns_in, monkeypatch
):
    monkeypatch.setattr("mmcnb.least_squares.all_rows.MOST_STEPS", 1)
    ways = [(dense, {}), (dense, {"n_jobs": 2}), (dense_stores[0], {"n_jobs": 2})]
    ways.append((dense_stores[2], {"engine": dask_client(2)}))
    told = []
    for storage, manner in ways:
        with pytest.warns(ConvergenceWarning, match="max_passes=3"):
            model = fitted("held", storage, **manner)
        stages = model.history_["stage"].value_counts()
        assert (stages["larger sample"], stages["all rows"], model.converged_) == (1, 3, False)
        np.testing.assert_array_equal(model.predict(storage), model.labels_)
        told.append(facts(model, dense[:9000]))
    assert all(one == told[0] for one in told)
    keep_columns_in("recompute")
    with pytest.warns(ConvergenceWarning, match="max_passes=3"):
        again = fitted("held", dense_stores[2])
    assert facts(again, dense[:9000]) == told[0]
    assert again.history_["reads"].iloc[-1] == 4  # the sample and three passes


@cases
def test_labels_that_have_settled_on_a_larger_sample_take_one_pass(dense, weights, case):
    model = fitted(case, dense, weights)
    *steps, last = model.history_[model.history_["stage"].isin(["larger sample", "all rows"])].itertuples()
    weight = weights[weights > 0].mean() * GROUP_ROWS
    assert [step.stage for step in steps] == ["larger sample"] * len(steps)
    assert (last.stage, last.changed, model.converged_) == ("all rows", weights.sum(), True)
    assert steps[-1].changed <= 0.0101 * weight < min(step.changed for step in steps[:-1])
    assert model.objective_ == last.objective
    np.testing.assert_array_equal(np.bincount(model.labels_, weights), model.cluster_sizes_)
    np.testing.assert_array_equal(model.predict(dense), model.labels_)


def test_many_columns_leave_the_sample_alone_and_the_rows_that_are_searched_as_many(dense):
    model = mmcnb.UnsupervisedRLS(**QUICK)
    shapes = [(2 * GROUP_ROWS, 3), (N, 3), (N, 784), (N, 10**6)]
    needs = [model._needs(RowShape(*shape)) for shape in shapes]
    assert [one.sample_size for one in needs] == [300, GROUP_ROWS, 10_699, 300]
    held = needs[1].sample_bytes - search_needs(RowShape(N, 3), model._settings()).sample_bytes
    assert held == GROUP_ROWS * 3 * 4  # in their own type and form


@pytest.mark.parametrize("form", [{}, {"n_landmarks": 10}], ids=["exact", "landmarks"])
def test_evolution_gives_the_same_bits_in_stores_and_on_clusters(dense, dense_stores, dask_client, form):
    def found(storage, **manner):
        quick = {"sample_size": 80, "n_init": 2, "balance": 0.5, "random_state": 0}
        model = mmcnb.EvolutionaryMMC(**quick, **form, **manner).fit(storage)
        rule = model.model_.rule
        return model.labels_.tobytes(), rule.coef.tobytes(), rule.offset, model.objective_

    expected = found(dense, n_jobs=1)
    assert found(dense_stores[0], n_jobs=2) == expected
    for workers in (1, 2):
        assert found(dense_stores[2], engine=dask_client(workers)) == expected


@cases
def test_a_checkpoint_of_some_passes_is_gone_on_from(dense_stores, dense, tmp_path, case):
    """Every prefix of the recorded passes leads to the same end, with the rest of the reads."""
    whole = fitted(case, dense_stores[2], checkpoint=tmp_path / "whole")
    expected, passes = facts(whole, dense[:9000]), sorted((tmp_path / "whole" / "passes").iterdir())
    assert len(passes) == 1 + (whole.history_["stage"] == "all rows").sum()
    passes[-1].unlink()
    for last in reversed(passes[:-1]):
        again = fitted(case, dense_stores[2], checkpoint=tmp_path / "whole")
        assert facts(again, dense[:9000]) == expected
        for entry in passes[passes.index(last) :]:
            entry.unlink()
