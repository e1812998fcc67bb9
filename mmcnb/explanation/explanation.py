"""What sets clusters apart: tables, and a sentence for each cluster."""

from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

from mmcnb._machine import return_freed_memory
from mmcnb.engine.passes import CombinedPass, GatherPass
from mmcnb.engine.run import Engine
from mmcnb.explanation.examples import (
    compare_rows,
    nearest_cluster,
    row_table,
)
from mmcnb.explanation.groups import Groups, Sample, draw_rows, sizes_of_samples
from mmcnb.explanation.rules import find_rules, rule_table
from mmcnb.explanation.sentences import sentences
from mmcnb.explanation.summary import MomentsPass, column_table, means_of, word_table
from mmcnb.features.model import Model
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, stack
from mmcnb.samples.row_index import RowIndex


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What sets the clusters of some rows apart.

    It prints as one sentence a cluster, and shows these, `rules` and `columns` in a
    notebook.

    Attributes
    ----------
    clusters : DataFrame
        A row for each cluster, noise (-1) first: "cluster", its number of "rows" and
        their "share", the "nearest" other cluster, the mean "margin" of its rows to
        that one, and the "sentence".
    columns : DataFrame
        For each cluster at most 50 columns, those with the largest effects; those that
        tell most come first. "column" is the name, or the number of a column without
        one. "kind" is "number", "date" (seconds since 1970), "flag" (0 or 1, so that
        means are shares), "time" (in seconds; of a time of day the "category" is "sin"
        or "cos" of its place on a circle), "text": then the figures are those of one
        "category", which a row has or not, or "order", of ordered texts and ratings:
        then "category" has the levels that set the cluster apart, such as "4 or 5 of
        5", "position" says whether they are "low", "medium" or "high", and "share" and
        "others_share" are those of the rows with these levels. Filled gaps of tables
        do not count in any figure, so a column without other values has NaN. Of all
        rows are "gaps" and "others_gaps", the shares of gaps in the column, and
        "mean", "others_mean" and "effect", the difference of the two in standard
        deviations of the column. The others are of a sample, weighted as all rows:
        "median" and "others_median"; "auc", how often a row of the cluster has a larger
        value than another row; "near", how often it is nearer to the median of the
        cluster; "spread" and "others_spread", the median distances from there.
    rows : DataFrame
        For each cluster three rows of the sample of each "kind", with the "row" number
        and the "name", if rows have names. "typical" ones have the least "score", the
        distance to the mean of the cluster; so the first one is its medoid for squared
        distances. Those at the "edge" have the least margin to any other cluster. "far"
        ones have the largest outlier score, if the model has nodes.
    rules : DataFrame
        For each cluster a "rule" of at most three "conditions" on columns that most of
        its rows meet, and few others, such as "orders > 12 and payment = invoice". A
        condition is a name, an operator and a value. "coverage" is the share of the
        cluster that matches, "precision" the share of the "matching" rows that are in
        the cluster, both of all rows; the "sentence" says all of it. Rules are searched
        on the sample, among the 50 columns with the largest effects. The rule is "" if
        none says more than that all rows are in the cluster.
    words : DataFrame or None
        Of sparse rows without negative values whose columns have names, the ten columns
        that mark each cluster: "cluster", "word" and "score". A score is the share in
        all words of the cluster, times log(1 + words of a cluster on average / words of
        this name in all clusters).
    """

    clusters: pd.DataFrame
    columns: pd.DataFrame
    rows: pd.DataFrame
    rules: pd.DataFrame
    words: pd.DataFrame | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row a cluster, `clusters`."""
        return self.clusters

    def to_dict(self) -> dict[str, list | None]:
        """Return the tables as lists of rows for JSON; None is what is missing."""
        tables: dict[str, list | None] = {"words": None}
        for name, table in vars(self).items():
            if table is not None:
                plain = table.astype(object).where(table.notna(), None)
                tables[name] = plain.to_dict("records")
        return tables

    def __str__(self) -> str:
        """Return one sentence a cluster, each on a line."""
        return "\n".join(self.clusters["sentence"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the sentences, rules and columns, with all names escaped."""
        lists = ""
        for table in (self.clusters, self.rules):
            items = "".join(f"<li>{escape(text)}</li>" for text in table["sentence"])
            lists += f"<ul>{items}</ul>"
        return f"{lists}{self.columns.to_html(index=False, max_rows=30)}"


class Sources(NamedTuple):
    """What is read for an explanation.

    Attributes
    ----------
    rows : Samples
        The rows, not scaled, which the model compares.
    described : Samples
        The same rows with the columns that are named: of ``rows``, or of another table.
    with_gaps : Samples
        The same with NaN in place of the gaps that are filled.
    """

    rows: Samples
    described: Samples
    with_gaps: Samples


def explain(
    engine: Engine,
    sources: Sources,
    groups: Groups,
    model: Model,
    index: RowIndex,
    most: int,
) -> Explanation:
    """Explain the clusters of some rows.

    Parameters
    ----------
    engine : Engine
        Runs the passes.
    sources : Sources
        The rows, and the columns that are named.
    groups : Groups
        Their clusters.
    model : Model
        Of the fit.
    index : RowIndex
        Which rows of their source they are.
    most : int
        Rows of the sample, of all clusters.
    """
    sizes = sizes_of_samples(groups.counts, most)
    rows = draw_rows(groups, sizes)
    sweep = CombinedPass((MomentsPass(groups.codes, sizes.size), GatherPass(rows)))
    described = sources.described
    moments, parts = engine.run(sweep, sources.with_gaps, "explanation")
    values = stack(parts)
    X = values
    if sources.with_gaps.has_gaps and np.isnan(values).any():
        X = as_matrix(described.gather(rows))
    codes = groups.codes[rows]
    weights = groups.counts / sizes
    sample = Sample(
        X=X,
        values=values,
        rows=rows,
        codes=codes,
        weights=weights[codes],
    )
    means = means_of(groups.counts, moments)
    columns = column_table(engine, described, groups, means, sample)
    rules = find_rules(engine, described, groups, means, sample)
    counted = rule_table(engine, sources.with_gaps, groups, rules, sample)
    words = word_table(described, groups, moments, sample)
    if described is not sources.rows:
        sample = sample._replace(X=as_matrix(sources.rows.gather(rows)))
    return_freed_memory()  # of the pass, before the model needs its own
    compared = compare_rows(engine, model, sample, groups)
    pairs = [nearest_cluster(compared, sample, groups, k) for k in range(sizes.size)]
    nearest, margins = zip(*pairs, strict=True)
    clusters = pd.DataFrame(
        {
            "cluster": groups.clusters,
            "rows": groups.counts,
            "share": groups.counts / groups.counts.sum(),
            "nearest": pd.Series(nearest, dtype=object).convert_dtypes(),
            "margin": margins,
        }
    )
    clusters["sentence"] = list(sentences(clusters, columns, words))
    examples = row_table(compared, sample, groups, index)
    return Explanation(clusters, columns, examples, counted, words)
