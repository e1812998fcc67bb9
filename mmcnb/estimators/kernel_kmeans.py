"""Kernel k-means: clusters by their means in feature space, on a sample and then on all rows."""

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.estimators.base import SAMPLE_ROWS, StreamedClusterer, estimator
from mmcnb.estimators.parameters import check_choice, check_gamma, check_number, read_input
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.nystroem import RidgeMap, choose_landmarks, landmark_values
from mmcnb.features.rules import DecisionPass, Scores
from mmcnb.least_squares.all_rows import check_clusters
from mmcnb.least_squares.kernel_kmeans import Distances, Means, lloyd, mini_batches, pseudo_centre_pass
from mmcnb.samples import BLOCK_ROWS, Samples
from mmcnb.samples.matrix import row_shares

KERNELS = ("rbf", "linear", "poly")
ALGORITHMS = ("full", "mini-batch")
LANDMARKS = 300
ROWS_A_CLUSTER = 10  # of the sample
BLOCKS = 16  # that have scores, or sums that wait to be added, at a time; about


@estimator
class KernelKMeans(TransformerMixin, ClassNamePrefixFeaturesOutMixin, StreamedClusterer):
    """k-means in the feature space of a kernel.

    Rows are seen through landmarks, in whose features each row is an explicit vector, so that k-means is
    exact: with as many landmarks as there are different rows it is kernel k-means itself. A sample is
    divided from several k-means++ starts; passes over all rows follow, each of which labels the rows by
    the nearest mean and renews the means from sums of k (p + 1) numbers, until the means stand still.
    Nothing of the length of the data is kept.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
    n_landmarks : int or None, default=None
        Basis vectors of the model; None is 300.
    n_init : int, default=4
        k-means++ starts on the sample, of which the one of least inertia is followed.
    max_iter : int, default=100
        Most passes over all rows, and most rounds of a start on the sample.
    tol : float, default=1e-4
        The passes end where the inertia falls by less than this share; 0 goes on until means stand still.
    algorithm : {"full", "mini-batch"}, default="full"
        "mini-batch" puts one pass before the others in which the means move after every 65,536 rows, so
        that fewer passes follow where rows are many. This process computes it, also beside a Dask cluster.
    sample_size : int or None, default=None
        Rows of the sample; None is max(2000, 10 n_clusters).
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
        Cluster of each row, numbered by the first row that falls in each; equal to ``predict(X)``.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Rows (or weight) of each cluster.
    pseudo_centres_ : ndarray of shape (n_clusters,), int64
        Row number of the pseudo-centre of each cluster: the row of the cluster, of those with a weight,
        that is nearest to its mean in feature space, of equal ones the first; eq. (10) of the paper. With
        the Gaussian kernel it is the row for which Σ_j K(x_i, x_j) is largest. -1 where a cluster has no
        weight.
    inertia_ : float
        Σ|φ(x) - m|² over the rows, m the mean of the cluster of a row; eq. (4) of the paper.
    gamma_ : float
        Width of the kernel.
    n_iter_ : int
        Passes over all rows in which labels were given and means renewed.
    converged_ : bool
        Whether the passes ended before ``max_iter``.
    history_ : DataFrame
        One row a start on the sample and one a pass: stage, start, round, inertia, and so far: reads,
        sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes, pseudo-centres, inertia on the sample, number of landmarks, warnings.
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    UnsupervisedRLS : Finds groups that k-means does not: with a ridge, sizes that are held, local search.

    Notes
    -----
    A cluster that loses all its rows keeps its mean, and may win rows again; where it ends empty the fit
    warns.

    References
    ----------
    J. Yuan, J. Li and B. Zhang, Learning concepts from large scale imbalanced data sets using support
    cluster machines, sections 2.2 and 4.3.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = mmcnb.KernelKMeans(n_clusters=3, random_state=0).fit(X)
    >>> model.cluster_sizes_.tolist()
    [100, 100, 100]
    >>> bool((model.labels_[model.pseudo_centres_] == [0, 1, 2]).all())
    True
    """

    n_clusters: int = 8
    kernel: str = "rbf"
    gamma: float | str = "auto"
    n_landmarks: int | None = None
    n_init: int = 4
    max_iter: int = 100
    tol: float = 0.0001
    algorithm: str = "full"
    sample_size: int | None = None
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    inertia_: float
    fitted_names = ("inertia", "gamma", "n_iter", "converged", "report")

    @property
    def cluster_sizes_(self) -> np.ndarray:
        """Rows (or weight) of each cluster."""
        return np.array(self.report_["sizes"])

    @property
    def pseudo_centres_(self) -> np.ndarray:
        """Row number of the pseudo-centre of each cluster."""
        return np.array(self.report_["pseudo_centres"], np.int64)

    @property
    def objective_(self) -> float:
        """The inertia, under the name it has in other methods."""
        return self.inertia_

    def transform(self, X: Any) -> np.ndarray:
        """Distances of rows to the means, in feature space.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            |z(x) - m|, for the means by which `predict` labels rows.
        """
        check_is_fitted(self, "model_")
        assert self.model_.ridge is not None
        assert isinstance(self.model_.rule, Scores)
        features = self.model_.features(read_input(self, X, reset=False))
        distances = Distances(self.model_.rule, self.model_.ridge)
        with self._engine(self.n_jobs) as engine:
            return np.concatenate(engine.run(DecisionPass(distances), features, "features"))

    @property
    def _n_features_out(self) -> int:
        return len(self.report_["sizes"])

    # -- the fit -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_clusters", self.n_clusters, 1, integer=True)
        check_choice("kernel", self.kernel, KERNELS)
        check_gamma(self.gamma)
        if self.n_landmarks is not None:
            check_number("n_landmarks", self.n_landmarks, 1, integer=True)
        check_number("n_init", self.n_init, 1, integer=True)
        check_number("max_iter", self.max_iter, 1, integer=True)
        check_number("tol", self.tol, 0.0)
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)

    def _rows_of_sample(self) -> int:
        return self.sample_size or max(SAMPLE_ROWS, ROWS_A_CLUSTER * self.n_clusters)

    def _basis_size(self, n_samples: int) -> int:
        return min(n_samples, self._rows_of_sample(), self.n_landmarks or LANDMARKS)

    def _sample_bytes(self, n_samples: int) -> float:
        rows, p = min(n_samples, self._rows_of_sample()), self._basis_size(n_samples)
        return 8.0 * (2 * rows * p + self.n_clusters * (max(rows, BLOCKS * BLOCK_ROWS) + BLOCKS * p))

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        sample = session.found.sample
        check_clusters(self.n_clusters, sample, session.samples.n_samples)
        gamma = default_gamma(self.gamma, self.kernel, sample, session.sample_weights)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        started = self._start(session, kernel, random_state)
        empty = Scores(np.empty((0, 0)), np.empty(0))
        mean, deviation = session.found.mean, session.found.deviation
        model = Model(empty, kernel, started.basis, mean, deviation, ridge=started.mapped)
        rows = session.engine.cache(model.features(session.samples), session.plan)
        found = self._passes(session, rows, started)
        sweep = pseudo_centre_pass(found, started.mapped, session.weights, self.kernel == "rbf")
        _, centres = session.engine.run(sweep, rows, "pseudo-centres")
        self.model_ = replace(model, rule=found.rule)
        self.gamma_, self.inertia_ = gamma, found.inertia
        self.n_iter_, self.converged_ = found.n_iter, found.converged
        self._report(found, centres, started)
        return rows

    def _start(self, session: FitSession, kernel: Kernel, random_state: Any) -> "Started":
        """The best of several starts on the sample."""
        from sklearn.cluster import kmeans_plusplus

        sample, weights, k = session.found.sample, session.sample_weights, int(self.n_clusters)
        basis = choose_landmarks(sample, self._basis_size(sample.shape[0]), random_state, weights)
        values, normalization = landmark_values(sample, kernel, basis)
        check_distinct(values, k, basis.shape[0])
        mapped = RidgeMap(normalization, row_shares(sample.shape[0], weights) @ values @ normalization)
        z, values = mapped.decide(values), values.astype(np.float32)  # as they were computed
        ones = np.ones(z.shape[0]) if weights is None else weights

        def follow(seed: int) -> Means:
            means, _ = kmeans_plusplus(z, k, sample_weight=ones, random_state=seed)
            run = partial(_on_sample, values=values)
            *_, last = lloyd(run, mapped, means, weights, int(self.max_iter), float(self.tol))
            return last

        seeds = random_state.randint(2**31 - 1, size=int(self.n_init)).tolist()
        found = session.engine.each(follow, seeds)
        for number, one in enumerate(found):
            session.record({"stage": "sample", "start": number, "round": one.n_iter, "inertia": one.inertia})
        return Started(basis, mapped, min(found, key=lambda one: one.inertia))

    def _passes(self, session: FitSession, rows: Samples, started: "Started") -> Means:
        """Passes over all rows, from the means of the sample."""
        means = started.found.means
        if self.algorithm == "mini-batch":
            means = mini_batches(session.engine, rows, started.mapped, started.found, session.weights)
            session.record({"stage": "mini-batch"})

        def run(sweep: Any) -> list[Any]:
            return session.engine.run(sweep, rows, "all rows")

        manner = session.weights, int(self.max_iter), float(self.tol)
        for found in lloyd(run, started.mapped, means, *manner):
            session.record({"stage": "all rows", "round": found.n_iter - 1, "inertia": found.inertia})
        return found

    def _report(self, found: Means, centres: np.ndarray, started: "Started") -> None:
        empty = int((found.sizes == 0).sum())
        doubts = [f"{empty} of the {self.n_clusters} clusters hold no row; give fewer."] if empty else []
        self.report_ = {
            "sizes": [int(size) if size.is_integer() else size for size in found.sizes.tolist()],
            "pseudo_centres": centres.tolist(),
            "sample_inertia": started.found.inertia,
            "n_landmarks": started.basis.shape[0],
            "warnings": doubts,
        }
        for sentence in doubts:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)


@dataclass(frozen=True)
class Started:
    """Landmarks, coordinates and the means of the sample."""

    basis: np.ndarray
    mapped: RidgeMap
    found: Means


def _on_sample(sweep: Any, values: np.ndarray) -> list[Any]:
    """The total of a pass over rows in memory."""
    total: list[Any] = sweep.block(values, 0, values.shape[0])
    return total


def check_distinct(values: np.ndarray, n_clusters: int, known: int) -> None:
    """Refuse more clusters than rows that differ.

    Raises
    ------
    InputError
        If there are fewer.
    """
    distinct = known if known >= n_clusters else np.unique(values, axis=0).shape[0]
    if distinct < n_clusters:
        raise InputError(
            f"the sample has {distinct} rows that differ, fewer than n_clusters={n_clusters}; "
            "give fewer clusters, or a larger sample_size."
        )
