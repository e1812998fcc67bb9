"""Whether the density falls on the way from a small group of rows to larger clusters.

The tail of a cluster is no cluster: from any group of its rows inwards, the density
only rises. From a cluster of its own it falls first. Rows are counted in slabs of a
tube as wide as the group (`mmcnb.graph.tubes`), and the evidence for a valley is a test
of two rates: the rows in a few slabs around the middle of the group, and those in any
slabs between these and the densest place on the way.

In simulations (Student tails of 3 to 5 degrees and log-normal tails, in latent
directions or in all columns, 5 to 300 columns), 1 group of tails in 150 has an evidence
above 3. Clusters of 12 to 40 rows, 6 to 8 deviations from a cluster of 10,000 rows,
have 3.7 to 10.
"""

import numpy as np

from mmcnb.graph.tubes import MOST_SLABS, SLABS_BEHIND

CLEAR_VALLEY = 3.5
# A valley has at most this share of the density of the group.
DEPTH = 0.5
PEAK_SLABS = (2, 4, 6)  # one, two and three deviations of the group


def valley_evidence(profile: np.ndarray) -> float:
    """Return how clearly the density falls along a tube, from its start on.

    It is the root of the likelihood ratio statistic of two Poisson rates against one.

    Parameters
    ----------
    profile : ndarray of shape (n_slabs,)
        Rows in each slab. The first three slabs lie behind the start, and the last one
        is in the larger cluster.

    Returns
    -------
    float
        0 if the density does not fall to one half before it rises.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.valleys import valley_evidence
    >>> valley_evidence(np.array([1, 2, 4, 7, 15, 40, 100, 300]))
    0.0
    >>> valley_evidence(np.array([2, 9, 9, 3, 0, 0, 0, 1, 100, 300])) > 5
    True
    """
    n_slabs = profile.size
    sums = np.append(0.0, np.cumsum(profile))
    begins, ends = np.triu_indices(n_slabs + 1, 1)
    rows = sums[ends] - sums[begins]
    lengths = ends - begins
    largest = 0.0
    for width in PEAK_SLABS:
        in_window = sums[width:] - sums[:-width]
        middle = SLABS_BEHIND - width // 2
        for first in range(max(middle - 1, 0), min(middle + 2, in_window.size - 1)):
            # Beyond the densest place, a fall is the far side of the larger cluster.
            densest = first + int(in_window[first:].argmax())
            last = densest + width if densest > first else n_slabs
            is_between = (begins >= first + width) & (ends <= last)
            density = in_window[first] / width
            is_valley = is_between & (rows <= DEPTH * density * lengths)
            if density > 0 and is_valley.any():
                evidence = _likelihood_ratio(
                    in_window[first], width, rows[is_valley], lengths[is_valley]
                )
                largest = max(largest, float(np.sqrt(evidence.max())))
    return largest


def _likelihood_ratio(
    peak: float, width: int, rows: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return twice the logarithm of the likelihood ratio of two rates against one.

    Rows are counted in slabs: a peak in ``width`` slabs, and others in ``lengths``.
    """
    common_rate = (peak + rows) / (width + lengths)
    of_peak = peak * np.log(peak / (common_rate * width))
    # x log x is 0 at 0.
    shares = np.maximum(rows, np.finfo(float).tiny) / (common_rate * lengths)
    return np.asarray(2 * (of_peak + rows * np.log(shares)))


def groups_with_valleys(
    groups: np.ndarray, profiles: np.ndarray, n_slabs: np.ndarray
) -> np.ndarray:
    """Return the groups for which the density falls in all of their tubes.

    Parameters
    ----------
    groups : ndarray of shape (t,), int64
        Group from which each tube leads.
    profiles : ndarray of shape (t, 64)
        Rows in the slabs of each tube.
    n_slabs : ndarray of shape (t,), int64
        Number of slabs of each tube.

    Returns
    -------
    ndarray of int64
        Their numbers, rising.
    """
    assert profiles.shape[1] == MOST_SLABS
    evidence = [
        valley_evidence(profile[:count])
        for profile, count in zip(profiles, n_slabs, strict=True)
    ]
    without = groups[np.array(evidence) < CLEAR_VALLEY]
    return np.setdiff1d(groups, without)
