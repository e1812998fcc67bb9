"""Sparse kernel maximum margin clustering: two clusters in data of any size."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from mmcnb._constraints import Choice
from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import (
    SEARCH,
    CuttingPlanes,
    KernelFunction,
    estimator,
    values_of,
)
from mmcnb.hinge.landmarks import (
    candidate_kernels,
    fit_on_landmarks,
    needs_of_landmarks,
)
from mmcnb.hinge.needs import with_smaller_samples
from mmcnb.hinge.own_basis import ROW_BYTES, fit_on_own_basis
from mmcnb.hinge.sample_search import search_config


@estimator
class SparseKernelMMC(CuttingPlanes, KernelFunction, StreamedClusterer):
    """Maximum margin clustering with a kernel, in linear time and memory (SKMMC).

    Finds the two clusters that a support vector machine (SVM) would separate with the
    widest margin. For fixed labels, cutting planes solve the problem, and the
    concave-convex procedure (CCCP) updates the labels. C increases in steps from a
    value at which the problem has a single optimum. Starts and bandwidths are compared
    on a sample. The best start is then refined on all rows, block by block, without an
    array that has an entry for each row.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack, which must be above 1. 1/C is the nu of the nu-SVM.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" tries seven bandwidths and selects one from the data.
        "mean" and "median" set sigma² to the mean or median squared distance between
        two rows. "scale" is the rule of scikit-learn's SVC, which "auto" uses for the
        polynomial kernel.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        How the threshold rho of the margin is determined: "adaptive" optimises rho
        (SKMMC), and "fixed" sets rho to 1 (SKMMCv2).
    basis : {"landmarks", "paper"}, default="landmarks"
        Basis vectors of the model. "landmarks" selects rows of the sample by k-means++.
        "paper" follows the paper: all rows are streamed, and a separate basis vector is
        estimated for each cutting plane (`mmcnb.estimate_basis`). With "paper",
        ``gamma="auto"`` means "mean", and the starts of ``init="mixed"`` are k-means
        and random labels.
    n_landmarks : int or None, default=None
        Number of basis vectors (landmarks); None uses min(200, half the sample).
    landmarks : ndarray of shape (p, n_features) or None, default=None
        Basis vectors to use instead of ``n_landmarks`` rows of the sample, in the same
        units as the rows.
    continuation : bool, default=True
        Whether to raise C in steps from near 1. False solves the problem at the final C
        only, as the papers do.
    init : {"mixed", "random", "k-means"}, default="mixed"
        How the starts on the sample are chosen. "random" draws random labels, and
        "k-means" uses k-means clusters. "mixed" uses, in this order, random labels, the
        signs of a kernel principal component, two partitions by least squares (the end
        of a regularisation path and the result of a local search), and the signs of two
        more principal components.
    n_init : int, default=6
        Number of starts on the sample. The start with the largest geometric mean of
        |w|² at C = 2 and |w|² at the final C is refined.
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
        once. With more than 131,072 rows, the maximum is 5 unless ``tol`` is below its
        default, because the labels have already been refined on a larger sample.
    tol : float, default=5e-4
        The rounds over all rows end when at most this share of the labels changes,
        counted by sample weight if there are weights. With 0, they end when no label
        changes. The tolerance is always 0 if the sample contains all rows, or with
        ``basis="paper"``.
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
        1/2|w|² - rho + C mean(max(0, rho - |f|)) for the adaptive threshold, and
        1/2|w|² + C mean(max(0, 1 - |f|)) for the fixed threshold.
    rho_, gamma_ : float
        Threshold of the margin, and the selected gamma.
    converged_ : bool
        Whether the last round over all rows changed at most a share ``tol`` of the
        labels (0 if the sample contains all rows, or with ``basis="paper"``), and its
        cutting-plane loop reached the tolerance eta. If the sample does not contain all
        rows, and the boundary was shifted so that both clusters have ``min_share``,
        label changes are not counted, and the second round with such a shift is the
        last.
    n_changed_ : int, float or None
        Number of labels that the last round over all rows changed; with sample weights,
        the total weight of these rows. If the sample contains all rows, this is the
        last round on the sample. None if changes were not counted, and for models that
        were saved by version 0.3.
    history_ : DataFrame
        One row per sweep: stage, start, gamma, C, round, objective, primal, norm, rho,
        violation, planes and changed labels. Further columns are totals since the start
        of the fit: reads of the rows, sweeps over cached kernel columns, bytes read and
        seconds. ``resumed`` is True if the last pass came from a checkpoint.
    report_ : dict
        Cluster sizes, |w| for the found labels and for random labels, leave-one-out
        score, duality gap and warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    CrammerSingerMMC : Any number of clusters by the widest margin.
    UnsupervisedRLS : Any number of clusters by least squares.

    Notes
    -----
    Differs from the paper: SKMMC-1, SKMMC-2, SKMMC-3, SKMMC-4, SKMMC-5, SKMMC-6,
    SKMMC-7, SKMMC-8, SKMMC-9, SKMMC-10, SKMMC-11, SKMMC-12, SKMMC-13, SKMMC-14,
    SKMMC-15, SKMMC-16, SKMMC-17, SKMMC-18, SKMMC-19, SKMMC-24, SKMMC-25, SKMMC-26,
    SKMMC-27, SKMMC-28, SKMMC-29; see docs/differences.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 3, App. A-C.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(600, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.SparseKernelMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    basis: str = "landmarks"
    n_landmarks: int | None = None
    landmarks: Any = None
    sample_size: int | None = None

    constraints: ClassVar = {"basis": Choice(("landmarks", "paper"))}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.basis != "paper":
            return
        if self.kernel != "rbf":
            raise InputError(
                f"basis='paper' needs kernel='rbf', not {self.kernel!r}; "
                "use basis='landmarks'."
            )
        if self.landmarks is not None or self.n_landmarks is not None:
            raise InputError(
                "basis='paper' does not use landmarks; leave out landmarks and "
                "n_landmarks."
            )

    def _needs(self, rows: RowShape) -> FitNeeds:
        needs = needs_of_landmarks(
            rows, self.sample_size or SAMPLE_ROWS, self.n_landmarks, self.landmarks
        )
        if self.basis != "paper":
            return needs
        # basis="paper" does not compare bandwidths or draw a larger sample.
        row_bytes = ROW_BYTES * rows.n_samples
        return replace(
            needs,
            sample_bytes=needs.sample_bytes + row_bytes,
            work_bytes=0.0,
            larger_bytes=0.0,
        )

    def _smaller_needs(self, rows: RowShape) -> Iterable[FitNeeds]:
        return with_smaller_samples(self._needs(rows), rows)

    def _fit(self, session: FitSession) -> FitResult:
        rows = session.sample
        weights = session.sample_weights
        config = search_config(
            rows.shape[0], session.seed(), **values_of(self, *SEARCH)
        )
        if self.basis == "paper":
            gamma = "mean" if self.gamma == "auto" else self.gamma
            kernel = candidate_kernels(rows, weights, "rbf", gamma)[0]
            return fit_on_own_basis(session, config, kernel)
        kernels = candidate_kernels(
            rows, weights, self.kernel, self.gamma, self.degree, self.coef0
        )
        return fit_on_landmarks(
            session, config, kernels, self.n_landmarks, self.landmarks
        )
