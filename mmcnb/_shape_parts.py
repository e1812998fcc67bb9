"""What the shapes are made of: functions that draw the rows of one cluster."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

Cluster = Callable[[np.random.RandomState, int], np.ndarray]
Point = Sequence[float] | np.ndarray


def blob(centre: Point, spread: float | Point, turn: float = 0.0) -> Cluster:
    """Draw from a Gaussian with these standard deviations along its axes, turned by degrees in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = rng.standard_normal((n, len(centre))) * spread
        return centre + (X @ _rotation(turn) if turn else X)

    return draw


def ball(centre: Point, radius: float) -> Cluster:
    """Draw evenly from a ball: a disc in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        distance = radius * rng.uniform(size=(n, 1)) ** (1 / len(centre))
        return centre + distance * _directions(rng, n, len(centre))

    return draw


def sphere(centre: Point, radius: float, noise: float) -> Cluster:
    """Draw from the surface of a ball: a ring in the plane."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        surface = radius * _directions(rng, n, len(centre))
        return centre + surface + rng.normal(0.0, noise, surface.shape)

    return draw


def box(lower: Point, upper: Point) -> Cluster:
    """Draw evenly from an interval in every feature."""
    return lambda rng, n: rng.uniform(lower, upper, size=(n, len(lower)))


def curve(points: Callable[[np.ndarray], np.ndarray], noise: float) -> Cluster:
    """Draw from a curve: ``points`` takes numbers from 0 to 1."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = points(rng.uniform(size=n))
        return X + rng.normal(0.0, noise, X.shape)

    return draw


def arc(centre: Point, radius: float, start: float, stop: float, noise: float) -> Cluster:
    """Draw from an arc of a circle, from one angle to the other in degrees."""
    return curve(lambda t: centre + radius * on_circle(start + (stop - start) * t), noise)


def moon(place: int, *, step: float = 1.0, noise: float = 0.05) -> Cluster:
    """Draw from one of a row of half circles, in turn above and below, each reaching into its neighbours."""
    below = place % 2
    return arc((step * place, 0.5 * below), 1, 180 * below, 180 * below + 180, noise)


def spiral(start: float, turns: float) -> Cluster:
    """Draw from an arm whose radius grows by 3 from 0.5, and that starts at an angle in degrees."""

    def points(t: np.ndarray) -> np.ndarray:
        along = np.sqrt(t)  # an outer turn is longer, so it has more rows
        return (0.5 + 3.0 * along[:, None]) * on_circle(start + 360.0 * turns * along)

    return curve(points, 0.06)


def bead_chain(height: float) -> Cluster:
    """Draw from eight small blobs in a row at this height."""
    return either(*(blob((x, height), 0.15) for x in range(8)))


def sine_band(height: float) -> Cluster:
    """Draw from two waves of a sine at this height."""
    return curve(lambda t: np.column_stack([4 * np.pi * t, height + np.sin(4 * np.pi * t)]), 0.08)


def strokes(*paths: Sequence[Point] | np.ndarray) -> Cluster:
    """Draw from straight strokes of a pen: each path is a series of points."""
    return either(*map(_path, paths))


def cross(centre: Point) -> list[list[Point]]:
    """The two strokes of a cross."""
    x, y = centre
    return [[(x - 1, y), (x + 1, y)], [(x, y - 1), (x, y + 1)]]


def either(*pieces: Cluster) -> Cluster:
    """Draw from several pieces, with the same number of rows each, give or take one."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        ends = np.rint(np.linspace(0, n, len(pieces) + 1)).astype(int)
        return np.concatenate([piece(rng, size) for piece, size in zip(pieces, np.diff(ends), strict=True)])

    return draw


def scattered(cluster: Cluster, noise: float, share: float = 0.1) -> Cluster:
    """Push this share of a cluster's rows away from where they were drawn."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = cluster(rng, n)
        pushed = rng.uniform(size=n) < share
        X[pushed] += rng.normal(0.0, noise, X[pushed].shape)
        return X

    return draw


def padded(cluster: Cluster, n_features: int, noise: float) -> Cluster:
    """Add features that say nothing of the clusters."""

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        X = cluster(rng, n)
        return np.hstack([X, rng.normal(0.0, noise, (n, n_features - X.shape[1]))])

    return draw


def roll(start: float, stop: float, turn: float = 0.0) -> Cluster:
    """Draw from a sheet that is rolled up around an axis, from one angle to the other in half turns.

    Its distance from the axis is the angle in radians; ``turn`` rotates the whole by degrees.
    """

    def draw(rng: np.random.RandomState, n: int) -> np.ndarray:
        angle = np.pi * np.sqrt(rng.uniform(start**2, stop**2, size=n))
        disc = angle[:, None] * on_circle(np.degrees(angle) + turn)
        return np.column_stack([disc[:, 0], rng.uniform(0.0, 4.0, size=n), disc[:, 1]])

    return draw


def ring_in_space(centre: Point, axes: tuple[int, int]) -> Cluster:
    """Draw from a ring of radius 1 in space, in the plane of two of the three axes."""
    return curve(lambda t: centre + on_circle(360.0 * t) @ np.eye(3)[list(axes)], 0.05)


def on_circle(degrees: np.ndarray) -> np.ndarray:
    """Points of the unit circle."""
    angle = np.radians(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def lattice(side: int, n_features: int, step: float) -> list[np.ndarray]:
    """All points of a square grid or a cube, ``side`` along each axis."""
    return [step * np.array(place) for place in product(range(side), repeat=n_features)]


def _path(points: Sequence[Point] | np.ndarray) -> Cluster:
    corners = np.array(points, dtype=np.float64)
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    at = np.append(0.0, np.cumsum(lengths)) / lengths.sum()
    return curve(lambda t: np.column_stack([np.interp(t, at, column) for column in corners.T]), 0.05)


def _directions(rng: np.random.RandomState, n: int, n_features: int) -> np.ndarray:
    X = rng.standard_normal((n, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _rotation(degrees: float) -> np.ndarray:
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[cosine, sine], [-sine, cosine]])
