"""Kernel cutting-plane clustering for data whose kernel matrix fits in memory."""

from dataclasses import replace
from functools import partial

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import (
    SEARCH,
    CuttingPlanes,
    KernelFunction,
    estimator,
    values_of,
)
from mmcnb.features.model import Model
from mmcnb.hinge.cccp import CCCPResult
from mmcnb.hinge.cutting_plane import ExactWorkingSet
from mmcnb.hinge.landmarks import MOST_LANDMARKS, candidate_kernels, fit_on_landmarks
from mmcnb.hinge.needs import MARGIN_LIBRARIES, hinge_needs
from mmcnb.hinge.sample_search import RestartResult, exact_features, search_config
from mmcnb.hinge.training_set import TrainingSet
from mmcnb.hinge.two_clusters import fit_two_clusters
from mmcnb.samples import open_samples
from mmcnb.samples.derived import cache_features
from mmcnb.samples.matrix import as_matrix, to_dense

# Maximum number of rows for which bandwidths are compared on the whole kernel matrix.
EXACT_SEARCH = 1000


@estimator
class KernelCPMMC(CuttingPlanes, KernelFunction, StreamedClusterer):
    """Kernel maximum margin clustering by cutting planes, on the whole kernel matrix.

    Finds two clusters as `SparseKernelMMC` does, but every row is a basis vector, so
    memory grows with the square of the number of rows. If the memory limit is too
    small, `fit` raises an error before it starts. Use `SparseKernelMMC` for larger
    data.

    Parameters
    ----------
    C : float, default=10.0
        Final weight of the slack, which must be above 1.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel, as in `SparseKernelMMC`.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    threshold : {"adaptive", "fixed"}, default="adaptive"
        How the threshold rho of the margin is determined: "adaptive" optimises rho, and
        "fixed" sets rho to 1.
    continuation : bool, default=True
        Whether to raise C in steps from near 1. False solves the problem at the final C
        only, as the paper does.
    init : {"mixed", "random", "k-means"}, default="mixed"
        How the starts are chosen; see `SparseKernelMMC`.
    n_init : int, default=6
        Number of starts.
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
        If there are more rows than the 2,000 of the sample, the rounds over all rows
        end when at most this share of the labels changes; see `SparseKernelMMC`.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    labels_, objective_, rho_, gamma_, converged_, n_changed_, history_, report_,
    n_features_in_, feature_names_in_
        As in `SparseKernelMMC`.

    Notes
    -----
    Differs from the paper: SKMMC-1, SKMMC-2, SKMMC-3, SKMMC-4, SKMMC-5, SKMMC-9,
    SKMMC-10, SKMMC-11, SKMMC-16, SKMMC-17, SKMMC-18, SKMMC-19, SKMMC-24, SKMMC-25,
    SKMMC-26, SKMMC-28, SKMMC-29; see docs/differences.

    References
    ----------
    J. Wu and X.-L. Zhang, Sparse kernel maximum margin clustering, Alg. 2.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    >>> model = mmcnb.KernelCPMMC(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    def _needs(self, rows: RowShape) -> FitNeeds:
        n = rows.n_samples
        # Number of kernel matrices in memory at a time, which is large while bandwidths
        # are compared.
        if n <= EXACT_SEARCH:
            n_landmarks = n
            n_matrices = 20
        else:
            n_landmarks = MOST_LANDMARKS
            n_matrices = 4
        needs = hinge_needs(rows, n_landmarks, SAMPLE_ROWS)
        matrix_bytes = MARGIN_LIBRARIES + 8.0 * n_matrices * n**2
        return replace(
            needs,
            work_bytes=max(needs.work_bytes, matrix_bytes - needs.sample_bytes),
            remedy="SparseKernelMMC needs no matrix of all rows",
        )

    def _fit(self, session: FitSession) -> FitResult:
        rows = session.sample
        weights = session.sample_weights
        config = search_config(
            rows.shape[0], session.seed(), **values_of(self, *SEARCH)
        )
        kernels = candidate_kernels(
            rows, weights, self.kernel, self.gamma, self.degree, self.coef0
        )
        if rows.shape[0] > EXACT_SEARCH:
            return fit_on_landmarks(
                session, config, kernels, MOST_LANDMARKS, refine=refine_exactly
            )
        map_rows = partial(
            exact_features,
            engine=session.engine,
            sample=open_samples(rows),
            basis=to_dense(rows),
            weights=weights,
        )
        candidates = [partial(map_rows, kernel) for kernel in kernels]
        return fit_two_clusters(session, candidates, config, refine_exactly)


def refine_exactly(
    session: FitSession, restart: RestartResult
) -> tuple[CCCPResult, Model]:
    """Refine the labels of all rows, with all rows as basis vectors.

    The initial labels come from the model that was found on the sample.
    """
    samples = session.samples
    weights = session.weights
    model = restart.model(session.scaling)
    landmarks = restart.training_set.over(
        model.features(samples), weights, hold_labels=True
    )
    rows = as_matrix(model.scaled(samples).block(0, samples.n_samples))
    exact = replace(model, basis=to_dense(rows), feature_dtype="float64")
    features = cache_features(exact.features(samples), "memory")
    working_set = ExactWorkingSet(
        TrainingSet(session.engine, features, None, weights, hold_labels=True)
    )
    labels = landmarks.labels_of(restart.state.boundary)
    state = restart.last_steps(
        working_set, labels, session.record, max_sweeps=session.plan.needs.sweeps
    )
    return state, exact
