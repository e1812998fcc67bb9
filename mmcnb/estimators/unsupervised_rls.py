"""Unsupervised regularised least squares: any number of clusters."""

from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from mmcnb._constraints import Interval
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.given_rows import filling_gaps
from mmcnb.estimators.outputs import RowTransformerMixin
from mmcnb.estimators.parameters import (
    OPTIONAL_SHARE,
    KernelFunction,
    estimator,
    values_of,
)
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.needs import bytes_of_rows
from mmcnb.least_squares.all_rows import SMALLER_SAMPLE
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.least_squares.search import (
    LANDMARKS,
    SearchSettings,
    fit_least_squares,
    search_needs,
)
from mmcnb.samples import GROUP_ROWS

DRAWN_NUMBERS = 2**23  # in the rows that are drawn together with a sample


@estimator
class UnsupervisedRLS(RowTransformerMixin, KernelFunction, StreamedClusterer):
    """Clusters that kernel ridge regression fits best, any number of them (UMC-RLS).

    The labels are those for which regularised least squares, trained on them, leaves
    the smallest error. A sample is clustered by local search (the paper's "shaking")
    and along regularisation paths. A few passes over all rows follow, each of which
    labels the rows by the model and renews the model from sums of k (p + 1) numbers. Of
    more than 131,072 rows, such steps on a larger sample come first, and one pass is
    mostly enough. Nothing of the length of the data is kept.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth
        sigma. "auto" is sigma = 0.55 times the root mean squared distance between two
        rows; the other names are those of `SparseKernelMMC`.
    alpha : float, default=1e-3
        Ridge a row: the papers' lambda divided by n.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Local search on the sample: Alg. 3, 2 or 1 of the paper.
    schedule : {"mixed", "paper"}, default="mixed"
        "mixed" varies amplitude, decay and kind of start, ends with steepest descent,
        and adds regularisation paths. "paper" is Alg. 3 as published; of two clusters
        its first round wipes out the start.
    n_init : int, default=8
        Starts of the local search.
    cluster_sizes : {"auto", "equal"}, None or array-like, default="auto"
        Size constraints. None is a minimum size only. "auto" is that for two clusters,
        and equal sizes otherwise. An array has n_clusters proportions in any order: the
        largest is that of the largest cluster.
    size_tolerance : float, default=0.1
        How far constrained sizes may lie from their proportions, relatively.
    min_share : float or None, default=None
        Minimum size of a cluster if there is no other constraint, as a fraction of
        n/n_clusters; None is 0.5.
    sample_size : int or None, default=None
        Rows of the sample; None is max(2000, 100 n_clusters).
    n_landmarks : int, default=300
        Basis vectors of the model.
    landmarks : ndarray of shape (p, n_features) or None, default=None
        Basis vectors of your own, in the units of the rows, in place of ``n_landmarks``
        from the sample.
    max_passes : int, default=3
        Passes over all rows after the sample. There is one if the labels of a larger
        sample, drawn from more than 131,072 rows, have settled.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to
        ``predict(X)``.
    row_index_ : pandas.Index
        Which rows ``labels_`` belong to: the index of a frame, or names or numbers of
        rows in their file.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows (or weight) of each cluster.
    objective_ : float
        J = Σ|S_h|²/n_h of the labels, the larger the better; in [0, n_clusters - 1] if
        the sample is all rows, and about so otherwise.
    gamma_ : float
        Gamma of the kernel.
    alpha_ : float
        Ridge a row.
    converged_ : bool
        Whether the last pass changed at most 1 % of the labels. If labels of a larger
        sample settled, so that there is one pass over all rows, whether the last step
        on that sample did.
    n_changed_ : int, float or None
        Number (or weight) of labels that the last pass over all rows changed. None if
        there was one pass, which has no labels to compare with, and in models of 0.3.
    history_ : DataFrame
        One row a start on the sample and one a pass: stage, start, round, objective,
        changed labels, and so far: reads, sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes, the paper's objective Q, objective on the sample, warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    SparseKernelMMC : Two clusters by the hinge loss; better if one cluster is small.

    Notes
    -----
    Differs from the paper: RLS-2, RLS-3, RLS-4; see docs/differences.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke and O. Kramer, Unsupervised multi-class
    regularized least-squares classification, Alg. 1-3.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X)
    >>> adjusted_rand_score(y, model.labels_) > 0.85
    True
    """

    n_clusters: int = field(default=2, kw_only=False)
    alpha: float = 0.001
    search: str = "shaking"
    schedule: str = "mixed"
    n_init: int = 8
    cluster_sizes: Any = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None
    sample_size: int | None = None
    n_landmarks: int = LANDMARKS
    landmarks: Any = None
    max_passes: int = 3

    constraints: ClassVar = {
        "min_share": OPTIONAL_SHARE,
        "n_landmarks": Interval(2, integer=True),
    }
    sizes_of_search = ("sample_size", "n_landmarks")
    limit = "max_passes"
    needs_ridge = True
    fitted_names = ("objective", "gamma", "alpha", "converged", "n_changed", "report")

    @filling_gaps
    def transform(self, X: object, *, element: str | None = None) -> np.ndarray:
        """Landmark features of rows, in coordinates in which the ridge is the identity.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            z(x): without size constraints a row belongs to the cluster of the nearest
            mean.
        """
        features, _ = self._features(X, element)
        ridge: Any = self.model_.ridge
        return self._run(DecisionPass(ridge), features, "features")

    @property
    def _n_features_out(self) -> int:
        return 0 if self.model_.ridge is None else self.model_.ridge.centre.shape[0]

    def _needs(self, rows: RowShape) -> FitNeeds:
        """Draw more rows if there are many; if labels settle, one pass is left."""
        settings = self._settings()
        searched = settings.searched_rows(rows.n_samples)
        needs = replace(
            search_needs(rows, settings, int(self.max_passes)), remedy=SMALLER_SAMPLE
        )
        if not rows.n_samples > 2 * GROUP_ROWS > 4 * searched:
            return needs
        # Fewer of wide rows. Columns alone decide, or the sample would depend on the
        # storage of the rows.
        drawn = min(GROUP_ROWS, DRAWN_NUMBERS // rows.n_features)
        if drawn > searched:
            more = needs.sample_bytes + bytes_of_rows(rows, drawn)
            needs = replace(needs, sample_size=drawn, sample_bytes=more)
        return replace(needs, likely_sweeps=1)

    def _fit(self, session: FitSession) -> FitResult:
        return fit_least_squares(session, self._settings(), int(self.max_passes))

    def _settings(self) -> SearchSettings:
        names = PartitionConfig.__dataclass_fields__
        partition = PartitionConfig(**values_of(self, *names))
        search = values_of(
            self,
            "gamma",
            "degree",
            "coef0",
            "n_landmarks",
            "landmarks",
            "sample_size",
        )
        return SearchSettings(partition, self.kernel, **search)
