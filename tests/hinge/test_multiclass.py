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


def sample(seed, n=150, k=4):
    rng = np.random.default_rng(seed)
    return 2 * rng.standard_normal((k, 3))[np.arange(n) % k] + rng.standard_normal((n, 3))


def config(shares="equal", k=4):
    return PartitionConfig(k, 1e-3, "shaking", "mixed", 2, shares, 0.1, 0.5)


def partitions(engine, X, partition, with_refine, weights=None):
    columns = KernelSamples(open_samples(X), BasisMap(KERNEL, X[:40]), np.float64)
    values = columns.block(0, len(X))
    normalization = normalization_of(KERNEL(X[:40], X[:40]))
    features = principal_features(values @ normalization, weights)
    mapped = LandmarkSample(KERNEL, X[:40], values, normalization, features)
    search = SearchConfig((1.01, 2.0, C), CCCPLimits(5), 0, len(X), n_init=2)
    refine = HingeRefinement(engine, mapped, partition, search)
    R = partition.smoother(kernel_matrix(X, KERNEL)) if weights is None else None
    sweeps = []
    given = engine, R, features, partition, np.random.RandomState(0)
    found = partition_sample(*given, refine.run_start if with_refine else None, sweeps.append)
    return found, refine, features, sweeps


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shares", ["equal", [0.4, 0.3, 0.2, 0.1]])
def test_refining_never_lowers_the_best_j(seed, weighted, shares):
    X, partition = sample(seed), config(shares)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 150) if weighted else None
    if weighted:
        weights /= weights.mean()
    with ThreadEngine(1) as engine:
        plain, *_, none = partitions(engine, X, partition, False, weights)
        refined, _, features, sweeps = partitions(engine, X, partition, True, weights)
    assert refined[0].objective >= plain[0].objective
    assert none == []
    assert len({row["start"] for row in sweeps}) == 2
    assert {row["C"] for row in sweeps} <= {2.0, C}
    assert [one.objective for one in refined] == sorted((one.objective for one in refined), reverse=True)
    kept = {(one.start, one.objective) for one in refined}
    assert kept >= {(one.start, one.objective) for one in plain}
    slack = 0 if weights is None else weights.max()
    for one in refined:
        sizes = np.bincount(one.labels, features.weights, 4)
        low, high = partition.bounds_by_size(sizes)
        assert (sizes >= low - slack).all()
        assert (sizes <= high + slack).all()


def test_threads_do_not_change_what_is_found():
    found = []
    for threads in (1, 3):
        with ThreadEngine(threads) as engine:
            divided, _, _, rows = partitions(engine, sample(5), config(), True)
        found.append((divided, [{k: v for k, v in row.items() if k != "clock"} for row in rows]))
    for one, other in zip(found[0][0], found[1][0], strict=True):
        assert one.objective == other.objective
        assert one.labels.tobytes() == other.labels.tobytes()
    assert found[0][1] == found[1][1]


def test_random_labels_reach_less_than_clusters_do():
    X = 2 * sample(0)
    with ThreadEngine(1) as engine:
        _, refine, _, sweeps = partitions(engine, X, config(), True)
        reached = {row["start"]: row["norm"] ** 2 for row in sweeps}  # at the end of each start
        assert refine.random_solution(C).quadratic.norm2 < min(reached.values())
