"""Fits that go on from a checkpoint end as if nothing had happened; other fits are refused."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest

import mmcnb
from mmcnb.engine.checkpoint import CheckpointEngine, is_finished
from mmcnb.samples import open_samples
from mmcnb.stores import create_csr_store, create_dense_store
from tests.engine.test_checkpoint import same
from tests.estimators.conftest import bits, make_blobs, make_rings, make_sparse

DONE_BY_THIS_PROCESS = ["seconds", "reads", "sweeps", "bytes", "resumed"]
SMALL = {"n_init": 1, "random_state": 0}
FITS = {
    "SparseKernelMMC": {"gamma": 2.0, "sample_size": 150, "n_landmarks": 12, "eta": 1e-3},
    "standard": {"gamma": 1.0, "sample_size": 150, "n_landmarks": 12, "scale": "standard"},
    "quantiles": {"gamma": 0.5, "sample_size": 150, "n_landmarks": 12, "min_share": 1.0},
    "paper": {"gamma": 2.0, "sample_size": 60, "basis": "paper", "eta": 0.3},
    "KernelCPMMC": {"gamma": 2.0},
    "CPMMC": {"sample_size": 100, "eta": 1e-3},
}
ROWS = {"KernelCPMMC": 600}


def estimator(case, **changes):
    name = case if case in mmcnb.__all__ else "SparseKernelMMC"
    return getattr(mmcnb, name)(**(SMALL | FITS[case] | changes))


def rows_of(case):
    n = ROWS.get(case, 6000)
    return make_blobs(n, gap=2.0) if case in ("CPMMC", "quantiles") else make_rings(n)


def write(path, X, chunk_rows=4096):
    with create_dense_store(path, X.shape[1], dtype=X.dtype.name, chunk_rows=chunk_rows) as writer:
        writer.append(X)
    return str(path)


def told(model):
    """The history, but for what tells of the process that ran."""
    return model.history_.drop(columns=DONE_BY_THIS_PROCESS)


def model_bits(model):
    arrays = model.model_.arrays()
    told = {name: value for name, value in model.report_.items() if name != "labels_seconds"}
    return (
        {name: (arrays[name].dtype, arrays[name].tobytes()) for name in arrays}
        | {name: getattr(model, name) for name in ("objective_", "rho_", "gamma_", "converged_")}
        | {"report_": told}
    )


def assert_same_fit(one, other):
    assert model_bits(one) == model_bits(other)
    assert told(one).equals(told(other))


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


@pytest.fixture
def small_search(monkeypatch):
    """KernelCPMMC searches on a sample from fewer rows on, so that its fits are short."""
    monkeypatch.setattr("mmcnb.estimators.kernel_cpmmc.SAMPLE_ROWS", 150)
    monkeypatch.setattr("mmcnb.estimators.kernel_cpmmc.EXACT_SEARCH", 200)


@pytest.fixture(scope="module", autouse=True)
def streamed():
    """Few rows take many passes, as many rows do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmcnb.hinge.needs.HELD_ROWS", 0)
        yield


@pytest.fixture(scope="module")
def X():
    return make_rings(6000)


@pytest.fixture(scope="module")
def store(X, tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows") / "rings.zarr", X)


@pytest.fixture(scope="module")
def whole(store):
    """The undisturbed fit."""
    return estimator("SparseKernelMMC").fit(store)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


class Stop(Exception):
    """Stands for a kill at a place of the test's choice."""


@pytest.fixture
def stop_after(monkeypatch):
    """A function that lets a fit run some passes of its journal and no more; None lets it run on."""
    run = CheckpointEngine.run

    def stop(count):
        def limited(self, *args):
            if count is not None and self.passes >= count:
                raise Stop
            return run(self, *args)

        monkeypatch.setattr(CheckpointEngine, "run", limited)

    return stop


# -- going on ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("small_search")
@pytest.mark.parametrize("case", FITS)
def test_a_fit_that_was_stopped_ends_as_if_it_had_not_been(case, tmp_path, folder, stop_after):
    rows = write(tmp_path / "rows.zarr", rows_of(case))
    undisturbed = estimator(case).fit(rows)
    watched = estimator(case, checkpoint=folder).fit(rows)
    assert_same_fit(watched, undisturbed)
    assert not watched.history_["resumed"].any()
    passes = len(list((folder / "passes").iterdir()))
    assert passes > 5
    other = tmp_path / "other"
    for count in sorted({0, 1, 3, passes // 2, passes - 1}):
        stop_after(count)
        with pytest.raises(Stop):
            estimator(case, checkpoint=other).fit(rows)
        assert not is_finished(other)
    stop_after(None)
    resumed = estimator(case, checkpoint=other).fit(rows)
    assert_same_fit(resumed, undisturbed)
    assert bits(resumed, open_samples(rows)) == bits(undisturbed, open_samples(rows))
    assert resumed.history_["resumed"].any()
    assert list(files(folder)) == list(files(other))


@pytest.mark.slow
@pytest.mark.usefixtures("small_search")
@pytest.mark.parametrize("case", FITS)
def test_a_finished_fit_is_answered_without_reading_a_row(case, tmp_path, folder):
    rows = write(tmp_path / "rows.zarr", rows_of(case))
    first = estimator(case, checkpoint=folder).fit_model(rows)
    assert is_finished(folder)
    before = files(folder)
    again = estimator(case, checkpoint=folder).fit_model(rows)
    assert_same_fit(again, first)
    assert again.history_[["reads", "sweeps", "bytes"]].to_numpy().sum() == 0
    assert again.history_.loc[again.history_["stage"] == "all rows", "resumed"].all()
    assert files(folder) == before


def test_totals_that_are_recalled_are_those_that_were_given(store, folder, monkeypatch):
    run, passes = CheckpointEngine.run, []

    def compared(self, pass_, samples, description=""):
        number, before = self.passes, self.passes
        total = run(self, pass_, samples, description)
        if self.passes > before:
            passes.append(type(pass_).__name__)
            kept = (folder / "passes" / f"{number:06d}").stat().st_size
            assert kept < 2**20
            again = CheckpointEngine(self.engine, self.checkpoint)
            again.passes = number
            assert same(run(again, pass_, samples, description), total)
        return total

    monkeypatch.setattr(CheckpointEngine, "run", compared)
    estimator("SparseKernelMMC", scale="standard", min_share=1.0, checkpoint=folder).fit_model(store)
    assert {"CombinedPass", "MostViolatedPass", "PlaneSumsPass", "RowSumPass"} <= set(passes)


def test_finished_rounds_are_told_from_those_that_were_run(store, whole, folder, stop_after):
    stop_after(12)
    with pytest.raises(Stop):
        estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    stop_after(None)
    resumed = estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    on_all = resumed.history_[resumed.history_["stage"] == "all rows"]
    count = int(on_all["resumed"].sum())
    assert 0 < count < len(on_all)
    assert on_all["resumed"].iloc[:count].all()  # what was done comes first, and none of it was done again
    assert (on_all["reads"].iloc[:count] == 0).all()
    assert on_all["sweeps"].iloc[-1] < whole.history_["sweeps"].iloc[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"n_jobs": 1}, {"n_jobs": 2}, {"memory_limit": "700MiB"}, {"verbose": 1}]
)
def test_the_manner_of_the_fit_may_change(store, whole, folder, stop_after, changes):
    stop_after(10)
    with pytest.raises(Stop):
        estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    stop_after(None)
    assert_same_fit(estimator("SparseKernelMMC", checkpoint=folder, **changes).fit(store), whole)


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["memory", "scratch", "recompute"])
def test_the_place_of_the_kernel_columns_may_change(
    store, whole, folder, stop_after, keep_columns_in, columns
):
    stop_after(10)
    with pytest.raises(Stop):
        estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    stop_after(None)
    keep_columns_in(columns)
    assert_same_fit(estimator("SparseKernelMMC", checkpoint=folder).fit(store), whole)


def test_the_same_rows_in_other_chunks_go_on(X, store, whole, tmp_path, folder, stop_after):
    stop_after(10)
    with pytest.raises(Stop):
        estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    stop_after(None)
    other = write(tmp_path / "other.zarr", X, chunk_rows=1000)
    assert_same_fit(estimator("SparseKernelMMC", checkpoint=folder).fit(other), whole)


def test_sparse_rows_go_on(tmp_path, folder, stop_after):
    X = make_sparse(5000)
    with create_csr_store(tmp_path / "csr.zarr", X.shape[1], dtype=X.dtype.name) as writer:
        writer.append(X)
    for case in ("SparseKernelMMC", "CPMMC"):
        undisturbed = estimator(case).fit(tmp_path / "csr.zarr")
        place = folder.with_name(case)
        stop_after(6)
        with pytest.raises(Stop):
            estimator(case, checkpoint=place).fit(tmp_path / "csr.zarr")
        stop_after(None)
        resumed = estimator(case, checkpoint=place).fit(tmp_path / "csr.zarr")
        assert_same_fit(resumed, undisturbed)
        assert resumed.history_["resumed"].any()


@pytest.mark.slow
def test_another_engine_goes_on(store, whole, folder, stop_after, dask_client):
    client = dask_client(1)
    for first, then in ((None, client), (client, None)):
        place = folder.with_name("threads" if first is None else "dask")
        stop_after(10)
        with pytest.raises(Stop):
            estimator("SparseKernelMMC", checkpoint=place, engine=first).fit(store)
        stop_after(None)
        resumed = estimator("SparseKernelMMC", checkpoint=place, engine=then).fit(store)
        assert_same_fit(resumed, whole)
        assert resumed.history_["resumed"].any()


def test_many_rows_in_memory_go_on(X, folder, stop_after, monkeypatch):
    monkeypatch.setattr(CheckpointEngine.__init__, "__defaults__", (100_000,))
    undisturbed = estimator("SparseKernelMMC").fit(X)
    stop_after(4)
    with pytest.raises(Stop):
        estimator("SparseKernelMMC", checkpoint=folder).fit(X)
    stop_after(None)
    resumed = estimator("SparseKernelMMC", checkpoint=folder).fit(X)
    assert_same_fit(resumed, undisturbed)
    assert resumed.history_["resumed"].any()


@pytest.mark.parametrize("case", ["SparseKernelMMC", "KernelCPMMC", "CPMMC"])
def test_little_rows_need_no_journal(case, folder):
    X = make_rings(140)
    undisturbed = estimator(case).fit(X)
    for _ in range(2):
        assert_same_fit(estimator(case, checkpoint=folder).fit(X), undisturbed)
        assert list(files(folder)) == ["lock", "run.json"]
    with pytest.raises(ValueError, match="the rows differ"):
        estimator(case, checkpoint=folder).fit(X[::-1])


def test_without_a_seed_the_one_that_was_drawn_is_kept(store, folder, stop_after):
    stop_after(8)
    for _ in range(2):
        with pytest.raises(Stop):
            estimator("SparseKernelMMC", checkpoint=folder, random_state=None).fit(store)
    stop_after(None)
    first, again = (
        estimator("SparseKernelMMC", checkpoint=folder, random_state=None).fit(store) for _ in range(2)
    )
    assert_same_fit(first, again)


def test_a_generator_is_known_by_its_state(store, folder):
    def fit(seed):
        state = np.random.RandomState(seed)
        return estimator("SparseKernelMMC", checkpoint=folder, random_state=state).fit(store)

    assert_same_fit(fit(3), fit(3))
    with pytest.raises(ValueError, match="random_state is 'RandomState"):
        fit(4)


def test_weights_of_rows_belong_to_the_fit(store, folder):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 6000)
    first = estimator("SparseKernelMMC", checkpoint=folder).fit(store, sample_weight=weights)
    again = estimator("SparseKernelMMC", checkpoint=folder).fit(store, sample_weight=weights.tolist())
    assert_same_fit(again, first)
    for other in (None, weights[::-1]):
        with pytest.raises(ValueError, match="the sample weights differ"):
            estimator("SparseKernelMMC", checkpoint=folder).fit(store, sample_weight=other)


# -- what is refused ---------------------------------------------------------------------------

OTHER = {
    "C": 3.0,
    "gamma": 1.5,
    "kernel": "linear",
    "threshold": "fixed",
    "basis": "paper",
    "n_landmarks": 7,
    "landmarks": [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    "continuation": False,
    "init": "k-means",
    "n_init": 2,
    "sample_size": 60,
    "balance": 0.05,
    "min_share": 0.5,
    "scale": "standard",
    "eta": 0.3,
    "max_rounds": 1,
    "degree": 2,
    "coef0": 0.2,
    "random_state": 5,
}
MANNER = {"memory_limit", "n_jobs", "verbose", "checkpoint", "engine"}


@pytest.fixture(scope="module")
def finished(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    estimator("SparseKernelMMC", checkpoint=folder).fit_model(store)
    return folder


@pytest.mark.parametrize("parameter", OTHER)
def test_another_parameter_is_refused_with_both_values(store, finished, parameter):
    before = files(finished)
    model = estimator("SparseKernelMMC", checkpoint=finished)
    old, new = model.get_params()[parameter], OTHER[parameter]
    model.set_params(**{parameter: new})
    if parameter == "basis":  # that of the paper has no landmarks
        model.set_params(n_landmarks=None)
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as refused:
        model.fit(store)
    assert f"another fit: {parameter} is {old!r} there and {new!r} here" in str(refused.value)
    assert "; give " in str(refused.value)
    assert files(finished) == before


def test_every_parameter_is_of_the_answer_or_of_the_manner():
    assert set(mmcnb.SparseKernelMMC().get_params()) == set(OTHER) | MANNER


def test_other_rows_estimators_and_libraries_are_refused(X, store, finished, tmp_path, monkeypatch):
    other = X.copy()
    other[5, 0] += 1e-12
    with pytest.raises(ValueError, match="another fit: the rows differ; give"):
        estimator("SparseKernelMMC", checkpoint=finished).fit(write(tmp_path / "other.zarr", other))
    with pytest.raises(ValueError, match="the estimator is 'SparseKernelMMC' there and 'CPMMC' here"):
        estimator("CPMMC", checkpoint=finished).fit(store)
    with pytest.raises(ValueError, match="the place of the rows is 'a store' there and 'memory' here"):
        estimator("SparseKernelMMC", checkpoint=finished).fit(X)
    monkeypatch.setattr("mmcnb.engine.checkpoint.version", lambda _: "0.0")
    with pytest.raises(ValueError, match=f"the version of numpy is '{np.__version__}' there and '0.0' here"):
        estimator("SparseKernelMMC", checkpoint=finished).fit(store)


def test_bad_parameters_are_refused_before_anything_is_written(X, folder):
    bad = [{"C": -1}, {"gamma": "wide"}, {"random_state": "x"}, {"memory_limit": "1MiB"}, {"n_jobs": 0}]
    bad += [{"engine": "nowhere"}, {"checkpoint": 5}]
    for changes in bad:
        with pytest.raises(ValueError):
            estimator("SparseKernelMMC", **({"checkpoint": folder} | changes)).fit(X)
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        estimator("SparseKernelMMC", checkpoint=folder).fit(X)
    assert not folder.exists()


def test_a_folder_that_cannot_serve_is_refused_before_the_rows_are_read(X, store, tmp_path, monkeypatch):
    samples = open_samples(store)
    del samples.digest
    monkeypatch.setattr(type(samples), "block", lambda *_: pytest.fail("no row is needed"))
    for folder in (Path(store), tmp_path / "no" / "run"):
        with pytest.raises(ValueError, match=r"^checkpoint [^\n]*\.$"):
            estimator("SparseKernelMMC", checkpoint=folder).fit(samples)


def test_a_full_disk_is_one_sentence_and_the_fit_goes_on_later(store, whole, folder, monkeypatch):
    sync, count = os.fsync, 0

    def full(number):
        nonlocal count
        count += 1
        if count > 20:
            raise OSError(28, "No space left on device")
        return sync(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ValueError, match=r"^checkpoint [^\n]*No space left on device[^\n]*\.$"):
            estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    resumed = estimator("SparseKernelMMC", checkpoint=folder).fit(store)
    assert_same_fit(resumed, whole)
    assert resumed.history_["resumed"].any()


@pytest.mark.parametrize("damage", ["flip", "cut"])
def test_a_damaged_entry_is_never_used(store, whole, finished, tmp_path, damage, caplog):
    kept = sorted((finished / "passes").iterdir())[7]
    intact = kept.read_bytes()
    middle = len(intact) // 2
    changed = intact[:middle] + bytes([intact[middle] ^ 64]) + intact[middle + 1 :]
    kept.write_bytes(changed if damage == "flip" else intact[:-5])
    with caplog.at_level(logging.WARNING, "mmcnb"):
        resumed = estimator("SparseKernelMMC", checkpoint=finished).fit(store)
    assert "pass 7 is damaged and is run again" in caplog.text
    assert_same_fit(resumed, whole)
    assert kept.read_bytes() == intact


def test_without_a_checkpoint_nothing_is_asked_or_written(X, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mmcnb.engine.checkpoint.Checkpoint.__init__", None)
    monkeypatch.setattr(
        "mmcnb.samples.Samples.digest", property(lambda _: pytest.fail("no digest is needed"))
    )
    estimator("SparseKernelMMC").fit(X)
    assert list(tmp_path.iterdir()) == []
