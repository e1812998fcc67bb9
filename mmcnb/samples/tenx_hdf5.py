"""HDF5 files from 10x Genomics: sparse counts of features by barcodes, with names."""

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples import matrix
from mmcnb.samples.elements import (
    CSRElement,
    Node,
    Storage,
    Texts,
    csr_shape,
    describe,
    plain_text,
)
from mmcnb.samples.row_index import RowIndex
from mmcnb.samples.tenx import choose_features

GROUP = "matrix"
ARRAYS = ("data", "indices", "indptr", "shape", "barcodes")
# Paths of feature names (symbols, or else identifiers) and of feature types; files of
# Cell Ranger 2 have no types.
NAMES = ("features/name", "gene_names", "features/id", "genes")
TYPES = "features/feature_type"


class TenxElement(CSRElement):
    """Rows of a 10x Genomics group, one per barcode.

    The group contains a matrix of features by barcodes in CSC format. The same arrays
    represent the transposed matrix, barcodes by features, in CSR format.

    Parameters
    ----------
    storage : Storage
        Storage that contains the group.
    group : Node
        Group that contains the matrix.
    element : str or None
        Type of the features to use. None selects genes if they are one of several
        types, and all features otherwise.
    """

    def __init__(self, storage: Storage, group: Node, element: str | None) -> None:
        super().__init__(storage, group)
        n_all = self.n_features
        path = next(filter(lambda path: storage.member(group, path), NAMES))
        names = self._texts(path, n_all)
        types: list[str] = []
        if storage.member(group, TYPES) is not None:
            types = self._texts(TYPES, n_all)
        features = choose_features(self.name, names, types, element)
        self.feature_names = features.names
        self.n_features = len(features.names)
        self._kept = features.kept
        barcodes = Texts(storage.rows(storage.member(group, "barcodes")))
        self._check_length("barcodes", barcodes.length, self.n_samples)
        self.row_index = RowIndex(self.n_samples, names=barcodes)
        if element is not None:
            self.element = element
            storage.take(self)

    def _shape_of(self, storage: Storage, group: Node) -> tuple[int, ...]:
        """Return the numbers of barcodes and features.

        The stored array ``shape`` contains these numbers in the opposite order.
        """
        stored = storage.rows(storage.member(group, "shape"))
        shape = stored.read(0, stored.length).tolist()
        return csr_shape(shape[::-1], describe(storage, group))

    def _texts(self, path: str, n: int) -> list[str]:
        stored = self.storage.rows(self.storage.member(self.node, path))
        self._check_length(path, stored.length, n)
        return plain_text(stored.read(0, n))

    def _check_length(self, path: str, n_texts: int, n: int) -> None:
        if n_texts != n:
            raise InputError(
                f"{self.name}: {path} has {n_texts:,} entries, but shape says {n:,}: "
                "get the file again."
            )

    def _read(self, start: int, stop: int) -> matrix.CSRParts:
        return self._of_kept(super()._read(start, stop), start)

    def _gather(self, rows: np.ndarray) -> matrix.CSRParts:
        return self._of_kept(super()._gather(rows), rows)

    def _of_kept(
        self, parts: matrix.CSRParts, rows: int | np.ndarray
    ) -> matrix.CSRParts:
        """Return the data, indices and indptr of CSR rows without unused features."""
        kept = self._kept
        if kept is None:
            return parts
        block = matrix.csr_block(parts, len(kept), self.name, rows)
        is_kept = kept[block.indices]
        numbers = np.cumsum(kept) - 1
        counts = np.concatenate((np.zeros(1, np.int64), np.cumsum(is_kept)))
        return (
            block.data[is_kept],
            numbers[block.indices[is_kept]],
            counts[block.indptr],
        )


def open_tenx(
    storage: Storage, node: Node, element: str | None = None
) -> TenxElement | None:
    """Open a 10x Genomics file or group, with barcodes as rows; None for other files.

    Parameters
    ----------
    storage : Storage
        Storage that contains the group.
    node : Node
        The root of the file, or the group of the matrix.
    element : str or None, default=None
        Path of the group, or type of the features to use.

    Raises
    ------
    InputError
        If there are matrices of several genomes, or no features of the requested type.
    """
    if not hasattr(node, "keys"):
        return None
    if element is not None:
        named = storage.member(node, element)
        if named is not None:
            return TenxElement(storage, named, None) if _is_matrix(named) else None
    if _is_matrix(node):
        return TenxElement(storage, node, element)
    groups = {name: group for name, group in storage.members(node) if _is_matrix(group)}
    if GROUP in groups:
        return TenxElement(storage, groups[GROUP], element)
    if len(groups) > 1:
        raise InputError(
            f"{describe(storage, node)} has a matrix of each genome: name one with "
            f"element (--element), of {', '.join(groups)}."
        )
    for group in groups.values():
        return TenxElement(storage, group, element)
    return None


def _is_matrix(node: Node) -> bool:
    """Return whether a node is a group with the arrays of a 10x Genomics matrix."""
    if not hasattr(node, "keys"):
        return False
    members = set(node.keys())
    return members.issuperset(ARRAYS) and bool(members & {"features", "genes"})
