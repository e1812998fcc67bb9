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
    """Maximum margin clustering with a kernel, in linear time and storage (SKMMC).

    Finds the two clusters that a support vector machine (SVM) would separate
    with the widest margin. Cutting planes solve the problem for fixed labels,
    CCCP updates the labels, and C rises from a value at which the problem has a
    single optimum. Starts and bandwidths are tried on a sample. The refinement
    runs on all rows, block by block, and stores nothing of size n.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack, above 1. 1/C is the nu of the nu-SVM.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth
        sigma. "auto" chooses among seven bandwidths without labels. "mean" and "median"
        are 1/(2 mean or median squared distance). "scale" is that of scikit-learn.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        "adaptive" makes the margin's threshold rho a variable (SKMMC); "fixed" sets it
        to 1 (SKMMCv2).
    basis : {"landmarks", "paper"}, default="landmarks"
        Basis vectors of the model. "landmarks" are chosen from the sample by k-means++.
        "paper" is the form of the paper: all rows are streamed, and each cutting plane
        has a basis vector of its own (`mmcnb.estimate_basis`). "auto" is the bandwidth
        "mean" then, and "mixed" is k-means and coin flips.
    n_landmarks : int or None, default=None
        Number of basis vectors; None is min(200, half the sample).
    landmarks : ndarray of shape (p, n_features) or None, default=None
        Basis vectors of your own, in the units of the rows, in place of ``n_landmarks``
        from the sample.
    continuation : bool, default=True
        Raise C from near 1; False is the form of the papers, directly at C.
    init : {"mixed", "random", "k-means"}, default="mixed"
        Kind of starts. "mixed" is a coin flip, the signs of a kernel principal
        component, two partitions by least squares, and the signs of two more
        components. The two partitions are the end of a regularisation path and the
        result of a local search.
    n_init : int, default=6
        Number of starts, all on the sample. The start with the largest geometric mean
        of |w|² at C = 2 and at the last C wins.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000.
    balance : float, default=0.0
        Bound l/n of the mean decision value, in units of rho.
    min_share : float, default=0.1
        Least share of a cluster, as a fraction of one half.
    scale : {None, "standard"}, default=None
        "standard" scales the columns block by block (sparse columns are not centred).
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: no constraint is violated by more than xi +
        eta rho.
    max_rounds : int, default=30
        Most rounds over labels at one C. Over more than 131,072 rows, whose labels a
        larger sample has refined, there are at most 5, unless ``tol`` is below its
        default.
    tol : float, default=5e-4
        Share of the labels (or of their weight) that may change in the last round over
        all rows, if these are more than the sample. At 0 the rounds go on until no
        label changes, as they always do if all rows are in the sample, and with
        ``basis="paper"``.
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
    objective_ : float
        1/2|w|² - rho + C mean(max(0, rho - |f|)), without rho at a fixed threshold,
        where it is 1.
    rho_, gamma_ : float
        Threshold of the margin, and the chosen gamma.
    converged_ : bool
        Whether the last round over all rows changed at most a share ``tol`` of the
        labels, and its cutting-plane loop reached eta. If all rows are in the sample,
        and with ``basis="paper"``, no label may have changed. If labels of more rows
        were shifted to hold ``min_share``, changes are not counted, and the second such
        round is the last.
    n_changed_ : int, float or None
        Number of labels that the last round over all rows changed; their weight if
        there are sample weights. If all rows are in the sample, its last round counts.
        None if changes were not counted, and in models of 0.3.
    history_ : DataFrame
        One row per sweep: stage, start, gamma, C, round, objective, primal, norm, rho,
        violation, planes and changed labels. Further columns count so far: reads of the
        rows, sweeps over cached kernel columns, bytes read and seconds. ``resumed``
        says whether the last pass came from a checkpoint.
    report_ : dict
        Cluster sizes, |w| of the fit and of random labels, leave-one-out score, duality
        gap and warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    CrammerSingerMMC : Any number of clusters by scores with the widest margin.
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
                "basis='paper' has no landmarks; leave out landmarks and n_landmarks."
            )

    def _needs(self, rows: RowShape) -> FitNeeds:
        needs = needs_of_landmarks(
            rows, self.sample_size or SAMPLE_ROWS, self.n_landmarks, self.landmarks
        )
        if self.basis != "paper":
            return needs
        # There are no candidates and no larger sample.
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
