"""Multiple kernel clustering: find labels, margin and kernel weights together."""

from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mmcnb._constraints import Choice
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import SEARCH, CuttingPlanes, estimator, values_of
from mmcnb.features import base_kernels
from mmcnb.features.nystroem import choose_landmarks
from mmcnb.hinge.landmarks import basis_size
from mmcnb.hinge.multiple_kernels import MultipleKernelSample, fit_clusters
from mmcnb.hinge.needs import hinge_needs, with_smaller_samples
from mmcnb.hinge.sample_search import search_config
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.least_squares.all_rows import (
    SMALLER_SAMPLE,
    matrix_bytes,
    relative_weights,
    rows_of_sample,
)
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import Weights, check_clusters, check_places

COORDINATES = 4  # copies of the rows' coordinates in memory at a time, for all kernels
FEWER_LANDMARKS = 100  # landmarks per kernel if the memory limit does not allow 200
COMPARED_ROWS = 50  # minimum number of rows on which kernels are compared
# Local searches per start. About half of the searches find rings or moons if the data
# also have noise columns (`python -m benchmarks mkc --part starts`).
SEARCHES = 3


@estimator
class MultipleKernelClustering(CuttingPlanes, StreamedClusterer):
    """Maximum margin clustering that learns a combination of kernels (MKC).

    For given base kernels, the fit finds the labels, the widest margin and the weights
    beta of the kernels, which are non-negative and have Euclidean norm 1. It minimises
    1/2 Σ_k |v_k|²/beta_k + C xi, minus rho if the threshold is adaptive. Kernels are
    centred and scaled to trace(K)/n = 1, so that their weights are comparable. The
    second-order cone program (SOCP) is solved in the dual, where its size depends only
    on the number of cutting planes and kernels. Rows are read block by block, as in
    `SparseKernelMMC`.

    With more than two clusters, each cluster has a score, and the margin of a row is
    its largest score minus the second largest. As the kernels are centred, all scores
    have the same mean, so the paper's balance constraint between pairs of clusters
    always holds. The sizes are bounded only by ``min_share``.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    kernels : "auto" or list, default="auto"
        Base kernels. Each is "linear", "rbf" or "poly", or a pair of such a name and
        its parameters, such as ``("rbf", {"gamma": 0.5})`` or ``("poly", {"degree": 2,
        "gamma": "scale", "coef0": 1.0})``. A gamma is a number, or a name as in
        `SparseKernelMMC`. A kernel can also be a callable that takes two blocks of rows
        and returns their kernel matrix, such as the kernels of
        ``sklearn.metrics.pairwise`` and ``sklearn.gaussian_process.kernels``. "auto"
        uses a linear kernel, a polynomial kernel of degree 2, and three Gaussian
        kernels whose sigma is 0.35, 0.55 and 0.9 times the root mean squared distance
        between two rows.
    columns : list or None, default=None
        One entry per kernel, with the columns that the kernel uses: a list of column
        numbers, a slice, a boolean mask, or None for all columns. Kernels on different
        columns are different views of the same rows. None uses all columns for every
        kernel.
    C : float, default=10.0
        Final weight of the slack, which must be above 1.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        How the threshold rho of the margin is determined: "adaptive" optimises rho, as
        in SKMMC, and "fixed" sets rho to 1, as in the MKC paper.
    basis : {"landmarks", "exact"}, default="landmarks"
        Basis vectors of the model. "landmarks" selects rows of the sample by k-means++,
        and needs linear time and memory. "exact" uses all rows and full kernel
        matrices, which is possible only for small data.
    n_landmarks : int or None, default=None
        Number of landmarks of each kernel; None uses min(200, half the sample).
    continuation : bool, default=True
        Whether to raise C in steps from near 1. False solves the problem at the final C
        only, as the paper does.
    init : {"mixed", "random", "k-means"}, default="mixed"
        How the starts for two clusters are chosen, as in `SparseKernelMMC`. With
        several kernels, "mixed" also computes 3 n_init partitions by least squares. The
        two best of these partitions are tried at the final C. One of them is selected
        if its score at this C is twice the best score of the other starts. With more
        than two clusters, all starts are least-squares partitions.
    n_init : int, default=4
        Number of starts. The fit warns if some starts end with different labels but
        nearly the same objective.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses max(2000, 100 n_clusters).
    balance : float, default=0.0
        Upper bound l/n on the absolute value of the mean decision value, in units of
        rho. For two clusters only.
    min_share : float, default=0.1
        Minimum size of a cluster, as a fraction of the equal size n_samples/n_clusters.
    scale : {None, "standard"}, default=None
        "standard" divides each column by its standard deviation and, if the rows are
        dense, subtracts its mean. None uses the columns as they are.
    eta : float, default=0.01
        Tolerance of the cutting-plane loop: it ends when no constraint is violated by
        more than xi + eta rho.
    max_rounds : int, default=30
        Maximum number of rounds for each value of C; each round updates the labels
        once. With more than two clusters, the maximum is 5.
    tol : float, default=5e-4
        If the sample does not contain all rows, the rounds over all rows end when at
        most this share of the labels changes; see `SparseKernelMMC`.
    {runtime}

    Attributes
    ----------
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights beta of the kernels: non-negative, with Euclidean norm 1.
    kernel_names_ : list of str
        Names of the kernels, with gamma as a number. "auto" leaves out kernels that are
        equivalent to another kernel on the data. For example, with only two distinct
        rows, all kernels are equivalent to the linear kernel.
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, equal to ``predict(X)``. Clusters are numbered from 0 in
        the order of their first rows.
    row_index_ : pandas.Index
        Index of the rows of ``labels_``: the index of a data frame, or the names or
        numbers of the rows in their file.
    objective_ : float
        1/2 Σ_k |v_k|²/beta_k - rho + C mean(max(0, rho - |f|)). With a fixed threshold,
        rho is 1 and is not subtracted. With more than two clusters, |f| is replaced by
        the margin: the largest column of `decision_function` minus the second largest.
    rho_ : float
        Threshold of the margin.
    converged_ : bool
        Whether the last round over all rows changed at most a share ``tol`` of the
        labels (0 if the sample contains all rows), and its cutting-plane loop reached
        the tolerance eta.
    n_changed_ : int, float or None
        Number of labels that the last round over all rows changed, as in
        `SparseKernelMMC`.
    history_ : DataFrame
        One row per sweep, as in `SparseKernelMMC`, with the weights of the kernels:
        weight_0, weight_1 ...
    report_ : dict
        Cluster sizes, |w| for the found labels and for random labels, duality gap and
        warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    SparseKernelMMC : One kernel, with a bandwidth that is selected among several.

    Notes
    -----
    Differs from the paper: SKMMC-24, SKMMC-25, SKMMC-26, MKC-1, MKC-2, MKC-3, MKC-5,
    MKC-7, MKC-8, MKC-9, THESIS-1, THESIS-2, RLS-6; see docs/differences.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, SDM 2009.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(600, noise=0.05, factor=0.4, random_state=0)
    >>> kernels = ["linear", "rbf"]
    >>> model = mmcnb.MultipleKernelClustering(kernels=kernels, random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    >>> bool(model.kernel_weights_[1] > 0.99)  # no straight line separates two rings
    True
    """

    n_clusters: int = field(default=2, kw_only=False)
    kernels: Any = "auto"
    columns: Any = None
    basis: str = "landmarks"
    n_landmarks: int | None = None
    n_init: int = 4
    sample_size: int | None = None
    scale: str | None = None

    constraints: ClassVar = {"basis": Choice(("landmarks", "exact"))}
    fitted_names = (
        "objective",
        "rho",
        "kernel_names",
        "converged",
        "n_changed",
        "report",
    )

    _depends_on_origin = True  # a user's kernel may not be invariant to shifts

    @property
    def kernel_weights_(self) -> np.ndarray:
        """Weights beta of the kernels: non-negative, with Euclidean norm 1."""
        return np.asarray(self.model_.kernel_weights)

    # -- parameters and needs ----------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        base_kernels.check_base_kernels(self.kernels, self.columns)
        for name in ("n_landmarks", "sample_size"):
            if self.basis == "exact" and getattr(self, name) is not None:
                raise InputError(f"basis='exact' uses all rows; leave {name} at None.")
        if self.n_clusters != 2 and (self.balance != 0 or self.init != "mixed"):
            raise InputError(
                "balance and init apply to two clusters only; "
                f"with n_clusters={self.n_clusters} leave them at 0.0 and 'mixed'."
            )
        is_named = isinstance(self.kernels, str) or not any(map(callable, self.kernels))
        if self.checkpoint is not None and not is_named:
            raise InputError(
                "a checkpoint cannot identify kernels that are functions or objects; "
                "pass kernels by name and parameters, or leave checkpoint out."
            )

    def _needs(self, rows: RowShape) -> FitNeeds:
        return self._needs_on(rows, self.n_landmarks)

    def _needs_on(self, rows: RowShape, n_landmarks: int | None) -> FitNeeds:
        """Return the memory and work of a fit with a number of landmarks per kernel."""
        size = self.sample_size or rows_of_sample(self.n_clusters)
        if self.basis == "exact":
            size = rows.n_samples
        searched = min(size, rows.n_samples)
        n_kernels = base_kernels.n_kernels(self.kernels)
        columns = n_kernels * self._landmarks(searched, n_landmarks)
        needs = hinge_needs(rows, columns, size)
        # Memory of the search: the coordinates of all kernels side by side, with copies
        # of reduced dimension.
        work_bytes = COORDINATES * 8.0 * searched * columns
        if self.n_clusters != 2:
            work_bytes += matrix_bytes(searched)
        sample_bytes = needs.sample_bytes
        if self.basis != "exact":
            return replace(needs, work_bytes=work_bytes, remedy=SMALLER_SAMPLE)
        # Six matrices per kernel: kernel values, coordinates, the kernel matrix of the
        # basis, and copies of these.
        exact_bytes = 8.0 * 6 * n_kernels * searched**2
        return replace(
            needs,
            sample_bytes=max(exact_bytes, sample_bytes),
            remedy="basis='landmarks' needs no matrix of all rows",
        )

    def _smaller_needs(self, rows: RowShape) -> Iterator[FitNeeds]:
        yield from with_smaller_samples(self._needs(rows), rows)
        size = self.sample_size or rows_of_sample(self.n_clusters)
        default = self._landmarks(min(size, rows.n_samples), self.n_landmarks)
        is_fixed = self.basis == "exact" or self.n_landmarks is not None
        if not is_fixed and default > FEWER_LANDMARKS:
            fewer = self._needs_on(rows, FEWER_LANDMARKS)
            yield fewer
            yield from with_smaller_samples(fewer, rows)

    def _landmarks(self, rows: int, n_landmarks: int | None) -> int:
        """Return the number of basis vectors of each kernel.

        ``rows`` is the number of rows of the sample.
        """
        return rows if self.basis == "exact" else basis_size(n_landmarks, rows)

    # -- the fit -----------------------------------------------------------------------

    def _fit(self, session: FitSession) -> FitResult:
        config = search_config(
            session.sample.shape[0], session.seed(), **values_of(self, *SEARCH)
        )
        k = int(self.n_clusters)
        if k == 2:
            sample = self._mapped(session, session.sample_weights)
            if len(sample.columns) > 1:
                searches = SEARCHES * int(self.n_init)
                config = replace(config, n_searches=searches)
            candidates = [partial(sample.candidate, session.engine)]
            names = base_kernels.kernel_names(sample.kernels)
            return fit_two_clusters(session, candidates, config, kernel_names=names)
        check_clusters(k, session.sample, session.samples.n_samples)
        sample = self._mapped(session, relative_weights(session.sample_weights))
        partition = PartitionConfig(
            k,
            # Two local searches per start, chosen by `python -m benchmarks mkc`.
            n_init=2 * int(self.n_init),
            cluster_sizes="equal",
            min_share=float(self.min_share),
        )
        return fit_clusters(session, sample, partition, config)

    def _mapped(self, session: FitSession, weights: Weights) -> MultipleKernelSample:
        """Map the sample by each kernel.

        With ``kernels="auto"``, kernels that are equivalent to others are left out.
        """
        rows = session.sample
        kernels = base_kernels.base_kernels(self.kernels, self.columns, rows, weights)
        planned = session.plan.needs.n_landmarks // base_kernels.n_kernels(self.kernels)
        size = min(planned, self._landmarks(rows.shape[0], self.n_landmarks))
        basis = choose_landmarks(rows, size, session.random_state, weights)
        exact = size == rows.shape[0]
        compared = basis
        if basis.shape[0] < COMPARED_ROWS:  # with few rows, all kernels seem equivalent
            compared = choose_landmarks(
                rows, COMPARED_ROWS, np.random.RandomState(0), weights
            )
        check_places(max(basis.shape[0], compared.shape[0]), self.n_clusters)
        if isinstance(self.kernels, str):
            kernels = base_kernels.distinct_kernels(kernels, compared, exact)
        else:
            base_kernels.check_kernels(kernels, compared, exact)
        return MultipleKernelSample(open_samples(rows), kernels, basis, weights, exact)
