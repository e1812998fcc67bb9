"""Kernel k-means: k-means in the feature space of a kernel."""

from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.session import (
    FitResult,
    FitSession,
    Record,
    run_starts,
    whole_numbers,
)
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.given_rows import filling_gaps
from mmcnb.estimators.outputs import RowTransformerMixin
from mmcnb.estimators.parameters import (
    KernelFunction,
    default_kernel,
    estimator,
    values_of,
)
from mmcnb.features.labelling import DecisionPass
from mmcnb.features.model import Model
from mmcnb.features.needs import landmark_needs
from mmcnb.features.nystroem import RidgeMap, choose_landmarks, landmark_values
from mmcnb.least_squares.all_rows import LabelSumsPass
from mmcnb.least_squares.kernel_kmeans import Distances, Means, lloyd
from mmcnb.least_squares.partition import partition_seconds
from mmcnb.least_squares.search import LANDMARKS
from mmcnb.samples import BLOCK_ROWS
from mmcnb.samples.matrix import check_clusters, check_places, row_shares

BLOCKS = 16  # approximate number of blocks with scores or sums in memory at a time
LIKELY_SWEEPS = 20  # passes that a typical fit needs until it converges


@estimator
class KernelKMeans(RowTransformerMixin, KernelFunction, StreamedClusterer):
    """k-means in the feature space of a kernel.

    Landmarks map each row to an explicit vector, on which ordinary k-means runs. With
    as many landmarks as there are distinct rows, this is exact kernel k-means. The fit
    clusters a sample from several k-means++ starts. Then, each pass over all rows
    assigns the rows to the nearest mean and updates the means, until they converge. A
    pass returns only sums of k (p + 1) numbers for p landmarks, so the passes store no
    array with an entry for each row.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" sets sigma to 0.55 times the root mean squared distance
        between two rows; `SparseKernelMMC` explains the other strings.
    n_landmarks : int or None, default=None
        Number of basis vectors (landmarks) of the model; None uses 300.
    n_init : int, default=4
        Number of k-means++ starts on the sample. The start with the smallest inertia is
        continued on all rows.
    max_iter : int, default=100
        Maximum number of passes over all rows, and of iterations of a start on the
        sample.
    tol : float, default=1e-4
        Tolerance for the relative decrease of the inertia: the passes end when the
        decrease in a pass is smaller. With 0, they end when the means no longer change.
    sample_size : int or None, default=None
        Number of rows in the sample; None uses max(2000, 10 n_clusters).
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
    inertia_ : float
        Σ|φ(x) - m|² over all rows x, where m is the mean of the row's cluster; eq. (4)
        of the paper.
    gamma_ : float
        Gamma of the kernel.
    n_iter_ : int
        Number of passes over all rows that updated labels and means.
    converged_ : bool
        Whether the passes ended before ``max_iter``.
    history_ : DataFrame
        One row per start on the sample and one per pass: stage, start, round and
        inertia, and the totals since the start of the fit: reads, sweeps, bytes,
        resumed and seconds.
    report_ : dict
        Cluster sizes, inertia on the sample, number of landmarks, and warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    UnsupervisedRLS : Ridge regression and local search, which find clusters that
        k-means does not find.

    Notes
    -----
    A cluster that loses all its rows keeps its mean, and may get rows again. If a
    cluster is empty at the end, the fit issues a warning.

    Differs from the paper: SCM-4; see docs/differences.

    References
    ----------
    J. Yuan, J. Li and B. Zhang, Learning concepts from large scale imbalanced data sets
    using support cluster machines, sections 2.2 and 4.3.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> model = mmcnb.KernelKMeans(n_clusters=3, random_state=0).fit(X)
    >>> model.cluster_sizes_.tolist()
    [100, 100, 100]
    >>> typical = model.transform(X).argmin(axis=0)  # the nearest row to each mean
    >>> model.labels_[typical].tolist()
    [0, 1, 2]
    """

    n_clusters: int = field(default=8, kw_only=False)
    n_landmarks: int | None = None
    n_init: int = 4
    max_iter: int = 100
    tol: float = 0.0001
    sample_size: int | None = None

    inertia_: float = field(init=False, repr=False)
    limit = "max_iter"
    needs_ridge = True
    fitted_names = ("inertia", "gamma", "n_iter", "converged", "report")

    @property
    def objective_(self) -> float:
        """Inertia, under the name that other estimators use for their objective."""
        return self.inertia_

    @filling_gaps
    def transform(self, X: object, *, element: str | None = None) -> np.ndarray:
        """Return the distances of rows to the means in feature space.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        {element}

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), float64
            Distance |z(x) - m| from the features z(x) of each row to each mean m.
            `predict` returns the cluster of the nearest mean.
        """
        features, _ = self._features(X, element)
        model: Any = self.model_  # a model with a rule of scores and a ridge map
        return self._run(
            DecisionPass(Distances(model.rule, model.ridge)), features, "features"
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.report_["sizes"])

    def _needs(self, rows: RowShape) -> FitNeeds:
        k = int(self.n_clusters)
        sweeps = int(self.max_iter)
        size = min(rows.n_samples, self.sample_size or max(SAMPLE_ROWS, 10 * k))
        p = min(size, self.n_landmarks or LANDMARKS)
        needs = landmark_needs(rows, p, size)
        landmark_values = 2 * size * p
        # Scores of the sample or of blocks, and block sums that are not yet added up.
        scored_rows = max(size, min(rows.n_samples, BLOCKS * BLOCK_ROWS))
        cluster_values = k * (scored_rows + BLOCKS * p)
        own_bytes = 8.0 * (landmark_values + cluster_values)
        return replace(
            needs,
            sample_bytes=needs.sample_bytes + own_bytes,
            search_seconds=partition_seconds(size, k),
            sweeps=sweeps,
            likely_sweeps=min(sweeps, LIKELY_SWEEPS),
        )

    def _fit(self, session: FitSession) -> FitResult:
        sample = session.sample
        weights = session.sample_weights
        k = int(self.n_clusters)
        check_clusters(k, sample, session.samples.n_samples)
        kernel = default_kernel(self, sample, weights)
        basis = choose_landmarks(
            sample, self.n_landmarks or LANDMARKS, session.random_state, weights
        )
        values, normalization = landmark_values(sample, kernel, basis)
        if basis.shape[0] < k:
            check_places(np.unique(values, axis=0).shape[0], k)
        shares = row_shares(sample.shape[0], weights)
        mapped = RidgeMap(normalization, shares @ values @ normalization)
        start = self._cluster_sample(session, mapped, values)
        model = Model(start.rule, kernel, basis, session.scaling, ridge=mapped)
        rows = session.cached(model.features(session.samples))
        for state in lloyd(
            partial(session.engine.run, samples=rows, description="all rows"),
            mapped,
            start.means,
            session.weights,
            int(self.max_iter),
            float(self.tol),
        ):
            row = {"stage": "all rows", "round": state.n_iter - 1}
            session.record(row | {"inertia": state.inertia})
        warnings = []
        n_empty = int((state.sizes == 0).sum())
        if n_empty:
            warnings.append(
                f"{n_empty} of the {k} clusters contain no rows; pass fewer clusters."
            )
        return FitResult(
            replace(model, rule=state.rule),
            rows,
            attributes=values_of(state, "inertia", "n_iter", "converged")
            | {"gamma": kernel.gamma},
            report={"sample_inertia": start.inertia, "n_landmarks": basis.shape[0]},
            per_cluster={"sizes": whole_numbers(state.sizes.tolist())},
            warnings=warnings,
        )

    def _cluster_sample(
        self, session: FitSession, mapped: RidgeMap, values: np.ndarray
    ) -> Means:
        """Run k-means on the sample from several starts, and return the best result."""
        from sklearn.cluster import kmeans_plusplus

        weights = session.sample_weights
        z = mapped.decide(values)  # from the exact values, before they are rounded
        rounded = values.astype(np.float32)

        def run_on_sample(sweep: LabelSumsPass) -> list[Any]:
            return sweep.block(rounded, 0, len(z))

        def run_start(start: tuple[int, int], record: Record) -> Means:
            number, seed = start
            means, _ = kmeans_plusplus(
                z, int(self.n_clusters), sample_weight=weights, random_state=seed
            )
            *_, state = lloyd(
                run_on_sample,
                mapped,
                means,
                weights,
                int(self.max_iter),
                float(self.tol),
            )
            row = {"stage": "sample", "start": number, "round": state.n_iter}
            record(row | {"inertia": state.inertia})
            return state

        seeds = session.random_state.randint(2**31 - 1, size=int(self.n_init)).tolist()
        starts = list(enumerate(seeds))
        states = run_starts(session.engine, run_start, starts, session.record)
        return min(states, key=lambda state: state.inertia)
