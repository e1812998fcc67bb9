"""What the arrays of a model must be to fit one another.

A file may be whole, with checksums that are right, and hold numbers that no fit has written. Compiled
routines trust the shapes that they are given, so that all of them are checked when a model is read.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.features.kernel import KERNELS, Kernel
from mmcnb.features.multiple_kernels import MultipleKernels
from mmcnb.features.rules import Hyperplane

FLOATS = ("float32", "float64")
LINES = ("basis_data", "mean", "deviation", "ridge_centre", "kernel_weights", "graph_mean")
TABLES = ("basis", "ridge_matrix", "graph_axes", "graph_nodes", "graph_centres", "graph_coordinates")
COUNTS = ("basis_indices", "basis_indptr", "basis_shape", "graph_starts", "graph_search")
ARRAYS = {  # number of axes and types of each array that a model may have
    "coef": ((1, 2), FLOATS),
    "offset": ((0, 1), FLOATS),
    **dict.fromkeys(LINES, ((1,), FLOATS)),
    **dict.fromkeys(TABLES, ((2,), FLOATS)),
    **dict.fromkeys(COUNTS, ((1,), ("int32", "int64"))),
}


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that no model has, of other types, or with numbers that are not finite.

    Raises
    ------
    InputError
        The message begins with the name of the array.
    """
    for name, array in arrays.items():
        if name not in ARRAYS:
            raise InputError(f"{name!r} is no array of a model")
        axes, types = ARRAYS[name]
        if array.ndim not in axes or array.dtype.name not in types or not array.dtype.isnative:
            raise InputError(f"{name} is of shape {array.shape} and type {array.dtype}, which it never is")
        if not np.isfinite(array).all():
            raise InputError(f"{name} holds numbers that are not finite")
    for name in ("coef", "offset"):
        if name not in arrays:
            raise InputError(f"{name} is missing")


def check_kernel(kernel: Any) -> None:
    """Refuse a kernel with parameters that none has; the message begins with the name of one."""
    if isinstance(kernel, MultipleKernels):
        for one in kernel.kernels:
            check_kernel(one)
        return
    if kernel is None:
        return
    assert isinstance(kernel, Kernel)
    if kernel.name not in KERNELS:
        raise InputError(f"kernel is named {kernel.name!r}, which is none of {', '.join(KERNELS)}")
    for name, least in (("gamma", 0.0), ("coef0", -np.inf)):
        value = getattr(kernel, name)
        if type(value) not in (int, float) or not np.isfinite(value) or value < least:
            raise InputError(f"{name} of the kernel is {value!r}, which it never is")
    if type(kernel.degree) is not int or not 1 <= kernel.degree <= 2**31 - 1:
        raise InputError(f"degree of the kernel is {kernel.degree!r}, which it never is")


def check_shapes(model: Any, n_features: int) -> None:
    """Refuse a model whose parts do not fit one another, or not rows of ``n_features`` columns.

    Raises
    ------
    InputError
        The message begins with the name of the part.
    """
    for name in ("mean", "deviation"):
        _check_shape(name, getattr(model, name), (n_features,))
    if (model.mean is None) != (model.deviation is None):
        raise InputError("mean and deviation go together, and one is missing")
    if model.deviation is not None and not (model.deviation > 0).all():
        raise InputError("deviation is not positive")
    if model.basis is not None and (model.basis.ndim != 2 or model.basis.shape[1] != n_features):
        raise InputError(f"basis has shape {model.basis.shape} for rows of {n_features} columns")
    if (model.kernel is None) != (model.basis is None):
        raise InputError("kernel and basis go together, and one is missing")
    if model.graph is not None:
        _check_shape("graph_mean", model.graph.axes.mean, (n_features,))
    if model.feature_dtype not in FLOATS:
        raise InputError(f"feature_dtype is {model.feature_dtype!r} and none of {', '.join(FLOATS)}")
    columns = _n_columns(model, n_features)
    if isinstance(model.rule, Hyperplane):
        _check_shape("coef", model.rule.coef, (columns,))
    else:
        _check_shape("coef", model.rule.coef, (columns, *model.rule.offset.shape))
    if model.ridge is not None:
        _check_shape("ridge_matrix", model.ridge.matrix, (columns, *model.ridge.centre.shape))


def n_clusters_of(model: Any) -> int:
    """Number of clusters that the rule of a model gives."""
    return 2 if isinstance(model.rule, Hyperplane) else int(model.rule.offset.shape[0])


def _n_columns(model: Any, n_features: int) -> int:
    """Columns of the rows in the features of the rule."""
    if model.graph is not None:
        return int(model.graph.n_features)
    if model.basis is None:
        return n_features
    n_basis = int(model.basis.shape[0])
    if not isinstance(model.kernel, MultipleKernels):
        return n_basis
    for part in model.kernel.columns:
        if part is not None and part[-1] >= n_features:
            raise InputError(f"columns of a kernel reach {part[-1]}, beyond the {n_features} there are")
    n_kernels = len(model.kernel.kernels)
    _check_shape("kernel_weights", model.kernel_weights, (n_kernels,))
    return n_basis * n_kernels


def _check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    if array is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, and {shape} would fit the rest")
