"""Kernel expansions of rows over any number of support vectors."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.features.kernel import Kernel, KernelSamples
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.samples import Samples, slice_rows
from mmcnb.samples.matrix import n_rows_of

# Number of basis vectors and number of rows in a tile of kernel values, which takes
# 8 MiB.
TILE = 1024
TILE_ROWS = 1024


class ExpansionMap:
    """Map from rows x to kernel expansions over a basis, sum_j K(x, b_j) c_j.

    Only one tile of kernel values is held in memory at a time.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    basis : ndarray of shape (p, d)
        Basis vectors b_j.
    coef : ndarray of shape (p,) or (p, k)
        Coefficients c_j, with one column for each of the k expansions.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.support_clusters.expansions import ExpansionMap
    >>> from mmcnb.features.kernel import Kernel
    >>> expansion = ExpansionMap(Kernel("linear"), np.eye(2), np.array([1.0, -1.0]))
    >>> expansion.block(np.array([[3.0, 1.0], [2.0, 2.0]]), np.float64)
    array([[2.],
           [0.]])
    """

    def __init__(self, kernel: Kernel, basis: np.ndarray, coef: np.ndarray) -> None:
        self.kernel = kernel
        self.basis = basis
        self.coef = np.ascontiguousarray(coef.reshape(basis.shape[0], -1), np.float64)
        self.n_features: int = self.coef.shape[1]
        self._tiles: list[tuple[Any, np.ndarray]] = []
        for start in range(0, basis.shape[0], TILE):
            tile = slice(start, start + TILE)
            self._tiles.append((kernel.against(basis[tile]), self.coef[tile]))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExpansionMap, (self.kernel, self.basis, self.coef)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Return the kernel expansions of rows, of shape (rows, k)."""
        n_rows = n_rows_of(rows)
        out = np.empty((n_rows, self.n_features), dtype)
        for start in range(0, n_rows, TILE_ROWS):
            stop = min(start + TILE_ROWS, n_rows)
            some = slice_rows(rows, start, stop)
            total: Any = 0
            for kernel_map, coef in self._tiles:
                total = total + kernel_map.block(some, np.float64) @ coef
            out[start:stop] = total
        return out


def expanded(model: Model, samples: Samples) -> tuple[Samples, Hyperplane | Scores]:
    """Return the expansions of rows over the basis of a model, and their rule.

    Parameters
    ----------
    model : Model
        A model with a basis of any size.
    samples : Samples
        The rows, before the scaling of the model.

    Returns
    -------
    rows : Samples
        The expansions, with one column per decision function.
    rule : Hyperplane or Scores
        The rule of the model, as a function of these columns.
    """
    assert isinstance(model.kernel, Kernel)
    assert model.basis is not None
    expansions = ExpansionMap(model.kernel, model.basis, model.rule.coef)
    coef = np.eye(expansions.n_features)
    if model.rule.coef.ndim == 1:
        coef = coef[0]
    rows = KernelSamples(model.scaled(samples), expansions, np.float64)
    return rows, replace(model.rule, coef=coef)
