"""Laws of partitions that the hinge refines."""

import numpy as np
import pytest

from mmcnb.engine.run import ThreadEngine
from mmcnb.features.kernel import BasisMap, Kernel, KernelSamples, kernel_matrix
from mmcnb.features.nystroem import normalization_of, principal_features
from mmcnb.hinge.cccp import CCCPLimits
from mmcnb.hinge.multiclass import HingeRefinement
from mmcnb.hinge.sample_search import SearchConfig
from mmcnb.least_squares.partition import PartitionConfig, partition_sample
from mmcnb.least_squares.search import LandmarkSample
from mmcnb.samples import open_samples

KERNEL = Kernel("rbf", 0.1)
C = 6.0
K = 3
N = 90


def sample(seed):
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((K, 3))[np.arange(N) % K] + rng.standard_normal(
        (N, 3)
    )


def config(shares="equal"):
    return PartitionConfig(K, 1e-3, "shaking", "mixed", 2, shares, 0.1, 0.5)


def partitions(engine, X, partition, with_refine, weights=None):
    """Partitions, and the rows that refining them recorded."""
    columns = KernelSamples(open_samples(X), BasisMap(KERNEL, X[:20]), np.float64)
    values = columns.block(0, N)
    normalization = normalization_of(KERNEL(X[:20], X[:20]))
    features = principal_features(values @ normalization, weights)
    mapped = LandmarkSample(KERNEL, X[:20], values, normalization, features)
    search = SearchConfig((1.01, 2.0, C), CCCPLimits(2), 0, N, n_init=2)
    refine = HingeRefinement(engine, mapped, partition, search)
    R = partition.smoother(kernel_matrix(X, KERNEL)) if weights is None else None
    sweeps = []
    inputs = engine, R, features, partition, np.random.RandomState(0)
    ends = partition_sample(
        *inputs, refine.run_start if with_refine else None, sweeps.append
    )
    return ends, sweeps


@pytest.mark.parametrize(
    ("weighted", "shares"), [(False, "equal"), (True, [0.5, 0.3, 0.2])]
)
def test_refining_never_lowers_the_best_j_and_keeps_the_sizes(weighted, shares):
    X = sample(0)
    partition = config(shares)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, N) if weighted else np.ones(N)
    weights /= weights.mean()
    with ThreadEngine(1) as engine:
        given = engine, X, partition
        plain, none = partitions(*given, False, weights if weighted else None)
        refined, sweeps = partitions(*given, True, weights if weighted else None)
    assert none == []
    assert len({row["start"] for row in sweeps}) == 2
    assert {row["C"] for row in sweeps} <= {2.0, C}
    objectives = [one.objective for one in refined]
    assert objectives == sorted(objectives, reverse=True)
    kept = {(one.start, one.objective) for one in refined}
    assert kept >= {(one.start, one.objective) for one in plain}
    slack = weights.max() if weighted else 0
    for one in refined:
        sizes = np.bincount(one.labels, weights, K)
        low, high = partition.bounds_by_size(sizes)
        assert (sizes >= low - slack).all()
        assert (sizes <= high + slack).all()
