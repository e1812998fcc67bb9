"""Several kernels side by side against one basis, and kernels given as functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.features.kernel import BasisMap, BasisVectors, Kernel
from mmcnb.samples import CSRBlock
from mmcnb.samples.matrix import as_matrix, n_rows_of, with_short_indices


@dataclass(frozen=True)
class CallableKernel:
    """A kernel given as a function of blocks, as scikit-learn's kernels are.

    Parameters
    ----------
    function : callable
        ``function(rows, basis)`` gives the kernel values, an ndarray or a SciPy matrix of shape (n_rows, p).
        `rows` is an ndarray of shape (n_rows, d). Sparse rows are a ``scipy.sparse.csr_array``, with 32-bit
        indices where they suffice. `basis` is an ndarray of shape (p, d). Several threads call the function
        at once. For other processes it must be a function that can be pickled.
    name : str
        Name of the kernel in messages.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import laplacian_kernel
    >>> from mmcnb.features.multiple_kernels import CallableKernel
    >>> CallableKernel(laplacian_kernel, "laplacian")(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    array([[1.]])
    """

    function: Callable[[Any, np.ndarray], Any]
    name: str

    def __call__(self, rows: Any, basis: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Kernel values between dense or CSR rows and a dense basis, of shape (n_rows, p)."""
        return self.against(basis).block(rows, dtype)

    def against(self, basis: np.ndarray) -> BasisMap:
        """The map of rows to their kernel values against a dense basis of shape (p, d)."""
        return BasisMap(self, basis)

    def values(self, rows: Any, vectors: BasisVectors, dtype: Any) -> np.ndarray:
        """Kernel values between dense or CSR rows and basis vectors, of shape (n_rows, p).

        Raises
        ------
        InputError
            If the function fails on sparse rows, or returns another shape, NaN, infinity or anything but real
            numbers.
        """
        values = self._evaluate(rows, vectors.dense)
        if hasattr(values, "toarray"):
            values = values.toarray()
        values = np.asarray(values)
        if values.dtype.kind not in "fiub":
            raise InputError(
                f"kernel {self.name} gave values of {values.dtype}; give a function whose values are real "
                "numbers."
            )
        expected = n_rows_of(rows), vectors.dense.shape[0]
        if values.shape != expected:
            raise InputError(
                f"kernel {self.name} gave values of shape {values.shape}, not {expected}; give a function of "
                "rows and basis with one value for each pair of them."
            )
        with np.errstate(over="ignore"):  # reported below
            values = np.ascontiguousarray(values, dtype)
        finite = np.isfinite(values)
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            raise InputError(
                f"kernel {self.name} gave {values[i, j]} in {values.dtype} for row {i} of a block of shape "
                f"{expected} and basis vector {j}; give a function whose values are finite."
            )
        return values

    def _evaluate(self, rows: Any, basis: np.ndarray) -> Any:
        if not isinstance(rows, CSRBlock):
            return self.function(rows, basis)
        try:
            return self.function(with_short_indices(as_matrix(rows)), basis)
        except (TypeError, ValueError, AttributeError, IndexError, NotImplementedError) as error:
            # The errors of functions for dense rows do not name sparse rows as the cause.
            reason = " ".join(str(error).split()).rstrip(".")
            raise InputError(
                f"kernel {self.name} failed on sparse rows ({reason}); give dense rows, or a function that "
                "takes a scipy.sparse.csr_array."
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Raise InputError: JSON cannot hold a function."""
        raise InputError(
            f"kernel {self.name} is a function, which a model file cannot hold; pickle the estimator, or "
            "give the kernel by name."
        )


@dataclass(frozen=True, eq=False)
class MultipleKernels:
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
        If there is no kernel, or not one entry of columns per kernel, or columns are empty or not strictly
        increasing.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.kernel import Kernel
    >>> from mmcnb.features.multiple_kernels import MultipleKernels
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
            raise InputError(
                f"there are {len(self.kernels)} kernels and columns for {len(self.columns)}; give at least "
                "one kernel, and for each its columns or None."
            )
        for k, part in enumerate(self.columns):
            if part is not None and not (part.size and part[0] >= 0 and (np.diff(part) > 0).all()):
                raise InputError(
                    f"the columns of kernel {k} are not strictly increasing numbers from 0 on; sort them, "
                    "name each once, and at least one."
                )

    def slices(self, p: int) -> tuple[slice, ...]:
        """The features of each kernel against p basis vectors."""
        return tuple(slice(k * p, (k + 1) * p) for k in range(len(self.kernels)))

    def __call__(self, rows: Any, basis: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Values of all kernels between dense or CSR rows and a dense basis, of shape (n_rows, M p)."""
        return self.against(basis).block(rows, dtype)

    def against(self, basis: np.ndarray) -> "MultipleKernelsMap":
        """The map of rows to the values of all kernels against a dense basis of shape (p, d).

        Raises
        ------
        InputError
            If a kernel has columns that the basis lacks.
        """
        return MultipleKernelsMap(self, basis)

    def to_dict(self) -> dict[str, Any]:
        """The kernels and their columns as a JSON object; raises InputError where a kernel is a function."""
        columns = [None if part is None else part.tolist() for part in self.columns]
        return {"kernels": [kernel.to_dict() for kernel in self.kernels], "columns": columns}


def kernel_from_dict(values: dict[str, Any]) -> Kernel | MultipleKernels:
    """The kernel or kernels of a result of ``to_dict``.

    Examples
    --------
    >>> from mmcnb.features.kernel import Kernel
    >>> from mmcnb.features.multiple_kernels import kernel_from_dict
    >>> kernel_from_dict(Kernel("poly", degree=2).to_dict())
    Kernel(name='poly', gamma=1.0, degree=2, coef0=1.0)
    """
    if "kernels" not in values:
        return Kernel(**values)
    columns = (None if part is None else np.array(part, np.int64) for part in values["columns"])
    return MultipleKernels(tuple(Kernel(**one) for one in values["kernels"]), tuple(columns))


class MultipleKernelsMap:
    """Values of several kernels against one basis."""

    def __init__(self, stack: MultipleKernels, basis: np.ndarray) -> None:
        self.stack, self.basis = stack, basis
        p, d = basis.shape
        self.n_features = p * len(stack.kernels)
        # Kernels on the same columns share the selected rows and basis.
        self._groups: dict[bytes | None, tuple[np.ndarray | None, BasisVectors, list[Any]]] = {}
        for k, (kernel, columns) in enumerate(zip(stack.kernels, stack.columns, strict=True)):
            if columns is not None and columns[-1] >= d:
                raise InputError(
                    f"kernel {k} wants column {columns[-1]} and there are {d}; number the columns from 0."
                )
            key = None if columns is None else columns.tobytes()
            if key not in self._groups:
                self._groups[key] = columns, BasisVectors(select_columns(basis, columns)), []
            self._groups[key][2].append((stack.slices(p)[k], kernel))

    def __reduce__(self) -> tuple[Any, ...]:
        return MultipleKernelsMap, (self.stack, self.basis)

    def block(self, rows: Any, dtype: Any) -> np.ndarray:
        """Values of shape (n_rows, M p), those of kernel k in columns k p to (k + 1) p."""
        out = np.empty((n_rows_of(rows), self.n_features), dtype)
        for columns, vectors, kernels in self._groups.values():
            seen = select_columns(rows, columns)
            for place, kernel in kernels:
                out[:, place] = kernel.values(seen, vectors, dtype)
        return out


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
    place = np.full(rows.n_features, -1, rows.indices.dtype)
    place[columns] = np.arange(columns.size)
    indices = place[rows.indices]
    selected = np.flatnonzero(indices >= 0)
    indptr = np.searchsorted(selected, rows.indptr).astype(np.int64, copy=False)
    return CSRBlock(rows.data[selected], indices[selected], indptr, columns.size)
