"""Stores of rows and labels in our own format: written, converted, verified and described.

`create_dense_store` and `create_csr_store` write checksummed stores, `convert` makes one of any file, and
`verify_store` and `describe_store` tell what is in one.
"""

from mmcnb.stores._convert import convert
from mmcnb.stores._labels import LabelsSink, LabelsWriter, open_class_labels, open_index
from mmcnb.stores._report import describe_store, verify_store
from mmcnb.stores._write import create_csr_store, create_dense_store
from mmcnb.stores.atomic import scratch_folder

__all__ = [
    "LabelsSink",
    "LabelsWriter",
    "convert",
    "create_csr_store",
    "create_dense_store",
    "describe_store",
    "open_class_labels",
    "open_index",
    "scratch_folder",
    "verify_store",
]
