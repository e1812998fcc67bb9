"""Columns of raw tables: how they are made comparable, and whether one or two of them make the clusters.

The rule of ``scale="auto"`` was chosen on 185 raw data sets. The page on tables has it
in ten lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from scipy.special import entr

from mmcnb.errors import InputError
from mmcnb.samples.derived import Scaling
from mmcnb.samples.encoding import Encoding

# of a column of few values, when numbers have deviation 1: `python -m benchmarks
# columns`
STEP = 0.35
FEW = 5  # values of a column that is no number but has steps
MOST_MIXED = 100  # columns; of more, few-valued ones are no other kind but small counts
COUNTED = 10  # more values of a column are not counted: it has many
# Shares of the entropy of the labels: such columns tell more than the first, others
# less than the second.
ALONE = 0.6
OTHERS = 0.2


@dataclass(frozen=True)
class Columns:
    """The columns of a dense sample, by the columns of the table that they come from.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        The sample, not scaled.
    weights : ndarray of shape (m,)
        Weights of its rows.
    sources : sequence of d str or None
        Name of the table's column behind each column. A text has one column of 0 and 1
        for each category.
    """

    rows: np.ndarray
    weights: np.ndarray
    sources: Sequence[str] | None = None

    @cached_property
    def groups(self) -> list[slice]:
        """Columns of each column of the table."""
        sources = range(self.rows.shape[1]) if self.sources is None else self.sources
        ends = np.cumsum(
            [0, *(len(list(same)) for _, same in groupby(sources))]
        ).tolist()
        return [slice(*ends[k : k + 2]) for k in range(len(ends) - 1)]

    @cached_property
    def names(self) -> list[Any]:
        """Name of each column of the table; its number if it has none."""
        return [
            group.start if self.sources is None else self.sources[group.start]
            for group in self.groups
        ]

    @cached_property
    def is_text(self) -> np.ndarray:
        """Which of them are texts of two or more categories."""
        return np.array([group.stop - group.start > 1 for group in self.groups])

    @cached_property
    def n_values(self) -> np.ndarray:
        """Different values of each, counted up to 11; categories of a text."""
        head = np.sort(
            self.rows[:200], axis=0
        )  # a few rows mostly show that there are many
        counts = 1 + np.count_nonzero(head[1:] != head[:-1], axis=0)
        for column in np.flatnonzero(counts <= COUNTED):
            count = np.unique(self.rows[:2000, column]).size
            counts[column] = (
                count if count > COUNTED else np.unique(self.rows[:, column]).size
            )
        sizes = np.array([group.stop - group.start for group in self.groups])
        of_numbers = np.minimum(
            counts[[group.start for group in self.groups]], COUNTED + 1
        )
        return np.where(sizes > 1, sizes, of_numbers)

    @cached_property
    def ends(self) -> np.ndarray:
        """Least and greatest values of all columns of numbers, of shape (2, d)."""
        return np.array([self.rows.min(axis=0), self.rows.max(axis=0)], np.float64)

    @cached_property
    def moments(self) -> np.ndarray:
        """Weighted means and deviations of all columns of numbers, of shape (2, d)."""
        return np.array(
            [_moments(one.astype(np.float64), self.weights) for one in self.rows.T]
        ).T

    def numbers(self, which: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Number and values of some of them that are no texts, float64."""
        for k in np.flatnonzero(which & ~self.is_text).tolist():
            yield k, self.rows[:, self.groups[k].start].astype(np.float64)

    def codes(self, k: int) -> np.ndarray:
        """Whole numbers for the values of one of them."""
        values = self.rows[:, self.groups[k]]
        if self.is_text[k]:
            return np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0)
        return np.unique(values[:, 0], return_inverse=True)[1]


def shown(name: Any) -> str:
    """A name for messages.

    Examples
    --------
    >>> from mmcnb.columns.columns import shown
    >>> shown("plan"), shown(3)
    ("'plan'", 'column 3')
    """
    return repr(name) if isinstance(name, str) else f"column {name}"


# -- treatment -------------------------------------------------------------------------


class Treatment(NamedTuple):
    """The treatment of the columns of a fit.

    Attributes
    ----------
    scaling : Scaling or None
        None if they are taken as they are.
    columns : Columns or None
        Those of the sample, not scaled; None if rows are sparse.
    sentence : str
        The treatment and its reason; empty if a parameter says it.
    listing : list of dict
        For each column of the table "name", "kind", "treatment", "center", "divisor"
        and "why".
    only_units : bool
        Whether nothing but their units spoke for scaling.
    """

    scaling: Scaling | None = None
    columns: Columns | None = None
    sentence: str = ""
    listing: Sequence[dict[str, Any]] = ()
    only_units: bool = False

    def report(self, encoding: Encoding | None) -> dict[str, Any]:
        """Its entries in the report of a fit, with the columns of a table that are no features."""
        rows = {str(row["name"]): row for row in self.listing}
        for one in () if encoding is None else encoding.columns:
            if one.kind == "left out":
                why = one.why or "it was not asked for"
                rows[one.name] = _row(one.name, None, "left out", None, None, why)
        names = (
            rows
            if encoding is None
            else [one.name for one in encoding.columns if one.name in rows]
        )
        shown = {"columns": [rows[name] for name in names]} if rows else {}
        return {"scaling": self.sentence, **shown} if self.sentence else shown

    def left_out(self, J: float, J_scaled: float) -> "Treatment":
        """Columns as they are, because these separate better."""
        sentence = (
            f"As they are, the columns separate better (J {J:.1f} against {J_scaled:.1f}), so they were not "
            "scaled: perhaps all share one unit; scale='standard' scales them."
        )
        assert self.columns is not None
        return _as_they_are(self.columns, sentence)

    @property
    def sentinels(self) -> list[str]:
        """Sentences about values that stand for missing ones, if the columns are as they were given."""
        is_raw = self.scaling is None or bool(self.sentence)
        return sentinels(self.columns) if self.columns is not None and is_raw else []


def treat(
    scale: Any,
    sample: Any,
    moments: Scaling | None,
    weights: np.ndarray | None = None,
    sources: Sequence[str] | None = None,
    kept: str = "",
    is_part: bool = False,
) -> Treatment:
    """Decide the treatment of the columns, by a sample of the rows.

    Parameters
    ----------
    scale : {None, "standard", "auto"} or dict
        A dict has "log", "standard", None (as it is) or a step for some columns, by
        name or number; the others are treated as by "auto", and scaled. A number may be
        text, as it is in a model file.
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
    >>> from mmcnb.columns.columns import treat
    >>> rows = np.random.default_rng(0).normal(size=(99, 2)) * [1, 1000]
    >>> treat("auto", rows, None).sentence[:40]
    'Columns were scaled, as their units diff'
    """
    wishes = scale if isinstance(scale, Mapping) else {}
    if issparse(sample):
        if wishes:
            raise InputError(
                "scale is given by column, but the rows are sparse; give 'standard' or None."
            )
        return Treatment(
            moments,
            None,
            "" if scale != "auto" else "Columns were taken as they are: sparse.",
        )
    columns = Columns(
        sample, np.ones(len(sample)) if weights is None else weights, sources
    )
    if scale in (None, "standard"):
        return Treatment(moments, columns)
    by_text = {str(name): name for name in columns.names}
    wishes = {by_text.get(str(name), name): wish for name, wish in wishes.items()}
    for name in wishes:
        if name not in columns.names:
            listed = ", ".join(map(shown, columns.names[:10]))
            raise InputError(
                f"scale names {shown(name)}, and the columns are {listed}; name one of these."
            )
    kept = kept or ("" if wishes else _reason_to_keep(columns, is_part))
    why = "they are asked for" if wishes else "" if kept else _reason_to_scale(columns)
    if not why:
        return _as_they_are(
            columns, f"Columns were taken as they are: {kept or 'they share one unit'}."
        )
    return _scaled(columns, wishes, why)


def centred(treatment: Treatment) -> Treatment:
    """Columns centred if one lies so far from 0, beside its range, that rounding would decide.

    Parameters
    ----------
    treatment : Treatment
        Of rows whose clusters do not depend on the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.columns import centred, treat
    >>> centred(treat(None, np.array([[1e6], [1e6 + 2]]), None)).scaling
    Scaling(mean=array([1000001.]), deviation=array([1.]), units=None)
    """
    if treatment.scaling is not None or treatment.columns is None:
        return treatment
    low, high = treatment.columns.ends
    middle = low + (high - low) / 2
    if not ((np.abs(middle) > 30 * (high - low)) & (high > low)).any():
        return treatment
    return treatment._replace(scaling=Scaling(middle, np.ones(middle.size)))


UNITS = "their units differ"
KINDS = "their kinds differ"


def _reason_to_keep(columns: Columns, is_part: bool) -> str:
    """Why columns are not scaled, whatever their deviations; empty if nothing speaks for it."""
    (low, high), is_number = columns.ends, (columns.n_values > FEW) & ~columns.is_text
    numbers = np.array([group.start for group in columns.groups])[is_number]
    if not numbers.size:
        return "no column has more than a few values"
    lengths = np.sqrt(
        np.einsum("ij,ij->i", columns.rows, columns.rows, dtype=np.float64)
    )
    is_one = np.abs(lengths - 1) <= 0.01
    if is_one.any() and (is_one | (lengths == 0)).all():
        return "all rows have length 1"
    if low.size > 2 and numbers.size == low.size:
        mean, deviation = columns.moments
        if (
            np.abs(mean)
            <= (1e-3 + is_part * 3 / np.sqrt(len(columns.rows))) * deviation
        ).all():
            return "they are centred already"
    least = low.min()
    greatest = high[numbers].max()
    reach = np.count_nonzero(high[numbers] == greatest)
    if (low == least).mean() >= 0.9 and reach >= max(2, numbers.size / 2):
        return f"they have one range, {least:g} to {greatest:g}"
    return ""


def _reason_to_scale(columns: Columns) -> str:
    """Why columns are scaled; empty if they share one unit."""
    many = columns.n_values > FEW
    few = ~many & (columns.n_values > 1)
    if len(columns.names) <= MOST_MIXED and (few | columns.is_text).any():
        return KINDS
    _, deviation = columns.moments
    own = deviation[[columns.groups[k].start for k, _ in columns.numbers(many)]]
    own = own[own > 0]
    if own.size < 2:
        return ""
    is_widest = (
        own.max() > 10 * np.median(own)
        and 0.9 * ((deviation / own.max()) ** 2).sum() < 1
    )
    return UNITS if np.log(own).std() > 0.5 or is_widest else ""


def _scaled(columns: Columns, wishes: Mapping[Any, Any], why: str) -> Treatment:
    """All columns scaled, for a reason."""
    low, high = columns.ends
    center = np.zeros(low.size)
    divisor = np.ones(low.size)
    units = np.zeros(low.size)
    listing = []
    for k, (name, group) in enumerate(zip(columns.names, columns.groups, strict=True)):
        wish = wishes.get(name, "auto")
        first = group.start
        count = columns.n_values[k]
        is_text = columns.is_text[k]
        if wish == "log" and (is_text or low[first] < 0):
            fault = f"scale asks for the logarithm of {shown(name)}, which has text or values below 0"
            raise InputError(f"{fault}; give 'standard'.")
        step = STEP if wish is None or isinstance(wish, str) else float(wish)
        is_step = step is not STEP or (count <= FEW and wish == "auto")
        treatment = "step" if is_step else "deviation"
        if wish is None or (count < 2 and not is_text):
            treatment = "as it is"
        elif is_text:
            treatment = "category"
            divisor[group] = np.sqrt(2) / step
        elif count == 2 and is_step:
            center[first], divisor[first] = (
                low[first],
                (high[first] - low[first]) / step,
            )
        else:
            values = columns.rows[:, first].astype(np.float64)
            is_free = wish == "auto" and not is_step
            if wish == "log" or (is_free and _wants_logarithm(values, columns.weights)):
                treatment = "logarithm"
                units[first] = _rounded(_unit(values, columns.weights))
                values = np.log1p(values / units[first])
            center[first], deviation = _moments(values, columns.weights)
            divisor[first] = deviation / step if is_step else deviation
        center[group], divisor[group] = (
            _rounded(center[group]),
            _rounded(divisor[group]),
        )
        listing.append(
            _entry(columns, k, treatment, float(center[first]), float(divisor[first]))
        )
    scaling = Scaling(center, divisor, units if units.any() else None)
    return Treatment(scaling, columns, _sentence(why, listing), listing, why == UNITS)


def _as_they_are(columns: Columns, sentence: str) -> Treatment:
    count = len(columns.names)  # of very many columns nobody reads a listing
    listing = [
        _entry(columns, k, "as it is", None, None)
        for k in range(count if count <= 1000 else 0)
    ]
    return Treatment(None, columns, sentence, listing)


def _entry(
    columns: Columns, k: int, treatment: str, *scaling: float | None
) -> dict[str, Any]:
    """A row of the listing; ``scaling`` is a center and a divisor."""
    count = int(columns.n_values[k])
    if columns.is_text[k]:
        kind = "text"
        why = f"{count} categories"
    elif count == 1:
        kind = "constant"
        why = "one value"
    else:
        kind = "number" if count > FEW else "few values"
        why = (
            f"{count} values"
            if count <= FEW
            else "skewed"
            if treatment == "logarithm"
            else "many values"
        )
    return _row(columns.names[k], kind, treatment, *scaling, why)


def _row(*values: Any) -> dict[str, Any]:
    return dict(
        zip(
            ("name", "kind", "treatment", "center", "divisor", "why"),
            values,
            strict=True,
        )
    )


def _sentence(why: str, listing: list[dict[str, Any]]) -> str:
    of: dict[str, list[str]] = {}
    for entry in listing:
        of.setdefault(entry["treatment"], []).append(shown(entry["name"]))
    logs, steps, texts = (
        of.get(name, []) for name in ("logarithm", "step", "category")
    )
    by_log = f" ({_listed(logs)} by the logarithm)" if logs else ""
    n_numbers = len(of.get("deviation", [])) + len(logs)
    parts = (
        [f"{n_numbers} number{'s' * (n_numbers > 1)} to deviation 1{by_log}"]
        if n_numbers
        else []
    )
    parts += [f"{_listed(steps)} to steps"] if steps else []
    parts += [f"texts ({_listed(texts)}) to steps"] if texts else []
    return f"Columns were scaled, as {why}: {', '.join(parts) or 'none'}; scale=None takes them as they are."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )


def _rounded(values: Any) -> Any:
    """Numbers of 24 bits, so that a weight is a repetition: sums of weights have other last bits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2.0**24) / 2.0**24, exponent)


def _moments(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean and deviation of numbers of any size, as squares are those of shares of the largest."""
    size = np.abs(values).max() or 1.0
    shares = weights / weights.sum()
    mean = shares @ (values / size)
    return size * np.array([mean, np.sqrt(shares @ (values / size - mean) ** 2)])


def _skewness(values: np.ndarray, weights: np.ndarray) -> float:
    mean, deviation = _moments(values, weights)
    return (
        float(weights @ ((values - mean) / deviation) ** 3 / weights.sum())
        if deviation > 0
        else 0.0
    )


def _wants_logarithm(values: np.ndarray, weights: np.ndarray) -> bool:
    """Whether values are not negative and have a long tail that the logarithm shortens."""
    if values.min() < 0 or (skewness := _skewness(values, weights)) < 1:
        return False
    return abs(_skewness(np.log1p(values / _unit(values, weights)), weights)) < skewness


def _unit(values: np.ndarray, weights: np.ndarray) -> float:
    """The lower weighted median of the values above 0."""
    order = np.argsort(values, kind="stable")[np.count_nonzero(values <= 0) :]
    sums = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(sums, sums[-1] / 2 * (1 - 1e-12))])


def sentinels(columns: Columns) -> list[str]:
    """Sentences about values that stand for missing ones, far outside the range of all others, and constants.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.columns import Columns, sentinels
    >>> age = np.r_[np.arange(20.0, 60.0), -999, -999]
    >>> sentinels(Columns(age[:, None], np.ones(42)))[0][:45]
    'column 0 has the value -999 in 2 of 42 rows l'
    """
    rows = columns.rows
    said = list[str]()
    if len(columns.names) > MOST_MIXED:
        return said
    constant = [shown(columns.names[k]) for k in np.flatnonzero(columns.n_values == 1)]
    if constant and columns.sources is not None and len(rows) > 1:  # of a table
        said.append(
            f"{_listed(constant)} has one value, so it tells no rows apart; leave it out."
        )
    at_ends = [
        (rows == end).mean(axis=0) >= 0.01
        for end in (rows.min(axis=0), rows.max(axis=0))
    ]
    often = np.array([np.any(at_ends, axis=0)[group.start] for group in columns.groups])
    for k, values in columns.numbers((columns.n_values > FEW) & often):
        found, counts = np.unique(values, return_counts=True)
        for at, low, high in ((0, 1, -1), (-1, 0, -2)):
            gap = abs(found[at] - found[low if at == 0 else high])
            if gap > found[high] - found[low] > 0 and counts[at] >= 0.01 * values.size:
                said.append(
                    f"{shown(columns.names[k])} has the value {found[at]:g} in {counts[at]:,} of "
                    f"{values.size:,} rows looked at, and {found[low]:g} to {found[high]:g} in all others; "
                    f"if it marks missing values, make it a gap (--na-values {found[at]:g})."
                )
    return said


# -- columns that make the clusters ----------------------------------------------------


class SingleColumns(NamedTuple):
    """Columns that make the clusters.

    Attributes
    ----------
    names : list
        One or two.
    share : float
        Share of the entropy of the labels that they tell.
    others : float
        The most that another column tells.
    """

    names: list[Any]
    share: float
    others: float

    @property
    def sentence(self) -> str:
        """The columns, and the remedy."""
        return (
            f"the clusters are the values of {' and '.join(map(shown, self.names))} ({self.share:.0%} of "
            f"their information); no other column tells them apart (at most {self.others:.0%}); leave "
            f"{'these' if len(self.names) > 1 else 'it'} out to see others"
        )


def single_columns(columns: Columns, labels: np.ndarray) -> SingleColumns | None:
    """The one or two columns of few values whose values are the clusters, if no other column agrees.

    Parameters
    ----------
    columns : Columns
        Those of the sample.
    labels : ndarray of shape (m,), int
        Cluster of each row of the sample.

    Returns
    -------
    SingleColumns or None

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.columns import Columns, single_columns
    >>> flag, other = np.arange(40) % 2, np.random.default_rng(0).normal(size=40)
    >>> found = single_columns(Columns(np.c_[other, flag], np.ones(40), ["size", "plan"]), flag)
    >>> found.names, round(found.share, 2)
    (['plan'], 1.0)
    """
    weights = columns.weights
    n_columns = len(columns.names)
    entropy = _entropy(labels, weights)
    if n_columns < 2 or entropy == 0:
        return None
    is_few = (columns.n_values > 1) & (
        columns.n_values <= np.where(columns.is_text, 30, COUNTED)
    )

    codes = {k: columns.codes(k) for k in np.flatnonzero(is_few).tolist()}
    shares = np.zeros(n_columns)
    shares[list(codes)] = [
        _information(one, labels, weights) / entropy for one in codes.values()
    ]
    first = sorted(codes, key=lambda k: -shares[k])[:2]
    for few in (first[:1], first) if first else ():
        share = (
            _information(_joined([codes[k] for k in few]), labels, weights) / entropy
        )
        others = float(np.delete(shares, few).max(initial=0.0))
        if share <= ALONE or others >= OTHERS:
            continue
        numbers = columns.numbers(~is_few & (columns.n_values > 1))
        others = max(
            [
                others,
                *(_share_of_ranks(values, labels, weights) for _, values in numbers),
            ]
        )
        if others < OTHERS:
            return SingleColumns([columns.names[k] for k in few], share, others)
    return None


def _joined(codes: list[np.ndarray]) -> np.ndarray:
    """Whole numbers for the values of several columns of codes together."""
    return np.ravel_multi_index(codes, [1 + one.max() for one in codes])


def _information(codes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Mutual information of codes and labels."""
    return (
        _entropy(codes, weights)
        + _entropy(labels, weights)
        - _entropy(_joined([codes, labels]), weights)
    )


def _entropy(codes: np.ndarray, weights: np.ndarray) -> float:
    """Entropy of whole numbers from 0, in natural units."""
    return float(entr(np.bincount(codes, weights) / weights.sum()).sum())


def _share_of_ranks(
    values: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> float:
    """Share of the variance of ranks that lies between clusters; rows of weight w have w ranks."""
    which = np.unique(values, return_inverse=True)[1]
    of_values = np.bincount(which, weights)
    ranks = (np.cumsum(of_values) - of_values / 2)[which]
    ranks -= weights @ ranks / weights.sum()
    sizes = np.bincount(labels, weights)
    sums = np.bincount(labels, weights * ranks)
    between = (sums[sizes > 0] ** 2 / sizes[sizes > 0]).sum()
    return float(between / (weights @ ranks**2))
