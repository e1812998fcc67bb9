"""Iterative support vector regression: two clusters by an SVM trained on its own labels."""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mmcnb._constraints import Choice, Constraint
from mmcnb.engine.passes import SAMPLE_ROWS
from mmcnb.engine.plan import FitNeeds
from mmcnb.engine.sample_weights import loss_of_a_weight
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.errors import InputError
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.parameters import BALANCE, COUNT, POSITIVE, SAMPLED, default_kernel
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, balanced_threshold, coin_flip, signs
from mmcnb.samples.matrix import dense, row_shares, with_short_indices

CACHE_MIB = 100  # of kernel columns in scikit-learn's solver
MOST_STEPS = 10**7  # of that solver, which may otherwise never end; a fit takes some 10**5
ONE_CLUSTER = "the machine gives all rows one decision value, which parts nothing; give another gamma or C."


@estimator
class IterativeSVR(StreamedClusterer):
    """Maximum margin clustering by support vector regression on its own labels (IterSVR, IterSVM).

    An SVM is trained on the labels of k-means. Its bias is moved until both clusters are large enough, and
    its signs are the labels to train on next, until they stand still. With the hinge they do so at once; the
    absolute loss, which punishes rows far on the right side too, prevents it. The method runs on a sample, or
    on all rows where there are no more, and the last SVM labels all rows in one pass.

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
    loss : {"epsilon_insensitive", "hinge"}, default="epsilon_insensitive"
        "epsilon_insensitive" is regression to the labels (IterSVR), "hinge" classification (IterSVM).
    epsilon : float, default=0.0
        Half the width of the tube without loss; 0 is the absolute loss.
    balance : float, default=0.4
        l/n: bound of abs(sum(y))/n, counted by weight; the smaller cluster holds at least (1 - balance)/2.
    init : {"k-means", "random"}, default="k-means"
        Labels of the start.
    max_rounds : int, default=50
        Rounds at most.
    sample_size : int or None, default=None
        Rows of the sample; None is 2,000. Training takes a time between their square and their cube.
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
        1/2 |w|² + C Σ_i w_i loss(y_i, f_i) over the sample, for the labels y_i that the SVM gives itself.
    gamma_ : float
        Gamma of the kernel.
    converged_ : bool
        Whether the labels stood still.
    history_ : DataFrame
        One row a round: stage, round, objective, changed labels, support vectors; and so far: reads, sweeps,
        bytes, resumed, seconds.
    report_ : dict
        Sizes of the clusters of the sample, gamma, support vectors, warnings.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, where they have names.

    See Also
    --------
    SparseKernelMMC : The same margin by cutting planes, in linear time.

    References
    ----------
    K. Zhang, I. W. Tsang and J. T. Kwok, Maximum margin clustering made practical.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(200, centers=2, random_state=0, cluster_std=0.5)
    >>> model = mmcnb.baselines.IterativeSVR(random_state=0).fit(X)
    >>> bool((model.labels_ == (y != y[0])).all())
    True
    """

    C: float = 1.0
    gamma: float | str = "auto"
    kernel: str = "rbf"
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.0
    balance: float = 0.4
    init: str = "k-means"
    max_rounds: int = 50
    sample_size: int | None = None
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **SAMPLED,
        "C": POSITIVE,
        "loss": Choice(("epsilon_insensitive", "hinge")),
        "epsilon": BALANCE,  # the same range
        "balance": BALANCE,
        "init": Choice(("k-means", "random")),
        "max_rounds": COUNT,
    }

    def _needs(self, n_samples: int) -> FitNeeds:
        rows = min(n_samples, self.sample_size or SAMPLE_ROWS)
        return FitNeeds(rows, rows, sample_bytes=CACHE_MIB * 2.0**20, sweeps=1)  # the labels

    def _fit(self, session: FitSession) -> FitResult:
        sample, weights = with_short_indices(session.sample.astype(np.float64)), session.sample_weights
        kernel, C = default_kernel(self, sample, weights), loss_of_a_weight(self, session)
        y, shares = self._start(sample, weights, session.seed()), row_shares(sample.shape[0], weights)
        for number in range(int(self.max_rounds)):
            svm = self._trained(kernel, C, sample, y, weights)
            f = svm.decision_function(sample) if self.loss == "hinge" else svm.predict(sample)
            threshold = balanced_threshold(f, shares, float(self.balance))
            f -= threshold
            objective, changed = self._objective(svm, C, f, weights), signs(f) != y
            moved = np.count_nonzero(changed) if weights is None else weights[changed].sum()
            row = {"stage": "sample", "round": number, "objective": objective, "changed": float(moved)}
            session.record(row | {"support_vectors": len(svm.support_)})
            parted = bool(f.min() < 0 <= f.max())
            converged = parted and not changed.any()
            if converged or not parted:
                break
            y = signs(f)
        rule = Hyperplane(dense(svm.dual_coef_).ravel(), float(svm.intercept_[0]) - threshold)
        basis = dense(svm.support_vectors_)
        model = Model(rule, kernel, basis, session.mean, session.deviation, "float64")
        unsettled = f"the labels still changed after max_rounds={self.max_rounds} rounds; raise it."
        return FitResult(
            model,
            model.features(session.samples),
            {"objective": objective, "gamma": kernel.gamma, "converged": converged},
            {
                "sample_sizes": sorted([int((f < 0).sum()), int((f >= 0).sum())]),
                "support_vectors": len(svm.support_),
                "gamma": kernel.gamma,
            },
            warnings=[] if parted else [ONE_CLUSTER],
            unsettled=unsettled if parted else ONE_CLUSTER,
        )

    def _start(self, sample: Any, weights: np.ndarray | None, seed: int) -> np.ndarray:
        """Labels -1 and +1, both present."""
        if self.init == "random":
            return coin_flip(sample.shape[0], np.random.RandomState(seed)).y
        from sklearn.cluster import KMeans

        fitted = KMeans(2, n_init=10, random_state=seed).fit(sample, sample_weight=weights)
        return np.where(fitted.labels_ == 1, 1, -1).astype(np.int8)

    def _trained(
        self, kernel: Kernel, C: float, sample: Any, y: np.ndarray, weights: np.ndarray | None
    ) -> Any:
        from sklearn.svm import SVC, SVR

        shared = {"C": C, "kernel": kernel.name, "gamma": kernel.gamma, "cache_size": CACHE_MIB}
        shared |= {"degree": kernel.degree, "coef0": kernel.coef0, "max_iter": MOST_STEPS}
        svm = SVC(**shared) if self.loss == "hinge" else SVR(epsilon=float(self.epsilon), **shared)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            svm.fit(sample, y, sample_weight=weights)
        if np.max(svm.n_iter_) >= MOST_STEPS:
            raise InputError(f"the support vector machine of C={C:g} has no solution in reach; lower C.")
        return svm

    def _objective(self, svm: Any, C: float, f: np.ndarray, weights: np.ndarray | None) -> float:
        """1/2 |w|² + C Σ loss; as the dual coefficients sum to 0, their product with f is |w|²."""
        norm2 = float(dense(svm.dual_coef_).ravel() @ f[svm.support_])
        margin = 1 - np.abs(f)
        loss = np.maximum(0, margin if self.loss == "hinge" else np.abs(margin) - float(self.epsilon))
        return 0.5 * norm2 + C * float(loss.sum() if weights is None else weights @ loss)
