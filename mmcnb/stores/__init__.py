"""Zarr stores of rows and labels with checksums.

`create_dense_store` and `create_csr_store` write rows that the caller passes, and
`convert` writes a store from a file. `verify_store` checks a store against its
checksums, and `describe_store` summarises a store.
"""

from mmcnb.stores._convert import convert
from mmcnb.stores._write import create_csr_store, create_dense_store
from mmcnb.stores.labels import LabelsWriter, open_class_labels, open_index
from mmcnb.stores.report import describe_store, verify_store

__all__ = [
    "LabelsWriter",
    "convert",
    "create_csr_store",
    "create_dense_store",
    "describe_store",
    "open_class_labels",
    "open_index",
    "verify_store",
]
