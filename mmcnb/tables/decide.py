"""Decide which kind of values the texts of a column represent.

The decision is based on a survey of all texts of the column. Numbers may have a unit, a
currency or a percent sign if at least 95 % of them have the same or a convertible unit.
The decisions of a fit are stored in its model, and new rows are read accordingly.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from mmcnb.errors import shown
from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import BOOL, FLOAT64, TEXT
from mmcnb.tables.dates import date_format
from mmcnb.tables.decimal_marks import has_certain_point
from mmcnb.tables.marks import (
    OF_TEXTS,
    mark_as_argument,
    marks_of_numbers,
    marks_of_texts,
    without_gaps,
)
from mmcnb.tables.numbers import FAMILIES, MAGNITUDES, body_pattern, compiled
from mmcnb.tables.options import TableOptions
from mmcnb.tables.orders import (
    LEAST_LEVELS,
    NUMBERED,
    Answers,
    answers_of,
    levels_with_texts,
)
from mmcnb.tables.survey import Shapes, Survey

# Maximum fraction of cells that may fail to parse; these cells count as missing.
MOST_WRONG = 0.02
ONE_WRONG = 20  # in a column with at least this many cells, one may fail to parse
LEAST_UNIT = 0.95  # minimum fraction of the numbers that must have the unit
LEAST_CODES = 0.01  # if this fraction of the cells has a leading zero, they are codes
LONGEST_MARK = 60  # maximum length of a marker that a message suggests
MOSTLY = 0.5  # a text column with at least this fraction of numbers is reported
# A digit is part of a unit only after a letter or "^", as in m2.
SECOND_NUMBER = re.compile(r"[^A-Za-z^]\d")
WHOLE_SHAPE = re.compile("\x1f9+$")
DOUBTFUL_DATES = "its dates may have the day or the month first"
# Decimal marks and thousands separators, the most likely first.
PLAIN_FORMAT = (".", "")
FORMATS = (
    PLAIN_FORMAT,
    (".", ","),
    (".", " "),
    (".", "'"),
    (",", ""),
    (",", "."),
    (",", " "),
    (",", "'"),
)


@dataclass(frozen=True)
class Decision:
    """The kind of values that the texts of a column represent, and the evidence.

    Attributes
    ----------
    form : CellForm
        Kind of the values, and how they are written.
    n_wrong : int
        Number of cells of a different kind.
    wrong : tuple of str
        Up to three examples of cells of a different kind.
    others : str
        What the remaining cells are, such as "numbers".
    doubt : str
        Why the column is text although it resembles another kind, or "".
    is_ambiguous : bool
        Whether a comma could be a decimal comma or a thousands separator.
    n_cells : int
        Number of cells that have a value.
    marks : tuple of str
        Texts of the column that would count as missing in a column of numbers, such as
        "none".
    answers : Answers or None
        The texts as answers on a scale; None if they do not belong to a known scale.
    """

    form: CellForm
    n_wrong: int = 0
    wrong: tuple[str, ...] = ()
    others: str = "numbers"
    doubt: str = ""
    is_ambiguous: bool = False
    n_cells: int = 0
    marks: tuple[str, ...] = ()
    answers: Answers | None = None

    @property
    def why_text(self) -> str:
        """Why the column is text although it resembles another kind, or ""."""
        if self.doubt:
            return self.doubt
        if not self.n_wrong:
            return ""
        examples = ", ".join(map(shown, self.wrong))
        why = f"{self.n_wrong:,} of its {self.n_cells:,} cells are not {self.others}"
        remedy = ""
        mark = self.wrong[0] if len(self.wrong) == 1 else ""
        if mark.isprintable() and 0 < len(mark) <= LONGEST_MARK:
            remedy = (
                f"; na_values=[{mark!r}] of mmcnb.read_table (--na-values "
                f"{mark_as_argument(mark)}) treats them as missing"
            )
        return f"{why} ({examples}){remedy}"


@dataclass(frozen=True)
class Units:
    """The unit of a column of numbers, and how to convert other units.

    Attributes
    ----------
    unit : str
        The most frequent unit, to which all numbers are converted; "" if there is no
        unit.
    factors : dict of str to float
        For each spelling of a unit that occurs, its size as a multiple of ``unit``.
    n_cells : int
        Number of cells that can be read with these units.
    """

    unit: str
    factors: dict[str, float]
    n_cells: int


def decide_forms(
    surveys: Mapping[int, Survey], options: TableOptions
) -> dict[int, Decision]:
    """Decide which kind of values the texts of each column represent.

    If a column certainly has decimal commas, commas in ambiguous columns are also read
    as decimal commas.

    Parameters
    ----------
    surveys : mapping of int to Survey
        Surveys of the columns, by column index.
    options : TableOptions
    """
    decisions = {}
    for position, survey in surveys.items():
        decisions[position] = decide_form(survey, options)
    commas = [decision.form.decimal == "," for decision in decisions.values()]
    if any(commas):
        for position, survey in surveys.items():
            if decisions[position].is_ambiguous:
                decisions[position] = decide_form(survey, options, True)
    return decisions | _with_whole_scales(decisions)


def _with_whole_scales(decisions: Mapping[int, Decision]) -> dict[int, Decision]:
    """Revise the decisions for columns with answers on known scales.

    All columns that share a scale get the levels that occur in any of these columns, so
    that an answer becomes the same number in all of them. A column with only two levels
    is text unless another column has at least three levels of the same scale.
    """
    shown: dict[str, dict[int, str]] = {}
    for decision in decisions.values():
        if decision.answers is None or decision.answers.scale == NUMBERED:
            continue
        if decision.form.kind == "order":
            texts = shown.setdefault(decision.answers.scale, {})
            shown[decision.answers.scale] = decision.answers.shown | texts
    decided = {}
    for position, decision in decisions.items():
        if decision.answers is not None and decision.answers.scale in shown:
            scale = decision.answers.scale
            decided[position] = _of_order(decision, shown[scale])
    return decided


def _of_order(decision: Decision, shown: Mapping[int, str]) -> Decision:
    """Return the decision to read a column of answers as an ordered column.

    ``shown`` contains the text of each level of the scale that occurs.
    """
    answers = decision.answers
    assert answers is not None
    form = CellForm(
        kind="order", levels=levels_with_texts(answers.scale, shown), by_keys=True
    )
    return replace(
        decision,
        form=form,
        n_wrong=sum(answers.no_answers.values()),
        wrong=tuple(answers.no_answers)[:3],
        doubt="",
        marks=(),
    )


def decide_form(
    survey: Survey, options: TableOptions, has_decimal_commas: bool = False
) -> Decision:
    """Decide which kind of values the texts of a column represent.

    Parameters
    ----------
    survey : Survey
        Survey of all cells of the column.
    options : TableOptions
    has_decimal_commas : bool, default=False
        Whether other columns of the table have decimal commas.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.decide import decide_form
    >>> from mmcnb.tables.options import TableOptions
    >>> from mmcnb.tables.survey import Survey
    >>> survey = Survey(pa.array([], pa.large_string()))
    >>> survey.add(pa.array(["1.250,00 €", "7,50 €"], pa.large_string()))
    >>> form = decide_form(survey, TableOptions()).form
    >>> form.kind, form.decimal, form.thousands, form.unit
    ('number', ',', '.', '€')
    """
    survey.settle()
    decision = _decide(survey, options, has_decimal_commas)
    marks = [mark for mark in survey.marks if mark not in OF_TEXTS]
    decision = replace(decision, n_cells=survey.n_cells, marks=tuple(marks))
    if options.categories != "auto":
        return decision
    answers = answers_of(survey.texts)
    decision = replace(decision, answers=answers)
    if answers is not None and len(answers.shown) >= LEAST_LEVELS:
        return _of_order(decision, answers.shown)
    return decision


def _decide(
    survey: Survey, options: TableOptions, has_decimal_commas: bool
) -> Decision:
    n_cells = survey.n_cells
    if n_cells == 0 or survey.has_categories:
        return Decision(CellForm("text"))
    if survey.n_zero_led >= max(1, LEAST_CODES * n_cells):
        return Decision(CellForm("text"), doubt="its numbers begin with 0, as codes do")
    n_allowed = wrong_cells_allowed(n_cells)
    if n_cells - survey.n_flags <= n_allowed:
        return _with_wrong(CellForm("flag"), survey, survey.n_flags, ())
    numbers = _decide_numbers(survey, options, has_decimal_commas, n_allowed)
    if numbers is not None:
        return numbers
    if n_cells - survey.dates.total <= n_allowed:
        return _decide_dates(survey, options)
    if n_cells - survey.n_times <= n_allowed:
        is_minutes = survey.n_long_times > 0 or survey.n_minute_times > 0
        is_clock = survey.n_clocks >= n_cells - n_allowed and survey.largest_hour < 24
        form = CellForm("time", is_minutes=is_minutes, is_clock=is_clock)
        return _with_wrong(form, survey, survey.n_times, ())
    return _decide_text(survey, options)


def wrong_cells_allowed(n_cells: int) -> int:
    """Return the maximum number of cells of a column that may fail to parse.

    Parameters
    ----------
    n_cells : int
        Number of cells that have a value.
    """
    least = 1 if n_cells >= ONE_WRONG else 0
    return max(least, int(MOST_WRONG * n_cells))


# --- numbers ---


def _decide_numbers(
    survey: Survey, options: TableOptions, has_decimal_commas: bool, n_allowed: int
) -> Decision | None:
    """Return the decision if nearly all cells are numbers in one format, or None."""
    if survey.numbers.are_too_many:
        return None
    n_least = survey.n_cells - n_allowed
    if survey.numbers.total + survey.n_infinite < n_least:
        return None
    passing = _formats_of_most(survey, options, n_least - survey.n_infinite)
    if not passing:
        return None
    commas = {(".", ","), (",", "")}
    chosen = next(iter(passing))
    is_plain = chosen == PLAIN_FORMAT
    is_ambiguous = commas <= passing.keys() and options.decimal == "." and not is_plain
    if is_ambiguous:
        chosen = (",", "") if has_decimal_commas else (".", ",")
    units = passing[chosen]
    form = CellForm(
        kind="number",
        decimal=chosen[0],
        thousands=chosen[1],
        unit=units.unit,
        factors=tuple(sorted(units.factors.items())),
    )
    good = set(_good_shapes(survey.numbers, *chosen))
    wrong = [
        survey.numbers.first[shape]
        for shape in survey.numbers
        if shape not in good or _unit_of(shape) not in {"", *units.factors}
    ]
    decision = _with_wrong(form, survey, units.n_cells + survey.n_infinite, wrong)
    return replace(decision, is_ambiguous=is_ambiguous)


def _formats_of_most(
    survey: Survey, options: TableOptions, n_least: int
) -> dict[tuple[str, str], Units]:
    """Return the number formats that match the most cells, with their units.

    The result is empty if these formats match fewer than ``n_least`` cells. Formats
    with a thousands separator are tried unless all numbers are plain, so that even a
    few cells such as 1,234 are read.
    """
    all_units: dict[tuple[str, str], Units] = {}
    for number_format in formats_to_try(options):
        units = _units(survey, *number_format)
        all_units[number_format] = units
        if number_format == PLAIN_FORMAT and units.n_cells == survey.numbers.total:
            break
    most = max(units.n_cells for units in all_units.values())
    if most < n_least:
        return {}
    return {
        number_format: units
        for number_format, units in all_units.items()
        if units.n_cells == most
    }


def formats_to_try(options: TableOptions) -> Iterator[tuple[str, str]]:
    """Yield pairs of a decimal mark and a thousands separator, most likely first."""
    if options.thousands is not None:
        yield options.decimal, ""
        yield options.decimal, options.thousands
        return
    for decimal, thousands in FORMATS:
        if options.decimal in (".", decimal):
            yield decimal, thousands


@lru_cache(maxsize=64)
def _body(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the compiled pattern for unsigned numbers in a format."""
    return compiled(body_pattern(decimal, thousands))


def _good_shapes(shapes: Shapes, decimal: str, thousands: str) -> list[str]:
    """Return the shapes of cells that contain a single number, in the given format."""
    body = _body(decimal, thousands)
    good = []
    for shape in shapes:
        unit, _, digits = shape.partition("\x1f")
        if body.fullmatch(digits) and not SECOND_NUMBER.search(unit):
            good.append(shape)
    return good


def _unit_of(shape: str) -> str:
    return shape.partition("\x1f")[0]


def _units(survey: Survey, decimal: str, thousands: str) -> Units:
    """Return the units of the numbers that have a given format."""
    counts: Counter[str] = Counter()
    for shape in _good_shapes(survey.numbers, decimal, thousands):
        counts[_unit_of(shape)] += survey.numbers[shape]
    n_bare = counts.pop("", 0)
    if not counts:
        return Units("", {}, n_bare)
    split = {unit: _split(unit, [*counts]) for unit in counts}
    cores: Counter[str] = Counter()
    for unit, n in counts.items():
        cores[split[unit][0]] += n
    named = sorted(filter(None, cores), key=lambda core: (-cores[core], core))
    main = named[0] if named else ""
    sizes = _sizes(main)
    factors = {}
    n_of_unit = 0
    for unit, (core, size) in split.items():
        if core in sizes:
            factors[unit] = size * sizes[core] / sizes[main]
            n_of_unit += counts[unit]
    n_all = survey.n_cells
    is_magnitude = main == ""
    if is_magnitude or n_of_unit >= LEAST_UNIT * (n_of_unit + n_bare):
        return Units(main, factors, n_of_unit + n_bare)
    # Cells with and without a unit may be different quantities, so they are not
    # combined.
    return Units("", {}, n_bare if n_bare >= LEAST_UNIT * n_all else 0)


def _split(unit: str, all_units: Sequence[str]) -> tuple[str, float]:
    """Split the text around a number into its unit and its magnitude.

    "k€" becomes ("€", 1000.0). An "m" stands for millions after a character that is not
    a letter, or if other numbers of the column are in thousands.
    """
    for word, size in MAGNITUDES.items():
        rest = unit.removesuffix(word).rstrip()
        if unit.endswith(word) and (
            not rest or not rest[-1].isalpha() or len(rest) == 3
        ):
            return rest, size
    is_million = unit[:-1] and not unit[-2].isalpha() and unit.endswith("m")
    if is_million or (unit == "m" and {"k", "K"} & {*all_units}):
        return unit[:-1].rstrip(), 1e6
    return unit, 1.0


def _sizes(unit: str) -> dict[str, float]:
    """Return the units that are convertible to ``unit``, with their relative sizes."""
    for family in FAMILIES:
        if unit in family:
            return family
    sizes = {unit: 1.0, unit.lower(): 1.0, unit.capitalize(): 1.0, unit.upper(): 1.0}
    # Singular and plural, as in "1 room" and "2 rooms".
    if len(unit) > 3 and unit.isalpha():
        singular = unit.removesuffix("s")
        sizes |= {singular: 1.0, f"{singular}s": 1.0}
    return sizes


# --- dates and texts ---


def _decide_dates(survey: Survey, options: TableOptions) -> Decision:
    shapes = sorted(survey.dates, key=lambda shape: -survey.dates[shape])
    order = _order_of_fields(survey, shapes, options)
    if order == "doubtful":
        return Decision(CellForm("text"), doubt=DOUBTFUL_DATES)
    formats = tuple(dict.fromkeys(date_format(shape, order) for shape in shapes))
    form = CellForm("date", formats=formats)
    return _with_wrong(form, survey, survey.dates.total, ())


def _order_of_fields(
    survey: Survey, shapes: Sequence[str], options: TableOptions
) -> str:
    """Return which field comes first in dates that end with the year.

    The result is "day", "month" or "doubtful", or "" if there are no such dates.
    """
    numeric = [shape for shape in shapes if re.match(r"9{1,2}[-/.]9{1,2}[-/.]9", shape)]
    if not numeric:
        return ""
    if options.order_of_dates:
        return options.order_of_dates
    if survey.largest_first > 12 >= survey.largest_second:
        return "day"
    if survey.largest_second > 12 >= survey.largest_first:
        return "month"
    # No country writes the month first in dates with points.
    if all(re.match(r"9{1,2}\.", shape) for shape in numeric):
        return "day"
    return "doubtful"


def _decide_text(survey: Survey, options: TableOptions) -> Decision:
    """Return the decision that a column is text.

    If at least half of the cells have another kind, the decision states why the column
    does not have this kind.
    """
    least = MOSTLY * survey.n_cells
    if not survey.numbers.are_too_many:
        numbers = _mostly_numbers(survey, options)
        if numbers is not None:
            return numbers
    for n_good, kind, others in (
        (survey.n_flags, "flag", "true or false"),
        (survey.dates.total, "date", "dates"),
        (survey.n_times, "time", "times"),
    ):
        if n_good >= least:
            decision = _with_wrong(CellForm(kind), survey, n_good, ())
            return replace(decision, form=CellForm("text"), others=others)
    return Decision(CellForm("text"))


def _mostly_numbers(survey: Survey, options: TableOptions) -> Decision | None:
    """Return a text decision that explains why a column is not read as numbers.

    The result is None if fewer than half of the cells are numbers.
    """
    least = MOSTLY * survey.n_cells
    shapes = survey.numbers
    best: list[str] = []
    measured: list[str] = []
    for decimal, thousands in formats_to_try(options):
        good = _good_shapes(shapes, decimal, thousands)
        measured = max(measured, good, key=shapes.n_cells)
        best = max(best, _without_units(good), key=shapes.n_cells)
    underscored = _without_units(_good_shapes(shapes, options.decimal, "_"))
    n_underscored = shapes.n_cells(underscored)
    if n_underscored > shapes.n_cells(best) and n_underscored == survey.n_cells:
        doubt = (
            "its numbers have underscores; thousands='_' of mmcnb.read_table "
            "(--thousands _) reads these as thousands separators"
        )
        return Decision(CellForm("text"), doubt=doubt)
    n_best = shapes.n_cells(best)
    if n_best >= least:
        wrong = [shapes.first[shape] for shape in shapes if shape not in best]
        return _with_wrong(CellForm("text"), survey, n_best, wrong)
    units = list(dict.fromkeys(map(_unit_of, measured)))
    if shapes.n_cells(measured) >= least and len(units) > 1:
        listed = ", ".join(repr(unit) if unit else "none" for unit in units[:3])
        doubt = f"its numbers have several units ({listed})"
        return Decision(CellForm("text"), doubt=doubt)
    return None


def _without_units(shapes: Sequence[str]) -> list[str]:
    return [shape for shape in shapes if not _unit_of(shape)]


def _with_wrong(
    form: CellForm, survey: Survey, n_good: int, wrong: Sequence[str]
) -> Decision:
    """Return a decision with the number and examples of cells of another kind."""
    examples = list(wrong)
    if form.kind in ("number", "text", "flag"):
        examples += survey.dates.first.values()
    if form.kind in ("date", "time", "flag"):
        examples += survey.numbers.first.values()
    examples += survey.others
    examples = list(dict.fromkeys(examples))[:3]
    return Decision(form, survey.n_cells - n_good, tuple(examples))


class FirstCells(NamedTuple):
    """Properties of a column, inferred from its first cells.

    Attributes
    ----------
    type : pyarrow.DataType
        Type to read the column as: an integer, float or Boolean type for plain numbers
        or flags, null if there is no value, and text otherwise.
    decimal : str or None
        Decimal mark of a column of numbers, or ``""`` if the first cells do not
        determine the mark; None for other columns.
    """

    type: pa.DataType
    decimal: str | None


def look_at_first_cells(
    texts: pa.Array, options: TableOptions, column: str
) -> FirstCells:
    """Infer the type and the decimal mark of a column from its first cells.

    Parameters
    ----------
    texts : pyarrow.Array
        The first cells.
    options : TableOptions
    column : str
        Name of the column.
    """
    survey = Survey(marks_of_numbers(options, column))
    survey.add(without_gaps(texts, marks_of_texts(options, column)))
    decision = decide_form(survey, options)
    if decision.n_cells == 0:
        return FirstCells(TEXT if decision.marks else pa.null(), None)
    form = decision.form
    if form == CellForm("flag"):
        return FirstCells(BOOL, None)
    if form.kind != "number":
        return FirstCells(TEXT, None)
    decimal = ""
    if form.decimal == "," or has_certain_point(texts):
        decimal = form.decimal
    if form != CellForm("number", decimal=options.decimal):
        return FirstCells(TEXT, decimal)
    are_whole = all(WHOLE_SHAPE.match(shape) for shape in survey.numbers)
    data_type = pa.int64() if are_whole and not survey.n_infinite else FLOAT64
    return FirstCells(data_type, decimal)
