"""Where rows live: arrays, CSR matrices and Zarr stores, behind one way to read them.

`open_samples` opens any of them, `create_dense_store` and `create_csr_store` write checksummed
stores, and `convert`, `verify_store` and `describe_store` are what the command line shows of it.
"""

from mmcnb.samples._base import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples._convert import convert
from mmcnb.samples._labels import LabelsSink, LabelsWriter, open_class_labels, open_index
from mmcnb.samples._open import open_samples
from mmcnb.samples._report import describe_store, verify_store
from mmcnb.samples._write import create_csr_store, create_dense_store
from mmcnb.samples.atomic import scratch_folder
from mmcnb.samples.matrix import CSRBlock, slice_rows

__all__ = [
    "BLOCK_ROWS",
    "GROUP_ROWS",
    "CSRBlock",
    "LabelsSink",
    "LabelsWriter",
    "Samples",
    "convert",
    "create_csr_store",
    "create_dense_store",
    "describe_store",
    "open_class_labels",
    "open_index",
    "open_samples",
    "scratch_folder",
    "slice_rows",
    "verify_store",
]
