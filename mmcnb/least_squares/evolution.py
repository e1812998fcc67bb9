"""Evolution strategy for label vectors under the squared loss (Gieseke et al.)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmcnb.engine.run import Engine
from mmcnb.engine.session import Record, run_starts
from mmcnb.features.nystroem import SMALLEST_VARIANCE
from mmcnb.features.rules import Hyperplane
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.objective import smoother
from mmcnb.samples.matrix import Weights, row_shares

# Smaller differences of F are rounding errors, which differ between processors.
SAME_FITNESS = 1e-9


@dataclass(frozen=True)
class Evolved:
    """The result of an evolution.

    Parameters
    ----------
    y : ndarray of shape (n,), int8
        Labels -1 and +1 of the best individual; the label of the first row is +1.
    fitness : float
        F of the best individual; smaller is better.
    best : ndarray of shape (generations,), float64
        The lowest F after each generation, which never increases.
    start : int, default=0
        Zero-based index of the start.
    """

    y: np.ndarray
    fitness: float
    best: np.ndarray
    start: int = 0


def balanced_labels(
    n_samples: int, limit: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw random labels, then flip labels of random rows until abs(sum) <= limit.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.evolution import balanced_labels
    >>> int(balanced_labels(6, 0, np.random.RandomState(0)).sum())
    0
    """
    y = np.where(random_state.uniform(size=n_samples) < 0.5, -1, 1).astype(np.int8)
    excess = int(y.sum(dtype=np.int64))
    surplus = -(-(abs(excess) - limit) // 2)
    if surplus > 0:
        larger = np.flatnonzero(y == np.sign(excess))
        y[random_state.permutation(larger)[:surplus]] *= -1
    return y


def evolve(
    fitness: "Fitness",
    *,
    balance: float = 0.1,
    n_parents: int = 10,
    n_offspring: int = 10,
    max_generations: int = 100_000,
    patience: int | None = None,
    random_state: np.random.RandomState,
) -> Evolved:
    """Find two clusters by a (mu + nu) evolution strategy from a random population.

    Parameters
    ----------
    fitness : MatrixFitness or FeatureFitness
        The fitness of labels, for EvoMMC or FastEvoMMC.
    balance : float, default=0.1
        Bound l/n on abs(sum(y))/n.
    n_parents, n_offspring : int, default=10
        Number of parents (mu) and of children per generation (nu); both are 1 in the
        paper's FastEvoMMC.
    max_generations : int, default=100_000
        Maximum number of generations.
    patience : int or None, default=None
        The evolution stops after this many consecutive generations in which no child
        survives. If None, the number is chosen so that these generations produce ten
        children per row.
    random_state : RandomState
        Random number generator.

    Returns
    -------
    Evolved
        The fittest individual of the final population.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.evolution import MatrixFitness, evolve
    >>> x = np.r_[np.zeros(5), np.ones(5)][:, None]
    >>> fitness = MatrixFitness(x * x.T, 0.01)
    >>> evolve(fitness, random_state=np.random.RandomState(0)).y.tolist()
    [1, 1, 1, 1, 1, -1, -1, -1, -1, -1]
    """
    n = fitness.M.shape[0]
    limit = max(int(balance * n + 1e-9), n % 2)  # 1e-9, so that 0.29 * 100 gives 29
    if patience is None:
        patience = -(-10 * n // n_offspring)
    population = np.array(
        [balanced_labels(n, limit, random_state) for _ in range(n_parents)]
    )
    parents, values, best = kernels.evolve_labels(
        fitness.M,
        fitness.matrix,
        population,
        limit,
        n_offspring,
        max_generations,
        patience,
        random_state.randint(2**31 - 1),
    )
    winner = int(np.rint(values / SAME_FITNESS).argmin())
    y = parents[winner]
    return Evolved(y * y[0], float(values[winner]), best)


def run_evolutions(
    engine: Engine,
    fitness: "Fitness",
    seeds: Sequence[int],
    record: Record,
    **settings: Any,
) -> list[Evolved]:
    """Run evolutions from several seeds, and sort their results by increasing F.

    Parameters
    ----------
    engine : Engine
        The evolutions run in the threads of this engine.
    fitness : MatrixFitness or FeatureFitness
        The fitness of labels.
    seeds : sequence of int
        One seed per evolution.
    record : callable
        Called with one dict for each of the generations 1, 2, 4, ... and for the last
        generation.
    **settings
        Parameters of `evolve`.

    Returns
    -------
    list of Evolved
        One result per evolution, in order of increasing F.
    """

    def run_start(start: tuple[int, int], record: Record) -> Evolved:
        number, seed = start
        random_state = np.random.RandomState(seed)
        evolved = evolve(fitness, random_state=random_state, **settings)
        last = len(evolved.best)
        for generation in sorted({last, *(2**k for k in range(last.bit_length()))}):
            record(
                {
                    "stage": "sample",
                    "start": number,
                    "generation": generation,
                    "objective": float(evolved.best[generation - 1]),
                }
            )
        return replace(evolved, start=number)

    ends = run_starts(engine, run_start, list(enumerate(seeds)), record)
    return sorted(ends, key=lambda end: round(end.fitness / SAME_FITNESS))


class MatrixFitness:
    """Fitness of labels, computed from the kernel matrix of all rows, for EvoMMC.

    Parameters
    ----------
    K : ndarray of shape (m, m), float64
        Symmetric kernel matrix; it is overwritten.
    alpha : float
        Ridge per row, λ/m.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights, positive.
    centre : bool, default=True
        Whether to centre the kernel.

    Attributes
    ----------
    M : ndarray of shape (m, m), float64
        Symmetric matrix with F(y) = 1 - y'My/m.
    shares : ndarray of shape (m,)
        Weight of each row divided by the total weight.
    ridge : float
        The ridge parameter λ.
    means : ndarray of shape (m,) or None
        Mean kernel value of each row with all rows; None if the kernel was not centred.

    Raises
    ------
    InputError
        If alpha is not positive, or so small that K + λI is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.evolution import MatrixFitness
    >>> fitness = MatrixFitness(2 * np.eye(2), 0.5)
    >>> round(fitness.value(np.array([1, -1])), 6)
    0.333333
    """

    matrix = True

    def __init__(
        self, K: np.ndarray, alpha: float, weights: Weights = None, centre: bool = True
    ) -> None:
        m = K.shape[0]
        shares = row_shares(m, weights)
        self.shares = shares
        self.ridge = alpha * m
        self.means = shares @ K if centre else None
        if self.means is not None:
            K -= self.means
            K -= (self.means - self.means @ shares)[:, None]
        if weights is not None:
            roots = np.sqrt(shares * m)
            K *= roots
            K *= roots[:, None]
        self.M = smoother(K, self.ridge, centre=False)
        if weights is not None:
            self.M *= roots
            self.M *= roots[:, None]

    def value(self, y: np.ndarray) -> float:
        """Return F of labels -1 and +1."""
        return float(1 - y @ (self.M @ y) / y.shape[0])

    def decide(self, y: np.ndarray) -> np.ndarray:
        """Return the decision values f of the rows of the sample."""
        return self.M @ y / (self.shares * y.shape[0])

    def hyperplane(self, y: np.ndarray) -> Hyperplane:
        """Return f as a hyperplane in the kernel values against all rows."""
        duals = (self.shares * y.shape[0] * y - self.M @ y) / self.ridge
        if self.means is None:
            return Hyperplane(duals, 0.0)
        coef = duals - self.shares * duals.sum()
        return Hyperplane(coef, -float(self.means @ coef))


class FeatureFitness:
    """Fitness of labels, computed from landmark features, for FastEvoMMC.

    Parameters
    ----------
    features : ndarray of shape (m, p)
        Kernel values against the landmarks.
    normalization : ndarray of shape (p, q)
        W such that WW' is the inverse of the kernel matrix of the landmarks.
    alpha : float
        Ridge per row, λ/m.
    weights : ndarray of shape (m,) or None, default=None
        Sample weights, positive.
    centre : bool, default=True
        Whether to centre the kernel.

    Attributes
    ----------
    M : ndarray of shape (m, r), float64
        Matrix with F(y) = 1 - |y'M|²/m. M is ``features @ axes - centre``, with each
        row multiplied by its relative weight.
    shares : ndarray of shape (m,)
        Weight of each row divided by the total weight.
    axes : ndarray of shape (p, r)
        Matrix that maps features to the coordinates of M.
    centre : ndarray of shape (r,)
        Mean of the rows in these coordinates; 0 if the kernel was not centred.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.least_squares.evolution import FeatureFitness
    >>> fitness = FeatureFitness(2 * np.eye(2), np.eye(2) / np.sqrt(2), 0.5)
    >>> round(fitness.value(np.array([1, -1])), 6)
    0.333333
    """

    matrix = False

    def __init__(
        self,
        features: np.ndarray,
        normalization: np.ndarray,
        alpha: float,
        weights: Weights = None,
        centre: bool = True,
    ) -> None:
        m = features.shape[0]
        shares = row_shares(m, weights)
        z = np.asarray(features, np.float64) @ normalization
        mean = np.zeros(z.shape[1])
        if centre:
            mean = shares @ z
        z -= mean
        covariance = (z * shares[:, None]).T @ z
        variances, axes = np.linalg.eigh(covariance)
        largest = max(variances[-1], np.finfo(float).tiny)
        is_large = variances > SMALLEST_VARIANCE * largest
        # In the coordinates of the principal axes, the ridge matrix is diagonal.
        scales = np.sqrt(m * (variances[is_large] + alpha))
        axes = axes[:, is_large] / scales
        relative_weights = shares * m
        self.M = np.ascontiguousarray((z @ axes) * relative_weights[:, None])
        self.shares = shares
        self.axes = normalization @ axes
        self.centre = mean @ axes

    def value(self, y: np.ndarray) -> float:
        """Return F of labels -1 and +1."""
        product = y @ self.M
        return float(1 - product @ product / y.shape[0])

    def decide(self, y: np.ndarray) -> np.ndarray:
        """Return the decision values f of the rows of the sample."""
        return self.M @ (y @ self.M) / (self.shares * y.shape[0])

    def hyperplane(self, y: np.ndarray) -> Hyperplane:
        """Return f as a hyperplane in the kernel values against the landmarks."""
        product = y @ self.M
        return Hyperplane(self.axes @ product, -float(self.centre @ product))


Fitness = MatrixFitness | FeatureFitness
