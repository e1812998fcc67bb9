"""Find the levels of ordered columns that distinguish a cluster from other rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmcnb.columns.kinds import SampleColumns
from mmcnb.columns.rating_scales import rating_scales
from mmcnb.errors import shown
from mmcnb.explanation.groups import Sample
from mmcnb.samples import Samples


class Order(NamedTuple):
    """Levels of an ordered column, which are consecutive integers or texts."""

    first: int
    n_levels: int
    texts: Sequence[str] = ()

    def place_of(self, level: int) -> str:
        """Return the text of the level with index ``level``, or its integer as text."""
        return shown(self.texts[level]) if self.texts else str(self.first + level)


class LevelShares(NamedTuple):
    """A range of adjacent levels, and the shares of rows in this range.

    Attributes
    ----------
    words : str
        The range in words, such as "4 or 5 of 5" or "'often' or 'always'".
    position : {"low", "medium", "high"}
        "low" or "high" if the range ends at the lowest or the highest level, otherwise
        "medium".
    share, others_share : float
        Share of the rows that have a level in the range, in the cluster and among other
        rows.
    """

    words: str
    position: str
    share: float
    others_share: float


def orders_of(samples: Samples, sample: Sample) -> dict[int, Order]:
    """Return the levels of each ordered column, by the index of the column.

    A column is ordered if it contains ordered texts or integer ratings.
    """
    if samples.is_sparse:
        return {}
    columns = SampleColumns(
        np.asarray(sample.X), sample.weights, samples.sources, samples.orders
    )
    orders = {}
    for k, scale in rating_scales(columns).items():
        texts = samples.orders.get(str(columns.names[k]), ())
        first = 0 if texts else int(scale.low)
        n_levels = len(texts) or int(scale.steps) + 1
        orders[int(columns.first[k])] = Order(first, n_levels, texts)
    return orders


def shares_of_levels(
    order: Order, values: np.ndarray, inside: np.ndarray, weights: np.ndarray
) -> LevelShares:
    """Find the range of levels that is most overrepresented in a cluster.

    Parameters
    ----------
    order : Order
        Levels of the column.
    values : ndarray of shape (m,)
        Value of the column in each row. If levels are texts, it is the index of the
        level.
    inside : ndarray of shape (m,), bool
        Whether each row is in the cluster.
    weights : ndarray of shape (m,)
        Weight of each row.

    Returns
    -------
    LevelShares
        The range of levels for which the share of rows in the cluster exceeds the share
        of other rows most.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.levels import Order, shares_of_levels
    >>> values = np.array([1, 2, 2, 4, 5, 5])
    >>> shares_of_levels(Order(1, 5), values, values > 3, np.ones(6)).words
    '4 or 5 of 5'
    """
    levels = np.clip(np.rint(values) - order.first, 0, order.n_levels - 1).astype(int)
    gains = []
    shares = []
    for members in (inside, ~inside):
        counts = np.bincount(levels, weights * members, order.n_levels)
        shares.append(np.r_[0, counts.cumsum()] / max(counts.sum(), 1e-300))
    of_cluster, of_others = shares
    for low in range(order.n_levels):
        for high in range(low, order.n_levels):
            gain = np.diff(of_cluster[[low, high + 1]] - of_others[[low, high + 1]])
            gains.append((round(-float(gain[0]), 9), high - low, low))
    _, steps, low = min(gains)
    high = low + steps
    position = "medium"
    if high == order.n_levels - 1:
        position = "high"
    elif low == 0:
        position = "low"
    return LevelShares(
        words=_words(order, low, high),
        position=position,
        share=float(of_cluster[high + 1] - of_cluster[low]),
        others_share=float(of_others[high + 1] - of_others[low]),
    )


def _words(order: Order, low: int, high: int) -> str:
    """Describe a range of levels in words, as in "4 or 5 of 5".

    The highest level, as in "of 5", is added only if the levels are numbers.
    """
    words = order.place_of(low)
    if high > low:
        link = "or" if high == low + 1 else "to"
        words += f" {link} {order.place_of(high)}"
    if not order.texts:
        words += f" of {order.place_of(order.n_levels - 1)}"
    return words
