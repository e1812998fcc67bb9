"""Rows of any storage on a map: the plane in which their kernel features vary most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb._docstrings import fill_docstrings
from mmcnb.features.base_kernels import grams_of
from mmcnb.features.kernel import KernelSamples, MultipleKernels
from mmcnb.features.nystroem import (
    normalization_of,
    principal_directions,
    total_variance_of,
)
from mmcnb.plotting._rows import drawn_rows
from mmcnb.plotting._style import new_axes, scatter_clusters
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores.label_table import labels_of_rows


@dataclass(eq=False, repr=False)
class ClusterMapDisplay:
    """Scatter of a sample of rows on two principal components of the kernel, coloured by cluster.

    The rows are mapped as the model sees them: to the span of its basis vectors in the
    feature space of the kernel (for a linear model, to its columns; for one of several
    kernels, of their weighted sum, each scaled by its variance in the rows drawn), and
    from there by principal components. Distances on the map are those of that plane,
    which shows only a part of the variance: the axes say how much. Clusters that
    overlap here can lie apart in other directions.

    Make one with `from_estimator`.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
        Place of each row.
    labels : ndarray of shape (m,)
        Cluster of each row.
    variance_ratio : ndarray of shape (2,)
        Fraction of the total variance of the rows along each axis.
    n_samples : int
        Rows these were drawn from.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    scatter_ : matplotlib PathCollection
        The points.
    legend_ : matplotlib Legend
        Clusters with their proportions of the rows drawn.

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
        ax: Any = None,
        **scatter: Any,
    ) -> ClusterMapDisplay:
        """Draw a sample of rows with the clusters an estimator gives them.

        Parameters
        ----------
        estimator : object
            Fitted estimator of mmcnb.
        X : {rows}
            Rows with the columns of the fit; only the sample is read.
        labels : array-like of shape (n_samples,) or None, default=None
            Cluster of each row of X, as numbers or names, with -1 for noise; None is
            what the model gives.
        sample_size : int, default=2000
            Rows drawn at most.
        random_state : int, RandomState or None, default=0
            Seed of the sample.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``.

        Returns
        -------
        ClusterMapDisplay

        Raises
        ------
        InputError
            If the rows cannot be read, have other columns than the fit, or
            ``sample_size`` is below 1.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator, "model_")
        sample, samples, rows = drawn_rows(estimator, X, sample_size, random_state)
        labels = (
            estimator.predict(sample)
            if labels is None
            else labels_of_rows(labels, None, samples)[rows]
        )
        points, ratio = _principal_plane(_seen(estimator.model_, sample))
        return cls(points, labels, ratio, samples.n_samples).plot(ax=ax, **scatter)

    def plot(self, ax: Any = None, **scatter: Any) -> ClusterMapDisplay:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **scatter
            Passed to matplotlib's ``scatter``; ``s``, ``cmap`` and ``linewidths`` have
            defaults here.

        Returns
        -------
        ClusterMapDisplay
        """
        ax = ax or new_axes()
        title = f"{len(self.labels):,} of {self.n_samples:,} rows"
        self.scatter_, self.legend_ = scatter_clusters(
            ax, self.points, self.labels, title, **scatter
        )
        for name, ratio, axis in zip(
            "12", self.variance_ratio, (ax.xaxis, ax.yaxis), strict=True
        ):
            axis.set_label_text(f"component {name} ({ratio:.0%} of the variance)")
            axis.set_ticks([])
        ax.set_aspect("equal", adjustable="box")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _seen(model: Any, samples: Any) -> Any:
    """Rows in coordinates in which their inner products are those the model sees, dense or CSR."""
    rows = model.scaled(samples)
    if model.kernel is None:
        return as_matrix(rows.block(0, rows.n_samples)).astype(np.float64)
    basis = model.basis[
        :: -(-model.basis.shape[0] // 500)
    ]  # more vectors would not be seen
    mapped = KernelSamples(rows, model.kernel.against(basis), np.dtype(np.float64))
    values = mapped.block(0, rows.n_samples)
    if isinstance(model.kernel, MultipleKernels):
        return _weighted(model, values, basis)
    vectors = basis.astype(np.float64)
    return values @ normalization_of(model.kernel(vectors, vectors))


def _weighted(model: Any, values: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Values of several kernels in coordinates of their weighted sum, each scaled to a variance of 1."""
    columns = model.kernel.slices(basis.shape[0])
    grams = grams_of(model.kernel, basis)
    parts = [
        values[:, one] @ normalization_of(gram)
        for one, gram in zip(columns, grams, strict=True)
    ]
    variances = np.array([total_variance_of(part, None) for part in parts])
    # A variance of 0: the rows drawn are equal.
    scales = np.sqrt(
        np.abs(model.kernel_weights) / np.where(variances > 0, variances, 1.0)
    )
    return np.hstack([part * scale for part, scale in zip(parts, scales, strict=True)])


def _principal_plane(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates along the two directions of greatest variance, and the fraction of the variance of each."""
    scores = principal_directions(rows, 2)
    points = np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))
    total = max(total_variance_of(rows, None), np.finfo(float).tiny)
    return points, np.mean(points**2, axis=0) / total
