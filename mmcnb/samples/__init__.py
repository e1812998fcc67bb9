"""Read rows of arrays, sparse matrices, data frames and files block by block.

`open_samples` opens any of these sources.
"""

from mmcnb.samples.base import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples.matrix import CSRBlock, slice_rows
from mmcnb.samples.open import open_samples

__all__ = [
    "BLOCK_ROWS",
    "GROUP_ROWS",
    "CSRBlock",
    "Samples",
    "open_samples",
    "slice_rows",
]
