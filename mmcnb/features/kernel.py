"""Kernel functions, and feature maps that evaluate kernels against a basis."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mmcnb.errors import InputError, one_line
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.derived import DerivedSamples
from mmcnb.samples.matrix import (
    Block,
    Matrix,
    as_csr_block,
    as_matrix,
    n_rows_of,
    squared_sums,
    to_dense,
    with_short_indices,
)

KERNELS = ("rbf", "linear", "poly")
FEATURE_DTYPE = np.dtype(np.float32)  # dtype of features; their sums are float64


class FeatureMap(Protocol):
    """Protocol of objects that map rows to features, block by block."""

    @property
    def n_features(self) -> int:
        """Number of features of a row."""

    def block(self, rows: Block, dtype: DTypeLike) -> np.ndarray:
        """Return the features of dense or CSR rows, of shape (rows, n_features)."""


class OnBasis:
    """Base class of kernels that are evaluated between rows and a basis."""

    def __call__(
        self, rows: Block | Matrix, basis: Matrix, dtype: DTypeLike = np.float64
    ) -> np.ndarray:
        """Return kernel values of rows against a basis, of shape (rows, n_features)."""
        return self.against(basis).block(rows, dtype)

    def against(self, basis: Matrix) -> FeatureMap:
        """Return a feature map from rows to their kernel values against a basis."""
        return BasisMap(self, basis)


@dataclass(frozen=True)
class Kernel(OnBasis):
    """A kernel function and its parameters.

    Parameters
    ----------
    name : {"rbf", "linear", "poly"}, default="rbf"
        The kernel function: exp(-gamma |x-b|²), x·b or (gamma x·b + coef0)^degree.
    gamma : float, default=1.0
        For "rbf", 1/(2 sigma²) with bandwidth sigma. For "poly", the factor before x·b.
    degree : int, default=3
        Degree of the polynomial.
    coef0 : float, default=1.0
        Constant term of the polynomial.

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

    def values(
        self, rows: Block, vectors: "BasisVectors", dtype: DTypeLike
    ) -> np.ndarray:
        """Return kernel values of rows against basis vectors, of shape (rows, p)."""
        p = vectors.dense.shape[0]
        if isinstance(rows, CSRBlock):
            out = np.empty((rows.indptr.size - 1, p), dtype)
            basis = vectors.for_csr
            if self.name == "rbf":
                kernels.rbf_kernel_block_csr_into(*rows[:3], *basis, self.gamma, out)
            else:
                fill = kernels.polynomial_kernel_block_csr_into
                fill(*rows[:3], basis.transposed, *self._polynomial, out)
            return out
        # Convert first, because products of float32 rows may overflow even if the
        # kernel values are float64.
        rows = rows.astype(np.result_type(rows, dtype), copy=False)
        dense = vectors.dense.astype(rows.dtype, copy=False)
        out = np.empty((rows.shape[0], p), dtype)
        if self.name == "rbf":
            kernels.rbf_kernel_block_into(rows, dense, self.gamma, out)
        else:
            kernels.polynomial_kernel_block_into(rows, dense, *self._polynomial, out)
        return out

    @property
    def _polynomial(self) -> tuple[float, float, int]:
        """Scale, constant and degree of the polynomial."""
        if self.name == "linear":
            return 1.0, 0.0, 1
        return self.gamma, self.coef0, self.degree

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of the kernel as a dict that can be stored as JSON."""
        return dict(vars(self))

    @classmethod
    def restore(cls, values: dict[str, Any]) -> "Kernel":
        """Restore a kernel from the result of `to_dict`.

        Raises
        ------
        InputError
            If a parameter is invalid. The message begins with the parameter's name.

        Examples
        --------
        >>> from mmcnb.features.kernel import Kernel
        >>> Kernel.restore(Kernel("poly", degree=2).to_dict())
        Kernel(name='poly', gamma=1.0, degree=2, coef0=1.0)
        """
        kernel = cls(**values)
        if kernel.name not in KERNELS:
            known = ", ".join(KERNELS)
            raise InputError(
                f"kernel is named {kernel.name!r}, but must be one of {known}"
            )
        for name, least in (("gamma", 0.0), ("coef0", -np.inf)):
            value = getattr(kernel, name)
            is_number = type(value) in (int, float) and np.isfinite(value)
            if not is_number or value < least:
                raise InputError(f"{name} of the kernel is {value!r}, which is invalid")
        if type(kernel.degree) is not int or not 1 <= kernel.degree <= 1000:
            raise InputError(
                f"degree of the kernel is {kernel.degree!r}, which is invalid"
            )
        return kernel


class TransposedBasis(NamedTuple):
    """A basis in the form that the routines for CSR rows need.

    Attributes
    ----------
    transposed : ndarray of shape (d, p), float64
        The transposed basis.
    norms : ndarray of shape (p,), float64
        Squared norms of the basis vectors.
    tiles : ndarray
        Result of `mmcnb.kernels.column_tiles` for the basis.
    """

    transposed: np.ndarray
    norms: np.ndarray
    tiles: np.ndarray


class BasisVectors:
    """Basis vectors, with arrays for CSR rows that several kernels can share.

    For a sparse basis, only the columns with at least one nonzero entry are stored. All
    other columns of a row add the same amount to its squared distance from every
    vector, and nothing to its inner products.

    Parameters
    ----------
    basis : ndarray or csr_array of shape (p, d)
        The basis vectors.
    """

    def __init__(self, basis: Matrix) -> None:
        self.columns: np.ndarray | None = None
        if not isinstance(basis, np.ndarray):
            self.columns = np.unique(basis.indices)
            basis = basis[:, self.columns].toarray()
        self.dense = np.ascontiguousarray(basis)

    def within(self, rows: Block) -> tuple[Block, np.ndarray | None]:
        """Return only those columns of the rows that the basis stores.

        Also return an array with the squared norm of each row over all other columns,
        or None if the basis is dense.
        """
        if self.columns is None:
            return rows, None
        within = select_columns(rows, self.columns)
        if not isinstance(rows, CSRBlock):
            rest = squared_sums(rows) - squared_sums(within)
            return within, np.maximum(rest, 0)
        other_columns = np.delete(np.arange(rows.n_features), self.columns)
        outside = as_matrix(select_columns(rows, other_columns))
        squares = outside.astype(np.float64).power(2)
        return within, squares.sum(axis=1)

    @cached_property
    def for_csr(self) -> TransposedBasis:
        """Transposed basis, norms and column tiles for the compiled CSR routines."""
        transposed = np.ascontiguousarray(self.dense.T, np.float64)
        norms = kernels.squared_norms(self.dense.astype(np.float64))
        return TransposedBasis(transposed, norms, kernels.column_tiles(self.dense))


class ColumnGroup(NamedTuple):
    """Kernels that use the same columns, so that the columns are selected only once.

    Attributes
    ----------
    columns : ndarray or None
        Indices of the columns; None if the kernels use all columns.
    vectors : BasisVectors
        The basis, restricted to these columns.
    numbers : list of int
        Zero-based indices of the kernels in the group.
    """

    columns: np.ndarray | None
    vectors: BasisVectors
    numbers: list[int]


class BasisMap:
    """Map from rows to the values of one or several kernels against a basis.

    Arrays that depend only on the basis are computed once for all blocks.

    Parameters
    ----------
    kernel : Kernel, CallableKernel or MultipleKernels
        One kernel, or several kernels with a common basis.
    basis : ndarray or csr_array of shape (p, d)
        The basis vectors.
    """

    def __init__(self, kernel: OnBasis, basis: Matrix) -> None:
        self.kernel = kernel
        self.basis = basis
        self._kernels: tuple[Any, ...] = getattr(kernel, "kernels", (kernel,))
        self.n_features: int = basis.shape[0] * len(self._kernels)
        groups: dict[bytes | None, ColumnGroup] = {}
        columns_of_kernels = getattr(kernel, "columns", (None,))
        for k, columns in enumerate(columns_of_kernels):
            key = None if columns is None else columns.tobytes()
            if key not in groups:
                vectors = BasisVectors(select_columns(basis, columns))
                groups[key] = ColumnGroup(columns, vectors, [])
            groups[key].numbers.append(k)
        self._groups = list(groups.values())

    def __reduce__(self) -> tuple[type, tuple[OnBasis, Matrix]]:
        return BasisMap, (self.kernel, self.basis)

    def block(self, rows: Block | Matrix, dtype: DTypeLike) -> np.ndarray:
        """Return the kernel values of rows under each kernel.

        The values of kernel k are in columns k p to (k + 1) p - 1, where p is the
        number of basis vectors.
        """
        if sp.issparse(rows):
            rows = as_csr_block(rows)
        p = self.basis.shape[0]
        out = np.empty((n_rows_of(rows), self.n_features), dtype)
        for columns, vectors, numbers in self._groups:
            selected, rest = vectors.within(select_columns(rows, columns))
            for k in numbers:
                kernel = self._kernels[k]
                values: np.ndarray = kernel.values(selected, vectors, dtype)
                if rest is not None and kernel.name == "rbf":
                    factor = np.exp(-kernel.gamma * rest)
                    values *= factor[:, None].astype(dtype)
                if kernel is self.kernel:
                    return values
                out[:, k * p : (k + 1) * p] = values
        return out


class KernelSamples(DerivedSamples):
    """Kernel values of each row against a basis, recomputed whenever they are read."""

    def __init__(
        self, base: Samples, basis_map: FeatureMap, dtype: DTypeLike = FEATURE_DTYPE
    ) -> None:
        super().__init__(base)
        self.basis_map = basis_map
        self.n_features = basis_map.n_features
        self.dtype = self.stored_dtype = np.dtype(dtype)
        self.is_sparse = False

    def derive(self, rows: Block) -> np.ndarray:
        """Return the kernel values of the rows against the basis."""
        return self.basis_map.block(rows, self.dtype)


def kernel_matrix(sample: Matrix, kernel: Kernel) -> np.ndarray:
    """Return the kernel matrix of the rows of a dense or CSR sample, as float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    rows = sample.astype(np.float64)
    return pairwise_kernels(
        rows, metric=kernel.name, filter_params=True, **vars(kernel)
    )


# -- user-defined kernels, and several kernels side by side ----------------------------


@dataclass(frozen=True)
class CallableKernel(OnBasis):
    """A user-defined kernel: a function of two blocks of rows, as in scikit-learn.

    Parameters
    ----------
    function : callable
        ``function(rows, basis)`` returns the kernel values, an ndarray or a SciPy
        matrix of shape (n_rows, p). `rows` is an ndarray of shape (n_rows, d) or, for
        sparse rows, a ``scipy.sparse.csr_array``, with 32-bit indices if they suffice.
        `basis` is an ndarray of shape (p, d). Several threads call the function at the
        same time. To run in other processes, the function must be picklable.
    name : str
        Name of the kernel in messages.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from mmcnb.features.kernel import CallableKernel
    >>> kernel = CallableKernel(laplacian_kernel, "laplacian")
    >>> kernel(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    array([[1.]])
    """

    function: Callable[[Matrix, np.ndarray], Matrix]
    name: str

    def values(
        self, rows: Block, vectors: BasisVectors, dtype: DTypeLike
    ) -> np.ndarray:
        """Return kernel values of rows against basis vectors, of shape (n_rows, p).

        Raises
        ------
        InputError
            If the function fails on sparse rows, or if its values have the wrong shape
            or are not finite real numbers.
        """
        matrix = as_matrix(rows)
        values = to_dense(self._evaluate(matrix, vectors.dense))
        if values.dtype.kind not in "fiub":
            raise InputError(
                f"kernel {self.name} returned values of type {values.dtype}; "
                "pass a function whose values are real numbers."
            )
        expected = matrix.shape[0], vectors.dense.shape[0]
        if values.shape != expected:
            raise InputError(
                f"kernel {self.name} returned values of shape {values.shape}, but "
                f"{expected} was expected; pass a function that returns one value for "
                "each pair of a row and a basis vector."
            )
        with np.errstate(over="ignore"):  # reported below
            values = np.ascontiguousarray(values, dtype)
        finite = np.isfinite(values)
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            raise InputError(
                f"kernel {self.name} returned {values[i, j]} ({values.dtype}) for row "
                f"{i} of a block of shape {expected} and basis vector {j}; "
                "pass a function whose values are finite."
            )
        return values

    def _evaluate(self, rows: Matrix, basis: np.ndarray) -> Matrix:
        if isinstance(rows, np.ndarray):
            return self.function(rows, basis)
        # A function that supports only dense rows may raise any of these errors, whose
        # messages do not say that sparse rows are the cause.
        causes = (
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            NotImplementedError,
        )
        try:
            return self.function(with_short_indices(rows), basis)
        except causes as error:
            raise InputError(
                f"kernel {self.name} failed on sparse rows ({one_line(error)}); pass "
                "dense rows, or a function that takes a scipy.sparse.csr_array."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Raise InputError, because JSON cannot store a function."""
        raise InputError(
            f"kernel {self.name} is a function, which a model file cannot store; "
            "pickle the estimator, or pass the name of a kernel."
        )


@dataclass(frozen=True, eq=False)
class MultipleKernels(OnBasis):
    """Several kernels with a common basis, each evaluated on its own columns.

    Parameters
    ----------
    kernels : tuple of Kernel or CallableKernel, of length M
        The kernels.
    columns : tuple of (ndarray of int64, strictly increasing) or None, of length M
        For each kernel, the indices of the columns that it uses, or None if it uses all
        columns.

    Raises
    ------
    InputError
        If there are no kernels, if ``columns`` does not have one entry per kernel, or
        if an entry is empty or not strictly increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.kernel import Kernel, MultipleKernels
    >>> linear = Kernel("linear")
    >>> stack = MultipleKernels((linear, linear), (None, np.array([1])))
    >>> stack(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([[11., 17.,  8., 12.]])
    >>> stack.slices(2)
    (slice(0, 2, None), slice(2, 4, None))
    """

    kernels: tuple[Kernel | CallableKernel, ...]
    columns: tuple[np.ndarray | None, ...]

    def __post_init__(self) -> None:
        if not self.kernels or len(self.kernels) != len(self.columns):
            raise InputError(
                f"kernels has {len(self.kernels)} entries, but columns has "
                f"{len(self.columns)}; pass at least one kernel, and one entry of "
                "columns for each kernel."
            )
        for k, columns in enumerate(self.columns):
            if columns is None:
                continue
            if not columns.size or columns[0] < 0 or (np.diff(columns) <= 0).any():
                raise InputError(
                    f"the columns of kernel {k} are not strictly increasing indices "
                    "from 0; pass at least one column, in order and without repeats."
                )

    def slices(self, p: int) -> tuple[slice, ...]:
        """Return the slice of feature columns of each kernel, given p basis vectors."""
        return tuple(slice(k * p, (k + 1) * p) for k in range(len(self.kernels)))

    def to_dict(self) -> dict[str, Any]:
        """Return kernels and columns as a dict that can be stored as JSON.

        Raises
        ------
        InputError
            If a kernel is a function.
        """
        columns = [None if part is None else part.tolist() for part in self.columns]
        kernels = [kernel.to_dict() for kernel in self.kernels]
        return {"kernels": kernels, "columns": columns}

    @classmethod
    def restore(cls, values: dict[str, Any]) -> "MultipleKernels":
        """Restore kernels from the result of `to_dict`."""
        columns: list[np.ndarray | None] = []
        for part in values["columns"]:
            columns.append(None if part is None else np.array(part, np.int64))
        return cls(tuple(map(Kernel.restore, values["kernels"])), tuple(columns))


def select_columns(rows: Any, columns: np.ndarray | None) -> Any:
    """Select columns of a dense or CSR block.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, d) or CSRBlock
        The block of rows.
    columns : ndarray of int64, strictly increasing, or None
        Indices of the columns. If None, the block itself is returned.

    Returns
    -------
    ndarray of shape (n_rows, columns.size) or CSRBlock
        The selected columns; an ndarray is in C order.
    """
    if columns is None:
        return rows
    if not isinstance(rows, CSRBlock):
        return rows.take(columns, axis=1)
    selected = as_csr_block(as_matrix(rows)[:, columns])  # SciPy widens the indices
    return selected._replace(indices=selected.indices.astype(rows.indices.dtype))
