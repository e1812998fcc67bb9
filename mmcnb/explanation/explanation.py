"""What sets clusters apart: tables, and a sentence for each cluster."""

from dataclasses import dataclass
from html import escape

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
from mmcnb.explanation.sentences import sentences
from mmcnb.explanation.summary import MomentsPass, column_table, word_table
from mmcnb.features.model import Model
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, stack
from mmcnb.samples.row_index import RowIndex


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What sets the clusters of some rows apart.

    It prints as one sentence a cluster, and shows these and `columns` in a notebook.

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
    words : DataFrame or None
        Of sparse rows without negative values whose columns have names, the ten columns
        that mark each cluster: "cluster", "word" and "score". A score is the share in
        all words of the cluster, times log(1 + words of a cluster on average / words of
        this name in all clusters).
    """

    clusters: pd.DataFrame
    columns: pd.DataFrame
    rows: pd.DataFrame
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
        """Return the sentences and the columns, with all names escaped."""
        sentences = map(escape, self.clusters["sentence"])
        items = "".join(f"<li>{sentence}</li>" for sentence in sentences)
        return f"<ul>{items}</ul>{self.columns.to_html(index=False, max_rows=30)}"


def explain(
    engine: Engine,
    samples: Samples,
    with_gaps: Samples,
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
    samples : Samples
        The rows, not scaled.
    with_gaps : Samples
        The same with NaN in place of the gaps that are filled, which are read once.
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
    moments, parts = engine.run(sweep, with_gaps, "explanation")
    values = stack(parts)
    X = values
    if with_gaps.has_gaps and np.isnan(values).any():
        X = as_matrix(samples.gather(rows))
    codes = groups.codes[rows]
    weights = groups.counts / sizes
    sample = Sample(
        X=X,
        values=values,
        rows=rows,
        codes=codes,
        weights=weights[codes],
    )
    columns = column_table(engine, samples, groups, moments, sample)
    words = word_table(samples, groups, moments, sample)
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
    return Explanation(clusters, columns, examples, words)
