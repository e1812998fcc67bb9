"""Unsupervised regularised least squares: k clusters, on a sample and then on all rows."""

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mmcnb import kernels
from mmcnb._errors import InputError, MemoryLimitError
from mmcnb.engine import (
    BasisMap,
    FitPlan,
    Kernel,
    KernelSamples,
    format_bytes,
    resolve_memory_limit,
)
from mmcnb.estimators._model import Model
from mmcnb.estimators._streamed import ClusterWarning, StreamedClusterer, Work
from mmcnb.estimators._validate import check_choice, check_gamma, check_number, read_input
from mmcnb.samples import Samples, open_samples
from mmcnb.selection import choose_landmarks, least_squares_gamma
from mmcnb.selection.divide import Division, divide, kernel_matrix
from mmcnb.solvers import (
    DecisionPass,
    LabelSumsPass,
    PrincipalFeatures,
    RidgeMap,
    Scores,
    mean_objective_of,
    metric_of,
    one_against_all_objective_of,
    principal_features,
    ridge_map,
    target_shares,
)

KERNELS = ("rbf", "linear", "poly")
SMALLEST_EIGENVALUE = 1e-7
SAMPLE_ROWS, ROWS_A_CLUSTER = 2000, 100
MATRICES = 3  # of the size of the sample squared: kernel, smoother, and what the solver copies
SETTLED_SHARE = 0.01  # passes over all rows end where fewer labels change


class UnsupervisedRLS(TransformerMixin, ClassNamePrefixFeaturesOutMixin, StreamedClusterer):
    """Clusters that kernel ridge regression fits best, any number of them (UMC-RLS).

    Labels are sought for which regularised least squares, trained on them, leaves the smallest error. A
    sample is divided by local search with shaking and by falling ridges; a few passes over all rows
    follow, each of which labels the rows by the model and renews the model by sums of k (p + 1) numbers,
    so that nothing of the length of the data is kept.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
    alpha : float, default=1e-3
        Ridge a row: the papers' lambda divided by n.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    search : {"shaking", "steepest", "stochastic"}, default="shaking"
        Local search on the sample: Alg. 3, 2 or 1 of the paper.
    schedule : {"mixed", "paper"}, default="mixed"
        "mixed" varies amplitude, decay and kind of start, polishes, and adds ridge paths; "paper" is as
        published, whose first wave wipes out the start where there are two clusters.
    n_init : int, default=8
        Starts of the local search.
    cluster_sizes : {"auto", "equal"} or array of n_clusters shares, default="auto"
        Sizes that are held. "auto" is free sizes for two clusters and equal ones for more.
    size_tolerance : float, default=0.1
        How far held sizes may lie from their shares, relatively.
    min_share : float, default=0.5
        Least size of a cluster where sizes are free, as a share of n/n_clusters.
    sample_size : int or None, default=None
        Rows of the sample; None is max(2000, 100 n_clusters).
    n_landmarks : int, default=300
        Basis vectors of the model.
    max_passes : int, default=3
        Passes over all rows after the sample.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    memory_limit : str, int or None, default=None
        Resident memory of the process, such as "512MiB"; None is half of what is free.
    n_jobs : int or None, default=None
        Threads; None and -1 are all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the landmarks and the starts.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    checkpoint : path or None, default=None
        Folder in which the fit keeps how far it has come; a fit of the same rows, parameters and seed
        goes on from there.
    engine : None, str or dask.distributed.Client, default=None
        Who runs the passes over the rows: None is threads of this process, or what `mmcnb.config` says; a
        client, or the address of its scheduler, is a Dask cluster.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows (or weight) of each cluster.
    objective_ : float
        J = Σ|S_h|²/n_h of the labels, the larger the better; in [0, n_clusters - 1] where the sample is all
        rows, and about so otherwise.
    gamma_ : float
        Width of the kernel.
    converged_ : bool
        Whether under 1 % of the labels changed in the last pass.
    history_ : DataFrame
        One row a start on the sample and one a pass: stage, start, round, objective, changed labels, and so
        far: reads, sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes, the paper's objective Q, objective on the sample, warnings.
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    SparseKernelMMC : Two clusters by the hinge loss; better where one cluster is small.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke and O. Kramer, Unsupervised multi-class regularized least-squares
    classification, Alg. 1-3.

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

    fitted_names = ("objective", "gamma", "converged", "report")

    def __init__(
        self,
        n_clusters: int = 2,
        gamma: float | str = "auto",
        alpha: float = 1e-3,
        kernel: str = "rbf",
        search: str = "shaking",
        schedule: str = "mixed",
        n_init: int = 8,
        cluster_sizes: Any = "auto",
        size_tolerance: float = 0.1,
        min_share: float = 0.5,
        sample_size: int | None = None,
        n_landmarks: int = 300,
        max_passes: int = 3,
        scale: str | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        memory_limit: str | int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        engine: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.alpha = alpha
        self.kernel = kernel
        self.search = search
        self.schedule = schedule
        self.n_init = n_init
        self.cluster_sizes = cluster_sizes
        self.size_tolerance = size_tolerance
        self.min_share = min_share
        self.sample_size = sample_size
        self.n_landmarks = n_landmarks
        self.max_passes = max_passes
        self.scale = scale
        self.degree = degree
        self.coef0 = coef0
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Rows (or weight) of each cluster."""
        return np.array(self.report_["sizes"])

    def transform(self, X: Any) -> np.ndarray:
        """Landmark features of rows, in coordinates in which the ridge is the identity.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            z(x): a row belongs to the cluster whose mean is nearest, where no sizes are held.
        """
        check_is_fitted(self, "model_")
        assert self.model_.ridge is not None
        features = self.model_.features(read_input(self, X, reset=False))
        with self._engine(self.n_jobs) as engine:
            return np.concatenate(engine.run(DecisionPass(self.model_.ridge), features, "features"))

    @property
    def _n_features_out(self) -> int:
        return 0 if self.model_.ridge is None else self.model_.ridge.centre.shape[0]

    # -- the fit -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_clusters", self.n_clusters, 1, integer=True)
        check_number("alpha", self.alpha, 0.0, open_low=True)
        check_number("n_init", self.n_init, 1, integer=True)
        check_number("size_tolerance", self.size_tolerance, 0.0, 1.0)
        check_number("min_share", self.min_share, 0.0, 1.0)
        check_number("n_landmarks", self.n_landmarks, 2, integer=True)
        check_number("max_passes", self.max_passes, 1, integer=True)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("search", self.search, ("shaking", "steepest", "stochastic"))
        check_choice("schedule", self.schedule, ("mixed", "paper"))
        target_shares(self.cluster_sizes, self.n_clusters)
        check_gamma(self.gamma)

    def _rows_of_sample(self) -> int:
        return self.sample_size or max(SAMPLE_ROWS, ROWS_A_CLUSTER * self.n_clusters)

    def _basis_size(self, n_samples: int) -> int:
        return min(n_samples, self._rows_of_sample(), self.n_landmarks)

    def _plan(self, samples: Samples) -> FitPlan:
        rows = min(self._rows_of_sample(), samples.n_samples)
        held, limit = MATRICES * 8 * rows**2, resolve_memory_limit(self.memory_limit)
        if held > limit:
            fits = int((limit / MATRICES / 16) ** 0.5)
            raise MemoryLimitError(
                f"the kernel matrix of a sample of {rows:,} rows takes {format_bytes(8 * rows**2)}, and "
                f"{MATRICES} such are held, of {format_bytes(limit)} allowed; give sample_size={fits} or "
                "raise memory_limit."
            )
        return super()._plan(samples)

    def _sample_bytes(self, n_samples: int) -> float:
        return MATRICES * 8.0 * min(self._rows_of_sample(), n_samples) ** 2

    def _kernel(self, sample: Any, weights: np.ndarray | None) -> Kernel:
        gamma = least_squares_gamma(self.gamma, self.kernel, sample, weights)
        return Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _division(self) -> Division:
        return Division(
            int(self.n_clusters),
            float(self.alpha),
            self.search,
            self.schedule,
            int(self.n_init),
            self.cluster_sizes,
            float(self.size_tolerance),
            float(self.min_share),
        )

    def _fit_rows(self, work: Work, random_state: Any) -> Samples:
        sample, weights = work.found.sample, work.sample_weights
        self._check_rows(sample, work.samples.n_samples)
        kernel = self._kernel(sample, weights)
        basis = choose_landmarks(sample, self._basis_size(sample.shape[0]), random_state, weights)
        if basis.shape[0] < self.n_clusters:
            raise InputError(
                f"the sample has {basis.shape[0]} rows that differ, fewer than n_clusters={self.n_clusters}; "
                "give fewer clusters, or a larger sample_size."
            )
        columns = KernelSamples(open_samples(sample), BasisMap(kernel, basis))
        values = columns.block(0, columns.n_samples).astype(np.float64)
        metric = metric_of(kernel(basis.astype(float), basis.astype(float)), SMALLEST_EIGENVALUE)
        features = principal_features(values @ metric, weights)
        K = kernel_matrix(sample, kernel) if weights is None else None
        wanted = self._division()
        found = divide(work.engine, K, features, wanted, random_state)
        for one in found:
            work.record({"stage": "sample", "start": one.start, "objective": one.objective})
        mapped = ridge_map(features, metric, wanted.alpha)
        fit = _Fit(work, wanted, features, values, mapped)
        model = Model(
            Scores(np.empty((0, 0)), np.empty(0)),
            kernel,
            basis,
            work.found.mean,
            work.found.deviation,
            ridge=mapped,
        )
        rows = work.engine.keep(model.features(work.samples), work.plan)
        fit.run(rows, found[0].labels, int(self.max_passes))
        order = np.argsort(fit.first, kind="stable")
        rule = Scores(np.ascontiguousarray(fit.rule.coef[:, order]), fit.rule.offset[order])
        self.model_ = replace(model, rule=rule)
        self.gamma_ = kernel.gamma
        self.objective_ = mean_objective_of(fit.means, fit.sizes)
        self.converged_ = fit.settled
        self._report(fit, fit.sizes[order], found[0].objective)
        return rows

    def _check_rows(self, sample: Any, n_samples: int) -> None:
        if self.n_clusters > n_samples:
            raise InputError(
                f"n_clusters={self.n_clusters} is more than the {n_samples} rows there are; "
                "give fewer clusters."
            )
        if self.n_clusters > sample.shape[0]:
            raise InputError(
                f"sample_size={sample.shape[0]} is smaller than n_clusters={self.n_clusters}; give more rows."
            )

    def _report(self, fit: "_Fit", sizes: np.ndarray, sample_objective: float) -> None:
        empty = int((sizes == 0).sum())
        sentence = f"{empty} of the {self.n_clusters} clusters hold no row; give fewer clusters."
        doubts = [sentence] if empty else []
        self.report_ = {
            "sizes": [int(size) if size.is_integer() else size for size in sizes.tolist()],
            "gamma": self.gamma_,
            "one_against_all_objective": one_against_all_objective_of(fit.means, fit.sizes),
            "sample_objective": float(sample_objective),
            "warnings": doubts,
        }
        for sentence in doubts:
            warnings.warn(sentence, ClusterWarning, stacklevel=6)


class _Fit:
    """Passes over all rows, from the labels of the sample."""

    def __init__(
        self,
        work: Work,
        wanted: Division,
        features: PrincipalFeatures,
        values: np.ndarray,
        mapped: RidgeMap,
    ) -> None:
        self.work, self.wanted, self.features, self.mapped = work, wanted, features, mapped
        self.values = values
        self.multipliers = np.zeros(wanted.n_clusters)
        self.settled = False

    def run(self, rows: Samples, labels: np.ndarray, passes: int) -> None:
        """Label and renew; the last pass renews nothing, so that the rule and its sums belong together."""
        k, weights = self.wanted.n_clusters, self.features.weights
        row_sums, sizes = kernels.cluster_row_sums(self.values, labels, k, weights)
        rule = self._rule(self.mapped.means(row_sums, sizes), sizes)
        before = None
        for number in range(passes):
            sweep = LabelSumsPass(rule, before, self.work.weights)
            row_sums, sizes, changed, first = self.work.engine.run(sweep, rows, "all rows")
            means, total = self.mapped.means(row_sums, sizes), float(sizes.sum())
            self.settled = before is not None and changed <= SETTLED_SHARE * total
            self.rule, self.means, self.sizes, self.first = rule, means, sizes, first
            facts = {"objective": mean_objective_of(means, sizes), "changed": changed}
            self.work.record({"stage": "all rows", "round": number} | facts)
            if self.settled:
                return
            before, rule = rule, self._rule(means, sizes)

    def _rule(self, means: np.ndarray, sizes: np.ndarray) -> Scores:
        """The scores, less the multipliers that keep the sizes of the sample within their bounds."""
        held = None if self.wanted.sizes_are_free else sizes / sizes.sum()
        rule = self.mapped.scores(means, held)
        low, high = self.wanted.bounds(self.features.total)
        scores = self.values @ rule.coef - rule.offset
        weights = self.features.weights
        self.multipliers = kernels.size_multipliers(scores, low, high, weights, self.multipliers)
        return Scores(rule.coef, rule.offset + self.multipliers)
