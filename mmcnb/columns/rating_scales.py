"""Find rating scales: ranges of integers that several columns share, as in surveys."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mmcnb.columns.kinds import MOST_MIXED, SampleColumns

LEAST_COLUMNS = 3  # least number of columns with the same scale; fewer may be codes
LEAST_ALIKE = 2  # least number of columns that span the whole scale
LEAST_STEPS = 3  # least number of steps of a scale, as in 0 to 3
MOST_STEPS = 10  # largest number of steps of a scale, as in 0 to 10
LEAST_WHOLE = 0.6  # least share of integers; other values may be filled-in means
LEAST_VALUES = 3  # least number of distinct values; a column with two values is a flag


class Span(NamedTuple):
    """The smallest and the largest value of a column or of a rating scale."""

    low: float
    high: float

    @property
    def steps(self) -> float:
        """Difference between the largest and the smallest value."""
        return self.high - self.low

    def may_be_of(self, scale: "Span") -> bool:
        """Return whether this span is inside a scale and covers at least half of it."""
        is_inside = scale.low <= self.low and self.high <= scale.high
        return is_inside and self.steps >= scale.steps / 2


def rating_scales(columns: SampleColumns) -> dict[int, Span]:
    """Return the rating scale of each table column that has a rating scale.

    Ordered texts with three or more levels have a scale. For numbers, a scale is a
    range of integers that contains the values of at least three columns, two of which
    span the whole range. A single column of codes therefore does not form a scale. In
    tables with more than 100 columns, only ordered texts have scales.

    Parameters
    ----------
    columns : SampleColumns
        Columns of the sample.

    Returns
    -------
    dict of int to Span
        Scales, by index of the table column.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.kinds import SampleColumns
    >>> from mmcnb.columns.rating_scales import rating_scales
    >>> answers = np.random.default_rng(0).integers(1, 6, size=(99, 3)).astype(float)
    >>> rating_scales(SampleColumns(answers, np.ones(99)))[0]
    Span(low=1.0, high=5.0)
    """
    scales = _of_texts(columns)
    if len(columns.names) > MOST_MIXED:  # few values are probably small counts
        return scales
    spans = dict(_spans(columns))
    counts = Counter(span for span in spans.values() if span.steps >= LEAST_STEPS)
    # The most frequent range is tried first; ties are broken in favour of wide ranges.
    for scale in sorted(counts, key=lambda span: (-counts[span], -span.steps, span)):
        members = [
            k for k, span in spans.items() if k not in scales and span.may_be_of(scale)
        ]
        if counts[scale] >= LEAST_ALIKE and len(members) >= LEAST_COLUMNS:
            scales |= dict.fromkeys(members, scale)
    return scales


def _of_texts(columns: SampleColumns) -> dict[int, Span]:
    """Return the spans of columns of ordered texts, by column index.

    Only columns with more than two levels are included.
    """
    spans: dict[int, Span] = {}
    if not columns.orders:
        return spans
    for k in np.flatnonzero(columns.n_values >= LEAST_VALUES).tolist():
        if columns.names[k] in columns.orders:
            low, high = columns.ends[:, columns.first[k]].tolist()
            spans[k] = Span(low, high)
    return spans


def _spans(columns: SampleColumns) -> Iterator[tuple[int, Span]]:
    """Yield the index and the span of each numeric column that may contain ratings."""
    low, high = columns.ends[:, columns.first]
    steps = high - low
    is_whole = (low % 1 == 0) & (high % 1 == 0)
    may_be = is_whole & (steps >= LEAST_VALUES - 1) & (steps <= MOST_STEPS)
    is_order = np.array([name in columns.orders for name in columns.names], bool)
    may_be &= ~is_order & (columns.n_values >= LEAST_VALUES)
    for k, values in columns.numbers(may_be):
        # Missing values may have been filled with means, which need not be integers.
        is_answer = values % 1 == 0
        share = columns.weights @ is_answer / columns.weights.sum()
        n_answers = np.unique(values[is_answer]).size
        if n_answers >= LEAST_VALUES and share >= LEAST_WHOLE:
            yield k, Span(float(low[k]), float(high[k]))
