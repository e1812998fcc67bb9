"""Write the stores that each release leaves for later ones: ``python tests/data/stores/write.py``.

They go to a folder named after the version: dense rows, dense bytes, sparse rows and
labels, each of several chunks. `contents` makes the same numbers on any machine and
with any version of NumPy.
"""

from pathlib import Path

import numpy as np
import scipy.sparse

import mmcnb

# Internal: chunks of few values keep the stores in the repository small.
from mmcnb.stores import LabelsWriter, _write, create_csr_store, create_dense_store

ROWS = 90
NAMES = [f"rów {row}" for row in range(ROWS)]
CLASSES = (np.arange(ROWS) * 7) % 3
COLUMNS = ["width", "height", "größe"]
LABELS = (np.arange(70_000) // 1000) % 5


def contents(columns: int, step: int) -> np.ndarray:
    """Whole numbers from 0 to 250 that differ from row to row."""
    return (np.arange(ROWS)[:, None] * step + np.arange(columns) * 31) % 251


def sparse() -> scipy.sparse.csr_array:
    """Rows most of whose values are 0."""
    values = contents(8, 17)
    return scipy.sparse.csr_array(
        np.where(values % 3 == 0, values, 0).astype(np.float32)
    )


def main() -> None:
    """Write all stores."""
    folder = Path(__file__).parent / mmcnb.__version__
    folder.mkdir()
    for name, dtype in (("dense", "f4"), ("bytes", "u1")):
        with create_dense_store(
            folder / f"{name}.zarr", 3, dtype=dtype, chunk_rows=40
        ) as writer:
            writer.feature_names = COLUMNS
            writer.class_names = ["a", "b", "c"]
            writer.append(contents(3, 11), CLASSES)
            writer.append_index(np.array(NAMES))
    _write.CSR_CHUNK_VALUES = 100
    with create_csr_store(folder / "csr.zarr", 8) as writer:
        writer.append(sparse(), y=CLASSES)
    with LabelsWriter(folder / "labels.zarr", len(LABELS)) as writer:
        sink = writer.sink()
        rows = writer.chunk_rows
        writer.finish_chunks(
            [sink.write(i, LABELS[i : i + rows]) for i in range(0, len(LABELS), rows)]
        )


if __name__ == "__main__":
    main()
