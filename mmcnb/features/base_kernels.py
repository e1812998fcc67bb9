"""Base kernels: from the parameters of a user to `MultipleKernels`."""

from typing import Any

import numpy as np

from mmcnb._constraints import LARGEST_NUMBER, Constraint, Interval, IntervalOr
from mmcnb.errors import InputError, one_line, shown
from mmcnb.features.bandwidth import GAMMA_NAMES, default_gamma, mean_squared_distance
from mmcnb.features.kernel import KERNELS, CallableKernel, Kernel, MultipleKernels

GAMMA: dict[str, Constraint] = {
    "gamma": IntervalOr(Interval(0, open_low=True), GAMMA_NAMES)
}
POLYNOMIAL = GAMMA | {
    "degree": Interval(1, 1000, integer=True),
    "coef0": Interval(-LARGEST_NUMBER),
}
PARAMETERS = {"rbf": GAMMA, "linear": {}, "poly": POLYNOMIAL}
BANDWIDTHS = (
    0.35,
    0.55,
    0.9,
)  # sigma of "auto", in units of the root mean squared distance between two rows


def n_kernels(kernels: Any) -> int:
    """Number of kernels requested."""
    return 2 + len(BANDWIDTHS) if isinstance(kernels, str) else len(kernels)


def check_base_kernels(kernels: Any, columns: Any) -> None:
    """Refuse kernels or columns that are invalid for any rows.

    Raises
    ------
    InputError
        If a kernel or the columns are invalid; the message names the valid values.
    """
    if isinstance(kernels, str):
        if kernels != "auto":
            raise InputError(
                f'kernels={kernels!r} is unknown; give "auto" or a list such as [{kernels!r}].'
            )
        if columns is not None:
            raise InputError(
                'columns are given and kernels="auto" reads all; give a list of kernels too.'
            )
        return
    if not isinstance(kernels, list | tuple):
        raise InputError(
            f'kernels={shown(kernels)} is no list; give "auto" or a list such as ["rbf"].'
        )
    if len(kernels) == 0:
        raise InputError('kernels is empty; give at least one kernel, or "auto".')
    for k, kernel in enumerate(kernels):
        if not callable(kernel):
            _named(kernel, f"kernels[{k}]")
    if columns is not None and (
        not isinstance(columns, list | tuple) or len(columns) != len(kernels)
    ):
        fault = (
            f"columns does not hold one entry for each of the {len(kernels)} kernels"
        )
        raise InputError(f"{fault}; give a list of column numbers, slices or None.")


def _named(kernel: Any, place: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a kernel given by name, checked."""
    pair = (kernel, {}) if isinstance(kernel, str) else kernel
    is_pair = isinstance(pair, list | tuple) and len(pair) == 2
    if not (is_pair and isinstance(pair[0], str) and isinstance(pair[1], dict)):
        given = (
            f"{place} is an array, which"
            if hasattr(kernel, "shape")
            else f"{place}={shown(kernel)}"
        )
        known = "a name, a pair such as ('rbf', {'gamma': 0.5}), or a function of two blocks of rows"
        raise InputError(f"{given} is no kernel; give {known}.")
    name, parameters = pair
    if name not in KERNELS:
        known = ", ".join(repr(one) for one in KERNELS)
        fault = f"{place}={shown(name)} is unknown"
        raise InputError(f"{fault}; give one of {known} or a function of two blocks.")
    for key, value in parameters.items():
        if key not in PARAMETERS[name]:
            able = ", ".join(sorted(PARAMETERS[name])) or "no parameter"
            raise InputError(f"{place} has no parameter {key!r}; {name!r} has {able}.")
        PARAMETERS[name][key].check(f"{place}: {key}", value)
    return name, parameters


def base_kernels(
    kernels: Any, columns: Any, sample: Any, weights: np.ndarray | None = None
) -> MultipleKernels:
    """The kernels requested; a sample sets a gamma that is given by name.

    Raises
    ------
    InputError
        If columns do not exist, or all rows are equal in those of a kernel.
    """
    distance = mean_squared_distance(sample, weights)  # refuses rows that are all equal
    if isinstance(kernels, str):
        gaussians = [
            Kernel("rbf", 1 / (2 * bandwidth**2 * distance)) for bandwidth in BANDWIDTHS
        ]
        auto = [Kernel("linear"), Kernel("poly", 1 / distance, 2, 1.0), *gaussians]
        return MultipleKernels(tuple(auto), (None,) * len(auto))
    given = enumerate(columns or [None] * len(kernels))
    seen = [
        _column_numbers(part, sample.shape[1], f"columns[{k}]") for k, part in given
    ]
    parts = (sample if part is None else sample[:, part] for part in seen)
    made = (_kernel(kernels[k], part, weights, k) for k, part in enumerate(parts))
    return MultipleKernels(tuple(made), tuple(seen))


def kernel_names(kernels: MultipleKernels) -> list[str]:
    """Names of kernels, such as "rbf, gamma=0.5" or "linear, columns 0 to 3"."""
    pairs = zip(kernels.kernels, kernels.columns, strict=True)
    return [_name_of(kernel) + _where(columns) for kernel, columns in pairs]


def _kernel(
    kernel: Any, sample: Any, weights: np.ndarray | None, number: int
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
        fault = f"all rows are equal in the columns of kernels[{number}], which then tells none apart"
        raise InputError(f"{fault}; give it others, or leave it out.") from error
    return Kernel(
        name,
        gamma,
        int(parameters.get("degree", 3)),
        float(parameters.get("coef0", 1.0)),
    )


def _column_numbers(part: Any, n_features: int, place: str) -> np.ndarray | None:
    """Column numbers of a list, a mask or a slice, in rising order."""
    if part is None:
        return None
    try:
        found = np.arange(n_features)[part if isinstance(part, slice) else list(part)]
    except (
        IndexError,
        TypeError,
        ValueError,
    ) as error:  # such as a number too large, or a slice of floats
        fault = f"{place} are no column numbers ({one_line(error)}); give whole numbers"
        raise InputError(
            f"{fault} from 0 to {n_features - 1}, a slice, or a mask of {n_features}."
        ) from error
    if found.ndim != 1 or found.size == 0:
        fault = f"{place} names no column of the {n_features}"
        raise InputError(f"{fault}; give a list of at least one, or None.")
    return np.unique(found)


def _name_of(kernel: Kernel | CallableKernel) -> str:
    if isinstance(kernel, CallableKernel) or kernel.name == "linear":
        return kernel.name
    if kernel.name == "rbf":
        return f"rbf, gamma={kernel.gamma:.3g}"
    constant = "" if kernel.coef0 == 1 else f", coef0={kernel.coef0:.3g}"
    return f"poly, degree={kernel.degree}, gamma={kernel.gamma:.3g}{constant}"


def _where(columns: np.ndarray | None) -> str:
    """The columns that a kernel reads, as text for its name."""
    if columns is None:
        return ""
    if columns.size == 1:
        return f", column {columns[0]}"
    if (np.diff(columns) == 1).all():
        return f", columns {columns[0]} to {columns[-1]}"
    return f", {columns.size} columns from {columns[0]} on"


ROUNDING = 1e-6  # of kernel values, relative to the largest
SAME = (
    1e-9  # largest difference between entries of equal matrices, centred and of trace 1
)


def grams_of(kernels: MultipleKernels, basis: np.ndarray) -> list[np.ndarray]:
    """The matrix of each kernel between basis vectors, symmetric."""
    basis = basis.astype(np.float64)
    values = kernels(basis, basis)
    return [
        (values[:, one] + values[:, one].T) / 2
        for one in kernels.slices(basis.shape[0])
    ]


def check_gram(gram: np.ndarray, name: str) -> None:
    """Refuse the matrix of a function that is no kernel.

    Raises
    ------
    InputError
        If it is not symmetric or has a clearly negative eigenvalue.
    """
    largest = np.abs(gram).max()
    uneven = np.abs(gram - gram.T)
    if uneven.max() > ROUNDING * largest:
        i, j = np.unravel_index(uneven.argmax(), gram.shape)
        one, other = (
            f"{gram[a, b]:g} in row {a}, column {b}" for a, b in ((i, j), (j, i))
        )
        raise InputError(
            f"{name} is not symmetric: {one}, and {other}; give one with k(x, y) = k(y, x)."
        )
    low, high = np.linalg.eigvalsh(gram)[[0, -1]]
    if low < -ROUNDING * max(abs(low), abs(high)):
        fault = f"{name} has an eigenvalue of {low:.3g} beside one of {high:.3g}, so it is no inner product"
        raise InputError(
            f"{fault}; give a positive semidefinite kernel, not distances."
        )


def check_kernels(
    kernels: MultipleKernels, basis: np.ndarray, exact: bool = False
) -> None:
    """Refuse functions that are not kernels, and kernels without information.

    Raises
    ------
    InputError
        If a kernel is not symmetric, has a clearly negative eigenvalue, is the same for
        all rows, or is a copy of another.
    """
    basis = basis.astype(np.float64)
    names = kernel_names(kernels)
    seen = list[np.ndarray]()
    values = kernels(basis, basis)
    for name, one in zip(names, kernels.slices(basis.shape[0]), strict=True):
        gram = values[:, one]
        check_gram(gram, f"kernel {name}")
        centred = centred_gram(gram, exact)
        if centred is None:
            fault = f"kernel {name} is the same for all rows, but for rounding, which tells none apart"
            remedy = (
                "centre the columns where they are far from 0, as scale='standard' does"
            )
            raise InputError(f"{fault}; leave it out, or {remedy}.")
        for other, before in zip(names, seen, strict=False):
            if np.abs(centred - before).max() <= SAME:
                fault = (
                    f"kernel {name} is kernel {other} again, but for scale and centre"
                )
                raise InputError(
                    f"{fault}, and a copy would add weight to it; give each kernel once."
                )
        seen.append(centred)


def distinct_kernels(
    kernels: MultipleKernels, basis: np.ndarray, exact: bool = False
) -> MultipleKernels:
    """The kernels that tell rows apart and do not copy an earlier one."""
    seen: dict[int, np.ndarray] = {}
    for k, gram in enumerate(grams_of(kernels, basis)):
        centred = centred_gram(gram, exact)
        if centred is not None and all(
            np.abs(centred - one).max() > SAME for one in seen.values()
        ):
            seen[k] = centred
    return MultipleKernels(
        tuple(kernels.kernels[k] for k in seen), tuple(kernels.columns[k] for k in seen)
    )


def centred_gram(gram: np.ndarray, exact: bool = False) -> np.ndarray | None:
    """A kernel matrix in centred features, of trace 1; None where only rounding is left.

    ``exact`` says that kernel values are float64; otherwise they are float32.
    """
    held = np.finfo(np.float64 if exact else np.float32)
    largest = float(np.abs(gram).max())
    if not float(held.tiny) < largest < float(held.max) * float(held.eps):
        return None
    centred = gram - gram.mean(axis=0)
    centred = centred - centred.mean(axis=1)[:, None]
    trace = float(np.trace(centred))
    rounding = 1e-10 if exact else 1e-6
    return centred / trace if trace > rounding * largest * len(gram) else None
