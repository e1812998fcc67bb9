"""Other orders of the rows give other draws: clusters that they change are doubted."""

import numpy as np
import pytest

from mmcnb.datasets import make_shape
from mmcnb.metrics import adjusted_rand_index
from tests.estimators.front_door import front_door

SHAPES = (
    "three-rings",
    "noisy-moons",
    "scattered-blobs",
    "two-touching",
    "turned-touching",
    "three-crosses",
)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_given", [True, False])
def test_clusters_that_another_order_of_rows_changes_have_no_high_trust(
    shape, is_given
):
    X, y = make_shape(shape, 1000, random_state=0)
    n_clusters = len(np.unique(y)) if is_given else None
    fits = []
    for seed in range(3):
        order = np.random.RandomState(seed).permutation(len(X))
        model = front_door(n_clusters=n_clusters, random_state=0).fit(X[order])
        labels = np.empty(len(X), np.int64)
        labels[order] = model.labels_
        fits.append((labels, model.report_["trust"]["level"]))
    for labels, level in fits:
        if level == "high":
            assert all(adjusted_rand_index(labels, other) > 0.8 for other, _ in fits)
