"""A sample clustered by regularised least squares: local search and regularisation paths, compared by J."""

from collections.abc import Callable

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, ignore, run_starts
from mmcnb.features.nystroem import PrincipalFeatures
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.local_search import MOST_MOVES, PartitionConfig, local_search, random_labels
from mmcnb.least_squares.objective import Partition, mean_objective
from mmcnb.least_squares.regularization_path import REGULARIZATION_PATH, regularization_path

# Measured by `python -m benchmarks rls`, section "defaults".
PATH_STARTS = 4
REFINED = 2  # partitions that the hinge form refines: `python -m benchmarks peers`
LEADING = 50  # principal axes that k-means sees
PARTITION_ROUTINES = {"size_multipliers": 5.0, "refine": 3.5}
Refine = Callable[[Partition, Record], np.ndarray | None]


def partition_sample(
    engine: Engine,
    R: np.ndarray | None,
    features: PrincipalFeatures,
    config: PartitionConfig,
    random_state: np.random.RandomState,
    refine: Refine | None = None,
    record: Record = ignore,
) -> list[Partition]:
    """Cluster a sample; the best partition comes first.

    Parameters
    ----------
    engine : Engine
        Its threads share the starts.
    R : ndarray of shape (m, m) or None
        Smoother of the sample at the ridge ``config.search_alpha(m) * m``; None follows regularisation paths
        alone, as the local search knows no weights.
    features : PrincipalFeatures
        The sample in landmark features, with its weights.
    config : PartitionConfig
        Number of clusters, ridge, search and sizes.
    random_state : RandomState
        Source of randomness.
    refine : callable or None, default=None
        ``refine(partition, record)`` gives other labels, or None. It is tried on the best two partitions.
        Its labels count where J rises, by more than 0.01 for what local search found.
    record : callable, default=ignore
        Takes what ``refine`` records.

    Returns
    -------
    list of Partition
        By J under the smoother, or in landmark features without one. Paths are numbered after the starts of
        the local search.
    """
    m, k, first_path = features.z.shape[0], config.n_clusters, config.n_init
    bounds, alpha = config.bounds(features.total), config.search_alpha(m)
    flips = [random_labels(m, config.shares, random_state) for _ in range(PATH_STARTS)]
    path = (*(ridge for ridge in REGULARIZATION_PATH if ridge > alpha), alpha)

    def scored(labels: np.ndarray, start: int) -> Partition:
        """A partition at the end of steepest descent, where there is a matrix to descend on."""
        if R is None:
            return Partition(labels, features.objective(labels, k, alpha), start)
        sizes = config.bounds_by_size(np.bincount(labels, minlength=k))
        labels = kernels.refine(R, labels, *sizes, MOST_MOVES * m)[0]
        return Partition(labels, mean_objective(R, labels, k), start)

    def run_start(start: int, record: Record) -> Partition:
        labels = regularization_path(features, flips[start - first_path], k, bounds, path).labels
        return scored(labels, start)

    follows_paths = config.is_mixed or R is None
    paths = [*range(first_path, first_path + PATH_STARTS)] if follows_paths else []
    found = run_starts(engine, run_start, paths)
    if R is not None:
        found = local_search(R, config, random_state, features.z[:, :LEADING], engine) + found
    if refine is not None:
        chosen = sorted(sorted(found, key=_rank)[:REFINED], key=lambda one: one.start)
        for one, labels in zip(chosen, run_starts(engine, refine, chosen, record), strict=True):
            refined = one if labels is None else scored(labels, one.start)
            # A smaller gain of J does not replace labels of the local search.
            gain = 0.0 if one.start >= first_path else 0.01
            found += [refined] if refined.objective > one.objective + gain else []
    return sorted(found, key=_rank)


def _rank(partition: Partition) -> float:
    """The largest J comes first; of equal ones the earlier."""
    return -partition.objective


def partition_seconds(rows: int, n_clusters: int) -> float:
    """Seconds of one core for the search on a sample, from fits to 1,500 x 30 and 20,000 x 50 rows."""
    return 0.5 * (rows / 2000) ** 2 * (1 + 0.1 * (n_clusters - 2))
