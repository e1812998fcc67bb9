"""Test whether the density falls between a small group of rows and larger clusters.

The tail of a cluster is not a cluster of its own: on the way from a group of rows in
the tail to the cluster, the density only rises. On the way from a separate cluster, the
density falls before it rises. Rows are counted in the slabs of a tube that is as wide
as the group (`mmcnb.graph.tubes`). A valley is found by a test of two rates: rows per
slab around the middle of the group, and rows per slab in a range between the group and
the densest place along the tube. The range with the largest evidence is used.

In simulations, 1 of 150 groups of rows in tails has evidence above 3. The tails are
Student tails with 3 to 5 degrees of freedom or log-normal tails, in latent directions
or in all of 5 to 300 columns. Clusters of 12 to 40 rows that are 6 to 8 standard
deviations away from a cluster of 10,000 rows have evidence of 3.7 to 10.
"""

import numpy as np

from mmcnb.graph.tubes import MOST_SLABS, SLABS_BEHIND

CLEAR_VALLEY = 3.5  # least evidence for a valley
# The density in a valley is at most this fraction of the density of the group.
DEPTH = 0.5
PEAK_SLABS = (2, 4, 6)  # widths of windows: one, two and three deviations of the group


def valley_evidence(profile: np.ndarray) -> float:
    """Return the evidence that the density falls along a tube before it rises.

    This is the square root of the likelihood ratio statistic that compares two Poisson
    rates with a common rate. The maximum over all ranges of slabs is returned.

    Parameters
    ----------
    profile : ndarray of shape (n_slabs,)
        Number of rows in each slab. The first three slabs are behind the start, and the
        last slab is in the larger cluster.

    Returns
    -------
    float
        The evidence; 0 if the density does not fall to one half before it rises.

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
            # Beyond the densest place, the density falls on the far side of the larger
            # cluster, which is not a valley.
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
    """Return the likelihood ratio statistic of two rates against a common rate.

    The rates are rows per slab: ``peak`` rows in ``width`` slabs at the peak, and, for
    each range, ``rows`` rows in ``lengths`` slabs.
    """
    common_rate = (peak + rows) / (width + lengths)
    of_peak = peak * np.log(peak / (common_rate * width))
    # The tiny number avoids log(0), because x log x tends to 0 for x → 0.
    shares = np.maximum(rows, np.finfo(float).tiny) / (common_rate * lengths)
    return np.asarray(2 * (of_peak + rows * np.log(shares)))


def groups_with_valleys(
    groups: np.ndarray, profiles: np.ndarray, n_slabs: np.ndarray
) -> np.ndarray:
    """Return the groups for which the density falls along all of their tubes.

    Parameters
    ----------
    groups : ndarray of shape (t,), int64
        Number of the group at the start of each tube.
    profiles : ndarray of shape (t, 64)
        Number of rows in each slab of each tube.
    n_slabs : ndarray of shape (t,), int64
        Number of slabs of each tube.

    Returns
    -------
    ndarray of int64
        Numbers of the groups with valleys, in ascending order.
    """
    assert profiles.shape[1] == MOST_SLABS
    evidence = [
        valley_evidence(profile[:count])
        for profile, count in zip(profiles, n_slabs, strict=True)
    ]
    without = groups[np.array(evidence) < CLEAR_VALLEY]
    return np.setdiff1d(groups, without)
