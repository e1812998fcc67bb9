"""Figures for each number of clusters, side by side; or J of each candidate."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from mmcnb.errors import InputError
from mmcnb.plotting._style import new_axes

NAMES = {
    "J": "J",
    "objective": "J",
    "relative_objective": "J / (k - 1)",
    "margin": "margin |w|",
    "stability": "stability (ARI)",
    "eigengap": "eigengap",
}


class SelectionDisplay:
    """Evidence for a number of clusters: one panel a figure, against k.

    Make one with `from_frame`, `from_estimator` or, of the candidates of a fit, `from_candidates`.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `mmcnb.selection.select_n_clusters`: ``n_clusters``, and a column a figure.
    chosen : int, str or None, default=None
        The number that was chosen, drawn as a vertical line; or the name of the candidate.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        One a figure that has values, in the order of the columns.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from mmcnb.plotting import SelectionDisplay
    >>> frame = pd.DataFrame({"n_clusters": [2, 3, 4], "stability": [0.7, 1.0, 0.6]})
    >>> [ax.get_ylabel() for ax in SelectionDisplay.from_frame(frame).axes_]
    ['stability (ARI)']
    """

    def __init__(self, frame: Any, chosen: int | str | None = None) -> None:
        self.frame, self.chosen = frame, chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None, **line: Any) -> SelectionDisplay:
        """Draw J of each number of clusters among which a fit chose.

        Parameters
        ----------
        estimator : MaximumMarginClustering
            Fitted with ``n_clusters=None``.
        axes : sequence of matplotlib Axes, optional
            Axes to draw on, one a figure; a new figure when left out.
        **line
            Passed to matplotlib's ``plot``.

        Returns
        -------
        SelectionDisplay

        Raises
        ------
        InputError
            If the number of clusters was given, or the axes are too few.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.plotting import SelectionDisplay
        >>> from mmcnb.datasets import make_shape
        >>> X, _ = make_shape("two-moons", 200, random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(None, max_clusters=3, random_state=0).fit(X)
        >>> SelectionDisplay.from_estimator(model).chosen
        2
        """
        check_is_fitted(estimator, "report_")
        numbers = estimator.report_.get("numbers")
        if not numbers:
            raise InputError("this fit chose no number of clusters; fit with n_clusters=None.")
        return cls(pd.DataFrame(numbers), int(estimator.n_clusters_)).plot(axes=axes, **line)

    @classmethod
    def from_candidates(cls, estimator: Any, *, ax: Any = None, **bar: Any) -> SelectionDisplay:
        """Draw J of each candidate of a fit, the largest on top, and in colour the one that was taken.

        Parameters
        ----------
        estimator : MaximumMarginClustering
            A fit.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure when left out.
        **bar
            Passed to matplotlib's ``barh``; ``color`` has a default here.

        Returns
        -------
        SelectionDisplay

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.plotting import SelectionDisplay
        >>> X = [[0.0], [0.1], [0.2], [2.0], [2.1], [2.2]]
        >>> model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
        >>> SelectionDisplay.from_candidates(model).chosen == model.candidate_
        True
        """
        check_is_fitted(estimator, "candidate_")
        frame = pd.DataFrame(estimator.report_["candidates"])
        made, ax = cls(frame, estimator.candidate_), ax or new_axes()
        colors = ["C0" if name == made.chosen else "0.7" for name in frame["candidate"]]
        ax.barh(frame["candidate"], frame["J"], **{"color": colors, **bar})
        ax.set(xlabel="J", ylim=(len(frame) - 0.5, -0.5))
        made.axes_, made.figure_ = (ax,), ax.figure
        return made

    @classmethod
    def from_frame(cls, frame: Any, *, axes: Any = None, **line: Any) -> SelectionDisplay:
        """Draw a frame of figures.

        Parameters
        ----------
        frame : pandas.DataFrame
            From `mmcnb.selection.select_n_clusters`.
        axes : sequence of matplotlib Axes, optional
            Axes to draw on, one a figure that has values; a new figure when left out.
        **line
            Passed to matplotlib's ``plot``.

        Returns
        -------
        SelectionDisplay

        Raises
        ------
        InputError
            If the frame has no numbers of clusters or no figures, or the axes are too few.
        """
        return cls(frame).plot(axes=axes, **line)

    def plot(self, axes: Any = None, **line: Any) -> SelectionDisplay:
        """Draw the panels; figures without any value are left out.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Axes to draw on, one a figure that has values; a new figure when left out.
        **line
            Passed to matplotlib's ``plot``; ``marker`` and ``color`` have defaults here.

        Returns
        -------
        SelectionDisplay

        Raises
        ------
        InputError
            If the frame has no numbers of clusters or no figures, or the axes are too few.
        """
        from matplotlib.ticker import MaxNLocator

        shown = [name for name in self.frame.columns if name in NAMES and self.frame[name].notna().any()]
        if "n_clusters" not in self.frame.columns or not shown:
            raise InputError("the frame has no n_clusters with figures; give one of select_n_clusters.")
        if axes is None:
            axes = new_axes(ncols=len(shown), figsize=(2.6 * len(shown), 2.4), squeeze=False)[0]
        if len(axes) < len(shown):
            raise InputError(f"{len(shown)} figures need as many axes, not {len(axes)}; give one for each.")
        self.axes_ = tuple(axes[: len(shown)])
        for ax, name in zip(self.axes_, shown, strict=True):
            ax.plot(self.frame["n_clusters"], self.frame[name], **{"marker": "o", "color": "C0", **line})
            if self.chosen is not None:
                ax.axvline(self.chosen, color="0.7", zorder=0)
            ax.set_xlabel("number of clusters k")
            ax.set_ylabel(NAMES[name])
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.figure_ = self.axes_[0].figure
        return self
