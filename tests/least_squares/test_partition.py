"""Laws of the partition of a sample: the ridge it is searched at."""

import numpy as np
import pytest

from mmcnb.datasets import make_block
from mmcnb.engine.session import open_engine
from mmcnb.features.kernel import Kernel, kernel_matrix
from mmcnb.features.nystroem import normalization_of, principal_features
from mmcnb.least_squares.objective import mean_objective, smoother
from mmcnb.least_squares.partition import PartitionConfig, partition_sample


def partition(n_clusters, search="shaking", schedule="mixed"):
    return PartitionConfig(n_clusters, 1e-3, search, schedule, 2, "auto", 0.1, 0.5)


def test_the_whole_ridge_of_two_clusters_grows_to_its_bound_and_then_falls_no_further_than_a_tenth():
    alphas = [partition(2).search_alpha(rows) for rows in (10, 400, 2000, 10**6)]
    assert alphas == pytest.approx([1e-3, 1e-3, 2e-4, 1e-4])


@pytest.mark.parametrize("config", [partition(3), partition(2, "steepest"), partition(2, schedule="paper")])
def test_other_partitions_keep_the_ridge_of_the_model(config):
    assert config.search_alpha(10**6) == config.alpha


def test_partitions_are_judged_at_the_ridge_of_the_search():
    X, _ = make_block("moons", 0, 600, 2)
    kernel = Kernel("rbf", 2.0)
    K, config = kernel_matrix(X, kernel), partition(2)
    features = principal_features(K @ normalization_of(K.copy(), 1e-7))
    with open_engine(None, 1) as engine:
        found = partition_sample(engine, config.smoother(K), features, config, np.random.RandomState(0))
    R = smoother(K, config.search_alpha(600) * 600)
    for one in found:
        assert one.objective == pytest.approx(mean_objective(R, one.labels, 2), rel=1e-9)
    assert [one.objective for one in found] == sorted((one.objective for one in found), reverse=True)
