"""Conditions on columns in the names and units of the user, with short thresholds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mmcnb.explanation.sentences import DAY, grouped_digits, short_name
from mmcnb.explanation.summary import column_frame
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Matrix, to_dense

# Thresholds are rounded to a multiple of the coarsest step with one between the bounds.
DATE_UNITS = ("Y", "M", "D", "h", "m", "s")
SECONDS = (DAY, 3600.0, 600.0, 60.0, 10.0, 1.0)
MOST_DIGITS = 17  # number of digits that identify a float64
# Kinds of columns that contain only 0 and 1, for which the threshold is 0.5.
BINARY = ("text", "flag", "binary")


@dataclass(frozen=True)
class Column:
    """A column of the user's table that can have a condition.

    Attributes
    ----------
    name : str or int
        Name of the column, or its number if it has no name.
    kind : {"number", "binary", "flag", "text", "order", "date", "time", "clock"}
        A "binary" column contains the numbers 0 and 1, a "flag" is false or true, and a
        "clock" is a time of day in seconds. For "text", there is a column for each
        category.
    places : tuple of int
        Indices of the column in the rows. A clock has two indices, for its sine and
        cosine.
    category : str
        The category of a text column, or "".
    unit : str
        Unit of the numbers, or "".
    levels : tuple of str
        The texts of an ordered column, from lowest to highest.
    """

    name: str | int
    kind: str
    places: tuple[int, ...]
    category: str = ""
    unit: str = ""
    levels: tuple[str, ...] = ()

    def values_of(self, rows: Matrix) -> np.ndarray:
        """Return the value in each row, with NaN for missing values."""
        values = to_dense(rows[:, list(self.places)], np.float64)
        if self.kind != "clock":
            return values[:, 0]
        turns = np.arctan2(values[:, 0], values[:, 1]) / (2 * np.pi)
        # Round to seconds, because the sine and the cosine may be float32.
        return np.round(turns % 1 * DAY) % DAY

    def texts_of(self, values: Iterable[float]) -> list[str]:
        """Return values as texts in the format and unit of the column."""
        if self.kind == "date":
            return _dates(list(values))
        return [self._text_of(value) for value in values]

    def _text_of(self, value: float) -> str:
        if self.kind == "clock":
            return _clock(value)
        if self.kind == "time":
            return _duration(value)
        text = grouped_digits(value, 12)
        return f"{text} {self.unit}" if self.unit else text

    def threshold(self, low: float, high: float, near: float) -> float:
        """Return the shortest t with low <= t < high, if possible near ``near``."""
        if self.kind in BINARY:
            return 0.5
        if self.levels:
            return near
        if self.kind == "date":
            return _short_date(low, high)
        if self.kind in ("time", "clock"):
            for step in SECONDS:
                value = float(np.ceil(low / step) * step)
                if value < high:
                    return value
        return short_number(low, high, near)


def columns_of(samples: Samples) -> list[Column | None]:
    """Return the user's column for each column of the rows.

    The list contains None for the second of the two columns of a clock.
    """
    columns: list[Column | None] = []
    names = column_frame(samples).itertuples(index=False)
    units = _units(samples)
    for place, (name, kind, category) in enumerate(names):
        if kind == "time" and category == "cos":
            columns.append(None)
            continue
        is_clock = kind == "time" and category == "sin"
        columns.append(
            Column(
                name=name,
                kind="clock" if is_clock else kind,
                places=(place, place + 1) if is_clock else (place,),
                category=category,
                unit=units.get(str(name), ""),
                levels=tuple(samples.orders.get(str(name), ())),
            )
        )
    return columns


def _units(samples: Samples) -> dict[str, str]:
    """Return the units of the columns of a table, by column name."""
    if samples.encoding is None:
        return {}
    features = samples.encoding.features
    return {column.name: column.form.unit for column in features if column.form}


class Term(NamedTuple):
    """One term of a condition, in machine-readable form."""

    column: str | int
    operator: str
    value: Any


@dataclass(frozen=True)
class Condition:
    """A condition on a column: low < value <= high, or a missing value.

    If ``low`` is larger than ``high``, for example for hours of the night, the
    condition is value > low or value <= high.

    Examples
    --------
    >>> from mmcnb.explanation.conditions import Column, Condition
    >>> orders = Column("orders", "number", (0,))
    >>> print(Condition(orders, low=12.0))
    orders > 12
    >>> print(Condition(orders, 3.0, 12.0))
    3 < orders <= 12
    """

    column: Column
    low: float = -np.inf
    high: float = np.inf
    is_missing: bool = False

    @property
    def n_bounds(self) -> int:
        """Number of bounds, or 0 if all values meet the condition."""
        return self.is_missing + int(self.low > -np.inf) + int(self.high < np.inf)

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Return which values meet the condition."""
        if self.is_missing:
            return np.isnan(values)
        if self.n_bounds == 0:
            return np.ones(values.size, bool)
        is_above = values > self.low
        is_below = values <= self.high
        return is_above | is_below if self.low > self.high else is_above & is_below

    def terms(self) -> Iterator[Term]:
        """Yield the terms of the condition in machine-readable form."""
        name = self.column.name
        if self.is_missing:
            yield Term(name, "is", "missing")
        elif self.column.kind in BINARY:
            yield Term(name, "=", self._category())
        elif self.column.levels:
            yield Term(name, "in", self._levels())
        elif self.low > self.high:
            yield Term(name, "outside", self.column.texts_of(self._bounds()))
        else:
            bounds = {">": self.low, "<=": self.high}
            for operator, bound in bounds.items():
                if np.isfinite(bound):
                    yield Term(name, operator, self._value(bound))

    def _bounds(self) -> list[float]:
        return sorted(bound for bound in (self.low, self.high) if np.isfinite(bound))

    def _value(self, bound: float) -> Any:
        """Return a bound as a number, or as text for dates and times."""
        if self.column.kind in ("date", "time", "clock"):
            return self.column.texts_of([bound])[0]
        return bound

    def _category(self) -> Any:
        """Return the category of a text, or the value of a flag."""
        column = self.column
        if column.kind == "text":
            return column.category or "missing"
        is_set = self.low > -np.inf
        return is_set if column.kind == "flag" else int(is_set)

    def _levels(self) -> list[str]:
        """Return the levels of an ordered column that meet the condition."""
        levels = self.column.levels
        met = self.holds(np.arange(len(levels), dtype=float))
        return [text for text, is_met in zip(levels, met, strict=True) if is_met]

    def __str__(self) -> str:
        """Return the condition in words."""
        name = short_name(self.column.name)
        if self.is_missing:
            return f"{name} is missing"
        if self.column.kind in BINARY:
            return self._equality(name)
        if self.column.levels:
            levels = [short_name(level) for level in self._levels()]
            if len(levels) > 2:
                return f"{name} from {levels[0]} to {levels[-1]}"
            return f"{name} = {' or '.join(levels)}"
        return self._inequality(name)

    def _equality(self, name: str) -> str:
        category = self._category()
        if category == "missing" and not self.column.category:
            return f"{name} is missing"
        if isinstance(category, bool):
            return f"{name} = {str(category).lower()}"
        return f"{name} = {short_name(str(category))}"

    def _inequality(self, name: str) -> str:
        bounds = self._bounds()
        texts = self.column.texts_of(bounds)
        if self.low > self.high:
            return f"{name} > {texts[1]} or <= {texts[0]}"
        if len(bounds) == 2:
            return f"{texts[0]} < {name} <= {texts[1]}"
        return f"{name} {'>' if np.isfinite(self.low) else '<='} {texts[0]}"


def short_number(low: float, high: float, near: float) -> float:
    """Return the number t with the fewest digits that satisfies low <= t < high.

    If there are several such numbers, the one nearest to ``near`` is returned.

    Examples
    --------
    >>> from mmcnb.explanation.conditions import short_number
    >>> short_number(12.0, 13.0, 12.5), short_number(0.4987, 0.5012, 0.4987)
    (12.0, 0.5)
    """
    if low <= 0 < high:
        return 0.0
    largest = max(abs(low), abs(high))
    exponent = int(np.floor(np.log10(largest)))
    for power in range(exponent, exponent - MOST_DIGITS, -1):
        step = 10.0**power
        first = int(np.ceil(low / step))
        last = int(np.ceil(high / step)) - 1
        if first <= last:
            digits = min(max(round(near / step), first), last)
            value = float(f"{digits}e{power}")
            if low <= value < high:
                return value
    return low


def _short_date(low: float, high: float) -> float:
    """Return the start of a year, month, day, ... that satisfies low <= t < high."""
    for unit in DATE_UNITS:
        date = np.datetime64(int(np.floor(low)), "s").astype(f"M8[{unit}]")
        for candidate in (date, date + 1):
            value = float(candidate.astype("M8[s]").astype(np.int64))
            if low <= value < high:
                return value
    return low


def _dates(values: list[float]) -> list[str]:
    """Format dates, with times unless all of them are at the start of a day."""
    texts = [str(pd.Timestamp(round(value * 1e6), unit="us")) for value in values]
    if all(text.endswith(" 00:00:00") for text in texts):
        texts = [text.removesuffix(" 00:00:00") for text in texts]
    return texts


def _clock(seconds: float) -> str:
    """Format a time of day."""
    minutes, rest = divmod(seconds, 60)
    text = f"{int(minutes // 60):02d}:{int(minutes % 60):02d}"
    return f"{text}:{rest:02.0f}" if rest else text


def _duration(seconds: float) -> str:
    """Format a duration in days, hours, minutes and seconds."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    parts = {"d": days, "h": hours, "min": minutes, "s": float(f"{rest:.6g}")}
    texts = [f"{part:.12g} {unit}" for unit, part in parts.items() if part]
    return sign + (" ".join(texts) or "0 s")
