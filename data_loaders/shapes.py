"""Shapes: small data sets with clusters of known geometry, for tests and comparisons."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from mmcnb import InputError

from ._checks import check_name, check_whole, seeded

Cluster = Callable[[np.random.RandomState, int], np.ndarray]
Point = Sequence[float] | np.ndarray


def blob(centre: Point, spread: float | Point, turn: float = 0.0) -> Cluster:
    """Draw from a Gaussian with the given standard deviations, turned by an angle in degrees in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = rng.standard_normal((n, len(centre))) * spread
        return centre + (X @ _rotation(turn) if turn else X)

    return draw


def blobs(centres: Iterable[Point], spread: float) -> tuple[Cluster, ...]:
    """Draw each cluster from a Gaussian; all have the same standard deviation."""
    return tuple(blob(centre, spread) for centre in centres)


def ball(centre: Point, radius: float) -> Cluster:
    """Draw uniformly from a ball, which is a disc in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        distance = radius * rng.uniform(size=(n, 1)) ** (1 / len(centre))
        return centre + distance * _directions(rng, n, len(centre))

    return draw


def sphere(centre: Point, radius: float, noise: float) -> Cluster:
    """Draw from the surface of a ball, which is a ring in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        surface = radius * _directions(rng, n, len(centre))
        return centre + surface + rng.normal(0.0, noise, surface.shape)

    return draw


def box(lower: Point, upper: Point) -> Cluster:
    """Draw uniformly from an interval in every feature."""
    return lambda rng, n: rng.uniform(lower, upper, size=(n, len(lower)))


def curve(points: Callable[[np.ndarray], np.ndarray], noise: float) -> Cluster:
    """Draw from a curve; ``points`` maps numbers from 0 to 1 to points of the curve."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = points(rng.uniform(size=n))
        return X + rng.normal(0.0, noise, X.shape)

    return draw


def arc(
    centre: Point, radius: float, start: float, stop: float, noise: float
) -> Cluster:
    """Draw from the arc of a circle between two angles in degrees."""
    return curve(
        lambda t: centre + radius * on_circle(start + (stop - start) * t), noise
    )


def moon(place: int, *, step: float = 1.0, noise: float = 0.05) -> Cluster:
    """Draw from one of several interleaved half circles, which alternate above and below a line."""
    below = place % 2
    return arc((step * place, 0.5 * below), 1, 180 * below, 180 * below + 180, noise)


def spiral(start: float, turns: float) -> Cluster:
    """Draw from the arm of a spiral, whose radius grows from 0.5 to 3.5, from a starting angle in degrees."""

    def points(t: np.ndarray) -> np.ndarray:
        along = np.sqrt(t)  # outer turns are longer, so they get more rows
        return (0.5 + 3.0 * along[:, None]) * on_circle(start + 360.0 * turns * along)

    return curve(points, 0.06)


def bead_chain(height: float) -> Cluster:
    """Draw from a row of eight small blobs at a given height."""
    return either(*blobs([(x, height) for x in range(8)], 0.15))


def sine_band(height: float) -> Cluster:
    """Draw from two periods of a sine curve at a given height."""
    return curve(
        lambda t: np.column_stack([4 * np.pi * t, height + np.sin(4 * np.pi * t)]), 0.08
    )


def strokes(*paths: Sequence[Point] | np.ndarray) -> Cluster:
    """Draw from straight strokes of a pen; each path is a sequence of points."""
    return either(*map(_path, paths))


def cross(centre: Point) -> list[list[Point]]:
    """Return the two strokes of a cross."""
    x, y = centre
    return [[(x - 1, y), (x + 1, y)], [(x, y - 1), (x, y + 1)]]


def either(*pieces: Cluster) -> Cluster:
    """Draw equally many rows, up to one, from each of several pieces."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        ends = np.rint(np.linspace(0, n, len(pieces) + 1)).astype(int)
        return np.concatenate(
            [
                piece(rng, size)
                for piece, size in zip(pieces, np.diff(ends), strict=True)
            ]
        )

    return draw


def scattered(cluster: Cluster, noise: float, share: float = 0.1) -> Cluster:
    """Move a fraction of a cluster's rows away from their places."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = cluster(rng, n)
        pushed = rng.uniform(size=n) < share
        X[pushed] += rng.normal(0.0, noise, X[pushed].shape)
        return X

    return draw


def padded(cluster: Cluster, n_features: int, noise: float) -> Cluster:
    """Add features that do not depend on the cluster."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = cluster(rng, n)
        return np.hstack([X, rng.normal(0.0, noise, (n, n_features - X.shape[1]))])

    return draw


def roll(start: float, stop: float, turn: float = 0.0) -> Cluster:
    """Draw from a sheet that is rolled up around an axis, between two angles in half turns.

    The distance of the sheet from the axis is the angle in radians; ``turn`` rotates
    the sheet by an angle in degrees.
    """

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        angle = np.pi * np.sqrt(rng.uniform(start**2, stop**2, size=n))
        disc = angle[:, None] * on_circle(np.degrees(angle) + turn)
        return np.column_stack([disc[:, 0], rng.uniform(0.0, 4.0, size=n), disc[:, 1]])

    return draw


def ring_in_space(centre: Point, axes: tuple[int, int]) -> Cluster:
    """Draw from a ring of radius 1 in space, in the plane of two of the axes."""
    return curve(lambda t: centre + on_circle(360.0 * t) @ np.eye(3)[list(axes)], 0.05)


def on_circle(degrees: np.ndarray) -> np.ndarray:
    """Return points of the unit circle."""
    angle = np.radians(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def lattice(side: int, n_features: int, step: float) -> list[np.ndarray]:
    """Return all points of a square or cubic grid with ``side`` points along each axis."""
    return [step * np.array(place) for place in product(range(side), repeat=n_features)]


def _path(points: Sequence[Point] | np.ndarray) -> Cluster:
    corners = np.array(points, dtype=np.float64)
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    at = np.append(0.0, np.cumsum(lengths)) / lengths.sum()
    return curve(
        lambda t: np.column_stack([np.interp(t, at, column) for column in corners.T]),
        0.05,
    )


def _directions(rng: np.random.RandomState, n: int, n_features: int) -> np.ndarray:
    X = rng.standard_normal((n, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _rotation(degrees: float) -> np.ndarray:
    cosine = np.cos(np.radians(degrees))
    sine = np.sin(np.radians(degrees))
    return np.array([[cosine, sine], [-sine, cosine]])


@dataclass(frozen=True)
class Shape:
    """The family of a shape, its clusters, and whether a gap separates them.

    Parameters
    ----------
    family : str
        Family of the shape, such as ``"rings"``.
    clusters : tuple of callable
        For each cluster, a function; ``cluster(rng, n)`` draws n rows.
    weights : tuple of float or None, default=None
        Relative sizes of the clusters; None for equal sizes.
    separated : bool, default=True
        Whether the gap between the clusters is wider than all gaps inside them, with
        1200 rows.

    Examples
    --------
    >>> from mmcnb.datasets import SHAPES
    >>> shape = SHAPES["linked-rings"]
    >>> shape.family, shape.n_clusters, shape.n_features, shape.separated
    ('rings', 2, 3, True)
    """

    family: str
    clusters: tuple[Cluster, ...]
    weights: tuple[float, ...] | None = None
    separated: bool = True

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.clusters[0](np.random.RandomState(0), 1).shape[1]

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.clusters)


def _gapless(family: str, *clusters: Cluster) -> Shape:
    return Shape(family, clusters, separated=False)


def make_shape(
    name: str,
    n_samples: int = 1200,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Generate one of the shapes.

    Parameters
    ----------
    name : str
        A key of `SHAPES`, such as ``"two-moons"``.
    n_samples : int, default=1200
        Number of rows, at least one for each cluster.
    random_state : int, RandomState or None, default=None
        Seed; the same seed gives the same rows.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), dtype float64
        The rows, shuffled.
    y : ndarray of shape (n_samples,), dtype int32
        The cluster of each row, 0-based.

    Raises
    ------
    InputError
        If the name is unknown, there are fewer rows than clusters, or the seed is not
        valid.

    Examples
    --------
    >>> from mmcnb.datasets import SHAPES, make_shape
    >>> X, y = make_shape("ring-around-blob", 300, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 2), [0, 1])
    >>> [name for name, shape in SHAPES.items() if shape.family == "spirals"]
    ['two-spirals', 'three-spirals', 'unequal-spirals']
    """
    check_name("name", name, SHAPES)
    check_whole("n_samples", n_samples, 1)
    shape = SHAPES[name]
    if n_samples < shape.n_clusters:
        raise InputError(
            f"n_samples is {n_samples}; {name} has {shape.n_clusters} clusters: give more rows."
        )
    rng = seeded(random_state)
    sizes = _sizes(n_samples, np.array(shape.weights or (1.0,) * shape.n_clusters))
    X = np.concatenate(
        [draw(rng, size) for draw, size in zip(shape.clusters, sizes, strict=True)]
    )
    y = np.repeat(np.arange(shape.n_clusters, dtype=np.int32), sizes)
    order = rng.permutation(n_samples)
    return X[order], y[order]


def _sizes(n: int, weights: np.ndarray) -> np.ndarray:
    """Return whole numbers of at least 1 that sum to n and are about in the given proportions."""
    ends = np.cumsum(weights) / weights.sum() * (n - len(weights))
    return 1 + np.diff(np.rint(ends).astype(int), prepend=0)


ORIGIN = (0.0, 0.0)
CENTRE = (0.0, 0.0, 0.0)
# Any two of these corners differ in four or more of the ten features.
WORDS = (
    "0000000000",
    "1111100000",
    "0000011111",
    "1111111111",
    "1010101010",
    "0101010101",
)
CODE_WORDS = np.array([[*map(int, word)] for word in WORDS])
ZIGZAG = np.array([(0, 0), (1, 1.5), (2, 0), (3, 1.5), (4, 0), (5, 1.5), (6, 0)])
LETTERS = (
    [[(-1, 1.5), (-1, 0), (1, 0), (1, 1.5)]],  # U
    [[(0, 0.7), (0, 2.2)], [(-1, 2.2), (1, 2.2)]],  # T, with its stem inside the U
    [[(2, 0), (2, 2)], [(2, 1), (4, 1)], [(4, 0), (4, 2)]],  # H
)

#: All shapes by name. The families are rings, moons, noise, sizes, blobs, corners,
#: spirals, chains, density, touching, drawings, shells and rolls.
SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "two-rings": Shape(
            "rings", (sphere(ORIGIN, 1, 0.05), sphere(ORIGIN, 0.4, 0.05))
        ),
        "three-rings": Shape(
            "rings",
            tuple(sphere(ORIGIN, radius, 0.08) for radius in (1, 2, 3)),
            (1, 2, 3),
        ),
        "ring-around-blob": Shape(
            "rings", (blob(ORIGIN, 0.3), sphere(ORIGIN, 3, 0.1)), (1, 2)
        ),
        "off-centre-rings": Shape(
            "rings", (sphere(ORIGIN, 2, 0.05), sphere((0.7, 0), 0.7, 0.05)), (2, 1)
        ),
        "linked-rings": Shape(
            "rings", (ring_in_space(CENTRE, (0, 1)), ring_in_space((1, 0, 0), (0, 2)))
        ),
        "two-moons": Shape("moons", (moon(0), moon(1))),
        "unequal-moons": Shape("moons", (moon(0), moon(1)), (10, 1)),
        "four-moons": Shape(
            "moons", tuple(moon(place, step=1.2) for place in range(4))
        ),
        "padded-moons": Shape(
            "moons", (padded(moon(0), 10, 0.05), padded(moon(1), 10, 0.05))
        ),
        "noisy-rings": _gapless(
            "noise", sphere(ORIGIN, 1, 0.15), sphere(ORIGIN, 0.4, 0.15)
        ),
        "noisy-moons": _gapless("noise", moon(0, noise=0.2), moon(1, noise=0.2)),
        "scattered-blobs": _gapless(
            "noise",
            *(scattered(one, 2) for one in blobs(((0, 0), (4, 0), (2, 3.5)), 0.5)),
        ),
        "one-small-blob": Shape("sizes", blobs((ORIGIN, (5, 0)), 0.5), (10, 1)),
        "small-beside-large": Shape(
            "sizes", (ball(ORIGIN, 3), ball((4.2, 0), 0.4)), (20, 1)
        ),
        "four-sizes": Shape("sizes", blobs(lattice(2, 2, 5), 0.5), (27, 9, 3, 1)),
        "seven-blobs": Shape(
            "blobs", blobs((ORIGIN, *4 * on_circle(np.arange(0, 360, 60))), 0.4)
        ),
        "nine-blobs": Shape("blobs", blobs(lattice(3, 2, 4), 0.4)),
        "twenty-five-blobs": Shape("blobs", blobs(lattice(5, 2, 4), 0.35)),
        "cube-corners": Shape("corners", blobs(lattice(2, 3, 2), 0.2)),
        "hypercube-corners": Shape("corners", blobs(2 * CODE_WORDS, 0.3)),
        "two-spirals": Shape(
            "spirals", tuple(spiral(start, 1.5) for start in (0, 180))
        ),
        "three-spirals": Shape(
            "spirals", tuple(spiral(start, 1) for start in (0, 120, 240))
        ),
        "unequal-spirals": Shape(
            "spirals", tuple(spiral(start, 1) for start in (0, 180)), (5, 1)
        ),
        "bead-chains": Shape(
            "chains", tuple(bead_chain(height) for height in (0, 2, 4))
        ),
        "sine-bands": Shape(
            "chains", tuple(sine_band(height) for height in (0, 1.5, 3))
        ),
        "three-bars": Shape(
            "chains",
            (box((0, 0), (9, 0.4)), box((3, 1.4), (12, 1.8)), box((1, 2.8), (10, 3.2))),
        ),
        "dense-beside-sparse": Shape(
            "density", (ball(ORIGIN, 0.4), ball((3.7, 0), 2.5))
        ),
        "dense-inside-sparse": _gapless(
            "density", blob(ORIGIN, 0.15), blob(ORIGIN, 1.5)
        ),
        "three-densities": Shape(
            "density", tuple(ball((x, 0), 1) for x in (0, 3.5, 7)), (16, 4, 1)
        ),
        "two-touching": _gapless("touching", *blobs((ORIGIN, (4, 0)), 1)),
        "five-touching": _gapless(
            "touching", *blobs((ORIGIN, (4, 0), (-4, 0), (0, 4), (0, -4)), 1)
        ),
        "long-touching": _gapless(
            "touching", blob(ORIGIN, (3, 0.4)), blob((0, 1.6), (3, 0.4))
        ),
        "turned-touching": _gapless(
            "touching",
            *(
                blob(at, (1.6, 0.4), turn)
                for at, turn in ((ORIGIN, 45), ((2.2, 0), 45), ((5, 2.5), -45))
            ),
        ),
        "padded-touching": _gapless(
            "touching", *(padded(one, 10, 1) for one in blobs((ORIGIN, (4, 0)), 1))
        ),
        "three-crosses": Shape(
            "drawings",
            tuple(strokes(*cross(at)) for at in (ORIGIN, (2.6, 0), (1.3, 1.5))),
        ),
        "smiley": Shape(
            "drawings",
            (
                sphere(ORIGIN, 3, 0.08),
                *blobs(((-1, 1), (1, 1)), 0.15),
                arc(ORIGIN, 1.6, 210, 330, 0.08),
            ),
            (6, 1, 1, 2),
        ),
        "zigzag": Shape(
            "drawings", (strokes(ZIGZAG), strokes(ZIGZAG + np.array([0, 1.6])))
        ),
        "letters": Shape("drawings", tuple(strokes(*letter) for letter in LETTERS)),
        "atom": Shape("shells", (ball(CENTRE, 0.6), sphere(CENTRE, 3, 0.1))),
        "two-shells": Shape(
            "shells", (sphere(CENTRE, 1, 0.05), sphere(CENTRE, 3, 0.1)), (1, 4)
        ),
        "roll-pieces": Shape("rolls", (roll(1.5, 2.5), roll(2.9, 3.6), roll(3.9, 4.5))),
        "two-rolls": Shape("rolls", (roll(1.5, 3.5), roll(1.5, 3.5, turn=180))),
    }
)
