"""The shape of the rows of a fit, and the bytes and work that its method states for its plan."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from mmcnb._config import n_threads
from mmcnb.engine.run import task_rows
from mmcnb.samples import Samples


@dataclass(frozen=True)
class RowShape:
    """The shape of rows that a plan is made for, whether they are there yet or not.

    Parameters
    ----------
    n_samples, n_features : int
        Rows and columns.
    dtype : str, default="float32"
        Type of the numbers in a block.
    row_bytes : float, default=0.0
        Decoded bytes of a row; 0 means dense rows of ``dtype``.
    is_reopenable, is_sparse : bool
        Whether rows come from storage (rows in the caller's memory are not counted), and are in CSR form.
    chunk_bytes, edge_bytes : float, default=0.0
        Decoded bytes of one storage chunk, and of chunks that stay in memory as a task needs parts of them.
    """

    n_samples: int
    n_features: int
    dtype: str = "float32"
    row_bytes: float = 0.0
    is_reopenable: bool = True
    is_sparse: bool = False
    chunk_bytes: float = 0.0
    edge_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not self.row_bytes:
            object.__setattr__(self, "row_bytes", float(self.n_features * self.itemsize))

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return np.dtype(self.dtype).itemsize

    @classmethod
    def of(cls, samples: Samples, n_jobs: int | None = None) -> Self:
        """The shape of samples as the threads of ``n_jobs`` read them."""
        rows = task_rows(samples, n_threads(n_jobs))
        cut = samples.is_sparse or (rows < samples.n_samples and rows % samples.chunk_rows)
        return cls(
            *(samples.n_samples, samples.n_features, samples.dtype.name, samples.row_bytes),
            is_reopenable=samples.is_reopenable,
            is_sparse=samples.is_sparse,
            chunk_bytes=min(samples.chunk_rows, samples.n_samples) * samples.row_bytes,
            edge_bytes=samples.edge_bytes if cut else 0,
        )


@dataclass(frozen=True)
class FitNeeds:
    """Bytes and work of a fit, as its method states them.

    Parameters
    ----------
    n_landmarks : int, default=0
        Columns of the features of a row; 0 for a linear kernel, which sweeps the rows themselves.
    sample_size : int, default=2000
        Rows that the first pass draws.
    sample_bytes : float, default=0.0
        Bytes of the sample and of what is computed from it, which stay until the end of the fit.
    work_bytes : float, default=0.0
        Further bytes that the search on the sample takes and gives back before any sweep over all rows.
    larger_bytes : float, default=0.0
        Bytes of a second, larger sample during these sweeps; 0 for a fit that draws none.
    block_bytes : float, default=0.0
        Bytes of the total of a block of rows, as far as they count while it waits to be added.
    sweeps, likely_sweeps : int, default=1
        Sweeps over the features after the first: at most, and those by which the stores are compared.
    row_seconds : float, default=0.0
        Seconds of one core for the features of a row.
    search_seconds : float, default=0.0
        Seconds of one core for all work on the sample.
    routines : dict of str to float, default={}
        Compiled routines that the fit calls, by their names in `mmcnb.kernels`, with the seconds of CPU to
        compile each and those that are used with it.
    """

    n_landmarks: int = 0
    sample_size: int = 2000
    sample_bytes: float = 0.0
    work_bytes: float = 0.0
    larger_bytes: float = 0.0
    block_bytes: float = 0.0
    sweeps: int = 1
    likely_sweeps: int = 1
    row_seconds: float = 0.0
    search_seconds: float = 0.0
    routines: dict[str, float] = field(default_factory=dict)
