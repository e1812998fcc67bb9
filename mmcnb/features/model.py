"""The fitted model, which labels new rows, and its file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mmcnb.errors import InputError, one_line
from mmcnb.features.directions import UnitSamples
from mmcnb.features.kernel import FeatureMap, Kernel, KernelSamples, MultipleKernels
from mmcnb.features.nystroem import RidgeMap
from mmcnb.features.of_nodes import NodeColumns, NodeRule
from mmcnb.features.rules import Hyperplane, Scores, Shares
from mmcnb.graph.sparse_nodes import csr_of, csr_parts
from mmcnb.graph.vote import Vote
from mmcnb.graph.vote_file import restore_vote, vote_arrays
from mmcnb.samples import Samples
from mmcnb.samples.derived import ScaledSamples, Scaling
from mmcnb.samples.encoding import Encoding
from mmcnb.stores.archive import DamagedArchiveError, read_archive, write_archive
from mmcnb.stores.atomic import name_of, writing

FORMAT = 3  # of model files, the only one that can be read
FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
KINDS = {  # numbers of axes and types, and the arrays of a model that have them
    ((1, 2), FLOATS): "coef",
    ((0, 1), FLOATS): "offset",
    ((0,), FLOATS): "graph_threshold graph_bound",
    ((1,), FLOATS): "basis_data mean deviation units ridge_centre kernel_weights "
    "graph_mean graph_data graph_sizes graph_links graph_offsets",
    ((2,), FLOATS): "basis ridge_matrix graph_axes graph_nodes graph_centres",
    (
        (1,),
        INTEGERS,
    ): "basis_indices basis_indptr basis_shape graph_starts graph_search graph_labels "
    "graph_indices graph_indptr graph_shape graph_pieces graph_is_deep",
    ((2,), INTEGERS): "graph_merges",
}
ARRAYS = {name: kind for kind, names in KINDS.items() for name in names.split()}


@dataclass(frozen=True)
class Model:
    """A rule on kernel values against basis vectors, or on the columns themselves.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Gives the cluster of a row.
    kernel : Kernel, MultipleKernels or None, default=None
        The kernel or kernels; None for a linear model on the columns.
    basis : ndarray or csr_array of shape (p, d), or None, default=None
        Basis vectors; sparse ones where there are very many columns.
    scaling : Scaling or None, default=None
        The scaling of the columns, which comes first.
    feature_dtype : str, default="float32"
        Precision of the kernel values.
    ridge : RidgeMap or None, default=None
        Coordinates in which the ridge is the identity, for least squares.
    kernel_weights : ndarray of shape (M,) or None, default=None
        The weights of several kernels.
    graph : Vote or None, default=None
        The vote of the nodes of a graph, in place of kernel values.
    is_unit : bool, default=False
        Whether rows are divided by their lengths first.
    encoding : Encoding or None, default=None
        The columns of a table as numbers, before they are scaled.
    """

    rule: Hyperplane | Scores
    kernel: Kernel | MultipleKernels | None = None
    basis: Any = None
    scaling: Scaling | None = None
    feature_dtype: str = "float32"
    ridge: RidgeMap | None = None
    kernel_weights: np.ndarray | None = None
    graph: Vote | None = None
    is_unit: bool = False
    encoding: Encoding | None = None

    def scaled(self, samples: Samples) -> Samples:
        """The rows with their columns scaled as in the fit."""
        if self.scaling is not None:
            samples = ScaledSamples(samples, self.scaling)
        return UnitSamples(samples) if self.is_unit else samples

    def features(self, samples: Samples) -> Samples:
        """The rows in the features of the rule."""
        scaled = self.scaled(samples)
        mapped = self._map
        return (
            scaled
            if mapped is None
            else KernelSamples(scaled, mapped, np.dtype(self.feature_dtype))
        )

    @property
    def _map(self) -> FeatureMap | None:
        """Maps scaled rows to the features of the rule; None keeps their columns."""
        if self.kernel is not None and self.basis is not None:
            return self.kernel.against(self.basis)
        return self.graph if isinstance(self.rule, Shares) else None

    def labelling(
        self, samples: Samples, of_nodes: bool = False, **layer: Any
    ) -> tuple[Samples, Hyperplane | Scores | NodeRule]:
        """The rows in the features of what labels them, and that: the rule, or one that knows the nodes.

        Noise needs the nodes, and so does a layer: ``layer`` has parameters of
        `NodeRule`.
        """
        if self.graph is None or not (
            of_nodes or layer or self.graph.threshold < np.inf
        ):
            return self.features(samples), self.rule
        columns = NodeColumns(self.rule, self._map, self.graph, self.feature_dtype)
        rule = NodeRule(self.rule.n_clusters, self.graph.threshold, **layer)
        return KernelSamples(self.scaled(samples), columns, np.float64), rule

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the model, by name."""
        ridge = {} if self.ridge is None else vars(self.ridge)
        arrays: dict[str, Any] = {
            "coef": self.rule.coef,
            "offset": np.asarray(self.rule.offset, np.float64),
        }
        arrays |= (
            csr_parts(self.basis, "basis_")
            if issparse(self.basis)
            else {"basis": self.basis}
        )
        arrays |= {} if self.scaling is None else vars(self.scaling)
        arrays |= {f"ridge_{name}": array for name, array in ridge.items()}
        arrays["kernel_weights"] = self.kernel_weights
        arrays |= {} if self.graph is None else vote_arrays(self.graph)
        return {name: array for name, array in arrays.items() if array is not None}

    def to_dict(self) -> dict[str, Any]:
        """The model without its arrays, as a JSON object."""
        kernel = None if self.kernel is None else self.kernel.to_dict()
        encoding = None if self.encoding is None else self.encoding.to_dict()
        own = {
            "feature_dtype": self.feature_dtype,
            "is_unit": self.is_unit,
            "encoding": encoding,
        }
        return {"kernel": kernel, **own}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, np.ndarray], header: dict[str, Any]
    ) -> "Model":
        """The model of some `arrays` and the result of `to_dict`.

        Raises
        ------
        InputError
            If an array or the kernel is what no model has; the message begins with its
            name.
        """
        check_arrays(arrays)
        coef = arrays["coef"]
        offset = arrays["offset"]
        basis = arrays.get("basis")
        kernel = header["kernel"] or None
        if kernel is not None:
            kernel = (MultipleKernels if "kernels" in kernel else Kernel).restore(
                kernel
            )
        of_many = Shares if coef.ndim == 1 else Scores
        return cls(
            of_many(coef, offset) if offset.ndim else Hyperplane(coef, float(offset)),
            kernel,
            csr_of(arrays, "basis is no sparse matrix", "basis_")
            if "basis_shape" in arrays
            else basis,
            _scaling_of(arrays),
            header["feature_dtype"],
            RidgeMap(arrays["ridge_matrix"], arrays["ridge_centre"])
            if "ridge_matrix" in arrays
            else None,
            arrays.get("kernel_weights"),
            restore_vote(arrays)
            if any(name.startswith("graph_") for name in arrays)
            else None,
            header.get("is_unit", False),
            Encoding.restore(header["encoding"]) if header.get("encoding") else None,
        )


def renumbered(model: Any, numbers: np.ndarray, count: int) -> Model:
    """A model whose clusters have other numbers; no row gets one that is left over.

    Parameters
    ----------
    model : Model
        Its rule has a score for each cluster.
    numbers : ndarray of shape (k,), int64
        Number of each cluster.
    count : int
        How many numbers there are, at least k.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.model import Model, renumbered
    >>> from mmcnb.features.rules import Scores
    >>> model = renumbered(Model(Scores(np.array([[1.0, -1.0]]), np.zeros(2))), np.array([2, 0]), 3)
    >>> model.rule.label(np.array([[5.0], [-5.0]]))
    array([2, 0], dtype=int32)
    """
    rule = model.rule
    k = numbers.size
    order = np.argsort(np.append(numbers, np.setdiff1d(np.arange(count), numbers)))
    if isinstance(rule, Shares):  # the further columns are 0
        shares = Shares(np.append(rule.coef, np.arange(k, count)), np.zeros(count))
        return replace(
            model,
            rule=shares.ordered(order),
            graph=replace(model.graph, n_features=count),
        )
    never = np.full(count - k, float(np.finfo(np.float32).max))
    scores = Scores(
        np.pad(rule.coef, ((0, 0), (0, count - k))), np.append(rule.offset, never)
    )
    return replace(model, rule=scores.ordered(order))


def _scaling_of(arrays: Mapping[str, np.ndarray]) -> Scaling | None:
    """The scaling of some arrays; None where they hold none."""
    if ("mean" in arrays) != ("deviation" in arrays):
        raise InputError("mean and deviation go together, and one is missing")
    if "mean" not in arrays:
        return None
    return Scaling(arrays["mean"], arrays["deviation"], arrays.get("units"))


def write_model(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model file atomically."""
    with writing(name_of(path)):
        write_archive(path, {"format": FORMAT} | header, arrays)


def read_model(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file."""
    if not Path(path).exists():
        raise InputError(
            f"there is no model at {path}; write one with `mmcnb fit --model {path}`."
        )
    try:
        header, arrays = read_archive(path)
        version = header["format"]
    except (DamagedArchiveError, KeyError) as error:
        why = (
            f" ({one_line(error.__cause__)})"
            if isinstance(error.__cause__, OSError)
            else ""
        )
        fault = f"{path} is no model of mmcnb, or it is damaged{why}"
        raise InputError(f"{fault}; fit again to write it anew.") from error
    if version != FORMAT:
        fault = f"{path} has model format {version}, and this version reads {FORMAT}"
        raise InputError(f"{fault}; read it with the version that wrote it.")
    return header, arrays


# -- checks: a file may be whole and contain numbers that no fit has written, and
# compiled routines trust -- the shapes that they are given


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
        if (
            array.ndim not in axes
            or array.dtype.name not in types
            or not array.dtype.isnative
        ):
            raise InputError(
                f"{name} is of shape {array.shape} and type {array.dtype}, which it never is"
            )
        if not np.abs(array).max(initial=0) < np.finfo(np.float64).max ** 0.5:
            raise InputError(
                f"{name} holds numbers that are not finite, or whose squares overflow"
            )
    if missing := sorted({"coef", "offset"} - set(arrays)):
        raise InputError(f"{missing[0]} is missing")


def check_shapes(model: Model, n_features: int) -> None:
    """Refuse a model whose parts do not fit one another, or not rows of ``n_features`` columns.

    Raises
    ------
    InputError
        The message begins with the name of the part.
    """
    if model.encoding is not None:
        if len(model.encoding.columns) != n_features:
            fault = f"encoding is of {len(model.encoding.columns)} columns"
            raise InputError(f"{fault}, and {n_features} would fit")
        n_features = len(model.encoding.feature_names)
    if model.scaling is not None:
        for name, array in vars(model.scaling).items():
            _check_shape(name, array, (n_features,))
        if not (model.scaling.deviation >= 0).all():  # 0 of a constant column
            raise InputError("deviation is negative")
        if model.scaling.units is not None and not (model.scaling.units >= 0).all():
            raise InputError("units are negative")
    if model.basis is not None and (
        model.basis.ndim != 2 or model.basis.shape[1] != n_features
    ):
        raise InputError(
            f"basis has shape {model.basis.shape} for rows of {n_features} columns"
        )
    if (model.kernel is None) != (model.basis is None):
        raise InputError("kernel and basis go together, and one is missing")
    if isinstance(model.rule, Shares):
        is_order = np.array_equal(
            np.sort(model.rule.coef), np.arange(len(model.rule.offset))
        )
        if model.graph is None or not is_order:
            raise InputError("coef numbers no clusters of the nodes of a graph")
    if model.graph is not None and (own := model.graph.axes.n_features) != n_features:
        raise InputError(
            f"the graph is of {own} columns, and {n_features} would fit the rest"
        )
    if not isinstance(model.is_unit, bool):
        raise InputError(f"is_unit is {model.is_unit!r}, and neither true nor false")
    if model.feature_dtype not in FLOATS:
        raise InputError(
            f"feature_dtype is {model.feature_dtype!r} and none of {', '.join(FLOATS)}"
        )
    columns = _n_columns(model, n_features)
    of_coef = () if isinstance(model.rule, Shares) else np.shape(model.rule.offset)
    _check_shape("coef", model.rule.coef, (columns, *of_coef))
    if model.ridge is not None:
        _check_shape(
            "ridge_matrix", model.ridge.matrix, (columns, *model.ridge.centre.shape)
        )


def _n_columns(model: Model, n_features: int) -> int:
    """Columns of the rows in the features of the rule."""
    if model.graph is not None and isinstance(model.rule, Shares):
        return int(model.graph.n_features)
    if model.basis is None:
        return n_features
    n_basis = int(model.basis.shape[0])
    if not isinstance(model.kernel, MultipleKernels):
        return n_basis
    for part in model.kernel.columns:
        if part is not None and part[-1] >= n_features:
            raise InputError(
                f"columns of a kernel reach {part[-1]}, beyond the {n_features} there are"
            )
    n_kernels = len(model.kernel.kernels)
    _check_shape("kernel_weights", np.array(model.kernel_weights), (n_kernels,))
    return n_basis * n_kernels


def _check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    if array is not None and array.shape != shape:
        raise InputError(
            f"{name} has shape {array.shape}, and {shape} would fit the rest"
        )
