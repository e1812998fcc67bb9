"""Display of rows in the plane in which their kernel features vary most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb._docstrings import fill_docstrings
from mmcnb.features.base_kernels import grams_of
from mmcnb.features.kernel import KernelSamples, MultipleKernels
from mmcnb.features.model import Model
from mmcnb.features.nystroem import (
    normalization_of,
    principal_directions,
    total_variance_of,
)
from mmcnb.plotting._rows import draw_rows
from mmcnb.plotting._style import new_axes, scatter_clusters
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores.matched_labels import labels_of_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ClusterMapDisplay:
    """Scatter plot of rows on two kernel principal components, coloured by cluster.

    Rows are mapped to the feature space of the kernel, restricted to the span of the
    basis vectors of the model, and then projected to the first two principal
    components. For a linear model, these are the principal components of the columns.
    With several kernels, each kernel is divided by its variance in the drawn rows, and
    the features represent the weighted sum of the kernels.

    The plane shows only a part of the variance. The axis labels state this part as a
    percentage. Clusters that overlap on the map may be well separated in other
    directions.

    Create a display with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
        Coordinates of each drawn row.
    labels : ndarray of shape (m,)
        Cluster of each drawn row; -1 means noise.
    variance_ratio : ndarray of shape (2,)
        Fraction of the total variance along each axis.
    n_samples : int
        Number of rows from which the sample was drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    scatter_ : matplotlib PathCollection
        Points of the plot.
    legend_ : matplotlib Legend
        Legend with the percentage of the drawn rows in each cluster.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.plotting import ClusterMapDisplay
    >>> from mmcnb.datasets import make_block
    >>> X, _ = make_block("blobs", 0, 300, n_features=4, n_clusters=3)
    >>> model = mmcnb.UnsupervisedRLS(n_clusters=3, random_state=0).fit(X)
    >>> display = ClusterMapDisplay.from_estimator(model, X, sample_size=200)
    >>> display.points.shape, [text.get_text() for text in display.legend_.get_texts()]
    ((200, 2), ['0: 35.0%', '1: 31.0%', '2: 34.0%'])
    """

    points: np.ndarray
    labels: np.ndarray
    variance_ratio: np.ndarray
    n_samples: int

    @classmethod
    @fill_docstrings
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Any = None,
        sample_size: int = 2000,
        random_state: Any = 0,
        ax: Axes | None = None,
        **scatter: Any,
    ) -> ClusterMapDisplay:
        """Plot a sample of rows, coloured by predicted or given clusters.

        Parameters
        ----------
        estimator : object
            Fitted estimator of mmcnb.
        X : {rows}
            Rows with the same columns as in the fit. A random sample of them is drawn.
        labels : array-like of shape (n_samples,) or None, default=None
            Cluster of each row of X, as numbers or names, with -1 for noise. If None,
            the estimator predicts the clusters.
        sample_size : int, default=2000
            Maximum number of rows in the sample.
        random_state : int, RandomState or None, default=0
            Random seed of the sample.
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.
        **scatter
            Keyword arguments for matplotlib's ``scatter``.

        Returns
        -------
        ClusterMapDisplay
            The display, which has been drawn.

        Raises
        ------
        InputError
            If the rows cannot be read or do not have the columns of the fit, or if
            ``sample_size`` is below 1.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "model_")
        drawn = draw_rows(estimator, X, sample_size, random_state)
        if labels is None:
            clusters = estimator.predict(drawn.samples)
        else:
            clusters = labels_of_rows(labels, None, drawn.source)[drawn.numbers]
        features = kernel_features(estimator.model_, drawn.samples)
        points, ratio = principal_plane(features)
        return cls(points, clusters, ratio, drawn.source.n_samples).plot(
            ax=ax, **scatter
        )

    def plot(self, ax: Axes | None = None, **scatter: Any) -> ClusterMapDisplay:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. If None, a new figure is created.
        **scatter
            Keyword arguments for matplotlib's ``scatter``. The defaults of ``s``,
            ``cmap`` and ``linewidths`` depend on the data.

        Returns
        -------
        ClusterMapDisplay
            The display itself.
        """
        ax = ax or new_axes()
        title = f"{len(self.labels):,} of {self.n_samples:,} rows"
        self.scatter_, self.legend_ = scatter_clusters(
            ax, self.points, self.labels, title, **scatter
        )
        first, second = self.variance_ratio
        ax.set_xlabel(f"component 1 ({first:.0%} of the variance)")
        ax.set_ylabel(f"component 2 ({second:.0%} of the variance)")
        ax.set(xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="box")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def kernel_features(model: Model, samples: Samples) -> Any:
    """Return features whose inner products approximate the kernel of the model.

    For a linear model, these are the scaled rows, which may be a CSR matrix.
    """
    rows = model.scaled(samples)
    if model.kernel is None:
        return as_matrix(rows.block(0, rows.n_samples)).astype(np.float64)
    # Use fewer than about 500 basis vectors; more make no visible difference.
    basis = model.basis[:: -(-model.basis.shape[0] // 500)]
    mapped = KernelSamples(rows, model.kernel.against(basis), np.float64)
    values = mapped.block(0, rows.n_samples)
    if isinstance(model.kernel, MultipleKernels):
        return _weighted(model, values, basis)
    vectors = basis.astype(np.float64)
    return values @ normalization_of(model.kernel(vectors, vectors))


def _weighted(model: Any, values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return features whose inner products approximate the weighted sum of kernels.

    The features of each kernel are first scaled to unit variance.
    """
    kernels = model.kernel
    grams = grams_of(kernels, basis)
    parts = []
    for k, columns in enumerate(kernels.slices(basis.shape[0])):
        part = values[:, columns] @ normalization_of(grams[k])
        # If all drawn rows are equal, the variance is 0.
        variance = total_variance_of(part, None)
        if not variance > 0:
            variance = 1.0
        parts.append(part * np.sqrt(np.abs(model.kernel_weights[k]) / variance))
    return np.hstack(parts)


def principal_plane(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of the rows in the plane of largest variance.

    Also return the fraction of the total variance along each axis.
    """
    scores = principal_directions(rows, 2)
    points = np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))
    total = max(total_variance_of(rows, None), np.finfo(float).tiny)
    return points, np.mean(points**2, axis=0) / total
