"""Rows made for the study of the number: clusters apart, and outliers."""

import numpy as np

from benchmarks.protocol import Data

MOST_DRAWS = 100_000
N_CLUMPS, CLUMP_SPREAD, CLUMP_REACH, REACHED = 3, 0.1, 2.0, 0.99


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
    raise ValueError(f"{count} centres do not fit {least:g} apart into a spread of {spread:g}.")


def blobs(rows: int, n_clusters: int, columns: int, least: float, spread: float, seed: int) -> Data:
    """Gaussian clusters of deviation 1 and equal sizes, whose centres are apart.

    Examples
    --------
    >>> from benchmarks.studies._number_made import blobs
    >>> made = blobs(40, 4, 3, 5.0, 3.0, 0)
    >>> made.X.shape, made.y.tolist()[:5]
    ((40, 3), [0, 1, 2, 3, 0])
    """
    random = np.random.default_rng([rows, n_clusters, columns, seed])
    centres = centres_apart(random, n_clusters, columns, least, spread).astype(np.float32)
    y = np.arange(rows) % n_clusters
    return Data("blobs", centres[y] + random.standard_normal((rows, columns), np.float32), y)


def uniform_rows(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """Uniform rows in the box around some rows."""
    return random.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))


def far_clumps(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """A few narrow clumps, twice as far from the mean as nearly all rows, in units of the deviations."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    reach = CLUMP_REACH * np.quantile(np.linalg.norm((X - mean) / scale, axis=1), REACHED)
    ways = random.standard_normal((N_CLUMPS, X.shape[1]))
    places = reach * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    drawn = places[np.arange(count) % N_CLUMPS]
    return mean + scale * (drawn + CLUMP_SPREAD * random.standard_normal((count, X.shape[1])))
