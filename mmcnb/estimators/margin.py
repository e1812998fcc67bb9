"""What the two-cluster estimators share: the hinge form on a sample, then on all rows."""

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.passes import DrawnSample
from mmcnb.engine.plan import larger_sample
from mmcnb.engine.run import Engine
from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.validate import check_choice, check_number
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, HyperplaneLabels, Labels
from mmcnb.hinge.all_rows import last_steps, working_set_on_all_rows
from mmcnb.hinge.cccp import CCCPLimits, CCCPResult, greatest_balance, path_to
from mmcnb.hinge.cutting_plane import SweepBudget
from mmcnb.hinge.report import GRAVE, report_of
from mmcnb.hinge.sample_search import KernelFeatures, RestartResult, SearchConfig, search_sample
from mmcnb.hinge.starts import INITS
from mmcnb.hinge.working_set import WorkingSet
from mmcnb.samples import Samples

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

    def _search(self, n_samples: int, seed: int) -> SearchConfig:
        path = path_to(self.C) if self.continuation else (self.C,)
        limits = CCCPLimits(self.max_rounds, 0, max(self.min_share / 2, min(2.0, n_samples / 4) / n_samples))
        kinds = self.init, self.n_init, seed, n_samples
        return SearchConfig(self.threshold, self.balance, path, self.eta, limits, *kinds)

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        search = self._search(session.found.sample.shape[0], int(random_state.randint(2**31 - 1)))
        trials, model = self._coarse(session, search, random_state)
        state, features = trials[0].state, None
        if session.found.sample.shape[0] < session.samples.n_samples:
            state, model = self._refine(session, search, trials[0], model)
            features = state.problem.features
        self._finish(session, search, state, trials, model)
        return self.model_.features(session.samples) if features is None else features

    def _coarse(
        self, session: FitSession, search: SearchConfig, random_state: Any
    ) -> tuple[list[RestartResult], Model]:
        """Trials on the sample, the best first, and the model of the best without its hyperplane."""
        found = session.found
        candidates = self._candidates(session.engine, found, session.sample_weights, random_state)
        trials = search_sample(session.engine, candidates, search, session.record)
        if not trials:
            # Not even the first C separates the rows: take what it gives, and say that it is nothing.
            trials = search_sample(session.engine, candidates[:1], search, session.record, True)
        return trials, self._model_of(session, trials[0])

    def _model_of(self, session: FitSession, trial: RestartResult) -> Model:
        """The model of a trial on the sample, without its hyperplane."""
        found, problem, empty = session.found, trial.problem, Hyperplane(np.empty(0), 0.0)
        dtype = problem.features.dtype.name
        return Model(empty, trial.kernel, problem.basis, found.mean, found.deviation, dtype)

    def _refine(
        self, session: FitSession, search: SearchConfig, trial: RestartResult, model: Model
    ) -> tuple[CCCPResult, Model]:
        """The last steps of the path on all rows, from the labels and planes of the sample."""
        planes, labels, model = self._start_on_all_rows(session, search, trial, model)
        budget = SweepBudget(session.plan.sweeps)
        return last_steps(session, search, trial, planes, labels, budget), model

    def _start_on_all_rows(
        self, session: FitSession, search: SearchConfig, trial: RestartResult, model: Model
    ) -> tuple[WorkingSet, Labels, Model]:
        """The sample's planes and labels, to go on with on all rows."""
        return (*working_set_on_all_rows(session, search, trial, model), model)

    def _finish(
        self,
        session: FitSession,
        search: SearchConfig,
        state: CCCPResult,
        trials: list[RestartResult],
        model: Model,
    ) -> None:
        """Number the clusters by their first row, and set the fitted attributes."""
        trial, solution, boundary = trials[0], state.solution, state.boundary
        samples, weights, sums = session.samples, session.weights, solution.sums
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
        self, engine: Engine, found: DrawnSample, weights: np.ndarray | None, random_state: Any
    ) -> list[Callable[[], KernelFeatures]]:
        """What makes the sample under each candidate kernel."""
