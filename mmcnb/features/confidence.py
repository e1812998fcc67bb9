"""Confidence: how often a row of some margin keeps its cluster when the fit is repeated on another sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mmcnb.engine.passes import CollectingPass
from mmcnb.errors import InputError
from mmcnb.features.rules import Hyperplane, Scores, clusters_of, margins_of

MOST_KNOTS = 20
DAMAGED = "the model holds no confidence that a fit writes; fit again with n_refits=2 or more."


@dataclass(frozen=True)
class Confidence:
    """The share of refits that keep a row, from the margin of the row.

    Parameters
    ----------
    margins : ndarray of shape (q,)
        Rising margins.
    shares : ndarray of shape (q,)
        Share that keeps its cluster at each; between them it is interpolated.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.confidence import Confidence
    >>> Confidence(np.array([0.0, 1.0]), np.array([0.5, 1.0])).shares_of(np.array([0.5, 7.0]))
    array([0.75, 1.  ])
    """

    margins: np.ndarray
    shares: np.ndarray

    def shares_of(self, margins: np.ndarray) -> np.ndarray:
        """Shares of rows with some margins."""
        return np.interp(margins, self.margins, self.shares)

    def to_dict(self) -> dict[str, Any]:
        """The knots as a JSON object."""
        return {"margins": self.margins.tolist(), "shares": self.shares.tolist()}

    @classmethod
    def from_dict(cls, knots: Mapping[str, Any]) -> "Confidence":
        """The confidence of its knots; refuses what no fit writes."""
        try:
            margins, shares = (np.array(knots[name], np.float64) for name in ("margins", "shares"))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(DAMAGED) from error
        rising = margins.ndim == 1 and bool((np.diff(margins) >= 0).all())
        if (
            not rising
            or not margins.size
            or margins.shape != shares.shape
            or not ((shares >= 0) & (shares <= 1)).all()
        ):
            raise InputError(DAMAGED)
        return cls(margins, shares)


@dataclass(frozen=True)
class ConfidenceRule:
    """The confidence of rows, for a pass over their features.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Labels the rows.
    confidence : Confidence
        From margins to shares.
    """

    rule: Hyperplane | Scores
    confidence: Confidence

    def decide(self, rows: Any) -> np.ndarray:
        """Confidence of a block of features."""
        return self.confidence.shares_of(margins_of(self.rule.decide(rows)))


@dataclass(frozen=True)
class TablePass(CollectingPass):
    """Cluster, margin and, where there is one, confidence of each row, as the columns of a table.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Labels the rows.
    confidence : Confidence or None, default=None
        From margins to shares.
    """

    rule: Hyperplane | Scores
    confidence: Confidence | None = None

    def block(self, rows: Any, start: int, stop: int) -> list[dict[str, np.ndarray]]:
        """The columns of one block."""
        values = self.rule.decide(rows)
        columns = {"cluster": clusters_of(values), "margin": margins_of(values)}
        if self.confidence is not None:
            columns["confidence"] = self.confidence.shares_of(columns["margin"])
        return [columns]


def matched(labels: np.ndarray, to: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels renumbered so that as many rows as possible have those of another labelling.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.confidence import matched
    >>> matched(np.array([1, 1, 0]), np.array([0, 0, 0]), 2)
    array([0, 0, 1])
    """
    from scipy.optimize import linear_sum_assignment

    counts = np.bincount(labels * n_clusters + to, minlength=n_clusters**2)
    _, number = linear_sum_assignment(counts.reshape(n_clusters, n_clusters), maximize=True)
    return np.asarray(number[labels])


def kept_shares(labellings: Sequence[np.ndarray], n_clusters: int) -> np.ndarray:
    """Share of the pairs of labellings in which a row has the same cluster, after matching.

    Parameters
    ----------
    labellings : sequence of ndarray of shape (m,), int64
        At least two.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (m,), float64
        Shares.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.confidence import kept_shares
    >>> kept_shares([np.array([0, 0, 1, 1]), np.array([1, 1, 1, 0])], 2)
    array([1., 1., 0., 1.])
    """
    pairs = list(combinations(labellings, 2))
    return np.mean([matched(one, other, n_clusters) == other for one, other in pairs], axis=0)


def calibrated(margins: np.ndarray, kept: np.ndarray) -> Confidence:
    """Kept shares as a rising function of the margin, by isotonic regression.

    Parameters
    ----------
    margins, kept : ndarray of shape (m,)
        Margins of some rows, and how often each was kept.

    Returns
    -------
    Confidence
        At most 20 knots: means over as many rows each.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.confidence import calibrated
    >>> found = calibrated(np.arange(40.0), np.repeat([0.0, 1.0], 20))
    >>> found.shares[[0, -1]]
    array([0., 1.])
    """
    from sklearn.isotonic import IsotonicRegression

    order = np.argsort(margins, kind="stable")
    parts = np.array_split(order, min(MOST_KNOTS, order.size))
    middles = np.array([margins[part].mean() for part in parts])
    means = np.array([kept[part].mean() for part in parts])
    sizes = np.array([part.size for part in parts], float)
    fitted = IsotonicRegression().fit_transform(np.arange(middles.size), means, sample_weight=sizes)
    return Confidence(middles, np.asarray(fitted, float))
