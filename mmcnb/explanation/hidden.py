"""Remove the contents of cells and the names of rows from explanations."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mmcnb.explanation.explanation import Explanation
from mmcnb.explanation.groups import grouped
from mmcnb.explanation.rules import CountedRule, rule_sentence
from mmcnb.explanation.sentences import (
    SIDES,
    cluster_title,
    grouped_digits,
    percent,
    phrase,
    sentences,
    short_name,
)
from mmcnb.explanation.summary import ColumnFigures
from mmcnb.samples import Samples
from mmcnb.samples.encoding import Encoding

# Figures of fewer rows than this are hidden, because they may reveal the value of a
# cell.
LEAST_ROWS = 5
HIDDEN = "…"
OF_TIME = ("date", "time")

Category = tuple[object, str]  # name of a column, and one of its texts


def hide_cells(explanation: Explanation, described: Samples) -> Explanation:
    """Return an explanation without texts, dates and times from cells.

    Parameters
    ----------
    explanation : Explanation
        The complete explanation.
    described : Samples
        Rows with the columns that the explanation names.

    Returns
    -------
    Explanation
        The explanation with the names of columns, and with medians, means and
        thresholds of numbers. Texts are replaced by "value 1", "value 2", .... Example
        rows, the tree, and figures of fewer than five rows are left out.
    """
    wide = _wide_names(described)
    shown = _shown_clusters(explanation.clusters)
    hidden_texts = _numbered_texts(explanation.columns)

    def of_shown(table: pd.DataFrame) -> pd.DataFrame:
        return table[table["cluster"].isin(shown)]

    clusters = explanation.clusters.copy()
    columns = of_shown(explanation.columns)
    columns = columns.assign(
        column=[wide.get(name, name) for name in columns["column"]],
        category=[_category(row, hidden_texts) for row in columns.itertuples()],
    )
    words = None if explanation.words is None else of_shown(explanation.words)
    clusters["sentence"] = list(sentences(clusters, columns, words, _phrase))
    few = ~clusters["cluster"].isin([*shown, -1])
    if len(clusters) > 1 and few.any():
        clusters.loc[few, "sentence"] = [
            f"{cluster_title(row.cluster)} ({percent(row.share)}): figures of fewer "
            f"than {LEAST_ROWS} rows are not shown."
            for row in clusters[few].itertuples()
        ]
    return Explanation(
        clusters=clusters,
        columns=columns,
        rows=explanation.rows[:0],
        rules=_rules(of_shown(explanation.rules), hidden_texts, wide),
        words=words,
    )


def numbered_labels(labels: np.ndarray) -> np.ndarray:
    """Replace labels that are names by numbers; return other labels unchanged."""
    groups = grouped(labels)
    return labels if groups.clusters.dtype.kind == "i" else groups.codes


def texts_of_cells(encoding: Encoding | None) -> set[str]:
    """Return the categories and ordered texts of all columns of a table."""
    texts: set[str] = set()
    for column in () if encoding is None else encoding.columns:
        texts.update(column.categories)
        if column.form is not None:
            texts.update(text for level in column.form.levels for text in level)
    return texts - {""}


def _shown_clusters(clusters: pd.DataFrame) -> list[Any]:
    """Return the clusters with at least `LEAST_ROWS` rows both inside and outside."""
    least = np.minimum(clusters["rows"], clusters["rows"].sum() - clusters["rows"])
    return clusters["cluster"][least >= LEAST_ROWS].tolist()


def _wide_names(described: Samples) -> dict[object, str]:
    """Return new names for 0/1 columns whose names contain the text of a cell."""
    names = described.feature_names
    if described.encoding is not None or names is None or described.sources is None:
        return {}
    renamed: dict[object, str] = {}
    counts: dict[str, int] = {}
    for name, source in zip(names, described.sources, strict=True):
        if name != source:
            counts[source] = counts.get(source, 0) + 1
            renamed[name] = f"{source}, value {counts[source]}"
    return renamed


def _numbered_texts(columns: pd.DataFrame) -> dict[Category, str]:
    """Return a replacement, such as "value 1", for each category of a text column."""
    texts: dict[Category, str] = {}
    counts: dict[object, int] = {}
    for row in columns[columns["kind"] == "text"].itertuples():
        key = (row.column, row.category)
        if row.category and key not in texts:
            counts[row.column] = counts.get(row.column, 0) + 1
            texts[key] = f"value {counts[row.column]}"
    return texts


def _category(row: Any, texts: Mapping[Category, str]) -> str:
    """Return the text that replaces the category in a row of `Explanation.columns`."""
    if row.kind == "text":
        return texts.get((row.column, row.category), "")
    if row.kind == "order":
        return f"{row.position} levels"
    return str(row.category)


def _phrase(row: ColumnFigures) -> str:
    """Describe a column of a cluster in words, without dates and times."""
    if row.kind not in OF_TIME:
        return phrase(row)
    is_higher = bool(row.median > row.others_median)
    if row.category:
        side, _ = SIDES[row.category, is_higher]
        return f"{short_name(row.column)} towards {side}"
    if row.kind == "date":
        return f"{short_name(row.column)} {'late' if is_higher else 'early'}"
    return f"{short_name(row.column)} {'long' if is_higher else 'short'}"


def _rules(
    rules: pd.DataFrame, texts: Mapping[Category, str], wide: Mapping[object, str]
) -> pd.DataFrame:
    """Return the rules, with texts, dates and times in their conditions hidden."""
    rows = []
    for rule in rules.itertuples(index=False):
        parts = [_term(term, texts, wide) for term in rule.conditions]
        hidden = CountedRule(
            cluster=rule.cluster,
            rule=" and ".join(parts),
            conditions=[],
            coverage=rule.coverage,
            precision=rule.precision,
            matching=rule.matching,
        )
        rows.append(hidden)
    table = pd.DataFrame(rows, columns=CountedRule._fields)
    table["sentence"] = list(map(rule_sentence, rows))
    return table


def _term(
    term: tuple[Any, ...], texts: Mapping[Category, str], wide: Mapping[object, str]
) -> str:
    """Return a term of a condition as text, with an ellipsis for a hidden value."""
    column, operator, value = term
    name = short_name(wide.get(column, column))
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, int | float):
        return f"{name} {operator} {grouped_digits(value, 12)}"
    if isinstance(value, list):  # levels, or two times of day
        return f"{name} {operator} {HIDDEN}"
    if value == "missing" and (column, value) not in texts:
        return f"{name} is missing"
    return f"{name} {operator} {texts.get((column, value), HIDDEN)}"
