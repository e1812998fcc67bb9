"""Convert dates, times of day and durations written as text to seconds."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mmcnb.samples.encoding import CellForm
from mmcnb.tables.arrow import FLOAT64, TEXT

MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|"
    r"april|june|july|august|september|october|november|december)"
)
CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[ap]\.?m\.?)?"
ZONE = r" ?(?:z|utc|gmt|[-+]\d\d:?\d\d)"
DAY = (
    r"(?:\d{4}-\d\d|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|"
    r"\d{1,2}[-/.]\d{1,2}[-/.]\d\d|"
    rf"\d{{1,2}}\.?[- /]{MONTH}[- /,]+(?:\d{{4}}|\d\d)|{MONTH}[- ]\d{{1,2}},? \d{{4}}|"
    rf"{MONTH}[- ]\d{{4}}|{MONTH}-\d\d)"
)
DATE = rf"(?i)^{DAY}(?:(?:[ t]|, ?){CLOCK}(?:{ZONE})?)?$"
# Hours and minutes, optionally after a number of days in the format of pandas.
TIME = (
    r"(?i)^(?P<sign>-)?(?:(?P<days>\d+) days?,? ?)?\+?"
    r"(?P<first>\d+):(?P<second>\d\d)(?::(?P<third>\d\d))?(?P<fraction>[.,]\d{1,9})?"
    r"(?P<half> ?[ap]\.?m\.?)?$"
)
# Two or more units, such as 1h 30m, and durations of ISO 8601.
SPOKEN = (
    r"(?i)^p?(?:(?P<days>\d+) ?d(?:ays?)?)?[ t,]*(?:(?P<hours>\d+) ?h(?:ours?|rs?)?)?"
    r"[ ,]*(?:(?P<minutes>\d+) ?m(?:in(?:ute)?s?)?)?"
    r"[ ,]*(?:(?P<seconds>\d+(?:\.\d+)?) ?s(?:ec(?:ond)?s?)?)?$"
)
TWO_UNITS = r"(?i)^(?:p.*\d[dhms]|\d+ ?[dhm][a-z]*[ ,]*\d+ ?[hms][a-z]*.*)$"
CLOCK_FORMAT = "clock"  # marks times of day in models written by version 0.3
ISO = re.compile(r"^9999-99-99(?:[ T]99:99(?::99(?:\.9{1,9})?)?)?$")
YEAR_FIRST = re.compile(r"^9999")
NUMERIC = re.compile(r"^(9{1,2})([-/.])(9{1,2})\2(9999|99)(?!9)")


def date_format(shape: str, order: str) -> str:
    """Return the `strptime` format of dates that have a given shape.

    Parameters
    ----------
    shape : str
        A date in lower case, with each digit replaced by 9 and each letter of the month
        by m, such as "99.99.9999 99:99".
    order : {"day", "month", ""}
        Which field comes first in dates such as 3/4/2025.

    Examples
    --------
    >>> from mmcnb.tables.dates import date_format
    >>> date_format("99.99.9999 9:99", "day"), date_format("mmm 9, 9999", "")
    ('%d.%m.%Y %H:%M', '%b %d, %Y')
    """
    if ISO.match(shape.upper()):
        return "ISO8601"
    day, mark, clock = _divided(shape)
    numeric = NUMERIC.match(day)
    if numeric:
        fields = ["%d", "%m"] if order == "day" else ["%m", "%d"]
        year = "%Y" if numeric[4] == "9999" else "%y"
        written = numeric[2].join([*fields, year])
    else:
        written = _format_of_day(day)
    return written + mark + _format_of_clock(clock)


def _divided(shape: str) -> tuple[str, str, str]:
    """Split the shape of a date into the day, the separator, and the time of day."""
    found = re.search(r"(,? ?t?|t)(9{1,2}:99.*)$", shape)
    if found is None:
        return shape, "", ""
    return shape[: found.start()], found[1].replace("t", "T"), found[2]


def _format_of_day(day: str) -> str:
    """Return the format of a date whose month is a word or whose year comes first."""
    if YEAR_FIRST.match(day):
        fields = iter(("%Y", "%m", "%d"))
        return re.sub("9+", lambda _: next(fields), day)
    word = re.search("m+", day)
    name = "%b" if word is not None and len(word[0]) == 3 else "%B"
    written = re.sub("m+", name, day)
    written = written.replace("9999", "%Y")
    if "%Y" not in written:
        head, _, tail = written.rpartition("99")
        written = f"{head}%y{tail}"
    return re.sub("9+", "%d", written)


def _format_of_clock(clock: str) -> str:
    found = re.match(r"9{1,2}:99(:99)?([.,]9+)?( ?[ap]\.?m\.?)?(.*)$", clock)
    if not clock or found is None:
        return ""
    hours = "%I" if found[3] else "%H"
    written = f"{hours}:%M"
    if found[1]:
        written += ":%S"
    if found[2]:
        written += f"{found[2][0]}%f"
    if found[3]:
        written += " %p" if found[3].startswith(" ") else "%p"
    if found[4]:
        written += " %z" if found[4].startswith(" ") else "%z"
    return written


def shapes_of_dates(texts: pa.Array) -> pa.Array:
    """Replace digits in dates with 9, and the letters of names of months with m."""
    shapes = pc.utf8_lower(texts)
    shapes = pc.replace_substring_regex(shapes, r"\d", "9")
    for length in (9, 8, 7, 6, 5, 4, 3):
        words = rf"(^|[^a-z])({_months_of(length)})($|[^a-z])"
        shapes = pc.replace_substring_regex(shapes, words, rf"\1{'m' * length}\3")
    return shapes


def _months_of(length: int) -> str:
    words = re.findall("[a-z]+", MONTH)
    return "|".join(word for word in words if len(word) == length)


def largest_fields(texts: pa.Array) -> tuple[int, int]:
    """Return the maxima of the first two numbers in dates such as 24/11/2024."""
    pattern = r"^(?P<first>\d{1,2})[-/.](?P<second>\d{1,2})[-/.]\d{2,4}"
    found = pc.extract_regex(texts, pattern)
    largest = []
    for name in ("first", "second"):
        numbers = found.field(name).filter(found.is_valid()).cast(pa.int64())
        largest.append(pc.max(numbers).as_py() or 0)
    return largest[0], largest[1]


def largest_hour(texts: pa.Array) -> int:
    """Return the maximum of the first number in times such as 17:30."""
    found = pc.extract_regex(texts, r"^(?P<hours>\d{1,4}):\d\d")
    hours = found.field("hours").filter(found.is_valid()).cast(pa.int64())
    return pc.max(hours).as_py() or 0


def parse_dates(texts: pa.Array, form: CellForm) -> pa.Array:
    """Convert dates to seconds since 1970 as float64, and other texts to null.

    Parameters
    ----------
    texts : pyarrow.Array
    form : CellForm
        The formats in ``form.formats`` are tried in order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.samples.encoding import CellForm
    >>> from mmcnb.tables.dates import parse_dates
    >>> form = CellForm("date", formats=("%d.%m.%Y",))
    >>> parse_dates(pa.array(["01.02.1970", "x"]), form).to_pylist()
    [2678400.0, None]
    """
    seconds = np.full(len(texts), np.nan)
    is_left = np.asarray(texts.is_valid())
    for name in form.formats:
        rows = np.flatnonzero(is_left)
        if not rows.size:
            break
        left = texts.take(pa.array(rows))
        if name == CLOCK_FORMAT:
            parsed = np.array(parse_times(left, form).fill_null(np.nan))
        else:
            parsed = _seconds_of(left, name)
        seconds[rows] = parsed
        is_left[rows] = np.isnan(parsed)
    return pa.array(seconds, FLOAT64, from_pandas=True)


def _seconds_of(texts: pa.Array, name: str) -> np.ndarray:
    if name == "ISO8601":
        for unit in ("s", "us"):
            try:
                times = texts.cast(pa.timestamp(unit))
            except pa.ArrowInvalid:
                continue
            counts = times.cast(pa.int64())
            return np.asarray(counts, np.float64) / (1.0 if unit == "s" else 1e6)
    values = texts.to_pandas()
    if name != "ISO8601":
        values = _without_points(values, name)
    times = pd.to_datetime(values, format=name, errors="coerce", utc=True)
    times = pd.DatetimeIndex(times).tz_localize(None)
    counts = times.to_numpy("datetime64[us]").astype(np.int64)
    return np.where(times.isna(), np.nan, counts / 1e6)


def _without_points(values: "pd.Series", name: str) -> "pd.Series":
    """Rewrite "a.m.", "UTC" and "Sept" so that `strptime` formats can parse them."""
    if "%p" in name:
        values = values.str.replace(r"(?i)([ap])\.?m\.?", r"\1m", regex=True)
    if "%z" in name:
        values = values.str.replace(r"(?i)utc|gmt", "+00:00", regex=True)
    if "%B" in name:
        values = values.str.replace(r"(?i)\bsept\b", "September", regex=True)
    return values


def parse_times(texts: pa.Array, form: CellForm) -> pa.Array:
    """Convert times of day and durations to seconds, and other texts to null.

    Parameters
    ----------
    texts : pyarrow.Array of large_string
    form : CellForm
        ``form.is_minutes`` specifies whether 3:45 means minutes and seconds instead of
        hours and minutes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.samples.encoding import CellForm
    >>> from mmcnb.tables.dates import parse_times
    >>> texts = pa.array(["9:30 PM", "1 days 00:00:05", "1h 30m"], pa.large_string())
    >>> parse_times(texts, CellForm("time")).to_pylist()
    [77400.0, 86405.0, 5400.0]
    """
    clock = _seconds_of_clock(texts, form)
    return pc.coalesce(clock, _seconds_of_words(texts))


def _seconds_of_clock(texts: pa.Array, form: CellForm) -> pa.Array:
    found = pc.extract_regex(texts, TIME)
    fraction = found.field("fraction")
    is_minutes = pc.or_(pc.not_equal(fraction, ""), form.is_minutes)
    is_short = pc.and_(is_minutes, pc.equal(found.field("third"), ""))
    first = _numbers(found, "first")
    second = _numbers(found, "second")
    third = _numbers(found, "third")
    long = _weighted((_hours(found), 3600.0), (second, 60.0), (third, 1.0))
    short = _weighted((first, 60.0), (second, 1.0))
    seconds = pc.add(pc.if_else(is_short, short, long), _fractions(fraction))
    sign = pc.if_else(pc.equal(found.field("sign"), "-"), -1.0, 1.0)
    # pandas writes minus one hour as "-1 days +23:00:00".
    days = pc.multiply(sign, pc.multiply(_numbers(found, "days"), 86400.0))
    has_days = pc.not_equal(found.field("days"), "")
    after_days = pc.if_else(has_days, seconds, pc.multiply(sign, seconds))
    return pc.if_else(found.is_valid(), pc.add(days, after_days), None)


def _hours(found: pa.Array) -> pa.Array:
    """Return the hour of each matched time; am and pm are converted to 24-hour form."""
    hours = _numbers(found, "first")
    half = pc.utf8_lower(pc.utf8_trim_whitespace(found.field("half")))
    is_twelve = pc.and_(pc.not_equal(half, ""), pc.equal(hours, 12.0))
    hours = pc.if_else(is_twelve, 0.0, hours)
    return pc.add(hours, pc.if_else(pc.starts_with(half, "p"), 12.0, 0.0))


def _fractions(texts: pa.Array) -> pa.Array:
    """Convert fractions of a second such as ",25" to numbers, and empty texts to 0."""
    points = pc.replace_substring(texts, ",", ".")
    return pc.if_else(pc.equal(points, ""), "0", points).cast(FLOAT64)


def _seconds_of_words(texts: pa.Array) -> pa.Array:
    is_spoken = pc.match_substring_regex(texts, TWO_UNITS)
    found = pc.extract_regex(pc.if_else(is_spoken, texts, None), SPOKEN)
    return _weighted(
        (_numbers(found, "days"), 86400.0),
        (_numbers(found, "hours"), 3600.0),
        (_numbers(found, "minutes"), 60.0),
        (_numbers(found, "seconds"), 1.0),
    )


def _numbers(found: pa.Array, name: str) -> pa.Array:
    """Return the number in the named group of each regular-expression match.

    The number is 0 if the group is empty, and null if the text does not match.
    """
    texts = found.field(name)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar("0", TEXT), texts)
    return pc.if_else(found.is_valid(), texts.cast(TEXT), None).cast(FLOAT64)


def _weighted(*terms: tuple[pa.Array, float]) -> pa.Array:
    total = pc.multiply(*terms[0])
    for values, weight in terms[1:]:
        total = pc.add(total, pc.multiply(values, weight))
    return total


def seconds_of_typed(times: pa.Array) -> pa.Array:
    """Convert Arrow dates, times of day or durations to seconds as float64.

    Seconds are counted from 1970 for dates, and from midnight for times of day.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.dates import seconds_of_typed
    >>> seconds_of_typed(pa.array([1500], pa.timestamp("ms"))).to_pylist()
    [1.5]
    """
    if pa.types.is_date(times.type):
        unit = "s" if times.type == pa.date32() else "ms"
        times = times.cast(pa.timestamp(unit))
    per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.type.unit]
    integer = pa.int64() if times.type.bit_width == 64 else pa.int32()
    counts = times.view(integer).cast(FLOAT64, safe=False)
    return pc.divide(counts, per_second)
