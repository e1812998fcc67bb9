"""The sets of the study of columns, by kind: raw rows, their classes, and their columns as numbers."""

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
# east and north, in metres
CORNER = (691_000.0, 5_334_000.0)
RANGES = (300.0, 5000.0)
# spreads; the least gap in the larger one
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
        For the tables.
    source : str
        Data set, shape or made table.
    kind : str
        One of `KINDS`.
    """

    name: str
    source: str
    kind: str

    @property
    def half(self) -> str:
        """The half of its source."""
        return half_of(self.source)


def sets() -> list[Set]:
    """All sets, those of a kind together.

    Examples
    --------
    >>> from benchmarks.studies._columns_sets import sets
    >>> len({one.name for one in sets()}) == len(sets()) >= 120
    True
    """
    valleys = tuple(f"{VALLEY}-{number}" for number in range(1, 5))
    sources = zip(
        KINDS,
        (MIXED_NAMES, UNIT_NAMES, TABLES, ONE_UNIT, FLAT, STRETCHED + valleys),
        strict=True,
    )
    return [
        Set(f"metres {source}" if kind == METRES else source, source, kind)
        for kind, names in sources
        for source in names
    ]


def sets_of(options: Options) -> list[Set]:
    """The sets of a scale: all, those for tuning, or a few."""
    quick = [one for one in sets() if one.half == TUNING]
    return options.pick(sets(), quick, [one for one in sets() if one.name in SMOKE])


@lru_cache(maxsize=2)
def rows_of(one: Set, most: int, seed: int) -> Data:
    """Raw rows of a set, and classes from 0; what is made is made anew for each seed."""
    if one.kind in (MIXED, UNITS):
        return Data(one.name, *made_table(one.source, most, seed))
    if one.source in SHAPES:
        X, y = make_shape(one.source, min(most, SHAPE_ROWS), random_state=seed)
        X = np.asarray(X, np.float64)
        stretched = CORNER + RANGES * (X - X.min(axis=0)) / np.ptp(X, axis=0)
        return Data(one.name, stretched if one.kind == METRES else X, y)
    if one.source.startswith((SPECTRA, VALLEY)):
        make = spectra if one.source.startswith(SPECTRA) else valley
        return Data(one.name, *make(int(one.source[-1]), min(most, SHAPE_ROWS), seed))
    if one.source == WINE:
        from sklearn.datasets import load_wine

        X, y = load_wine(return_X_y=True)
        return Data(one.name, X[:most], y[:most])
    whole = load_once(one.source, most)
    return Data(one.name, whole.X, np.unique(whole.y, return_inverse=True)[1])


def valley(number: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Round villages along a narrow valley, in metres: distances mean the same in both columns."""
    plan = np.random.default_rng(number)
    draw = np.random.default_rng([number, seed])
    k = int(plan.integers(VILLAGES[0], VILLAGES[1] + 1))
    spreads = plan.uniform(*VILLAGE_METRES, k)
    gaps = VILLAGE_GAP * np.maximum(spreads[1:], spreads[:-1])
    centres = np.c_[
        plan.uniform(0, RANGES[0], k), np.concatenate([[0.0], gaps.cumsum()])
    ]
    y = draw.integers(k, size=rows)
    return CORNER + centres[y] + spreads[y, None] * draw.standard_normal((rows, 2)), y


def spectra(number: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Absorbance at many wavelengths: bands whose heights tell the class, a drift, and noise."""
    plan = np.random.default_rng([1, number])
    draw = np.random.default_rng([1, number, seed])
    k = number + 1
    waves = np.linspace(0, 1, WAVES)
    bands = np.exp(
        -(
            ((waves - plan.random((BANDS, 1))) / plan.uniform(0.02, 0.08, (BANDS, 1)))
            ** 2
        )
    )
    heights = plan.lognormal(0, 0.5, (k, BANDS))
    y = draw.integers(k, size=rows)
    drift = DRIFT * draw.random((rows, 1)) * waves + 0.02 * draw.standard_normal(
        (rows, WAVES)
    )
    return heights[y] * draw.lognormal(0, 0.2, (rows, BANDS)) @ bands + drift, y


def numbers_of(X: Any) -> Any:
    """Rows as numbers: of a frame text becomes columns of 0 and 1, and dates become seconds since 1970.

    Examples
    --------
    >>> import pandas as pd
    >>> from benchmarks.studies._columns_sets import numbers_of
    >>> numbers_of(pd.DataFrame({"plan": ["a", "b"], "since": pd.to_datetime(["1970-01-02", "1970-01-01"])}))
    array([[8.64e+04, 1.00e+00, 0.00e+00],
           [0.00e+00, 0.00e+00, 1.00e+00]])
    """
    if not isinstance(X, pd.DataFrame):
        return X
    dates = X.select_dtypes("datetime")
    seconds = {
        name: (dates[name] - pd.Timestamp(0)) / pd.Timedelta(seconds=1)
        for name in dates
    }
    return pd.get_dummies(X.assign(**seconds)).to_numpy(np.float64)
