"""Maximum margin clustering as an SDP: two clusters in a few hundred rows."""

from collections.abc import Mapping
from typing import ClassVar

from mmcnb._constraints import Constraint
from mmcnb.engine.plan import FitNeeds
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.relaxed import RELAXED, centred_rows, needs_of_all_rows, relaxed_result
from mmcnb.relaxations.sdp import leading_labels, solve_label_matrix, solve_svm

MOST_ROWS = 500  # up to a minute
MATRICES = 24  # held by a Newton step
UNSOLVED = "rounding errors ended the semidefinite program early; scale the columns or lower C."


@estimator
class SDPMMC(StreamedClusterer):
    """Maximum margin clustering as a semidefinite program, SDP (Xu, Neufeld, Larson and Schuurmans).

    Labels y are seen as the matrix M = y y', which is relaxed to be positive semidefinite with ones on its
    diagonal. The widest margin is then a convex problem: no starts, no seeds, and its optimum bounds the
    objective of all labels from below. The signs of the leading eigenvector of M are labels. The SVM trained
    on them, without offset in centred features, labels the rows. All rows take part, and more than 500 are
    refused.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of a row, scikit-learn's.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth sigma. "auto" is
        sigma = 0.55 times the root mean squared distance between two rows; the other names are those of
        `SparseKernelMMC`.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    balance : float, default=0.4
        l/n: bound of abs(sum(y))/n, counted by weight; the smaller cluster holds at least (1 - balance)/2.
    scale : {None, "standard"}, default=None
        "standard" scales the columns inside the stream (sparse columns are not centred).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, 0 for the cluster of the first row; equal to ``predict(X)``.
    objective_ : float
        1/2 |w|² + C Σ_i w_i max(0, 1 - abs(f_i)): for the labels that the SVM gives itself.
    gamma_ : float
        Gamma of the kernel.
    converged_ : bool
        Whether the relaxation was solved to a gap of 1e-6 of its optimum.
    history_ : DataFrame
        One row a centre of the path: stage, steps of Newton's method so far, objective (of the
        relaxation, from below), gap; and so far: reads, sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes of the clusters; the relaxed optimum (a lower bound), the objective of the rounded labels, the
        share of the largest eigenvalue of M (1 where M is a labelling), the share of rows that the SVM
        labels as the eigenvector does, by how much its threshold was moved for the balance, gamma, warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, where they have names.

    See Also
    --------
    SparseKernelMMC : The same margin by cutting planes, for rows of any number.

    Notes
    -----
    The relaxed optimum is at most the objective of every labelling in balance whose boundary goes through
    the mean of the rows; ``objective_`` is at most that of the rounded labels, unless the threshold moved.
    The bound is close for small C; where it is far below, ``eigenvalue_share`` is small and rounding decides.
    A weight of 2 is the row given twice.

    References
    ----------
    L. Xu, J. Neufeld, B. Larson and D. Schuurmans, Maximum margin clustering, NIPS 2004.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, centers=2, random_state=0, cluster_std=0.5)
    >>> model = mmcnb.baselines.SDPMMC().fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    >>> model.report_["relaxed"] <= model.objective_
    True
    """

    C: float = 1.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    balance: float = 0.4
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    constraints: ClassVar[Mapping[str, Constraint]] = RELAXED

    def _needs(self, n_samples: int) -> FitNeeds:
        slow = "semidefinite program grows with about the fourth power"
        return needs_of_all_rows(n_samples, MOST_ROWS, MATRICES, slow)

    def _fit(self, session: FitSession) -> FitResult:
        rows, balance = centred_rows(self, session), float(self.balance)
        relaxed = solve_label_matrix(rows.gram, rows.bounds, rows.shares, balance, session.record)
        y, share = leading_labels(relaxed.matrix, rows.shares, balance)
        alpha, value = solve_svm(rows.gram, y, rows.bounds)
        report = {"relaxed": relaxed.value, "eigenvalue_share": share, "rounded": value}
        warning = None if relaxed.converged else UNSOLVED
        return relaxed_result(session, rows, y, alpha, balance, report, warning)
