"""Straight tubes between groups of points, and the weight of the points along them.

All points in a slab of a tube are counted, so the profile along a tube does not depend
on the dimension of the points. In contrast, distances concentrate in high dimensions,
so the distance to the tenth neighbour is a poor measure of the density.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SLABS_BEHIND = 3  # slabs behind the start of a tube
MOST_SLABS = 64
SLABS_IN_DEVIATION = 2  # slabs per standard deviation of the group along the tube
WITHIN = 0.9  # fraction of the points of a group inside its tube
# Smallest radius of a tube as a fraction of its length, for groups of points that are
# all on the axis.
LEAST_WIDTH = 1e-3


class Tube(NamedTuple):
    """A straight tube, cut into slabs.

    Attributes
    ----------
    group : int
        Index of the group at which the tube starts.
    start, direction : ndarray of shape (c,)
        Mean of the group, and unit vector along the tube.
    radius, step : float
        Radius of the tube, and thickness of a slab.
    n_slabs : int
        Number of slabs. The first three slabs are behind the start, and the last slab
        contains the end.
    """

    group: int
    start: np.ndarray
    direction: np.ndarray
    radius: float
    step: float
    n_slabs: int


def tube_between(group: int, points: np.ndarray, target: np.ndarray) -> Tube | None:
    """Return the tube from a group of points to a target.

    The radius is the 0.9 quantile of the distances of the points from the axis. Because
    the axis starts at the mean of these n points, the distances are too small by a
    factor of sqrt((n - 1) / (n + 1)). The radius is divided by this factor. Without the
    correction, a tube computed from few points in many columns would miss other points
    along the axis.

    Parameters
    ----------
    group : int
        Index of the group.
    points : ndarray of shape (n, c), float64
        Points of the group, at least two.
    target : ndarray of shape (c,)
        End of the tube.

    Returns
    -------
    Tube or None
        The tube, or None if the target is the mean of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.tubes import tube_between
    >>> tube = tube_between(1, np.array([[-1.0, 0], [1, 0]]), np.array([9.0, 0]))
    >>> tube.step, tube.n_slabs
    (0.5, 22)
    """
    n = points.shape[0]
    start = points.mean(axis=0)
    length = float(np.linalg.norm(target - start))
    if length == 0:
        return None
    direction = (target - start) / length
    centred = points - start
    along = centred @ direction
    across = np.sqrt(np.maximum((centred**2).sum(axis=1) - along**2, 0.0))
    radius = float(np.quantile(across, WITHIN) * np.sqrt((n + 1) / (n - 1)))
    most = MOST_SLABS - SLABS_BEHIND - 1
    step = max(float(along.std()) / SLABS_IN_DEVIATION, length / most)
    return Tube(
        group=group,
        start=start,
        direction=direction,
        radius=max(radius, LEAST_WIDTH * length),
        step=step,
        n_slabs=SLABS_BEHIND + 1 + int(length / step),
    )


def weights_in_slabs(
    points: np.ndarray, weights: np.ndarray, tubes: Sequence[Tube]
) -> np.ndarray:
    """Sum the weights of the points in each slab of each tube.

    Parameters
    ----------
    points : ndarray of shape (m, c)
        Points, in the coordinates in which the tubes are defined.
    weights : ndarray of shape (m,)
        Weights of the points.
    tubes : sequence of Tube
        The tubes. Tubes of the same group must have the same start and be consecutive.

    Returns
    -------
    ndarray of shape (number of tubes, 64)
        Sum of the weights in each slab; 0 beyond the last slab of a tube.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.tubes import tube_between, weights_in_slabs
    >>> points = np.array([[-1.0, 0], [1, 0], [8, 0], [8, 5]])
    >>> tube = tube_between(1, points[:2], np.array([9.0, 0]))
    >>> np.flatnonzero(weights_in_slabs(points, np.ones(4), [tube]))
    array([ 1,  5, 19])
    """
    points = points.astype(np.float64)
    sums = np.zeros((len(tubes), MOST_SLABS))
    group = None
    for sums_of_tube, tube in zip(sums, tubes, strict=True):
        if tube.group != group:
            group = tube.group
            centred = points - tube.start
            squares = np.einsum("ij,ij->i", centred, centred)
        along = centred @ tube.direction
        # The last bits of BLAS results differ between blocks and processors, so round
        # to float32.
        across = (squares - along**2).astype(np.float32)
        slab = np.floor((along / tube.step).astype(np.float32)) + SLABS_BEHIND
        is_inside = across <= np.float32(tube.radius**2)
        is_inside &= (slab >= 0) & (slab < tube.n_slabs)
        slabs = slab[is_inside].astype(np.int64)
        sums_of_tube += np.bincount(slabs, weights[is_inside], MOST_SLABS)
    return sums
