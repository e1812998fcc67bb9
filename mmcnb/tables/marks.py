"""Marks of missing values: the usual ones of texts and of numbers, and those given."""

import re
import shlex
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import FLOAT64, TEXT
from mmcnb.tables.options import TableOptions

MANY_TEXTS = 1000
FIRST_TEXTS = 256
# fmt: off
# pandas.read_csv takes these for gaps, so a frame that it has read lost them already.
OF_PANDAS = (
    "", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)
ERRORS = (
    "#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
    "#GETTING_DATA",
)
OF_TEXTS = (*OF_PANDAS, *ERRORS, "?", "-", "--", ".", "NaT", "\\N")
LEAST = "None"  # of an order, or a gap
# Among texts these are categories: to have none is an answer, too.
OF_NUMBERS_ALONE = (
    "none", "NONE", "Null", "Nan", "NAN", "na", "Na", "N.A.", "n.a.", "n.a", "n. a.",
    "N/a", "nd", "ND", "n.d.", "nil", "missing", "Missing", "MISSING", "unknown",
    "Unknown", "UNKNOWN", "not available", "Not Available", "---", "----", "\u2013",
    "\u2014", "\u2212", "..", "...", "\u2026", ":", "*", "**", "(null)", "[null]",
)
# fmt: on


def marks_of_texts(options: TableOptions, column: str) -> pa.Array:
    """Return what marks a missing value in a column of texts.

    Examples
    --------
    >>> from mmcnb.tables.marks import marks_of_texts
    >>> from mmcnb.tables.options import TableOptions
    >>> options = TableOptions(na_values={"pet": ["none", 9]})
    >>> marks_of_texts(options, "pet").to_pylist()[-2:]
    ['none', '9']
    """
    return _marks(options, column, OF_TEXTS)


def marks_of_order(options: TableOptions, column: str, form: CellForm) -> pa.Array:
    """Return what marks a missing value in a column of ordered texts.

    A text of the order is none, and "None" may be the least of none, mild and severe.
    """
    texts = set(chain.from_iterable(form.levels))
    if form.by_keys and LEAST not in options.marks_of(column):
        texts.add(LEAST)
    marks = marks_of_texts(options, column).to_pylist()
    return pa.array([mark for mark in marks if mark not in texts], TEXT)


def marks_of_numbers(options: TableOptions, column: str) -> pa.Array:
    """Return what marks a missing value in a column of numbers written as text."""
    return _marks(options, column, OF_TEXTS + OF_NUMBERS_ALONE)


def _marks(options: TableOptions, column: str, usual: tuple[str, ...]) -> pa.Array:
    given = options.marks_of(column)
    if given == ("",):
        usual = ("",)
    return pa.array(dict.fromkeys((*usual, *given)), TEXT)


def mark_as_argument(mark: str) -> str:
    """Return a mark as ``--na-values`` takes it, in the words of a shell.

    Examples
    --------
    >>> from mmcnb.tables.marks import mark_as_argument
    >>> print(mark_as_argument("n.v."), mark_as_argument("1,000"))
    n.v. '"1,000"'
    """
    if re.search('[,="]', mark):
        mark = '"' + mark.replace('"', '""') + '"'
    return shlex.quote(mark)


def without_marks(numbers: pa.Array, marks: tuple[float, ...]) -> pa.Array:
    """Return numbers, with null for those that mark missing values."""
    if not marks:
        return numbers
    values = pa.array(marks, FLOAT64)
    if pa.types.is_floating(numbers.type):
        # Marks are rounded as these numbers are, or as they were before, in float32.
        rounded = values.cast(numbers.type, safe=False).cast(FLOAT64)
        single = values.cast(pa.float32(), safe=False).cast(FLOAT64)
        values = pa.concat_arrays([rounded, single])
    is_mark = pc.is_in(numbers.cast(FLOAT64, safe=False), values)
    return pc.if_else(is_mark, None, numbers)


def without_gaps(texts: pa.Array, marks: pa.Array) -> pa.Array:
    """Return texts without spaces around them, and null for marks of missing values."""
    if not _has_few_values(texts):
        return _tidied(texts, marks)
    # Each value is looked at once, and texts that do not change are not copied.
    encoded = texts.dictionary_encode()
    values = _tidied(encoded.dictionary, marks)
    if values.equals(encoded.dictionary):
        return texts
    return values.take(encoded.indices)


def _has_few_values(texts: pa.Array) -> bool:
    """Return whether many texts seem to have few values, by the first of them."""
    if len(texts) < MANY_TEXTS or not isinstance(texts, pa.Array):
        return False
    return len(texts[:FIRST_TEXTS].unique()) <= FIRST_TEXTS // 4


def _tidied(texts: pa.Array, marks: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(trimmed, marks), None, trimmed)
