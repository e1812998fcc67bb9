"""Iterative support vector regression: two clusters by a machine trained on its own labels."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning
from mmcnb.estimators.base import StreamedClusterer, estimator
from mmcnb.estimators.parameters import check_choice, check_gamma, check_number
from mmcnb.estimators.unsupervised_rls import KERNELS
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, balanced_threshold, coin_flip, signs
from mmcnb.samples import Samples
from mmcnb.samples.matrix import row_shares, with_short_indices

CACHE_MIB = 100  # of kernel columns in scikit-learn's solver
ONE_CLUSTER = "the machine gives all rows one decision value, which parts nothing; give another gamma or C."


@estimator
class IterativeSVR(StreamedClusterer):
    """Maximum margin clustering by support vector regression on its own labels (IterSVR, IterSVM).

    From the labels of k-means a support vector machine is trained, its bias is moved until both clusters are
    large enough, its signs are the labels to train on next, until they stand still. The absolute loss, which
    punishes rows far on the right side too, keeps it from standing still at once, as the hinge does. It runs
    on a sample, or on all rows where there are no more, and the last machine labels all rows in one pass.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of a row, scikit-learn's.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
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
        1/2 |w|² + C Σ_i w_i loss(y_i, f_i) over the sample, for the labels y_i that the machine gives itself.
    gamma_ : float
        Width of the kernel.
    converged_ : bool
        Whether the labels stood still.
    history_ : DataFrame
        One row a round: stage, round, objective, changed labels, support vectors; and so far: reads, sweeps,
        bytes, resumed, seconds.
    report_ : dict
        Sizes of the clusters of the sample, width, support vectors, warnings.
    n_features_in_ : int
        Columns of the fit.

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

    fitted_names = ("objective", "gamma", "converged", "report")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 0.0, open_low=True)
        check_gamma(self.gamma)
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("loss", self.loss, ("epsilon_insensitive", "hinge"))
        check_number("epsilon", self.epsilon, 0.0, 1.0, open_high=True)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_choice("init", self.init, ("k-means", "random"))
        check_number("max_rounds", self.max_rounds, 1, integer=True)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)

    def _basis_size(self, n_samples: int) -> int:
        return min(n_samples, self._rows_of_sample())

    def _sample_bytes(self, n_samples: int) -> float:
        return CACHE_MIB * 2.0**20

    def _sweeps(self) -> int:
        return 1  # the labels

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        sample, weights = with_short_indices(session.found.sample.astype(np.float64)), session.sample_weights
        gamma = default_gamma(self.gamma, self.kernel, sample, weights)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        y = self._start(sample, weights, random_state)
        shares = row_shares(sample.shape[0], weights)
        for number in range(int(self.max_rounds)):
            machine = self._machine(kernel).fit(sample, y, sample_weight=weights)
            f = machine.decision_function(sample) if self.loss == "hinge" else machine.predict(sample)
            threshold = balanced_threshold(f, shares, float(self.balance))
            f -= threshold
            self.objective_ = self._objective(machine, f, weights)
            changed = signs(f) != y
            moved = np.count_nonzero(changed) if weights is None else weights[changed].sum()
            facts = {"stage": "sample", "round": number, "objective": self.objective_}
            session.record(facts | {"changed": float(moved), "support_vectors": len(machine.support_)})
            parted = bool(f.min() < 0 <= f.max())
            self.converged_ = parted and not changed.any()
            if self.converged_ or not parted:
                break
            y = signs(f)
        self.gamma_ = gamma
        self.model_ = self._model(session, machine, kernel, float(machine.intercept_[0]) - threshold)
        self._report(machine, f, parted)
        return self.model_.features(session.samples)

    def _start(self, sample: Any, weights: np.ndarray | None, random_state: Any) -> np.ndarray:
        """Labels -1 and +1, both present."""
        seed = int(random_state.randint(2**31 - 1))
        if self.init == "random":
            return coin_flip(sample.shape[0], np.random.RandomState(seed)).y
        from sklearn.cluster import KMeans

        fitted = KMeans(2, n_init=10, random_state=seed).fit(sample, sample_weight=weights)
        return np.where(fitted.labels_ == 1, 1, -1).astype(np.int8)

    def _machine(self, kernel: Kernel) -> Any:
        from sklearn.svm import SVC, SVR

        shared = {"C": float(self.C), "kernel": kernel.name, "gamma": kernel.gamma, "cache_size": CACHE_MIB}
        shared |= {"degree": kernel.degree, "coef0": kernel.coef0}
        return SVC(**shared) if self.loss == "hinge" else SVR(epsilon=float(self.epsilon), **shared)

    def _objective(self, machine: Any, f: np.ndarray, weights: np.ndarray | None) -> float:
        """1/2 |w|² + C Σ loss; as the dual coefficients sum to 0, their product with f is |w|²."""
        norm2 = float(_dense(machine.dual_coef_).ravel() @ f[machine.support_])
        margin = 1 - np.abs(f)
        loss = np.maximum(0, margin if self.loss == "hinge" else np.abs(margin) - float(self.epsilon))
        return 0.5 * norm2 + float(self.C) * float(loss.sum() if weights is None else weights @ loss)

    def _model(self, session: FitSession, machine: Any, kernel: Kernel, offset: float) -> Model:
        """The machine as a model, with the first row in cluster 0."""
        plane = Hyperplane(np.ascontiguousarray(_dense(machine.dual_coef_).ravel()), offset)
        basis = np.ascontiguousarray(_dense(machine.support_vectors_))
        model = Model(plane, kernel, basis, session.found.mean, session.found.deviation, "float64")
        if plane.decide(model.features(session.samples).block(0, 1))[0] >= 0:
            model = replace(model, rule=Hyperplane(-plane.coef, -plane.offset))
        return model

    def _report(self, machine: Any, f: np.ndarray, parted: bool) -> None:
        doubts = [] if parted else [ONE_CLUSTER]
        if parted and not self.converged_:
            doubts.append(f"the labels still changed after max_rounds={self.max_rounds} rounds; raise it.")
        self.report_ = {
            "sample_sizes": sorted([int((f < 0).sum()), int((f >= 0).sum())]),
            "support_vectors": len(machine.support_),
            "gamma": self.gamma_,
            "warnings": doubts,
        }
        for sentence in doubts:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, np.float64)
