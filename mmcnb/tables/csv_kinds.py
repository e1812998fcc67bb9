"""Infer the kinds of cells in CSV text, to distinguish column names from values."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress

import numpy as np

# A number with any decimal mark and any thousands separator.
_DIGITS = r"[-+\u2212]?(\d[\d.,'\u2019_ \u00a0\u202f]*|[.,]\d+)(e[-+]?\d+)?"
_NUMBER = re.compile(rf"(?i){_DIGITS}|[-+]?inf(inity)?|nan|\({_DIGITS}\)")
_CURRENCY = r"([$€£¥]|[A-Z]{3}\s)"
_QUANTITY = re.compile(
    rf"[-+\u2212]?\s?{_CURRENCY}\s?{_DIGITS}|{_DIGITS}\s?[^\W\d_]{{1,5}}(/[^\W\d_]{{1,5}}\d?)?|"
    rf"{_DIGITS}\s?([^\w\s]\w?|{_CURRENCY})",
)
_DAY = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d\d)|"
    r"\d{1,2}[ -][a-z]{3,9}\.?[ -]\d{2,4}|[a-z]{3,9}\.? \d{1,2}, ?\d{4}"
)
_TIME = r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[ap]\.?m\.?)?( ?(z|utc|[-+]\d\d:?\d\d))?"
_DATE = re.compile(rf"(?i)({_DAY})([ t,]+{_TIME})?|{_TIME}")
_FLAG = re.compile(r"(?i)true|false")

_PREFIX = "[YZEPTGMkhdcmuµμnpf]?"
_SYMBOL = (
    r"m|g|s|A|K|mol|cd|rad|Hz|N|Pa|J|W|C|V|F|Ω|ohm|S|Wb|T|H|lm|lx|Bq|Gy|Sv|L|l|t|ha|"
    r"bar|atm|psi|mmHg|Torr|eV|cal|VA|Ah|Wh|dB|dBA|pH|px|bits?|B|bytes?|Da|M|U|IU|"
    r"h|hrs?|hours?|mins?|minutes?|secs?|seconds?|d|days?|weeks?|months?|a|y|yr|years?|"
    r"°|[°º][CF]|deg|deg_?[CF]|Deg_[CF]|degrees?|Celsius|Fahrenheit|Kelvin|"
    r"in|inch|inches|ft|feet|yd|mi|miles?|lbs?|oz|mph|kn|kt|kmh|kph|rpm|NTU|PSU|FNU|"
    r"(kilo)?(met(er|re)s?|grams?)|lit(er|re)s?|[vV]olts?|[wW]atts?|"
    r"%|‰|ppm|ppb|ppt|#|n|counts?|cells|percent|unitless|points|people|persons|"
    r"USD|EUR|GBP|CHF|JPY|[$€£¥]|dollars|euros"
)
_POWER = r"(\^?\{?[-\u2212+]?\d\}?|[⁻¹²³⁴]+)?"
_UNIT = re.compile(
    rf"(1|{_PREFIX}({_SYMBOL}){_POWER})"
    rf"(\s?[/*·. ]\s?\(?{_PREFIX}({_SYMBOL}){_POWER}\)?)*"
    r"|[-\u2013]|[YyMmDdHhSsTt/:. -]{6,}"
    r"|TS|RN|UTC|Avg|Smp|Max|Min|Tot|Std|Sum|Mean|Med"
)
_BRACKETED = re.compile(r"[\[(<{].{0,24}[\])>}]")


def kind_of_cell(cell: str, gaps: Collection[str]) -> str:
    """Return the kind of a cell.

    The kind is "gap" (a marker of missing values), "number", "quantity" (a number with
    a unit), "date", "flag" or "text".

    Examples
    --------
    >>> from mmcnb.tables.csv_kinds import kind_of_cell
    >>> [kind_of_cell(cell, {"", "NA"}) for cell in ("NA", "1,5", "3 kg", "1.2.2024")]
    ['gap', 'number', 'quantity', 'date']
    """
    cell = cell.strip()
    if cell in gaps:
        return "gap"
    with suppress(ValueError):  # much faster than the regular expressions
        float(cell)
        return "number"
    if _FLAG.fullmatch(cell):
        return "flag"
    if _DATE.fullmatch(cell):
        return "date"
    if _NUMBER.fullmatch(cell):
        return "number"
    if _QUANTITY.fullmatch(cell):
        return "quantity"
    return "text"


def kinds_of_columns(
    rows: Sequence[Sequence[str]], width: int, gaps: Collection[str]
) -> list[str | None]:
    """Return the kind of each column: the kind of at least 80 % of its values.

    The kind is "text" if no kind is that frequent, and None if the column has no
    values.
    """
    kinds: list[str | None] = []
    for position in range(width):
        counts = Counter(
            kind_of_cell(row[position], gaps) for row in rows if position < len(row)
        )
        del counts["gap"]
        kind = None
        if counts:
            kind, n_cells = counts.most_common(1)[0]
            if 5 * n_cells < 4 * counts.total():
                kind = "text"
        kinds.append(kind)
    return kinds


def looks_like_unit(cell: str) -> bool:
    """Return whether a text is a unit or a format: "kg", "[m/s]" or "yyyy-mm-dd"."""
    cell = cell.strip()
    return bool(_UNIT.fullmatch(cell) or _BRACKETED.fullmatch(cell))


def number_of_cell(cell: str) -> float:
    """Return the number in a cell, or NaN if the cell is not a number.

    The decimal mark and the thousands separator are guessed, so the result may be
    wrong.

    Examples
    --------
    >>> from mmcnb.tables.csv_kinds import number_of_cell
    >>> number_of_cell("1,234.5"), number_of_cell("2,5"), number_of_cell("x")
    (1234.5, 2.5, nan)
    """
    with suppress(ValueError):
        return float(cell)
    digits = re.sub(r"[ '\u2019_\u00a0\u202f]", "", cell.strip()).replace("\u2212", "-")
    digits = re.sub(r",(?=\d{3}(\D|$))", "", digits)  # between thousands
    before, point, after = digits.replace(",", ".").rpartition(".")
    if point:
        digits = f"{before.replace('.', '')}.{after}"
    try:
        return float(digits)
    except ValueError:
        return np.nan
