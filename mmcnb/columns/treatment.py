"""Decide whether and how columns are scaled.

The rule of ``scale="auto"`` was chosen on 185 raw data sets. The documentation page on
tables summarises the rule.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.columns.kinds import (
    FEW,
    MOST_MIXED,
    MOST_SEARCHED,
    ColumnName,
    SampleColumns,
    are_usual,
    label_of,
    listed,
    missing_marks,
    sentinels,
    weighted_moments,
)
from mmcnb.columns.rating_scales import Span, rating_scales
from mmcnb.columns.steps import SHORT, factor_of_levels, step_of_texts
from mmcnb.errors import InputError
from mmcnb.samples.derived import Scaling, scaled_matrix
from mmcnb.samples.encoding import Encoding

# Standard deviation to which columns of few values are scaled; numbers are scaled to 1.
# This value was chosen by the study `python -m benchmarks columns`. It is also the
# longest step of texts that are independent of each other.
STEP = SHORT
# A list has the weight of as many numbers as it has elements, but at most of four. In
# generated tables of 1 to 8 numbers and a list of 32 or 256 elements, clusters of the
# list are missed at a weight of one, and clusters of the numbers at a weight of nine.
MOST_OF_LIST = 4
# A numeric column has few levels if two random rows have the same value with at least
# this probability, among the rows that do not have the most frequent value.
FEW_LEVELS = 0.1
# If at least this share of the columns are ratings, the other columns count as a
# different kind.
MOSTLY_RATINGS = 0.9
UNITS_DIFFER = "their units differ"
KINDS_DIFFER = "their kinds differ"
Numbers = TypeVar("Numbers", float, np.ndarray)

Wish = str | float | None
"""What a user can request for a column: "auto", "standard", "log", None or a step."""


class ColumnRow(NamedTuple):
    """Entry for a table column in the report of a fit.

    Attributes
    ----------
    name : str or int
        Name of the column, or its index if columns have no names.
    kind : str or None
        Kind of the column, such as "number", "text" or "rating"; None if the column is
        left out.
    treatment : str
        Kind of scaling, such as "logarithm"; otherwise "as it is" or "left out".
    center, divisor : float or None
        Number that is subtracted from the values, and number by which the differences
        are divided. None if the column is left out, or if no columns are scaled.
    why : str
        Reason for the kind, or for leaving the column out.
    """

    name: ColumnName
    kind: str | None
    treatment: str
    center: float | None = None
    divisor: float | None = None
    why: str = ""


class Treatment(NamedTuple):
    """The decision whether and how to scale the columns in a fit, and its reason.

    Attributes
    ----------
    scaling : Scaling or None
        Scaling of the columns; None if they are not scaled.
    columns : SampleColumns or None
        Unscaled columns of the sample; None if the rows are sparse.
    sentence : str
        The treatment and its reason, for the report; empty if ``scale`` is None or
        "standard".
    listing : list of ColumnRow
        One entry for each table column. Empty if ``scale`` is None or "standard", if
        the rows are sparse, or if more than 1,000 columns are not scaled.
    only_units : bool
        Whether columns were scaled only because their units differ.
    """

    scaling: Scaling | None = None
    columns: SampleColumns | None = None
    sentence: str = ""
    listing: Sequence[ColumnRow] = ()
    only_units: bool = False

    def report(self, encoding: Encoding | None) -> dict[str, Any]:
        """Return the entries for the report of a fit.

        Parameters
        ----------
        encoding : Encoding or None
            Encoding of the table, which also names the columns that are left out. None
            if the rows do not come from a table.

        Returns
        -------
        dict
            Entries ``scaling`` (a sentence) and ``columns`` (a list of dictionaries).
            Empty entries are omitted.
        """
        rows = {str(row.name): row for row in self.listing}
        if encoding is not None:
            of_sample = rows
            rows = {}
            for column in encoding.columns:
                name = column.block or column.name
                if column.kind == "left out":
                    why = column.why or "it was not asked for"
                    row = ColumnRow(column.name, None, column.kind, why=why)
                    rows[column.name] = row
                elif name in of_sample:
                    rows[name] = of_sample[name]
                # If all columns are elements of one list, each has a name of its own.
                elif column.name in of_sample:
                    rows[column.name] = of_sample[column.name]
        report: dict[str, Any] = {}
        if self.sentence:
            report["scaling"] = self.sentence
        if rows:
            report["columns"] = [row._asdict() for row in rows.values()]
        return report

    def left_out(self, J: float, J_scaled: float) -> "Treatment":
        """Return a treatment that leaves the columns unscaled.

        Its sentence says that the clusters are better separated without scaling.

        Parameters
        ----------
        J : float
            J of the clusters found in unscaled columns.
        J_scaled : float
            J of the clusters found in scaled columns.
        """
        assert self.columns is not None
        sentence = (
            f"The columns separate better without scaling (J {J:.1f} against "
            f"{J_scaled:.1f}), so they were not scaled; perhaps they all share one "
            "unit. Pass scale='standard' to scale them."
        )
        return _as_they_are(self.columns, sentence)

    @property
    def sentinels(self) -> list[str]:
        """Messages about possible missing-value markers and unusual rows."""
        if self.columns is None or not self._is_raw:
            return []
        return [*sentinels(self.columns), *_unusual_rows(self.columns)]

    @property
    def doubts(self) -> list[str]:
        """Reasons to doubt the clusters: values that may mark missing values."""
        if self.columns is None or not self._is_raw:
            return []
        return [mark.doubt for mark in missing_marks(self.columns)]

    @property
    def _is_raw(self) -> bool:
        """Whether ``columns`` contains values of a table or an array before scaling."""
        return self.scaling is None or bool(self.sentence)


def treat(  # noqa: PLR0913
    scale: str | Mapping[ColumnName, Wish] | None,
    sample: np.ndarray | csr_array,
    moments: Scaling | None,
    weights: np.ndarray | None = None,
    sources: Sequence[str] | None = None,
    kept: str = "",
    is_part: bool = False,
    orders: Collection[str] = (),
) -> Treatment:
    """Decide the treatment of the columns from a sample of the rows.

    Parameters
    ----------
    scale : {None, "standard", "auto"} or dict
        If None, columns are not scaled. With "standard", each column is scaled to
        standard deviation 1. With "auto", the treatment is decided from the sample. A
        dict maps names or indices of columns to "log", "standard", None (unscaled) or a
        step; other columns are scaled as with "auto". The elements of a list share one
        name. Indices may be strings, as in a model file.
    sample : ndarray or csr_array of shape (m, d)
        The unscaled rows of the sample.
    moments : Scaling or None
        Scaling to standard deviation 1, computed from all rows, if ``scale`` is
        "standard"; otherwise None.
    weights : ndarray of shape (m,) or None, default=None
        Weights of the rows of the sample. If None, all weights are equal.
    sources : sequence of d str or None, default=None
        For each column, the name of the table column from which it is derived. If None,
        the columns have no names.
    kept : str, default=""
        Reason why "auto" must not scale the columns; empty if it may scale them.
    is_part : bool, default=False
        Whether the sample is only a part of the rows, so that its means are estimates.
    orders : collection of str, default=()
        Names of the table columns of ordered texts. In the sample, these texts are
        represented by their ranks.

    Returns
    -------
    Treatment

    Raises
    ------
    InputError
        If a dict is given for sparse rows, names an unknown column, or requests the
        logarithm of a text, a list or negative values.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.treatment import treat
    >>> rows = np.random.default_rng(0).normal(size=(99, 2)) * [1, 1000]
    >>> treat("auto", rows, None).sentence[:40]
    'Columns were scaled because their units '
    """
    wishes: Mapping[ColumnName, Wish] = {}
    if isinstance(scale, Mapping):
        wishes = scale
    if issparse(sample):
        if wishes:
            raise InputError(
                "scale is given by column, but the rows are sparse; "
                "give 'standard' or None."
            )
        sentence = ""
        if scale == "auto":
            sentence = "Columns were not scaled: the rows are sparse."
        return Treatment(moments, sentence=sentence)
    if weights is None:
        weights = np.ones(len(sample))
    columns = SampleColumns(sample, weights, sources, orders)
    if scale in (None, "standard"):
        return Treatment(moments, columns)
    if wishes:
        known = _known_wishes(wishes, columns.names)
        return _scaled(columns, known, "the scale parameter asks for it")
    reason = kept or _reason_to_keep(columns, is_part)
    if not reason:
        reason_to_scale = _reason_to_scale(columns)
        if reason_to_scale:
            return _scaled(columns, {}, reason_to_scale)
        reason = "they share one unit"
    return _as_they_are(columns, f"Columns were not scaled: {reason}.")


def centred(treatment: Treatment) -> Treatment:
    """Centre the columns if one is so far from 0 that rounding errors matter.

    Parameters
    ----------
    treatment : Treatment
        Treatment of rows for a method whose clusters do not depend on the origin.

    Returns
    -------
    Treatment
        A treatment that subtracts the midrange from each column, if the columns are
        unscaled and a midrange is more than 30 times the range of its column away from
        0. Otherwise, the given treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.treatment import centred, treat
    >>> centred(treat(None, np.array([[1e6], [1e6 + 2]]), None)).scaling
    Scaling(mean=array([1000001.]), deviation=array([1.]), units=None)
    """
    if treatment.scaling is not None or treatment.columns is None:
        return treatment
    low, high = treatment.columns.ends
    with np.errstate(over="ignore"):  # values may be near the largest float64
        width = high - low
        middle = low + width / 2
        is_far = np.abs(middle) > 30 * width
    if not (is_far & (high > low)).any():
        return treatment
    divisor = np.ones(middle.size)
    return treatment._replace(scaling=Scaling(middle, divisor))


# -- whether columns are scaled --------------------------------------------------------


def _known_wishes(
    scale: Mapping[ColumnName, Wish], names: Sequence[ColumnName]
) -> dict[ColumnName, Wish]:
    """Return the requested scalings by column name.

    Raise InputError if a requested column does not exist.
    """
    by_text = {str(name): name for name in names}
    wishes = {by_text.get(str(name), name): wish for name, wish in scale.items()}
    for name in wishes:
        if name not in names:
            columns = ", ".join(map(label_of, names[:10]))
            raise InputError(
                f"scale names {label_of(name)}, but the columns are {columns}; "
                "use one of these names."
            )
    return wishes


def _reason_to_keep(columns: SampleColumns, is_part: bool) -> str:
    """Return why columns must stay unscaled even if their spreads differ, or ""."""
    ratings = list(rating_scales(columns))
    n_columns = len(columns.names)
    others = np.delete(columns.n_values > 1, ratings)
    if len(ratings) >= MOSTLY_RATINGS * n_columns and others.any():
        return ""
    numbers = columns.first[(columns.n_values > FEW) & ~columns.is_text]
    if not numbers.size:
        return "no column has more than a few values"
    if columns.is_list.any():
        return ""  # with mixed kinds, a common range or row length has no meaning
    rows = columns.rows
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    is_one = np.abs(lengths - 1) <= 0.01
    if is_one.any() and (is_one | (lengths == 0)).all():
        return "all rows have length 1"
    low, high = columns.ends
    if low.size > 2 and numbers.size == low.size:
        mean, deviation = columns.moments
        tolerance = 1e-3
        if is_part:
            tolerance += 3 / np.sqrt(len(rows))  # three standard errors of the mean
        if (np.abs(mean) <= tolerance * deviation).all():
            return "they are centred already"
    least = low.min()
    greatest = high[numbers].max()
    n_greatest = np.count_nonzero(high[numbers] == greatest)
    if (low == least).mean() >= 0.9 and n_greatest >= max(2, numbers.size / 2):
        return f"they have one range, {least:g} to {greatest:g}"
    return ""


def _reason_to_scale(columns: SampleColumns) -> str:
    """Return why columns need scaling, or "" if they seem to have the same unit."""
    if columns.is_list.any():
        return KINDS_DIFFER
    is_number = columns.n_values > FEW
    is_few = ~is_number & (columns.n_values > 1)
    if len(columns.names) <= MOST_MIXED and (is_few | columns.is_text).any():
        return KINDS_DIFFER
    ratings = list(rating_scales(columns))
    if ratings and np.delete(is_number, ratings).any():
        return KINDS_DIFFER
    deviations = columns.moments[1]
    # Sorting makes the rounding of sums independent of the order of the columns.
    of_numbers = np.sort(deviations[columns.first[is_number & ~columns.is_text]])
    positive = of_numbers[of_numbers > 0]
    if positive.size < 2:
        return ""
    widest = positive.max()
    # Whether a single column has more than 90 % of the total variance.
    dominates = 0.9 * ((np.sort(deviations) / widest) ** 2).sum() < 1
    if np.log(positive).std() > 0.5:
        return UNITS_DIFFER
    if widest > 10 * np.median(positive) and dominates:
        return UNITS_DIFFER
    return ""


# -- the scaling of each column --------------------------------------------------------


class ColumnScale(NamedTuple):
    """Scaling of a table column to (x - center) / divisor, and its kind.

    If ``unit`` is not 0, x is first replaced by log(1 + x / unit).
    """

    treatment: str
    center: float = 0.0
    divisor: float = 1.0
    unit: float = 0.0


def _column_scale(
    columns: SampleColumns, k: int, wish: Wish, text_step: float
) -> ColumnScale:
    """Decide the scaling of a table column from its kind and from the request.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample.
    k : int
        Index of the table column.
    wish : {"auto", "standard", "log", None} or float
        The requested scaling. A number is a step.
    text_step : float
        Step of a text column for which no step is requested.
    """
    is_wide = columns.widths[k] > 1
    if wish == "log" and (is_wide or columns.ends[0, columns.first[k]] < 0):
        raise InputError(
            f"scale asks for the logarithm of {label_of(columns.names[k])}, which is "
            f"{'a list' if columns.is_list[k] else 'text'} or has values below 0; "
            "give 'standard'."
        )
    if wish is None or (columns.n_values[k] == 1 and not is_wide):
        return ColumnScale("as it is")
    if columns.is_text[k]:
        step = text_step if isinstance(wish, str) else float(wish)
        # Two different categories differ by 1 in two 0/1 columns. The divisor makes
        # their distance equal to the step.
        return ColumnScale("category", divisor=np.sqrt(2) / step)
    if columns.is_list[k]:
        weight = 1.0
        if not columns.is_circle(k):
            weight = np.sqrt(min(columns.widths[k], MOST_OF_LIST))
        if not isinstance(wish, str):
            weight = float(wish)
        return ColumnScale("list", divisor=_deviation_of_list(columns, k) / weight)
    return _number_scale(columns, k, wish)


def _number_scale(columns: SampleColumns, k: int, wish: str | float) -> ColumnScale:
    """Decide the scaling of a numeric column."""
    n_values = columns.n_values[k]
    step = STEP
    has_step = wish == "auto" and n_values <= FEW
    if not isinstance(wish, str):
        step = float(wish)
        has_step = True
    if has_step and n_values == 2:
        low, high = columns.ends[:, columns.first[k]]
        return ColumnScale("step", low, (high - low) / step)
    values = columns.rows[:, columns.first[k]].astype(np.float64)
    weights = columns.weights
    if has_step:
        mean, deviation = weighted_moments(values, weights)
        return ColumnScale("step", mean, deviation / step)
    wants_log = wish == "log"
    if wish == "auto" and not _has_few_levels(values, weights):
        wants_log = _wants_logarithm(values, weights)
    if wants_log:
        unit = _rounded(_unit(values, weights))
        mean, deviation = _moments(np.log1p(values / unit), weights, wish)
        return ColumnScale("logarithm", mean, deviation, unit)
    mean, deviation = _moments(values, weights, wish)
    return ColumnScale("deviation", mean, deviation)


def _moments(values: np.ndarray, weights: np.ndarray, wish: Wish) -> np.ndarray:
    """Return mean and standard deviation; exclude outliers if ``wish`` is "auto"."""
    if wish == "auto":
        is_usual = are_usual(values, weights)
        values = values[is_usual]
        weights = weights[is_usual]
    return weighted_moments(values, weights)


def _deviation_of_list(columns: SampleColumns, k: int) -> float:
    """Return the square root of the total variance of a list, or 1 if this is 0."""
    first = columns.first[k]
    deviations = columns.moments[1, first : first + columns.widths[k]]
    return float(np.linalg.norm(deviations)) or 1.0


def _scaled(
    columns: SampleColumns, wishes: Mapping[ColumnName, Wish], reason: str
) -> Treatment:
    """Return a treatment that scales the columns and states the reason for this."""
    ratings = rating_scales(columns)
    wish_of: list[Wish] = []
    for k, name in enumerate(columns.names):
        wish = wishes.get(name, "auto")
        if k in ratings and wish == "auto":
            wish = "standard"
        wish_of.append(wish)
    scales = _scales(columns, wish_of)
    of_table = _rounded(np.array([scale[1:] for scale in scales]))
    scaling = _scaling(columns, of_table)
    listing = []
    for k, scale in enumerate(scales):
        row = _row(columns, k, scale.treatment, ratings.get(k))
        listing.append(
            row._replace(center=float(of_table[k, 0]), divisor=float(of_table[k, 1]))
        )
    return Treatment(
        scaling=scaling,
        columns=columns,
        sentence=_scaled_sentence(reason, listing),
        listing=listing,
        only_units=reason == UNITS_DIFFER,
    )


def _scales(columns: SampleColumns, wishes: Sequence[Wish]) -> list[ColumnScale]:
    """Decide the scaling of each column of the table.

    Texts come last, because their step depends on the scaled values of the other
    columns.
    """
    scales = [_column_scale(columns, k, wish, STEP) for k, wish in enumerate(wishes)]
    _shorten_levels(columns, scales, wishes)
    is_text = columns.is_text
    if is_text.any() and not is_text.all():
        step = step_of_texts(columns, _scaled_rows(columns, scales, ~is_text))
        for k in np.flatnonzero(is_text).tolist():
            scales[k] = _column_scale(columns, k, wishes[k], step)
    return scales


def _shorten_levels(
    columns: SampleColumns, scales: list[ColumnScale], wishes: Sequence[Wish]
) -> None:
    """Reduce the weight of numbers with few levels if levels would cut clusters.

    The entries of ``scales`` are replaced.
    """
    if len(columns.names) > MOST_SEARCHED:
        return
    is_level = np.zeros(len(scales), bool)
    for k, values in columns.numbers(columns.n_values > 1):
        is_level[k] = wishes[k] == "auto" and _has_few_levels(values, columns.weights)
    is_other = ~is_level & ~columns.is_text & (columns.n_values > 1)
    if not is_level.any() or is_other.sum() < 2:
        return
    factor = factor_of_levels(
        columns,
        _scaled_rows(columns, scales, is_level),
        _scaled_rows(columns, scales, is_other),
    )
    if factor == 1:
        return
    for k in np.flatnonzero(is_level).tolist():
        treatment = scales[k].treatment
        scales[k] = scales[k]._replace(
            treatment="step" if treatment == "deviation" else treatment,
            divisor=scales[k].divisor / factor,
        )


def _has_few_levels(values: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether two random rows often have the same value.

    Rows with the most frequent value are excluded, so that a column of many values,
    most of which are 0, does not have few levels.
    """
    codes = np.unique(values, return_inverse=True)[1]
    sums = np.bincount(codes, weights)
    sums[sums.argmax()] = 0
    shares = sums / (sums.sum() or 1.0)
    # The sum is rounded, so that weights and repeated rows give the same answer.
    return bool(_rounded(float(shares @ shares)) >= FEW_LEVELS)


def _scaled_rows(
    columns: SampleColumns, scales: Sequence[ColumnScale], which: np.ndarray
) -> np.ndarray:
    """Return the rows of the sample with the columns in ``which`` only, scaled."""
    scaling = _scaling(columns, _rounded(np.array([scale[1:] for scale in scales])))
    is_in = which.repeat(columns.widths)
    units = None if scaling.units is None else scaling.units[is_in]
    of_these = Scaling(scaling.mean[is_in], scaling.deviation[is_in], units)
    return scaled_matrix(columns.rows[:, is_in], of_these)


def _scaling(columns: SampleColumns, of_table: np.ndarray) -> Scaling:
    """Expand the center, divisor and unit of table columns to sample columns."""
    center, divisor, units = of_table.T.repeat(columns.widths, axis=1)
    of_lists = columns.is_list.repeat(columns.widths)
    center[of_lists] = _rounded(columns.moments[0, of_lists])
    return Scaling(center, divisor, units if units.any() else None)


def _as_they_are(columns: SampleColumns, sentence: str) -> Treatment:
    listing: list[ColumnRow] = []
    if len(columns.names) <= 1000:  # nobody would read a longer listing
        ratings = rating_scales(columns)
        for k in range(len(columns.names)):
            listing.append(_row(columns, k, "as it is", ratings.get(k)))
    return Treatment(None, columns, sentence, listing)


def _row(
    columns: SampleColumns, k: int, treatment: str, rating: Span | None = None
) -> ColumnRow:
    """Return the listing entry of a column; its center and divisor are set later."""
    n_values = int(columns.n_values[k])
    kind = "number"
    why = "many values"
    if columns.is_text[k]:
        kind = "text"
        why = f"{n_values} categories"
    elif columns.is_list[k]:
        kind = "list"
        why = f"{columns.widths[k]} numbers"
    elif n_values == 1:
        kind = "constant"
        why = "one value"
    elif columns.names[k] in columns.orders:
        kind = "order"
        why = "ordered texts"
    elif rating is not None:
        kind = "rating"
        why = f"whole numbers from {rating.low:g} to {rating.high:g}"
    elif n_values <= FEW:
        kind = "few values"
        why = f"{n_values} values"
    elif treatment == "step":
        why = "few levels"
    elif treatment == "logarithm":
        why = "skewed"
    return ColumnRow(columns.names[k], kind, treatment, why=why)


def _scaled_sentence(reason: str, listing: Sequence[ColumnRow]) -> str:
    names: dict[str, list[ColumnName]] = {}
    for row in listing:
        names.setdefault(row.treatment, []).append(row.name)
    parts = []
    ratings = [row.name for row in listing if row.kind == "rating"]
    logarithms = names.get("logarithm", [])
    n_numbers = len(names.get("deviation", [])) + len(logarithms)
    if n_numbers:
        numbers = f"{n_numbers} number{'s' * (n_numbers > 1)} to standard deviation 1"
        if logarithms:
            numbers += f" ({listed(logarithms)} by the logarithm)"
        if ratings:
            numbers += f", also the ratings {listed(ratings)}"
            numbers += f" (scale={{{ratings[0]!r}: {STEP}}} gives a rating a step)"
        parts.append(numbers)
    if "step" in names:
        parts.append(f"{listed(names['step'])} to steps")
    if "category" in names:
        parts.append(f"texts ({listed(names['category'])}) to steps")
    if "list" in names:
        parts.append(f"lists ({listed(names['list'])}) as a whole")
    return (
        f"Columns were scaled because {reason}: {', '.join(parts) or 'none'}; "
        "scale=None leaves them unscaled."
    )


def _rounded(values: Numbers) -> Numbers:
    """Round numbers to 24 bits, so that weighting and repeating rows are equivalent.

    Otherwise, a weighted sum and a sum over repeated rows may differ in the last bits.
    """
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2.0**24) / 2.0**24, exponent)


def _skewness(values: np.ndarray, weights: np.ndarray) -> float:
    mean, deviation = weighted_moments(values, weights)
    if deviation == 0:
        return 0.0
    return float(weights @ ((values - mean) / deviation) ** 3 / weights.sum())


def _wants_logarithm(values: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether values are nonnegative, skewed, and less skewed as logarithms."""
    if values.min() < 0:
        return False
    is_usual = are_usual(values, weights)
    skewness = _skewness(values[is_usual], weights[is_usual])
    if skewness < 1:
        return False
    logarithms = np.log1p(values[is_usual] / _unit(values, weights))
    return abs(_skewness(logarithms, weights[is_usual])) < skewness


def _unusual_rows(columns: SampleColumns) -> list[str]:
    """Return a message if some rows have unusual values in most columns.

    Otherwise, the list is empty. Values in a long tail of nonnegative numbers do not
    count as unusual if their logarithms are close to the logarithms of the other
    values.
    """
    if len(columns.names) > MOST_SEARCHED:
        return []
    n_unusual = np.zeros(len(columns.rows), np.int64)
    numbers = dict(columns.numbers(columns.n_values > FEW))
    for values in numbers.values():
        is_usual = are_usual(values, columns.weights)
        if values.min() >= 0:
            logarithms = np.log1p(values / _unit(values, columns.weights))
            is_usual |= are_usual(logarithms, columns.weights)
        n_unusual += ~is_usual
    rows = np.flatnonzero(n_unusual > len(numbers) / 2)
    if len(numbers) < 2 or rows.size == 0:
        return []
    farthest = max(
        numbers,
        key=lambda k: abs(numbers[k][rows[0]]) / (np.abs(numbers[k]).mean() or 1.0),
    )
    name = label_of(columns.names[farthest])
    example = f"{name} is {numbers[farthest][rows[0]]:g}"
    n_rows = f"{len(columns.rows):,} rows looked at"
    if rows.size == 1:
        return [
            f"1 of {n_rows} is far from all others in most numeric columns ({example});"
            " if it contains totals or errors, leave it out."
        ]
    return [
        f"{rows.size:,} of {n_rows} are far from all others in most numeric columns (in"
        f" one, {example}); if they contain totals or errors, leave them out."
    ]


def _unit(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the lower weighted median of the positive values."""
    order = np.argsort(values, kind="stable")[np.count_nonzero(values <= 0) :]
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2 * (1 - 1e-12))])
