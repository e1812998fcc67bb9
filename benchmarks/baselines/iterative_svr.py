"""Iterative support vector regression: a machine that is repeatedly trained on its own labels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans
from sklearn.svm import SVC, SVR
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from benchmarks.baselines.svm import (
    POLYNOMIAL,
    balanced_threshold,
    clusters,
    default_gamma,
    rows_of,
    signs,
)


@dataclass
class IterativeSVR:
    """IterSVR and IterSVM of Zhang, Tsang and Kwok.

    The paper is "Maximum margin clustering made practical". The machine is first
    trained on the labels of k-means. Its threshold is moved until both clusters are
    large enough, and the signs of its decision values are the next labels, until the
    labels no longer change.

    Parameters
    ----------
    C, gamma, kernel, epsilon
        As in `sklearn.svm.SVR`; gamma may also be "auto" (sigma = 0.55 times the root
        mean squared distance between two rows) or "median".
    loss : {"epsilon_insensitive", "hinge"}, default="epsilon_insensitive"
        Regression to the labels (IterSVR), or classification (IterSVM).
    balance : float, default=0.4
        l/n: the smaller cluster has at least (1 - balance)/2 of the weight.
    init : {"k-means", "random"}, default="k-means"
        Initial labels.
    max_rounds : int, default=50
        Largest number of rounds.
    sample_size : int, default=2000
        Number of rows on which the machine is trained; it then labels the other rows.
    scale : {None, "standard"}, default=None
        "standard" scales the columns.
    random_state : int or None, default=None
        Seed.

    Notes
    -----
    Differs from the paper: SKMMC-22; see docs/differences.

    Examples
    --------
    >>> from benchmarks.baselines import IterativeSVR
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(200, centers=2, random_state=0, cluster_std=0.5)
    >>> model = IterativeSVR(random_state=0).fit(X)
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
    sample_size: int = 2000
    scale: str | None = None
    random_state: int | None = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None
    ) -> Self:
        """Find the clusters of dense or CSR rows."""
        random_state = check_random_state(self.random_state)
        X = rows_of(X, self.scale)
        rows = np.arange(X.shape[0])
        if self.sample_size < len(rows):
            rows = sample_without_replacement(
                len(rows), self.sample_size, random_state=random_state
            )
            rows.sort()
        sample = X[rows]
        weights = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
        shares = weights / weights.sum()
        svm = self._machine(sample, weights)
        y = self._start(sample, weights, random_state.randint(2**31 - 1))
        decide = svm.decision_function if self.loss == "hinge" else svm.predict
        for n_iter in range(1, self.max_rounds + 1):
            self.n_iter_ = n_iter
            svm.fit(sample, y, sample_weight=weights)
            f = decide(sample)
            threshold = balanced_threshold(f, shares, self.balance)
            f -= threshold
            y_before = y
            y = signs(f)
            has_both_signs = f.min() < 0 <= f.max()
            self.converged_ = bool(has_both_signs and (y == y_before).all())
            if self.converged_ or (y == y[0]).all():
                break
        self.objective_ = self._objective(svm, f, weights)
        self.labels_ = clusters(decide(X) - threshold)
        return self

    def _start(self, sample: Any, weights: np.ndarray, seed: int) -> np.ndarray:
        """Return labels -1 and +1, both of which occur."""
        if self.init != "random":
            kmeans = KMeans(2, n_init=10, random_state=seed)
            kmeans.fit(sample, sample_weight=weights)
            return np.where(kmeans.labels_ == 1, 1, -1)
        random_state = np.random.RandomState(seed)
        y = np.where(random_state.uniform(size=sample.shape[0]) < 0.5, -1, 1)
        if (y == y[0]).all():
            y[random_state.randint(len(y))] *= -1
        return y

    def _machine(self, sample: Any, weights: np.ndarray) -> SVC | SVR:
        """Return an untrained machine."""
        parameters = {
            "C": self.C,
            "kernel": self.kernel,
            "gamma": default_gamma(self.gamma, self.kernel, sample, weights),
            "max_iter": 10**7,  # for values of C with which it does not converge
            **POLYNOMIAL,
        }
        if self.loss == "hinge":
            return SVC(**parameters)
        return SVR(epsilon=self.epsilon, **parameters)

    def _objective(self, svm: SVC | SVR, f: np.ndarray, weights: np.ndarray) -> float:
        """Return 1/2 |w|² + C Σ loss."""
        # The dual coefficients sum to 0, so their product with f is |w|².
        norm2 = float((svm.dual_coef_ @ f[svm.support_])[0])
        missing = 1 - np.abs(f)
        if self.loss != "hinge":
            missing = np.abs(missing) - self.epsilon
        loss = np.maximum(0, missing)
        return 0.5 * norm2 + self.C * float((weights * loss).sum())
