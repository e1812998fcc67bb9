"""Unsupervised regularised least squares, for any number of clusters."""

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

DRAWN_NUMBERS = 2**23  # maximum number of values in the larger sample


@estimator
class UnsupervisedRLS(RowTransformerMixin, KernelFunction, StreamedClusterer):
    """Clustering by the labels that kernel ridge regression fits best (UMC-RLS).

    Finds the labels, for any number of clusters, on which regularised least squares has
    the smallest error. The fit clusters a sample by local search (the paper's
    "shaking") and along regularisation paths. Then, up to ``max_passes`` passes over
    all rows follow. Each pass labels the rows by the model, and updates the model from
    sums of k (p + 1) numbers for k clusters and p landmarks. With more than 131,072
    rows, the same steps run on a larger sample first, and one pass over all rows is
    usually enough. The passes do not store an array with an entry for each row.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" sets sigma to 0.55 times the root mean squared distance
        between two rows; `SparseKernelMMC` explains the other strings.
    alpha : float, default=1e-3
        Ridge parameter per row: the papers' lambda divided by n.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Local search on the sample: Alg. 3, 2 or 1 of the paper, in this order.
    schedule : {"mixed", "paper"}, default="mixed"
        How "shaking" runs. "mixed" varies the amplitude, its decay and the kind of
        start, ends with steepest descent, and adds regularisation paths. "paper" is
        Alg. 3 as published; with two clusters, its first round erases the start.
    n_init : int, default=8
        Number of starts of the local search.
    cluster_sizes : {"auto", "equal"}, None or array-like, default="auto"
        Constraints on the cluster sizes. None sets only a minimum size; see
        ``min_share``. "equal" requests equal sizes. "auto" is None for two clusters and
        "equal" for more. An array has n_clusters proportions that sum to 1, in any
        order: the largest proportion applies to the largest cluster.
    size_tolerance : float, default=0.1
        Maximum relative deviation of a cluster size from its constraint.
    min_share : float or None, default=None
        Minimum size of a cluster if there is no other constraint, as a fraction of the
        equal size n_samples/n_clusters. None uses 0.5.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses max(2000, 100 n_clusters).
    n_landmarks : int, default=300
        Number of basis vectors (landmarks) of the model.
    landmarks : ndarray of shape (p, n_features) or None, default=None
        Basis vectors to use instead of ``n_landmarks`` rows of the sample, in the same
        units as the rows.
    max_passes : int, default=3
        Maximum number of passes over all rows after the search on the sample. With more
        than 131,072 rows, only one pass is made if the labels of the larger sample have
        converged.
    scale : {None, "standard"}, default=None
        "standard" divides each column by its standard deviation and, if the rows are
        dense, subtracts its mean. None uses the columns as they are.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, equal to ``predict(X)``. Clusters are numbered from 0 in
        the order of their first rows.
    row_index_ : pandas.Index
        Index of the rows of ``labels_``: the index of a data frame, or the names or
        numbers of the rows in their file.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number of rows in each cluster; with sample weights, their total weight.
    objective_ : float
        J = Σ|S_h|²/n_h, where S_h is the sum of the features of the n_h rows in cluster
        h; larger is better. J is in [0, n_clusters - 1] if all rows are in the sample,
        and approximately so otherwise.
    gamma_ : float
        Gamma of the kernel.
    alpha_ : float
        Ridge parameter per row.
    converged_ : bool
        Whether the last pass changed at most 1 % of the labels. If the fit made only
        one pass over all rows, because the labels of a larger sample had converged:
        whether the last step on that sample changed at most 1 % of its labels.
    n_changed_ : int, float or None
        Number of labels that the last pass over all rows changed; with sample weights,
        the total weight of these rows. None after a single pass, which has no earlier
        labels to compare with, and for models that were saved by version 0.3.
    history_ : DataFrame
        One row per start on the sample and one per pass: stage, start, round, objective
        and changed labels, and the totals since the start of the fit: reads, sweeps,
        bytes, resumed and seconds.
    report_ : dict
        Cluster sizes, the paper's objective Q, the objective on the sample, and
        warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    SparseKernelMMC : Two clusters by the hinge loss; better if one cluster is small.
    KernelKMeans : Any number of clusters by their means in feature space.

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
        """Return the features z(x) of rows, in which the ridge matrix is the identity.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            z(x). Without size constraints, a row belongs to the cluster with the
            nearest mean in these coordinates.
        """
        features, _ = self._features(X, element)
        ridge: Any = self.model_.ridge
        return self._run(DecisionPass(ridge), features, "features")

    @property
    def _n_features_out(self) -> int:
        return 0 if self.model_.ridge is None else self.model_.ridge.centre.shape[0]

    def _needs(self, rows: RowShape) -> FitNeeds:
        """Return the memory and the work that a fit needs.

        If a larger sample is searched, one pass over all rows is likely to be enough.
        """
        settings = self._settings()
        searched = settings.searched_rows(rows.n_samples)
        needs = replace(
            search_needs(rows, settings, int(self.max_passes)), remedy=SMALLER_SAMPLE
        )
        if not rows.n_samples > 2 * GROUP_ROWS > 4 * searched:
            return needs
        # Fewer rows are drawn if they have many columns. The number must not depend on
        # how rows are stored (dense or sparse); otherwise, the labels would too.
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
