"""What the two-cluster estimators share: fit on a sample, then on all rows, then label them."""

import logging
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

from mmcnb._errors import InputError
from mmcnb.engine import Engine, FitPlan, Survey, ThreadEngine, as_matrix, cache_features, plan_fit, survey
from mmcnb.estimators._model import Model
from mmcnb.estimators._persistence import save_estimator
from mmcnb.estimators._report import GRAVE, report_of
from mmcnb.estimators._validate import check_choice, check_number, read_input, read_weights
from mmcnb.samples import LabelsWriter, Samples, open_samples
from mmcnb.selection import INITS, Candidate, Search, Trial, coarse_search
from mmcnb.solvers import (
    BasisPlanes,
    DecisionPass,
    Hyperplane,
    HyperplaneLabels,
    Labels,
    Planes,
    Problem,
    Rounds,
    State,
    SweepBudget,
    continuation,
    greatest_balance,
    path_to,
    signs,
)

logger = logging.getLogger("mmcnb")
SAMPLE_ROWS = 2000
STILL_SHARE = 1e-4  # share of the labels that may still change in the last round on many rows


class ClusterWarning(UserWarning):
    """The fit ended, but what it found may not be clusters."""


@dataclass(frozen=True)
class Work:
    """What the stages of one fit share.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    samples : Samples
        All rows.
    weights : ndarray of shape (n,) or None
        Sample weights.
    plan : FitPlan
        What is held where.
    search : Search
        What is tried.
    record : callable
        Keeps one dict a sweep, for ``history_``.
    """

    engine: Engine
    samples: Samples
    weights: np.ndarray | None
    plan: FitPlan
    search: Search
    record: Callable[[dict[str, Any]], None]


class MarginClusterer(ClusterMixin, BaseEstimator):
    """Base of the two-cluster estimators; see `SparseKernelMMC` for the parameters."""

    labels_: np.ndarray
    n_features_in_: int
    threshold: Any = "adaptive"
    scale: str | None = None

    # -- scikit-learn's face -----------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find two clusters with the widest margin between them.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored, for scikit-learn's sake.
        sample_weight : ndarray of shape (n_samples,) or None, default=None
            Weight of each row; a weight of 2 is the row given twice.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows or a parameter cannot be used; one sentence says which and what to do.
        """
        samples = read_input(self, X, reset=True, least_rows=2)
        self._fit_samples(samples, sample_weight)
        self.labels_ = self._label(samples)
        return self

    def fit_model(self, X: Any, sample_weight: Any = None) -> Self:
        """Fit without labelling the rows: nothing of the length of the data is kept.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            The rows.
        sample_weight : ndarray of shape (n_samples,) or None, default=None
            Weight of each row.

        Returns
        -------
        self
            The fitted estimator, without ``labels_``; label rows with `predict`.
        """
        self._fit_samples(read_input(self, X, reset=True, least_rows=2), sample_weight)
        return self

    def predict(self, X: Any, out: str | os.PathLike[str] | None = None) -> np.ndarray | None:
        """Label rows: 1 where the decision value is at least 0, otherwise 0.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        out : path or None, default=None
            Where to write the labels as a Zarr array, block by block; it must not exist.

        Returns
        -------
        ndarray of shape (n_samples,), int32, or None
            Labels; None where they were written to ``out``.
        """
        check_is_fitted(self, "model_")
        samples = read_input(self, X, reset=False)
        if out is None:
            return self._label(samples)
        with LabelsWriter(out, samples.n_samples) as writer, self._engine() as engine:
            sweep = _WriteLabels(self.model_.hyperplane, writer)
            engine.run(sweep, self.model_.features(samples), "labels")
        return None

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed distance of rows from the boundary, in units of 1/|w|.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Decision values f(x) = w·φ(x) + b.
        """
        check_is_fitted(self, "model_")
        return self._decide(read_input(self, X, reset=False))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, whole or not at all; `mmcnb.load` reads it.

        Parameters
        ----------
        path : path
            The file; one that is there is replaced.
        """
        check_is_fitted(self, "model_")
        save_estimator(self, path)

    # -- the fit -----------------------------------------------------------------------------

    def _engine(self) -> ThreadEngine:
        return ThreadEngine(self.n_jobs, show_progress=None if self.verbose else False)

    def _check_parameters(self) -> None:
        check_number("C", self.C, 1.0, open_low=True)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_number("min_share", self.min_share, 0.0, 1.0)
        check_number("n_init", self.n_init, 1, integer=True)
        check_number("eta", self.eta, 0.0, 1.0, open_low=True)
        check_number("max_rounds", self.max_rounds, 1, integer=True)
        check_choice("init", self.init, INITS)
        check_choice("scale", self.scale, (None, "standard"))
        check_choice("threshold", self.threshold, ("adaptive", "fixed"))
        if self.sample_size is not None:
            check_number("sample_size", self.sample_size, 2, integer=True)
        if self.threshold == "adaptive" and self.balance > greatest_balance(self.C):
            raise InputError(
                f"balance={self.balance:g} is infeasible with C={self.C:g}; give a balance of at most "
                f"{max(0.0, greatest_balance(self.C)):.4g}, or raise C."
            )

    def _rows_of_sample(self) -> int:
        return SAMPLE_ROWS if self.sample_size is None else self.sample_size

    def _sample_rows(self, samples: Samples, weights: np.ndarray | None, random_state: Any) -> np.ndarray:
        """Uniform row numbers, among those with a positive weight."""
        wanted = self._rows_of_sample()
        n = samples.n_samples if weights is None else int(np.count_nonzero(weights))
        if wanted >= n:
            chosen = np.arange(n)
        else:
            chosen = np.sort(sample_without_replacement(n, wanted, random_state=random_state))
        return chosen.astype(np.int64) if weights is None else np.flatnonzero(weights)[chosen]

    def _search(self, n_samples: int, seed: int) -> Search:
        path = path_to(self.C) if self.continuation else (self.C,)
        limits = Rounds(self.max_rounds, 0, max(self.min_share / 2, min(2.0, n_samples / 4) / n_samples))
        return Search(self.threshold, self.balance, path, self.eta, limits, self.init, self.n_init, seed)

    def _fit_samples(self, samples: Samples, sample_weight: Any) -> None:
        self._check_parameters()
        weights = read_weights(sample_weight, samples.n_samples)
        random_state = check_random_state(self.random_state)
        plan = self._plan(samples)
        started, log = time.perf_counter(), []

        def record(row: dict[str, Any]) -> None:
            log.append(row | {"seconds": time.perf_counter() - started})

        with ThreadEngine(plan.threads, show_progress=None if self.verbose else False) as engine:
            rows = self._sample_rows(samples, weights, random_state)
            found = survey(engine, samples, rows, weights, moments=self.scale == "standard")
            scaling = Model(Hyperplane(np.empty(0), 0.0), mean=found.mean, deviation=found.deviation)
            found = Survey(_scaled_matrix(scaling, found.sample), found.mean, found.deviation)
            row_weights = None if weights is None else weights[rows]
            search = self._search(rows.shape[0], int(random_state.randint(2**31 - 1)))
            work = Work(engine, samples, weights, plan, search, record)
            trials, model = self._coarse(work, found, row_weights, random_state)
            state = trials[0].state
            if rows.shape[0] < samples.n_samples:
                state, model = self._refine(work, trials[0], model)
            self._finish(work, state, trials, model)
        import pandas as pd

        self.history_ = pd.DataFrame(log)

    def _coarse(
        self, work: Work, found: Survey, weights: np.ndarray | None, random_state: Any
    ) -> tuple[list[Trial], Model]:
        """Trials on the sample, the best first, and the model of the best without its hyperplane."""
        candidates = self._candidates(work.engine, found, weights, random_state)
        trials = coarse_search(candidates, work.search, work.record)
        if not trials:
            # Not even the first C separates the rows: take what it gives, and say that it is nothing.
            trials = coarse_search(candidates[:1], work.search, work.record, accept_degenerate=True)
        problem = trials[0].problem
        empty = Hyperplane(np.empty(0), 0.0)
        dtype = problem.features.dtype.name
        return trials, Model(empty, trials[0].kernel, problem.basis, found.mean, found.deviation, dtype)

    def _refine(self, work: Work, trial: Trial, model: Model) -> tuple[State, Model]:
        """The last steps of the path on all rows, from the labels and planes of the sample."""
        planes, labels, model = self._start_on_all_rows(work, trial, model)
        search = work.search
        limits = replace(search.limits, changed=int(STILL_SHARE * work.samples.n_samples))

        def record_all(row: dict[str, Any]) -> None:
            work.record(row | {"stage": "all rows", "gamma": trial.gamma})

        budget = SweepBudget(work.plan.sweeps)
        # Where the labels cannot be separated on all rows at the last C, a lower one has to serve.
        for C, spread in [
            *((C, trial.objective.spread) for C in reversed(search.path)),
            (search.path[0], 0.0),
        ]:
            objective = replace(trial.objective, spread=spread)
            state = continuation(planes, labels, objective, (C,), self.eta, limits, record_all, budget)
            if state is not None:
                return state, model
        raise AssertionError("unreachable: without a spread nothing is degenerate")

    def _start_on_all_rows(self, work: Work, trial: Trial, model: Model) -> tuple[Planes, Labels, Model]:
        """The sample's planes and labels, to go on with on all rows."""
        features = model.features(work.samples)
        if model.kernel is not None:
            features = cache_features(work.engine, features, work.plan.store)
        planes = BasisPlanes(Problem(work.engine, features, trial.problem.metric, work.weights))
        if isinstance(trial.planes, BasisPlanes):
            planes.generators = list(trial.planes.generators)
        return planes, HyperplaneLabels(trial.state.boundary), model

    def _finish(self, work: Work, state: State, trials: list[Trial], model: Model) -> None:
        """Number the clusters by their first row, and set the fitted attributes."""
        trial, solution, boundary = trials[0], state.solution, state.boundary
        samples, weights, sums = work.samples, work.weights, solution.sums
        positive_first = boundary.decide(model.features(samples).block(0, 1))[0] >= 0
        if positive_first:
            boundary = Hyperplane(-boundary.coef, -boundary.offset)
        model = replace(model, hyperplane=boundary)
        share = 1 - sums.positive if positive_first else sums.positive
        if state.threshold != 0.0:  # the sums are those of another threshold
            problem = Problem(work.engine, model.features(samples), trial.problem.metric, weights)
            _, sums = problem.most_violated(HyperplaneLabels(boundary), boundary, solution.quadratic.rho)
            share = sums.positive
        self.model_ = model
        self.rho_ = solution.quadratic.rho
        self.gamma_ = trial.gamma
        self.objective_ = trial.objective.value(solution.quadratic, solution.C, sums.hinge)
        self.converged_ = state.status == "converged"
        total = samples.n_samples if weights is None else float(weights.sum())
        self.report_ = report_of(trials, state, work.search, share, total)
        for sentence in self.report_["warnings"]:
            logger.info(sentence)
            if sentence.startswith(GRAVE):
                warnings.warn(sentence, ClusterWarning, stacklevel=4)

    # -- labels ------------------------------------------------------------------------------

    def _decide(self, samples: Samples) -> np.ndarray:
        with self._engine() as engine:
            sweep = DecisionPass(self.model_.hyperplane)
            return np.concatenate(engine.run(sweep, self.model_.features(samples), "labels"))

    def _label(self, samples: Samples) -> np.ndarray:
        return (self._decide(samples) >= 0).astype(np.int32)

    def _plan(self, samples: Samples) -> FitPlan:
        return plan_fit(
            samples.n_samples,
            samples.n_features,
            row_bytes=samples.row_bytes,
            dtype=samples.dtype.name,
            n_landmarks=self._basis_size(samples.n_samples),
            sample_size=self._rows_of_sample(),
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
            stored=samples.path is not None,
            chunk_bytes=min(samples.chunk_rows, samples.n_samples) * samples.row_bytes,
        )

    def _basis_size(self, n_samples: int) -> int:
        return 0

    @abstractmethod
    def _candidates(
        self, engine: Engine, found: Survey, weights: np.ndarray | None, random_state: Any
    ) -> list[Candidate]:
        """The sample under each candidate kernel."""


class _WriteLabels:
    """Labels written in row order as they come."""

    def __init__(self, hyperplane: Hyperplane, writer: LabelsWriter) -> None:
        self.hyperplane, self.writer = hyperplane, writer

    def start(self) -> None:
        return None

    def block(self, rows: Any, start: int, stop: int) -> np.ndarray:
        return (signs(self.hyperplane.decide(rows)) > 0).astype(np.int32)

    def combine(self, total: None, partial: np.ndarray) -> None:
        self.writer.append(partial)


def _scaled_matrix(model: Model, sample: Any) -> Any:
    """The sample with its columns scaled."""
    scaled = model.scaled(open_samples(sample))
    return as_matrix(scaled.block(0, scaled.n_samples))
