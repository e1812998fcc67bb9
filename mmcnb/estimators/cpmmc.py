"""Linear cutting-plane maximum margin clustering."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import SEARCH, CuttingPlanes, estimator, values_of
from mmcnb.features.bandwidth import mean_squared_distance
from mmcnb.hinge.needs import hinge_needs, with_smaller_samples
from mmcnb.hinge.sample_search import linear_features, search_config
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.samples import open_samples


@estimator
class CPMMC(CuttingPlanes, StreamedClusterer):
    """Linear maximum margin clustering by cutting planes (CPMMC).

    Finds the two clusters that a linear support vector machine would separate with the
    widest margin. The columns are used directly, without a kernel. As in
    `SparseKernelMMC`, starts are tried on a sample, and the best start is refined on
    all rows, block by block.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack, which must be above 1.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        How the threshold rho of the margin is determined: "adaptive" optimises rho
        (Alg. 1), and "fixed" sets rho to 1 (Wang, Zhao and Zhang).
    continuation : bool, default=True
        Whether to raise C in steps from near 1. False solves the problem at the final C
        only, as the papers do.
    init : {"mixed", "random", "k-means"}, default="mixed"
        How the starts on the sample are chosen; see `SparseKernelMMC`.
    n_init : int, default=6
        Number of starts on the sample.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses 2,000.
    balance : float, default=0.0
        Upper bound l/n on the absolute value of the mean decision value, in units of
        rho.
    min_share : float, default=0.1
        Minimum size of a cluster, as a fraction of half the rows. With 0.1, each
        cluster has at least 5 % of the rows.
    scale : {None, "standard"}, default=None
        "standard" divides each column by its standard deviation and, if the rows are
        dense, subtracts its mean. None uses the columns as they are.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: it ends when no constraint is violated by
        more than xi + eta rho.
    max_rounds : int, default=30
        Maximum number of rounds for each value of C; each round updates the labels
        once.
    tol : float, default=5e-4
        If the sample does not contain all rows, the rounds over all rows end when at
        most this share of the labels changes; see `SparseKernelMMC`.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row.
    row_index_ : pandas.Index
        Index of the rows of ``labels_``: the index of a data frame, or the names or
        numbers of the rows in their file.
    coef_ : ndarray of shape (n_features,)
        Normal vector w of the boundary w·x + b = 0, where x are the scaled columns.
    intercept_ : float
        Offset b of the boundary.
    objective_, rho_, converged_, n_changed_, history_, report_, n_features_in_,
    feature_names_in_
        As in `SparseKernelMMC`.

    See Also
    --------
    SparseKernelMMC : Two clusters with a kernel, for boundaries that are not linear.
    MaximumMarginClustering : Any number of clusters of any shape.

    Notes
    -----
    Differs from the paper: SKMMC-1, SKMMC-2, SKMMC-3, SKMMC-5, SKMMC-16, SKMMC-17,
    SKMMC-18, SKMMC-19, SKMMC-24, SKMMC-25, SKMMC-26, SKMMC-29; see docs/differences.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 1.
    F. Wang, B. Zhao and C. S. Zhang, Linear time maximum margin clustering.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(300, centers=[[0, 0], [8, 8]], random_state=0)
    >>> model = mmcnb.CPMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    sample_size: int | None = None
    scale: str | None = None

    @property
    def coef_(self) -> np.ndarray:
        """Normal vector of the boundary in the space of the scaled columns."""
        return self.model_.rule.coef

    @property
    def intercept_(self) -> float:
        """Offset of the boundary."""
        return float(self.model_.rule.offset)

    def _needs(self, rows: RowShape) -> FitNeeds:
        return hinge_needs(rows, 0, self.sample_size or SAMPLE_ROWS, stays_sparse=True)

    def _smaller_needs(self, rows: RowShape) -> Iterable[FitNeeds]:
        return with_smaller_samples(self._needs(rows), rows)

    def _fit(self, session: FitSession) -> FitResult:
        config = search_config(
            session.sample.shape[0], session.seed(), **values_of(self, *SEARCH)
        )
        # This call raises EqualRowsError if all rows are equal.
        mean_squared_distance(session.sample, session.sample_weights)
        sample = open_samples(session.sample)
        features = partial(
            linear_features, session.engine, sample, session.sample_weights
        )
        return fit_two_clusters(session, [features], config)
