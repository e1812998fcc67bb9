"""What the convex relaxations share: a programme over all rows, and the machine of the labels it leads to."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mmcnb.engine.plan import FitPlan
from mmcnb.engine.session import FitSession
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import check_choice, check_gamma, check_number
from mmcnb.estimators.unsupervised_rls import KERNELS
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, balanced_threshold, signs
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.matrix import row_shares, with_short_indices

ONE_CLUSTER = "the machine puts all rows on one side, which parts nothing; give another gamma or C."


@dataclass(frozen=True)
class Rows:
    """What a relaxation knows of the rows.

    Parameters
    ----------
    gram : ndarray of shape (m, m)
        Kernel matrix of the features less their weighted mean.
    bounds : ndarray of shape (m,)
        Upper bounds of the multipliers: C times the weight of the row.
    shares : ndarray of shape (m,)
        Share of each row in the weight.
    """

    gram: np.ndarray
    bounds: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True)
class Rounded:
    """Labels of the rows, and the machine that they train.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Labels, -1 or +1.
    coef : ndarray of shape (m,)
        Coefficients of the centred rows in the normal vector.
    value : float
        Objective of the labels y.
    converged : bool
        Whether the relaxed programme was solved.
    facts : dict
        What is reported of it.
    doubt : str
        What is warned of where it was not solved.
    """

    y: np.ndarray
    coef: np.ndarray
    value: float
    converged: bool
    facts: dict[str, Any]
    doubt: str


class RelaxedClusterer(StreamedClusterer):
    """Base of the estimators that relax labels to a convex programme, without offset in centred features."""

    sample_size = None
    fitted_names: tuple[str, ...] = ("objective", "gamma", "converged", "report")
    most_rows: ClassVar[int]
    matrices: ClassVar[int]  # of rows x rows numbers, held at once
    slow: ClassVar[str]  # what grows with which power of the rows

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 0.0, open_low=True)
        check_gamma(self.gamma)
        check_choice("kernel", self.kernel, KERNELS)
        check_number("balance", self.balance, 0.0, 1.0, open_high=True)
        check_number("degree", self.degree, 1, integer=True)
        check_number("coef0", self.coef0, -np.inf)

    def _rows_of_sample(self) -> int:
        return self.most_rows

    def _basis_size(self, n_samples: int) -> int:
        return n_samples

    def _sample_bytes(self, n_samples: int) -> float:
        return self.matrices * 8.0 * n_samples**2

    def _sweeps(self) -> int:
        return 1  # the labels

    def _plan(self, samples: Samples) -> FitPlan:
        if samples.n_samples > self.most_rows:
            raise InputError(
                f"there are {samples.n_samples:,} rows, and the time of the {self.slow} of that; "
                f"give at most {self.most_rows:,}, or use SparseKernelMMC."
            )
        return super()._plan(samples)

    def _fit_rows(self, session: FitSession, random_state: Any) -> Samples:
        sample, weights = session.found.sample.astype(np.float64), session.sample_weights
        sample = with_short_indices(sample)
        gamma = default_gamma(self.gamma, self.kernel, sample, weights)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))
        basis = np.ascontiguousarray(sample.toarray() if hasattr(sample, "toarray") else sample)
        features = KernelSamples(open_samples(sample), kernel.against(basis), np.dtype(np.float64))
        matrix = features.block(0, sample.shape[0])
        shares = row_shares(sample.shape[0], weights)
        bounds = float(self.C) * (np.ones(shares.shape[0]) if weights is None else weights)
        rows = Rows(_centred(matrix, shares), bounds, shares)
        rounded = self._rounded(rows, session)
        plane, moved = self._hyperplane(rounded, matrix, shares)
        if plane.decide(features.block(0, 1))[0] >= 0:  # the first row's cluster is 0
            plane = Hyperplane(-plane.coef, -plane.offset)
        f = plane.decide(matrix)
        norm2 = float(rounded.coef @ rows.gram @ rounded.coef)
        self.objective_ = 0.5 * norm2 + float(bounds @ np.maximum(0, 1 - np.abs(f)))
        self.gamma_, self.converged_ = gamma, rounded.converged
        self.model_ = Model(plane, kernel, basis, session.found.mean, session.found.deviation, "float64")
        self._report(rounded, f, moved)
        return self.model_.features(session.samples)

    @abstractmethod
    def _rounded(self, rows: Rows, session: FitSession) -> Rounded:
        """Solve the relaxed programme, and make labels of what it finds."""

    def _hyperplane(
        self, rounded: Rounded, matrix: np.ndarray, shares: np.ndarray
    ) -> tuple[Hyperplane, float]:
        """The machine on kernel values as they are, its threshold where both clusters are large enough."""
        coef = rounded.coef - rounded.coef.sum() * shares
        plane = Hyperplane(coef, -float(shares @ matrix @ coef))
        moved = balanced_threshold(plane.decide(matrix), shares, float(self.balance))
        return plane.shifted(moved), moved

    def _report(self, rounded: Rounded, f: np.ndarray, moved: float) -> None:
        agreement = float(np.mean(signs(f) == rounded.y))
        sizes = sorted([int((f < 0).sum()), int((f >= 0).sum())])
        doubts = [ONE_CLUSTER] if sizes[0] == 0 else []
        if not rounded.converged:
            doubts.append(rounded.doubt)
        self.report_ = {
            "sample_sizes": sizes,
            **rounded.facts,
            "rounded": rounded.value,
            "agreement": max(agreement, 1 - agreement),
            "threshold_moved": abs(moved),
            "gamma": self.gamma_,
            "warnings": doubts,
        }
        for sentence in doubts:
            warnings.warn(sentence, ClusterWarning, stacklevel=5)


def _centred(matrix: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The kernel matrix of the features less their weighted mean."""
    means = matrix @ shares
    centred = matrix - means[:, None] - means + shares @ means
    return (centred + centred.T) / 2
