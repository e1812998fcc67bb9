"""Explain how clusters differ, with tables and a sentence for each cluster."""

from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from mmcnb._machine import return_freed_memory
from mmcnb.engine.passes import CombinedPass, GatherPass
from mmcnb.engine.run import Engine
from mmcnb.explanation.examples import (
    compare_rows,
    nearest_cluster,
    row_table,
)
from mmcnb.explanation.groups import Groups, Sample, draw_rows, sizes_of_samples
from mmcnb.explanation.rules import Rule, RulesPass, find_rules, rule_table
from mmcnb.explanation.sentences import sentences
from mmcnb.explanation.summary import (
    MomentsPass,
    column_table,
    effects_in_sample,
    means_of,
    word_table,
)
from mmcnb.explanation.tree import (
    ClusterTree,
    Node,
    TreeCounts,
    TreePass,
    counted_tree,
    find_tree,
)
from mmcnb.features.model import Model
from mmcnb.samples import Samples
from mmcnb.samples.matrix import as_matrix, stack
from mmcnb.samples.row_index import RowIndex


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Explanation of how clusters differ from each other.

    Printing an explanation shows one sentence per cluster. A notebook displays the
    sentences, `rules`, `tree` and `columns`.

    Attributes
    ----------
    clusters : DataFrame
        One row per cluster, with noise (-1) first. "cluster" is the cluster, "rows" its
        number of rows, and "share" their share of all rows. "nearest" is the nearest
        other cluster, and "margin" the mean margin of the rows of the cluster to the
        nearest cluster. "sentence" describes the cluster.
    columns : DataFrame
        For each cluster, the columns with the largest effects (at most 50), sorted by
        how well they separate the cluster from other rows.

        "column" is the name of a column, or its zero-based index if it has no name.
        "kind" is "number", "date" (in seconds since 1970), "flag" (0 or 1, so that
        means are shares), "time" (in seconds), "text", or "order" (ordered texts and
        ratings). A time of day has two rows, with "sin" and "cos" as "category", which
        describe the coordinates of the time on a 24-hour clock. For "text", a row of
        the table describes one "category", and means are the shares of rows with this
        category. For "order", "category" is the range of levels that is most
        overrepresented in the cluster, such as "4 or 5 of 5"; "position" is "low",
        "medium" or "high"; and "share" and "others_share" are the shares of rows with
        these levels in the cluster and among other rows. If at least half of the
        numbers of a cluster are equal to their median, "share" and "others_share" are
        the shares of values equal to this median.

        Missing values are ignored even if the fit has filled them. Figures are NaN for
        columns in which all values are missing. The following figures are computed from
        all rows: "gaps" and "others_gaps", the shares of missing values, and "mean" and
        "others_mean". The other figures are computed from a weighted sample: "effect",
        the difference of the two means in standard deviations of the column; "median"
        and "others_median"; "auc", the probability that a row of the cluster has a
        larger value than another row; "near", the probability that a row of the cluster
        is nearer to the median of the cluster than another row; and "spread" and
        "others_spread", the median distances from the median of the cluster.

        A few extreme values would make the effect of a column small. For the effect,
        values are therefore clipped to a maximum distance from the median of the
        column: ten times the median distance of the values that differ from the median.
        For sparse columns, the effect is computed from all rows without clipping.
    rows : DataFrame
        For each cluster, up to three example rows of each "kind", with their "row"
        number, their "name" if rows have names, and a "score". "typical" rows have the
        smallest distance to the mean of the cluster, which is their score. The first of
        them is therefore the medoid in squared distances. "edge" rows have the smallest
        margin to any other cluster. Rows with the largest margin in the cluster are not
        listed, so a cluster in which all margins are equal has no edge rows. "far" rows
        have the largest outlier scores; they are listed only if the model has nodes.
        All example rows are from the sample.
    rules : DataFrame
        For each cluster, a "rule" of at most three "conditions" on columns, such as
        "orders > 12 and payment = invoice". Most rows of the cluster and few other rows
        meet the rule. A condition is a tuple of a name, an operator and a value.
        "coverage" is the share of the rows of the cluster that meet the rule,
        "matching" is the number of all rows that meet the rule, and "precision" is the
        share of matching rows that are in the cluster. These figures are computed from
        all rows. "sentence" contains the rule and the figures. Rules are searched for
        in the sample, among the 50 columns with the largest effects. A rule is "" if no
        rule is clearly better than a rule without conditions.
    words : DataFrame or None
        The ten columns that are most characteristic of each cluster, as "cluster",
        "word" and "score". This table exists for sparse rows without negative values
        whose columns have names, such as word counts; otherwise it is None. The score
        is a class-based TF-IDF: the share of the word among all words of the cluster,
        times log(1 + mean number of words in a cluster / number of occurrences of this
        word in all clusters).
    tree : ClusterTree or None
        Decision tree of at most four levels that predicts the clusters. Printing the
        tree shows its conditions, in the same form as in rules, and the cluster that
        each leaf predicts. ``tree.leaves`` is a table of its leaves, and
        ``tree.accuracy`` is the share of rows for which the prediction is correct. The
        tree is grown on the sample, and these figures are computed from all rows. It is
        None if there is only one cluster, if no split separates clusters, or if there
        are more than 50 columns that have no names or are sparse.

    Examples
    --------
    >>> import mmcnb
    >>> import pandas as pd
    >>> age = [20.0, 21, 22, 70, 71, 72]
    >>> X = pd.DataFrame({"age": age, "visits": [3.0, 1, 2, 2, 3, 1]})
    >>> print(mmcnb.CPMMC(random_state=0).fit(X).explain(X).tree)
    age <= 50 → cluster 0 (100 % of 3 rows)
    age > 50 → cluster 1 (100 % of 3 rows)
    The tree names the cluster of 100 % of the rows.
    """

    clusters: pd.DataFrame
    columns: pd.DataFrame
    rows: pd.DataFrame
    rules: pd.DataFrame
    words: pd.DataFrame | None = None
    tree: ClusterTree | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return `clusters`, with one row per cluster."""
        return self.clusters

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict that JSON can represent.

        A table becomes a list of dicts, one per row, with None for missing values. The
        tree becomes a dict with the keys "accuracy", "text" and "leaves" (a table).
        """
        tables: dict[str, Any] = {"words": None, "tree": None}
        for name, table in vars(self).items():
            if isinstance(table, ClusterTree):
                tables[name] = table.to_dict()
            elif table is not None:
                plain = table.astype(object).where(table.notna(), None)
                tables[name] = plain.to_dict("records")
        return tables

    def __str__(self) -> str:
        """Return the sentences of all clusters, one per line."""
        return "\n".join(self.clusters["sentence"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the sentences, rules, tree and columns as HTML."""
        lists = ""
        for table in (self.clusters, self.rules):
            items = "".join(f"<li>{escape(text)}</li>" for text in table["sentence"])
            lists += f"<ul>{items}</ul>"
        if self.tree is not None:
            lists += f"<pre>{escape(str(self.tree))}</pre>"
        return f"{lists}{self.columns.to_html(index=False, max_rows=30)}"


class Sources(NamedTuple):
    """The rows to explain, in three forms.

    Attributes
    ----------
    rows : Samples
        Rows with the columns of the model, before scaling.
    described : Samples
        The same rows with the columns that the explanation names, which are the columns
        of ``rows`` or of another table.
    with_gaps : Samples
        The rows of ``described``, in which missing values are NaN instead of filled.
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
    """Explain the clusters of rows.

    Parameters
    ----------
    engine : Engine
        Engine that runs the passes.
    sources : Sources
        The rows to explain.
    groups : Groups
        Cluster of each row.
    model : Model
        Fitted model.
    index : RowIndex
        Numbers and names of the rows in their source.
    most : int
        Maximum number of rows in the sample, which contains rows of all clusters.

    Returns
    -------
    Explanation
        Explanation of the clusters.
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
    if not issparse(values):
        means = means._replace(effect=effects_in_sample(sample, sizes.size))
    columns = column_table(engine, described, groups, means, sample)
    rules = find_rules(engine, described, groups, means, sample)
    tree = find_tree(described, groups, means, sample)
    counts = _counts(engine, sources.with_gaps, groups, rules, tree, sample)
    counted = None
    if tree is not None and counts.tree is not None:
        counted = counted_tree(tree, counts.tree, groups)
    words = word_table(described, groups, moments, sample)
    if described is not sources.rows:
        sample = sample._replace(X=as_matrix(sources.rows.gather(rows)))
    # Return the freed memory of the passes to the system before the model needs memory.
    return_freed_memory()
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
    return Explanation(
        clusters=clusters,
        columns=columns,
        rows=examples,
        rules=rule_table(groups, rules, counts.rules),
        words=words,
        tree=counted,
    )


class _Counts(NamedTuple):
    """Counts for the rules and the tree, computed from all rows."""

    rules: np.ndarray
    tree: TreeCounts | None


def _counts(
    engine: Engine,
    rows: Samples,
    groups: Groups,
    rules: list[tuple[int, Rule]],
    tree: Node | None,
    sample: Sample,
) -> _Counts:
    """Count the rows that meet the rules and reach the nodes of the tree.

    All rows are counted. This takes one pass, or no pass if the sample contains all
    rows.
    """
    passes: list[Any] = [RulesPass(rules, groups.codes)]
    if tree is not None:
        passes.append(TreePass(tree, groups.codes, groups.counts.size))
    if sample.codes.size == groups.codes.size:
        counts = [pass_.counts(sample.values, sample.codes) for pass_ in passes]
    elif tree is not None or any(rule for _, rule in rules):
        counts = engine.run(CombinedPass(tuple(passes)), rows, "rules")
    else:
        counts = [np.zeros((len(rules), 2), np.int64)]
    return _Counts(counts[0], counts[1] if tree is not None else None)
