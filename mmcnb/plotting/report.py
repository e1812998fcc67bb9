"""Write an HTML report of a fit, with an explanation of its clusters."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from mmcnb import __version__
from mmcnb.engine.fit_report import verdict
from mmcnb.errors import plain
from mmcnb.explanation.hidden import OF_TIME, texts_of_cells
from mmcnb.explanation.sentences import (
    cluster_title,
    grouped_digits,
    short_name,
    two_dates,
    two_numbers,
)
from mmcnb.explanation.summary import LEAST_STRENGTH, strength_of
from mmcnb.plotting.report_map import PageRows, draw_map
from mmcnb.stores.atomic import atomic_write

HIDDEN = (
    '<p class="note">The contents of cells, the names of rows, and the path of the '
    "data are not shown on this page.</p>"
)
EXAMPLES = (
    "Typical rows are nearest to the mean of the cluster, edge rows are nearest to "
    "another cluster, and far rows have the largest outlier scores. Rows are counted "
    "from 0, and a header is not counted."
)
NO_EDGE = "none: no row is near another cluster"
# Explanations of terms that may occur in the verdict.
TERMS = {
    "agreement with other candidates": (
        "The agreement of two partitions is 1 if they are equal, and about 0 by chance "
        "(adjusted Rand index)."
    ),
    "J ": (
        "J is large if rows are in the cluster of their nearest rows and empty space "
        "separates the clusters; see Candidates."
    ),
    "evidence": (
        "The evidence is the number of spreads by which the clusters are clearer than "
        "clusters of rows without structure."
    ),
}
BROKEN = "wrong known labels"
OF_BROKEN = " Wrong known labels are the share of known labels in a different cluster."
LAYER = ["n_clusters", "J", "persistence", "smallest", "taken"]
CANDIDATE = ["candidate", "J", "information", "gap", "broken"]


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    explanation: Any,
    rows: PageRows,
    repeat: Any,
) -> None:
    """Write an HTML report of a fit as a single file.

    An existing file is replaced only when the new report is complete.

    Parameters
    ----------
    path : path
        Path of the file.
    estimator : estimator
        Fitted estimator.
    explanation : Explanation
        Explanation of the clusters of ``rows``.
    rows : PageRows
        Rows on the page. If its ``row_index`` is None, the page does not show contents
        of cells, and ``explanation`` must be a result of `hide_cells`.
    repeat : Repeat
        Command and Python call that repeat the fit.
    """
    report = estimator.report_
    samples = rows.samples
    explanation = replace(explanation, columns=_varying(explanation.columns))
    hides = rows.row_index is None
    drawn = draw_map(estimator, rows)
    layers = pd.DataFrame(report.get("layers"), columns=LAYER)
    candidates = pd.DataFrame(report.get("candidates"), columns=CANDIDATE)
    candidates = candidates.rename(columns={"broken": BROKEN})
    if candidates[BROKEN].isna().all():
        del candidates[BROKEN]
    name = Path(samples.name)
    k = (explanation.clusters["cluster"] != -1).sum()
    clusters = "1 cluster" if k == 1 else f"{k:,} clusters"
    n_columns = samples.n_features
    if samples.encoding:
        n_columns = len(samples.encoding.features)
    facts: dict[str, Any] = verdict(report)
    facts["Warnings"] = report.get("warnings")
    if hides:
        facts = _hidden_verdict(report, texts_of_cells(estimator.model_.encoding))
    facts["Columns of meta left out"] = ", ".join(
        name if hides else f"{name} ({why})"
        for name, why in (rows.left_out or {}).items()
    )
    facts["Clusters differ most in"] = ", ".join(_separating_columns(explanation))
    parts = {
        "title": _escaped(clusters if hides else f"{clusters} of {name.name}"),
        "size": f"{samples.n_samples:,} rows, {n_columns:,} columns",
        "verdict": _facts(facts) + _terms(facts),
        "hidden": HIDDEN if hides else "",
        "examples": "" if hides else EXAMPLES,
        "clusters": "\n".join(_clusters(explanation, hides)),
        "tree": _tree(explanation, hides),
        "effects": _effects(explanation.columns),
        "map": drawn.html,
        "map_style": drawn.style,
        "layers": _table(layers.rename(columns={"n_clusters": "clusters"})),
        "candidates": _table(candidates),
        "broken": OF_BROKEN if BROKEN in candidates else "",
        "repeat": "\n".join(_repeat(repeat)),
        "version": __version__,
    }
    template = files("mmcnb.plotting").joinpath("report.html")
    page = Template(template.read_text(encoding="utf-8")).substitute(parts)
    with atomic_write(path) as file:
        file.write(page.encode())


def _hidden_verdict(
    report: Mapping[str, Any], texts: Collection[str]
) -> dict[str, str]:
    """Return the verdict without sentences that could quote a cell or name a file.

    ``texts`` contains the texts of cells that may be quoted.
    """
    facts = verdict(report)
    for name in ("Trust", "Number of clusters"):
        if any(text in facts[name] for text in texts):
            level, _, _ = facts[name].partition(":")
            facts[name] = level if name == "Trust" else ""
    n_warnings = len(report.get("warnings") or ())
    warnings = ""
    if n_warnings:
        warnings = f"{n_warnings}, not shown because they may quote cells; see report_"
    left_out = [
        str(column["name"])
        for column in report.get("columns") or ()
        if column["treatment"] == "left out"
    ]
    # The reason for the scaling may contain the extreme values of a column.
    facts |= {
        "Columns": "",
        "Columns left out": ", ".join(left_out),
        "Warnings": warnings,
    }
    return facts


def _terms(facts: Mapping[str, Any]) -> str:
    """Return an HTML note that explains the terms that occur in a verdict."""
    verdict_text = f"{facts['Trust']} {facts['Number of clusters']}"
    sentences = [text for word, text in TERMS.items() if word in verdict_text]
    return f'\n<p class="note">{" ".join(sentences)}</p>' if sentences else ""


def _varying(columns: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the columns that do not have the same value in all rows."""
    if columns.empty:  # there is only one cluster
        return columns
    varies = (
        (columns["effect"].round(9) != 0)
        | (strength_of(columns).round(9) != 0)
        | ~np.isclose(columns["mean"], columns["others_mean"])
        | (columns["gaps"] != columns["others_gaps"])
    )
    keys = [columns["column"].map(repr), columns["category"]]
    return columns[varies.groupby(keys).transform("any")]


def _separating_columns(explanation: Any, most: int = 3) -> list[str]:
    """Return the names of the columns that separate the clusters best.

    The strengths of a column in the clusters are averaged, weighted by cluster size.
    Columns that are too weak for a sentence about any cluster are left out.
    """
    columns = explanation.columns
    if columns.empty:
        return []
    table = columns.assign(
        strength=strength_of(columns).fillna(0.0),
        column=[short_name(name) for name in columns["column"]],
    )
    by_cluster = table.pivot_table(
        "strength", "column", "cluster", "max", fill_value=0.0, sort=False
    )
    shares = explanation.clusters.set_index("cluster")["share"]
    by_cluster = by_cluster[by_cluster.max(axis=1) >= LEAST_STRENGTH]
    means = by_cluster @ shares[by_cluster.columns]
    order = np.argsort(-means.round(9), kind="stable")
    return list(means.index[order][:most])


def _clusters(explanation: Any, hides: bool) -> Iterator[str]:
    """Yield the HTML of each cluster: its sentence, a bar for its size, and details."""
    for cluster in explanation.clusters.itertuples(index=False):
        facts = _facts(_facts_of_cluster(explanation, cluster, hides))
        columns = explanation.columns
        of_cluster = columns[columns["cluster"] == cluster.cluster][:10]
        figures = _figures(of_cluster, hides)
        yield (
            f"<details><summary>{_escaped(cluster.sentence)}"
            f'<span class="bar" style="--share: {cluster.share:.2%}"></span>'
            "</summary>\n"
            f'<div class="parts">{facts}{_table(figures)}</div></details>'
        )


def _facts_of_cluster(explanation: Any, cluster: Any, hides: bool) -> dict[str, str]:
    """Return facts about a cluster, such as its size and example rows, by title."""
    facts = {
        "Rows": f"{cluster.rows:,}",
        "Nearest cluster": "" if pd.isna(cluster.nearest) else str(cluster.nearest),
    }
    rows = explanation.rows
    rows = rows[rows["cluster"] == cluster.cluster]
    for kind, examples in rows.groupby("kind", sort=False):
        texts = map(_row_text, examples["row"], examples["name"])
        facts[f"{kind.capitalize()} rows"] = ", ".join(texts)
    if not hides and facts["Nearest cluster"]:
        facts.setdefault("Edge rows", NO_EDGE)
    rules = explanation.rules
    for rule in rules["sentence"][rules["cluster"] == cluster.cluster]:
        facts["Rule"] = rule.removeprefix(f"{cluster_title(cluster.cluster)}: ")
    words = explanation.words
    if words is not None:
        facts["Words"] = ", ".join(words["word"][words["cluster"] == cluster.cluster])
    return facts


def _tree(explanation: Any, hides: bool) -> str:
    """Return the HTML of the cluster tree, or the reason why it is left out."""
    if hides:
        return "<p>Left out, because its conditions show cells.</p>"
    if explanation.tree is not None:
        return f"<pre>{escape(plain(explanation.tree))}</pre>"
    if (explanation.clusters["cluster"] != -1).sum() < 2:
        return "<p>No tree, because there is only one cluster.</p>"
    return (
        "<p>No tree, because no conditions on columns with names separate the "
        "clusters.</p>"
    )


def _row_text(row: int, name: Any) -> str:
    return str(row) if pd.isna(name) else f"{row} ({name})"


def _figures(columns: pd.DataFrame, hides: bool) -> pd.DataFrame:
    """Return a table that compares columns in a cluster and in other rows.

    ``columns`` contains rows of `Explanation.columns`. If ``hides`` is True, figures of
    dates and times are left empty.
    """
    rows = []
    for row in columns.itertuples():
        here, others = _middles(row)
        if row.kind == "order":
            here = f"{row.share:.1%}"
            others = f"{row.others_share:.1%}"
        if hides and row.kind in OF_TIME:
            here = others = ""
        rows.append((_name(row), here, others, row.effect, row.auc))
    figures = pd.DataFrame(rows, columns=["column", "here", "others", "effect", "AUC"])
    if columns[["gaps", "others_gaps"]].any(axis=None):
        figures["missing here"] = columns["gaps"].map("{:.1%}".format).to_list()
        of_others = columns["others_gaps"].map("{:.1%}".format)
        figures["missing in others"] = of_others.to_list()
    return figures


def _name(row: Any) -> str:
    """Return the name of a column, followed by its category or levels, if any."""
    name = row.column
    if not isinstance(name, str):
        name = f"column {name}"
    if row.kind in ("text", "order"):
        name = f"{name} {row.category or 'missing'}"
    return name


def _middles(row: Any) -> tuple[str, str]:
    """Return the median of a column in a cluster and in other rows, as texts.

    If the medians are equal, means are returned instead. For flags and texts,
    percentages are returned. A text is empty if there are no values.
    """
    pair = (row.median, row.others_median)
    if row.median == row.others_median:
        pair = (row.mean, row.others_mean)
    if row.kind in ("flag", "text"):
        texts = (f"{row.mean:.1%}", f"{row.others_mean:.1%}")
    elif np.isnan(pair).all():
        texts = ("", "")
    elif row.kind == "date":
        texts = two_dates(*np.nan_to_num(pair))
    else:
        texts = two_numbers(*np.nan_to_num(pair))
    here, others = texts
    return (
        "" if np.isnan(row.mean) else here,
        "" if np.isnan(row.others_mean) else others,
    )


def _effects(columns: pd.DataFrame, most: int = 30) -> str:
    """Return an HTML table with the effects of the strongest columns by cluster."""
    names = list(map(_name, columns.itertuples()))
    ranks = columns.groupby("cluster").cumcount()
    named = columns.assign(column=names, rank=ranks)
    best = named.sort_values("rank", kind="stable")["column"].drop_duplicates()[:most]
    effects = named.pivot_table("effect", "column", "cluster", "first").reindex(best)
    return _table(effects.reset_index(), _shaded)


def _shaded(effect: float) -> str:
    """Return an HTML cell of the heat map of effects; the cell is empty for NaN."""
    if np.isnan(effect):
        return "<td></td>"
    side = "high" if effect > 0 else "low"
    share = min(abs(effect) / 2, 1) * 0.7
    text = f"{effect:+.1f}" if abs(effect) >= 0.05 else "0"
    return f'<td class="{side}" style="--share: {share:.0%}">{text}</td>'


def _repeat(repeat: Any) -> Iterator[str]:
    """Yield the HTML of the notes, command and Python call that repeat a fit."""
    for note in repeat.notes:
        yield f'<p class="note">{_escaped(note)}</p>'
    if repeat.command:
        yield f'<h3>In a shell</h3>\n<pre id="shell">{escape(repeat.command)}</pre>'
    yield f'<h3>In Python</h3>\n<pre id="python">{escape(repeat.call)}</pre>'


def _cell(value: Any) -> str:
    """Return an HTML table cell, with numbers rounded as in sentences."""
    if pd.isna(value):
        value = ""
    elif isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float):
        value = grouped_digits(value, 4 if 1000 <= abs(value) < 10_000 else 3)
    elif isinstance(value, int):
        value = f"{value:,}"
    return f"<td>{_escaped(value)}</td>"


def _table(frame: pd.DataFrame, cell: Callable[[Any], str] = _cell) -> str:
    """Return an HTML table in a scrollable box, with the first column as row header."""
    if frame.empty:
        return "<p>None.</p>"
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in frame)
    body = ""
    for name, *values in frame.itertuples(index=False):
        cells = "".join(map(cell, values))
        body += f'<tr><th scope="row">{_escaped(name)}</th>{cells}</tr>\n'
    return (
        '<div class="box" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _facts(facts: Mapping[str, Any]) -> str:
    """Return an HTML description list of facts.

    Facts without text are left out. If a fact has several texts, they are shown as an
    HTML list.
    """
    items = ""
    for name, value in facts.items():
        texts = [value] if isinstance(value, str) else value
        if not value:
            continue
        text = _escaped(texts[0])
        if len(texts) > 1:
            items_of_text = "".join(f"<li>{_escaped(one)}</li>" for one in texts)
            text = f"<ul>{items_of_text}</ul>"
        items += f"<dt>{name}</dt><dd>{text}</dd>\n"
    return f"<dl>\n{items}</dl>"


def _escaped(value: object) -> str:
    """Return a value as text, with markup and control characters escaped."""
    return escape(plain(value, kept=""))
