"""Pseudo-centres: the row of each cluster nearest to its mean in feature space."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.passes import WeightedPass
from mmcnb.engine.sample_weights import read_weights
from mmcnb.engine.session import open_engine
from mmcnb.errors import InputError
from mmcnb.features.nystroem import RidgeMap
from mmcnb.features.rules import Scores
from mmcnb.least_squares.all_rows import LabelSumsPass
from mmcnb.samples import open_samples


@dataclass(frozen=True)
class PseudoCentrePass(WeightedPass):
    """The row nearest to the mean of each cluster (eq. 10 of Yuan et al.).

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; rows of weight 0 are no candidates.
    rule : Scores
        Labels the rows.
    coef : ndarray of shape (k, p)
        What the features of a row of a cluster are multiplied with.
    mapped : RidgeMap or None, default=None
        Gives z, of which |z|²/2 is taken off; None where K(x, x) is the same for all
        rows.
    """

    rule: Scores
    coef: np.ndarray
    mapped: RidgeMap | None = None

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Return the largest value of each cluster and its row.

        Of equal values the first row counts; -1 where no row has a weight.
        """
        labels = self.rule.label(rows)
        values = np.einsum("ij,ij->i", rows, self.coef[labels])
        if self.mapped is not None:
            values -= (self.mapped.decide(rows) ** 2).sum(axis=1) / 2
        candidates = np.flatnonzero(self.weights_of(start, stop) > 0)
        order = np.lexsort((candidates, -values[candidates], labels[candidates]))
        ranked = candidates[order]
        clusters, first = np.unique(labels[ranked], return_index=True)
        best_rows = ranked[first]

        k = self.coef.shape[0]
        best = np.full(k, -np.inf)
        best[clusters] = values[best_rows]
        row = np.full(k, -1)
        row[clusters] = start + best_rows
        return [best, row]

    def combine(self, total: list[Any], other: list[Any]) -> list[Any]:
        """Return the rows of both; of equal ones the first."""
        best, row = total
        other_best, other_row = other
        is_larger = other_best > best
        return [
            np.where(is_larger, other_best, best),
            np.where(is_larger, other_row, row),
        ]


def pseudo_centres(model: Any, X: Any, weights: Any = None) -> np.ndarray:
    """Return the pseudo-centre of each cluster of a fit, in two passes over its rows.

    The first pass sums the features of each cluster, the second compares its rows with
    their mean. With the Gaussian kernel the nearest row is that of the largest Σ_j
    K(x_i, x_j), as K(x, x) is 1 for all rows; with other kernels the distances to the
    mean are compared.

    Parameters
    ----------
    model : KernelKMeans
        A fitted estimator; its engine and threads run the passes.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows of the fit.
    weights : ndarray or Zarr array of shape (n_samples,), path or None, default=None
        The sample weights of the fit; rows of weight 0 are no candidates.

    Returns
    -------
    ndarray of shape (n_clusters,), int64
        Row numbers, of equal rows the first; -1 for a cluster without weight.

    Raises
    ------
    InputError
        If the rows or the weights cannot be read, or the columns are not those of the
        fit.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.support_clusters.pseudo_centres import pseudo_centres
    >>> X = [[0.0], [1.0], [2.0], [90.0], [91.0], [92.0]]
    >>> pseudo_centres(mmcnb.KernelKMeans(2, kernel="linear", random_state=0).fit(X), X)
    array([1, 4])
    """
    samples = open_samples(X)
    if samples.n_features != model.n_features_in_:
        raise InputError(
            f"{samples.name} has {samples.n_features} features, and the fit had "
            f"{model.n_features_in_}; give the rows of the fit."
        )
    fitted = model.model_
    rows = fitted.features(samples)
    rule = fitted.rule
    mapped = fitted.ridge
    assert isinstance(rule, Scores)
    assert mapped is not None
    if weights is not None:
        weights, _ = read_weights(weights, samples.n_samples)
    has_equal_norms = model.kernel == "rbf"
    with open_engine(model.engine, model.n_jobs) as engine:
        sums_pass = LabelSumsPass(weights, rule)
        sums, sizes, *_ = engine.run(sums_pass, rows, "means of the clusters")
        if has_equal_norms:
            means = sums @ mapped.matrix
        else:
            means = mapped.means(sums, sizes)
        centre_pass = PseudoCentrePass(
            weights=weights,
            rule=rule,
            coef=np.ascontiguousarray(means @ mapped.matrix.T),
            mapped=None if has_equal_norms else mapped,
        )
        _, centres = engine.run(centre_pass, rows, "pseudo-centres")
    return np.asarray(centres)
