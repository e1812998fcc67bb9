"""A sample in landmark features, by which least squares clusters rows under a kernel function."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.engine.session import FitSession
from mmcnb.errors import InputError
from mmcnb.features.kernel import Kernel
from mmcnb.features.model import Model
from mmcnb.features.nystroem import (
    PrincipalFeatures,
    RidgeMap,
    check_places,
    choose_landmarks,
    landmark_values,
    principal_features,
    ridge_map,
)
from mmcnb.features.rules import Scores

LANDMARKS = 300  # basis vectors by default, measured by `python -m benchmarks rls`


@dataclass(frozen=True)
class LandmarkSample:
    """A sample in landmark features.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    basis : ndarray of shape (p, d)
        The landmarks.
    values : ndarray of shape (m, p), float64
        Kernel values of the rows against the landmarks.
    normalization : ndarray of shape (p, r)
        M with MM' the inverse of the kernel matrix of the landmarks.
    features : PrincipalFeatures
        The rows of ``values @ normalization`` along their principal axes, with their weights.
    """

    kernel: Kernel
    basis: np.ndarray
    values: np.ndarray
    normalization: np.ndarray
    features: PrincipalFeatures

    def ridge_map(self, alpha: float) -> RidgeMap:
        """The coordinates in which a ridge is the identity."""
        return ridge_map(self.features, self.normalization, alpha)

    def model(self, session: FitSession, alpha: float) -> Model:
        """The model of these landmarks, still without a rule."""
        empty = Scores(np.empty((0, 0)), np.empty(0))
        moments = session.mean, session.deviation
        return Model(empty, self.kernel, self.basis, *moments, ridge=self.ridge_map(alpha))


def landmark_sample(
    sample: Any,
    weights: np.ndarray | None,
    kernel: Kernel,
    n_landmarks: int,
    n_clusters: int,
    random_state: np.random.RandomState,
    given: np.ndarray | None = None,
) -> LandmarkSample:
    """Choose landmarks of a sample, or take those given, and map it.

    Raises
    ------
    InputError
        If fewer of its rows differ, or fewer landmarks are wanted, than there are clusters.
    """
    n_landmarks = n_landmarks if given is None else len(given)
    if n_landmarks < n_clusters:
        raise InputError(
            f"n_landmarks={n_landmarks} is smaller than n_clusters={n_clusters}; give more landmarks."
        )
    basis = given
    if basis is None:
        basis = choose_landmarks(sample, n_landmarks, random_state, weights, may_be_sparse=True)
        check_places(basis.shape[0], n_clusters)
    return sample_on_landmarks(sample, weights, kernel, basis)


def sample_on_landmarks(
    sample: Any, weights: np.ndarray | None, kernel: Kernel, basis: np.ndarray
) -> LandmarkSample:
    """Map a sample to the features of given landmarks."""
    values, normalization = landmark_values(sample, kernel, basis)
    features = principal_features(values @ normalization, weights)
    return LandmarkSample(kernel, basis, values, normalization, features)
