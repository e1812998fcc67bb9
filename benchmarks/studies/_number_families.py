"""Families of synthetic data sets for the number of clusters: curves, maps, groups, and clouds.

A data set is generated again for each seed. Clouds have no clusters, and therefore one
class.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import NamedTuple
from zlib import crc32

import numpy as np

from benchmarks.halves import half_of
from benchmarks.protocol import Data
from benchmarks.studies._number_made import centres_apart
from mmcnb.datasets import SHAPES, make_shape

Random = np.random.Generator
Rows = tuple[np.ndarray, np.ndarray]

CURVES = "curves"
ONE_CURVE = "one curve"
SHAPES_LARGE = "shapes, 8,000 rows"
SHAPES_SMALL = "shapes, 1,000 rows"
SHAPES_HUGE = "shapes, 20,000 rows"
PLACES = "places on a map"
UNEVEN = "blobs of uneven spread"
OVERLAPPING = "overlapping Gaussians and blobs"
TOUCHING = "ring of Gaussians"
GROUPS = "Gaussian groups"
CORRELATED = "correlated clouds"
SPECTRA = "correlated clouds, other spectra"
FLAT = "clouds in 2 and 3 columns"
STRETCHED = "stretched and skewed clouds"
NOISE_KINDS = (CORRELATED, SPECTRA, FLAT, STRETCHED)


class MadeSet(NamedTuple):
    """A data set that is generated from a seed.

    Parameters
    ----------
    family : str
        Family of the data set.
    name : str
        Name in the tables, which also determines the half.
    n_rows : int
        Number of rows.
    make : callable
        Function of a random number generator that returns rows and classes.
    """

    family: str
    name: str
    n_rows: int
    make: Callable[[Random], Rows]

    @property
    def half(self) -> str:
        """The half of the name."""
        return half_of(self.name)

    def data(self, seed: int) -> Data:
        """Generate the data set; its name and the seed determine the rows.

        Examples
        --------
        >>> from benchmarks.studies._number_families import all_sets
        >>> all_sets()[0].data(0).X.shape
        (1000, 2)
        """
        random = np.random.default_rng([crc32(self.name.encode()), seed])
        X, y = self.make(random)
        order = random.permutation(len(y))
        return Data(self.name, X[order].astype(np.float32), y[order])


# -- curves ----------------------------------------------------------------------------


def moons(random: Random, n: int, noise: float = 0.08) -> Rows:
    """Draw two interleaved half circles."""
    y = np.arange(n) % 2
    angle = np.pi * random.random(n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    rows = np.where(y[:, None] == 0, upper, lower)
    return rows + noise * random.standard_normal((n, 2)), y


def circles(random: Random, n: int, radii: tuple[float, ...] = (0.5, 1.0)) -> Rows:
    """Draw concentric circles."""
    y = np.arange(n) % len(radii)
    angle = 2 * np.pi * random.random(n)
    radius = np.array(radii)[y] + 0.05 * random.standard_normal(n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def spirals(random: Random, n: int, arms: int = 2) -> Rows:
    """Draw the arms of a spiral, rotated against each other."""
    y = np.arange(n) % arms
    along = np.sqrt(random.uniform(0.06, 1.0, n))
    angle = 3.0 * np.pi * along + 2 * np.pi * y / arms
    rows = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return rows + 0.015 * random.standard_normal((n, 2)), y


def helices(random: Random, n: int) -> Rows:
    """Draw the two strands of a double helix."""
    y = np.arange(n) % 2
    angle = 4 * np.pi * random.random(n)
    turned = angle + np.pi * y
    rows = np.column_stack([np.cos(turned), np.sin(turned), angle / 4])
    return rows + 0.08 * random.standard_normal((n, 3)), y


def waves(random: Random, n: int) -> Rows:
    """Draw three waves, one above another."""
    y = np.arange(n) % 3
    along = 4 * np.pi * random.random(n)
    rows = np.column_stack([along / 3, np.sin(along) / 2 + y])
    return rows + 0.08 * random.standard_normal((n, 2)), y


def arc(random: Random, n: int) -> Rows:
    """Draw one half circle."""
    angle = np.pi * random.random(n)
    rows = np.column_stack([np.cos(angle), np.sin(angle)])
    return rows + 0.08 * random.standard_normal((n, 2)), np.zeros(n, np.int64)


def sheet(random: Random, n: int) -> Rows:
    """Draw one S-shaped sheet in space."""
    angle = 3 * np.pi * (random.random(n) - 0.5)
    height = np.sign(angle) * (np.cos(angle) - 1)
    rows = np.column_stack([np.sin(angle), 2 * random.random(n), height])
    return rows + 0.05 * random.standard_normal((n, 3)), np.zeros(n, np.int64)


# -- groups ----------------------------------------------------------------------------


def places(random: Random, n: int, k: int) -> Rows:
    """Draw towns on a map, whose sizes fall as 1/rank, and points scattered between them.

    3 % of the points are scattered; each of them has the class of the nearest town.
    """
    centres = centres_apart(random, k, 2, 0.9, 3.0)
    sizes = 1 / np.arange(1, k + 1)
    y = random.choice(k, n, p=sizes / sizes.sum())
    widths = 0.12 * random.uniform(0.6, 1.4, k)
    rows = centres[y] + widths[y, None] * random.standard_normal((n, 2))
    scattered = random.random(n) < 0.03
    low = centres.min(axis=0) - 1
    high = centres.max(axis=0) + 1
    rows[scattered] = random.uniform(low, high, (np.count_nonzero(scattered), 2))
    to_centres = ((rows[scattered, None] - centres) ** 2).sum(axis=2)
    y[scattered] = to_centres.argmin(axis=1)
    return rows, y


def uneven_blobs(random: Random, n: int, columns: int, k: int = 8) -> Rows:
    """Draw blobs whose spreads differ by a factor of up to eight."""
    spreads = 2.0 ** random.uniform(-2, 1, k)
    y = np.arange(n) % k
    centres = 6.0 * random.standard_normal((k, columns))
    return centres[y] + spreads[y, None] * random.standard_normal((n, columns)), y


def overlapping(random: Random, n: int, distance: float) -> Rows:
    """Draw five Gaussians in the plane with a minimum distance in standard deviations."""
    centres = centres_apart(random, 5, 2, distance, distance)
    y = np.arange(n) % 5
    return centres[y] + random.standard_normal((n, 2)), y


def blobs_in_box(random: Random, n: int, k: int, columns: int) -> Rows:
    """Draw Gaussian blobs around uniform centres; some of them overlap."""
    centres = random.uniform(-10, 10, (k, columns))
    y = np.arange(n) % k
    spread = 1.0 if columns == 2 else 2.5
    return centres[y] + spread * random.standard_normal((n, columns)), y


def ring_of_gaussians(random: Random, n: int, distance: float) -> Rows:
    """Draw eight Gaussians in a ring, at a given distance in standard deviations."""
    y = np.arange(n) % 8
    angle = 2 * np.pi * y / 8
    radius = distance / (2 * np.sin(np.pi / 8))
    rows = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return rows + random.standard_normal((n, 2)), y


def gaussian_groups(random: Random, n: int, columns: int, distance: float) -> Rows:
    """Draw five groups with the same correlations and uneven sizes."""
    sizes = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
    y = random.choice(5, n, p=sizes)
    mixing = random.standard_normal((columns, columns)) / columns**0.5
    directions = random.standard_normal((5, columns))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    centres = distance * directions / lengths
    return centres[y] + random.standard_normal((n, columns)) @ mixing, y


# -- clouds without clusters -----------------------------------------------------------


def whole(rows: np.ndarray) -> Rows:
    """Return rows that all have the same class."""
    return rows, np.zeros(len(rows), np.int64)


def correlated(
    random: Random, n: int, columns: int, power: float, freedom: float | None
) -> Rows:
    """Draw one cloud whose axes have the lengths ``i ** -power``, in a random orientation."""
    rows = random.standard_normal((n, columns))
    if freedom is not None:
        rows /= np.sqrt(random.chisquare(freedom, (n, 1)) / freedom)
    lengths = np.arange(1.0, columns + 1) ** -power
    turn = np.linalg.qr(random.standard_normal((columns, columns)))[0]
    return whole((rows * lengths) @ turn)


def decaying(random: Random, n: int, columns: int, share: float) -> Rows:
    """Draw one cloud whose first few axes have a given share of the variance."""
    few = max(2, columns // 10)
    variances = np.full(columns, (1 - share) / (columns - few))
    variances[:few] = share / few
    turn = np.linalg.qr(random.standard_normal((columns, columns)))[0]
    return whole((random.standard_normal((n, columns)) * variances**0.5) @ turn)


FLAT_CLOUDS: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "uniform": lambda random, shape: random.random(shape),
    "Student": lambda random, shape: random.standard_t(4, shape),
    "exponential": lambda random, shape: random.exponential(size=shape),
}
SKEWED_CLOUDS: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "stretched": lambda random, shape: (
        random.standard_normal(shape) * [5, 1] @ np.array([[0.8, -0.6], [0.6, 0.8]])
    ),
    "uniform": lambda random, shape: random.random(shape),
    "Student, 3 degrees": lambda random, shape: random.standard_t(3, shape),
    "exponential": lambda random, shape: random.exponential(size=shape),
    "log-normal": lambda random, shape: random.lognormal(size=shape),
    "normal": lambda random, shape: random.standard_normal(shape),
}


# -- all sets --------------------------------------------------------------------------


def all_sets() -> list[MadeSet]:
    """Return all synthetic data sets, family by family."""
    return [*_curves(), *_shapes(), *_groups(), *_clouds()]


def _curves() -> list[MadeSet]:
    made = []
    sizes = (1000, 2000, 3000, 5000, 8000, 12_000, 20_000)
    for n in sizes:
        made.append(MadeSet(CURVES, f"moons, {n}", n, partial(moons, n=n)))
        made.append(MadeSet(CURVES, f"circles, {n}", n, partial(circles, n=n)))
        made.append(MadeSet(CURVES, f"spirals, {n}", n, partial(spirals, n=n)))
        made.append(MadeSet(CURVES, f"helices, {n}", n, partial(helices, n=n)))
    for n in (2000, 6000, 15_000):
        made.append(MadeSet(CURVES, f"waves, {n}", n, partial(waves, n=n)))
    for n in (6000, 15_000):
        three = partial(spirals, n=n, arms=3)
        made.append(MadeSet(CURVES, f"three spirals, {n}", n, three))
    for n in (5000, 20_000):
        made.append(MadeSet(ONE_CURVE, f"arc, {n}", n, partial(arc, n=n)))
        made.append(MadeSet(ONE_CURVE, f"sheet, {n}", n, partial(sheet, n=n)))
    return made


def _shapes() -> list[MadeSet]:
    families = {SHAPES_SMALL: 1000, SHAPES_LARGE: 8000, SHAPES_HUGE: 20_000}
    made = []
    for (family, n), name in product(families.items(), SHAPES):
        made.append(MadeSet(family, name, n, partial(_shape, name=name, n=n)))
    return made


def _shape(random: Random, name: str, n: int) -> Rows:
    return make_shape(name, n, random_state=int(random.integers(2**31)))


def _groups() -> list[MadeSet]:
    made = []
    for k, n in product((8, 15, 30, 45, 60), (3000, 8000, 20_000)):
        towns = partial(places, n=n, k=k)
        made.append(MadeSet(PLACES, f"{k} places, {n}", n, towns))
    for columns, n in product((2, 5, 10), (1000, 3000, 8000, 20_000)):
        blobs = partial(uneven_blobs, n=n, columns=columns)
        made.append(MadeSet(UNEVEN, f"uneven blobs, {n} x {columns}", n, blobs))
    for distance, n in product((3.0, 3.5, 4.0), (1000, 3000, 10_000, 20_000)):
        five = partial(overlapping, n=n, distance=distance)
        name = f"five Gaussians {distance:g} apart, {n}"
        made.append(MadeSet(OVERLAPPING, name, n, five))
    for (k, columns), n in product(
        ((10, 2), (15, 2), (15, 3), (8, 5), (15, 8)), (2000, 10_000)
    ):
        blobs = partial(blobs_in_box, n=n, k=k, columns=columns)
        name = f"{k} blobs in a box, {n} x {columns}"
        made.append(MadeSet(OVERLAPPING, name, n, blobs))
    for distance, n in product((3.0, 4.0, 5.0), (2000, 6000, 15_000)):
        ring = partial(ring_of_gaussians, n=n, distance=distance)
        name = f"eight Gaussians in a ring {distance:g} apart, {n}"
        made.append(MadeSet(TOUCHING, name, n, ring))
    for (columns, distance), n in product(
        ((4, 3.0), (4, 5.0), (10, 4.0), (10, 6.0), (30, 4.0), (50, 4.0), (50, 6.0)),
        (1000, 5000),
    ):
        groups = partial(gaussian_groups, n=n, columns=columns, distance=distance)
        name = f"groups {distance:g} apart, {n} x {columns}"
        made.append(MadeSet(GROUPS, name, n, groups))
    return made


def _clouds() -> list[MadeSet]:
    made = []
    for power, columns, n, freedom in product(
        (0.5, 1.0, 2.0), (10, 30, 100), (2000, 10_000), (None, 5)
    ):
        if columns == 30 and n == 10_000:
            continue
        cloud = partial(correlated, n=n, columns=columns, power=power, freedom=freedom)
        tails = "normal" if freedom is None else f"t {freedom}"
        name = f"{tails}, i^-{power:g}, {n} x {columns}"
        made.append(MadeSet(CORRELATED, name, n, cloud))
    for share, columns, n in product((0.5, 0.8, 0.95), (8, 20, 50, 200), (1000, 6000)):
        cloud = partial(decaying, n=n, columns=columns, share=share)
        name = f"{share:.0%} in few axes, {n} x {columns}"
        made.append(MadeSet(SPECTRA, name, n, cloud))
    for kind, columns, n in product(
        FLAT_CLOUDS, (2, 3), (500, 1000, 2000, 5000, 8000, 12_000, 20_000)
    ):
        shape = n, columns
        cloud = partial(_cloud, draw=FLAT_CLOUDS[kind], shape=shape)
        made.append(MadeSet(FLAT, f"{kind}, {n} x {columns}", n, cloud))
    for kind, n in product(SKEWED_CLOUDS, (2000, 6000, 20_000)):
        cloud = partial(_cloud, draw=SKEWED_CLOUDS[kind], shape=(n, 2))
        made.append(MadeSet(STRETCHED, f"{kind} cloud, {n}", n, cloud))
    for n in (2000, 6000, 20_000):
        cloud = partial(_cloud, draw=FLAT_CLOUDS["normal"], shape=(n, 3))
        made.append(MadeSet(STRETCHED, f"normal cloud, {n} x 3", n, cloud))
    return made


def _cloud(
    random: Random,
    draw: Callable[[Random, tuple[int, int]], np.ndarray],
    shape: tuple[int, int],
) -> Rows:
    return whole(draw(random, shape))
