"""The fitted model, which labels new rows, and its file format."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile, ZipFile

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
from mmcnb.samples.derived import OrderedSamples, ScaledSamples, Scaling
from mmcnb.samples.donors import Donors
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.formats import MODEL_FILES
from mmcnb.samples.paths import expanded
from mmcnb.stores.archive import DamagedArchiveError, read_archive, write_archive
from mmcnb.stores.atomic import name_of, writing

FORMAT = 3  # format version of model files; other versions cannot be read
FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
# Allowed numbers of dimensions and dtypes of each array.
FLOAT_VECTOR = ((1,), FLOATS)
FLOAT_MATRIX = ((2,), FLOATS)
INTEGER_VECTOR = ((1,), INTEGERS)
ARRAYS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "coef": ((1, 2), FLOATS),
    "offset": ((0, 1), FLOATS),
    "basis": FLOAT_MATRIX,
    "basis_data": FLOAT_VECTOR,
    "basis_indices": INTEGER_VECTOR,
    "basis_indptr": INTEGER_VECTOR,
    "basis_shape": INTEGER_VECTOR,
    "mean": FLOAT_VECTOR,
    "deviation": FLOAT_VECTOR,
    "units": FLOAT_VECTOR,
    "column_order": INTEGER_VECTOR,
    "ridge_matrix": FLOAT_MATRIX,
    "ridge_centre": FLOAT_VECTOR,
    "kernel_weights": FLOAT_VECTOR,
    "graph_threshold": ((0, 1), FLOATS),
    "graph_bound": ((0,), FLOATS),
    "graph_mean": FLOAT_VECTOR,
    "graph_axes": FLOAT_MATRIX,
    "graph_nodes": FLOAT_MATRIX,
    "graph_centres": FLOAT_MATRIX,
    "graph_data": FLOAT_VECTOR,
    "graph_indices": INTEGER_VECTOR,
    "graph_indptr": INTEGER_VECTOR,
    "graph_shape": INTEGER_VECTOR,
    "graph_sizes": FLOAT_VECTOR,
    "graph_links": FLOAT_VECTOR,
    "graph_offsets": FLOAT_VECTOR,
    "graph_starts": INTEGER_VECTOR,
    "graph_search": INTEGER_VECTOR,
    "graph_labels": INTEGER_VECTOR,
    "graph_pieces": INTEGER_VECTOR,
    "graph_is_deep": INTEGER_VECTOR,
    "graph_merges": ((2,), INTEGERS),
    "donor_rows": FLOAT_MATRIX,
    "donor_gaps": ((2,), INTEGERS),
    "donor_center": FLOAT_VECTOR,
    "donor_divisor": FLOAT_VECTOR,
    "donor_unit": FLOAT_VECTOR,
    "donor_steps": FLOAT_VECTOR,
}


@dataclass(frozen=True)
class Model:
    """A decision rule, and the mapping from rows to the features of the rule.

    The features are kernel values against basis vectors, votes of the nodes of a graph,
    or the columns themselves. Before this mapping, the steps that the model has are
    applied in this order: encoding, imputation, scaling of columns, reordering of
    columns, and scaling of rows to unit length.

    Parameters
    ----------
    rule : Hyperplane or Scores
        Determines the cluster of a row from its features.
    kernel : Kernel, MultipleKernels or None, default=None
        The kernel or kernels; None for a linear model on the columns.
    basis : ndarray or csr_array of shape (p, d), or None, default=None
        Basis vectors. They may be sparse if there are more than `WIDE_COLUMNS` columns.
    scaling : Scaling or None, default=None
        Scaling of the columns, applied after encoding and imputation.
    feature_dtype : str, default="float32"
        Data type of the kernel values.
    ridge : RidgeMap or None, default=None
        For least-squares models, the map from features to coordinates in which the
        ridge matrix is the identity.
    kernel_weights : ndarray of shape (M,) or None, default=None
        Weights of the kernels, if there are several.
    graph : Vote or None, default=None
        Nodes of a graph that vote on the cluster of a row. If the rule is `Shares`, the
        features are shares of votes instead of kernel values.
    is_unit : bool, default=False
        Whether rows are scaled to unit length.
    encoding : Encoding or None, default=None
        Conversion of the columns of a table to numbers, applied before scaling.
    donors : Donors or None, default=None
        Rows from which missing values of arrays are imputed. For tables, the encoding
        stores the donors.
    column_order : ndarray of shape (d,), int64, or None, default=None
        Order of the scaled columns in the basis and in the nodes. None keeps the
        original order.
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
    donors: Donors | None = None
    column_order: np.ndarray | None = None

    def scaled(self, samples: Samples) -> Samples:
        """Scale the rows, reorder their columns and normalise them as in the fit."""
        if self.scaling is not None:
            samples = ScaledSamples(samples, self.scaling)
        if self.column_order is not None:
            samples = OrderedSamples(samples, self.column_order)
        return UnitSamples(samples) if self.is_unit else samples

    def features(self, samples: Samples) -> Samples:
        """Return the rows mapped to the features of the rule."""
        scaled = self.scaled(samples)
        mapped = self._map
        if mapped is None:
            return scaled
        return KernelSamples(scaled, mapped, self.feature_dtype)

    @property
    def _map(self) -> FeatureMap | None:
        """Map from scaled rows to features, or None if the columns are the features."""
        if self.kernel is not None and self.basis is not None:
            return self.kernel.against(self.basis)
        return self.graph if isinstance(self.rule, Shares) else None

    def labelling(
        self, samples: Samples, of_nodes: bool = False, **layer: Any
    ) -> tuple[Samples, Hyperplane | Scores | NodeRule]:
        """Return the rows mapped to features, and the rule that labels the rows.

        The rule is `self.rule`, or a `NodeRule` if the nodes are needed to mark noise,
        to label rows by a layer, or to compute outlier scores (if ``of_nodes`` is
        True). ``layer`` contains parameters of `NodeRule`.
        """
        nodes = self.graph
        if nodes is None or not (of_nodes or layer or nodes.thresholds is not None):
            return self.features(samples), self.rule
        columns = NodeColumns(self.rule, self._map, nodes, self.feature_dtype)
        rule = NodeRule(self.rule.n_clusters, **layer)
        return KernelSamples(self.scaled(samples), columns, np.float64), rule

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores, by name."""
        arrays: dict[str, Any] = {
            "coef": self.rule.coef,
            "offset": np.asarray(self.rule.offset, np.float64),
        }
        if issparse(self.basis):
            arrays |= csr_parts(self.basis, "basis_")
        else:
            arrays["basis"] = self.basis
        if self.scaling is not None:
            arrays |= vars(self.scaling)
        if self.ridge is not None:
            arrays["ridge_matrix"] = self.ridge.matrix
            arrays["ridge_centre"] = self.ridge.centre
        arrays["kernel_weights"] = self.kernel_weights
        arrays["column_order"] = self.column_order
        if self.graph is not None:
            arrays |= vote_arrays(self.graph)
        donors = self.donors
        if self.encoding is not None:
            donors = self.encoding.donors
        if donors is not None:
            arrays |= donors.arrays()
        return {name: array for name, array in arrays.items() if array is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return all settings except the arrays, as a dict that JSON can store."""
        return {
            "kernel": self.kernel and self.kernel.to_dict(),
            "feature_dtype": self.feature_dtype,
            "is_unit": self.is_unit,
            "encoding": self.encoding and self.encoding.to_dict(),
        }

    def reading(self, encoding: Encoding | None, donors: Donors | None) -> "Model":
        """Return a copy with the given encoding and donors for reading rows."""
        if encoding is None or donors is None:
            return replace(self, encoding=encoding, donors=donors)
        return replace(self, encoding=replace(encoding, donors=donors), donors=None)

    @classmethod
    def restore(
        cls, arrays: Mapping[str, np.ndarray], header: dict[str, Any]
    ) -> "Model":
        """Restore a model from its `arrays` and the result of `to_dict`.

        Raises
        ------
        InputError
            If an array or the kernel is invalid. The message begins with the name of
            the array or setting.
        """
        check_arrays(arrays)
        kernel = header["kernel"] or None
        if kernel is not None:
            kind = MultipleKernels if "kernels" in kernel else Kernel
            kernel = kind.restore(kernel)
        basis = arrays.get("basis")
        if "basis_shape" in arrays:
            basis = csr_of(arrays, "basis is not a valid sparse matrix", "basis_")
        scaling = _scaling_of(arrays)
        ridge = None
        if "ridge_matrix" in arrays:
            ridge = RidgeMap(arrays["ridge_matrix"], arrays["ridge_centre"])
        graph = None
        if any(name.startswith("graph_") for name in arrays):
            graph = restore_vote(arrays)
        encoding = header.get("encoding") or None
        donors = Donors.restore(arrays)
        if encoding is not None:
            encoding = Encoding.restore(encoding, donors)
            donors = None
        return cls(
            rule=_rule_of(arrays["coef"], arrays["offset"]),
            kernel=kernel,
            basis=basis,
            scaling=scaling,
            feature_dtype=header["feature_dtype"],
            ridge=ridge,
            kernel_weights=arrays.get("kernel_weights"),
            graph=graph,
            is_unit=header.get("is_unit", False),
            encoding=encoding,
            donors=donors,
            column_order=arrays.get("column_order"),
        )


def renumbered(model: Model, numbers: np.ndarray, count: int) -> Model:
    """Renumber the clusters of a model; rows are never assigned to unused numbers.

    Parameters
    ----------
    model : Model
        A model whose rule has a score for each cluster.
    numbers : ndarray of shape (k,), int64
        New number of each cluster, from 0 to ``count`` - 1.
    count : int
        Number of clusters of the new model, at least k. Numbers that do not occur in
        ``numbers`` become empty clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.model import Model, renumbered
    >>> from mmcnb.features.rules import Scores
    >>> model = Model(Scores(np.array([[1.0, -1.0]]), np.zeros(2)))
    >>> model = renumbered(model, np.array([2, 0]), 3)
    >>> model.rule.label(np.array([[5.0], [-5.0]]))
    array([2, 0], dtype=int32)
    """
    rule = model.rule
    unused = np.setdiff1d(np.arange(count), numbers)
    order = np.argsort(np.append(numbers, unused))
    if isinstance(rule, Shares):
        # The share columns of unused numbers are filled with zeros.
        zeros = np.arange(numbers.size, count)
        shares = Shares(np.append(rule.coef, zeros), np.zeros(count))
        graph = replace(cast(Vote, model.graph), n_features=count)
        return replace(model, rule=shares.ordered(order), graph=graph)
    coef = np.pad(rule.coef, ((0, 0), (0, unused.size)))
    never = np.full(unused.size, float(np.finfo(np.float32).max))
    scores = Scores(coef, np.append(rule.offset, never))
    return replace(model, rule=scores.ordered(order))


def _rule_of(coef: np.ndarray, offset: np.ndarray) -> Hyperplane | Scores:
    if offset.ndim == 0:
        return Hyperplane(coef, float(offset))
    return Shares(coef, offset) if coef.ndim == 1 else Scores(coef, offset)


def _scaling_of(arrays: Mapping[str, np.ndarray]) -> Scaling | None:
    """Return the scaling stored in the arrays, or None if it is missing."""
    if ("mean" in arrays) != ("deviation" in arrays):
        raise InputError("mean or deviation is missing, although the other is present")
    if "mean" not in arrays:
        return None
    return Scaling(arrays["mean"], arrays["deviation"], arrays.get("units"))


def write_model(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model file atomically."""
    with writing(name_of(path)):
        write_archive(path, {"format": FORMAT} | header, arrays)


def is_model(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a ZIP archive with the members of a model file."""
    path = expanded(path)
    try:
        with ZipFile(path) as members:
            return set(members.namelist()) >= MODEL_FILES
    except (OSError, BadZipFile):
        return False


def read_model(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a model file."""
    path = expanded(path)
    if not Path(path).exists():
        raise InputError(
            f"there is no model at {path}; write one with model.save({str(path)!r}) "
            f"or `mmcnb fit DATA --model {path}`."
        )
    try:
        header, arrays = read_archive(path)
        version = header["format"]
    except (DamagedArchiveError, KeyError) as error:
        cause = error.__cause__
        why = f" ({one_line(cause)})" if isinstance(cause, OSError) else ""
        raise InputError(
            f"{path} is not a model of mmcnb, or it is damaged{why}; "
            "fit and save the model again."
        ) from error
    if version != FORMAT:
        raise InputError(
            f"{path} has model format {version}, but this version reads format "
            f"{FORMAT}; read it with the version that wrote it."
        )
    return header, arrays


# -- checks ----------------------------------------------------------------------------
#
# An intact file may still contain values that a fit never writes. Compiled routines do
# not check shapes and indices, so the functions below check them.


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """Check the names, dtypes and values of the arrays of a model file.

    Raises
    ------
    InputError
        If an array is unknown or missing, has a wrong dtype or number of dimensions, or
        has values that are not finite. The message begins with the name of the array.
    """
    for name, array in arrays.items():
        if name not in ARRAYS:
            raise InputError(f"{name!r} is not the name of a model array")
        axes, types = ARRAYS[name]
        dtype = array.dtype
        if array.ndim not in axes or dtype.name not in types or not dtype.isnative:
            raise InputError(
                f"{name} has shape {array.shape} and dtype {dtype}, which is invalid"
            )
        if not np.abs(array).max(initial=0) < np.finfo(np.float64).max ** 0.5:
            raise InputError(
                f"{name} has values that are not finite, or whose squares overflow"
            )
    for name in ("coef", "offset"):
        if name not in arrays:
            raise InputError(f"{name} is missing")


def check_shapes(model: Model, n_features: int) -> None:
    """Check the shapes of a model's arrays against each other and ``n_features``.

    Raises
    ------
    InputError
        If shapes are inconsistent or a setting is invalid. The message begins with the
        name of the array or setting.
    """
    if model.encoding is not None:
        n_encoded = len(model.encoding.names_or_numbers)
        if n_encoded != n_features:
            raise InputError(
                f"encoding has {n_encoded} columns, but {n_features} were expected"
            )
        n_features = len(model.encoding.feature_names)
    if model.scaling is not None:
        _check_scaling(model.scaling, n_features)
    if model.column_order is not None:
        _check_shape("column_order", model.column_order, (n_features,))
        if (np.sort(model.column_order) != np.arange(n_features)).any():
            raise InputError("column_order is not a permutation of the columns")
    _check_basis(model, n_features)
    _check_graph(model, n_features)
    if not isinstance(model.is_unit, bool):
        raise InputError(f"is_unit is {model.is_unit!r}, but must be true or false")
    if model.feature_dtype not in FLOATS:
        raise InputError(
            f"feature_dtype is {model.feature_dtype!r}, but must be one of "
            f"{', '.join(FLOATS)}"
        )
    columns = _n_columns(model, n_features)
    of_coef = () if isinstance(model.rule, Shares) else np.shape(model.rule.offset)
    _check_shape("coef", model.rule.coef, (columns, *of_coef))
    if model.ridge is not None:
        shape = (columns, *model.ridge.centre.shape)
        _check_shape("ridge_matrix", model.ridge.matrix, shape)
    if model.encoding is None:
        _check_donors(model.donors, n_features)
    else:
        _check_donors(model.encoding.donors, len(model.encoding.features))


def _check_donors(donors: Donors | None, n_features: int) -> None:
    """Raise InputError if the donors do not have one column per feature."""
    if donors is not None and donors.rows.shape[1] != n_features:
        raise InputError(
            f"donor_rows has {donors.rows.shape[1]} columns, but {n_features} were "
            "expected"
        )


def _check_scaling(scaling: Scaling, n_features: int) -> None:
    for name, array in vars(scaling).items():
        _check_shape(name, array, (n_features,))
    if not (scaling.deviation >= 0).all():  # it is 0 for a constant column
        raise InputError("deviation is negative")
    if scaling.units is not None and not (scaling.units >= 0).all():
        raise InputError("units are negative")


def _check_basis(model: Model, n_features: int) -> None:
    basis = model.basis
    if basis is not None and (basis.ndim != 2 or basis.shape[1] != n_features):
        raise InputError(
            f"basis has shape {basis.shape} for rows of {n_features} columns"
        )
    if (model.kernel is None) != (basis is None):
        raise InputError("kernel or basis is missing, although the other is present")


def _check_graph(model: Model, n_features: int) -> None:
    if isinstance(model.rule, Shares):
        clusters = np.arange(model.rule.n_clusters)
        is_order = np.array_equal(np.sort(model.rule.coef), clusters)
        if model.graph is None or not is_order:
            raise InputError("coef does not number the clusters of the nodes")
    if model.graph is None:
        return
    n_columns = model.graph.axes.n_features
    if n_columns != n_features:
        raise InputError(
            f"the graph has {n_columns} columns, but {n_features} were expected"
        )


def _n_columns(model: Model, n_features: int) -> int:
    """Return the number of features that the rule of a model takes."""
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
                f"columns of a kernel reach {part[-1]}, but there are only {n_features}"
            )
    n_kernels = len(model.kernel.kernels)
    _check_shape("kernel_weights", np.array(model.kernel_weights), (n_kernels,))
    return n_basis * n_kernels


def _check_shape(name: str, array: np.ndarray | None, shape: tuple[int, ...]) -> None:
    if array is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, but {shape} was expected")
