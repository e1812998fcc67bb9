"""Recognise columns that describe the record: dates, counters and identifiers.

Such columns contain the time or the number of a record rather than a property of the
recorded object. They would split a table into early and late rows, or into low and high
numbers. They are therefore left out unless an option asks for them or too few other
columns remain.
"""

import re
from hashlib import sha256
from typing import NamedTuple

import numpy as np

NUMBERS_ROWS = "it numbers the rows"
IDENTIFIES = "it is an identifier by its name and values"
IS_DATED = "its dates show when rows were recorded"
LEAST_ROWS = 10  # minimum number of rows to recognise row numbers and identifiers
MOST_CLASSES = 50  # repeated values are identifiers only if more values are distinct
LEAST_EVEN = 300  # minimum number of rows to test the spacing of numbers
# Bound on the Kolmogorov-Smirnov distance times the square root of the number of rows:
# 90 % of uniform samples are below the bound, and normal samples of 300 rows are near
# 3.
MOST_UNEVEN = 1.22
# Bound on Greenwood's statistic times the number of rows. This product is about 2 for
# uniform samples, with a standard deviation of 0.12 at 300 rows, and 8 for nine groups.
MOST_GREENWOOD = 2.5

# Words that occur in names of identifiers, in English and German.
IDENTIFYING = re.compile(
    r"(?:ids?|uid|guid|uuid|key|\w*code|zip|plz|postleitzahl|phone|telephone|tel|telefon|"
    r"fax|ssn|isbn|ean|gtin|upc|sku|iban|imei|vin|mrn|serial|kennung|kennziffer|"
    r"\w+nummer|\w+nr|\w+number|"
    r"(?:account|article|artikel|case|client|cust|customer|device|employee|event|game|"
    r"image|invoice|item|kunden|member|movie|object|order|patient|person|player|post|"
    r"product|record|row|sample|session|store|student|subject|ticket|track|"
    r"transaction|user|vendor|visitor)(?:id|key|no|num))\d*"
)
# These words mark identifiers only after another word or alone: "number_rooms" is a
# count, and "no_show" a flag.
OF_NUMBERS = re.compile("no|nr|num|number|nummer|numero|numéro")
DURATION = re.compile(
    r"\w*dauer|delay|durations?|elapsed|laps?|length|pace|runtime|took|\w*laufzeit"
)
# Names with one of these words are quantities, as in "zip_income" or "keys per minute".
QUANTITY = re.compile(
    "amount|anzahl|average|avg|calls|counts?|coverage|density|distance|duration|income|"
    "len|length|lines|max|mean|median|min|minutes|n|of|par|per|percent|pct|population|"
    "pro|price|quantity|rate|ratio|score|share|size|std|sum|time|total|usage|value|von"
)


class RecordSign(NamedTuple):
    """Why a column describes the record, and how distinct its values are.

    Attributes
    ----------
    why : str
        The reason, for messages.
    share : float
        Number of distinct values divided by the number of values.
    digest : bytes
        Hash of the values, which breaks ties independently of column names and
        positions.
    """

    why: str
    share: float
    digest: bytes


def words_of(name: str) -> list[str]:
    """Split a column name into words in lower case.

    Examples
    --------
    >>> from mmcnb.tables.record_columns import words_of
    >>> words_of("KundenNr"), words_of("customer_ID"), words_of("order no.")
    (['kunden', 'nr'], ['customer', 'id'], ['order', 'no'])
    """
    parts = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.findall(r"[^\W_]+", parts.casefold())


def is_identifying(name: str) -> bool:
    """Return whether a column name is typical of identifiers, such as "customer id".

    Examples
    --------
    >>> from mmcnb.tables.record_columns import is_identifying
    >>> is_identifying("order_number"), is_identifying("number of orders")
    (True, False)
    >>> is_identifying("customerId"), is_identifying("amount_paid")
    (True, False)
    """
    words = words_of(name)
    if any(map(QUANTITY.fullmatch, words)):
        return False
    if len(words) == 1 and OF_NUMBERS.fullmatch(words[0]):
        return True
    if any(map(OF_NUMBERS.fullmatch, words[1:])):
        return True
    return any(map(IDENTIFYING.fullmatch, words))


def is_duration(name: str) -> bool:
    """Return whether a column name indicates durations rather than times of day.

    Examples
    --------
    >>> from mmcnb.tables.record_columns import is_duration
    >>> is_duration("lap_time"), is_duration("started at")
    (True, False)
    """
    return any(map(DURATION.fullmatch, words_of(name)))


def counts_rows(numbers: np.ndarray, step: int = 1, any_step: bool = True) -> bool:
    """Return whether numbers are integers in equal steps, without missing values.

    Parameters
    ----------
    numbers : ndarray
        Values of a column in equally spaced rows.
    step : int, default=1
        Distance between the rows in ``numbers``.
    any_step : bool, default=True
        Whether increments other than 1 per row are allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.record_columns import counts_rows
    >>> counts_rows(np.arange(90, 0, -3)), counts_rows(np.arange(30) ** 2)
    (True, False)
    """
    if numbers.size < LEAST_ROWS or not np.isfinite(numbers[:2]).all():
        return False
    rise = numbers[1] - numbers[0]
    is_step = rise == step or (any_step and rise != 0 and rise % step == 0)
    if not is_step or numbers[0] % 1 != 0:
        return False
    # The first rows usually suffice to see that the numbers do not count rows.
    for values in (numbers[:1000], numbers):
        if not np.isfinite(values).all() or (np.diff(values) != rise).any():
            return False
    return True


def are_names(numbers: np.ndarray) -> bool:
    """Return whether numbers can be identifiers.

    Identifiers are integers. Either there are at least ten and all of them are
    distinct, or there are more than 50 distinct values.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.record_columns import are_names
    >>> are_names(np.arange(200) % 70), are_names(np.arange(200) % 7)
    (True, False)
    """
    if not _are_whole(numbers):
        return False
    known = numbers[np.isfinite(numbers)]
    n_different = np.unique(known).size
    if n_different > MOST_CLASSES:
        return True
    return known.size >= LEAST_ROWS and n_different == known.size


def are_spread_evenly(numbers: np.ndarray) -> bool:
    """Return whether numbers are distinct integers, spread uniformly over their range.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.tables.record_columns import are_spread_evenly
    >>> numbers = np.random.default_rng(0).permutation(10**6)[:500] * 1.0
    >>> are_spread_evenly(numbers), are_spread_evenly(numbers**2)
    (True, False)
    """
    if numbers.size < LEAST_EVEN or not _are_whole(numbers):
        return False
    known = np.sort(numbers[np.isfinite(numbers)])
    if known.size < LEAST_EVEN or (np.diff(known) == 0).any():
        return False
    places = (known - known[0]) / (known[-1] - known[0])
    # The Kolmogorov-Smirnov distance to the uniform distribution, and Greenwood's sum
    # of squared gaps, which detects numbers in many groups.
    distance = np.abs(np.linspace(0, 1, known.size) - places).max()
    gaps = np.diff(places)
    is_uniform = distance * known.size**0.5 <= MOST_UNEVEN
    return bool(is_uniform and known.size * (gaps**2).sum() <= MOST_GREENWOOD)


def _are_whole(numbers: np.ndarray) -> bool:
    # The first values usually suffice to find a number that is not an integer.
    for values in (numbers[:1000], numbers):
        with np.errstate(over="ignore"):  # infinity is not whole
            # Numbers in text are read as float32. Rounding all numbers to float32 makes
            # the result independent of the format of the table.
            known = values[~np.isnan(values)].astype(np.float32)
        if not (np.isfinite(known) & (np.floor(known) == known)).all():
            return False
    return True


def sign_of(
    name: str, kind: str, numbers: np.ndarray, step: int, has_names: bool
) -> RecordSign | None:
    """Return why a column describes the record, or None if it does not.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : str
        Kind of the values: "number", "date" or another kind.
    numbers : ndarray
        Values of the column in equally spaced rows.
    step : int
        Distance between the rows in ``numbers``.
    has_names : bool
        Whether the table has column names. Without names, only columns that count 1, 2,
        3, ... are recognised.
    """
    why = ""
    if kind == "date":
        why = IS_DATED if has_names else ""
    elif kind == "number":
        if counts_rows(numbers, step, any_step=has_names):
            why = NUMBERS_ROWS
        elif has_names and is_identifying(name) and are_names(numbers):
            why = IDENTIFIES
    if not why:
        return None
    known = numbers[~np.isnan(numbers)]
    return RecordSign(
        why=why,
        share=np.unique(known).size / max(1, known.size),
        digest=sha256(numbers.tobytes()).digest(),
    )
