"""Labels that the last pass of a fit keeps: those of `predict`, and no read of their own."""

import numpy as np
import pytest
import zarr

import mmcnb
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS
from tests.engine.fakes import FakeSamples
from tests.estimators.front_door import front_door

N = GROUP_ROWS + 3001
THIRDS = np.arange(N) * 3 // N
FITS = {
    "landmarks": mmcnb.UnsupervisedRLS(
        3, n_landmarks=12, sample_size=300, n_init=1, random_state=0
    ),
    "graph": front_door(3, kernel="graph", n_nodes=300),
    "margin": front_door(3, kernel="linear", n_nodes=300),
}


def rows_of(y, spread=1.0):
    """Rows of three groups, each of which counts how often it is read."""
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 30.0]])
    return FakeSamples(
        centres[y] + spread * np.random.default_rng(0).standard_normal((N, 2))
    )


def reads_of(samples):
    """How often rows were read, but for the first block, which tells the order of the clusters."""
    (reads,) = set(samples.reads[BLOCK_ROWS:])
    samples.reads[:] = 0
    return reads


@pytest.mark.parametrize("fit", FITS)
def test_labels_come_with_the_last_pass_and_from_a_checkpoint(
    fit, tmp_path, keep_columns_in
):
    keep_columns_in("recompute")
    samples = rows_of(np.random.default_rng(0).integers(0, 3, N), spread=9.0)
    model = FITS[fit].set_params(n_jobs=2, checkpoint=None).fit(samples)
    labels = model.labels_
    assert reads_of(samples) == model.history_["reads"].iloc[-1]
    np.testing.assert_array_equal(labels, model.predict(samples.X))
    model.set_params(n_jobs=1).fit_model(samples, out=tmp_path / "labels.zarr")
    assert reads_of(samples) == model.history_["reads"].iloc[-1]
    assert not hasattr(model, "labels_")
    model.set_params(checkpoint=tmp_path / "checkpoint")
    for name in ("kept", "resumed"):
        model.fit_model(samples, out=tmp_path / f"{name}.zarr")
    assert model.history_["resumed"].iloc[-1]
    for name in ("labels", "kept", "resumed"):
        np.testing.assert_array_equal(
            zarr.open_array(tmp_path / f"{name}.zarr", mode="r")[:], labels
        )
    np.testing.assert_array_equal(model.fit(samples).labels_, labels)


@pytest.mark.parametrize("is_seen", [True, False])
def test_labels_are_read_apart_where_a_cluster_comes_sooner_than_the_sample_says(
    is_seen,
):
    y = THIRDS.copy()
    if not is_seen:
        y[BLOCK_ROWS + 5] = 2  # alone, and hardly in the sample
    samples = rows_of(y)
    model = FITS["graph"].set_params(n_jobs=None, checkpoint=None).fit(samples)
    assert model.history_["reads"].iloc[-1] == 2
    assert reads_of(samples) == (2 if is_seen else 3)
    np.testing.assert_array_equal(
        model.labels_, y if is_seen else np.array([0, 2, 1])[y]
    )
    np.testing.assert_array_equal(model.labels_, model.predict(samples.X))
