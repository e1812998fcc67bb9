"""Cells of CSV text: their types, marks of missing values, and numbers in texts."""

import shlex
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from mmcnb.tables.options import TableOptions

TEXT = pa.large_string()
FLOAT64 = pa.float64()
BOOL = pa.bool_()
GAPS = [
    *pa.csv.ConvertOptions().null_values,
    "?",
    "-",
    "--",
    ".",
    "None",
    "none",
    "<NA>",
]
FLAG = "(?i)^(true|false)$"
WHOLE = r"^[-+]?\d+$"
DATE = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?$"
# Whatever the marks of decimals and thousands are.
LIKE_A_NUMBER = r"(?i)^[-+]?[\d.,' ]*\d[\d.,' ]*(e[-+]?\d+)?$|^[-+]?inf(inity)?$"
PLAIN_NUMBER = r"^[-+]?[\d.,]+(e[-+]?\d+)?$"


class ParsedCells(NamedTuple):
    """Values of cells, null where a text is none, and which texts these are."""

    values: pa.Array
    is_wrong: pa.Array


def parse_cells(
    texts: pa.Array, data_type: pa.DataType, options: TableOptions
) -> ParsedCells:
    """Read trimmed cells as numbers or, if the type is bool, as flags.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.csv_cells import parse_cells
    >>> from mmcnb.tables.options import TableOptions
    >>> options = TableOptions(thousands=".", decimal=",")
    >>> cells = parse_cells(pa.array(["1.234,5", "six"]), pa.float64(), options)
    >>> cells.values.to_pylist(), cells.is_wrong.to_pylist()
    ([1234.5, None], [False, True])
    """
    is_flag = data_type == BOOL
    pattern = FLAG if is_flag else number_pattern(options)
    is_good = pc.match_substring_regex(texts, pattern)
    is_wrong = pc.fill_null(pc.invert(is_good), False)
    values = pc.if_else(is_good, texts, None)
    if is_flag:
        return ParsedCells(values.cast(BOOL), is_wrong)
    if options.thousands:
        values = pc.replace_substring(values, options.thousands, "")
    values = pc.replace_substring(values, options.decimal, ".")
    return ParsedCells(values.cast(FLOAT64), is_wrong)


def trim_cells(texts: pa.Array, gaps: pa.Array) -> pa.Array:
    """Return texts without spaces around them; null for the marks of missing values."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(trimmed, gaps), None, trimmed)


def gap_marks(options: TableOptions, is_text: bool) -> list[str]:
    """Return marks of missing values: usual ones of CSV text, and those given."""
    if options.na_values == ("",):
        return [""]
    marks = [""]
    if is_text:
        marks += GAPS
    for text in options.na_values or ():
        marks += [text, *text.split(",")]
    return list(dict.fromkeys(marks))


def number_pattern(options: TableOptions) -> str:
    """Return the regular expression of a number."""
    whole = r"\d+"
    if options.thousands is not None:
        whole = rf"(\d{{1,3}}(\{options.thousands}\d{{3}})+|\d+)"
    point = "\\" + options.decimal
    return rf"(?i)^[-+]?(({whole}{point}?\d*|{point}\d+)(e[-+]?\d+)?|inf(inity)?|nan)$"


def number_hint(texts: pa.Array, options: TableOptions) -> str:
    """Return options with which all texts are numbers, or the only one marks a gap."""
    other = "," if options.decimal == "." else "."
    remedies = []
    for name, mark in (
        ("thousands", other),
        ("decimal", other),
        ("thousands", "'"),
        ("thousands", " "),
    ):
        if mark != options.thousands:
            changed: Any = {name: mark}
            if all_match(texts, number_pattern(replace(options, **changed))):
                remedies.append(f"--{name} {mark!r}")
    if remedies:
        return f"give {' or '.join(remedies)}, "
    text = texts[0].as_py()
    if len(pc.unique(texts)) > 1 or not text.isprintable():
        return ""
    missing = " and --missing drop" if options.missing == "refuse" else ""
    return f"give --na-values {shlex.quote(text)}{missing} if it marks missing values, "


def all_match(texts: pa.Array, pattern: str) -> bool:
    """Whether all texts match a regular expression; null is passed over."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py()


def type_of_cells(texts: pa.Array) -> pa.DataType | None:
    """Return the type of numbers, flags or dates, if half of the cells are; else None.

    Cells that are numbers but for one mark are numbers too: it marks missing values.
    """
    n_cells = len(texts) - texts.null_count
    n_numbers = _n_matching(texts, LIKE_A_NUMBER)
    if n_cells == 0:
        return None
    if 2 * n_numbers >= n_cells:
        return pa.int64() if all_match(texts, WHOLE) else FLOAT64
    if 2 * _n_matching(texts, FLAG) >= n_cells:
        return BOOL
    if 2 * _n_matching(texts, DATE) >= n_cells:
        return pa.timestamp("s")
    is_number = pc.match_substring_regex(texts, PLAIN_NUMBER)
    marks = texts.filter(pc.invert(is_number))
    if n_numbers > 1 and pc.count_distinct(marks).as_py() == 1:
        return FLOAT64
    return None


def _n_matching(texts: pa.Array, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(texts, pattern)).as_py() or 0
