"""What a user knows of some rows, checked: their labels, and pairs that belong together or apart."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from mmcnb.choice.known import KnownRows
from mmcnb.errors import InputError
from mmcnb.samples._arrays import plain_values

MOST_ROWS = 2000  # that are used; more do not change which partition is picked


def read_known_rows(
    partial_labels: Any, must_link: Any, cannot_link: Any, n_samples: int, n_clusters: int
) -> KnownRows | None:
    """What is known of the rows; None where nothing is given.

    Parameters
    ----------
    partial_labels : array-like of shape (n_samples,), mapping or None
        Labels from 0, and -1 where a row has none; or the labels of some rows by their numbers.
    must_link, cannot_link : array-like of shape (q, 2) or None
        Pairs of row numbers.
    n_samples, n_clusters : int
        Rows, and the most clusters there may be.

    Returns
    -------
    KnownRows or None
        Of at most 2,000 rows, evenly among those that are given.

    Raises
    ------
    InputError
        If a row or a label is out of range, or two of them contradict each other.

    Examples
    --------
    >>> from mmcnb.choice.read_known import read_known_rows
    >>> known = read_known_rows({7: 1, 3: 0}, [(3, 5)], None, 10, 2)
    >>> known.rows.tolist(), known.labels.tolist(), known.pairs.tolist()
    ([3, 5, 7], [0, -1, 1], [[0, 1]])
    """
    named, labels = _labels({} if partial_labels is None else partial_labels, n_samples, n_clusters)
    linked = _pairs("must_link", () if must_link is None else must_link, n_samples)
    parted = _pairs("cannot_link", () if cannot_link is None else cannot_link, n_samples)
    if not named.size + linked.size + parted.size:
        return None
    joined = np.concatenate([linked, parted])
    together = np.arange(len(joined)) < len(linked)
    rows = np.union1d(named, joined)
    of_rows = np.full(rows.size, -1, np.int64)
    of_rows[np.searchsorted(rows, named)] = labels
    known = KnownRows(rows, of_rows, np.searchsorted(rows, joined).reshape(-1, 2), together)
    _check_consistent(known)
    return _fewer(known)


def _labels(given: Any, n_samples: int, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows that have a label, and these."""
    if isinstance(given, Mapping):
        rows, labels = _whole("partial_labels", list(given)), _whole("partial_labels", list(given.values()))
        _check_rows("partial_labels", rows, n_samples)
        order = np.argsort(rows, kind="stable")
        rows, labels = rows[order], labels[order]
    else:
        labels = _whole("partial_labels", given)
        if labels.shape != (n_samples,):
            raise InputError(
                f"partial_labels has the shape {labels.shape} for {n_samples} rows; give one label a row, "
                "-1 where there is none, or a dict of row numbers and labels."
            )
        rows = np.arange(n_samples)
    bad = (labels < -1) | (labels >= n_clusters)
    if bad.any():
        raise InputError(
            f"partial_labels of row {rows[bad][0]} is {labels[bad][0]}; give labels from 0 to "
            f"{n_clusters - 1}, and -1 where there is none."
        )
    return rows[labels >= 0], labels[labels >= 0]


def _pairs(name: str, given: Any, n_samples: int) -> np.ndarray:
    pairs = _whole(name, given)
    if pairs.size == 0:
        return np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"{name} has the shape {pairs.shape}; give pairs of row numbers, of shape (q, 2).")
    _check_rows(name, pairs.ravel(), n_samples)
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise InputError(f"{name} pairs row {pairs[same][0, 0]} with itself; leave this pair out.")
    return pairs


def _whole(name: str, given: Any) -> np.ndarray:
    """Whole numbers, of any numeric type."""
    values = plain_values(given, name)
    if not values.size:
        return values.astype(np.int64)
    numeric = values.dtype.kind in "iuf" and bool((np.abs(values.astype(np.float64)) < 2**63).all())
    whole = values.astype(np.int64) if numeric else np.zeros(values.shape, np.int64)
    if not numeric or not (whole == values).all():
        raise InputError(f"{name} holds what is no whole number; give row numbers and labels as integers.")
    return whole


def _check_rows(name: str, rows: np.ndarray, n_samples: int) -> None:
    bad = (rows < 0) | (rows >= n_samples)
    if bad.any():
        raise InputError(f"{name} names row {rows[bad][0]}; give row numbers from 0 to {n_samples - 1}.")


def _check_consistent(known: KnownRows) -> None:
    """Refuse pairs and labels that contradict each other, also by way of others."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    r, named = known.rows.size, np.flatnonzero(known.labels >= 0)
    size = r + int(known.labels.max(initial=-1)) + 1  # after the rows, a point for each label
    edges = [known.pairs[known.together], np.c_[named, r + known.labels[named]]]
    ends = np.concatenate(edges)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    _, group = connected_components(graph, directed=False)
    for a, b in known.pairs[~known.together]:
        if group[a] == group[b]:
            raise InputError(
                f"rows {known.rows[a]} and {known.rows[b]} stand in cannot_link, but must_link or "
                "partial_labels put them together; drop one of the two."
            )
    labels = np.unique(known.labels[named])
    for one, other in combinations(labels.tolist(), 2):
        if group[r + one] == group[r + other]:
            raise InputError(
                f"must_link joins rows with the partial_labels {one} and {other}; drop one of the two."
            )


def _fewer(known: KnownRows) -> KnownRows:
    """At most so many rows: labelled ones evenly spaced, and as many pairs."""
    if known.rows.size <= MOST_ROWS:
        return known
    named = np.flatnonzero(known.labels >= 0)
    most_pairs = MOST_ROWS // 4 if named.size else MOST_ROWS // 2
    pairs = np.arange(known.together.size)[:: max(1, -(-known.together.size // most_pairs))]
    left = MOST_ROWS - 2 * pairs.size
    named = named[:: max(1, -(-named.size // max(1, left)))]
    kept = np.union1d(named, known.pairs[pairs].ravel())
    return KnownRows(
        known.rows[kept], known.labels[kept], np.searchsorted(kept, known.pairs[pairs]), known.together[pairs]
    )
