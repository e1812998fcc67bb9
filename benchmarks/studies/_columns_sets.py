"""The data sets of the study ``columns`` by kind: their raw rows and classes."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.halves import TUNING, half_of
from benchmarks.protocol import Data, load_once
from benchmarks.run import Options
from benchmarks.studies._columns_made import MIXED_NAMES, UNIT_NAMES, made_table
from benchmarks.studies._sets import SHAPE_ROWS
from mmcnb.datasets import SHAPES, make_shape

MIXED, UNITS, REAL, ONE, SHAPE, METRES = KINDS = (
    "numbers, flags, text",
    "numbers with units",
    "real tables",
    "one unit",
    "shapes",
    "metres",
)
WINE = "wine"
SPECTRA = "spectra"
VALLEY = "valley"
TABLES = (
    "australian",
    "breast",
    "clean1",
    "dermatology",
    "echocardiogram",
    "faults",
    "german",
    "haberman",
    "heart",
    "house-votes",
    "ionosphere",
    "iris",
    "letter",
    "liver",
    "magic",
    "new-thyroid",
    "ringnorm",
    "segment",
    "shuttle-test",
    "spambase",
    "spectf",
    "svmguide1",
    "vowel",
    "waveform",
    "wdbc",
    WINE,
)
ONE_UNIT = (
    "mnist",
    "mnist-3v8",
    "mnist-1v7",
    "optdigits",
    "pendigits",
    "usps",
    "satellite",
    "satellite-1v2",
    "coil20",
    "yale",
    "pixraw10p",
    "cnae9",
    "agnews-embedded",
    "tweet-embedded",
    "search-snippets-embedded",
    "mecs",
    "allaml",
    "leukemia",
    "glioma",
    "lymphoma",
    "nci9",
    *(f"{SPECTRA}-{number}" for number in range(1, 5)),
)
FLAT = tuple(
    name for name in SHAPES if make_shape(name, 60, random_state=0)[0].shape[1] == 2
)
STRETCHED = (
    "two-moons",
    "three-bars",
    "seven-blobs",
    "two-rings",
    "smiley",
    "three-densities",
)
SMOKE = (
    "customers-5",
    "soils-1",
    "wdbc",
    "satellite-1v2",
    "two-moons",
    "metres two-moons",
)
MOST_ROWS = 4000
# CORNER is east and north, in metres; RANGES are in metres.
CORNER = (691_000.0, 5_334_000.0)
RANGES = (300.0, 5000.0)
# Villages: their number and spreads, and the smallest gap in units of the larger
# spread.
VILLAGES = (3, 6)
VILLAGE_METRES = (90.0, 140.0)
VILLAGE_GAP = 4.5
BANDS = 7
WAVES = 200
DRIFT = 0.3


class Set(NamedTuple):
    """Rows to cluster without their classes.

    Parameters
    ----------
    name : str
        Name in the tables.
    source : str
        Data set, shape or synthetic table.
    kind : str
        One of `KINDS`.
    """

    name: str
    source: str
    kind: str

    @property
    def half(self) -> str:
        """The half of the source."""
        return half_of(self.source)


def sets() -> list[Set]:
    """Return all data sets; data sets of the same kind are adjacent.

    Examples
    --------
    >>> from benchmarks.studies._columns_sets import sets
    >>> len({data_set.name for data_set in sets()}) == len(sets()) >= 120
    True
    """
    valleys = tuple(f"{VALLEY}-{number}" for number in range(1, 5))
    sources_of = {
        MIXED: MIXED_NAMES,
        UNITS: UNIT_NAMES,
        REAL: TABLES,
        ONE: ONE_UNIT,
        SHAPE: FLAT,
        METRES: STRETCHED + valleys,
    }
    every = []
    for kind, sources in sources_of.items():
        for source in sources:
            name = f"metres {source}" if kind == METRES else source
            every.append(Set(name, source, kind))
    return every


def sets_of(options: Options) -> list[Set]:
    """Return the data sets of a scale: all, the tuning half, or a few."""
    every = sets()
    quick = [data_set for data_set in every if data_set.half == TUNING]
    smoke = [data_set for data_set in every if data_set.name in SMOKE]
    return options.pick(every, quick, smoke)


@lru_cache(maxsize=2)
def rows_of(data_set: Set, most: int, seed: int) -> Data:
    """Return the raw rows of a data set, and its classes from 0.

    Synthetic data sets are generated again for each seed. The last two results are
    cached.
    """
    source = data_set.source
    few = min(most, SHAPE_ROWS)
    if data_set.kind in (MIXED, UNITS):
        X, y = made_table(source, most, seed)
    elif source in SHAPES:
        X, y = make_shape(source, few, random_state=seed)
        X = np.asarray(X, np.float64)
        if data_set.kind == METRES:
            X = CORNER + RANGES * (X - X.min(axis=0)) / np.ptp(X, axis=0)
    elif source.startswith(SPECTRA):
        X, y = spectra(int(source[-1]), few, seed)
    elif source.startswith(VALLEY):
        X, y = valley(int(source[-1]), few, seed)
    elif source == WINE:
        from sklearn.datasets import load_wine

        X, y = load_wine(return_X_y=True)
        X = X[:most]
        y = y[:most]
    else:
        loaded = load_once(source, most)
        X = loaded.X
        y = np.unique(loaded.y, return_inverse=True)[1]
    return Data(data_set.name, X, y)


def valley(number: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw round villages along a narrow valley, in metres.

    Both columns have the same unit.
    """
    plan = np.random.default_rng(number)
    draw = np.random.default_rng([number, seed])
    k = int(plan.integers(VILLAGES[0], VILLAGES[1] + 1))
    spreads = plan.uniform(*VILLAGE_METRES, k)
    gaps = VILLAGE_GAP * np.maximum(spreads[1:], spreads[:-1])
    east = plan.uniform(0, RANGES[0], k)
    north = np.concatenate([[0.0], gaps.cumsum()])
    centres = np.column_stack([east, north])
    y = draw.integers(k, size=rows)
    offsets = spreads[y, None] * draw.standard_normal((rows, 2))
    return CORNER + centres[y] + offsets, y


def spectra(number: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw absorbance at many wavelengths, with bands, a drift, and noise.

    The heights of the bands depend on the class.
    """
    plan = np.random.default_rng([1, number])
    draw = np.random.default_rng([1, number, seed])
    k = number + 1
    waves = np.linspace(0, 1, WAVES)
    middles = plan.random((BANDS, 1))
    widths = plan.uniform(0.02, 0.08, (BANDS, 1))
    bands = np.exp(-(((waves - middles) / widths) ** 2))
    heights = plan.lognormal(0, 0.5, (k, BANDS))
    y = draw.integers(k, size=rows)
    drift = DRIFT * draw.random((rows, 1)) * waves
    noise = 0.02 * draw.standard_normal((rows, WAVES))
    amounts = heights[y] * draw.lognormal(0, 0.2, (rows, BANDS))
    return amounts @ bands + (drift + noise), y


def numbers_of(X: Any) -> Any:
    """Return rows as numbers.

    In a frame, text becomes columns of 0 and 1, and dates become seconds since 1970.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._columns_sets import numbers_of
    >>> since = pd.to_datetime(["1970-01-02", "1970-01-01"])
    >>> numbers_of(pd.DataFrame({"plan": ["a", "b"], "since": since}))
    array([[8.64e+04, 1.00e+00, 0.00e+00],
           [0.00e+00, 0.00e+00, 1.00e+00]])
    """
    if not isinstance(X, pd.DataFrame):
        return X
    return pd.get_dummies(with_seconds(X)).to_numpy(np.float64)


def with_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame in which dates are replaced by seconds since 1970.

    In these tables, dates depend on the class. In most tables, dates only say when a
    row was recorded, so mmcnb leaves them out.
    """
    seconds = {}
    for name, dates in frame.select_dtypes("datetime").items():
        seconds[name] = (dates - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
    return frame.assign(**seconds)
