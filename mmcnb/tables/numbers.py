"""Parse numbers with separators, signs, currencies, percent signs and units."""

import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import FLOAT64, TEXT

NOTHING = pa.scalar("", TEXT)
# Space, no-break space, thin space and narrow no-break space.
SPACES = " \\x{a0}\\x{2009}\\x{202f}"
APOSTROPHES = "'\\x{2019}"
MINUS = "-\\x{2212}"
# Units before a number: currency symbols and codes.
BEFORE = (
    r"\p{Sc}|[A-Z]{1,3}\p{Sc}|"
    r"(?:AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|"
    r"KRW|MXN|MYR|NGN|NOK|NZD|PHP|PKR|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|"
    r"VND|ZAR|Rs|Fr|kr|zł|Kč|Ft)\.?"
)
AFTER = r"[\p{L}%‰°\p{Sc}](?:[\p{L}\p{N}%‰°\p{Sc}/²³·^*. -]*[\p{L}\p{N}%‰°\p{Sc}²³.])?"
# Maximum length of a unit in characters. It is checked separately, because a pattern
# with {0,18} is slow to compile.
MOST_LETTERS = 20
LOOSE_BODY = (
    rf"(?:\d[\d.,_{APOSTROPHES}{SPACES}]*\d[.,]?|\d[.,]?|[.,]\d+)(?:[eE][-+]?\d+)?"
)
INFINITE = r"(?i)^[-+]?(inf(inity)?)$"
FLAG = r"(?i)^(true|false)$"
WHOLE = r"^[-+]?\d+$"

FAMILIES: tuple[dict[str, float], ...] = (
    {"µg": 1e-6, "ug": 1e-6, "mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6},
    {"oz": 1 / 16, "lb": 1.0, "lbs": 1.0},
    {"µm": 1e-6, "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3},
    {"in": 1 / 12, "ft": 1.0, "yd": 3.0, "mi": 5280.0},
    {"mm²": 1e-6, "cm²": 1e-4, "m²": 1.0, "ha": 1e4, "km²": 1e6},
    {"sqm": 1.0, "m2": 1.0, "m²": 1.0, "km2": 1e6, "km²": 1e6, "ha": 1e4},
    {"µl": 1e-6, "ml": 1e-3, "mL": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0, "L": 1.0},
    {
        "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3,
        "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
        "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
        "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
        "d": 86400.0, "day": 86400.0, "days": 86400.0,
        "week": 604800.0, "weeks": 604800.0,
    },
    {"month": 1.0, "months": 1.0, "mo": 1.0, "year": 12.0, "years": 12.0, "yr": 12.0,
     "yrs": 12.0},
    {"B": 1.0, "bytes": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
     "PB": 1e15},
    {"KiB": 1.0, "MiB": 2.0**10, "GiB": 2.0**20, "TiB": 2.0**30},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9},
    {"Wh": 1.0, "kWh": 1e3, "MWh": 1e6, "GWh": 1e9},
    {"Pa": 1.0, "hPa": 1e2, "kPa": 1e3, "MPa": 1e6},
    {"mV": 1e-3, "V": 1.0, "kV": 1e3},
    {"mA": 1e-3, "A": 1.0},
)  # fmt: skip
"""Families of units that are converted into each other, with their relative sizes."""

MAGNITUDES: dict[str, float] = {
    "k": 1e3, "K": 1e3, "thousand": 1e3, "tsd": 1e3, "Tsd.": 1e3,
    "M": 1e6, "mn": 1e6, "mln": 1e6, "Mio": 1e6, "Mio.": 1e6, "mio": 1e6,
    "million": 1e6, "millions": 1e6, "Million": 1e6,
    "B": 1e9, "bn": 1e9, "Bn": 1e9, "Mrd": 1e9, "Mrd.": 1e9, "billion": 1e9,
    "Billion": 1e9, "T": 1e12, "trillion": 1e12, "lakh": 1e5, "crore": 1e7, "Cr": 1e7,
}  # fmt: skip
"""Words that multiply a number by a factor and are not units."""


def body_pattern(decimal: str, thousands: str) -> str:
    """Return a regular expression for unsigned numbers in a format.

    Parameters
    ----------
    decimal : str
        Decimal mark.
    thousands : str
        Thousands separator; empty if there is none. Groups of two digits, as in the
        Indian number format, are also accepted.
    """
    whole = r"\d+"
    if thousands:
        mark = f"[{mark_class(thousands)}]"
        groups = rf"\d{{1,3}}(?:{mark}\d{{3}})+"
        indian_groups = rf"\d{{1,2}}(?:{mark}\d{{2}})+{mark}\d{{3}}"
        whole = rf"(?:{groups}|{indian_groups}|\d+)"
    point = "\\" + decimal
    return rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"


def mark_class(thousands: str) -> str:
    """Return the variants of a thousands separator, for a regex character class."""
    if thousands == " ":
        return SPACES
    if thousands == "'":
        return APOSTROPHES
    return "\\" + thousands


def cell_pattern(body: str) -> str:
    """Return a regular expression for numbers with signs, parentheses and units.

    Parameters
    ----------
    body : str
        Regular expression of the unsigned number.
    """
    space = f"[{SPACES}]*"
    return (
        rf"^(?P<open>\()?{space}(?P<sign>[-+\x{{2212}}])?{space}"
        rf"(?P<before>{BEFORE})?{space}(?P<minus>[-+\x{{2212}}])?{space}"
        # A minus after a unit is not allowed, because 3B- is probably a grade.
        rf"(?P<body>{body})(?:{space}(?P<after>{AFTER})|(?P<tail>[{MINUS}]))?"
        rf"{space}(?P<close>\))?$"
    )


def plain_pattern(decimal: str = ".") -> str:
    """Return a regular expression for numbers without units or separators."""
    body = body_pattern(decimal, "")
    return rf"(?i)^[-+]?(?:{body}|inf(?:inity)?|nan)$"


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern written for Arrow with Python's ``re`` module."""
    written = re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: chr(int(code[1], 16)), pattern)
    return re.compile(written)


class CellParts(NamedTuple):
    """The sign, digits and unit of each cell; the digits of other cells are null."""

    is_negative: pa.Array
    body: pa.Array
    unit: pa.Array


def parts_of_numbers(texts: pa.Array, pattern: str) -> CellParts:
    """Split texts into signs, digits and units with a pattern from `cell_pattern`."""
    found = pc.extract_regex(texts, pattern)
    is_open = pc.equal(found.field("open"), "(")
    is_closed = pc.equal(found.field("close"), ")")
    signs = pc.binary_join_element_wise(
        found.field("sign"), found.field("minus"), found.field("tail"), NOTHING
    )
    is_signed = pc.match_substring_regex(signs, rf"[{MINUS}]")
    is_whole = pc.and_(pc.equal(is_open, is_closed), found.is_valid())
    is_short = pc.less_equal(pc.utf8_length(found.field("after")), MOST_LETTERS)
    has_one_sign = pc.less_equal(pc.utf8_length(signs), 1)
    is_number = pc.and_(pc.and_(is_whole, is_short), has_one_sign)
    body = pc.if_else(is_number, found.field("body"), None)
    unit = pc.binary_join_element_wise(
        found.field("before"), found.field("after"), NOTHING
    )
    return CellParts(pc.or_(is_open, is_signed), body, unit)


def parse_numbers(texts: pa.Array, form: CellForm) -> pa.Array:
    """Convert texts to float64; texts that are not numbers in a given form become null.

    Parameters
    ----------
    texts : pyarrow.Array of large_string
        Texts without surrounding spaces.
    form : CellForm
        Decimal mark, thousands separator, and units with their factors.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.samples.encoding import CellForm
    >>> from mmcnb.tables.numbers import parse_numbers
    >>> units = (("$", 1.0), ("$K", 1e3))
    >>> form = CellForm("number", thousands=",", unit="$", factors=units)
    >>> texts = pa.array(["$1,250.00", "($2.5K)", "six"], pa.large_string())
    >>> parse_numbers(texts, form).to_pylist()
    [1250.0, -2500.0, None]
    """
    plain = _parse_plain(texts, form.decimal)
    if plain.null_count == texts.null_count:
        return plain
    # The slow pattern is applied only to texts that are not plain numbers.
    is_rest = pc.and_(plain.is_null(), texts.is_valid())
    rest = _parse_written(texts.filter(is_rest), form)
    return pc.replace_with_mask(plain, is_rest, rest)


def _parse_plain(texts: pa.Array, decimal: str) -> pa.Array:
    is_number = pc.match_substring_regex(texts, plain_pattern(decimal))
    numbers = pc.if_else(is_number, texts, None)
    if decimal != ".":
        numbers = pc.replace_substring(numbers, decimal, ".")
    return numbers.cast(FLOAT64)


def _parse_written(texts: pa.Array, form: CellForm) -> pa.Array:
    """Parse numbers with separators, units, parentheses or unusual minus signs."""
    texts = texts.cast(TEXT)
    pattern = cell_pattern(body_pattern(form.decimal, form.thousands))
    parts = parts_of_numbers(texts, pattern)
    digits = parts.body
    if form.thousands:
        digits = pc.replace_substring_regex(
            digits, f"[{mark_class(form.thousands)}]", ""
        )
    if form.decimal != ".":
        digits = pc.replace_substring(digits, form.decimal, ".")
    numbers = digits.cast(FLOAT64)
    factors = dict(form.factors)
    units = pa.array(["", *factors], TEXT)
    place = pc.index_in(parts.unit.cast(TEXT), units)
    sizes = pa.array([factors.get("", 1.0), *factors.values()], FLOAT64).take(place)
    signs = pc.if_else(parts.is_negative, -1.0, 1.0)
    return pc.multiply(pc.multiply(numbers, sizes), signs)
