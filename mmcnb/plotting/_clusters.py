"""Rows in two features, coloured by cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mmcnb.errors import InputError
from mmcnb.plotting._rows import drawn_rows, two_columns
from mmcnb.plotting._style import cluster_colors, new_axes
from mmcnb.samples.matrix import as_matrix


class ClusterDisplay:
    """Scatter of rows in two of their features, coloured by cluster.

    Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Place of each row.
    labels : ndarray of shape (n_samples,)
        Cluster of each row.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    scatter_ : matplotlib PathCollection
        The points.

    Examples
    --------
    >>> from mmcnb.plotting import ClusterDisplay
    >>> from mmcnb.datasets import make_block
    >>> X, y = make_block("moons", 0, 500, n_features=2)
    >>> display = ClusterDisplay.from_predictions(X, y)
    >>> len(display.scatter_.get_offsets())
    500
    """

    def __init__(self, points: np.ndarray, labels: np.ndarray) -> None:
        self.points = points
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: tuple[int, int] = (0, 1),
        sample_size: int = 10_000,
        random_state: Any = 0,
        ax: Any = None,
        **scatter: Any,
    ) -> ClusterDisplay:
        """Draw rows with the labels an estimator gives them.

        Parameters
        ----------
        estimator : object
            Fitted estimator with ``predict``.
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows to label and draw.
        features : tuple of two int, default=(0, 1)
            Columns drawn against each other.
        sample_size : int, default=10_000
            Rows read and drawn at most.
        random_state : int, RandomState or None, default=0
            Seed of the sample.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        ClusterDisplay

        Raises
        ------
        InputError
            If the rows cannot be read, a column is not there, or ``sample_size`` is below 1.
        """
        sample, _ = drawn_rows(estimator, X, sample_size, random_state)
        points = two_columns(sample, features)
        # Estimators of other libraries take no Samples.
        rows: Any = sample if hasattr(estimator, "model_") else as_matrix(sample.block(0, sample.n_samples))
        return cls(points, estimator.predict(rows)).plot(ax=ax, **scatter)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, features: tuple[int, int] = (0, 1), ax: Any = None, **scatter: Any
    ) -> ClusterDisplay:
        """Draw rows with labels that are known.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows to draw.
        labels : array-like of shape (n_samples,)
            Cluster of each row.
        features : tuple of two int, default=(0, 1)
            Columns drawn against each other.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        ClusterDisplay

        Raises
        ------
        InputError
            If rows and labels differ in number, or a column is not there.
        """
        points, numbers = two_columns(X, features), np.asarray(labels)
        if numbers.shape != points.shape[:1]:
            fault = f"X has {len(points)} rows and labels has shape {numbers.shape}"
            raise InputError(f"{fault}; give one label a row of X.")
        return cls(points, numbers).plot(ax=ax, **scatter)

    def plot(self, ax: Any = None, **scatter: Any) -> ClusterDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``; ``s``, ``cmap`` and ``linewidths`` have defaults here.

        Returns
        -------
        ClusterDisplay
        """
        ax = ax or new_axes()
        style = {"s": 4, "cmap": self._colors(), "linewidths": 0, **scatter}
        self.scatter_ = ax.scatter(*self.points.T, c=self.labels, **style)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _colors(self) -> Any:
        """Two colours that differ most, or one for each of more clusters."""
        from matplotlib.colors import ListedColormap

        if self.labels.size == 0 or self.labels.max() < 2:
            return "coolwarm"
        numbers = np.arange(int(self.labels.min()), int(self.labels.max()) + 1)
        return ListedColormap(cluster_colors(numbers))
