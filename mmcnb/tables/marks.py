"""Markers of missing values: common markers, and markers given in options."""

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
# pandas.read_csv treats these texts as missing, so they do not occur in its frames.
OF_PANDAS = (
    "", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)
ERRORS = (
    "#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
    "#GETTING_DATA",
)
OF_TEXTS = (*OF_PANDAS, *ERRORS, "?", "-", "--", ".", "NaT", "\\N")
LEAST = "None"  # either a marker of missing values or the lowest level of a scale
# These texts mark missing values in columns of numbers only. In text columns they are
# categories, because "none" can be an answer.
OF_NUMBERS_ALONE = (
    "none", "NONE", "Null", "Nan", "NAN", "na", "Na", "N.A.", "n.a.", "n.a", "n. a.",
    "N/a", "nd", "ND", "n.d.", "nil", "missing", "Missing", "MISSING", "unknown",
    "Unknown", "UNKNOWN", "not available", "Not Available", "---", "----", "\u2013",
    "\u2014", "\u2212", "..", "...", "\u2026", ":", "*", "**", "(null)", "[null]",
)
# fmt: on


def marks_of_texts(options: TableOptions, column: str) -> pa.Array:
    """Return the markers of missing values in a text column.

    Parameters
    ----------
    options : TableOptions
    column : str
        Name of the column.

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
    """Return the markers of missing values in a column of ordered texts.

    Texts of the order are not markers. In a column of answers on a known scale, "None"
    is a marker only if an option lists it, because it may be the lowest level of a
    scale such as none, mild and severe.
    """
    texts = set(chain.from_iterable(form.levels))
    if form.by_keys and LEAST not in options.marks_of(column):
        texts.add(LEAST)
    marks = marks_of_texts(options, column).to_pylist()
    return pa.array([mark for mark in marks if mark not in texts], TEXT)


def marks_of_numbers(options: TableOptions, column: str) -> pa.Array:
    """Return the markers of missing values in a column of numbers written as text."""
    return _marks(options, column, OF_TEXTS + OF_NUMBERS_ALONE)


def _marks(options: TableOptions, column: str, usual: tuple[str, ...]) -> pa.Array:
    given = options.marks_of(column)
    if given == ("",):
        usual = ("",)
    return pa.array(dict.fromkeys((*usual, *given)), TEXT)


def mark_as_argument(mark: str) -> str:
    """Return a marker as an argument of ``--na-values``, quoted for the shell.

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
    """Replace numbers that mark missing values with null."""
    if not marks:
        return numbers
    values = pa.array(marks, FLOAT64)
    if pa.types.is_floating(numbers.type):
        # The numbers may be float32, or may have been rounded to float32 earlier.
        rounded = values.cast(numbers.type, safe=False).cast(FLOAT64)
        single = values.cast(pa.float32(), safe=False).cast(FLOAT64)
        values = pa.concat_arrays([rounded, single])
    is_mark = pc.is_in(numbers.cast(FLOAT64, safe=False), values)
    return pc.if_else(is_mark, None, numbers)


def without_gaps(texts: pa.Array, marks: pa.Array) -> pa.Array:
    """Strip surrounding spaces, and replace markers of missing values with null."""
    if not _has_few_values(texts):
        return _tidied(texts, marks)
    # Each distinct text is processed only once, and unchanged texts are not copied.
    encoded = texts.dictionary_encode()
    values = _tidied(encoded.dictionary, marks)
    if values.equals(encoded.dictionary):
        return texts
    return values.take(encoded.indices)


def _has_few_values(texts: pa.Array) -> bool:
    """Return whether a long array of texts seems to have few distinct values."""
    if len(texts) < MANY_TEXTS or not isinstance(texts, pa.Array):
        return False
    return len(texts[:FIRST_TEXTS].unique()) <= FIRST_TEXTS // 4


def _tidied(texts: pa.Array, marks: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(trimmed, marks), None, trimmed)
