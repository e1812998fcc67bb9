"""What a notebook shows of a fitted estimator, above the boxes of scikit-learn."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from mmcnb.engine.fit_report import shortened, verdict
from mmcnb.errors import plain

MOST_SIZES = 10
MOST_SENTENCES = 5


def summary(
    name: str,
    report: Mapping[str, Any],
    n_rows: int | None = None,
    sentences: Sequence[str] = (),
) -> str:
    """Return clusters, sizes, trust and reasons as HTML.

    Parameters
    ----------
    name : str
        Name of the class.
    report : mapping
        ``report_``.
    n_rows : int or None, default=None
        Rows of the fit, if their labels are there.
    sentences : sequence of str, default=()
        About the clusters, if they were explained.

    Examples
    --------
    >>> from mmcnb.estimators.notebook import summary
    >>> print(summary("CPMMC", {"sizes": [3, 4]}))
    <div><p><b>CPMMC</b>: 2 clusters, of 3, 4 rows</p>
    <dl></dl></div>
    """
    heading = f"<b>{_escaped(name)}</b>"
    sizes = report.get("sizes") or ()
    if sizes:
        shown = ", ".join(f"{size:,.12g}" for size in sizes[:MOST_SIZES])
        more = ", ..." if len(sizes) > MOST_SIZES else ""
        noun = "cluster" if len(sizes) == 1 else "clusters"
        of_rows = f" of {n_rows:,} rows" if n_rows else ""
        heading += f": {len(sizes):,} {noun}{of_rows}, of {shown}{more} rows"
    facts = "".join(
        f"<dt>{title}</dt><dd>{_escaped(shortened(text))}</dd>"
        for title, text in verdict(report).items()
        if text
    )
    parts = [f"<div><p>{heading}</p>", f"<dl>{facts}</dl>"]
    if sentences:
        items = [f"<li>{_escaped(text)}</li>" for text in sentences[:MOST_SENTENCES]]
        if len(sentences) > MOST_SENTENCES:
            items.append(f"<li>{len(sentences) - MOST_SENTENCES} more</li>")
        parts.append(f"<ul>{''.join(items)}</ul>")
    return "\n".join(parts) + "</div>"


def _escaped(text: str) -> str:
    """Return text without markup and control characters."""
    return escape(plain(text, kept=""))
