"""The treatment of columns: whether they are scaled, and by what.

The rule of ``scale="auto"`` was chosen on 185 raw data sets. The page on tables has it
in ten lines.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.columns.kinds import (
    FEW,
    MOST_MIXED,
    ColumnName,
    SampleColumns,
    label_of,
    listed,
    missing_marks,
    sentinels,
    weighted_moments,
)
from mmcnb.columns.rating_scales import Span, rating_scales
from mmcnb.columns.text_step import SHORTEST, step_of_texts
from mmcnb.errors import InputError
from mmcnb.samples.derived import Scaling, scaled_matrix
from mmcnb.samples.encoding import Encoding

# Deviation of a column of few values when numbers have deviation 1, by the study
# `python -m benchmarks columns`; and the shortest step of texts.
STEP = SHORTEST
# A list beside other columns weighs as its elements, up to four numbers: on made tables
# of 1 to 8 numbers and a list of 32 or 256, a weight of one loses the clusters of the
# list, and a weight of nine those of the numbers.
MOST_OF_LIST = 4
MOSTLY_RATINGS = 0.9  # share of ratings that are another kind than the other columns
UNITS_DIFFER = "their units differ"
KINDS_DIFFER = "their kinds differ"
Numbers = TypeVar("Numbers", float, np.ndarray)

Wish = str | float | None
"""What is asked for a column: "auto", "standard", "log", None or a step."""


class ColumnRow(NamedTuple):
    """A column of the table in the report of a fit; ``why`` explains its treatment."""

    name: ColumnName
    kind: str | None
    treatment: str
    center: float | None = None
    divisor: float | None = None
    why: str = ""


class Treatment(NamedTuple):
    """The treatment of the columns of a fit.

    Attributes
    ----------
    scaling : Scaling or None
        None if they are taken as they are.
    columns : SampleColumns or None
        Those of the sample, not scaled; None if rows are sparse.
    sentence : str
        The treatment and its reason; empty if a parameter says it.
    listing : list of ColumnRow
        One a column of the table.
    only_units : bool
        Whether they were scaled only because their units differ.
    """

    scaling: Scaling | None = None
    columns: SampleColumns | None = None
    sentence: str = ""
    listing: Sequence[ColumnRow] = ()
    only_units: bool = False

    def report(self, encoding: Encoding | None) -> dict[str, Any]:
        """Return its entries in the report of a fit, with the columns left out."""
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
                elif column.name in of_sample:  # the lists are the rows themselves
                    rows[column.name] = of_sample[column.name]
        report: dict[str, Any] = {}
        if self.sentence:
            report["scaling"] = self.sentence
        if rows:
            report["columns"] = [row._asdict() for row in rows.values()]
        return report

    def left_out(self, J: float, J_scaled: float) -> "Treatment":
        """Return columns as they are, because these separate better."""
        assert self.columns is not None
        sentence = (
            f"As they are, the columns separate better (J {J:.1f} against "
            f"{J_scaled:.1f}), so they were not scaled: perhaps all share one unit; "
            "scale='standard' scales them."
        )
        return _as_they_are(self.columns, sentence)

    @property
    def sentinels(self) -> list[str]:
        """Sentences about values that may mark missing ones, if columns are raw."""
        if self.columns is None or not self._is_raw:
            return []
        return sentinels(self.columns)

    @property
    def doubts(self) -> list[str]:
        """What values that may mark missing ones say against any clusters."""
        if self.columns is None or not self._is_raw:
            return []
        return [mark.doubt for mark in missing_marks(self.columns)]

    @property
    def _is_raw(self) -> bool:
        """Whether the columns are those of a table or an array, not yet scaled."""
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
    """Decide the treatment of the columns, by a sample of the rows.

    Parameters
    ----------
    scale : {None, "standard", "auto"} or dict
        A dict has "log", "standard", None (as it is) or a step for some columns, by
        name or number; the others are treated as by "auto", and scaled. A list of
        numbers has one name. A number may be text, as it is in a model file.
    sample : ndarray or csr_array of shape (m, d)
        The sample, not scaled.
    moments : Scaling or None
        The scaling of "standard", by all rows.
    weights : ndarray of shape (m,) or None, default=None
        Weights of the sample.
    sources : sequence of d str or None, default=None
        Name of the table's column behind each column.
    kept : str, default=""
        Why "auto" takes columns as they are, if that is known.
    is_part : bool, default=False
        Whether there are more rows than the sample, whose means are not those of all.
    orders : collection of str, default=()
        Names of the table's columns whose numbers are the places of ordered texts.

    Returns
    -------
    Treatment

    Raises
    ------
    InputError
        A dict names no column, or asks for a logarithm that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.treatment import treat
    >>> rows = np.random.default_rng(0).normal(size=(99, 2)) * [1, 1000]
    >>> treat("auto", rows, None).sentence[:40]
    'Columns were scaled, as their units diff'
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
            sentence = "Columns were taken as they are: sparse."
        return Treatment(moments, sentence=sentence)
    if weights is None:
        weights = np.ones(len(sample))
    columns = SampleColumns(sample, weights, sources, orders)
    if scale in (None, "standard"):
        return Treatment(moments, columns)
    if wishes:
        known = _known_wishes(wishes, columns.names)
        return _scaled(columns, known, "they are asked for")
    reason = kept or _reason_to_keep(columns, is_part)
    if not reason:
        reason_to_scale = _reason_to_scale(columns)
        if reason_to_scale:
            return _scaled(columns, {}, reason_to_scale)
        reason = "they share one unit"
    return _as_they_are(columns, f"Columns were taken as they are: {reason}.")


def centred(treatment: Treatment) -> Treatment:
    """Center the columns if rounding would decide, as one lies too far from 0.

    Parameters
    ----------
    treatment : Treatment
        Of rows whose clusters do not depend on the origin.

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
    with np.errstate(over="ignore"):  # ends may be near the largest float64
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
    """Return the wish for each column that ``scale`` names, by name or number."""
    by_text = {str(name): name for name in names}
    wishes = {by_text.get(str(name), name): wish for name, wish in scale.items()}
    for name in wishes:
        if name not in names:
            columns = ", ".join(map(label_of, names[:10]))
            raise InputError(
                f"scale names {label_of(name)}, and the columns are {columns}; "
                "name one of these."
            )
    return wishes


def _reason_to_keep(columns: SampleColumns, is_part: bool) -> str:
    """Return why columns are kept, whatever their deviations; empty if nothing is."""
    ratings = list(rating_scales(columns))
    n_columns = len(columns.names)
    others = np.delete(columns.n_values > 1, ratings)
    if len(ratings) >= MOSTLY_RATINGS * n_columns and others.any():
        return ""
    numbers = columns.first[(columns.n_values > FEW) & ~columns.is_text]
    if not numbers.size:
        return "no column has more than a few values"
    if columns.is_list.any():
        return ""  # their range and length are not those of the other columns
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
            tolerance += 3 / np.sqrt(len(rows))  # standard errors of a mean
        if (np.abs(mean) <= tolerance * deviation).all():
            return "they are centred already"
    least = low.min()
    greatest = high[numbers].max()
    n_greatest = np.count_nonzero(high[numbers] == greatest)
    if (low == least).mean() >= 0.9 and n_greatest >= max(2, numbers.size / 2):
        return f"they have one range, {least:g} to {greatest:g}"
    return ""


def _reason_to_scale(columns: SampleColumns) -> str:
    """Return why columns are scaled; empty if they share one unit."""
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
    # Sorted numbers have the same sum in any order of the columns.
    of_numbers = np.sort(deviations[columns.first[is_number & ~columns.is_text]])
    positive = of_numbers[of_numbers > 0]
    if positive.size < 2:
        return ""
    widest = positive.max()
    # One column has more than 0.9 of the variance.
    dominates = 0.9 * ((np.sort(deviations) / widest) ** 2).sum() < 1
    if np.log(positive).std() > 0.5:
        return UNITS_DIFFER
    if widest > 10 * np.median(positive) and dominates:
        return UNITS_DIFFER
    return ""


# -- the scaling of each column --------------------------------------------------------


class ColumnScale(NamedTuple):
    """Scaling (x - center) / divisor; of log(1 + x / unit) if there is a unit."""

    treatment: str
    center: float = 0.0
    divisor: float = 1.0
    unit: float = 0.0


def _column_scale(
    columns: SampleColumns, k: int, wish: Wish, text_step: float
) -> ColumnScale:
    """Decide the scaling of a column of the table, by its kind or by a wish."""
    is_wide = columns.widths[k] > 1
    if wish == "log" and (is_wide or columns.ends[0, columns.first[k]] < 0):
        raise InputError(
            f"scale asks for the logarithm of {label_of(columns.names[k])}, which has "
            f"{'a list' if columns.is_list[k] else 'text'} or values below 0; "
            "give 'standard'."
        )
    if wish is None or (columns.n_values[k] == 1 and not is_wide):
        return ColumnScale("as it is")
    if columns.is_text[k]:
        step = text_step if isinstance(wish, str) else float(wish)
        # Rows of two categories differ in two columns, so their distance is the step.
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
    """Decide the scaling of a column that is one number."""
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
    if wish == "log" or (wish == "auto" and _wants_logarithm(values, weights)):
        unit = _rounded(_unit(values, weights))
        mean, deviation = weighted_moments(np.log1p(values / unit), weights)
        return ColumnScale("logarithm", mean, deviation, unit)
    mean, deviation = weighted_moments(values, weights)
    return ColumnScale("deviation", mean, deviation)


def _deviation_of_list(columns: SampleColumns, k: int) -> float:
    """Return the root of the sum of the variances of its elements; 1 if it is 0."""
    first = columns.first[k]
    deviations = columns.moments[1, first : first + columns.widths[k]]
    return float(np.linalg.norm(deviations)) or 1.0


def _scaled(
    columns: SampleColumns, wishes: Mapping[ColumnName, Wish], reason: str
) -> Treatment:
    """Scale all columns, for a reason."""
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
    """Decide the scaling of each column, and of texts after that of all others."""
    scales = [_column_scale(columns, k, wish, STEP) for k, wish in enumerate(wishes)]
    if not columns.is_text.any() or columns.is_text.all():
        return scales
    scaling = _scaling(columns, _rounded(np.array([scale[1:] for scale in scales])))
    is_other = ~columns.is_text.repeat(columns.widths)
    units = None if scaling.units is None else scaling.units[is_other]
    of_others = Scaling(scaling.mean[is_other], scaling.deviation[is_other], units)
    others = scaled_matrix(columns.rows[:, is_other], of_others)
    step = step_of_texts(columns, others)
    for k in np.flatnonzero(columns.is_text).tolist():
        scales[k] = _column_scale(columns, k, wishes[k], step)
    return scales


def _scaling(columns: SampleColumns, of_table: np.ndarray) -> Scaling:
    """Return the scaling of the sample for center, divisor and unit of each column."""
    center, divisor, units = of_table.T.repeat(columns.widths, axis=1)
    of_lists = columns.is_list.repeat(columns.widths)
    center[of_lists] = _rounded(columns.moments[0, of_lists])
    return Scaling(center, divisor, units if units.any() else None)


def _as_they_are(columns: SampleColumns, sentence: str) -> Treatment:
    listing: list[ColumnRow] = []
    if len(columns.names) <= 1000:  # nobody reads a listing of very many columns
        ratings = rating_scales(columns)
        for k in range(len(columns.names)):
            listing.append(_row(columns, k, "as it is", ratings.get(k)))
    return Treatment(None, columns, sentence, listing)


def _row(
    columns: SampleColumns, k: int, treatment: str, rating: Span | None = None
) -> ColumnRow:
    """Return a row of the listing, without numbers."""
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
        numbers = f"{n_numbers} number{'s' * (n_numbers > 1)} to deviation 1"
        if logarithms:
            numbers += f" ({listed(logarithms)} by the logarithm)"
        if ratings:
            numbers += f", also the ratings {listed(ratings)}"
            numbers += f" (scale={{{ratings[0]!r}: {STEP}}} gives one a step)"
        parts.append(numbers)
    if "step" in names:
        parts.append(f"{listed(names['step'])} to steps")
    if "category" in names:
        parts.append(f"texts ({listed(names['category'])}) to steps")
    if "list" in names:
        parts.append(f"lists ({listed(names['list'])}) as a whole")
    return (
        f"Columns were scaled, as {reason}: {', '.join(parts) or 'none'}; "
        "scale=None takes them as they are."
    )


def _rounded(values: Numbers) -> Numbers:
    """Round numbers to 24 bits, so that weights give the numbers of repeated rows.

    A weighted sum and a sum over repetitions differ in their last bits.
    """
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2.0**24) / 2.0**24, exponent)


def _skewness(values: np.ndarray, weights: np.ndarray) -> float:
    mean, deviation = weighted_moments(values, weights)
    if deviation == 0:
        return 0.0
    return float(weights @ ((values - mean) / deviation) ** 3 / weights.sum())


def _wants_logarithm(values: np.ndarray, weights: np.ndarray) -> bool:
    """Whether values are not negative, with a long tail that the logarithm shortens."""
    if values.min() < 0:
        return False
    skewness = _skewness(values, weights)
    if skewness < 1:
        return False
    logarithms = np.log1p(values / _unit(values, weights))
    return abs(_skewness(logarithms, weights)) < skewness


def _unit(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the lower weighted median of the values above 0."""
    order = np.argsort(values, kind="stable")[np.count_nonzero(values <= 0) :]
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2 * (1 - 1e-12))])
