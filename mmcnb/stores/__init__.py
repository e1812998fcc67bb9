"""Stores of rows and labels in our own format.

`create_dense_store` and `create_csr_store` write checksummed stores, `convert` makes
one of any file, and `verify_store` and `describe_store` report on one.
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
