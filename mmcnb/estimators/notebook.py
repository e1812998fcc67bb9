"""What a notebook shows of a fitted estimator, below the diagram of its parameters."""

from html import escape
from typing import Any

from mmcnb.engine.session import Report

SHOWN = ("sizes", "kernel", "loss", "choice", "trust", "clusters_found", "warnings")  # of the report
STYLE = 'style="margin-top:0.5em"'


def verdict_html(estimator: Any) -> str:
    """The verdict of a fit as a small table; nothing before a fit.

    Parameters
    ----------
    estimator : object
        Any estimator of mmcnb.

    Returns
    -------
    str
        HTML, in which names and paths are escaped.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.estimators.notebook import verdict_html
    >>> verdict_html(mmcnb.CPMMC())
    ''
    """
    report = getattr(estimator, "report_", None)
    if report is None:
        return ""
    shown = Report({name: report[name] for name in SHOWN if name in report})
    if isinstance(shown.get("trust"), dict):
        shown["trust"] = "{level}: {reason}".format(**shown["trust"])
    for name in ("objective", "gamma", "converged"):
        value = getattr(estimator, f"{name}_", None)
        if value is not None:
            shown[name] = f"{value:.4g}" if isinstance(value, float) else value
    fitted = escape(f"{type(estimator).__name__}, fitted")
    return f"<div {STYLE}><b>{fitted}</b>{shown._repr_html_()}</div>"
