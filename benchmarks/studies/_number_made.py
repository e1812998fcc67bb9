"""Rows made for the study of the number: clusters apart, small ones beside large ones, and outliers."""

import numpy as np

from benchmarks.protocol import Data

MOST_DRAWS = 100_000
SMALL_SHARES = (0.01, 0.003, 0.001, 0.0003, 0.0001)  # of the rows
LARGE_CLUSTERS = 4
NOISE = -1  # class of rows of no cluster
N_CLUMPS = 3
CLUMP_SPREAD = 0.1
CLUMP_REACH = 2.0
REACHED = 0.99


def centres_apart(
    random: np.random.Generator, count: int, columns: int, least: float, spread: float
) -> np.ndarray:
    """Gaussian centres, each of which is drawn again until it is far enough from those before.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from benchmarks.studies._number_made import centres_apart
    >>> bool(pdist(centres_apart(np.random.default_rng(0), 20, 8, 7.0, 3.0)).min() >= 7)
    True
    """
    centres = np.empty((0, columns))
    for _ in range(MOST_DRAWS):
        drawn = spread * random.standard_normal(columns)
        if (np.linalg.norm(centres - drawn, axis=1) >= least).all():
            centres = np.vstack([centres, drawn])
        if len(centres) == count:
            return centres
    raise ValueError(
        f"{count} centres do not fit {least:g} apart into a spread of {spread:g}."
    )


def blobs(
    rows: int, n_clusters: int, columns: int, least: float, spread: float, seed: int
) -> Data:
    """Gaussian clusters of deviation 1 and equal sizes, whose centres are apart.

    Examples
    --------
    >>> from benchmarks.studies._number_made import blobs
    >>> made = blobs(40, 4, 3, 5.0, 3.0, 0)
    >>> made.X.shape, made.y.tolist()[:5]
    ((40, 3), [0, 1, 2, 3, 0])
    """
    random = np.random.default_rng([rows, n_clusters, columns, seed])
    centres = centres_apart(random, n_clusters, columns, least, spread).astype(
        np.float32
    )
    y = np.arange(rows) % n_clusters
    return Data(
        "blobs", centres[y] + random.standard_normal((rows, columns), np.float32), y
    )


def small_sizes(rows: int) -> list[int]:
    """Sizes of the small clusters among so many rows."""
    return [round(share * rows) for share in SMALL_SHARES]


def small_clusters(
    rows: int, columns: int, least: float, noise: float, seed: int
) -> Data:
    """Small clusters, of classes 0 to 4, beside a few large ones, and a share of uniform rows, of class -1.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_made import small_clusters
    >>> y = small_clusters(10_000, 10, 8.0, 0.02, 0).y
    >>> np.unique(y, return_counts=True)[1].tolist()
    [200, 100, 30, 10, 3, 1, 2414, 2414, 2414, 2414]
    """
    random = np.random.default_rng([rows, columns, seed])
    few = small_sizes(rows)
    of_noise = round(noise * rows)
    most = np.full(LARGE_CLUSTERS, (rows - sum(few) - of_noise) // LARGE_CLUSTERS)
    most[: (rows - sum(few) - of_noise) % LARGE_CLUSTERS] += 1
    y = np.repeat(np.arange(len(few) + LARGE_CLUSTERS), [*few, *most])
    X = centres_apart(random, len(few) + LARGE_CLUSTERS, columns, least, least / 2)[y]
    X += random.standard_normal(X.shape)
    X = np.vstack([X, uniform_rows(random, X, of_noise)])
    y = np.append(y, np.full(of_noise, NOISE))
    order = random.permutation(rows)
    return Data("small clusters", X[order].astype(np.float32), y[order])


def found_small(
    y: np.ndarray, labels: np.ndarray, n_classes: int, least: float
) -> list[bool]:
    """Whether some cluster has enough of the rows of each of the first classes, and few others.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Classes.
    labels : ndarray of shape (n,)
        Clusters; -1 is none.
    n_classes : int
        Classes 0 to ``n_classes - 1`` are looked for.
    least : float
        Least recall and least precision of the cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_made import found_small
    >>> found_small(np.array([0, 0, 1, 1, 2, 2, 2]), np.array([5, 5, 6, 7, 7, 7, 7]), 2, 0.8)
    [True, False]
    """
    clusters, counts = np.unique(labels[labels >= 0], return_counts=True)
    found = []
    for c in range(n_classes):
        inside = labels[y == c]
        both = (inside[:, None] == clusters).sum(axis=0)
        found.append(
            bool(
                (
                    (both >= least * len(inside))
                    & (both >= least * counts)
                    & (both > 0)
                ).any()
            )
        )
    return found


def uniform_rows(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """Uniform rows in the box around some rows."""
    return random.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))


def far_clumps(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """A few narrow clumps, twice as far from the mean as nearly all rows, in units of the deviations."""
    mean = X.mean(axis=0)
    deviation = X.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    reach = CLUMP_REACH * np.quantile(
        np.linalg.norm((X - mean) / scale, axis=1), REACHED
    )
    ways = random.standard_normal((N_CLUMPS, X.shape[1]))
    places = reach * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    drawn = places[np.arange(count) % N_CLUMPS]
    return mean + scale * (
        drawn + CLUMP_SPREAD * random.standard_normal((count, X.shape[1]))
    )
