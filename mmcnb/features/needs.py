"""Estimate the memory and time of a fit that uses landmarks of a sample."""

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.graph.axes import LEADING_AXES
from mmcnb.graph.inverted_file import SEARCHED_NODES
from mmcnb.samples.matrix import WIDE_COLUMNS

# Compiled routines and their compile times in seconds.
ROUTINES = {"rbf_kernel_block_into": 3.5}
# Floating-point operations per second that the plan assumes for one core. Blocks of
# 4,096 rows reach 56 to 86 GFLOP/s.
PRODUCT_RATE = 40e9
EXP_SECONDS = 0.8e-9  # time to compute one exponential
LIKELY_PROBES = 16  # cells of the inverted-file index that a query scans
# Cost of comparing a row with a node and updating the list of nearest nodes, relative
# to the cost of the inner product alone.
COMPARISON_FLOPS = 1.5
# Upper bound on the size of copies of CSR rows in bytes, measured on 2,000 rows with
# 1,000 to 300,000 columns.
SPARSE_WORK = 2**26


def landmark_needs(
    rows: RowShape,
    n_landmarks: int,
    sample_size: int,
    candidates: int = 7,
    stays_sparse: bool = False,
) -> FitNeeds:
    """Return the memory and work of a fit on landmarks, excluding the cluster search.

    Parameters
    ----------
    rows : RowShape
        Number and shape of the rows.
    n_landmarks, sample_size : int
        Number of landmarks, and maximum number of rows in the sample.
    candidates : int, default=7
        Number of kernel functions to compare on the sample. Their kernel values are in
        memory at the same time.
    stays_sparse : bool, default=False
        Whether a sample of sparse rows stays sparse. Its landmarks then also stay
        sparse if they have more than `WIDE_COLUMNS` columns.

    Returns
    -------
    FitNeeds
        The estimated memory and work.
    """
    size = min(sample_size, rows.n_samples)
    # The kernel values are float32, and the same number of coordinates are float64.
    columns = 12.0 * size * n_landmarks
    if rows.is_sparse and stays_sparse:
        # Four versions of the rows: as read, concatenated, in float64, and a copy.
        copies = min(SPARSE_WORK, 32 * size * rows.n_features)
        sample = copies + 4 * size * rows.row_bytes
    else:
        sample = size * rows.n_features * (rows.itemsize + 8.0)
    basis = _basis_bytes(rows, n_landmarks, candidates if stays_sparse else 0)
    product = 2.0 * rows.row_bytes / rows.itemsize / PRODUCT_RATE
    return FitNeeds(
        n_landmarks,
        sample_size,
        sample_bytes=sample + columns + 16.0 * n_landmarks**2 + basis,
        work_bytes=(candidates - 1) * columns,
        row_seconds=n_landmarks * (product + EXP_SECONDS),
        routines=ROUTINES,
    )


def bytes_of_rows(rows: RowShape, n_rows: int) -> float:
    """Return the memory that ``n_rows`` rows need, in bytes.

    Sparse rows are counted twice. The result is limited to the memory of all rows.
    """
    return min(n_rows, rows.n_samples) * rows.row_bytes * (1 + rows.is_sparse)


def node_row_seconds(rows: RowShape, n_nodes: int) -> float:
    """Return the estimated time to find the nearest nodes of a row, in seconds."""
    nodes: float = n_nodes
    if n_nodes > SEARCHED_NODES:
        nodes = min(n_nodes, LIKELY_PROBES * n_nodes**0.5)
    products = LEADING_AXES * (rows.n_features + COMPARISON_FLOPS * nodes)
    return 2.0 * products / PRODUCT_RATE


def _basis_bytes(rows: RowShape, n_landmarks: int, sparse_candidates: int) -> float:
    """Return the memory that the landmarks need, in bytes.

    Landmarks need three float64 copies. If the rows are sparse, each candidate kernel
    also needs the landmarks and their transpose as dense arrays.
    """
    d = rows.n_features
    if not (n_landmarks and rows.is_sparse and sparse_candidates):
        return 24.0 * n_landmarks * d
    columns: float = d
    wide = 0
    if d > WIDE_COLUMNS:
        values = max(rows.row_bytes - 8, 0) / (rows.itemsize + 4) * n_landmarks
        columns = min(d, values)
        wide = d
    axes = 8 * 60 * wide  # principal axes of the sample, while they are computed
    candidate = 16 * n_landmarks * columns + 4 * wide
    return axes + 24 * n_landmarks * columns + sparse_candidates * candidate
