"""Bytes and seconds of kernel columns on landmarks of a sample."""

from typing import Any

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.graph.axes import LEADING_AXES
from mmcnb.graph.inverted_file import SEARCHED_NODES
from mmcnb.samples.matrix import WIDE_COLUMNS

ROUTINES = {"rbf_kernel_block_into": 3.5}
# of one core: blocks of 4,096 rows reach 56 to 86 GFLOP a second
PRODUCT_RATE = 40e9
EXP_SECONDS = 0.8e-9
LIKELY_PROBES = 16  # cells of nodes in which a row looks
COMPARISON_FLOPS = (
    1.5  # a product with a node, and its place among the candidates, in products
)
SPARSE_WORK = (
    2**26
)  # bytes of copies of CSR rows, measured on 2,000 rows of 1,000 to 300,000 columns


def landmark_needs(
    rows: RowShape,
    n_landmarks: int,
    sample_size: int,
    candidates: int = 7,
    stays_sparse: bool = False,
) -> FitNeeds:
    """The needs of a fit on landmarks of a sample, without those of the search for clusters.

    Parameters
    ----------
    rows : RowShape
        The rows.
    n_landmarks, sample_size : int
        Landmarks, and rows of the sample.
    candidates : int, default=7
        Kernel functions that are tried on the sample, each with kernel columns of its
        own.
    stays_sparse : bool, default=False
        Whether a sample of sparse rows, and sparse landmarks of very many columns, are
        not made dense.

    Returns
    -------
    FitNeeds
        The needs.
    """
    size = min(sample_size, rows.n_samples)
    columns = (
        12.0 * size * n_landmarks
    )  # float32 values, and as many float64 coordinates
    if rows.is_sparse and stays_sparse:
        # As read, put together, in float64, and copied.
        sample = (
            min(SPARSE_WORK, 32 * size * rows.n_features) + 4 * size * rows.row_bytes
        )
    else:
        sample = size * rows.n_features * (rows.itemsize + 8.0)
    basis = _basis_bytes(rows, n_landmarks, candidates if stays_sparse else 0)
    held = sample + columns + 16.0 * n_landmarks**2 + basis
    work = (candidates - 1) * columns
    seconds = n_landmarks * (
        2.0 * rows.row_bytes / rows.itemsize / PRODUCT_RATE + EXP_SECONDS
    )
    sizes: Any = {"sample_bytes": held, "work_bytes": work, "row_seconds": seconds}
    return FitNeeds(n_landmarks, sample_size, routines=ROUTINES, **sizes)


def bytes_of_rows(rows: RowShape, n_rows: int) -> float:
    """Bytes of some rows as they are; CSR rows take twice as many while they are put together."""
    return min(n_rows, rows.n_samples) * rows.row_bytes * (1 + rows.is_sparse)


def node_row_seconds(rows: RowShape, n_nodes: int) -> float:
    """Seconds of one core for the nearest nodes of a row, at most."""
    nodes = (
        n_nodes
        if n_nodes <= SEARCHED_NODES
        else min(n_nodes, LIKELY_PROBES * n_nodes**0.5)
    )
    return (
        2.0 * LEADING_AXES * (rows.n_features + COMPARISON_FLOPS * nodes) / PRODUCT_RATE
    )


def _basis_bytes(rows: RowShape, n_landmarks: int, sparse_candidates: int) -> float:
    """Bytes of landmarks: dense, or as they are and transposed in float64 for each candidate."""
    d = rows.n_features
    if not (n_landmarks and rows.is_sparse and sparse_candidates):
        return 24.0 * n_landmarks * d
    values = max(rows.row_bytes - 8, 0) / (rows.itemsize + 4) * n_landmarks
    columns, wide = (min(d, values), 1) if d > WIDE_COLUMNS else (d, 0)
    axes = 8 * 60 * d * wide  # principal axes of the sample, while they are computed
    return (
        axes
        + 24 * n_landmarks * columns
        + sparse_candidates * (16 * n_landmarks * columns + 4 * d * wide)
    )
