"""Synthetic tables of the study ``columns``: numbers with units, flags, texts and dates.

Each class has a position in each informative column, which is next to the positions of
other classes. No single column therefore separates the classes, but several together
do. A few columns are noise.
"""

from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd

LONG = "long tail"
COUNT = "count"
PLAIN = "number"
ANSWER = "answer"
FLAG = "flag"
TEXT = "text"
DATE = "date"
TODAY = pd.Timestamp("2025-06-30")
# Distance between adjacent classes, in standard deviations of a class.
STEP = (1.4, 1.8)
# PREFERENCE: share of a class with its own value. FLAG_PREFERENCE: how far the share is
# from a half.
PREFERENCE = 0.6
FLAG_PREFERENCE = 0.35


class Column(NamedTuple):
    """How a column is drawn.

    Parameters
    ----------
    kind : str
        One of the kinds defined above.
    middle : float or sequence of str, default=0.0
        Median of the column in its unit, number of days before today, or its values.
    spread : float, default=1.0
        Standard deviation within a class; for a column with a long tail, of the
        logarithm.
    """

    kind: str
    middle: Any = 0.0
    spread: float = 1.0


REGIONS = ("north", "east", "south", "west", "centre", "coast")
MIXED_FAMILIES = {
    "customers": {
        "income_eur": Column(LONG, 38_000, 0.3),
        "age_years": Column(PLAIN, 47, 5),
        "orders": Column(COUNT, 9, 0.45),
        "basket_eur": Column(LONG, 62, 0.5),
        "days_since_order": Column(LONG, 40, 0.6),
        "newsletter": Column(FLAG),
        "returns_goods": Column(FLAG),
        "plan": Column(TEXT, ("free", "basic", "plus", "business")),
        "region": Column(TEXT, REGIONS),
        "joined": Column(DATE, 700, 0.5),
    },
    "sensors": {
        "temperature_c": Column(PLAIN, 61, 4),
        "pressure_hpa": Column(PLAIN, 1013, 12),
        "vibration_um": Column(LONG, 14, 0.5),
        "current_ma": Column(LONG, 850, 0.3),
        "runtime_h": Column(LONG, 4200, 0.6),
        "alarms": Column(COUNT, 3, 0.5),
        "heater_on": Column(FLAG),
        "door_open": Column(FLAG),
        "on_battery": Column(FLAG),
        "model": Column(TEXT, ("A2", "B1", "B7")),
        "site": Column(TEXT, ("hall 1", "hall 2", "yard", "roof", "cellar")),
    },
    "sessions": {
        "pages": Column(COUNT, 8, 0.4),
        "seconds": Column(LONG, 210, 0.6),
        "kilobytes": Column(LONG, 3400, 0.5),
        "clicks": Column(COUNT, 14, 0.45),
        "latency_ms": Column(LONG, 180, 0.35),
        "scrolled_percent": Column(PLAIN, 55, 5),
        "returning": Column(FLAG),
        "phone": Column(FLAG),
        "browser": Column(TEXT, ("Chrome", "Firefox", "Safari", "Edge")),
        "source": Column(
            TEXT, ("search", "mail", "link", "social", "typed", "advert", "app", "feed")
        ),
        "started": Column(DATE, 20, 0.8),
    },
    "surveys": {
        "trusts": Column(ANSWER),
        "satisfied": Column(ANSWER),
        "recommends": Column(ANSWER),
        "age_years": Column(PLAIN, 44, 5),
        "rent_eur": Column(LONG, 780, 0.3),
        "commute_minutes": Column(LONG, 26, 0.5),
        "visits": Column(COUNT, 5, 0.5),
        "smokes": Column(FLAG),
        "owns_home": Column(FLAG),
        "education": Column(TEXT, ("none", "school", "trade", "college", "doctorate")),
        "works": Column(TEXT, ("yes", "no")),
    },
}
UNIT_FAMILIES = {
    "engines": {
        "power_kw": Column(LONG, 90, 0.3),
        "mass_kg": Column(LONG, 1350, 0.2),
        "price_eur": Column(LONG, 24_000, 0.4),
        "bore_mm": Column(PLAIN, 82, 2.5),
        "compression": Column(PLAIN, 10.5, 0.5),
        "co2_g_km": Column(PLAIN, 140, 9),
        "service_km": Column(LONG, 18_000, 0.6),
        "faults": Column(COUNT, 4, 0.5),
    },
    "soils": {
        "ph": Column(PLAIN, 6.4, 0.25),
        "depth_m": Column(LONG, 1.1, 0.4),
        "lead_ppm": Column(LONG, 28, 0.6),
        "nitrogen_percent": Column(LONG, 0.18, 0.3),
        "conductivity_us_cm": Column(LONG, 310, 0.5),
        "height_m": Column(PLAIN, 420, 35),
        "worms": Column(COUNT, 12, 0.4),
    },
    "patients": {
        "age_years": Column(PLAIN, 51, 4),
        "platelets_ul": Column(LONG, 240_000, 0.2),
        "crp_mg_l": Column(LONG, 6, 0.8),
        "ferritin_ng_ml": Column(LONG, 110, 0.6),
        "systolic_mmhg": Column(PLAIN, 128, 7),
        "sodium_mmol_l": Column(PLAIN, 140, 1.5),
        "bilirubin_mg_dl": Column(LONG, 0.7, 0.4),
        "visits": Column(COUNT, 5, 0.5),
    },
    "shops": {
        "sales_eur": Column(LONG, 310_000, 0.5),
        "area_m2": Column(LONG, 420, 0.4),
        "staff": Column(COUNT, 9, 0.4),
        "visitors_day": Column(COUNT, 260, 0.4),
        "basket_eur": Column(LONG, 31, 0.3),
        "margin_percent": Column(PLAIN, 24, 2),
        "distance_km": Column(LONG, 3.5, 0.6),
    },
}
FAMILIES = MIXED_FAMILIES | UNIT_FAMILIES
MIXED_NAMES = tuple(
    f"{family}-{number}" for family in MIXED_FAMILIES for number in range(1, 8)
)
UNIT_NAMES = tuple(
    f"{family}-{number}" for family in UNIT_FAMILIES for number in range(1, 5)
)
# LEAST_SHARE is the smallest share of the largest class.
CLUSTERS = (2, 6)
ROWS = (600, 2000)
LEAST_SHARE = 0.35


def made_table(
    name: str, rows: int | None = None, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw a table of a family.

    The name determines the classes and their positions; the name and the seed determine
    the rows.

    Parameters
    ----------
    name : str
        One of `MIXED_NAMES` or `UNIT_NAMES`.
    rows : int or None, default=None
        Largest number of rows.
    seed : int, default=0
        Seed of the rows.

    Returns
    -------
    frame : DataFrame
        One column for each `Column` of the family.
    y : ndarray of shape (n,), dtype int64
        The classes from 0.

    Examples
    --------
    >>> from benchmarks.studies._columns_made import made_table
    >>> frame, y = made_table("customers-1", 5)
    >>> frame.shape, frame["newsletter"].dtype, len(y)
    ((5, 10), dtype('bool'), 5)
    """
    digits = crc32(name.encode())
    plan = np.random.default_rng([digits])
    draw = np.random.default_rng([digits, seed])
    family, _, number = name.rpartition("-")
    columns = FAMILIES[family]
    least, most = CLUSTERS
    place = list(FAMILIES).index(family) + int(number)
    k = least + place % (most - least + 1)
    n = min(int(plan.integers(ROWS[0], ROWS[1] + 1)), rows or ROWS[1])
    shares = plan.uniform(LEAST_SHARE, 1, k)
    y = draw.choice(k, n, p=shares / shares.sum())
    n_noise = int(plan.integers(1, len(columns) // 4 + 1))
    noise = plan.choice(list(columns), n_noise, replace=False)
    values = {}
    for title, column in columns.items():
        order = plan.permutation(k)
        step = plan.uniform(*STEP)
        places = step * (order - (k - 1) / 2)
        if title in noise:
            places = np.zeros(k)
        values[title] = _drawn(column, places, y, plan, draw)
    return pd.DataFrame(values), y


def _drawn(
    column: Column,
    places: np.ndarray,
    y: np.ndarray,
    plan: np.random.Generator,
    draw: np.random.Generator,
) -> Any:
    """Draw the values of a column.

    Each class has a position in the column, in standard deviations, or all classes have
    the same position.
    """
    kind, middle, spread = column
    if kind == FLAG:
        chance = 0.5 + FLAG_PREFERENCE * np.sign(places)
        return draw.random(y.size) < chance[y]
    if kind == TEXT:
        return _drawn_text(np.array(middle), places, y, plan, draw)
    z = places[y] + draw.standard_normal(y.size)
    if kind == ANSWER:
        return np.clip(np.rint(3 + spread * z), 1, 5).astype(int)
    if kind == PLAIN:
        return np.round(middle + spread * z, 2)
    long = middle * np.exp(spread * z)
    if kind == COUNT:
        return draw.poisson(long)
    if kind == DATE:
        return (TODAY - pd.to_timedelta(long, unit="D")).floor("s")
    return np.round(long, 3)


def _drawn_text(
    words: np.ndarray,
    places: np.ndarray,
    y: np.ndarray,
    plan: np.random.Generator,
    draw: np.random.Generator,
) -> np.ndarray:
    """Draw words; each class prefers one of them, unless all classes have the same position."""
    chances = plan.dirichlet(np.full(len(words), 3.0))
    preferred = np.argsort(np.argsort(places)) % len(words)
    certain = np.eye(len(words))[preferred]
    preference = PREFERENCE if places.any() else 0.0
    chances = chances + preference * (certain - chances)
    below = chances.cumsum(axis=1)[y, :-1]
    word = (draw.random((y.size, 1)) > below).sum(axis=1)
    return words[word]
