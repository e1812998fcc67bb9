"""One answer, to the bit, wherever the rows live and however many threads read them."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import zarr

from mmcnb.hinge.needs import HELD_ROWS
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, open_samples
from tests.estimators.conftest import bits, make, make_blobs, make_rings, make_sparse, same_clusters

pytestmark = pytest.mark.slow

N = 10_000  # two reduction blocks and a half
STREAMED = {"sample_size": 300, "n_init": 2, "C": 3.5}
CASES = [
    ("SparseKernelMMC", "rings", {"n_landmarks": 40, "gamma": 2.0}),
    ("SparseKernelMMC", "blobs", {"n_landmarks": 30, "gamma": "median", "scale": "standard"}),
    ("SparseKernelMMC", "blobs", {"n_landmarks": 30, "threshold": "fixed"}),
    ("CPMMC", "blobs", {}),
    ("CPMMC", "blobs", {"scale": "standard", "threshold": "fixed"}),
]


def rows(data, dtype):
    return make_rings(N, dtype=dtype) if data == "rings" else make_blobs(N, gap=3.0, dtype=dtype)


def fitted(name, storage, parameters, n_jobs=1):
    model = make(name, n_jobs=n_jobs, **STREAMED | parameters).fit(storage)
    assert "all rows" in set(model.history_["stage"])
    return model


# Each case in one precision: either estimator sees both, plain and scaled.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "parameters", "dtype", "held_rows"),
    [
        (*case, dtype, held_rows)
        for case, dtype in zip(CASES, ("f4", "f8", "f4", "f8", "f4"), strict=True)
        for held_rows in ((0, HELD_ROWS) if case[0] == "SparseKernelMMC" else (HELD_ROWS,))
    ],
)
def test_dense_storages_and_threads_give_the_same_bits(
    dense_storages, monkeypatch, name, data, parameters, dtype, held_rows
):
    monkeypatch.setattr("mmcnb.hinge.needs.HELD_ROWS", held_rows)
    X = rows(data, dtype)
    found = {}
    for storage, source in dense_storages(X).items():
        for n_jobs in (1, 2) if storage == "array" else (2,):
            model = fitted(name, source, parameters, n_jobs)
            found[storage, n_jobs] = bits(model, source)
            assert model.predict(X).tobytes() == found[storage, n_jobs][0]
    first = found["array", 1]
    assert [key for key, value in found.items() if value != first] == []


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_memory_end_where_streamed_ones_do(monkeypatch, weighted):
    X = rows("blobs", "f8")
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float) if weighted else None
    found = []
    for held_rows in (HELD_ROWS, 0):
        monkeypatch.setattr("mmcnb.hinge.needs.HELD_ROWS", held_rows)
        parameters = STREAMED | {"n_landmarks": 30, "C": 1.3, "eta": 1e-5}
        found.append(make("SparseKernelMMC", **parameters).fit(X, sample_weight=weights))
    held, streamed = found
    assert held.objective_ == pytest.approx(streamed.objective_, rel=1e-4)
    np.testing.assert_allclose(held.decision_function(X), streamed.decision_function(X), atol=5e-3)
    assert held.report_["sizes"] == pytest.approx(streamed.report_["sizes"], abs=N / 1000)
    assert np.array_equal(held.labels_, held.predict(X))


@pytest.mark.parametrize(
    ("name", "scale", "dtype"),
    [
        ("SparseKernelMMC", None, "f4"),
        ("SparseKernelMMC", "standard", "f8"),
        ("CPMMC", None, "f8"),
        ("CPMMC", "standard", "f4"),
    ],
)
def test_csr_storages_and_threads_give_the_same_bits(csr_storages, name, scale, dtype):
    X = make_sparse(N, dtype=dtype)
    parameters = {"scale": scale} | (
        {"gamma": "median", "n_landmarks": 30} if name == "SparseKernelMMC" else {}
    )
    found = {
        (storage, n_jobs): bits(fitted(name, source, parameters, n_jobs), source)
        for storage, source in csr_storages(X).items()
        for n_jobs in ((1, 2) if storage == "csr" else (2,))
    }
    first = found["csr", 1]
    assert [key for key, value in found.items() if value != first] == []


@pytest.mark.parametrize(("storage", "dtype"), [("array", "f8"), ("zarr, 777 x 2", "f4")])
def test_kernel_columns_in_memory_scratch_or_nowhere_give_the_same_bits(
    dense_storages, keep_columns_in, storage, dtype
):
    X = make_rings(N, dtype=dtype)
    source = dense_storages(X)[storage]
    found = {}
    for store in ("memory", "scratch", "recompute"):
        keep_columns_in(store)
        found[store] = bits(fitted("SparseKernelMMC", source, CASES[0][2], 2), X)
    assert found["scratch"] == found["memory"]
    assert found["recompute"] == found["memory"]


def test_memory_limit_does_not_change_the_answer(dense_storages):
    X = make_rings(N)
    source = dense_storages(X)["zarr, 777 x 2"]
    parameters = CASES[0][2]
    expected = bits(fitted("SparseKernelMMC", X, parameters), X)
    for memory_limit in ("600MiB", "4GiB"):
        limited = fitted("SparseKernelMMC", source, parameters | {"memory_limit": memory_limit})
        assert bits(limited, X) == expected, memory_limit


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC", "KernelCPMMC"])
def test_dense_and_csr_agree(name):
    csr = make_sparse(500 if name == "KernelCPMMC" else N)
    X = csr.toarray()
    parameters = {} if name == "CPMMC" else {"gamma": "median"}
    parameters |= {} if name == "KernelCPMMC" else STREAMED
    # A tight loop: what is left is the order of the sums, on rows of the boundary.
    one, other = (make(name, **parameters | {"eta": 1e-7}).fit(storage) for storage in (X, csr))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    differ = one.labels_ != other.labels_
    f = one.decision_function(X)
    assert (np.abs(f[differ]) <= 1e-4 * np.abs(f).max()).all()


@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
@pytest.mark.parametrize("seed", [10, 19, 23, 33, 52, 53])
def test_rounding_does_not_choose_the_width_of_a_few_rows(seed):
    # All widths part these rows alike, so that their leave-one-out scores are one number but for rounding.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 2)) + np.array([[0, 0], [3, 0], [0, 0], [3, 3]]) * rng.integers(0, 2)
    X, weights = np.rint(2 * X) if seed % 2 else X, rng.integers(1, 4, 4)
    for name in ("KernelCPMMC", "SparseKernelMMC"):
        one, other = (
            make(name, gamma="auto", scale="standard").fit(storage, sample_weight=weights)
            for storage in (X, scipy.sparse.csr_array(X))
        )
        np.testing.assert_array_equal(other.labels_, one.labels_)
        assert other.gamma_ == pytest.approx(one.gamma_, rel=1e-9)
        assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC", "KernelCPMMC"])
def test_float32_and_float64_nearly_agree(name):
    X = make_blobs(400, dtype=np.float32)
    one, other = (make(name).fit(storage) for storage in (X, X.astype(np.float64)))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert np.mean(one.labels_ == other.labels_) > 0.99


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.bool_, np.int64])
def test_whole_numbers_are_read_as_the_floats_they_are(dense_storages, dtype):
    X = (make_blobs(600) > 0).astype(dtype) if dtype is np.bool_ else (make_blobs(600) * 5 + 50).astype(dtype)
    model = make("CPMMC").fit(X)
    as_floats = make("CPMMC").fit(X.astype(np.float64))
    assert same_clusters(model.labels_, as_floats.labels_)
    stored = make("CPMMC").fit(dense_storages(X.astype(np.uint8))["zarr, 777 x 2"])
    assert same_clusters(model.labels_, stored.labels_)


def test_labels_written_to_a_store_are_those_predicted(dense_storages, tmp_path):
    X = make_rings(N)
    storages = dense_storages(X)
    model = fitted("SparseKernelMMC", X, CASES[0][2])
    for number, storage in enumerate(storages.values()):
        out = tmp_path / f"labels{number}.zarr"
        assert model.predict(storage, out=out) is None
        written = zarr.open_array(out, mode="r")
        assert written.dtype == np.int32
        np.testing.assert_array_equal(written[:], model.labels_)
    with pytest.raises(ValueError, match=r"labels0\.zarr[^\n]*$"):
        model.predict(X, out=tmp_path / "labels0.zarr")


@pytest.mark.parametrize("name", ["SparseKernelMMC", "CPMMC"])
def test_fit_model_is_fit_without_labels(dense_storages, name):
    X = make_blobs(N)
    source = dense_storages(X)["zarr, 4096 rows"]
    whole = make(name, **STREAMED).fit(source)
    model = make(name, **STREAMED).fit(X[:500]).fit_model(source)
    assert not hasattr(model, "labels_")  # nor those of the fit before
    assert model.predict(source).tobytes() == whole.labels_.tobytes()


# -- every storage, thread and engine, where there are several groups and a larger sample ----------------

MANY = 2 * GROUP_ROWS + 3001
QUICK = {"n_init": 1, "C": 1.3, "sample_size": 300, "max_rounds": 2}
CHUNKS = (30_000, BLOCK_ROWS, MANY)
LARGE = [("SparseKernelMMC", {"gamma": 0.3, "n_landmarks": 6}), ("CPMMC", {})]


@pytest.fixture(scope="module")
def large_storages(tmp_path_factory):
    """The storages of the same rows, dense and CSR, by name."""
    X, folder = make_blobs(MANY, d=3, gap=3.0, dtype=np.float32), tmp_path_factory.mktemp("large")
    sparse = X.copy()
    sparse[:, 1][np.random.default_rng(0).random(MANY) < 0.6] = 0
    csr = scipy.sparse.csr_array(sparse)
    storages = {"dense": {"array": X}, "csr": {"array": csr}}
    for rows in CHUNKS:
        storages["dense"][f"dask, {rows}"] = dask.array.from_array(X, chunks=(rows, 3))
        storages["csr"][f"dask, {rows}"] = dask.array.from_array(sparse, chunks=(rows, 3)).map_blocks(
            scipy.sparse.csr_array
        )
        for kind, options in {
            "zarr": {},
            "sharded": {"shards": (4 * rows,)},
            "version 2": {"zarr_format": 2},
        }.items():
            for layout in storages:
                path = folder / f"{layout}, {kind}, {rows}.zarr"
                write = _write_dense if layout == "dense" else _write_csr
                write(path, X if layout == "dense" else csr, rows, **options)
                storages[layout][f"{kind}, {rows}"] = path
    return storages


def _write_dense(path, X, rows, shards=None, zarr_format=3):
    shards = shards and (*shards, X.shape[1])
    zarr.create_array(path, data=X, chunks=(rows, X.shape[1]), shards=shards, zarr_format=zarr_format)


def _write_csr(path, csr, rows, shards=None, zarr_format=3):
    group = zarr.create_group(path, zarr_format=zarr_format)
    encoding = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
    group.attrs.update(encoding | {"shape": list(csr.shape)})
    for part in ("data", "indices", "indptr"):
        group.create_array(part, data=getattr(csr, part), chunks=(rows,), shards=shards)


def facts(model):
    """What must be the same to the bit."""
    plane = model.model_.rule
    return model.labels_.tobytes(), plane.coef.tobytes(), plane.offset, model.objective_


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(("name", "parameters"), LARGE)
def test_storages_chunks_threads_and_clusters_give_the_same_bits(
    large_storages, dask_client, layout, name, parameters
):
    def found(source, n_jobs=1, engine=None):
        model = make(name, n_jobs=n_jobs, engine=engine, **QUICK | parameters).fit(source)
        stages = set(model.history_["stage"])
        assert {"larger sample", "all rows"} <= stages
        return facts(model)

    storages = large_storages[layout]
    expected = found(storages["array"])
    ways = [("array", {"n_jobs": 2})]
    # One number of threads each; every kind of store and every size of its chunks sees both.
    stored = list(storages)[1:]
    ways += [(storage, {"n_jobs": 1 + (n + n // 4) % 2}) for n, storage in enumerate(stored)]
    reopenable = [storage for storage, source in storages.items() if open_samples(source).is_reopenable]
    assert len(reopenable) == len(storages) - 1
    on_clusters = [
        storage for storage in reopenable if storage.startswith("zarr") or storage.endswith(f" {CHUNKS[0]}")
    ]
    ways += [(storage, {"engine": dask_client(1 + n % 2)}) for n, storage in enumerate(on_clusters)]
    assert [way for way in ways if found(storages[way[0]], **way[1]) != expected] == []
