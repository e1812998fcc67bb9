"""Synthetic rows of the study ``number``: blobs, heavy tails, small clusters, outliers."""

from typing import NamedTuple

import numpy as np

from benchmarks.protocol import Data

MOST_DRAWS = 100_000
SMALL_SHARES = (0.01, 0.003, 0.001, 0.0003, 0.0001)  # fractions of the rows
LARGE_CLUSTERS = 4
NOISE = -1  # class of rows that belong to no cluster
N_CLUMPS = 3
CLUMP_SPREAD = 0.1
CLUMP_REACH = 2.0
REACHED = 0.99


def centres_apart(
    random: np.random.Generator, count: int, columns: int, least: float, spread: float
) -> np.ndarray:
    """Draw Gaussian centres with a minimum distance from each other.

    A centre that is too close to an earlier one is drawn again.

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
    """Draw Gaussian clusters with standard deviation 1 and equal sizes, and with distant centres.

    Examples
    --------
    >>> from benchmarks.studies._number_made import blobs
    >>> made = blobs(40, 4, 3, 5.0, 3.0, 0)
    >>> made.X.shape, made.y.tolist()[:5]
    ((40, 3), [0, 1, 2, 3, 0])
    """
    random = np.random.default_rng([rows, n_clusters, columns, seed])
    centres = centres_apart(random, n_clusters, columns, least, spread)
    y = np.arange(rows) % n_clusters
    noise = random.standard_normal((rows, columns), np.float32)
    return Data("blobs", centres.astype(np.float32)[y] + noise, y)


class HeavyTailed(NamedTuple):
    """Directions in clusters with the tails of Student's t.

    Parameters
    ----------
    n_clusters, columns : int
        Numbers of clusters and columns.
    degrees : int
        Degrees of freedom of the noise.
    ratio : float
        Size of the largest cluster divided by the size of the smallest; sizes decrease
        by a constant factor.
    noise : float
        Length of the noise relative to centres of length 1.
    by_row : bool
        Whether rows as a whole have heavy tails; otherwise each column has.
    """

    n_clusters: int
    columns: int
    degrees: int
    ratio: float
    noise: float
    by_row: bool

    @property
    def name(self) -> str:
        """Name in the tables."""
        tails = "rows" if self.by_row else "columns"
        return (
            f"{self.n_clusters} of {self.columns} columns, 1 to {self.ratio:g}, "
            f"noise {self.noise:g}, tails {self.degrees} of {tails}"
        )


def heavy_tailed(made: HeavyTailed, rows: int, seed: int) -> Data:
    """Draw directions in clusters of uneven sizes, with heavy tails.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_made import HeavyTailed, heavy_tailed
    >>> data = heavy_tailed(HeavyTailed(3, 50, 4, 10.0, 1.0, True), 1000, 0)
    >>> bool(np.allclose(np.linalg.norm(data.X, axis=1), 1)), np.unique(data.y).size
    (True, 3)
    """
    random = np.random.default_rng([rows, made.n_clusters, made.columns, seed])
    centres = random.standard_normal((made.n_clusters, made.columns))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    weights = made.ratio ** -np.linspace(0, 1, made.n_clusters)
    y = random.choice(made.n_clusters, rows, p=weights / weights.sum())
    noise = random.standard_normal((rows, made.columns)) / made.columns**0.5
    shape = (rows, 1 if made.by_row else made.columns)
    noise /= np.sqrt(random.chisquare(made.degrees, shape) / made.degrees)
    X = centres[y] + made.noise * noise
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Data(made.name, X, y)


def small_sizes(rows: int) -> list[int]:
    """Return the sizes of the small clusters for a number of rows."""
    return [round(share * rows) for share in SMALL_SHARES]


def small_clusters(
    rows: int, columns: int, least: float, noise: float, seed: int
) -> Data:
    """Draw small clusters, a few large clusters, and uniform noise.

    The small clusters are classes 0 to 4, and noise is class -1.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_made import small_clusters
    >>> y = small_clusters(10_000, 10, 8.0, 0.02, 0).y
    >>> np.unique(y, return_counts=True)[1].tolist()
    [200, 100, 30, 10, 3, 1, 2414, 2414, 2414, 2414]
    """
    random = np.random.default_rng([rows, columns, seed])
    small = small_sizes(rows)
    n_noise = round(noise * rows)
    n_large = rows - sum(small) - n_noise
    large = np.full(LARGE_CLUSTERS, n_large // LARGE_CLUSTERS)
    large[: n_large % LARGE_CLUSTERS] += 1
    sizes = [*small, *large]
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = centres_apart(random, len(sizes), columns, least, least / 2)
    X = centres[y]
    X += random.standard_normal(X.shape)
    X = np.vstack([X, uniform_rows(random, X, n_noise)])
    y = np.append(y, np.full(n_noise, NOISE))
    order = random.permutation(rows)
    return Data("small clusters", X[order].astype(np.float32), y[order])


def found_small(
    y: np.ndarray, labels: np.ndarray, n_classes: int, least: float
) -> list[bool]:
    """Return whether a cluster matches each of the first classes.

    A cluster matches if it has enough of the rows of the class, and few other rows.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Classes.
    labels : ndarray of shape (n,)
        Clusters; -1 for noise.
    n_classes : int
        Number of classes to match; they are 0 to ``n_classes - 1``.
    least : float
        Smallest recall and precision of a matching cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_made import found_small
    >>> y = np.array([0, 0, 1, 1, 2, 2, 2])
    >>> found_small(y, np.array([5, 5, 6, 7, 7, 7, 7]), 2, 0.8)
    [True, False]
    """
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    is_found = []
    for c in range(n_classes):
        labels_of_class = labels[y == c]
        common = (labels_of_class[:, None] == clusters).sum(axis=0)
        has_recall = common >= least * len(labels_of_class)
        has_precision = common >= least * sizes
        matches = has_recall & has_precision & (common > 0)
        is_found.append(bool(matches.any()))
    return is_found


def uniform_rows(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """Draw rows uniformly in the bounding box of given rows."""
    return random.uniform(X.min(axis=0), X.max(axis=0), (count, X.shape[1]))


def far_clumps(random: np.random.Generator, X: np.ndarray, count: int) -> np.ndarray:
    """Draw a few narrow clumps, twice as far from the mean as nearly all rows.

    Distances are in units of the standard deviations of the columns.
    """
    mean = X.mean(axis=0)
    deviation = X.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    distances = np.linalg.norm((X - mean) / scale, axis=1)
    reach = CLUMP_REACH * np.quantile(distances, REACHED)
    directions = random.standard_normal((N_CLUMPS, X.shape[1]))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    centres = reach * directions / lengths
    clump = np.arange(count) % N_CLUMPS
    noise = CLUMP_SPREAD * random.standard_normal((count, X.shape[1]))
    return mean + scale * (centres[clump] + noise)
