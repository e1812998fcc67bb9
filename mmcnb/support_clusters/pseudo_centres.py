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
    """Pass that finds the row nearest to the mean of each cluster (Yuan et al., (10)).

    Parameters
    ----------
    weights : ndarray of shape (n,) or None
        Sample weights; rows of weight 0 cannot be selected.
    rule : Scores
        Rule that labels the rows.
    coef : ndarray of shape (k, p)
        For each cluster, the vector whose inner product with the features is largest
        for the row nearest to the mean.
    mapped : RidgeMap or None, default=None
        Map to z. If given, |z|²/2 is subtracted from the inner product. None if K(x, x)
        is the same for all rows.
    """

    rule: Scores
    coef: np.ndarray
    mapped: RidgeMap | None = None

    def block(self, rows: Any, start: int, stop: int) -> list[Any]:
        """Return the largest value in each cluster, and the index of its row.

        Ties go to the first row. The row is -1 for clusters without rows of positive
        weight.
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
        """Return the larger of two values in each cluster, and the index of its row.

        Ties go to the first range of rows.
        """
        best, row = total
        other_best, other_row = other
        is_larger = other_best > best
        return [
            np.where(is_larger, other_best, best),
            np.where(is_larger, other_row, row),
        ]


def pseudo_centres(model: Any, X: Any, weights: Any = None) -> np.ndarray:
    """Return the pseudo-centre of each cluster of a fit, in two passes over its rows.

    The first pass sums the features of each cluster, and the second pass compares the
    rows of each cluster with its mean. With the Gaussian kernel, K(x, x) is 1 for all
    rows, so the nearest row has the largest Σ_j K(x_i, x_j). With other kernels, the
    distances to the mean are compared.

    Parameters
    ----------
    model : KernelKMeans
        A fitted estimator. Its engine and its number of threads are used.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows of the fit.
    weights : ndarray or Zarr array of shape (n_samples,), path or None, default=None
        The sample weights of the fit; rows of weight 0 cannot be selected.

    Returns
    -------
    ndarray of shape (n_clusters,), int64
        Row index of each pseudo-centre. Ties go to the first row. The index is -1 for a
        cluster without rows of positive weight.

    Raises
    ------
    InputError
        If the rows or the weights cannot be read, or if the rows do not have the same
        number of columns as the rows of the fit.

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
            f"{samples.name} has {samples.n_features} features, but the fit had "
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
