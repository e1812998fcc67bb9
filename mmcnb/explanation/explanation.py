"""Explain what sets clusters apart, with tables and a sentence for each cluster."""

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
    """An explanation of what sets clusters apart.

    Printing an explanation shows one sentence per cluster. A notebook displays the
    sentences, `rules`, the `tree` and `columns`.

    Attributes
    ----------
    clusters : DataFrame
        One row per cluster, with noise (-1) first: "cluster", its number of "rows" and
        their "share" of all rows, the "nearest" other cluster, the mean "margin"
        between the two clusters in the rows of the cluster, and the "sentence".
    columns : DataFrame
        For each cluster, the columns with the largest effects (at most 50), sorted by
        how well they separate the cluster from other rows.

        "column" is the name of a column, or its number if it has no name. "kind" is
        "number", "date" (in seconds since 1970), "flag" (0 or 1, so that means are
        shares), "time" (in seconds), "text" or "order" (ordered texts and ratings). A
        time of day has two rows with the "category" "sin" and "cos", the coordinates of
        its position on a circle. For "text", the figures describe one "category", which
        a row either has or does not have. For "order", "category" contains the levels
        that set the cluster apart, such as "4 or 5 of 5", "position" is "low", "medium"
        or "high", and "share" and "others_share" are the shares of rows with these
        levels in the cluster and among other rows.

        Filled gaps are ignored, so a column without other values has NaN. The following
        figures are computed from all rows: "gaps" and "others_gaps", the shares of
        missing values, and "mean" and "others_mean". The other figures are computed
        from a weighted sample: "effect", the difference of the two means in standard
        deviations of the column; "median" and "others_median"; "auc", the probability
        that a row of the cluster has a larger value than another row; "near", the
        probability that a row of the cluster is nearer to the median of the cluster
        than another row; and "spread" and "others_spread", the median distances from
        the median of the cluster.

        Extreme values could hide a column. For the effect, values are therefore clipped
        to a maximum distance from the median of the column: ten times the median
        distance of the values that differ from it. For sparse columns, the effect is
        computed from all rows without clipping.
    rows : DataFrame
        For each cluster, up to three example rows of each "kind", with the "row"
        number, and the "name" if rows have names. "typical" rows have the smallest
        "score", the distance to the mean of the cluster, so the first typical row is
        the medoid in squared distances. Rows at the "edge" have the smallest margin to
        any other cluster. Rows with the largest margin of the cluster are not listed,
        so a cluster in which all margins are equal has no rows at the edge. "far" rows
        have the largest outlier scores; they are listed if the model has nodes. All
        example rows are from the sample.
    rules : DataFrame
        For each cluster, a "rule" of at most three "conditions" on columns that most
        rows of the cluster meet and few other rows meet, such as "orders > 12 and
        payment = invoice". A condition is a tuple of a name, an operator and a value.
        "coverage" is the share of the cluster that meets the rule, and "precision" the
        share of the "matching" rows that are in the cluster; both are computed from all
        rows. The "sentence" contains the rule and these figures. Rules are searched for
        in the sample, among the 50 columns with the largest effects. The rule is "" if
        no rule is better than a rule without conditions.
    words : DataFrame or None
        The ten columns that mark each cluster: "cluster", "word" and "score". This
        table exists for sparse rows without negative values if their columns have
        names, for example counts of words; otherwise it is None. The score is a
        class-based TF-IDF: the share of the word among all words of the cluster, times
        log(1 + mean number of words in a cluster / number of occurrences of this word
        in all clusters).
    tree : ClusterTree or None
        A decision tree of at most four levels that predicts the clusters. Printing the
        tree shows its conditions, in the same form as in rules, and the cluster that
        each leaf predicts. ``tree.leaves`` is the table of its leaves, and
        ``tree.accuracy`` the share of rows for which the prediction is correct; both
        are counted on all rows. The tree is grown on the sample. It is None if there is
        only one cluster, if no split separates clusters, or if there are more than 50
        columns that have no names or are sparse.

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
        """Return the tables as lists of rows for JSON, with None for missing values.

        The tree is a dict with the keys "accuracy", "text" and "leaves" (a table).
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
        """Return the sentences, one line per cluster."""
        return "\n".join(self.clusters["sentence"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the sentences, rules, tree and columns, with all names escaped."""
        lists = ""
        for table in (self.clusters, self.rules):
            items = "".join(f"<li>{escape(text)}</li>" for text in table["sentence"])
            lists += f"<ul>{items}</ul>"
        if self.tree is not None:
            lists += f"<pre>{escape(str(self.tree))}</pre>"
        return f"{lists}{self.columns.to_html(index=False, max_rows=30)}"


class Sources(NamedTuple):
    """The rows to read for an explanation, in three forms.

    Attributes
    ----------
    rows : Samples
        The rows as the model reads them, before scaling.
    described : Samples
        The same rows with the columns that the explanation names. These are the columns
        of ``rows`` or of another table.
    with_gaps : Samples
        The rows of ``described``, with NaN instead of filled gaps.
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
        Engine that runs the passes.
    sources : Sources
        The rows, and the columns that the explanation names.
    groups : Groups
        The cluster of each row.
    model : Model
        The fitted model.
    index : RowIndex
        Numbers and names of the rows in their source.
    most : int
        Largest number of rows in the sample of all clusters.

    Returns
    -------
    Explanation
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
    # Free the memory of the pass before the model needs memory.
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
    """The counts of the rules and of the tree on all rows."""

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
    """Count on all rows, in one pass unless the sample contains all rows."""
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
