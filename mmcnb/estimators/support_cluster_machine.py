"""Support cluster machine: a classifier for large data in which one class is rare."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.engine.session import connected, open_engine
from mmcnb.estimators.base import SAMPLE_ROWS, EngineEstimator
from mmcnb.estimators.classes import check_class_weight, check_counts, read_classes, weight_of_rows
from mmcnb.estimators.kernel_kmeans import KERNELS, KernelKMeans
from mmcnb.estimators.parameters import check_choice, check_gamma, check_number, read_input
from mmcnb.estimators.persistence import save_estimator
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.rules import DecisionPass, Hyperplane, LabelsPass, Scores
from mmcnb.hinge.shrinking import LANDMARKS, PASSES, ROWS_A_CLUSTER, Rules, Shrinking, model_of
from mmcnb.samples import LabelsWriter, Samples
from mmcnb.samples.derived import ScaledSamples, standardized
from mmcnb.samples.matrix import with_short_indices

CLUSTERS = 100, 1000  # least and most where n_clusters is None
LEVELS = {"balance": 1.0, "miss-rate": 0.1}


@estimator
class SupportClusterMachine(ClassifierMixin, EngineEstimator):
    """Support vector machine for many rows of which one class is rare, trained on clusters of the others.

    The rows of the more common class are clustered in feature space, and a machine is trained on the rare
    rows and on one row of each cluster, whose bound is the weight of the cluster, eq. (6). Rows of the
    common class far from its boundary, abs(f) above a threshold, are dropped, eq. (11); what is left is
    clustered again, finer, until the classes are balanced. What was dropped goes on counting through its
    representatives: so each machine is that of a partition of all rows, coarse where they are far from the
    boundary and fine where they are near.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Width of the Gaussian kernel exp(-gamma |x - b|²), gamma = 1/(2 sigma²). "auto" is sigma = 0.55 times
        the root mean squared distance between two rows; the other names are those of `SparseKernelMMC`.
    C : float, default=1.0
        Weight of the loss of a row, scikit-learn's.
    class_weight : {None, "balanced"} or dict, default="balanced"
        Factors of C for the rows of each class; "balanced" gives both sides of a machine the same weight, and
        None each row: then most of the rare ones are given up where classes overlap.
    n_clusters : int or None, default=None
        Clusters of a round; None is twice as many as there are rare rows, at least 100 and at most 1,000. Of
        no more rows than that, each represents itself.
    shrink_threshold : float, default=1.0
        The paper's gamma: rows of the common class whose abs(f) is above it are dropped.
    stop : {"balance", "miss-rate"}, default="balance"
        "balance" ends with a machine on all common rows that are left, once they are no more than ``level``
        for each rare one; "miss-rate" ends before a machine misses more than ``level`` of the rare rows. A
        round that drops less than a fifth of the rows ends both.
    level : float or None, default=None
        None is 1 for "balance" and 0.1 for "miss-rate".
    max_rounds : int, default=10
        Rounds at most.
    representative : {"member", "pseudo-centre"}, default="member"
        What stands for a cluster: a row of it, drawn at random, or the row nearest to its mean in feature
        space, eq. (10). Rows near means are closer together than rows are, and where classes overlap a
        machine on them draws its boundary too closely; drawn rows keep the spread.
    clustered : {"negatives", "both"}, default="negatives"
        "both" also clusters the rare rows, where they are more than ``n_clusters``; for classes that are
        large alike. They are not dropped; and the last machine is trained on clusters of both.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    {runtime}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    gamma_ : float
        Width of the kernel.
    history_ : DataFrame
        One row a round: round, class (the one against the others, or the rare one of two), representatives,
        settled (those of dropped rows), negatives (rows left), positives, support_vectors, miss_rate (share
        of the positives with f below 0), seconds.
    report_ : dict
        Classes and their counts, width, support vectors, and for each machine why it ended: "balance",
        "all negatives", "miss-rate", "nothing to drop" or "max_rounds".
    n_features_in_ : int
        Columns of the fit.

    See Also
    --------
    KernelKMeans : The clusters.

    Notes
    -----
    Of several classes each is set against all others, and the largest decision value wins; the side with
    fewer rows plays the rare class. Rows in play are held in memory once they are 65,536 or fewer, or have
    2^25 values or fewer.

    References
    ----------
    J. Yuan, J. Li and B. Zhang, Learning concepts from large scale imbalanced data sets using support
    cluster machines, section 4. Its text leaves open what becomes of dropped rows.

    Examples
    --------
    >>> import mmcnb
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs([20, 2000], centers=[[0, 0], [4, 4]], random_state=0)
    >>> model = mmcnb.SupportClusterMachine(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.history_["negatives"].is_monotonic_decreasing
    True
    """

    kernel: str = "rbf"
    gamma: float | str = "auto"
    C: float = 1.0
    class_weight: Any = "balanced"
    n_clusters: int | None = None
    shrink_threshold: float = 1.0
    stop: str = "balance"
    level: float | None = None
    max_rounds: int = 10
    representative: str = "member"
    clustered: str = "negatives"
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    model_: Model
    n_features_in_: int
    fitted_names = ("gamma", "report")

    # -- scikit-learn's face -----------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in sorted order."""
        return np.asarray(self.report_["classes"])

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            The rows.
        y : array, Zarr array or path of one, of shape (n_samples,), or None
            The class of each row; None takes the labels that a store keeps beside its rows.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows, their classes or a parameter cannot be used; one sentence says which and what to do.
        """
        self._check_parameters()
        samples = read_input(self, X, reset=True, least_rows=2)
        classes, codes = np.unique(read_classes(y, X, samples), return_inverse=True)
        counts = np.bincount(codes)
        check_class_weight(self.class_weight, classes)
        check_counts(classes, counts, self.n_clusters, self.clustered == "both")
        random_state = check_random_state(self.random_state)
        with connected(self.engine), self._engine() as engine:
            self._fit_rows(engine, samples, classes, codes.astype(np.int32), counts, random_state)
        return self

    def predict(self, X: Any, out: str | os.PathLike[str] | None = None) -> np.ndarray | None:
        """The class of rows.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        out : path or None, default=None
            Where to write the numbers of the classes in ``classes_`` as a Zarr array, block by block; it
            must not exist.

        Returns
        -------
        ndarray of shape (n_samples,) or None
            The classes; None where their numbers were written to ``out``.
        """
        sums, rule = self._decisions(X)
        if out is None:
            with self._engine() as engine:
                return self.classes_[np.concatenate(engine.run(LabelsPass(rule), sums, "labels"))]
        with LabelsWriter(out, sums.n_samples) as writer, self._engine() as engine:
            writer.finish_chunks(engine.run(LabelsPass(rule, writer.sink()), sums, "labels"))
        return None

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of rows: what `predict` goes by.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            f(x) = w·φ(x) + b, at least 0 for the second of two classes; or a value for each class, of which
            the largest wins.
        """
        sums, rule = self._decisions(X)
        with self._engine() as engine:
            return np.concatenate(engine.run(DecisionPass(rule), sums, "labels"))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        y : array, Zarr array or path of one, of shape (n_samples,), or None
            The class of each row; None takes the labels that a store keeps beside its rows.
        sample_weight : ndarray of shape (n_samples,) or None, default=None
            Weight of each row.

        Returns
        -------
        float
            Accuracy.
        """
        from sklearn.metrics import accuracy_score

        labels = read_classes(y, X, read_input(self, X, reset=False))
        return float(accuracy_score(labels, self.predict(X), sample_weight=sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `mmcnb.load` reads it.

        Parameters
        ----------
        path : path
            The file; one that is there is replaced.
        """
        check_is_fitted(self, "model_")
        save_estimator(self, path)

    def _decisions(self, X: Any) -> tuple[Samples, Hyperplane | Scores]:
        check_is_fitted(self, "model_")
        return self.model_.decisions(read_input(self, X, reset=False))

    def _engine(self) -> Any:
        return open_engine(self.engine, self.n_jobs, show_progress=None if self.verbose else False)

    # -- the fit -----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        check_gamma(self.gamma)
        check_number("C", self.C, 0.0, open_low=True)
        if self.n_clusters is not None:
            check_number("n_clusters", self.n_clusters, 1, integer=True)
        check_number("shrink_threshold", self.shrink_threshold, 0.0)
        check_choice("stop", self.stop, tuple(LEVELS))
        if self.level is not None:
            check_number("level", self.level, 0.0, np.inf if self.stop == "balance" else 1.0)
        check_number("max_rounds", self.max_rounds, 1, integer=True)
        check_choice("representative", self.representative, ("member", "pseudo-centre"))
        check_choice("clustered", self.clustered, ("negatives", "both"))
        check_choice("scale", self.scale, (None, "standard"))
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)

    def _fit_rows(
        self,
        engine: Engine,
        samples: Samples,
        classes: np.ndarray,
        codes: np.ndarray,
        counts: np.ndarray,
        random_state: Any,
    ) -> None:
        """Train a machine for each class, or one for two, and set the fitted attributes."""
        drawn = sample_rows(samples.n_samples, SAMPLE_ROWS, None, random_state)
        found = draw_sample(engine, samples, drawn, moments=self.scale == "standard")
        rows, sample = samples, found.sample
        if found.mean is not None and found.deviation is not None:
            rows = ScaledSamples(samples, found.mean, found.deviation)
            sample = standardized(sample, "standard")
        gamma = default_gamma(self.gamma, self.kernel, with_short_indices(sample.astype(np.float64)))
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        machines, ends, log = [], [], list[dict[str, Any]]()
        names = classes.tolist()
        for c in [1] if classes.size == 2 else range(classes.size):
            inside = codes == c
            sign = 1 if 2 * counts[c] <= codes.size else -1  # the rarer side is the positive one
            named = names[c] if sign > 0 or classes.size > 2 else names[0]
            positive = inside if sign > 0 else ~inside
            weights = weight_of_rows(self.class_weight, classes, codes, positive)
            shrinking = Shrinking(
                engine,
                self._rules(kernel, int(positive.sum())),
                self._clusterer(kernel, random_state),
                random_state,
                partial(_keep, log, named),
            )
            machine, end = shrinking.run(rows, np.where(positive, 1, -1).astype(np.int8), weights)
            machines.append(machine._replace(coef=sign * machine.coef, offset=sign * machine.offset))
            ends.append(end)
        import pandas as pd

        self.model_ = model_of(machines, kernel, found.mean, found.deviation)
        self.gamma_ = gamma
        self.history_ = pd.DataFrame(log)
        self.report_ = {
            "classes": names,
            "counts": counts.tolist(),
            "gamma": gamma,
            "support_vectors": self.model_.basis.shape[0],  # type: ignore[union-attr]
            "ends": ends,
        }

    def _rules(self, kernel: Kernel, n_positive: int) -> Rules:
        n_clusters = (
            int(np.clip(2 * n_positive, *CLUSTERS)) if self.n_clusters is None else int(self.n_clusters)
        )
        level = LEVELS[self.stop] if self.level is None else float(self.level)
        return Rules(
            kernel,
            float(self.C),
            n_clusters,
            self.clustered == "both",
            float(self.shrink_threshold),
            self.stop,
            level,
            int(self.max_rounds),
            self.representative,
        )

    def _clusterer(self, kernel: Kernel, random_state: Any) -> Callable[[int], KernelKMeans]:
        def clusterer(n_clusters: int) -> KernelKMeans:
            return KernelKMeans(
                n_clusters,
                kernel=kernel.name,
                gamma=kernel.gamma,
                degree=kernel.degree,
                coef0=kernel.coef0,
                n_landmarks=LANDMARKS,
                n_init=1,
                max_iter=PASSES,
                sample_size=max(SAMPLE_ROWS, ROWS_A_CLUSTER * n_clusters),
                memory_limit=self.memory_limit,
                n_jobs=self.n_jobs,
                random_state=int(random_state.randint(2**31 - 1)),
                verbose=self.verbose,
                engine=self.engine,
            )

        return clusterer


def _keep(log: list[dict[str, Any]], name: Any, row: dict[str, Any]) -> None:
    """Put one round into the log."""
    log.append({"class": name} | row)
