"""Kernel expansions over a basis of any size: sums of kernel values, tile by tile."""

from typing import Any

import numpy as np

from mmcnb.engine._features import BasisMap, Kernel

TILE = 1024  # basis vectors whose kernel values are held at a time, for a block of rows


class ExpansionMap:
    """Sums over a basis, sum_j K(x, b_j) c_j, of rows x: what is held is a tile of kernel values.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    basis : ndarray of shape (p, d)
        Basis vectors.
    coef : ndarray of shape (p,) or (p, k)
        Coefficients of each sum.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.engine import ExpansionMap, Kernel
    >>> expansion = ExpansionMap(Kernel("linear"), np.eye(2), np.array([1.0, -1.0]))
    >>> expansion.block(np.array([[3.0, 1.0], [2.0, 2.0]]), np.float64)
    array([[2.],
           [0.]])
    """

    def __init__(self, kernel: Kernel, basis: np.ndarray, coef: np.ndarray) -> None:
        self.kernel, self.basis = kernel, basis
        self.coef = np.ascontiguousarray(coef.reshape(basis.shape[0], -1), np.float64)
        self.n_features: int = self.coef.shape[1]
        starts = range(0, basis.shape[0], TILE)
        self._tiles = [
            (kernel.against(basis[start : start + TILE]), self.coef[start : start + TILE]) for start in starts
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return ExpansionMap, (self.kernel, self.basis, self.coef)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """The sums, of shape (rows, k)."""
        return sum(self._sums(rows, *tile) for tile in self._tiles).astype(dtype, copy=False)

    @staticmethod
    def _sums(rows: Any, tile: BasisMap, coef: np.ndarray) -> Any:
        return tile.block(rows, np.float64) @ coef
