"""What all estimators share: rows of any home, a sample of them, a stream of labels."""

import os
import time
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mmcnb.engine.checkpoint import CheckpointEngine
from mmcnb.engine.choose import connected, open_engine, portable
from mmcnb.engine.passes import DrawnSample, draw_sample, sample_rows
from mmcnb.engine.plan import FitNeeds, FitPlan, plan_fit
from mmcnb.engine.run import Engine, Traffic
from mmcnb.engine.session import FitSession
from mmcnb.estimators.persistence import save_estimator
from mmcnb.estimators.resume import open_checkpoint
from mmcnb.estimators.validate import check_choice, check_number, read_input, read_weights
from mmcnb.features.model import Model
from mmcnb.features.rules import DecisionPass, Hyperplane, LabelsPass
from mmcnb.samples import LabelsWriter, Samples, open_samples
from mmcnb.samples.matrix import as_matrix

SAMPLE_ROWS = 2000
Labeled = TypeVar("Labeled")


class EngineEstimator(BaseEstimator):
    """An estimator that takes sparse rows, and whose engine may be a client, which has no copy."""

    engine: Any

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"engine": portable(self.engine)}

    def __sklearn_clone__(self) -> Self:
        bare = copy(self)
        bare.engine = None
        clone = super(EngineEstimator, bare).__sklearn_clone__()
        clone.engine = self.engine  # a client has no copy
        return clone


class StreamedClusterer(ClusterMixin, EngineEstimator):
    """Base of the estimators; see `SparseKernelMMC` for the parameters."""

    labels_: np.ndarray
    model_: Model
    n_features_in_: int
    scale: str | None = None
    fitted_names: tuple[str, ...] = ("objective", "rho", "gamma", "converged", "report")  # kept in a file

    # -- scikit-learn's face -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

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
        with connected(self.engine):  # one cluster for the fit and its labels
            self.labels_ = self._fit_samples(samples, sample_weight, self._labels_of)
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
        self._fit_samples(read_input(self, X, reset=True, least_rows=2), sample_weight, _no_labels)
        return self

    def predict(self, X: Any, out: str | os.PathLike[str] | None = None) -> np.ndarray | None:
        """Label rows by their decision values.

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
        with LabelsWriter(out, samples.n_samples) as writer, self._engine(self.n_jobs) as engine:
            sweep = LabelsPass(self.model_.rule, writer.sink())
            writer.finish_chunks(engine.run(sweep, self.model_.features(samples), "labels"))
        return None

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of rows: what `predict` labels them by.

        Parameters
        ----------
        X : ndarray, CSR, path, Zarr array or group, of shape (n_samples, n_features)
            Rows with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_clusters), float64
            f(x) = w·φ(x) + b, of which the sign is the cluster; or a score for each cluster, of which the
            largest is.
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

    def _engine(self, n_jobs: int | None) -> AbstractContextManager[Engine]:
        return open_engine(self.engine, n_jobs, show_progress=None if self.verbose else False)

    def _check_parameters(self) -> None:
        """Refuse parameters that no rows can make right."""
        check_choice("scale", self.scale, (None, "standard"))
        if self.sample_size is not None:
            check_number("sample_size", self.sample_size, 2, integer=True)

    def _rows_of_sample(self) -> int:
        return SAMPLE_ROWS if self.sample_size is None else self.sample_size

    def _fit_samples(
        self, samples: Samples, sample_weight: Any, label: Callable[[Engine, Samples], Labeled]
    ) -> Labeled:
        """Fit, and what ``label`` makes of the features of all rows while they are kept."""
        self._check_parameters()
        weights = read_weights(sample_weight, samples.n_samples)
        random_state = check_random_state(self.random_state)
        plan = self._plan(samples)
        started, log = time.perf_counter(), []

        def record(row: dict[str, Any]) -> None:
            seconds = row.pop("clock", time.perf_counter()) - started
            log.append(row | engine.traffic.to_dict() | {"seconds": seconds})

        with self._engine(plan.threads) as engine, open_checkpoint(self, samples, weights) as checkpoint:
            engine.traffic = Traffic(samples.root)
            bare = engine
            if checkpoint is not None:
                engine = CheckpointEngine(bare, checkpoint)
                if self.random_state is None:
                    random_state = check_random_state(checkpoint.seed)
            rows = sample_rows(samples.n_samples, self._rows_of_sample(), weights, random_state)
            found = draw_sample(engine, samples, rows, weights, moments=self.scale == "standard")
            scaling = Model(Hyperplane(np.empty(0), 0.0), mean=found.mean, deviation=found.deviation)
            found = DrawnSample(_scaled_matrix(scaling, found.sample), found.mean, found.deviation)
            sample_weights = None if weights is None else weights[rows]
            session = FitSession(engine, samples, weights, plan, record, found, sample_weights)
            features = self._fit_rows(session, random_state)
            labels = label(bare, features if features.cached else self.model_.features(samples))
        import pandas as pd

        self.history_ = pd.DataFrame(log)
        return labels

    @abstractmethod
    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        """Fit on the sample, then on all rows, and set the fitted attributes; the features of all rows."""

    # -- labels ------------------------------------------------------------------------------

    def _decide(self, samples: Samples) -> np.ndarray:
        with self._engine(self.n_jobs) as engine:
            sweep = DecisionPass(self.model_.rule)
            return np.concatenate(engine.run(sweep, self.model_.features(samples), "labels"))

    def _label(self, samples: Samples) -> np.ndarray:
        with self._engine(self.n_jobs) as engine:
            return self._labels_of(engine, self.model_.features(samples))

    def _labels_of(self, engine: Engine, features: Samples) -> np.ndarray:
        return np.concatenate(engine.run(LabelsPass(self.model_.rule), features, "labels"))

    def _plan(self, samples: Samples) -> FitPlan:
        needs = FitNeeds(
            n_landmarks=self._basis_size(samples.n_samples),
            sample_size=self._rows_of_sample(),
            sample_bytes=self._sample_bytes(samples.n_samples),
            larger_rows=self._larger_rows(samples.n_samples),
            sweeps=self._sweeps(),
        )
        return plan_fit(samples, needs, self.memory_limit, self.n_jobs)

    def _basis_size(self, n_samples: int) -> int:
        return 0

    def _sample_bytes(self, n_samples: int) -> float:
        """What work on the sample holds beside its columns."""
        return 0.0

    def _larger_rows(self, n_samples: int) -> int:
        """Rows of a second sample."""
        return 0

    def _sweeps(self) -> int | None:
        """Most sweeps after the first, where that is known."""
        return None


def _no_labels(engine: Engine, features: Samples) -> None:
    """Leave the rows without labels."""


def _scaled_matrix(model: Model, sample: Any) -> Any:
    """The sample with its columns scaled."""
    scaled = model.scaled(open_samples(sample))
    return as_matrix(scaled.block(0, scaled.n_samples))
