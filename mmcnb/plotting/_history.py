"""How the objective went, from pass to pass or from generation to generation."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmcnb.plotting._style import new_axes, set_title


class HistoryDisplay:
    """The history of a fit, as its method records it.

    * Hinge form: objective and violation against passes.
    * `UnsupervisedRLS`: objective J and fraction of changed labels against passes.
    * `EvolutionaryMMC`: the lowest F so far against generations, a line for each evolution; the best is dark.

    The passes over all rows are drawn, and the title sums up the search on the sample before them. A fit
    whose sample is all rows makes no such passes: there the end of each start of the search is drawn.

    Make one with `from_estimator`.

    Parameters
    ----------
    history : pandas.DataFrame
        The ``history_`` of a fitted estimator, with columns ``stage`` and ``objective``, and one of
        ``violation``, ``changed`` or ``generation``.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        Axes of the objective and, but for evolutions, of the violation or the changed labels, which share
        their horizontal axis.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from mmcnb import SparseKernelMMC
    >>> from mmcnb.plotting import HistoryDisplay
    >>> from mmcnb.datasets import make_block
    >>> X, _ = make_block("blobs", 0, 300, n_features=2)
    >>> display = HistoryDisplay.from_estimator(SparseKernelMMC(gamma="median", random_state=0).fit(X))
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['objective', 'violation']
    """

    def __init__(self, history: Any) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line: Any) -> HistoryDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : object
            Fitted estimator with ``history_``.
        ax : matplotlib Axes, optional
            Axes of the objective; a new figure when left out.
        **line
            Passed to matplotlib's ``plot`` for all lines.

        Returns
        -------
        HistoryDisplay
        """
        return cls(estimator.history_).plot(ax=ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> HistoryDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes of the objective; a new figure when left out.
        **line
            Passed to matplotlib's ``plot`` for all lines.

        Returns
        -------
        HistoryDisplay
        """
        ax = ax or new_axes()
        self.axes_ = self._generations(ax, line) if "generation" in self.history else self._passes(ax, line)
        self.figure_ = ax.figure
        return self

    def _generations(self, ax: Any, line: dict[str, Any]) -> tuple[Any, ...]:
        starts = self.history.groupby("start")
        best = starts["objective"].min().idxmin()
        for start, one in starts:
            dark = {"color": "C0", "zorder": 3} if start == best else {"color": "0.8", "linewidth": 0.8}
            ax.plot(one["generation"], one["objective"], **{**dark, **line})
        ax.set(xscale="log", xlabel="generation", ylabel="lowest F so far")
        return (ax,)

    def _passes(self, ax: Any, line: dict[str, Any]) -> tuple[Any, ...]:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        value = "objective" if "objective" in self.history else "inertia"
        whole = self.history[self.history["stage"] == "all rows"]
        searched = self.history[self.history["stage"] != "all rows"].dropna(subset=value)
        ends = _ends(searched)
        history = whole if len(whole) else ends
        passes = np.arange(1, len(history) + 1)
        shown = {value: history[value]}
        if "violation" in history and history["violation"].notna().any():
            shown["violation"] = history["violation"]
        elif "changed" in history and len(history) > 1:
            # The first pass has no labels before it: all rows count as changed.
            shown["changed labels"] = (history["changed"] / history["changed"].iloc[0]).where(passes > 1)
        axes: tuple[Any, ...] = (ax, ax.twinx()) if len(shown) > 1 else (ax,)
        if "changed labels" in shown:
            axes[1].yaxis.set_major_formatter(PercentFormatter(1.0))
        few = {"marker": "o" if len(history) < 10 else ""}
        style = few if len(whole) else {"marker": ".", "linestyle": ""}
        for side, name, color in zip(axes, shown, ("C0", "C1"), strict=False):
            side.plot(passes, shown[name], **{"color": color, **style, **line})
            side.set_ylabel(name, color=color)
        step = "start of the search" if len(ends) < len(searched) else "step on the sample"
        ax.set_xlabel("pass over all rows" if len(whole) else step)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if len(history) == 1:
            ax.set(xlim=(0, 2), xticks=[1])
        if len(searched):
            starts = f"{len(ends):,} start{'s' * (len(ends) > 1)}"
            set_title(ax, f"search on the sample: {starts}, {len(searched):,} steps")
        return axes


def _ends(searched: Any) -> Any:
    """The last step of each start, at each bandwidth that was tried."""
    keys = [name for name in ("gamma", "start") if name in searched]
    return searched.groupby(keys, dropna=False, sort=False).tail(1) if keys else searched
