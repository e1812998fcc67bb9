"""Rows as features: kernel functions, alone or side by side, and kernel values against a basis."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from mmcnb.errors import InputError, one_line
from mmcnb.kernels import unchecked as kernels
from mmcnb.samples import CSRBlock, Samples
from mmcnb.samples.derived import DerivedSamples
from mmcnb.samples.matrix import (
    as_csr_block,
    as_matrix,
    squared_sums,
    to_dense,
    with_short_indices,
)

KERNELS = ("rbf", "linear", "poly")
FEATURE_DTYPE = np.dtype(np.float32)  # sums over the features are float64


class FeatureMap(Protocol):
    """Maps rows to features, block by block."""

    @property
    def n_features(self) -> int:
        """Number of features of a row."""

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Features of dense or CSR rows, of shape (rows, n_features)."""


class OnBasis:
    """A kernel or kernels whose values against one basis are asked for, block by block."""

    def __call__(self, rows: Any, basis: Any, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values between dense or CSR rows and a basis, of shape (rows, n_features)."""
        return self.against(basis).block(rows, dtype)

    def against(self, basis: Any) -> FeatureMap:
        """The map of rows to their kernel values against a basis of shape (p, d), dense or CSR."""
        return BasisMap(self, basis)


@dataclass(frozen=True)
class Kernel(OnBasis):
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

    def values(self, rows: Any, vectors: "BasisVectors", dtype: Any) -> np.ndarray:
        """Kernel values between dense or CSR rows and basis vectors, of shape (rows, p)."""
        is_csr = isinstance(rows, CSRBlock)
        # Products of float32 may leave its range, though the values are float64.
        given = (
            rows[:3]
            if is_csr
            else (rows.astype(np.result_type(rows, dtype), copy=False),)
        )
        basis = (
            vectors.for_csr
            if is_csr
            else (vectors.dense.astype(given[0].dtype, copy=False),)
        )
        out = np.empty(
            (rows.indptr.size - 1 if is_csr else rows.shape[0], vectors.dense.shape[0]),
            dtype,
        )
        if self.name == "rbf":
            fill = (
                kernels.rbf_kernel_block_csr_into
                if is_csr
                else kernels.rbf_kernel_block_into
            )
            fill(*given, *basis, self.gamma, out)
        else:
            dense = kernels.polynomial_kernel_block_into
            sparse = kernels.polynomial_kernel_block_csr_into
            form = (
                (1.0, 0.0, 1)
                if self.name == "linear"
                else (self.gamma, self.coef0, self.degree)
            )
            (sparse if is_csr else dense)(*given, basis[0], *form, out)
        return out

    def to_dict(self) -> dict[str, Any]:
        """The kernel as a JSON object."""
        return dict(vars(self))

    @classmethod
    def restore(cls, values: dict[str, Any]) -> "Kernel":
        """The kernel of a result of `to_dict`.

        Raises
        ------
        InputError
            If no kernel has such parameters; the message begins with the name of one.

        Examples
        --------
        >>> from mmcnb.features.kernel import Kernel
        >>> Kernel.restore(Kernel("poly", degree=2).to_dict())
        Kernel(name='poly', gamma=1.0, degree=2, coef0=1.0)
        """
        kernel = cls(**values)
        if kernel.name not in KERNELS:
            raise InputError(
                f"kernel is named {kernel.name!r}, which is none of {', '.join(KERNELS)}"
            )
        for name, least in (("gamma", 0.0), ("coef0", -np.inf)):
            value = getattr(kernel, name)
            if (
                type(value) not in (int, float)
                or not np.isfinite(value)
                or value < least
            ):
                raise InputError(
                    f"{name} of the kernel is {value!r}, which it never is"
                )
        if type(kernel.degree) is not int or not 1 <= kernel.degree <= 1000:
            raise InputError(
                f"degree of the kernel is {kernel.degree!r}, which it never is"
            )
        return kernel


class BasisVectors:
    """A basis; what CSR rows need of it is computed once for all kernels that share it.

    Of a sparse basis only the columns are kept in which some vector is not 0. What a
    row has in the others adds to its distance from each vector and to no inner product.

    Parameters
    ----------
    basis : ndarray or csr_array of shape (p, d)
        The vectors.
    """

    def __init__(self, basis: Any) -> None:
        self.basis, self.columns = (
            basis,
            np.unique(basis.indices) if sp.issparse(basis) else None,
        )
        self.dense = np.ascontiguousarray(
            basis if self.columns is None else basis[:, self.columns].toarray()
        )

    def within(self, rows: Any) -> tuple[Any, np.ndarray | None]:
        """Rows in the columns of the basis, and the sum of squares of what each has in the others."""
        if self.columns is None:
            return rows, None
        within = select_columns(rows, self.columns)
        if not isinstance(rows, CSRBlock):
            return within, np.maximum(squared_sums(rows) - squared_sums(within), 0)
        others = select_columns(
            rows, np.delete(np.arange(rows.n_features), self.columns)
        )
        return within, as_matrix(others).astype(np.float64).power(2).sum(axis=1)

    @cached_property
    def for_csr(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The transposed basis, squared norms and tiles of columns."""
        transposed = np.ascontiguousarray(self.dense.T, np.float64)
        norms = kernels.squared_norms(self.dense.astype(np.float64))
        return transposed, norms, kernels.column_tiles(self.dense)


class BasisMap:
    """Values of a kernel, or of several, against one basis; what blocks share is computed once."""

    def __init__(self, kernel: Any, basis: Any) -> None:
        self.kernel = kernel
        self.basis = basis
        kernels = getattr(kernel, "kernels", (kernel,))
        p = basis.shape[0]
        self.n_features: int = p * len(kernels)
        # Kernels on the same columns share the selected rows and basis.
        self._groups: dict[
            bytes | None, tuple[np.ndarray | None, BasisVectors, list[Any]]
        ] = {}
        for k, (one, columns) in enumerate(
            zip(kernels, getattr(kernel, "columns", (None,)), strict=True)
        ):
            key = None if columns is None else columns.tobytes()
            if key not in self._groups:
                self._groups[key] = (
                    columns,
                    BasisVectors(select_columns(basis, columns)),
                    [],
                )
            self._groups[key][2].append((slice(k * p, (k + 1) * p), one))

    def __reduce__(self) -> tuple[Any, ...]:
        return BasisMap, (self.kernel, self.basis)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Values of shape (rows, n_features), those of kernel k in columns k p to (k + 1) p."""
        rows = as_csr_block(rows) if sp.issparse(rows) else rows
        out: Any = None
        for columns, vectors, placed in self._groups.values():
            seen, others = vectors.within(select_columns(rows, columns))
            for place, kernel in placed:
                values: np.ndarray = kernel.values(seen, vectors, dtype)
                if others is not None and kernel.name == "rbf":
                    values *= np.exp(-kernel.gamma * others)[:, None].astype(dtype)
                if kernel is self.kernel:
                    return values
                out = (
                    np.empty((len(values), self.n_features), dtype)
                    if out is None
                    else out
                )
                out[:, place] = values
        return out


class KernelSamples(DerivedSamples):
    """Kernel values of each row against a basis, recomputed at each read."""

    def __init__(
        self, base: Samples, basis_map: FeatureMap, dtype: Any = FEATURE_DTYPE
    ) -> None:
        super().__init__(base)
        self.basis_map = basis_map
        self.n_features = basis_map.n_features
        self.dtype = self.stored_dtype = np.dtype(dtype)
        self.is_sparse = False

    def derive(self, rows: Any) -> np.ndarray:
        """Kernel values of some rows."""
        return self.basis_map.block(rows, self.dtype)


def kernel_matrix(sample: Any, kernel: Kernel) -> np.ndarray:
    """Kernel values between all rows of a dense or CSR sample, float64."""
    from sklearn.metrics.pairwise import pairwise_kernels

    given = sample.astype(np.float64)
    return pairwise_kernels(
        given, metric=kernel.name, filter_params=True, **kernel.to_dict()
    )


# -- functions of users, and several kernels side by side ------------------------------


@dataclass(frozen=True)
class CallableKernel(OnBasis):
    """A kernel given as a function of blocks, as scikit-learn's kernels are.

    Parameters
    ----------
    function : callable
        ``function(rows, basis)`` gives the kernel values, an ndarray or a SciPy matrix
        of shape (n_rows, p). `rows` is an ndarray of shape (n_rows, d). Sparse rows are
        a ``scipy.sparse.csr_array``, with 32-bit indices where they suffice. `basis` is
        an ndarray of shape (p, d). Several threads call the function at once. For other
        processes it must be a function that can be pickled.
    name : str
        Name of the kernel in messages.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from mmcnb.features.kernel import CallableKernel
    >>> CallableKernel(laplacian_kernel, "laplacian")(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    array([[1.]])
    """

    function: Callable[[Any, np.ndarray], Any]
    name: str

    def values(self, rows: Any, vectors: BasisVectors, dtype: Any) -> np.ndarray:
        """Kernel values between dense or CSR rows and basis vectors, of shape (n_rows, p).

        Raises
        ------
        InputError
            If the function fails on sparse rows, or returns another shape, NaN,
            infinity or anything but real numbers.
        """
        given = as_matrix(rows)
        values = to_dense(self._evaluate(given, vectors.dense))
        if values.dtype.kind not in "fiub":
            fault = f"kernel {self.name} gave values of {values.dtype}"
            raise InputError(f"{fault}; give a function whose values are real numbers.")
        expected = given.shape[0], vectors.dense.shape[0]
        if values.shape != expected:
            fault = f"kernel {self.name} gave values of shape {values.shape}, not {expected}"
            remedy = (
                "give a function of rows and basis with one value for each pair of them"
            )
            raise InputError(f"{fault}; {remedy}.")
        with np.errstate(over="ignore"):  # reported below
            values = np.ascontiguousarray(values, dtype)
        finite = np.isfinite(values)
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            place = f"row {i} of a block of shape {expected} and basis vector {j}"
            fault = (
                f"kernel {self.name} gave {values[i, j]} in {values.dtype} for {place}"
            )
            raise InputError(f"{fault}; give a function whose values are finite.")
        return values

    def _evaluate(self, rows: Any, basis: np.ndarray) -> Any:
        if isinstance(rows, np.ndarray):
            return self.function(rows, basis)
        try:
            return self.function(with_short_indices(rows), basis)
        except (
            TypeError,
            ValueError,
            AttributeError,
            IndexError,
            NotImplementedError,
        ) as error:
            # The errors of functions for dense rows do not name sparse rows as the
            # cause.
            fault = f"kernel {self.name} failed on sparse rows ({one_line(error)}); give dense rows"
            raise InputError(
                f"{fault}, or a function that takes a scipy.sparse.csr_array."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Raise InputError: JSON cannot hold a function."""
        fault = f"kernel {self.name} is a function, which a model file cannot hold"
        raise InputError(f"{fault}; pickle the estimator, or give the kernel by name.")


@dataclass(frozen=True, eq=False)
class MultipleKernels(OnBasis):
    """Several kernels side by side against one basis, each on its own columns of the data.

    Parameters
    ----------
    kernels : tuple of Kernel or CallableKernel, of length M
        The kernels.
    columns : tuple of (ndarray of int64, strictly increasing) or None, of length M
        The columns of rows and basis that each kernel reads; None for all.

    Raises
    ------
    InputError
        If there is no kernel, or not one entry of columns per kernel, or columns are
        empty or not strictly increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.kernel import Kernel, MultipleKernels
    >>> stack = MultipleKernels((Kernel("linear"), Kernel("linear")), (None, np.array([1])))
    >>> stack(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]]))
    array([[11., 17.,  8., 12.]])
    >>> stack.slices(2)
    (slice(0, 2, None), slice(2, 4, None))
    """

    kernels: tuple[Kernel | CallableKernel, ...]
    columns: tuple[np.ndarray | None, ...]

    def __post_init__(self) -> None:
        if not self.kernels or len(self.kernels) != len(self.columns):
            fault = f"there are {len(self.kernels)} kernels and columns for {len(self.columns)}"
            raise InputError(
                f"{fault}; give at least one kernel, and for each its columns or None."
            )
        for k, part in enumerate(self.columns):
            if part is not None and not (
                part.size and part[0] >= 0 and (np.diff(part) > 0).all()
            ):
                fault = f"the columns of kernel {k} are not strictly increasing numbers from 0 on"
                raise InputError(
                    f"{fault}; sort them, name each once, and at least one."
                )

    def slices(self, p: int) -> tuple[slice, ...]:
        """The features of each kernel against p basis vectors."""
        return tuple(slice(k * p, (k + 1) * p) for k in range(len(self.kernels)))

    def to_dict(self) -> dict[str, Any]:
        """The kernels and their columns as a JSON object; raises InputError where a kernel is a function."""
        columns = [None if part is None else part.tolist() for part in self.columns]
        return {
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "columns": columns,
        }

    @classmethod
    def restore(cls, values: dict[str, Any]) -> "MultipleKernels":
        """The kernels of a result of `to_dict`."""
        columns = (
            None if part is None else np.array(part, np.int64)
            for part in values["columns"]
        )
        return cls(tuple(map(Kernel.restore, values["kernels"])), tuple(columns))


def select_columns(rows: Any, columns: np.ndarray | None) -> Any:
    """Some columns of a dense or CSR block.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, d) or CSRBlock
        The block.
    columns : ndarray of int64, strictly increasing, or None
        The columns; None gives the block itself.

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
