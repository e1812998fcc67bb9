"""Conditions on the user's columns, with thresholds that have few digits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mmcnb.explanation.sentences import DAY, grouped_digits, short_name
from mmcnb.explanation.summary import column_frame
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Matrix, to_dense

# Units of dates and steps of times, from coarse to fine. A threshold is a multiple of
# the coarsest unit or step that has a multiple within the bounds of the threshold.
DATE_UNITS = ("Y", "M", "D", "h", "m", "s")
SECONDS = (DAY, 3600.0, 600.0, 60.0, 10.0, 1.0)
MOST_DIGITS = 17  # number of significant digits that identify any float64
# Kinds of columns that contain only 0 and 1. Their threshold is always 0.5.
BINARY = ("text", "flag", "binary")


@dataclass(frozen=True)
class Column:
    """A column of the user's data to which a condition can apply.

    Attributes
    ----------
    name : str or int
        Name of the column, or its zero-based index if it has no name.
    kind : {"number", "binary", "flag", "text", "order", "date", "time", "clock"}
        Kind of the values. A "binary" column contains the numbers 0 and 1, a "flag"
        contains false and true, and a "clock" contains times of day in seconds. For
        "text", each category is a separate `Column`.
    places : tuple of int
        Indices of the features of the column in the rows. A clock has two features,
        the sine and the cosine of its angle; other columns have one.
    category : str
        Category of a text column; "" for missing values and for other kinds.
    unit : str
        Unit of the values; "" if they have no unit.
    levels : tuple of str
        Texts of an ordered column, from lowest to highest; empty for other columns.
    """

    name: str | int
    kind: str
    places: tuple[int, ...]
    category: str = ""
    unit: str = ""
    levels: tuple[str, ...] = ()

    def values_of(self, rows: Matrix) -> np.ndarray:
        """Return the value of the column in each row, with NaN for missing values."""
        values = to_dense(rows[:, list(self.places)], np.float64)
        if self.kind != "clock":
            return values[:, 0]
        turns = np.arctan2(values[:, 0], values[:, 1]) / (2 * np.pi)
        # Round to seconds, because the sine and the cosine may be float32.
        return np.round(turns % 1 * DAY) % DAY

    def texts_of(self, values: Iterable[float]) -> list[str]:
        """Return values as texts, in the format of the column and with its unit."""
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
        """Return a threshold t with few digits such that low <= t < high.

        If several numbers have the fewest digits, the one nearest to ``near`` is
        returned. For columns with levels, ``near`` itself is returned.
        """
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
    """Return a list with the `Column` that each feature of the rows belongs to.

    A clock column has two features, sine and cosine; the entry of the second is None.
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
    """A comparison of a column with a value, in machine-readable form."""

    column: str | int
    operator: str
    value: Any


@dataclass(frozen=True)
class Condition:
    """A condition on a column: low < value <= high, or that the value is missing.

    If ``low`` is larger than ``high``, as for the hours of a night, the condition is
    that value > low or value <= high.

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
        """Number of bounds, where a test for missing values counts as one bound.

        The number is 0 for a condition that all values meet.
        """
        return self.is_missing + int(self.low > -np.inf) + int(self.high < np.inf)

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Return a boolean mask of the values that meet the condition."""
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
        """Return a bound as a number or, for dates and times, as text."""
        if self.column.kind in ("date", "time", "clock"):
            return self.column.texts_of([bound])[0]
        return bound

    def _category(self) -> Any:
        """Return the category or value that the condition requires of a binary column.

        The kind of such a column is "text", "flag" or "binary".
        """
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
        """Return the condition as text, such as "3 < orders <= 12"."""
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

    If several numbers have the fewest digits, the number nearest to ``near`` is
    returned.

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
    """Return a time t, low <= t < high, at which a year, month, day and so on begins.

    The beginning of a year is preferred to that of a month, the beginning of a month to
    that of a day, and so on.
    """
    for unit in DATE_UNITS:
        date = np.datetime64(int(np.floor(low)), "s").astype(f"M8[{unit}]")
        for candidate in (date, date + 1):
            value = float(candidate.astype("M8[s]").astype(np.int64))
            if low <= value < high:
                return value
    return low


def _dates(values: list[float]) -> list[str]:
    """Format dates, and include times unless all dates are at midnight."""
    texts = [str(pd.Timestamp(round(value * 1e6), unit="us")) for value in values]
    if all(text.endswith(" 00:00:00") for text in texts):
        texts = [text.removesuffix(" 00:00:00") for text in texts]
    return texts


def _clock(seconds: float) -> str:
    """Format a time of day in seconds as hh:mm or hh:mm:ss."""
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
