"""Show how the local search of Pahikkala et al., "shaking", proceeds from random labels to clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.features.kernel import kernel_matrix
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.objective import smoother, target_shares
from mmcnb.least_squares.partition import random_labels
from mmcnb.plotting._rows import two_columns
from mmcnb.plotting._style import cluster_colors
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.tables.options import options_of_fit


class ShakingDisplay:
    """Labels of a sample during shaking, one panel per wave, as in Fig. 4 of Pahikkala et al.

    The first panel shows the random initial labels. In the next panels, each cluster in
    turn claims many rows, and fewer from round to round. The last panel shows the end
    of the search.

    Create a display with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
        Position of each row.
    waves : list of tuple of (str, ndarray of shape (m,))
        Title and labels of each panel.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each panel.
    figure_ : matplotlib Figure
        The figure of the axes.

    References
    ----------
    T. Pahikkala, A. Airola, F. Gieseke and O. Kramer, Unsupervised multi-class
    regularized least-squares classification, Alg. 3 and Fig. 4.
    """

    def __init__(self, points: np.ndarray, waves: list[tuple[str, np.ndarray]]) -> None:
        self.points = points
        self.waves = waves

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: tuple[int, int] = (0, 1),
        amplitude: float = 1.0,
        decay: float = 0.5,
        rounds: int = 21,
        random_state: Any = 0,
        **scatter: Any,
    ) -> ShakingDisplay:
        """Draw one shaking of a few rows, with the kernel and the ridge of a fit.

        Parameters
        ----------
        estimator : UnsupervisedRLS
            Fitted estimator, from which kernel, ``alpha``, ``n_clusters`` and
            ``cluster_sizes`` are used.
        X : array, frame, CSR, path, Zarr array or group, of shape (m, n_features)
            A few hundred rows to cluster; the search needs memory for three matrices of
            m x m.
        features : tuple of two int, default=(0, 1)
            Columns drawn against each other.
        amplitude, decay : float, default=1.0 and 0.5
            Fraction of the rows claimed in the first round, and the factor by which
            this fraction is multiplied from round to round; the defaults are the
            paper's.
        rounds : int, default=21
            Largest number of rounds.
        random_state : int, RandomState or None, default=0
            Seed of the initial labels.
        **scatter
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        ShakingDisplay

        Raises
        ------
        InputError
            If X cannot be read, a column does not exist, or a number is out of range.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "model_")
        given, model = (
            open_samples(X, options=options_of_fit(estimator)),
            estimator.model_,
        )
        points, _ = two_columns(given, features, None)
        Interval(0.0).check("amplitude", amplitude)
        Interval(0.0).check("decay", decay)
        Interval(1, integer=True).check("rounds", rounds)
        samples = model.scaled(given)
        m, proportions = (
            samples.n_samples,
            target_shares(estimator.cluster_sizes, estimator.n_clusters),
        )
        R = smoother(
            kernel_matrix(as_matrix(samples.block(0, m)), model.kernel),
            estimator.alpha_ * m,
        )
        start = random_labels(m, proportions, generator(random_state))
        waves = shaking_waves(
            R, start, proportions, float(amplitude), float(decay), rounds
        )
        return cls(points, waves).plot(**scatter)

    def plot(self, **scatter: Any) -> ShakingDisplay:
        """Draw the panels in a new figure.

        Parameters
        ----------
        **scatter
            Passed to matplotlib's ``scatter``; ``s`` and ``linewidths`` have defaults
            here.

        Returns
        -------
        ShakingDisplay
        """
        import matplotlib.pyplot as plt

        style = {"s": 8, "linewidths": 0, **scatter}
        across = min(4, len(self.waves))
        down = -(-len(self.waves) // across)
        size = (2.3 * across, 2.45 * down)
        self.figure_, grid = plt.subplots(
            down, across, figsize=size, squeeze=False, layout="constrained"
        )
        self.axes_ = grid.ravel()[: len(self.waves)]
        for ax in grid.ravel()[len(self.waves) :]:
            ax.remove()
        for ax, (title, labels) in zip(self.axes_, self.waves, strict=True):
            ax.scatter(*self.points.T, c=cluster_colors(labels), **style)
            set_title(ax, title)
            ax.set(xticks=[], yticks=[])
            ax.set_aspect("equal", adjustable="datalim")
        return self


def shaking_waves(
    R: np.ndarray,
    start: np.ndarray,
    proportions: np.ndarray,
    amplitude: float,
    decay: float,
    rounds: int,
) -> list[tuple[str, np.ndarray]]:
    """Return the title and labels of each panel: the waves of the first round, and the ends of some later rounds."""
    ends: list[np.ndarray] = []
    moves, before = -1, 0
    while (
        len(ends) < rounds and moves != before
    ):  # until the first round without a move
        before = max(moves, 0)
        labels, moves = kernels.shake(
            R, start, proportions, amplitude, decay, len(ends) + 1
        )
        ends.append(labels)
    waves = [("random labels", start)]
    for d in range(proportions.shape[0] if ends else 0):
        # with amplitude 0, no rows are claimed
        claiming = np.where(np.arange(proportions.shape[0]) <= d, proportions, 0)
        labels, _ = kernels.shake(R, start, claiming, amplitude, decay, 1)
        waves.append((f"round 1, cluster {d}", labels))
    # Rounds count from 0; few rows move in the other rounds.
    shown = sorted({1, 2, 4, len(ends) - 1})
    return waves + [
        (f"after round {n + 1}", ends[n]) for n in shown if 0 < n < len(ends)
    ]


def set_title(ax: Any, title: str, **style: Any) -> None:
    """Set a title of axes, broken into lines that are at most as wide as the axes.

    The width of a letter is assumed to be half of its height.
    """
    from textwrap import fill

    from matplotlib.font_manager import FontProperties

    points = FontProperties(size=style.get("fontsize", "medium")).get_size_in_points()
    inches = ax.get_position().width * ax.figure.get_figwidth()
    width = max(8, int(0.9 * inches * 72 / (0.55 * points)))
    ax.set_title(fill(title, width), **{"fontsize": "medium", **style})
