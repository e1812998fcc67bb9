"""Numeric rows in a scratch file, which disappears when the process ends."""

import errno
import os
import tempfile
import weakref

import numpy as np

from mmcnb.errors import InputError, worded
from mmcnb.samples.paths import PathLike


class ScratchRows:
    """Dense rows in an anonymous file, which disappears even if the process is killed.

    Rows are read instead of memory-mapped, because mapped pages count as resident
    memory.

    Parameters
    ----------
    what : str
        Name used for the rows in messages.
    folder : path
        Folder in which the file is created.
    n_columns : int
        Number of columns.
    dtype : dtype
        Data type of the numbers.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mmcnb.samples.scratch import ScratchRows
    >>> rows = ScratchRows("squares", tempfile.gettempdir(), 2, np.dtype("float32"))
    >>> rows.write(0, np.array([[1, 4], [9, 16]], np.float32))
    >>> rows.shape, rows.read(1, 2).tolist()
    ((2, 2), [[9.0, 16.0]])
    """

    def __init__(
        self, what: str, folder: PathLike, n_columns: int, dtype: np.dtype
    ) -> None:
        self._what = what
        self._folder = folder
        self._n_columns = n_columns
        self.dtype = dtype
        self.n_rows = 0
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows up to the last row written, and number of columns."""
        return self.n_rows, self._n_columns

    def write(self, start: int, rows: np.ndarray) -> None:
        """Write C-ordered rows to the file, beginning at row ``start``."""
        fault = f"the scratch file of {self._what} in {self._folder} cannot be written"
        remedy = "free disk space, set TMPDIR to a larger disk, or raise memory_limit"
        with worded(fault, remedy, OSError):
            view = rows.reshape(-1).data.cast("B")
            position = self._position(start)
            while len(view):  # the system writes at most 2 GiB at a time
                n_written = os.pwrite(self._file.fileno(), view, position)
                if n_written == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                view = view[n_written:]
                position += n_written
        self.n_rows = max(self.n_rows, start + len(rows))

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start <= row < stop``."""
        rows = np.empty((stop - start, self._n_columns), self.dtype)
        view = rows.reshape(-1).data.cast("B")
        position = self._position(start)
        while n_read := os.preadv(self._file.fileno(), [view], position):
            view = view[n_read:]
            position += n_read
        if len(view):
            raise InputError(
                "the scratch file ended early; free disk space and run again."
            )
        return rows

    def _position(self, row: int) -> int:
        return row * self._n_columns * self.dtype.itemsize
