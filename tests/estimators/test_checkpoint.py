"""A stopped fit that is begun again with its checkpoint ends as if it had run on; other fits are refused."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from mmcnb.engine.checkpoint import is_finished, recorded_passes
from mmcnb.hinge.needs import HELD_ROWS
from mmcnb.stores import create_csr_store, create_dense_store
from tests.engine.fakes import FakeSamples, after_each_pass
from tests.estimators.conftest import (
    VARIANTS,
    differing,
    facts,
    fitted,
    make_blobs,
    rows_of,
)
from tests.estimators.every import NAMES

N = HELD_ROWS + 1000  # so that all methods stream


class Stop(Exception):
    """Stands for a kill."""


@contextmanager
def stopped_after(passes):
    """The fit in this block comes to its end in the pass after so many."""

    def stop(number):
        if number > passes:
            raise Stop

    with pytest.raises(Stop), after_each_pass(stop):
        yield


def write(path, X, chunk_rows=4096):
    is_sparse = scipy.sparse.issparse(X)
    options = {"dtype": X.dtype.name} | (
        {} if is_sparse else {"chunk_rows": chunk_rows}
    )
    create = create_csr_store if is_sparse else create_dense_store
    with create(path, X.shape[1], **options) as writer:
        writer.append(X)
    return str(path)


def files(folder):
    return {
        path.name: path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows") / "rows.zarr", rows_of("", N))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


# -- going on --------------------------------------------------------------------------


def passes_run(model):
    return model.history_[["reads", "sweeps"]].iloc[-1].sum()


def assert_stops_change_nothing(variant, X, tmp_path, shares):
    """Stop a fit after shares of its passes, and let it come to its end."""
    store = write(tmp_path / "rows.zarr", X)
    undisturbed = facts(fitted(variant, store), X)
    watched = fitted(variant, store, checkpoint=tmp_path / "watched")
    assert differing(undisturbed, facts(watched, X)) == []
    assert not watched.history_["resumed"].any()
    passes = recorded_passes(tmp_path / "watched")
    folder = tmp_path / "run"
    for share in shares:
        with stopped_after(int(share * passes) - recorded_passes(folder)):
            fitted(variant, store, checkpoint=folder)
        assert not is_finished(folder)
    kept = recorded_passes(folder)
    resumed = fitted(variant, store, checkpoint=folder)
    assert differing(undisturbed, facts(resumed, X)) == []
    on_all_rows = resumed.history_[resumed.history_["stage"] == "all rows"]
    assert on_all_rows["resumed"].is_monotonic_decreasing  # what was done comes first
    assert (on_all_rows.loc[on_all_rows["resumed"], "reads"] == 0).all()
    assert passes_run(resumed) == max(passes_run(watched) - kept, 0)
    assert is_finished(folder)
    before = files(folder)
    assert max(map(len, before.values())) < 2**20
    assert list(before) == list(files(tmp_path / "watched"))
    again = fitted(variant, store, checkpoint=folder)
    assert differing(undisturbed, facts(again, X)) == []
    assert again.history_[["reads", "sweeps", "bytes"]].to_numpy().sum() == 0
    assert files(folder) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_was_stopped_ends_as_if_it_had_not_been(name, tmp_path):
    assert_stops_change_nothing(name, rows_of(name, N), tmp_path, [0.6])


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_fit_that_was_stopped_often_ends_as_if_it_had_not_been(variant, tmp_path):
    X = scipy.sparse.csr_array(rows_of(variant, N, np.float32))
    assert_stops_change_nothing(variant, X, tmp_path, [0, 0.5, 0.9])


@pytest.fixture(scope="module")
def undisturbed(store):
    return facts(fitted("SparseKernelMMC", store), rows_of("", N))


def stop(folder, store, passes=6, **manner):
    with stopped_after(passes):
        fitted("SparseKernelMMC", store, checkpoint=folder, **manner)


def assert_goes_on(folder, store, undisturbed, **manner):
    model = fitted("SparseKernelMMC", store, checkpoint=folder, **manner)
    assert differing(undisturbed, facts(model, rows_of("", N))) == []
    assert model.history_["resumed"].any()


@pytest.mark.parametrize(
    "manner", [{"n_jobs": 2}, {"memory_limit": "700MiB"}, {"verbose": 1}]
)
def test_the_manner_of_the_fit_may_change(store, undisturbed, folder, manner):
    stop(folder, store)
    assert_goes_on(folder, store, undisturbed, **manner)


def test_the_same_rows_in_other_chunks_go_on(store, undisturbed, tmp_path, folder):
    stop(folder, store)
    other = write(tmp_path / "other.zarr", rows_of("", N), chunk_rows=1000)
    assert_goes_on(folder, other, undisturbed)


@pytest.mark.slow
def test_another_engine_goes_on(store, undisturbed, tmp_path, dask_client):
    client = dask_client(1)
    stop(tmp_path / "threads", store)
    assert_goes_on(tmp_path / "threads", store, undisturbed, engine=client)
    stop(tmp_path / "dask", store, engine=client)
    assert_goes_on(tmp_path / "dask", store, undisturbed)


@pytest.mark.slow
def test_rows_in_memory_are_kept_in_a_journal_from_32_mib_on(folder):
    X = make_blobs(2**14, d=2**8)  # of 32 MiB
    undisturbed = fitted("CPMMC", X)
    with stopped_after(2):
        fitted("CPMMC", X, checkpoint=folder)
    resumed = fitted("CPMMC", X, checkpoint=folder)
    assert differing(facts(undisturbed, X[:500]), facts(resumed, X[:500])) == []
    assert passes_run(resumed) == passes_run(undisturbed) - 2
    few = folder.with_name("few")
    fitted("CPMMC", X[1:], checkpoint=few)
    assert list(files(few)) == ["lock", "run.json"]
    with pytest.raises(ValueError, match="the rows differ"):
        fitted("CPMMC", X[:-1], checkpoint=few)


def test_without_a_seed_the_one_that_was_drawn_is_kept(store, folder):
    for _ in range(2):
        stop(folder, store, 1, random_state=None)
    first, again = (
        facts(
            fitted("SparseKernelMMC", store, checkpoint=folder, random_state=None),
            rows_of("", 500),
        )
        for _ in range(2)
    )
    assert differing(first, again) == []


def test_a_generator_is_known_by_its_state(store, folder):
    def fit(seed):
        state = np.random.RandomState(seed)
        model = fitted("SparseKernelMMC", store, checkpoint=folder, random_state=state)
        return facts(model, rows_of("", 500))

    assert differing(fit(3), fit(3)) == []
    with pytest.raises(ValueError, match="random_state is 'RandomState"):
        fit(4)


# -- what is refused -------------------------------------------------------------------

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
    "tol": 0.25,
    "degree": 2,
    "coef0": 0.2,
    "random_state": 5,
}


@pytest.fixture(scope="module")
def finished(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    fitted("SparseKernelMMC", store, checkpoint=folder)
    return folder


@pytest.mark.parametrize("parameter", OTHER)
def test_another_parameter_is_refused_with_both_values(store, finished, parameter):
    before = files(finished)
    old = (VARIANTS["SparseKernelMMC"].get_params() | {"random_state": 0})[parameter]
    new = OTHER[parameter]
    # that of the paper has no landmarks
    others = {"n_landmarks": None} if parameter == "basis" else {}
    with pytest.raises(ValueError, match=r"^[^\n]*; give [^\n]*\.$") as refused:
        fitted(
            "SparseKernelMMC", store, checkpoint=finished, **{parameter: new}, **others
        )
    assert f"another fit: {parameter} is {old!r} there and {new!r} here" in str(
        refused.value
    )
    assert files(finished) == before


def test_every_parameter_is_of_the_answer_or_of_the_manner():
    manner = {"memory_limit", "n_jobs", "verbose", "checkpoint", "engine"}
    assert set(VARIANTS["SparseKernelMMC"].get_params()) == set(OTHER) | manner


def test_other_rows_weights_estimators_and_libraries_are_refused(
    store, finished, tmp_path
):
    X = rows_of("", N)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    weighted = tmp_path / "weighted"
    fitted("SparseKernelMMC", store, weights, checkpoint=weighted)
    fitted("SparseKernelMMC", store, weights.tolist(), checkpoint=weighted)
    old_numpy = tmp_path / "old"
    shutil.copytree(finished, old_numpy)
    run = (old_numpy / "run.json").read_text()
    (old_numpy / "run.json").write_text(
        run.replace(f'numpy": "{np.__version__}"', 'numpy": "0.0"')
    )
    X_changed = X.copy()
    X_changed[5, 0] += 1e-12
    refusals = [
        (
            "SparseKernelMMC",
            write(tmp_path / "other.zarr", X_changed),
            None,
            finished,
            "the rows differ; give",
        ),
        (
            "SparseKernelMMC",
            store,
            weights[::-1],
            weighted,
            "the sample weights differ",
        ),
        ("SparseKernelMMC", store, None, weighted, "the sample weights differ"),
        (
            "CPMMC",
            store,
            None,
            finished,
            "the estimator is 'SparseKernelMMC' there and 'CPMMC' here",
        ),
        (
            "SparseKernelMMC",
            X,
            None,
            finished,
            "the place of the rows is 'a store' there and 'memory' here",
        ),
        (
            "SparseKernelMMC",
            store,
            None,
            old_numpy,
            f"numpy is '0.0' there and '{np.__version__}' here",
        ),
    ]
    for name, source, sample_weight, folder, sentence in refusals:
        with pytest.raises(ValueError, match=sentence):
            fitted(name, source, sample_weight, checkpoint=folder)


class Unread(FakeSamples):
    """Rows that may not be read for a checkpoint."""

    @property
    def digest(self):
        pytest.fail("no digest is needed")


def test_bad_parameters_and_folders_are_refused_before_rows_are_read_or_anything_is_written(
    store, folder
):
    samples = Unread(rows_of("", N))
    bad = [
        {"C": -1},
        {"random_state": "x"},
        {"memory_limit": "1MiB"},
        {"n_jobs": 0},
        {"engine": "nowhere"},
    ]
    bad += [{"checkpoint": place} for place in (5, store, folder / "deeper")]
    for parameters in bad:
        with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
            fitted("SparseKernelMMC", samples, **{"checkpoint": folder} | parameters)
    assert not samples.reads.any()
    assert not folder.exists()


def test_without_a_checkpoint_no_digest_is_computed_and_nothing_is_written(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    fitted("SparseKernelMMC", Unread(rows_of("", N)))
    assert list(tmp_path.iterdir()) == []
