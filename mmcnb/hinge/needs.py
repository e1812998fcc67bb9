"""Bytes and work of the hinge methods: on a sample, on a larger one and on all rows."""

from collections.abc import Iterator
from dataclasses import replace

from mmcnb.engine import plan
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.features.needs import bytes_of_rows, landmark_needs
from mmcnb.least_squares.search import SearchSettings, search_needs
from mmcnb.samples import GROUP_ROWS
from mmcnb.samples.matrix import FREED_BYTES

MARGIN_ROUTINES = {"most_violated_constraint": 8.0}
ROUND_ROUTINES = {"sample_subproblem_parts": 6.5}
# Up to so many rows the rounds of compiled methods run on all rows in memory.
HELD_ROWS = 2**14
# Rows of the second sample where a memory limit is too small for `GROUP_ROWS`.
SMALLER_SAMPLES = (2**15, 2**14, 2**13)
# `python -m benchmarks engine`
MANY_SWEEPS = 300
FEW_SWEEPS = 5
LIKELY_SWEEPS = 20
# cutting planes of a linear method that are in memory at once, each with its hyperplane
LINEAR_PLANES = 80
SUMMED_PLANES = 40  # of them, for whose sums a block of rows waits
MARGIN_LIBRARIES = 40 * 2**20  # compiled routines of the hinge loss, beside others


def larger_sample(n_samples: int, compiled: bool = False) -> int:
    """Return the rows of the second sample; 0 if all rows are hardly more.

    ``compiled`` says that rounds over labels are compiled on rows in memory: then it is
    all of a few rows.

    Examples
    --------
    >>> from mmcnb.hinge.needs import larger_sample
    >>> larger_sample(10_000), larger_sample(10_000, compiled=True)
    (0, 10000)
    >>> larger_sample(1_000_000)
    65536
    """
    if compiled and n_samples <= HELD_ROWS:
        return n_samples
    return GROUP_ROWS if n_samples > 2 * GROUP_ROWS else 0


def most_sweeps(n_samples: int, feature_bytes: float) -> int:
    """Return how many sweeps over all rows a fit may make.

    The size of the work alone decides, or the answer would depend on the machine.
    """
    return MANY_SWEEPS if n_samples * feature_bytes <= plan.CACHED_BYTES else FEW_SWEEPS


def on_all_rows(needs: FitNeeds, rows: RowShape, larger_rows: int) -> FitNeeds:
    """Add the needs of the refinement on more rows to those of a fit on a sample."""
    columns = needs.n_landmarks
    larger = _larger_bytes(rows, columns, larger_rows) if larger_rows else 0.0
    sweeps = most_sweeps(rows.n_samples, columns * 4 or rows.row_bytes)
    likely = FEW_SWEEPS if larger_rows else LIKELY_SWEEPS
    return replace(needs, larger_bytes=larger, sweeps=sweeps, likely_sweeps=likely)


def with_smaller_samples(needs: FitNeeds, rows: RowShape) -> Iterator[FitNeeds]:
    """Yield the needs of fits whose larger sample has fewer rows, for small limits."""
    if rows.n_samples <= 2 * GROUP_ROWS or not needs.larger_bytes:
        return
    for larger_rows in SMALLER_SAMPLES:
        larger_bytes = _larger_bytes(rows, needs.n_landmarks, larger_rows)
        yield replace(needs, larger_rows=larger_rows, larger_bytes=larger_bytes)


def _larger_bytes(rows: RowShape, n_landmarks: int, larger_rows: int) -> float:
    """Return the bytes of the second sample while it is put together."""
    # Dense parts go as they are copied; CSR ones stay until all are.
    columns = 4.0 * larger_rows * n_landmarks
    return FREED_BYTES + (columns or bytes_of_rows(rows, larger_rows))


def hinge_needs(
    rows: RowShape,
    n_landmarks: int,
    sample_size: int,
    compiled: bool = False,
    stays_sparse: bool = False,
) -> FitNeeds:
    """Return the needs of a hinge method for two clusters; linear without landmarks.

    Parameters
    ----------
    rows : RowShape
        The rows.
    n_landmarks, sample_size, stays_sparse
        As of `landmark_needs`.
    compiled : bool, default=False
        Whether rounds over labels are compiled, as for `larger_sample`.

    Returns
    -------
    FitNeeds
        The needs.
    """
    needs = landmark_needs(rows, n_landmarks, sample_size, stays_sparse=stays_sparse)
    d = rows.n_features
    if not n_landmarks:
        needs = replace(
            needs,
            sample_bytes=needs.sample_bytes + 24 * LINEAR_PLANES * d,
            block_bytes=8.0 * SUMMED_PLANES * d,
        )
    seconds = margin_seconds(min(sample_size, rows.n_samples), d)
    needs = replace(needs, search_seconds=seconds, routines=MARGIN_ROUTINES)
    larger = 0
    if rows.n_samples > sample_size:
        larger = larger_sample(rows.n_samples, compiled)
    return on_all_rows(needs, rows, larger)


def needs_of_search(rows: RowShape, settings: SearchSettings) -> FitNeeds:
    """Return the needs of the hinge loss on clusters that least squares finds."""
    needs = on_all_rows(
        search_needs(rows, settings), rows, larger_sample(rows.n_samples)
    )
    searched = settings.searched_rows(rows.n_samples)
    k = settings.partition.n_clusters
    return replace(
        needs,
        sample_bytes=needs.sample_bytes + MARGIN_LIBRARIES,
        search_seconds=needs.search_seconds + margin_seconds(searched, n_clusters=k),
        routines=needs.routines | MARGIN_ROUTINES,
    )


def margin_seconds(rows: int, n_features: int = 0, n_clusters: int = 2) -> float:
    """Estimate the seconds of one core for the starts on a sample."""
    # From fits to 1,500 x 30 and 20,000 x 50 rows.
    return 0.35 * rows / 2000 * (1 + n_features / 500) * (n_clusters - 1)
