"""How objective and violation went from pass to pass."""

from __future__ import annotations

from typing import Any


class HistoryDisplay:
    """Objective and violation of a fit against the number of passes over the data.

    Make one with `from_estimator`.

    Parameters
    ----------
    history : pandas.DataFrame
        The ``history_`` of a fitted estimator: one row a pass, with columns ``objective``, ``violation`` and
        ``stage``. The passes over all rows are drawn; where the sample was all rows, those over the sample.

    Attributes
    ----------
    axes_ : tuple of two matplotlib Axes
        Axes of the objective and of the violation, which share their horizontal axis.
    figure_ : matplotlib Figure
        Figure that holds them.

    Examples
    --------
    >>> from mmcnb import SparseKernelMMC
    >>> from mmcnb.plotting import HistoryDisplay
    >>> from mmcnb.synthetic import make_block
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
            Where the objective is drawn; a new figure when left out.
        **line
            Passed to matplotlib's ``plot`` for both lines.

        Returns
        -------
        HistoryDisplay
        """
        return cls(estimator.history_).plot(ax=ax, **line)

    def plot(self, ax: Any = None, **line: Any) -> HistoryDisplay:
        """Draw both lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where the objective is drawn; a new figure when left out.
        **line
            Passed to matplotlib's ``plot`` for both lines.

        Returns
        -------
        HistoryDisplay
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        whole = self.history["stage"] == "all rows"
        history = self.history[whole] if whole.any() else self.history
        passes = range(1, len(history) + 1)
        self.axes_ = (ax, ax.twinx())
        for side, name, color in zip(self.axes_, ("objective", "violation"), ("C0", "C1"), strict=True):
            side.plot(passes, history[name], **{"color": color, **line})
            side.set_ylabel(name, color=color)
        ax.set_xlabel("pass over the data")
        self.figure_ = ax.figure
        return self
