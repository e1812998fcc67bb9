"""The density on the way from a small group: it only rises from a tail, and falls first from a cluster."""

import itertools

import numpy as np
import pytest

from mmcnb.choice.small import tubes_inwards, with_valleys
from mmcnb.choice.valleys import CLEAR_VALLEY, valley_evidence
from mmcnb.features.far_rows import TubesPass
from mmcnb.graph.axes import Axes
from mmcnb.graph.tubes import tube_between, weights_in_slabs
from mmcnb.samples import open_samples


def cloud(n_small, distance, columns=10, spread=1.0):
    """A large group, then a small one at some distance along the first column."""
    random = np.random.default_rng([n_small, columns])
    large = random.normal(size=(20_000, columns))
    small = spread * random.normal(size=(n_small, columns))
    small[:, 0] += distance
    return np.vstack([large, small])


def evidence_of(points, members):
    """The evidence on the way from some points to the large group."""
    small = np.zeros(len(points), np.int64)
    small[members] = 1
    tubes = tubes_inwards(points, small, np.zeros(20_000, np.int64))
    (tube,) = tubes
    profile = weights_in_slabs(points, np.ones(len(points)), tubes)[0]
    return valley_evidence(profile[: tube.n_slabs])


@pytest.mark.parametrize(
    ("n_small", "distance", "columns", "spread"),
    [
        (10, 12, 5, 1.0),
        (12, 8, 10, 1.0),
        (30, 8, 100, 1.0),
        (80, 12, 10, 2.0),
        (9, 6, 3, 0.2),
    ],
)
def test_the_density_falls_between_a_small_cluster_and_a_large_one(
    n_small, distance, columns, spread
):
    points = cloud(n_small, distance, columns, spread)
    assert evidence_of(points, np.arange(20_000, len(points))) > CLEAR_VALLEY


@pytest.mark.parametrize("columns", [2, 20, 200])
@pytest.mark.parametrize("count", [10, 40, 200])
@pytest.mark.parametrize("freedom", [3, 5, np.inf])
def test_the_density_only_rises_from_a_tail(columns, count, freedom):
    random = np.random.default_rng([columns, count])
    points = random.normal(size=(20_000, columns))
    if freedom < np.inf:
        points[:, 0] = 3 * random.standard_t(freedom, 20_000)
    farthest = np.argsort(-points[:, 0])[:count]
    assert evidence_of(points, farthest) < CLEAR_VALLEY


def test_the_far_side_of_a_large_cluster_is_no_valley():
    rising_and_falling = np.array([0, 1, 3, 5, 9, 30, 200, 900, 200, 30, 2, 0, 0])
    assert valley_evidence(rising_and_falling) == 0


def test_rows_are_counted_once_whatever_the_blocks():
    points = cloud(30, 8, 4)
    tubes = [
        tube_between(group, points[-30:], target)
        for group, target in ((1, np.zeros(4)), (2, np.ones(4)))
    ]
    random = np.random.default_rng(0)
    drawn = np.flatnonzero(random.random(len(points)) < 0.7)
    weights = random.integers(1, 4, drawn.size).astype(float)
    sweep = TubesPass(drawn, weights, Axes(np.zeros(4)), tubes)
    samples = open_samples(points)
    cuts = [0, 1, 777, 12_345, len(points)]
    parts = [
        sweep.block(samples.block(start, stop), start, stop)
        for start, stop in itertools.pairwise(cuts)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = sweep.combine(total, part)
    np.testing.assert_array_equal(
        total, weights_in_slabs(points[drawn], weights, tubes)
    )
    # naive: the distance from the line, and the place along it
    for tube, sums in zip(tubes, total, strict=True):
        centred = points[drawn] - tube.start
        along = centred @ tube.direction
        across = np.linalg.norm(centred - np.outer(along, tube.direction), axis=1)
        edges = (np.arange(tube.n_slabs + 1) - 3) * tube.step
        inside = across <= tube.radius
        naive = np.histogram(along[inside], edges, weights=weights[inside])[0]
        np.testing.assert_array_equal(sums[: tube.n_slabs], naive)
        assert not sums[tube.n_slabs :].any()


def test_groups_without_a_valley_are_dropped_and_the_others_numbered_anew():
    points = cloud(30, 9)
    tail = np.argsort(-points[:20_000, 1])[:40]
    small = np.zeros(len(points), np.int64)
    small[tail] = 1
    small[20_000:] = 2
    labels = np.zeros(20_000, np.int64)
    tubes = tubes_inwards(points, small, labels)
    assert [tube.group for tube in tubes] == [1, 2]
    profiles = weights_in_slabs(points, np.ones(len(points)), tubes)
    kept = with_valleys(small, tubes, profiles)
    np.testing.assert_array_equal(kept, np.where(small == 2, 1, 0))
