"""How often a fit reads its rows, counted by the rows themselves."""

import numpy as np
import pytest

from mmcnb.datasets import make_block
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from tests.engine.fakes import FakeSamples
from tests.estimators.conftest import fitted, make_blobs, variant

# more than twice the larger sample, so that all stages are run
ROWS = 2 * GROUP_ROWS + 3001


@pytest.fixture(scope="module")
def rings():
    return make_block("rings", 0, ROWS, 4, random_state=0)[0]


def reads_of(samples):
    """How often rows were read; those of the first block, by which clusters are numbered, are read again."""
    (reads,) = set(samples.reads[BLOCK_ROWS:])
    return reads


@pytest.mark.parametrize(
    ("name", "most"),
    [("SparseKernelMMC", 8), ("UnsupervisedRLS", 2), ("KernelKMeans", 8), ("CPMMC", 8)],
)
@pytest.mark.parametrize("place", ["memory", "recompute"])
def test_rows_are_read_as_often_as_the_history_says(
    rings, name, most, place, keep_columns_in
):
    keep_columns_in(place)
    samples = FakeSamples(rings)
    history = variant(name).fit_model(samples).history_
    last = history.iloc[-1]
    assert reads_of(samples) == last["reads"]
    assert (
        history["bytes"] == history["reads"] * samples.n_samples * samples.row_bytes
    ).all()
    if place == "memory":
        assert last["reads"] == 2  # of the sample, and of the features that are kept
    else:
        assert last["reads"] <= most
        assert last["sweeps"] == 0


def test_few_reads_end_near_the_optimum_and_say_how_near():
    X = make_blobs(ROWS, gap=2.0)
    many = fitted("CPMMC", FakeSamples(X), eta=1e-4)
    # more than 1 GiB
    few = fitted(
        "CPMMC", FakeSamples(X, row_bytes=2**13), eta=1e-4, memory_limit="16GiB"
    )
    last = few.history_.iloc[-1]
    assert (
        last["reads"] + last["sweeps"]
        < many.history_[["reads", "sweeps"]].iloc[-1].sum()
    )
    assert few.report_["gap"] == pytest.approx(
        (last.primal - last.objective) / (last.C * last.rho)
    )
    assert not few.converged_
    assert few.eta < few.report_["gap"] < 10 * few.eta
    assert few.objective_ == pytest.approx(many.objective_, rel=0.02)
    assert np.mean(few.labels_ == many.labels_) > 0.99


@pytest.mark.parametrize("name", ["SparseKernelMMC", "KernelKMeans"])
def test_labels_in_a_file_take_no_read_of_cached_features(name, rings, tmp_path):
    samples = FakeSamples(rings)
    model = variant(name).fit_model(samples, out=tmp_path / "fit.csv")
    assert reads_of(samples) == model.history_["reads"].iloc[-1]
    assert not hasattr(model, "labels_")
    new = FakeSamples(rings)
    model.predict(new, out=tmp_path / "predict.csv")
    assert (new.reads == 1).all()
    # none of the rows of the fit
    assert reads_of(samples) == model.history_["reads"].iloc[-1]
    assert (tmp_path / "fit.csv").read_bytes() == (
        tmp_path / "predict.csv"
    ).read_bytes()


def test_labels_that_have_settled_on_a_larger_sample_take_one_pass(rings):
    weights = np.random.default_rng(1).integers(0, 4, ROWS).astype(float)
    model = fitted("UnsupervisedRLS", rings, weights)
    is_sample = model.history_["stage"] == "sample"
    *steps, last = model.history_[~is_sample].itertuples()
    assert {step.stage for step in steps} == {"larger sample"}
    assert (last.stage, last.changed, model.converged_) == (
        "all rows",
        weights.sum(),
        True,
    )
    settled = 0.0101 * weights[weights > 0].mean() * GROUP_ROWS
    assert steps[-1].changed <= settled < min(step.changed for step in steps[:-1])
    assert model.objective_ == last.objective
    np.testing.assert_array_equal(
        np.bincount(model.labels_, weights), model.cluster_sizes_
    )
