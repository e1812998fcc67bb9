"""Evolutionary maximum margin clustering: Gieseke et al."""

from dataclasses import dataclass

import numpy as np

from mmcnb import kernels
from mmcnb._errors import InputError

TIE = 1e-9


@dataclass(frozen=True)
class Evolved:
    """Where an evolution ended.

    Parameters
    ----------
    y : ndarray of shape (n,), int8
        Labels -1 and +1 of the best individual; the first row's is +1.
    fitness : float
        Its F.
    best : ndarray of shape (generations,), float64
        The lowest F after each generation; it never rises.
    start : int
        Number of the start.
    """

    y: np.ndarray
    fitness: float
    best: np.ndarray
    start: int


def balanced_labels(n_samples: int, limit: int, random_state: np.random.RandomState) -> np.ndarray:
    """A coin flip for each row, then random rows of the larger side turned until abs(sum) is at most limit.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import balanced_labels
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
    M: np.ndarray,
    *,
    matrix: bool,
    balance: float = 0.1,
    n_parents: int = 10,
    n_offspring: int = 10,
    n_init: int = 10,
    max_generations: int = 100_000,
    patience: int | None = None,
    random_state: np.random.RandomState,
) -> list[Evolved]:
    """Two clusters by a (mu + nu) evolution of label vectors, from several random populations.

    Parameters
    ----------
    M : ndarray of shape (n, n) or (n, r), float64
        R itself (EvoMMC), or features Z with R = ZZ' (FastEvoMMC); C-ordered.
    matrix : bool
        Whether M is R itself.
    balance : float, default=0.1
        l/n: the bound on abs(sum(y))/n.
    n_parents, n_offspring : int, default=10
        mu and nu; the paper's FastEvoMMC has 1 and 1.
    n_init : int, default=10
        Evolutions.
    max_generations : int, default=100_000
        Most generations of each.
    patience : int or None, default=None
        Generations without a surviving child after which an evolution stops; None is as many as make
        ten children a row.
    random_state : RandomState
        Source of randomness.

    Returns
    -------
    list of Evolved
        One an evolution, the lowest F first.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.solvers import evolve, smoother
    >>> x = np.r_[np.zeros(5), np.ones(5)][:, None]
    >>> R = smoother(x * x.T, 0.1)
    >>> evolve(R, matrix=True, random_state=np.random.RandomState(0))[0].y.tolist()
    [1, 1, 1, 1, 1, -1, -1, -1, -1, -1]
    """
    n = M.shape[0]
    if n < 2:
        raise InputError(f"Two clusters need at least 2 rows, not {n}.")
    limit = max(int(balance * n + 1e-9), n % 2)  # .29 of 100 rows are 29
    patience = -(-10 * n // n_offspring) if patience is None else patience
    found = []
    for start in range(n_init):
        population = np.array([balanced_labels(n, limit, random_state) for _ in range(n_parents)])
        seed = random_state.randint(2**31 - 1)
        last, fitness, best = kernels.evolve_labels(
            M, matrix, population, limit, n_offspring, max_generations, patience, seed
        )
        winner = int(fitness.argmin())
        y = last[winner] * last[winner, 0]
        found.append(Evolved(y, float(fitness[winner]), best, start))
    return sorted(found, key=lambda evolved: round(evolved.fitness / TIE))
