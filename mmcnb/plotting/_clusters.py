"""Rows in two features, coloured by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mmcnb._docstrings import fill_docstrings
from mmcnb.plotting._rows import draw_rows, two_columns
from mmcnb.plotting._style import label_text, new_axes, scatter_clusters
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores.matched_labels import labels_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ClusterDisplay:
    """Scatter of rows in two of their features, coloured by cluster.

    Without ``features`` these are the two columns with the largest F ratio, of the
    variance between the clusters to the one within them: that of the values, or of
    their squared distances from the mean, in at most 10,000 rows. Columns of two values
    come last.

    Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Place of each row.
    labels : ndarray of shape (n_samples,)
        Cluster of each row; -1 is noise.
    names : tuple of two str, default=("", "")
        Names of the columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    legend_ : matplotlib Legend
        Names of the clusters.
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

    def __init__(
        self, points: np.ndarray, labels: np.ndarray, names: tuple[str, str] = ("", "")
    ) -> None:
        self.points = points
        self.labels = labels
        self.names = names

    @classmethod
    @fill_docstrings
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: tuple[int, int] | None = None,
        sample_size: int = 10_000,
        random_state: Any = 0,
        ax: Axes | None = None,
        **scatter: Any,
    ) -> ClusterDisplay:
        """Draw rows with the labels an estimator gives them.

        Parameters
        ----------
        estimator : object
            Fitted estimator with ``predict``.
        X : {rows}
            Rows to label and draw.
        features : tuple of two int or None, default=None
            Columns drawn against each other; None is the two that separate the clusters
            most.
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
            If the rows cannot be read, a column is not there, or ``sample_size`` is
            below 1.
        """
        sample = draw_rows(estimator, X, sample_size, random_state).samples
        rows: Any = sample
        if not hasattr(estimator, "model_"):
            # Estimators of other libraries take no Samples.
            rows = as_matrix(sample.block(0, sample.n_samples))
        labels = np.asarray(estimator.predict(rows))
        points, names = two_columns(sample, features, labels)
        return cls(points, labels, names).plot(ax=ax, **scatter)

    @classmethod
    @fill_docstrings
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        features: tuple[int, int] | None = None,
        ax: Axes | None = None,
        **scatter: Any,
    ) -> ClusterDisplay:
        """Draw rows with labels that are known.

        Parameters
        ----------
        X : {rows}
            Rows to draw.
        labels : array-like of shape (n_samples,)
            Cluster of each row, as numbers or names; -1 is noise.
        features : tuple of two int or None, default=None
            Columns drawn against each other; None is the two that separate the clusters
            most.
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
        samples = open_samples(X)
        clusters = labels_of_rows(labels, None, samples)
        points, names = two_columns(samples, features, clusters)
        return cls(points, clusters, names).plot(ax=ax, **scatter)

    def plot(self, ax: Axes | None = None, **scatter: Any) -> ClusterDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``; ``s``, ``cmap`` and ``linewidths`` have
            defaults here.

        Returns
        -------
        ClusterDisplay
        """
        ax = ax or new_axes()
        self.scatter_, self.legend_ = scatter_clusters(
            ax, self.points, self.labels, **scatter
        )
        ax.set(xlabel=label_text(self.names[0]), ylabel=label_text(self.names[1]))
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
