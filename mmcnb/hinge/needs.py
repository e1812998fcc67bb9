"""Estimate the memory and work of the hinge methods."""

from collections.abc import Iterator
from dataclasses import replace

from mmcnb.engine import plan
from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.features.needs import bytes_of_rows, landmark_needs
from mmcnb.least_squares.search import SearchSettings, search_needs
from mmcnb.samples import GROUP_ROWS
from mmcnb.samples.matrix import FREED_BYTES

# Compiled routines and their compile times in seconds.
MARGIN_ROUTINES = {"most_violated_constraint": 8.0}
ROUND_ROUTINES = {"sample_subproblem_parts": 6.5}
# Up to this number of rows, methods with a compiled loop keep all rows in memory.
HELD_ROWS = 2**14
# Sizes of the larger sample to try if `GROUP_ROWS` rows do not fit the memory limit.
SMALLER_SAMPLES = (2**15, 2**14, 2**13)
# Maximum number of sweeps over all rows if the features are small enough to be cached
# (MANY) and if they are larger (FEW), and the number of sweeps that a plan assumes if
# no larger sample is used (LIKELY). All were chosen by `python -m benchmarks engine`.
MANY_SWEEPS = 300
FEW_SWEEPS = 5
LIKELY_SWEEPS = 20
# Number of cutting planes, each with its hyperplane, that a linear method keeps in
# memory at the same time.
LINEAR_PLANES = 80
SUMMED_PLANES = 40  # number of these planes in the total of one block
MARGIN_LIBRARIES = 40 * 2**20  # bytes of the compiled routines of the hinge loss


def larger_sample(n_samples: int, compiled: bool = False) -> int:
    """Return the size of the larger sample, or 0 if no larger sample is used.

    The larger sample has `GROUP_ROWS` rows if there are more than twice as many rows.
    ``compiled`` says whether the method has a compiled loop for rows in memory. If it
    has, and there are at most `HELD_ROWS` rows, the larger sample contains all rows.

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
    """Return the maximum number of sweeps over all rows in a refinement.

    The maximum depends only on the size of the features, not on the free memory.
    Otherwise, labels would depend on the machine.
    """
    return MANY_SWEEPS if n_samples * feature_bytes <= plan.CACHED_BYTES else FEW_SWEEPS


def on_all_rows(needs: FitNeeds, rows: RowShape, larger_rows: int) -> FitNeeds:
    """Add the refinement on all rows to the needs of a fit on a sample."""
    columns = needs.n_landmarks
    larger = _larger_bytes(rows, columns, larger_rows) if larger_rows else 0.0
    sweeps = most_sweeps(rows.n_samples, columns * 4 or rows.row_bytes)
    likely = FEW_SWEEPS if larger_rows else LIKELY_SWEEPS
    return replace(needs, larger_bytes=larger, sweeps=sweeps, likely_sweeps=likely)


def with_smaller_samples(needs: FitNeeds, rows: RowShape) -> Iterator[FitNeeds]:
    """Yield the needs for each size of the larger sample in `SMALLER_SAMPLES`.

    Nothing is yielded if the fit uses no larger sample, or if there are at most
    ``2 * GROUP_ROWS`` rows.
    """
    if rows.n_samples <= 2 * GROUP_ROWS or not needs.larger_bytes:
        return
    for larger_rows in SMALLER_SAMPLES:
        larger_bytes = _larger_bytes(rows, needs.n_landmarks, larger_rows)
        yield replace(needs, larger_rows=larger_rows, larger_bytes=larger_bytes)


def _larger_bytes(rows: RowShape, n_landmarks: int, larger_rows: int) -> float:
    """Return the memory in bytes to concatenate the blocks of the larger sample."""
    # Each dense block is freed after it is copied. CSR blocks are freed only after all
    # blocks are copied.
    columns = 4.0 * larger_rows * n_landmarks
    return FREED_BYTES + (columns or bytes_of_rows(rows, larger_rows))


def hinge_needs(
    rows: RowShape,
    n_landmarks: int,
    sample_size: int,
    compiled: bool = False,
    stays_sparse: bool = False,
) -> FitNeeds:
    """Estimate the memory and work of a hinge method for two clusters.

    Parameters
    ----------
    rows : RowShape
        Shape and type of the rows.
    n_landmarks : int
        Number of landmarks; 0 for a linear method.
    sample_size, stays_sparse
        As in `landmark_needs`.
    compiled : bool, default=False
        Whether the method has a compiled loop, as in `larger_sample`.

    Returns
    -------
    FitNeeds
        The estimated memory and work of the fit.
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
    """Estimate the needs of a hinge method that separates least-squares clusters."""
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
    """Estimate the time of all starts on a sample on one core, in seconds."""
    # Measured in fits of 1,500 rows with 30 columns and 20,000 rows with 50 columns.
    return 0.35 * rows / 2000 * (1 + n_features / 500) * (n_clusters - 1)
