"""Rows as features: kernel functions, and kernel values against a basis."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.derived import DerivedSamples
from mmcnb.samples.matrix import as_csr_block, squared_sums

KERNELS = ("rbf", "linear", "poly")
FEATURE_DTYPE = np.dtype(np.float32)  # sums over the features are float64


class FeatureMap(Protocol):
    """Maps rows to features, block by block."""

    @property
    def n_features(self) -> int:
        """Number of features of a row."""

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Features of dense or CSR rows, of shape (rows, n_features)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel function and its parameters.

    Parameters
    ----------
    name : {"rbf", "linear", "poly"}, default="rbf"
        The function: exp(-gamma |x-b|²), x·b or (gamma x·b + coef0)^degree.
    gamma : float, default=1.0
        1/(2 sigma²) for a bandwidth sigma; the scale of x·b in a polynomial.
    degree : int, default=3
        Degree of the polynomial.
    coef0 : float, default=1.0
        Constant of the polynomial.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.kernel import Kernel
    >>> Kernel("linear")(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0

    def __call__(self, rows: Any, basis: Any, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values between dense or CSR rows and a basis, of shape (rows, p)."""
        return self.against(basis).block(rows, dtype)

    def against(self, basis: Any) -> "BasisMap":
        """The map of rows to their kernel values against a basis of shape (p, d), dense or CSR."""
        return BasisMap(self, basis)

    def values(self, rows: Any, vectors: "BasisVectors", dtype: Any) -> np.ndarray:
        """Kernel values between dense or CSR rows and basis vectors, of shape (rows, p)."""
        is_csr = isinstance(rows, CSRBlock)
        given = rows[:3] if is_csr else (rows,)
        basis = vectors.for_csr if is_csr else (vectors.dense.astype(rows.dtype, copy=False),)
        out = np.empty((rows.indptr.size - 1 if is_csr else rows.shape[0], vectors.dense.shape[0]), dtype)
        if self.name == "rbf":
            fill = kernels.rbf_kernel_block_csr_into if is_csr else kernels.rbf_kernel_block_into
            fill(*given, *basis, self.gamma, out)
        elif self.name == "linear":
            fill = kernels.linear_kernel_block_csr_into if is_csr else kernels.linear_kernel_block_into
            fill(*given, basis[0], out)
        else:
            dense, sparse = kernels.polynomial_kernel_block_into, kernels.polynomial_kernel_block_csr_into
            (sparse if is_csr else dense)(*given, basis[0], self.gamma, self.coef0, self.degree, out)
        return out

    def to_dict(self) -> dict[str, Any]:
        """The kernel as a JSON object."""
        return dict(vars(self))


class BasisVectors:
    """A basis; what CSR rows need of it is computed once for all kernels that share it.

    Of a sparse basis only the columns are held in which some vector is not 0. What a row has in the others
    adds to its distance from each vector and to no inner product.

    Parameters
    ----------
    basis : ndarray or csr_array of shape (p, d)
        The vectors.
    """

    def __init__(self, basis: Any) -> None:
        self.basis, self.columns = basis, None
        if sp.issparse(basis):
            self.columns = np.unique(basis.indices)
            self.dense = np.ascontiguousarray(basis[:, self.columns].toarray())
        else:
            self.dense = np.ascontiguousarray(basis)

    @cached_property
    def _places(self) -> np.ndarray:
        """Where each column stands among those held; -1 for the others."""
        places = np.full(self.basis.shape[1], -1, np.int32)
        places[self.columns] = np.arange(self.dense.shape[1])
        return places

    def within(self, rows: Any) -> tuple[Any, np.ndarray | None]:
        """Rows in the columns held, and the sum of squares of what each has in the others."""
        rows = as_csr_block(rows) if sp.issparse(rows) else rows
        if self.columns is None:
            return rows, None
        if not isinstance(rows, CSRBlock):
            held = np.ascontiguousarray(rows[:, self.columns])
            return held, np.maximum(squared_sums(rows) - squared_sums(held), 0)
        places = self._places[rows.indices]
        there = places >= 0
        row_of = np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))
        squares = np.square(rows.data[~there], dtype=np.float64)
        others = np.bincount(row_of[~there], squares, len(rows.indptr) - 1)
        indptr = np.concatenate(([0], np.cumsum(there)))[rows.indptr]
        return CSRBlock(rows.data[there], places[there], indptr, self.dense.shape[1]), others

    @cached_property
    def for_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The transposed basis, squared norms and tiles of columns."""
        transposed = np.ascontiguousarray(self.dense.T, np.float64)
        norms = kernels.squared_norms(self.dense.astype(np.float64))
        return transposed, norms, kernels.column_tiles(self.dense)


class BasisMap:
    """Values of a kernel against one basis; what blocks share is computed once."""

    def __init__(self, kernel: Any, basis: Any) -> None:
        self.kernel, self.vectors = kernel, BasisVectors(basis)
        self.n_features: int = basis.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return BasisMap, (self.kernel, self.vectors.basis)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Kernel values of shape (rows, p)."""
        rows, others = self.vectors.within(rows)
        values: np.ndarray = self.kernel.values(rows, self.vectors, dtype)
        if others is not None and self.kernel.name == "rbf":
            values *= np.exp(-self.kernel.gamma * others)[:, None].astype(dtype)
        return values


class KernelSamples(DerivedSamples):
    """Kernel values of each row against a basis, recomputed at each read."""

    def __init__(self, base: Samples, basis_map: FeatureMap, dtype: Any = FEATURE_DTYPE) -> None:
        super().__init__(base)
        self.basis_map = basis_map
        self.n_features = basis_map.n_features
        self.dtype = self.stored_dtype = np.dtype(dtype)
        self.is_sparse = False

    def derive(self, rows: Any) -> np.ndarray:
        """Kernel values of some rows."""
        return self.basis_map.block(rows, self.dtype)


class ExpansionMap:
    """Expansions of rows x over a basis, sum_j K(x, b_j) c_j; only a tile of kernel values is in memory.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    basis : ndarray of shape (p, d)
        Basis vectors.
    coef : ndarray of shape (p,) or (p, k)
        Coefficients of each expansion.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.kernel import ExpansionMap, Kernel
    >>> expansion = ExpansionMap(Kernel("linear"), np.eye(2), np.array([1.0, -1.0]))
    >>> expansion.block(np.array([[3.0, 1.0], [2.0, 2.0]]), np.float64)
    array([[2.],
           [0.]])
    """

    def __init__(self, kernel: Kernel, basis: np.ndarray, coef: np.ndarray) -> None:
        self.kernel, self.basis = kernel, basis
        self.coef = np.ascontiguousarray(coef.reshape(basis.shape[0], -1), np.float64)
        self.n_features: int = self.coef.shape[1]
        tiles = [slice(start, start + 1024) for start in range(0, basis.shape[0], 1024)]
        self._tiles = [(kernel.against(basis[tile]), self.coef[tile]) for tile in tiles]

    def __reduce__(self) -> tuple[Any, ...]:
        return ExpansionMap, (self.kernel, self.basis, self.coef)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """The expansions, of shape (rows, k)."""
        total: Any = sum(tile.block(rows, np.float64) @ coef for tile, coef in self._tiles)
        return total.astype(dtype, copy=False)


def kernel_matrix(sample: Any, kernel: Kernel) -> np.ndarray:
    """Kernel values between all rows of a dense or CSR sample, float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    parameters: dict[str, Any] = {} if kernel.name == "linear" else {"gamma": kernel.gamma}
    if kernel.name == "poly":
        parameters |= {"degree": kernel.degree, "coef0": kernel.coef0}
    return pairwise_kernels(sample.astype(np.float64), metric=kernel.name, **parameters)
