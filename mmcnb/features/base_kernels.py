"""Check the base kernels that a user passes, and convert them to `MultipleKernels`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmcnb._constraints import LARGEST_NUMBER, Constraint, Interval, IntervalOr
from mmcnb.errors import InputError, one_line, shown
from mmcnb.features.bandwidth import GAMMA_NAMES, default_gamma, mean_squared_distance
from mmcnb.features.kernel import KERNELS, CallableKernel, Kernel, MultipleKernels
from mmcnb.samples.matrix import Matrix, Weights

GAMMA: dict[str, Constraint] = {
    "gamma": IntervalOr(Interval(0, open_low=True), GAMMA_NAMES)
}
POLYNOMIAL = GAMMA | {
    "degree": Interval(1, 1000, integer=True),
    "coef0": Interval(-LARGEST_NUMBER),
}
PARAMETERS = {"rbf": GAMMA, "linear": {}, "poly": POLYNOMIAL}
# Sigmas of the Gaussian kernels that kernels="auto" selects, in units of the root mean
# squared distance between two rows.
BANDWIDTHS = (0.35, 0.55, 0.9)
ROUNDING = 1e-6  # rounding error of kernel values, relative to the largest value
# Two centred kernel matrices of trace 1 are treated as equal if none of their entries
# differ by more than this value.
SAME = 1e-9


def n_kernels(kernels: str | Sequence[object]) -> int:
    """Return the number of requested kernels."""
    return 2 + len(BANDWIDTHS) if isinstance(kernels, str) else len(kernels)


def check_base_kernels(kernels: object, columns: object) -> None:
    """Check ``kernels`` and ``columns`` as far as possible without the data.

    Raises
    ------
    InputError
        If ``kernels`` or ``columns`` is invalid. The message says what is valid.
    """
    if isinstance(kernels, str):
        if kernels != "auto":
            raise InputError(
                f'kernels={kernels!r} is unknown; pass "auto" or a list '
                f"such as [{kernels!r}]."
            )
        if columns is not None:
            raise InputError(
                'columns cannot be combined with kernels="auto", which uses all '
                "columns; pass a list of kernels too."
            )
        return
    if not isinstance(kernels, list | tuple):
        raise InputError(
            f'kernels={shown(kernels)} is not a list; pass "auto" or a list '
            'such as ["rbf"].'
        )
    if len(kernels) == 0:
        raise InputError('kernels is empty; pass at least one kernel, or "auto".')
    for k, kernel in enumerate(kernels):
        if not callable(kernel):
            _named(kernel, f"kernels[{k}]")
    if columns is None:
        return
    if not isinstance(columns, list | tuple) or len(columns) != len(kernels):
        raise InputError(
            f"columns does not have one entry for each of the {len(kernels)} kernels; "
            "pass a list of column indices, slices or None."
        )


def _named(kernel: Any, place: str) -> tuple[str, dict[str, Any]]:
    """Check a kernel given by name, and return its name and parameters."""
    if isinstance(kernel, str):
        kernel = (kernel, {})
    is_pair = isinstance(kernel, list | tuple) and len(kernel) == 2
    if not (is_pair and isinstance(kernel[0], str) and isinstance(kernel[1], dict)):
        fault = f"{place}={shown(kernel)}"
        if hasattr(kernel, "shape"):
            fault = f"{place} is an array, which"
        raise InputError(
            f"{fault} is not a kernel; pass a name, a pair such as "
            "('rbf', {'gamma': 0.5}), or a function of two blocks of rows."
        )
    name, parameters = kernel
    if name not in KERNELS:
        known = ", ".join(map(repr, KERNELS))
        raise InputError(
            f"{place}={shown(name)} is unknown; "
            f"pass one of {known} or a function of two blocks of rows."
        )
    constraints = PARAMETERS[name]
    for key, value in parameters.items():
        if key not in constraints:
            known = ", ".join(sorted(constraints)) or "no parameter"
            raise InputError(f"{place} has no parameter {key!r}; {name!r} has {known}.")
        constraints[key].check(f"{place}: {key}", value)
    return name, parameters


def base_kernels(
    kernels: str | Sequence[object],
    columns: Sequence[object] | None,
    sample: Matrix,
    weights: Weights = None,
) -> MultipleKernels:
    """Return the requested kernels; a gamma such as "auto" is computed from the sample.

    Raises
    ------
    InputError
        If a column does not exist, if all rows of the sample are equal, or if they are
        equal in the columns of a Gaussian or polynomial kernel.
    """
    distance = mean_squared_distance(sample, weights)  # raises if all rows are equal
    if isinstance(kernels, str):
        return _auto_kernels(distance)
    numbers = []
    for k, part in enumerate(columns or [None] * len(kernels)):
        place = f"columns[{k}]"
        numbers.append(_column_numbers(part, sample.shape[1], place))
    chosen = []
    for k, part in enumerate(numbers):
        rows = sample if part is None else sample[:, part]
        kernel = _kernel(kernels[k], rows, weights, k)
        chosen.append(kernel)
    return MultipleKernels(tuple(chosen), tuple(numbers))


def _auto_kernels(distance: float) -> MultipleKernels:
    """Return the kernels of "auto", given the mean squared distance between rows."""
    kernels = [Kernel("linear"), Kernel("poly", 1 / distance, 2, 1.0)]
    for bandwidth in BANDWIDTHS:
        kernels.append(Kernel("rbf", 1 / (2 * bandwidth**2 * distance)))
    return MultipleKernels(tuple(kernels), (None,) * len(kernels))


def kernel_names(kernels: MultipleKernels) -> list[str]:
    """Return kernel names such as "rbf, gamma=0.5" and "linear, columns 0 to 3"."""
    pairs = zip(kernels.kernels, kernels.columns, strict=True)
    return [_name_of(kernel) + _columns_text(columns) for kernel, columns in pairs]


def _kernel(
    kernel: object, sample: Matrix, weights: Weights, number: int
) -> Kernel | CallableKernel:
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return CallableKernel(kernel, getattr(kernel, "__name__", None) or str(kernel))
    name, parameters = _named(kernel, f"kernels[{number}]")
    if name == "linear":
        return Kernel("linear")
    try:
        gamma = default_gamma(parameters.get("gamma", "auto"), name, sample, weights)
    except InputError as error:
        raise InputError(
            f"all rows are equal in the columns of kernels[{number}], so it cannot "
            "distinguish them; select other columns, or leave this kernel out."
        ) from error
    degree = int(parameters.get("degree", 3))
    return Kernel(name, gamma, degree, float(parameters.get("coef0", 1.0)))


def _column_numbers(part: Any, n_features: int, place: str) -> np.ndarray | None:
    """Return the indices that a list, boolean mask or slice selects, sorted."""
    if part is None:
        return None
    try:
        index = part if isinstance(part, slice) else list(part)
        numbers = np.arange(n_features)[index]
    # NumPy raises these errors if an index is out of range or a slice contains floats.
    except (IndexError, TypeError, ValueError) as error:
        raise InputError(
            f"{place} is not a list of columns ({one_line(error)}); pass integers "
            f"from 0 to {n_features - 1}, a slice, or a boolean mask of length "
            f"{n_features}."
        ) from error
    if numbers.ndim != 1 or numbers.size == 0:
        raise InputError(
            f"{place} selects none of the {n_features} columns; "
            "pass a list of at least one column, or None."
        )
    return np.unique(numbers)


def _name_of(kernel: Kernel | CallableKernel) -> str:
    if isinstance(kernel, CallableKernel) or kernel.name == "linear":
        return kernel.name
    if kernel.name == "rbf":
        return f"rbf, gamma={kernel.gamma:.3g}"
    constant = "" if kernel.coef0 == 1 else f", coef0={kernel.coef0:.3g}"
    return f"poly, degree={kernel.degree}, gamma={kernel.gamma:.3g}{constant}"


def _columns_text(columns: np.ndarray | None) -> str:
    """Return text for a kernel's name that states which columns the kernel uses."""
    if columns is None:
        return ""
    if columns.size == 1:
        return f", column {columns[0]}"
    if (np.diff(columns) == 1).all():
        return f", columns {columns[0]} to {columns[-1]}"
    return f", {columns.size} columns from {columns[0]} on"


def grams_of(kernels: MultipleKernels, basis: np.ndarray) -> list[np.ndarray]:
    """Return the symmetrized kernel matrix of the basis vectors for each kernel."""
    return [(gram + gram.T) / 2 for gram in _raw_grams(kernels, basis)]


def _raw_grams(kernels: MultipleKernels, basis: np.ndarray) -> list[np.ndarray]:
    basis = basis.astype(np.float64)
    values = kernels(basis, basis)
    return [values[:, columns] for columns in kernels.slices(basis.shape[0])]


def check_gram(gram: np.ndarray, name: str) -> None:
    """Check that a matrix is symmetric and positive semidefinite, up to rounding.

    Raises
    ------
    InputError
        If the asymmetry or a negative eigenvalue exceeds the rounding error.
    """
    asymmetry = np.abs(gram - gram.T)
    if asymmetry.max() > ROUNDING * np.abs(gram).max():
        i, j = np.unravel_index(asymmetry.argmax(), gram.shape)
        raise InputError(
            f"{name} is not symmetric: {gram[i, j]:g} in row {i}, column {j}, and "
            f"{gram[j, i]:g} in row {j}, column {i}; use a kernel with "
            "k(x, y) = k(y, x)."
        )
    low, high = np.linalg.eigvalsh(gram)[[0, -1]]
    if low < -ROUNDING * max(abs(low), abs(high)):
        raise InputError(
            f"{name} has a negative eigenvalue of {low:.3g} (the largest is "
            f"{high:.3g}), so it is not an inner product; pass a positive semidefinite "
            "kernel, not distances."
        )


def check_kernels(
    kernels: MultipleKernels, basis: np.ndarray, exact: bool = False
) -> None:
    """Check that all kernels are valid, distinguish rows, and differ from each other.

    Raises
    ------
    InputError
        If a kernel matrix is not symmetric or not positive semidefinite, up to rounding
        errors; if a kernel does not distinguish rows; or if two kernels are equal up to
        scaling and centring.
    """
    # Use a list of pairs and not a dict, because two functions may have the same name.
    earlier = list[tuple[str, np.ndarray]]()
    grams = _raw_grams(kernels, basis)
    for name, gram in zip(kernel_names(kernels), grams, strict=True):
        check_gram(gram, f"kernel {name}")
        centred = centred_gram(gram, exact)
        if centred is None:
            raise InputError(
                f"kernel {name} is the same for all rows up to rounding, so it cannot "
                "distinguish them; leave it out, or centre columns that are far from "
                "0, as scale='standard' does."
            )
        for other, before in earlier:
            if is_copy(centred, before):
                raise InputError(
                    f"kernel {name} equals kernel {other} up to scaling and centring, "
                    "and a copy would only add weight to it; pass each kernel once."
                )
        earlier.append((name, centred))


def distinct_kernels(
    kernels: MultipleKernels, basis: np.ndarray, exact: bool = False
) -> MultipleKernels:
    """Return the kernels that are neither constant nor equal to an earlier kernel."""
    distinct: dict[int, np.ndarray] = {}
    for k, gram in enumerate(grams_of(kernels, basis)):
        centred = centred_gram(gram, exact)
        if centred is None:
            continue
        if not any(is_copy(centred, before) for before in distinct.values()):
            distinct[k] = centred
    return MultipleKernels(
        tuple(kernels.kernels[k] for k in distinct),
        tuple(kernels.columns[k] for k in distinct),
    )


def is_copy(gram: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two centred kernel matrices are equal up to rounding."""
    return bool(np.abs(gram - other).max() <= SAME)


def centred_gram(gram: np.ndarray, exact: bool = False) -> np.ndarray | None:
    """Centre a kernel matrix and scale it to trace 1.

    Return None if the centred values are only rounding errors, or if the values
    overflow or underflow. Both are judged by the precision and range of float64 if
    ``exact`` is True, and of float32 otherwise.
    """
    precision = np.finfo(np.float64 if exact else np.float32)
    rounding = 1e-10 if exact else 1e-6
    largest = float(np.abs(gram).max())
    highest = float(precision.max) * float(precision.eps)
    if not float(precision.tiny) < largest < highest:
        return None
    centred = gram - gram.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    trace = float(np.trace(centred))
    is_rounding = not trace > rounding * largest * len(gram)
    return None if is_rounding else centred / trace
