"""Maximum margin clustering into any number of clusters, with one score per cluster."""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any, ClassVar

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import (
    OPTIONAL_SHARE,
    KernelFunction,
    estimator,
    values_of,
)
from mmcnb.hinge.multiclass import ROUNDS, fit_multiclass
from mmcnb.hinge.needs import needs_of_search, with_smaller_samples
from mmcnb.hinge.sample_search import search_config
from mmcnb.least_squares.all_rows import SMALLER_SAMPLE
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.least_squares.search import LANDMARKS, SearchSettings


@estimator
class CrammerSingerMMC(KernelFunction, StreamedClusterer):
    """Maximum margin clustering into any number of clusters.

    Each cluster has a score function, and the margin of a row is its largest score
    minus the second largest (Crammer and Singer). First, a sample is clustered by least
    squares, as in `UnsupervisedRLS`. Then, CCCP rounds with increasing C refine the
    best two partitions; a refinement is accepted if it raises the least-squares
    objective. Three least-squares passes label all rows. Finally, the score functions
    are trained to separate the labelled rows with the widest margin. The constraints on
    the cluster sizes hold throughout.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    C : float, default=10.0
        Final weight of the slack, which must be above 1. 1/C is the nu of the nu-SVM.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" sets sigma to 0.55 times the root mean squared distance
        between two rows; `SparseKernelMMC` explains the other strings.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    n_landmarks : int or None, default=None
        Number of basis vectors (landmarks) of the model; None uses 300.
    continuation : bool, default=True
        Whether to raise C in steps from near 1. False uses only the final C.
    n_init : int, default=6
        Controls the number of starts on the sample: n_init + 2 local searches and four
        regularisation paths.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses max(2000, 100 n_clusters).
    cluster_sizes : {"auto", "equal"}, None or array-like, default="auto"
        Constraints on the cluster sizes. An array has n_clusters proportions that sum
        to 1, in any order. "equal" and "auto" request equal sizes. None sets only a
        minimum size; see ``min_share``.
    size_tolerance : float, default=0.1
        Maximum relative deviation of a cluster size from its constraint.
    min_share : float or None, default=None
        Minimum size of a cluster if ``cluster_sizes`` is None, as a fraction of the
        equal size n_samples/n_clusters. None uses 0.5.
    scale : {None, "standard"}, default=None
        "standard" divides each column by its standard deviation and, if the rows are
        dense, subtracts its mean. None uses the columns as they are.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: it ends when no constraint is violated by
        more than xi + eta rho.
    max_rounds : int, default=5
        Maximum number of rounds for each value of C; each round updates the labels
        once.
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
    objective_ : float
        1/2|W|² - rho + C mean(max(0, rho - m)), where |W|² is the sum of |w|² over the
        clusters, and the margin m of a row is the largest column of `decision_function`
        minus the second largest.
    converged_ : bool
        Whether the last least-squares pass over all rows changed at most 1 % of the
        labels, and the subsequent cutting-plane loop reached the tolerance eta.
    n_changed_ : int, float or None
        Number of labels that the last least-squares pass changed; with sample weights,
        the total weight of these rows. The subsequent training of the scores may change
        more labels. None for a model that was saved by version 0.3.
    rho_, gamma_, history_, report_, n_features_in_, feature_names_in_
        As in `SparseKernelMMC`. In the rows of ``history_`` for the least-squares
        stages, the objective is the J of `UnsupervisedRLS`. ``report_`` does not
        contain a leave-one-out score.

    See Also
    --------
    UnsupervisedRLS : Any number of clusters by least squares only.
    SparseKernelMMC : Two clusters, which may have very different sizes.

    Notes
    -----
    Differs from the paper: SKMMC-24, SKMMC-25, SKMMC-26, MCPMMC-1, MCPMMC-2; see
    docs/differences.

    References
    ----------
    K. Crammer and Y. Singer, On the algorithmic implementation of multiclass
    kernel-based vector machines.

    B. Zhao, F. Wang and C. Zhang, Efficient multiclass maximum margin clustering.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.metrics import adjusted_rand_score
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = mmcnb.CrammerSingerMMC(3, random_state=0).fit(X)
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    n_clusters: int = field(default=8, kw_only=False)
    C: float = 10.0
    n_landmarks: int | None = None
    continuation: bool = True
    n_init: int = 6
    sample_size: int | None = None
    cluster_sizes: Any = "auto"
    size_tolerance: float = 0.1
    min_share: float | None = None
    eta: float = 0.01
    max_rounds: int = ROUNDS

    constraints: ClassVar = {"min_share": OPTIONAL_SHARE}
    sizes_of_search = ("sample_size", "n_landmarks")

    def _needs(self, rows: RowShape) -> FitNeeds:
        return replace(needs_of_search(rows, self._settings()), remedy=SMALLER_SAMPLE)

    def _smaller_needs(self, rows: RowShape) -> Iterable[FitNeeds]:
        return with_smaller_samples(self._needs(rows), rows)

    def _fit(self, session: FitSession) -> FitResult:
        parameters = values_of(self, "C", "continuation", "n_init", "eta", "max_rounds")
        n_rows = session.sample.shape[0]
        config = search_config(n_rows, session.seed(), **parameters)
        return fit_multiclass(session, self._settings(), config)

    def _settings(self) -> SearchSettings:
        """Return the settings for clustering the sample by least squares."""
        sizes = values_of(
            self, "n_clusters", "cluster_sizes", "size_tolerance", "min_share"
        )
        if isinstance(self.cluster_sizes, str):
            sizes["cluster_sizes"] = "equal"
        partition = PartitionConfig(n_init=int(self.n_init) + 2, **sizes)
        others = values_of(self, "gamma", "degree", "coef0", "sample_size")
        return SearchSettings(
            partition, self.kernel, n_landmarks=self.n_landmarks or LANDMARKS, **others
        )
