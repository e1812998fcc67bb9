"""Laws of the partition of a sample: the ridge it is searched at."""

import numpy as np
import pytest

from mmcnb.datasets import make_block
from mmcnb.engine.run import ThreadEngine
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.nystroem import normalization_of, principal_features
from mmcnb.least_squares.objective import mean_objective, smoother
from mmcnb.least_squares.partition import PartitionConfig, partition_sample


def config(n_clusters, search="shaking", schedule="mixed"):
    return PartitionConfig(n_clusters, 1e-3, search, schedule, 2, "auto", 0.1, 0.5)


def test_the_ridge_of_two_clusters_falls_with_the_rows_to_a_tenth_and_no_further():
    alphas = [config(2).search_alpha(rows) for rows in (10, 400, 2000, 10**6)]
    assert alphas == pytest.approx([1e-3, 1e-3, 2e-4, 1e-4])
    for other in (config(3), config(2, "steepest"), config(2, schedule="paper")):
        assert other.search_alpha(10**6) == other.alpha


@pytest.mark.parametrize("with_matrix", [True, False])
def test_partitions_are_judged_at_the_ridge_of_the_search(with_matrix):
    X, _ = make_block("moons", 0, 500, 2)
    K = kernel_matrix(X, Kernel("rbf", 2.0))
    features = principal_features(K @ normalization_of(K.copy(), 1e-7))
    R = smoother(K, config(2).search_alpha(500) * 500)
    with ThreadEngine(1) as engine:
        smooth = config(2).smoother(K) if with_matrix else None
        partitions = partition_sample(
            engine, smooth, features, config(2), np.random.RandomState(0)
        )
    for one in partitions:
        assert one.objective == pytest.approx(
            mean_objective(R, one.labels, 2), rel=1e-9 if with_matrix else 1e-3
        )
    assert len(partitions) > 3
    objectives = [one.objective for one in partitions]
    assert objectives == sorted(objectives, reverse=True)
