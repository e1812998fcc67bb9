"""Support cluster machine: a classifier for large data in which one class is rare."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mmcnb._constraints import Choice, Interval
from mmcnb.columns.gaps import donors_of_sample
from mmcnb.columns.treatment import Treatment, treat
from mmcnb.engine.fit_report import Report
from mmcnb.engine.passes import SAMPLE_ROWS, draw_sample, sample_rows
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_passes
from mmcnb.engine.run import Engine
from mmcnb.engine.sample_weights import read_weights
from mmcnb.engine.session import connected, tag
from mmcnb.errors import ClusterWarning, GapsError, InputError, one_line
from mmcnb.estimators.base import Estimator
from mmcnb.estimators.given_rows import read_input
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

# More minority rows are clustered by default, as the time of an SVM grows faster than
# its rows: it takes up to ten seconds with so many. On clusters it is less precise.
MOST_MINORITY = 4000
TRAINING_BYTES = 16 * 2**20  # rows of an SVM, their copies, and its support vectors
# Passes over all rows that a round makes: rows to cluster, clusters, rows of parts of
# the training set, and decision values.
READS_A_ROUND = 6
LIKELY_ROUNDS = 3
LEVELS = {"balance": 1.0, "miss-rate": 0.1}  # `python -m benchmarks scm`


class Memory(NamedTuple):
    """How a memory limit is used.

    Attributes
    ----------
    threads : int
        Threads of the passes.
    caches : Caches
        What the rounds cache.
    """

    threads: int
    caches: Caches


@dataclass(frozen=True)
class NamedRule:
    """A rule that names the class of a row in tables.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Gives the number of the class of a row.
    classes : ndarray of shape (n_classes,)
        The classes.
    """

    rule: Hyperplane | Scores
    classes: np.ndarray

    def decide(self, rows: Any) -> np.ndarray:
        """Return decision values of a block of features."""
        return self.rule.decide(rows)

    def label(self, rows: Any) -> np.ndarray:
        """Return the number of the class of each row (int32)."""
        return self.rule.label(rows)

    def table(self, rows: Any) -> dict[str, np.ndarray]:
        """Return class and margin of each row."""
        values = self.decide(rows)
        return {
            CLASS: self.classes[clusters_of(values)],
            "margin": margins_of(values),
        }


@estimator
class SupportClusterMachine(ClassifierMixin, Estimator):
    """Support vector machine for a rare class, trained on clusters of the other rows.

    The rows of the majority class are clustered in feature space. An SVM is trained on
    the minority rows and on one row of each cluster, whose bound is the weight of the
    cluster, eq. (6). Majority rows far from its boundary, abs(f) above a threshold, are
    dropped, eq. (11). The rest is clustered again, finer, until the classes are
    balanced. Dropped rows still count through their representatives: so each SVM is
    that of a partition of all rows, coarse far from the boundary and fine near it.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        Kernel function.
    gamma : float or {"auto", "mean", "median", "scale"}, default="auto"
        Gamma of the Gaussian kernel exp(-gamma |x - b|²), 1/(2 sigma²) for a bandwidth
        sigma. "auto" is sigma = 0.55 times the root mean squared distance between two
        rows; the other names are those of `SparseKernelMMC`.
    C : float, default=1.0
        Weight of the loss of a row, scikit-learn's.
    class_weight : {None, "balanced"} or dict, default="balanced"
        Factors of C for the rows of each class. "balanced" gives both sides of an SVM
        the same weight, and None each row, as eq. (6) does: then most minority rows are
        given up if classes overlap.
    n_clusters : int or None, default=None
        Clusters of a round; None is twice as many as there are minority rows, at least
        100 and at most 1,000. Of no more rows than that, each represents itself.
    shrink_threshold : float, default=1.0
        The paper's gamma: majority rows whose abs(f) is above it are dropped.
    stop : {"balance", "miss-rate"}, default="balance"
        "balance" ends with an SVM on all majority rows that are left, once they are no
        more than ``level`` for each minority row. "miss-rate" ends before an SVM misses
        more than ``level`` of the minority rows. A round that drops less than a fifth
        of the rows ends both.
    level : float or None, default=None
        None is 1 for "balance" and 0.1 for "miss-rate".
    max_rounds : int, default=10
        Rounds at most.
    representative : {"member", "pseudo-centre"}, default="member"
        The row that represents a cluster: drawn at random from it, or nearest to its
        mean in feature space, eq. (10). Rows near means lie closer together than all
        rows, so that if classes overlap the boundary of an SVM on them is too narrow.
        Drawn rows keep the variance.
    clustered : {"auto", "negatives", "both"}, default="auto"
        "both" also clusters the minority rows, if they are more than ``n_clusters``;
        for two large classes. They are not dropped, and the last SVM is trained on
        clusters of both. "auto" does so if there are more than 4,000 minority rows:
        so the time of a fit is proportional to the number of rows. If classes overlap,
        it costs some precision.
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
        Gamma of the kernel.
    history_ : DataFrame
        One row a round: round, class (that against the others, or the smaller of two),
        representatives, settled (those of dropped rows), negatives (rows left),
        positives, support_vectors, miss_rate (share of the positives with f below 0),
        seconds.
    report_ : dict
        Classes and their counts, gamma, support vectors, and for each SVM why its
        rounds ended: "balance", "all negatives", "miss-rate", "nothing to drop" or
        "max_rounds".
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    KernelKMeans : The clusters.

    Notes
    -----
    Of several classes each is set against all others, and the largest decision value
    wins; the side with fewer rows is the minority. Rows that are not dropped are kept
    in memory once they are 65,536 or fewer, or have 2^25 values or fewer, if the memory
    limit allows. A fit takes about 8 bytes of memory a row beside blocks of rows, and a
    few reads of all rows a round; kernel values are computed for the rows that are
    left.

    Differs from the paper: SCM-1, SCM-2, SCM-3, SCM-4, SCM-6, SCM-7; see
    docs/differences.

    References
    ----------
    J. Yuan, J. Li and B. Zhang, Learning concepts from large scale imbalanced data sets
    using support cluster machines, section 4. Its text leaves open what becomes of
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
        """The classes, in sorted order."""
        return np.asarray(self.report_["classes"])

    def fit(self, X: Any, y: Any = None, *, element: str | None = None) -> Self:
        """Train an SVM for each class, or one for two.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : array, Zarr array or path of one, of shape (n_samples,), or None
            The class of each row; None takes the labels that a store keeps beside its
            rows.
        {element}

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows, their classes or a parameter cannot be used; one sentence says
            which and what to do.
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
        """Return the class of rows.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        out : path or None, default=None
            Path of a new file, written block by block. A path that ends with ``.csv``
            or ``.parquet`` is a table with the columns of `to_frame`; others are a Zarr
            array of the numbers of the classes in ``classes_``.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,) or None
            The classes; None if their numbers were written to ``out``.
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
        """Return the share of the rows whose class is predicted.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        y : array, Zarr array or path of one, of shape (n_samples,), or None
            The class of each row; None takes the labels that a store keeps beside its
            rows.
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
                f"y has values beside classes_ ({one_line(error)}); give classes."
            ) from error

    def _features(
        self, X: Any, element: str | None = None, **_: Any
    ) -> tuple[Samples, Any]:
        """Return the rows as expansions over all support vectors, and the rule."""
        check_is_fitted(self, "model_")
        samples = read_input(self, X, reset=False, element=element)
        rows, rule = expanded(self.model_, samples)
        return rows, NamedRule(rule, self.classes_)

    def _column_passes(self, samples: Samples) -> tuple[ColumnPasses, list[str]]:
        """Return the pass that gives the classes of a table, and their column."""
        rows, rule = expanded(self.model_, samples)
        return [(ClassColumnPass(rule, self.classes_), rows)], [CLASS]

    def plan(self, X: object, *, element: str | None = None) -> FitPlan:
        """Plan a fit of two classes: its reads and its peak, before any work.

        Memory that the limit leaves free holds rows that are not dropped, so a fit can
        use more than the planned peak, within the limit.

        Parameters
        ----------
        X : {rows}
            The rows; or a `RowShape`, the shape of rows that do not exist yet.
        {element}

        Returns
        -------
        FitPlan
            As of the clusterers.

        Raises
        ------
        InputError
            If a parameter is invalid, or the memory limit is too small.
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
        self._report(classes, ends, history, [*treatment.sentinels, *samples.notes])

    def _report(
        self,
        classes: Classes,
        ends: list[str],
        history: list[dict[str, Any]],
        sentences: list[str],
    ) -> None:
        """Set history and report of a fit, and warn."""
        import pandas as pd

        self.history_ = pd.DataFrame(history)
        self.report_ = Report(
            classes=classes.names.tolist(),
            counts=classes.counts.tolist(),
            gamma=self.gamma_,
            support_vectors=self.model_.basis.shape[0],
            ends=ends,
            warnings=sentences,
        )
        for sentence in sentences:
            warnings.warn(sentence, ClusterWarning, stacklevel=4)

    def _sample(
        self, engine: Engine, samples: Samples, random_state: np.random.RandomState
    ) -> tuple[Any, Treatment]:
        """Draw rows for the kernel, and return them with the treatment of columns."""
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
        """Return the threads and the caches that the memory limit allows."""
        plan = self._plan(RowShape.of(samples, self.n_jobs))
        plan.compile_ahead()
        free_bytes = plan.memory_limit - plan.peak
        return Memory(plan.threads, caches_within(free_bytes, plan.rows))

    def _plan(self, rows: RowShape) -> FitPlan:
        """Plan the passes over all rows, before anything is cached."""
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
        """Return the parameters of the rounds of the SVM of some positive rows."""
        level = LEVELS[self.stop] if self.level is None else self.level
        # Measured by `python -m benchmarks scm`.
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
