"""HTML summary of a fitted estimator, shown in notebooks above scikit-learn's boxes."""

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
    """Return HTML with the number and sizes of the clusters, and the trust in them.

    Parameters
    ----------
    name : str
        Name of the estimator's class.
    report : mapping
        ``report_`` of the estimator.
    n_rows : int or None, default=None
        Number of rows of the fit; None if their labels were not kept.
    sentences : sequence of str, default=()
        Sentences of `explain` about the clusters; at most five are shown.

    Examples
    --------
    >>> from mmcnb.estimators.notebook import summary
    >>> print(summary("CPMMC", {"sizes": [3, 4]}))
    <div><p><b>CPMMC</b>: 2 clusters; sizes 3, 4</p>
    <dl></dl></div>
    """
    heading = f"<b>{_escaped(name)}</b>"
    sizes = report.get("sizes") or ()
    if sizes:
        shown = ", ".join(f"{size:,.12g}" for size in sizes[:MOST_SIZES])
        more = ", ..." if len(sizes) > MOST_SIZES else ""
        noun = "cluster" if len(sizes) == 1 else "clusters"
        of_rows = f" of {n_rows:,} rows" if n_rows else ""
        sizes_are = "size" if len(sizes) == 1 else "sizes"
        heading += f": {len(sizes):,} {noun}{of_rows}; {sizes_are} {shown}{more}"
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
    """Escape markup, and replace control characters."""
    return escape(plain(text, kept=""))
