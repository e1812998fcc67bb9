"""Support cluster machine, a classifier for large data in which one class is rare."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mmcnb._constraints import Choice, Interval
from mmcnb._fit_warnings import Importance, warn, warn_of_notes
from mmcnb.columns.gaps import donors_of_sample
from mmcnb.columns.treatment import Treatment, treat
from mmcnb.engine.fit_report import Report
from mmcnb.engine.passes import SAMPLE_ROWS, draw_sample, sample_rows
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_passes
from mmcnb.engine.run import Engine
from mmcnb.engine.sample_weights import read_weights
from mmcnb.engine.session import connected, tag
from mmcnb.errors import GapsError, InputError, one_line
from mmcnb.estimators.base import Estimator
from mmcnb.estimators.given_rows import collecting_warnings, read_input
from mmcnb.estimators.kernel_kmeans import KernelKMeans
from mmcnb.estimators.parameters import POSITIVE, default_kernel, estimator, values_of
from mmcnb.features.kernel import Kernel
from mmcnb.features.labelling import CLASS, ClassColumnPass, ColumnPasses
from mmcnb.features.model import Model
from mmcnb.features.needs import ROUTINES
from mmcnb.features.rules import Hyperplane, Scores, clusters_of, margins_of
from mmcnb.samples import Samples
from mmcnb.samples.derived import scaled_matrix
from mmcnb.samples.matrix import with_short_indices
from mmcnb.support_clusters.active import ActiveSet, take_by_group
from mmcnb.support_clusters.classes import (
    Classes,
    check_class_weight,
    check_counts,
    read_classes,
    sides_of,
    weights_of_classes,
)
from mmcnb.support_clusters.expansions import TILE, expanded
from mmcnb.support_clusters.shrinking import (
    LANDMARKS,
    PASSES,
    ROWS_A_CLUSTER,
    STATE_BYTES,
    Caches,
    Shrinking,
    caches_within,
    model_of,
)
from mmcnb.tables.array_table import open_array
from mmcnb.tables.options import OF_FITS

# More minority rows than this are clustered by default, because the training time of an
# SVM grows faster than linearly; with 4,000 rows, it is up to ten seconds. An SVM
# trained on clusters is less precise.
MOST_MINORITY = 4000
TRAINING_BYTES = 16 * 2**20  # training rows of an SVM, their copies, support vectors
# Number of passes over all rows in each round. They read the rows to cluster, assign
# clusters, gather the training rows, and compute decision values.
READS_A_ROUND = 6
LIKELY_ROUNDS = 3
LEVELS = {"balance": 1.0, "miss-rate": 0.1}  # compared by `python -m benchmarks scm`


class Memory(NamedTuple):
    """Threads and caches of a fit under its memory limit.

    Attributes
    ----------
    threads : int
        Number of threads of the passes.
    caches : Caches
        Sizes of the caches that the rounds may use.
    """

    threads: int
    caches: Caches


@dataclass(frozen=True)
class NamedRule:
    """A rule that writes the names of classes instead of their indices to tables.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Rule that returns the index of the class of each row.
    classes : ndarray of shape (n_classes,)
        Names of the classes, in the order of their indices.
    """

    rule: Hyperplane | Scores
    classes: np.ndarray

    def decide(self, rows: Any) -> np.ndarray:
        """Return the decision values of a block of features."""
        return self.rule.decide(rows)

    def label(self, rows: Any) -> np.ndarray:
        """Return the index of the class of each row (int32)."""
        return self.rule.label(rows)

    def table(self, rows: Any) -> dict[str, np.ndarray]:
        """Return the class and the margin of each row, by column name."""
        values = self.decide(rows)
        return {
            CLASS: self.classes[clusters_of(values)],
            "margin": margins_of(values),
        }


@estimator
class SupportClusterMachine(ClassifierMixin, Estimator):
    """Support vector machine for a rare class, trained on clusters of the other rows.

    The fit runs in rounds. A round clusters the rows of the majority class in feature
    space and trains an SVM on the minority rows and on one representative of each
    cluster. The upper bound of a representative's coefficient is the weight of its
    cluster, eq. (6). Majority rows far from the boundary, where abs(f) exceeds a
    threshold, are dropped, eq. (11). The next round clusters the remaining rows more
    finely, until the classes are balanced. The representatives of dropped rows remain
    in the training set, so each SVM is trained on a partition of all rows that is
    coarse far from the boundary and fine near the boundary.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Parameter gamma = 1/(2 sigma²) of the Gaussian kernel exp(-gamma |x - b|²) with
        bandwidth sigma. "auto" sets sigma to 0.55 times the root mean squared distance
        between two rows; `SparseKernelMMC` explains the other strings.
    C : float, default=1.0
        Weight of the loss of each row, as in scikit-learn's SVC.
    class_weight : {None, "balanced"} or dict, default="balanced"
        Factors of C for the rows of each class. "balanced" gives the two sides of an
        SVM the same total weight. None gives each row the same weight, as in eq. (6).
        With None, the SVM misclassifies most minority rows if classes overlap. A dict
        maps classes to factors.
    n_clusters : int or None, default=None
        Number of clusters in a round. None uses twice the number of minority rows, at
        least 100 and at most 1,000. If there are no more rows than clusters, each row
        represents itself.
    shrink_threshold : float, default=1.0
        The paper's gamma: majority rows with abs(f) above this value are dropped.
    stop : {"balance", "miss-rate"}, default="balance"
        When the rounds end. "balance" ends when the number of remaining majority rows
        is at most ``level`` times the number of minority rows; the last SVM is trained
        on all these rows. "miss-rate" ends before an SVM misses more than a share
        ``level`` of the minority rows. In both cases, the rounds also end after a round
        that drops less than a fifth of the rows.
    level : float or None, default=None
        Level of the stopping criterion. None uses 1 for "balance" and 0.1 for
        "miss-rate".
    max_rounds : int, default=10
        Maximum number of rounds.
    representative : {"member", "pseudo-centre"}, default="member"
        Which row represents a cluster. "member" draws a row of the cluster at random.
        "pseudo-centre" selects the row nearest to the cluster mean in feature space,
        eq. (10). Rows near means have a smaller variance than all rows, so the boundary
        is biased if classes overlap. Rows drawn at random have the variance of all
        rows.
    clustered : {"auto", "negatives", "both"}, default="auto"
        Which rows are clustered. "negatives" clusters only the majority rows. "both",
        for two large classes, also clusters the minority rows if there are more than
        ``n_clusters``; minority rows are never dropped, and the last SVM is trained on
        clusters of both classes. "auto" is "both" if there are more than 4,000 minority
        rows, so that the time of a fit is proportional to the number of rows, and
        "negatives" otherwise. If classes overlap, "both" is less precise.
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
    classes_ : ndarray of shape (n_classes,)
        The classes, in sorted order.
    gamma_ : float
        Gamma of the kernel.
    history_ : DataFrame
        One row per round. Columns are round, class (the class that the SVM separates
        from the others, or the smaller of two classes), representatives, settled
        (representatives of dropped rows), negatives (remaining majority rows),
        positives, support_vectors, miss_rate (share of the positives with f below 0)
        and seconds.
    report_ : dict
        The classes and their counts, gamma, the number of support vectors, and the
        reason why the rounds of each SVM ended: "balance", "all negatives",
        "miss-rate", "nothing to drop" or "max_rounds".
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns of the fit, and their names if they have any.

    See Also
    --------
    KernelKMeans : The method that clusters the rows.

    Notes
    -----
    With more than two classes, one SVM separates each class from all others, and the
    class with the largest decision value is predicted. The side with fewer rows is the
    minority. The remaining rows are kept in memory when there are at most 65,536 of
    them, or when they have at most 2^25 values, if the memory limit allows this. A fit
    needs about 8 bytes of memory per row in addition to blocks of rows, and reads all
    rows several times per round. Kernel values are computed only for the remaining
    rows.

    Differs from the paper: SCM-1, SCM-2, SCM-3, SCM-4, SCM-6, SCM-7; see
    docs/differences.

    References
    ----------
    J. Yuan, J. Li and B. Zhang, Learning concepts from large scale imbalanced data sets
    using support cluster machines, section 4. The paper does not say what happens to
    dropped rows.

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
    clustered: str = "auto"
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    constraints: ClassVar = {
        "C": POSITIVE,
        "n_clusters": Interval(1, integer=True, optional=True),
        "shrink_threshold": Interval(0.0),
        "stop": Choice(("balance", "miss-rate")),
        "representative": Choice(("member", "pseudo-centre")),
        "clustered": Choice(("auto", "negatives", "both")),
    }
    fitted_names = ("gamma", "report")
    needed_in_report = frozenset({"classes"})

    gamma_: float = field(init=False, repr=False)

    @property
    def classes_(self) -> np.ndarray:
        """Classes, in sorted order."""
        return np.asarray(self.report_["classes"])

    @collecting_warnings
    def fit(self, X: Any, y: Any = None, *, element: str | None = None) -> Self:
        """Train one SVM for two classes, or one SVM per class if there are more.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : array, Zarr array or path of an array, of shape (n_samples,), or None
            The class of each row. None uses the labels that are stored with the rows.
        {element}

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows, their classes or a parameter are invalid. The message states
            the problem and its remedy.
        """
        self._check_parameters()
        samples = read_input(self, X, reset=True, least_rows=2, element=element)
        classes = read_classes(y, X, samples)
        check_class_weight(self.class_weight, classes.names)
        check_counts(classes, self.n_clusters, self.clustered == "both")
        random_state = check_random_state(self.random_state)
        before = random_state.get_state()
        with connected(self.engine):
            try:
                self._fit_rows(samples, classes, random_state)
            except GapsError:
                random_state.set_state(before)
                filled = open_array(samples, options=OF_FITS)
                self._fit_rows(filled, classes, random_state)
        return self

    def predict(
        self,
        X: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        element: str | None = None,
    ) -> np.ndarray | None:
        """Return the class of each row.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        out : path or None, default=None
            Path of a new file, which is written block by block. If the path ends with
            ``.csv`` or ``.parquet``, the file is a table with the columns of
            `to_frame`. Otherwise, it is a Zarr array with the position of each row's
            class in ``classes_``.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,) or None
            The classes; None if they were written to ``out``.
        """
        numbers = super().predict(X, out, element=element)
        return None if numbers is None else self.classes_[numbers]

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        element: str | None = None,
    ) -> float:
        """Return the accuracy, the share of rows with a correctly predicted class.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        y : array, Zarr array or path of an array, of shape (n_samples,), or None
            The class of each row. None uses the labels that are stored with the rows.
        sample_weight : ndarray of shape (n_samples,) or None, default=None
            Weight of each row.
        {element}

        Returns
        -------
        float
            Accuracy.
        """
        from sklearn.metrics import accuracy_score

        samples = read_input(self, X, reset=False, element=element)
        classes = read_classes(y, X, samples)
        labels = classes.names[classes.codes]
        weights = None
        if sample_weight is not None:
            weights, _ = read_weights(sample_weight, samples.n_samples)
        try:
            predicted = self.predict(samples)
            return float(accuracy_score(labels, predicted, sample_weight=weights))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"y has values that are not in classes_ ({one_line(error)}); pass the "
                "classes of the fit."
            ) from error

    def _features(
        self, X: Any, element: str | None = None, **_: Any
    ) -> tuple[Samples, Any]:
        """Return rows as kernel expansions over all support vectors, and the rule.

        The rule labels rows with the names of the classes.
        """
        check_is_fitted(self, "model_")
        samples = read_input(self, X, reset=False, element=element)
        rows, rule = expanded(self.model_, samples)
        return rows, NamedRule(rule, self.classes_)

    def _column_passes(self, samples: Samples) -> tuple[ColumnPasses, list[str]]:
        """Return the pass for the class column of a table, and the column name."""
        rows, rule = expanded(self.model_, samples)
        return [(ClassColumnPass(rule, self.classes_), rows)], [CLASS]

    def plan(self, X: object, *, element: str | None = None) -> FitPlan:
        """Estimate the reads and peak memory of a fit with two classes.

        A fit can use more memory than the planned peak, up to the memory limit, because
        it caches remaining rows in free memory.

        Parameters
        ----------
        X : {rows}
            The rows, or a `RowShape` if the rows do not exist yet.
        {element}

        Returns
        -------
        FitPlan
            Memory, passes over the data, and time.

        Raises
        ------
        InputError
            If a parameter is invalid, or if the memory limit is too small.
        """
        return self._plan(self._shape_of(X, element))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        highest = np.inf if self.stop == "balance" else 1.0
        Interval(0.0, highest, optional=True).check("level", self.level)

    def _fit_rows(
        self, samples: Samples, classes: Classes, random_state: np.random.RandomState
    ) -> None:
        """Train an SVM for each class, and set the fitted attributes."""
        svms = []
        ends = []
        names = classes.names.tolist()
        history = list[dict[str, Any]]()
        memory = self._memory(samples)
        with self._open_engine(memory.threads) as engine:
            drawn, treatment = self._sample(engine, samples, random_state)
            scaling = treatment.scaling
            sample = scaled_matrix(drawn, scaling).astype(np.float64)
            kernel = default_kernel(self, with_short_indices(sample), None)
            rows = Model(Hyperplane(np.empty(0), 0.0), scaling=scaling).scaled(samples)
            clusterer = self._clusterer(kernel, random_state)
            for side in sides_of(names, classes.counts):
                is_positive = (np.arange(len(names)) == side.number) == (side.sign > 0)
                shrinking = Shrinking(
                    engine=engine,
                    kernel=kernel,
                    clusterer=clusterer,
                    random_state=random_state,
                    record=tag(history.append, **{"class": side.name}),
                    caches=memory.caches,
                    **self._settings(classes.counts[is_positive].sum()),
                )
                signs = np.where(is_positive, 1, -1).astype(np.int8)
                active = ActiveSet(
                    samples=rows,
                    numbers=None,
                    y=take_by_group(signs, classes.codes),
                    codes=classes.codes,
                    class_weights=weights_of_classes(
                        self.class_weight, classes, is_positive
                    ),
                )
                svm, end = shrinking.run(active)
                svms.append(svm.turned(side.sign))
                ends.append(end)
        model = model_of(svms, kernel, scaling)
        donors = None
        if not samples.is_sparse:
            donors = donors_of_sample(drawn, samples.encoding)
        self.model_ = model.reading(samples.encoding, donors)
        self.gamma_ = kernel.gamma
        self._report(classes, ends, history)
        for sentence in treatment.sentinels:
            warn(sentence, Importance.DATA)
        warn_of_notes(samples.notes)

    def _report(
        self,
        classes: Classes,
        ends: list[str],
        history: list[dict[str, Any]],
    ) -> None:
        """Set ``history_`` and ``report_``."""
        import pandas as pd

        self.history_ = pd.DataFrame(history)
        self.report_ = Report(
            classes=classes.names.tolist(),
            counts=classes.counts.tolist(),
            gamma=self.gamma_,
            support_vectors=self.model_.basis.shape[0],
            ends=ends,
            warnings=[],
        )

    def _sample(
        self, engine: Engine, samples: Samples, random_state: np.random.RandomState
    ) -> tuple[Any, Treatment]:
        """Draw the sample that determines gamma.

        Return the sample and the treatment of its columns.
        """
        chosen = sample_rows(samples.n_samples, SAMPLE_ROWS, None, random_state)
        drawn, moments = draw_sample(
            engine, samples, chosen, moments=self.scale == "standard"
        )
        treatment = treat(
            self.scale,
            drawn,
            moments,
            sources=samples.sources,
            is_part=chosen.size < samples.n_samples,
        )
        return drawn, treatment

    def _memory(self, samples: Samples) -> Memory:
        """Return the number of threads and the caches that the memory limit allows."""
        plan = self._plan(RowShape.of(samples, self.n_jobs))
        plan.compile_ahead()
        free_bytes = plan.memory_limit - plan.peak
        return Memory(plan.threads, caches_within(free_bytes, plan.rows))

    def _plan(self, rows: RowShape) -> FitPlan:
        """Plan the passes over all rows, without the memory of caches."""
        state = STATE_BYTES * rows.n_samples
        needs = FitNeeds(
            TILE,
            SAMPLE_ROWS,
            sample_bytes=state + TRAINING_BYTES,
            sweeps=READS_A_ROUND * int(self.max_rounds),
            likely_sweeps=READS_A_ROUND * LIKELY_ROUNDS,
            routines=ROUTINES,
        )
        return plan_passes(rows, needs, self.memory_limit, self.n_jobs)

    def _settings(self, n_positive: int) -> dict[str, Any]:
        """Return the settings of the training rounds of one SVM.

        ``n_positive`` is its number of positive rows.
        """
        level = LEVELS[self.stop] if self.level is None else self.level
        # The default number was chosen by `python -m benchmarks scm`.
        n_clusters = int(self.n_clusters or np.clip(2 * n_positive, 100, 1000))
        names = ("C", "shrink_threshold", "stop", "max_rounds", "representative")
        return values_of(self, *names) | {
            "n_clusters": n_clusters,
            "level": float(level),
            "both": self.clustered == "both"
            or (self.clustered == "auto" and n_positive > MOST_MINORITY),
        }

    def _clusterer(
        self, kernel: Kernel, random_state: Any
    ) -> Callable[[int], KernelKMeans]:
        names = (
            "kernel",
            "degree",
            "coef0",
            "memory_limit",
            "n_jobs",
            "verbose",
            "engine",
        )
        shared = values_of(self, *names) | {
            "gamma": kernel.gamma,
            "n_landmarks": LANDMARKS,
            "n_init": 1,
            "max_iter": PASSES,
        }

        def clusterer(n_clusters: int) -> KernelKMeans:
            size = max(SAMPLE_ROWS, ROWS_A_CLUSTER * n_clusters)
            seed = int(random_state.randint(2**31 - 1))
            return KernelKMeans(
                n_clusters, sample_size=size, random_state=seed, **shared
            )

        return clusterer
