"""One page about a fit: what sets its clusters apart, how far to trust them, and how it was made."""

import base64
import io
from collections.abc import Callable, Iterator
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from mmcnb import __version__
from mmcnb.errors import plain, worded
from mmcnb.plotting._cluster_map import ClusterMapDisplay
from mmcnb.samples import Samples
from mmcnb.stores.atomic import atomic_write


def write_report(
    path: Any, estimator: Any, explanation: Any, samples: Samples, labels: Any = None
) -> None:
    """Write a page about a fit to one file, whole or not at all.

    Parameters
    ----------
    path : path
        The page; one that is there is replaced.
    estimator : estimator
        Fitted.
    explanation : Explanation
        Of the rows.
    samples : Samples
        The rows.
    labels : ndarray of shape (n_samples,) or None, default=None
        Clusters that the map shows in place of those of the model.
    """
    report = estimator.report_
    k = (explanation.clusters["cluster"] != -1).sum()
    n_columns = (
        len(samples.encoding.features) if samples.encoding else samples.n_features
    )
    source = repr(samples.name) if Path(samples.name).exists() else "X"
    trust = report.get("trust")
    number = report.get("number")
    verdict = {
        "Trust": trust and f"{trust.get('level')}: {trust.get('reason')}",
        "Number of clusters": number and number.get("reason"),
        "Columns": report.get("scaling"),
        "Warnings": " ".join(report.get("warnings", ())),
    }
    figures = ["n_clusters", "J", "persistence", "smallest", "taken"]
    layers = pd.DataFrame(report.get("layers"), columns=figures).rename(
        columns={"n_clusters": "clusters"}
    )
    candidates = ["candidate", "J", "information", "gap", "broken"]
    parts = {
        "title": _escaped(
            f"{k:,} cluster{'' if k == 1 else 's'} of {Path(samples.name).name}"
        ),
        "size": f"{samples.n_samples:,} rows, {n_columns:,} columns",
        "verdict": _facts(verdict),
        "clusters": "\n".join(_clusters(explanation)),
        "effects": _effects(explanation.columns),
        "map": _map(estimator, samples, labels),
        "layers": _table(layers),
        "candidates": _table(
            pd.DataFrame(report.get("candidates"), columns=candidates)
        ),
        "fit": _escaped(f"mmcnb.{' '.join(str(estimator).split())}.fit({source})"),
        "source": _escaped(source),
        "version": __version__,
    }
    template = (
        files("mmcnb.plotting").joinpath("report.html").read_text(encoding="utf-8")
    )
    with atomic_write(path) as file:
        file.write(Template(template).substitute(parts).encode())


def _clusters(explanation: Any) -> Iterator[str]:
    """The sentence of each cluster under a bar of its size, and what is behind it when it is opened."""
    columns = explanation.columns
    rows = explanation.rows
    words = explanation.words
    for one in explanation.clusters.itertuples(index=False):
        facts = {
            "Rows": f"{one.rows:,}",
            "Nearest cluster": "" if pd.isna(one.nearest) else str(one.nearest),
        }
        for kind, some in rows[rows["cluster"] == one.cluster].groupby(
            "kind", sort=False
        ):
            named = zip(some["row"], some["name"], strict=True)
            texts = (
                str(row) if pd.isna(name) else f"{row} ({name})" for row, name in named
            )
            facts[f"{kind.capitalize()} rows"] = ", ".join(texts)
        if words is not None:
            facts["Words"] = ", ".join(words["word"][words["cluster"] == one.cluster])
        told = columns[columns["cluster"] == one.cluster][:10].itertuples()
        figures = [
            (_name(row), _middle(row), _middle(row, "others_"), row.effect, row.auc)
            for row in told
        ]
        yield (
            f'<details><summary>{_escaped(one.sentence)}<span class="bar" style="--share: {one.share:.2%}">'
            f'</span></summary>\n<div class="parts">{_facts(facts)}'
            f"{_table(pd.DataFrame(figures, columns=['column', 'here', 'others', 'effect', 'AUC']))}"
            "</div></details>"
        )


def _name(row: Any) -> str:
    """A column, and of a text its category."""
    name = row.column if isinstance(row.column, str) else f"column {row.column}"
    return f"{name} {row.category or 'missing'}" if row.kind == "text" else name


def _middle(row: Any, of: str = "") -> Any:
    """The median of a number or a date, or its mean if the medians are equal; the share of a flag or text."""
    median = getattr(row, f"{of}median")
    mean = getattr(row, f"{of}mean")
    if row.kind in ("flag", "text"):
        return f"{mean:.1%}"
    value = mean if row.median == row.others_median else median
    return str(np.datetime64(round(value), "s"))[:10] if row.kind == "date" else value


def _effects(columns: Any, most: int = 30) -> str:
    """Effects in each cluster of the columns that tell most of any."""
    names = [*map(_name, columns.itertuples())]
    ranks = columns.groupby("cluster").cumcount()
    named = columns.assign(column=names, rank=ranks)
    best = named.sort_values("rank", kind="stable")["column"].drop_duplicates()[:most]
    effects = named.pivot_table("effect", "column", "cluster", "first").reindex(best)
    return _table(effects.reset_index(), _shaded)


def _shaded(effect: float) -> str:
    """A cell of the heat map; it is empty if the column is not among those of a cluster."""
    if np.isnan(effect):
        return "<td></td>"
    side = "high" if effect > 0 else "low"
    share = min(abs(effect) / 2, 1) * 0.7
    text = f"{effect:+.1f}" if abs(effect) >= 0.05 else "0"
    return f'<td class="{side}" style="--share: {share:.0%}">{text}</td>'


def _map(estimator: Any, samples: Samples, labels: Any) -> str:
    """The map of a sample, within the page, in ink that can be read on light and dark ground."""
    if find_spec("matplotlib") is None:
        return "<p>A map needs matplotlib.</p>"
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    file = io.BytesIO()
    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), "#7c7c7c")
    # Where memory runs out Matplotlib tells of boxes.
    with (
        worded("the map cannot be drawn", "give a larger memory_limit", ValueError),
        rc_context(grey),
    ):
        figure = Figure(figsize=(3.2, 3.2))
        ClusterMapDisplay.from_estimator(
            estimator, samples, labels=labels, ax=figure.subplots(), s=6
        )
        figure.savefig(
            file, format="png", dpi=200, transparent=True, bbox_inches="tight"
        )
    alt = "Rows as dots, coloured by cluster, on the two components of largest variance"
    return f'<img alt="{alt}" src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def _table(frame: Any, cell: Callable[[Any], str] | None = None) -> str:
    """A frame as a table that scrolls within its own box; the first column names the rows."""
    if frame.empty:
        return "<p>None.</p>"
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in frame)
    body = (
        f'<tr><th scope="row">{_escaped(name)}</th>{"".join(map(cell or _cell, rest))}</tr>\n'
        for name, *rest in frame.itertuples(index=False)
    )
    table = (
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{''.join(body)}</tbody></table>"
    )
    return f'<div class="box" tabindex="0">{table}</div>'


def _cell(value: Any) -> str:
    """A cell; three digits of a number that is not whole."""
    if pd.isna(value):
        value = ""
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = f"{float(f'{value:.3g}'):,.12g}"
    return f"<td>{_escaped(f'{value:,}' if isinstance(value, int) else value)}</td>"


def _facts(facts: dict[str, Any]) -> str:
    """Names and texts; those without text are left out."""
    told = (
        f"<dt>{name}</dt><dd>{_escaped(text)}</dd>\n"
        for name, text in facts.items()
        if text
    )
    return f"<dl>\n{''.join(told)}</dl>"


def _escaped(value: Any) -> str:
    """Text that is no markup."""
    return escape(plain(value, kept=""))
