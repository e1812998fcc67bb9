"""Display of rows by two of their columns, coloured by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mmcnb._docstrings import fill_docstrings
from mmcnb.plotting._rows import draw_rows, spread_out, two_columns
from mmcnb.plotting._style import label_text, new_axes, scatter_clusters
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores.matched_labels import labels_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ClusterDisplay:
    """Scatter plot of two columns of the rows, coloured by cluster.

    By default, the two columns with the largest F ratios are drawn. The F ratio of a
    column is the variance between clusters divided by the variance within clusters. It
    is computed in at most 10,000 rows, once for the values of the column and once for
    their squared distances from the mean; the larger ratio is used. Columns with only
    two distinct values are selected only if fewer than two other columns exist, because
    their points overlap. If the values of a column are integers that many rows share,
    such as answers from 1 to 5, each point is moved by a small random amount, so that
    points do not hide each other.

    Create a display with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Coordinates of each row.
    labels : ndarray of shape (n_samples,)
        Cluster of each row; -1 means noise.
    names : tuple of two str, default=("", "")
        Names of the two columns, which are used as axis labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    legend_ : matplotlib Legend
        Legend with the percentage of the rows in each cluster.
    scatter_ : matplotlib PathCollection
        Points of the plot.

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
        """Plot a sample of rows, coloured by the labels that an estimator predicts.

        Parameters
        ----------
        estimator : object
            Fitted estimator with the method ``predict``.
        X : {rows}
            Rows from which a random sample is drawn.
        features : tuple of two int or None, default=None
            Indices of the columns for the x axis and the y axis. If None, the columns
            with the largest F ratios are used.
        sample_size : int, default=10_000
            Maximum number of rows in the sample.
        random_state : int, RandomState or None, default=0
            Random seed of the sample.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.
        **scatter
            Keyword arguments for matplotlib's ``scatter``.

        Returns
        -------
        ClusterDisplay
            The display, already drawn.

        Raises
        ------
        InputError
            If the rows cannot be read, ``features`` is not a pair of column indices of
            X, or ``sample_size`` is below 1.
        """
        sample = draw_rows(estimator, X, sample_size, random_state).samples
        rows: Any = sample
        if not hasattr(estimator, "model_"):
            # Estimators of other libraries do not accept `Samples`.
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
        """Plot rows, coloured by given labels.

        Parameters
        ----------
        X : {rows}
            Rows to plot. All of them are drawn.
        labels : array-like of shape (n_samples,)
            Cluster of each row, as numbers or names; -1 means noise.
        features : tuple of two int or None, default=None
            Indices of the columns for the x axis and the y axis. If None, the columns
            with the largest F ratios are used.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.
        **scatter
            Keyword arguments for matplotlib's ``scatter``.

        Returns
        -------
        ClusterDisplay
            The display, already drawn.

        Raises
        ------
        InputError
            If the number of labels differs from the number of rows, or ``features`` is
            not a pair of column indices of X.
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
            Axes to draw on. If None, a new figure is created.
        **scatter
            Keyword arguments for matplotlib's ``scatter``. The defaults of ``s``,
            ``cmap`` and ``linewidths`` depend on the data.

        Returns
        -------
        ClusterDisplay
            The display itself.
        """
        ax = ax or new_axes()
        spread = [spread_out(values, k) for k, values in enumerate(self.points.T)]
        self.scatter_, self.legend_ = scatter_clusters(
            ax, np.column_stack(spread), self.labels, **scatter
        )
        ax.set(xlabel=label_text(self.names[0]), ylabel=label_text(self.names[1]))
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
