"""Rows that are not there yet, to plan for."""

from typing import NoReturn

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples import Samples


class UnwrittenSamples(Samples):
    """Dense float32 rows of a store that nobody has written."""

    stored_dtype = np.dtype(np.float32)
    is_sparse = False
    name = "rows to plan for"
    chunk_rows = 1
    checksummed = True
    is_reopenable = True

    def __init__(self, n_samples: int, n_features: int) -> None:
        self.n_samples, self.n_features = n_samples, n_features
        self.row_bytes = float(n_features * self.dtype.itemsize)

    def block(self, start: int, stop: int) -> NoReturn:
        """There is nothing to read."""
        raise InputError("these rows are only planned for; write them to a store first.")

    def gather(self, rows: np.ndarray) -> NoReturn:
        """There is nothing to read."""
        self.block(0, 0)
