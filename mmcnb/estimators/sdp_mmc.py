"""Maximum margin clustering as a semidefinite programme: two clusters in a few hundred rows."""

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb._errors import InputError
from mmcnb.engine import FitPlan, Kernel, KernelSamples
from mmcnb.estimators._model import Model
from mmcnb.estimators._streamed import ClusterWarning, StreamedClusterer, Work
from mmcnb.estimators._validate import check_choice, check_gamma, check_number
from mmcnb.estimators.iterative_svr import balanced_threshold
from mmcnb.estimators.unsupervised_rls import KERNELS
from mmcnb.samples import Samples, open_samples
from mmcnb.selection import least_squares_gamma
from mmcnb.selection.parameters import with_short_indices
from mmcnb.solvers import Hyperplane, LabelMatrix, row_shares, signs, solve_label_matrix, solve_machine

MOST_ROWS = 500
MATRICES = 24  # of rows x rows numbers, held by a Newton step
ONE_CLUSTER = "the machine puts all rows on one side, which parts nothing; give another gamma or C."
UNSOLVED = "rounding errors ended the semidefinite programme early; scale the columns or lower C."


@dataclass(frozen=True)
class _Rounded:
    """Labels of the sample, and the machine that they train.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Labels of the leading eigenvector.
    share : float
        Of the eigenvalues, the largest one's part.
    coef : ndarray of shape (m,)
        Coefficients of the centred rows in the normal vector.
    value : float
        Objective of the labels y.
    """

    y: np.ndarray
    share: float
    coef: np.ndarray
    value: float


class SDPMMC(StreamedClusterer):
    """Maximum margin clustering as a semidefinite programme (Xu, Neufeld, Larson and Schuurmans).

    Labels y are seen as the matrix M = y y', which is relaxed to be positive semidefinite with ones on its
    diagonal. The widest margin is then a convex problem: no starts, no seeds, and its optimum bounds the
    objective of all labels from below. The signs of the leading eigenvector of M are labels; the support
    vector machine trained on them, without offset in centred features, labels the rows. All rows take
    part, and more than 500 are refused.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of a row, scikit-learn's.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
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
    memory_limit : str, int or None, default=None
        Resident memory of the process, such as "512MiB"; None is half of what is free.
    n_jobs : int or None, default=None
        Threads of the passes; the programme itself runs on one. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Nothing is drawn; for the sake of one face with the other estimators.
    verbose : int, default=0
        1 shows a progress bar on a terminal.
    checkpoint : path or None, default=None
        Folder in which the fit keeps how far it has come. The programme is solved again.
    engine : None, str or dask.distributed.Client, default=None
        Who runs the passes over the rows: None is threads of this process, or what `mmcnb.config` says; a
        client, or the address of its scheduler, is a Dask cluster.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each row, 0 for the cluster of the first row; equal to ``predict(X)``.
    objective_ : float
        1/2 |w|² + C Σ_i w_i max(0, 1 - abs(f_i)): for the labels that the machine gives itself.
    gamma_ : float
        Width of the kernel.
    converged_ : bool
        Whether the relaxed programme was solved to a gap of 1e-6 of its optimum.
    history_ : DataFrame
        One row a centre of the path: stage, steps of Newton's method so far, objective (of the relaxed
        programme, from below), gap; and so far: reads, sweeps, bytes, resumed, seconds.
    report_ : dict
        Sizes of the clusters; the relaxed optimum (a lower bound), the objective of the rounded labels, the
        share of the largest eigenvalue of M (1 where M is a labelling), the share of rows that the machine
        labels as the eigenvector does, by how much its threshold was moved for the balance, width, warnings.
    n_features_in_ : int
        Columns of the fit.

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
    >>> model = mmcnb.SDPMMC().fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    >>> model.report_["relaxed"] <= model.objective_
    True
    """

    sample_size = None
    fitted_names = ("objective", "gamma", "converged", "report")

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "auto",
        kernel: str = "rbf",
        balance: float = 0.4,
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
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.balance = balance
        self.scale = scale
        self.degree = degree
        self.coef0 = coef0
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 0.0, open_low=True)
        check_gamma(self.gamma)
        check_choice("kernel", self.kernel, KERNELS)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)

    def _rows_of_sample(self) -> int:
        return MOST_ROWS

    def _basis_size(self, n_samples: int) -> int:
        return n_samples

    def _sample_bytes(self, n_samples: int) -> float:
        return MATRICES * 8.0 * n_samples**2

    def _sweeps(self) -> int:
        return 1  # the labels

    def _plan(self, samples: Samples) -> FitPlan:
        if samples.n_samples > MOST_ROWS:
            raise InputError(
                f"there are {samples.n_samples:,} rows, and the time of the semidefinite programme grows "
                f"with about the fourth power of that; give at most {MOST_ROWS}, or use SparseKernelMMC."
            )
        return super()._plan(samples)

    def _fit_rows(self, work: Work, random_state: Any) -> Samples:
        sample, weights = work.found.sample.astype(np.float64), work.sample_weights
        sample = with_short_indices(sample)
        gamma = least_squares_gamma(self.gamma, self.kernel, sample, weights)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        basis = np.ascontiguousarray(sample.toarray() if hasattr(sample, "toarray") else sample)
        rows = KernelSamples(open_samples(sample), kernel.against(basis), np.dtype(np.float64))
        matrix = rows.block(0, sample.shape[0])
        shares = row_shares(sample.shape[0], weights)
        bounds = float(self.C) * (np.ones(shares.shape[0]) if weights is None else weights)
        gram = _centred(matrix, shares)

        def record(steps: int, value: float, gap: float) -> None:
            work.record({"stage": "sample", "steps": steps, "objective": value, "gap": gap})

        relaxed = solve_label_matrix(gram, bounds, shares, float(self.balance), record)
        rounded = self._rounded(relaxed, gram, bounds, shares)
        plane, moved = self._hyperplane(rounded, matrix, shares)
        if plane.decide(rows.block(0, 1))[0] >= 0:  # the first row's cluster is 0
            plane = Hyperplane(-plane.coef, -plane.offset)
        f = plane.decide(matrix)
        norm2 = float(rounded.coef @ gram @ rounded.coef)
        self.objective_ = 0.5 * norm2 + float(bounds @ np.maximum(0, 1 - np.abs(f)))
        self.gamma_, self.converged_ = gamma, relaxed.converged
        self.model_ = Model(plane, kernel, basis, work.found.mean, work.found.deviation, "float64")
        self._report(relaxed, rounded, f, moved)
        return self.model_.features(work.samples)

    def _rounded(
        self, relaxed: LabelMatrix, gram: np.ndarray, bounds: np.ndarray, shares: np.ndarray
    ) -> _Rounded:
        """The labels of the leading eigenvector, in balance, and the machine that they train."""
        root = np.sqrt(shares)  # a weight of 2 is the row given twice, in the eigenvectors too
        values, vectors = np.linalg.eigh(root[:, None] * relaxed.matrix * root)
        leading = vectors[:, -1] / root
        y = signs(leading - balanced_threshold(leading, shares, float(self.balance)))
        alpha, value = solve_machine(gram, y, bounds)
        return _Rounded(y, float(values[-1] / values.sum()), alpha * y, value)

    def _hyperplane(
        self, rounded: _Rounded, matrix: np.ndarray, shares: np.ndarray
    ) -> tuple[Hyperplane, float]:
        """The machine on kernel values as they are, its threshold where both clusters are large enough."""
        coef = rounded.coef - rounded.coef.sum() * shares
        plane = Hyperplane(coef, -float(shares @ matrix @ coef))
        moved = balanced_threshold(plane.decide(matrix), shares, float(self.balance))
        return plane.shifted(moved), moved

    def _report(self, relaxed: LabelMatrix, rounded: _Rounded, f: np.ndarray, moved: float) -> None:
        agreement = float(np.mean(signs(f) == rounded.y))
        sizes = sorted([int((f < 0).sum()), int((f >= 0).sum())])
        doubts = [ONE_CLUSTER] if sizes[0] == 0 else []
        if not relaxed.converged:
            doubts.append(UNSOLVED)
        self.report_ = {
            "sample_sizes": sizes,
            "relaxed": relaxed.value,
            "rounded": rounded.value,
            "eigenvalue_share": rounded.share,
            "agreement": max(agreement, 1 - agreement),
            "threshold_moved": abs(moved),
            "gamma": self.gamma_,
            "warnings": doubts,
        }
        for sentence in doubts:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)


def _centred(matrix: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The kernel matrix of the features less their weighted mean."""
    means = matrix @ shares
    centred = matrix - means[:, None] - means + shares @ means
    return (centred + centred.T) / 2
