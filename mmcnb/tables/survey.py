"""What the texts of a column look like: how many are numbers, dates, times or flags.

Texts are counted by their shape, with 9 for each digit, so that few counts tell how a
whole column is written. They do not depend on the parts in which rows come.
"""

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.tables.arrow import TEXT
from mmcnb.tables.dates import (
    DATE,
    TIME,
    TWO_UNITS,
    largest_fields,
    shapes_of_dates,
)
from mmcnb.tables.numbers import (
    FLAG,
    LOOSE_BODY,
    NOTHING,
    cell_pattern,
    parts_of_numbers,
)

MOST_SHAPES = 1000  # a column of more is no column of numbers or dates
LOOSE_NUMBER = cell_pattern(LOOSE_BODY)
INFINITE = r"(?i)^[-+]?inf(?:inity)?$"
BETWEEN = pa.scalar("\x1f", TEXT)  # between the unit and the digits of a number


class Shapes(dict[str, int]):
    """Counts of cells by their shape, with the first cell of each shape."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}

    @property
    def total(self) -> int:
        """Number of cells of all shapes."""
        return sum(self.values())

    @property
    def are_too_many(self) -> bool:
        """Whether there are more shapes than are counted."""
        return len(self) > MOST_SHAPES

    def add(self, shapes: pa.Array, texts: pa.Array, counts: pa.Array) -> None:
        """Add texts, each with its shape and the number of cells that have it."""
        if self.are_too_many or not len(texts):
            return
        table = pa.table({"shape": shapes, "text": texts, "count": counts})
        grouped = table.group_by("shape", use_threads=False).aggregate(
            [("count", "sum"), ("text", "first")]
        )
        for row in grouped.to_pylist():
            shape = row["shape"]
            self[shape] = self.get(shape, 0) + row["count_sum"]
            self.first.setdefault(shape, row["text_first"])


class Survey:
    """Counts of the texts of a column, by what they look like.

    Attributes
    ----------
    numbers : Shapes
        A shape is a unit and the digits, such as ``$`` and ``9,999.99``.
    dates : Shapes
    n_short_times, n_long_times, n_spoken_times : int
        Times of two numbers, of three or with days, and with words.
    n_flags, n_others : int
    n_zero_led : int
        Digits without a decimal point that begin with 0, as codes do.
    others : list of str
        First three texts of no kind.
    marks : dict of str to int
        Cells that are gaps among numbers and texts among others.
    largest_first, largest_second : int
        Largest first and second number of dates such as 24/11/2024.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.survey import Survey
    >>> survey = Survey(pa.array(["none"], pa.large_string()))
    >>> survey.add(pa.array(["$1,250.00", "$7.50", "none"], pa.large_string()))
    >>> {shape.replace(chr(31), ""): count for shape, count in survey.numbers.items()}
    {'$9,999.99': 1, '$9.99': 1}
    >>> survey.marks, survey.n_cells
    ({'none': 1}, 2)
    """

    def __init__(self, marks: pa.Array) -> None:
        self._marks_to_count = marks
        self.numbers = Shapes()
        self.dates = Shapes()
        self.n_short_times = 0
        self.n_minute_times = 0
        self.n_long_times = 0
        self.n_flags = 0
        self.n_others = 0
        self.n_zero_led = 0
        self.n_infinite = 0
        self.others: list[str] = []
        self.marks: dict[str, int] = {}
        self.largest_first = 0
        self.largest_second = 0

    @property
    def n_cells(self) -> int:
        """Number of cells that have a value, if the column has numbers."""
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
        """Count the next texts, which have no spaces around them; null is a gap."""
        counted = pc.value_counts(texts.drop_null())
        values = counted.field("values").cast(TEXT)
        counts = counted.field("counts")
        is_mark = pc.is_in(values, self._marks_to_count)
        for mark in counted.filter(is_mark).to_pylist():
            self.marks[mark["values"]] = (
                self.marks.get(mark["values"], 0) + mark["counts"]
            )
        left = _Left(values, counts).without(is_mark)
        left = self._take_dates(left)
        left = self._take_times(left)
        left = self._take_numbers(left)
        for pattern, name in ((FLAG, "n_flags"), (INFINITE, "n_infinite")):
            is_match = pc.match_substring_regex(left.texts, pattern)
            setattr(self, name, getattr(self, name) + left.count(is_match))
            left = left.without(is_match)
        self.n_others += pc.sum(left.counts).as_py() or 0
        if len(self.others) < 3:
            examples = [*self.others, *left.texts[:3].to_pylist()]
            self.others = list(dict.fromkeys(examples))[:3]

    def _take_dates(self, left: "_Left") -> "_Left":
        is_date = pc.match_substring_regex(left.texts, DATE)
        dates = left.of(is_date)
        if len(dates.texts):
            self.dates.add(shapes_of_dates(dates.texts), dates.texts, dates.counts)
            first, second = largest_fields(dates.texts)
            self.largest_first = max(self.largest_first, first)
            self.largest_second = max(self.largest_second, second)
        return left.without(is_date)

    def _take_times(self, left: "_Left") -> "_Left":
        is_clock = pc.match_substring_regex(left.texts, TIME)
        is_spoken = pc.match_substring_regex(left.texts, TWO_UNITS)
        clock = left.of(is_clock)
        is_short = pc.match_substring_regex(clock.texts, r"^-?\d+:\d\d(?: ?[AaPp].*)?$")
        is_minute = pc.match_substring_regex(clock.texts, r"^-?\d+:\d\d[.,]\d+$")
        self.n_short_times += clock.count(is_short)
        self.n_minute_times += clock.count(is_minute)
        self.n_long_times += clock.count(pc.invert(pc.or_(is_short, is_minute)))
        self.n_long_times += left.count(is_spoken)
        return left.without(pc.or_(is_clock, is_spoken))

    def _take_numbers(self, left: "_Left") -> "_Left":
        parts = parts_of_numbers(left.texts, LOOSE_NUMBER)
        is_number = parts.body.is_valid()
        numbers = left.of(is_number)
        if len(numbers.texts):
            # Five digits stand for more.
            digits = pc.replace_substring_regex(parts.body.drop_null(), r"\d", "9")
            digits = pc.replace_substring_regex(digits, "9{5,}", "99999")
            shapes = pc.binary_join_element_wise(
                parts.unit.filter(is_number), BETWEEN, digits, NOTHING
            )
            self.numbers.add(shapes, numbers.texts, numbers.counts)
            is_code = pc.match_substring_regex(numbers.texts, r"^0\d+$")
            self.n_zero_led += numbers.count(is_code)
        return left.without(is_number)


class _Left:
    """Different texts that no kind has taken yet, and how many cells have each."""

    def __init__(self, texts: pa.Array, counts: pa.Array) -> None:
        self.texts = texts
        self.counts = counts

    def of(self, mask: pa.Array) -> "_Left":
        """Return the texts that a mask takes."""
        return _Left(self.texts.filter(mask), self.counts.filter(mask))

    def without(self, mask: pa.Array) -> "_Left":
        """Return the texts that a mask leaves."""
        return self.of(pc.invert(mask))

    def count(self, mask: pa.Array) -> int:
        """Return the number of cells that a mask takes."""
        return pc.sum(self.counts.filter(mask)).as_py() or 0
