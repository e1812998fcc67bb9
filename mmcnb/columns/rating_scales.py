"""Rating scales: whole numbers of one range in several columns, such as answers."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mmcnb.columns.kinds import MOST_MIXED, SampleColumns

LEAST_COLUMNS = 3  # of one range; fewer may be codes
LEAST_ALIKE = 2  # of them, which have both ends
LEAST_STEPS = 3  # between the ends, as in 0 to 3
MOST_STEPS = 10  # as in 0 to 10
LEAST_WHOLE = 0.6  # share of the rows that are not filled gaps
LEAST_VALUES = 3  # of a column; one of two values is a flag


class Span(NamedTuple):
    """The least and the greatest of the whole numbers of a column or a scale."""

    low: float
    high: float

    @property
    def steps(self) -> float:
        """How many steps there are from end to end."""
        return self.high - self.low

    def may_be_of(self, scale: "Span") -> bool:
        """Whether a column has this scale, perhaps without up to half of its steps."""
        is_inside = scale.low <= self.low and self.high <= scale.high
        return is_inside and self.steps >= scale.steps / 2


def rating_scales(columns: SampleColumns) -> dict[int, Span]:
    """Return the scale of each column of the table that has one.

    Ordered texts have one. Otherwise a scale is a range of whole numbers that at least
    three columns have, of which two show both ends. So the codes of a single column are
    not one. Tables of more than 100 columns have none.

    Parameters
    ----------
    columns : SampleColumns
        Those of the sample.

    Returns
    -------
    dict of int to Span

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
    if len(columns.names) > MOST_MIXED:  # whose few values are small counts
        return scales
    spans = dict(_spans(columns))
    counts = Counter(span for span in spans.values() if span.steps >= LEAST_STEPS)
    # Frequent ranges first, and of equally frequent ones the wide.
    for scale in sorted(counts, key=lambda span: (-counts[span], -span.steps, span)):
        members = [
            k for k, span in spans.items() if k not in scales and span.may_be_of(scale)
        ]
        if counts[scale] >= LEAST_ALIKE and len(members) >= LEAST_COLUMNS:
            scales |= dict.fromkeys(members, scale)
    return scales


def _of_texts(columns: SampleColumns) -> dict[int, Span]:
    """Return the ends of columns of ordered texts; two texts are those of a flag."""
    spans: dict[int, Span] = {}
    if not columns.orders:
        return spans
    for k in np.flatnonzero(columns.n_values >= LEAST_VALUES).tolist():
        if columns.names[k] in columns.orders:
            low, high = columns.ends[:, columns.first[k]].tolist()
            spans[k] = Span(low, high)
    return spans


def _spans(columns: SampleColumns) -> Iterator[tuple[int, Span]]:
    """Yield the columns of few whole numbers, and the ends of each."""
    low, high = columns.ends[:, columns.first]
    steps = high - low
    is_whole = (low % 1 == 0) & (high % 1 == 0)
    may_be = is_whole & (steps >= LEAST_VALUES - 1) & (steps <= MOST_STEPS)
    is_order = np.array([name in columns.orders for name in columns.names], bool)
    may_be &= ~is_order & (columns.n_values >= LEAST_VALUES)
    for k, values in columns.numbers(may_be):
        # Gaps may have been filled with means of whole numbers.
        is_answer = values % 1 == 0
        share = columns.weights @ is_answer / columns.weights.sum()
        n_answers = np.unique(values[is_answer]).size
        if n_answers >= LEAST_VALUES and share >= LEAST_WHOLE:
            yield k, Span(float(low[k]), float(high[k]))
