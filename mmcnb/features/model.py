"""The fitted model, which labels new rows, and its file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from scipy.sparse import csr_array, issparse

from mmcnb.errors import InputError
from mmcnb.features.graph import GraphMap
from mmcnb.features.kernel import ExpansionMap, FeatureMap, Kernel, KernelSamples
from mmcnb.features.model_checks import check_arrays, check_kernel
from mmcnb.features.multiple_kernels import MultipleKernels, kernel_from_dict
from mmcnb.features.nystroem import RidgeMap
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.samples import Samples
from mmcnb.samples._files import open_file
from mmcnb.samples._npy import read_header
from mmcnb.samples.derived import ScaledSamples
from mmcnb.stores.atomic import atomic_write

FORMAT, OLDEST = 3, 2  # of model files: the format written, and the oldest that can be read
BROKEN = (BadZipFile, EOFError, OSError, MemoryError, RuntimeError)  # as a damaged archive raises them
DAMAGE = (*BROKEN, ValueError, LookupError, TypeError, AttributeError)


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
    mean, deviation : ndarray of shape (d,) or None, default=None
        Scaling of the columns.
    feature_dtype : str, default="float32"
        Precision of the kernel values.
    ridge : RidgeMap or None, default=None
        Coordinates in which the ridge is the identity, for least squares.
    kernel_weights : ndarray of shape (M,) or None, default=None
        The weights of several kernels.
    graph : GraphMap or None, default=None
        Coordinates on a graph, in place of kernel values.
    """

    rule: Hyperplane | Scores
    kernel: Kernel | MultipleKernels | None = None
    basis: Any = None
    mean: np.ndarray | None = None
    deviation: np.ndarray | None = None
    feature_dtype: str = "float32"
    ridge: RidgeMap | None = None
    kernel_weights: np.ndarray | None = None
    graph: GraphMap | None = None

    def scaled(self, samples: Samples) -> Samples:
        """The rows with their columns scaled as in the fit."""
        if self.mean is None or self.deviation is None:
            return samples
        return ScaledSamples(samples, self.mean, self.deviation)

    def features(self, samples: Samples) -> Samples:
        """The rows in the features of the rule."""
        scaled = self.scaled(samples)
        mapped: FeatureMap | None = self.graph
        if self.kernel is not None and self.basis is not None:
            mapped = self.kernel.against(self.basis)
        return scaled if mapped is None else KernelSamples(scaled, mapped, np.dtype(self.feature_dtype))

    def decisions(self, samples: Samples) -> tuple[Samples, Hyperplane | Scores]:
        """The rows as expansions over a basis of any size, and the rule on these.

        Only a model of one kernel has them.
        """
        assert isinstance(self.kernel, Kernel)
        assert self.basis is not None
        expansions = ExpansionMap(self.kernel, self.basis, self.rule.coef)
        ones = np.eye(expansions.n_features)
        rule = replace(self.rule, coef=ones[0] if self.rule.coef.ndim == 1 else ones)
        return KernelSamples(self.scaled(samples), expansions, np.float64), rule

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of the model, by name."""
        arrays = {
            "coef": self.rule.coef,
            "offset": np.asarray(self.rule.offset, np.float64),
            **_basis_arrays(self.basis),
            "mean": self.mean,
            "deviation": self.deviation,
            "ridge_matrix": None if self.ridge is None else self.ridge.matrix,
            "ridge_centre": None if self.ridge is None else self.ridge.centre,
            "kernel_weights": self.kernel_weights,
            **({} if self.graph is None else self.graph.arrays()),
        }
        return {name: array for name, array in arrays.items() if array is not None}

    def to_dict(self) -> dict[str, Any]:
        """The model without its arrays, as a JSON object."""
        kernel = None if self.kernel is None else self.kernel.to_dict()
        return {"kernel": kernel, "feature_dtype": self.feature_dtype}

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], header: dict[str, Any]) -> "Model":
        """The model of some `arrays` and the result of `to_dict`.

        Raises
        ------
        InputError
            If an array or the kernel is what no model has; the message begins with its name.
        """
        check_arrays(arrays)
        coef, offset = arrays["coef"], arrays["offset"]
        has_graph = any(name.startswith("graph_") for name in arrays)
        has_ridge = "ridge_matrix" in arrays
        model = cls(
            Hyperplane(coef, float(offset)) if offset.ndim == 0 else Scores(coef, offset),
            kernel_from_dict(header["kernel"]) if header["kernel"] else None,
            _basis_of(arrays),
            arrays.get("mean"),
            arrays.get("deviation"),
            header["feature_dtype"],
            RidgeMap(arrays["ridge_matrix"], arrays["ridge_centre"]) if has_ridge else None,
            arrays.get("kernel_weights"),
            GraphMap.restore(arrays) if has_graph else None,
        )
        check_kernel(model.kernel)
        return model


SPARSE_BASIS = ("basis_data", "basis_indices", "basis_indptr")


def _basis_arrays(basis: Any) -> dict[str, Any]:
    """The arrays of a basis, dense or CSR."""
    if not issparse(basis):
        return {"basis": basis}
    parts = dict(zip(SPARSE_BASIS, (basis.data, basis.indices, basis.indptr), strict=True))
    return {**parts, "basis_shape": np.array(basis.shape)}


def _basis_of(arrays: Mapping[str, np.ndarray]) -> Any:
    """The basis of some arrays; None where they hold none."""
    if "basis_shape" not in arrays:
        return arrays.get("basis")
    try:
        basis = csr_array(tuple(arrays[name] for name in SPARSE_BASIS), shape=tuple(arrays["basis_shape"]))
        basis.check_format(full_check=True)
    except (ValueError, OverflowError) as error:
        raise InputError("basis is no sparse matrix") from error
    return basis


def write_model(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model file atomically: a zip of arrays and a JSON header, each with its checksum."""
    header = {"format": FORMAT, "arrays": sorted(arrays)} | header
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    try:
        with atomic_write(path) as file:
            np.savez(file, header=text, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise InputError(f"the model could not be written to {path}: {error.strerror}.") from error


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file; no more is read than the file has bytes."""
    target = Path(path)
    if not target.exists():
        raise InputError(f"there is no model at {target}; write one with `mmcnb fit --model {target}`.")
    file = open_file(target)
    try:
        with file, ZipFile(file) as members:
            _check_members(members, target.stat().st_size)
            arrays = {name.removesuffix(".npy"): _read_array(members, name) for name in members.namelist()}
        header = json.loads(arrays.pop("header").tobytes())
        version = header["format"]
        if sorted(arrays) != header.get("arrays", sorted(arrays)):
            raise BadZipFile("an array is missing")
    except DAMAGE as error:
        raise InputError(
            f"{target} is no model of mmcnb, or it is damaged; fit again to write it anew."
        ) from error
    if version not in range(OLDEST, FORMAT + 1):
        raise InputError(
            f"{target} has model format {version}, and this version reads {OLDEST} to {FORMAT}; "
            "read it with the version that wrote it."
        )
    return header, arrays


def _check_members(members: ZipFile, n_bytes: int) -> None:
    """Refuse an archive that holds more than it has bytes, as one does that is compressed, or damaged."""
    listed = members.infolist()
    if any(member.compress_type != ZIP_STORED for member in listed):
        raise BadZipFile("a member is compressed")
    if sum(member.file_size for member in listed) > n_bytes or len(set(members.namelist())) != len(listed):
        raise BadZipFile("members lie in one another")


def _read_array(members: ZipFile, name: str) -> np.ndarray:
    """An array whose header claims what it holds; the checksum of a member is compared at its end."""
    with members.open(name) as file:
        shape, by_columns, dtype = read_header(file)
        content = file.read()
    array = np.frombuffer(bytearray(content), dtype)
    return array.reshape(shape, order="F" if by_columns else "C")
