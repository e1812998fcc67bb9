"""What the two-cluster estimators share: the hinge form on a sample, then on all rows."""

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb._errors import InputError
from mmcnb.engine import Engine, Survey, larger_sample
from mmcnb.estimators._model import Model
from mmcnb.estimators._refine import last_steps, planes_on_all_rows
from mmcnb.estimators._report import GRAVE, report_of
from mmcnb.estimators._streamed import ClusterWarning, StreamedClusterer, Work
from mmcnb.estimators._validate import check_choice, check_number
from mmcnb.samples import Samples
from mmcnb.selection import INITS, Candidate, Search, Trial, coarse_search
from mmcnb.solvers import (
    Hyperplane,
    HyperplaneLabels,
    Labels,
    Planes,
    Rounds,
    State,
    SweepBudget,
    greatest_balance,
    path_to,
)

logger = logging.getLogger("mmcnb")


class MarginClusterer(StreamedClusterer):
    """Base of the two-cluster estimators in the hinge form."""

    threshold: Any = "adaptive"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 1.0, open_low=True)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_number("min_share", self.min_share, 0.0, 1.0)
        check_number("n_init", self.n_init, 1, integer=True)
        check_number("eta", self.eta, 0.0, 1.0, open_low=True)
        check_number("max_rounds", self.max_rounds, 1, integer=True)
        check_choice("init", self.init, INITS)
        check_choice("threshold", self.threshold, ("adaptive", "fixed"))
        if self.threshold == "adaptive" and self.balance > greatest_balance(self.C):
            raise InputError(
                f"balance={self.balance:g} is infeasible with C={self.C:g}; give a balance of at most "
                f"{max(0.0, greatest_balance(self.C)):.4g}, or raise C."
            )

    def _larger_rows(self, n_samples: int) -> int:
        return larger_sample(n_samples)

    def _search(self, n_samples: int, seed: int) -> Search:
        path = path_to(self.C) if self.continuation else (self.C,)
        limits = Rounds(self.max_rounds, 0, max(self.min_share / 2, min(2.0, n_samples / 4) / n_samples))
        kinds = self.init, self.n_init, seed, n_samples
        return Search(self.threshold, self.balance, path, self.eta, limits, *kinds)

    def _fit_rows(self, work: Work, random_state: Any) -> Samples:
        search = self._search(work.found.sample.shape[0], int(random_state.randint(2**31 - 1)))
        trials, model = self._coarse(work, search, random_state)
        state, features = trials[0].state, None
        if work.found.sample.shape[0] < work.samples.n_samples:
            state, model = self._refine(work, search, trials[0], model)
            features = state.problem.features
        self._finish(work, search, state, trials, model)
        return self.model_.features(work.samples) if features is None else features

    def _coarse(self, work: Work, search: Search, random_state: Any) -> tuple[list[Trial], Model]:
        """Trials on the sample, the best first, and the model of the best without its hyperplane."""
        found = work.found
        candidates = self._candidates(work.engine, found, work.sample_weights, random_state)
        trials = coarse_search(work.engine, candidates, search, work.record)
        if not trials:
            # Not even the first C separates the rows: take what it gives, and say that it is nothing.
            trials = coarse_search(work.engine, candidates[:1], search, work.record, True)
        return trials, self._model_of(work, trials[0])

    def _model_of(self, work: Work, trial: Trial) -> Model:
        """The model of a trial on the sample, without its hyperplane."""
        found, problem, empty = work.found, trial.problem, Hyperplane(np.empty(0), 0.0)
        dtype = problem.features.dtype.name
        return Model(empty, trial.kernel, problem.basis, found.mean, found.deviation, dtype)

    def _refine(self, work: Work, search: Search, trial: Trial, model: Model) -> tuple[State, Model]:
        """The last steps of the path on all rows, from the labels and planes of the sample."""
        planes, labels, model = self._start_on_all_rows(work, search, trial, model)
        budget = SweepBudget(work.plan.sweeps)
        return last_steps(work, search, trial, planes, labels, budget), model

    def _start_on_all_rows(
        self, work: Work, search: Search, trial: Trial, model: Model
    ) -> tuple[Planes, Labels, Model]:
        """The sample's planes and labels, to go on with on all rows."""
        return (*planes_on_all_rows(work, search, trial, model), model)

    def _finish(self, work: Work, search: Search, state: State, trials: list[Trial], model: Model) -> None:
        """Number the clusters by their first row, and set the fitted attributes."""
        trial, solution, boundary = trials[0], state.solution, state.boundary
        samples, weights, sums = work.samples, work.weights, solution.sums
        positive_first = boundary.decide(model.features(samples).block(0, 1))[0] >= 0
        if positive_first:
            boundary = Hyperplane(-boundary.coef, -boundary.offset)
        model = replace(model, rule=boundary)
        share = 1 - sums.positive if positive_first else sums.positive
        if state.threshold != 0.0:  # the sums are those of another threshold
            problem = trial.problem.over(model.features(samples), weights)
            _, sums = problem.most_violated(HyperplaneLabels(boundary), boundary, solution.quadratic.rho)
            share = sums.positive
        self.model_ = model
        self.rho_ = solution.quadratic.rho
        if "gamma" in self.fitted_names:
            self.gamma_ = trial.gamma
        self.objective_ = trial.objective.value(solution.quadratic, solution.C, sums.hinge)
        self.converged_ = state.status == "converged"
        total = samples.n_samples if weights is None else float(weights.sum())
        self.report_ = report_of(trials, state, search, share, total)
        for sentence in self.report_["warnings"]:
            logger.info(sentence)
            if sentence.startswith(GRAVE):
                warnings.warn(sentence, ClusterWarning, stacklevel=5)

    @abstractmethod
    def _candidates(
        self, engine: Engine, found: Survey, weights: np.ndarray | None, random_state: Any
    ) -> list[Callable[[], Candidate]]:
        """What makes the sample under each candidate kernel."""
