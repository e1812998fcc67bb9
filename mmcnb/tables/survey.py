"""Count how many texts of a column are numbers, dates, times or flags.

Texts are counted by shape, in which 9 replaces each digit, so that a small number of
counts describes a whole column. The counts do not depend on how the rows are split into
parts.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.tables.arrow import TEXT
from mmcnb.tables.dates import (
    DATE,
    TIME,
    TWO_UNITS,
    largest_fields,
    largest_hour,
    shapes_of_dates,
)
from mmcnb.tables.numbers import (
    FLAG,
    LOOSE_BODY,
    NOTHING,
    cell_pattern,
    parts_of_numbers,
)
from mmcnb.tables.orders import MOST_TEXTS

MOST_WAITING = 20_000  # number of shapes that are collected before they are classified
MOST_SHAPES = 1000  # a column with more shapes contains neither numbers nor dates
LOOSE_NUMBER = cell_pattern(LOOSE_BODY)
INFINITE = r"(?i)^[-+]?inf(?:inity)?$"
BETWEEN = pa.scalar("\x1f", TEXT)  # separates the unit and the digits of a number


class Shapes(dict[str, int]):
    """Counts of cells by shape, with the first cell of each shape."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        # Number of cells of all shapes, including shapes beyond the limit.
        self.total = 0

    @property
    def are_too_many(self) -> bool:
        """Whether there are more shapes than the limit."""
        return len(self) > MOST_SHAPES

    def n_cells(self, shapes: Iterable[str]) -> int:
        """Return the number of cells with any of the given shapes."""
        return sum(self[shape] for shape in shapes)

    def add(self, shapes: pa.Array, texts: pa.Array, counts: pa.Array) -> None:
        """Add distinct texts, given the shape and the number of cells of each text."""
        self.total += pc.sum(counts).as_py() or 0
        if self.are_too_many or not len(texts):
            return
        table = pa.table({"shape": shapes, "text": texts, "count": counts})
        for row in _by_shape(table).to_pylist():
            shape = row["shape"]
            self[shape] = self.get(shape, 0) + row["count_sum"]
            self.first.setdefault(shape, row["text_first"])


class Survey:
    """Counts of the texts of a column by kind and shape.

    Parameters
    ----------
    marks : pyarrow.Array
        Markers of missing values in a column of numbers.
    has_categories : bool, default=False
        Whether the texts are stored as categories. Categories are never read as numbers
        or dates, so only their texts are counted.

    Attributes
    ----------
    numbers : Shapes
        Counts of numbers. A shape consists of the unit and the digits, such as ``$``
        and ``9,999.99``.
    dates : Shapes
        Counts of dates.
    n_short_times, n_minute_times, n_long_times : int
        Number of times such as 9:30, of times such as 9:30.5, and of times that contain
        more numbers or words.
    n_clocks : int
        Number of times with a two-digit hour, or with am or pm.
    largest_hour : int
        Largest number before the first colon of a time.
    n_flags, n_infinite, n_others : int
        Number of cells that are flags, infinite numbers, or of an unknown kind.
    n_zero_led : int
        Number of cells that consist of digits and begin with 0, like codes.
    others : list of str
        The first three texts of an unknown kind.
    texts : dict of str to int
        Number of cells with each text, including markers; empty if there are more than
        100 distinct texts.
    marks : dict of str to int
        Number of cells with each marker. In a column of numbers these cells are missing
        values, and in a text column they are categories.
    largest_first, largest_second : int
        Maxima of the first and of the second number in dates such as 24/11/2024.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.survey import Survey
    >>> survey = Survey(pa.array(["none"], pa.large_string()))
    >>> survey.add(pa.array(["$1,250.00", "$7.50", "none"], pa.large_string()))
    >>> survey.settle()
    >>> {shape.replace(chr(31), ""): count for shape, count in survey.numbers.items()}
    {'$9,999.99': 1, '$9.99': 1}
    >>> survey.marks, survey.n_cells
    ({'none': 1}, 2)
    """

    def __init__(self, marks: pa.Array, has_categories: bool = False) -> None:
        self.has_categories = has_categories
        self._marks_to_count = marks
        self._waiting: list[pa.Table] = []
        self.numbers = Shapes()
        self.dates = Shapes()
        self.n_short_times = 0
        self.n_minute_times = 0
        self.n_long_times = 0
        self.n_clocks = 0
        self.largest_hour = 0
        self.n_flags = 0
        self.n_others = 0
        self.n_zero_led = 0
        self.n_infinite = 0
        self.others: list[str] = []
        self.texts: dict[str, int] = {}
        self._are_texts_few = True
        self.marks: dict[str, int] = {}
        self.largest_first = 0
        self.largest_second = 0

    @property
    def n_cells(self) -> int:
        """Number of cells that have a value and are not markers."""
        return (
            self.numbers.total
            + self.dates.total
            + self.n_times
            + self.n_flags
            + self.n_infinite
            + self.n_others
        )

    @property
    def n_times(self) -> int:
        """Number of times of day and durations."""
        return self.n_short_times + self.n_minute_times + self.n_long_times

    def add(self, texts: pa.Array) -> None:
        """Count the next texts.

        Parameters
        ----------
        texts : pyarrow.Array
            Texts without surrounding spaces, with null for missing values.
        """
        counted = pc.value_counts(texts.drop_null())
        values = counted.field("values").cast(TEXT)
        counts = counted.field("counts")
        self._count_texts(counted)
        if self.has_categories:
            return
        is_mark = pc.is_in(values, self._marks_to_count)
        for mark in counted.filter(is_mark).to_pylist():
            self.marks[mark["values"]] = (
                self.marks.get(mark["values"], 0) + mark["counts"]
            )
        left = _Left(values, values, counts).without(is_mark)
        is_code = pc.match_substring_regex(left.texts, r"^0\d+$")
        self.n_zero_led += left.count(is_code)
        is_like_date = pc.match_substring_regex(left.texts, r"^\d\d?[-/.]\d\d?[-/.]\d")
        dates = left.of(is_like_date)
        if len(dates.texts):
            dates = dates.of(pc.match_substring_regex(dates.texts, DATE))
            first, second = largest_fields(dates.texts)
            self.largest_first = max(self.largest_first, first)
            self.largest_second = max(self.largest_second, second)
        clocks = left.of(pc.match_substring(left.texts, ":"))
        if len(clocks.texts):
            self.largest_hour = max(self.largest_hour, largest_hour(clocks.texts))
        self._waiting.append(left.by_shape())
        if sum(map(len, self._waiting)) > MOST_WAITING:
            self.settle()

    def _count_texts(self, counted: pa.StructArray) -> None:
        """Count the cells with each text while there are at most 100 distinct texts."""
        if not self._are_texts_few or len(counted) > MOST_TEXTS:
            self._are_texts_few = False
            self.texts = {}
            return
        for text in counted.to_pylist():
            value = text["values"]
            self.texts[value] = self.texts.get(value, 0) + text["counts"]
        self._are_texts_few = len(self.texts) <= MOST_TEXTS

    def settle(self) -> None:
        """Classify the texts added since the last call.

        Regular expressions are slow, so they are applied to shapes, which are far fewer
        than the texts.
        """
        if not self._waiting:
            return
        waiting = pa.concat_tables(self._waiting)
        self._waiting = []
        left = _Left.of_shapes(waiting)
        left = self._take_dates(left)
        left = self._take_times(left)
        left = self._take_numbers(left)
        for pattern, name in ((FLAG, "n_flags"), (INFINITE, "n_infinite")):
            is_match = pc.match_substring_regex(left.shapes, pattern)
            setattr(self, name, getattr(self, name) + left.count(is_match))
            left = left.without(is_match)
        self.n_others += pc.sum(left.counts).as_py() or 0
        if len(self.others) < 3:
            examples = [*self.others, *left.texts[:3].to_pylist()]
            self.others = list(dict.fromkeys(examples))[:3]

    def _take_dates(self, left: "_Left") -> "_Left":
        is_date = pc.match_substring_regex(left.shapes, DATE)
        dates = left.of(is_date)
        if len(dates.texts):
            self.dates.add(shapes_of_dates(dates.shapes), dates.texts, dates.counts)
        return left.without(is_date)

    def _take_times(self, left: "_Left") -> "_Left":
        is_clock = pc.match_substring_regex(left.shapes, TIME)
        is_spoken = pc.match_substring_regex(left.shapes, TWO_UNITS)
        clock = left.of(is_clock)
        is_short = pc.match_substring_regex(
            clock.shapes, r"^-?\d+:\d\d(?: ?[AaPp].*)?$"
        )
        is_minute = pc.match_substring_regex(clock.shapes, r"^-?\d+:\d\d[.,]\d+$")
        self.n_short_times += clock.count(is_short)
        self.n_minute_times += clock.count(is_minute)
        self.n_long_times += clock.count(pc.invert(pc.or_(is_short, is_minute)))
        self.n_long_times += left.count(is_spoken)
        is_half = pc.match_substring_regex(clock.shapes, r"(?i)^\d+:[\d:.,]* ?[ap]\.?m")
        is_padded = pc.match_substring_regex(
            clock.shapes, r"^\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?$"
        )
        self.n_clocks += clock.count(pc.or_(is_half, is_padded))
        return left.without(pc.or_(is_clock, is_spoken))

    def _take_numbers(self, left: "_Left") -> "_Left":
        parts = parts_of_numbers(left.shapes, LOOSE_NUMBER)
        is_number = parts.body.is_valid()
        numbers = left.of(is_number)
        if len(numbers.texts):
            # Runs of more than five digits are shortened to five, which reduces the
            # number of shapes.
            digits = pc.replace_substring_regex(parts.body.drop_null(), r"\d", "9")
            digits = pc.replace_substring_regex(digits, "9{5,}", "99999")
            shapes = pc.binary_join_element_wise(
                parts.unit.filter(is_number), BETWEEN, digits, NOTHING
            )
            self.numbers.add(shapes, numbers.texts, numbers.counts)
        return left.without(is_number)


class _Left:
    """Texts that are not classified yet, grouped by shape.

    For each shape, the first text and the number of cells are stored.
    """

    def __init__(self, shapes: pa.Array, texts: pa.Array, counts: pa.Array) -> None:
        self.shapes = shapes
        self.texts = texts
        self.counts = counts

    @classmethod
    def of_shapes(cls, table: pa.Table) -> "_Left":
        """Return the texts of a table, with the rows of each shape merged into one."""
        grouped = _by_shape(table).combine_chunks()
        columns = (grouped["shape"], grouped["text_first"], grouped["count_sum"])
        return cls(*(column.combine_chunks() for column in columns))

    def by_shape(self) -> pa.Table:
        """Return a table with the first text and the number of cells of each shape."""
        shapes = shapes_of_texts(self.texts)
        table = pa.table({"shape": shapes, "text": self.texts, "count": self.counts})
        return _by_shape(table).rename_columns(
            {"text_first": "text", "count_sum": "count"}
        )

    def of(self, mask: pa.Array) -> "_Left":
        """Return the texts that a mask selects."""
        return _Left(
            self.shapes.filter(mask), self.texts.filter(mask), self.counts.filter(mask)
        )

    def without(self, mask: pa.Array) -> "_Left":
        """Return the texts that a mask does not select."""
        return self.of(pc.invert(mask))

    def count(self, mask: pa.Array) -> int:
        """Return the number of cells that a mask selects."""
        return pc.sum(self.counts.filter(mask)).as_py() or 0


def _by_shape(table: pa.Table) -> pa.Table:
    """Return a table with the first text and the sum of counts of each shape."""
    return table.group_by("shape", use_threads=False).aggregate(
        [("text", "first"), ("count", "sum")]
    )


def shapes_of_texts(texts: pa.Array) -> pa.Array:
    """Replace each digit in texts with 9, except digits after a letter, as in m2.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.survey import shapes_of_texts
    >>> texts = pa.array(["$1,250.00", "34 m2", "2024-11-28"], pa.large_string())
    >>> shapes_of_texts(texts).to_pylist()
    ['$9,999.99', '99 m2', '9999-99-99']
    """
    texts = pa.concat_arrays([texts])  # a copy with buffers that begin at offset 0
    is_null, offsets, content = texts.buffers()
    if content is None:
        return texts
    codes = np.frombuffer(content, np.uint8)
    is_letter = (codes | 32) - ord("a") < 26  # uint8 wraps around below "a"
    follows_letter = np.zeros(codes.size + 1, bool)
    follows_letter[1:] = is_letter | (codes == ord("^"))
    starts = np.frombuffer(offsets, np.int64, len(texts))
    follows_letter[starts] = False
    is_digit = (codes - ord("0") < 10) & ~follows_letter[:-1]
    shapes = np.where(is_digit, np.uint8(ord("9")), codes)
    buffers = [is_null, offsets, pa.py_buffer(shapes)]
    return pa.Array.from_buffers(TEXT, len(texts), buffers)
