"""How much each kernel weighs in a combination that was learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mmcnb.errors import InputError
from mmcnb.plotting._style import new_axes


class KernelWeightsDisplay:
    """Bars of the weights that a fit gives its kernels, the first kernel on top.

    Make one with `from_estimator`.

    Parameters
    ----------
    weights : array-like of shape (M,)
        beta_k in Φ(x) = Σ_k beta_k Φ_k(x), not negative, of Euclidean norm 1.
    names : sequence of M str
        Label of each bar.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    bars_ : matplotlib BarContainer
        One bar a kernel.

    Raises
    ------
    InputError
        If weights and names differ in number, or there are none.

    References
    ----------
    B. Zhao, J. T. Kwok and C. Zhang, Multiple kernel clustering, eq. (1.1).

    Examples
    --------
    >>> from mmcnb.plotting import KernelWeightsDisplay
    >>> display = KernelWeightsDisplay([0.6, 0.8], ["linear", "rbf, gamma=0.1"]).plot()
    >>> [float(bar.get_width()) for bar in display.bars_]
    [0.6, 0.8]
    """

    def __init__(self, weights: ArrayLike, names: Sequence[str]) -> None:
        self.weights = np.asarray(weights, np.float64)
        self.names = list(names)
        if self.weights.shape != (len(self.names),) or not self.names:
            found = f"weights has shape {self.weights.shape} and there are {len(self.names)} names"
            raise InputError(f"{found}; give one name a weight.")

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **bar: Any) -> KernelWeightsDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : object
            Fitted estimator with ``kernel_weights_`` and ``kernel_names_``.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out, the higher the more kernels there are.
        **bar
            Passed to matplotlib's ``barh``.

        Returns
        -------
        KernelWeightsDisplay

        Raises
        ------
        InputError
            If the estimator has no weights of kernels.
        """
        if not hasattr(estimator, "kernel_weights_"):
            name = type(estimator).__name__
            raise InputError(f"{name} has no kernel_weights_; fit a method of several kernels first.")
        return cls(estimator.kernel_weights_, estimator.kernel_names_).plot(ax=ax, **bar)

    def plot(self, ax: Any = None, **bar: Any) -> KernelWeightsDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out, the higher the more kernels there are.
        **bar
            Passed to matplotlib's ``barh``; ``color`` has a default here.

        Returns
        -------
        KernelWeightsDisplay
        """
        places = np.arange(len(self.names))  # not the names: two kernels may share one
        ax = ax or new_axes(figsize=(6.4, 1 + 0.3 * len(self.names)))
        self.bars_ = ax.barh(places, self.weights, **{"color": "C0", **bar})
        ax.bar_label(self.bars_, fmt="{:.2f}", padding=3)
        ax.set_yticks(places, self.names)
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel="weight", xlim=(0, 1.15 * self.weights.max() or 1), ylim=(places[-1] + 0.6, -0.6))
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
