"""Assess how far a partition can be trusted: the reasons to doubt it, and a level."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mmcnb.choice.candidates import Candidate
from mmcnb.choice.inner_splits import split
from mmcnb.choice.number import GATE, ChosenNumber
from mmcnb.choice.structure import ScoredPartition, Structure, agreement
from mmcnb.columns.single import SingleColumns

# These constants were fitted on data sets that are not part of the study
# `python -m benchmarks choice`, which prints how often each level is right.
HIGH_AGREEMENT = 0.8
LIKELY_NUMBER = 0.9
LOW_SUM = 3.5  # trust is low if J + 1.5 agreement is below this
AGREEMENT_WEIGHT = 1.5
LINE_DIMENSION = 1.1  # along a line, gaps between rows resemble gaps between clusters
# A partition with fewer clusters than requested is clearer if both its score and its J
# are larger by more than this. Merging clear clusters may raise J, but does not raise
# the score.
CLEARER = 1.0
# A cluster is tiny if its number of rows is below both limits.
TINY_SHARE = 0.01  # share of all rows
TINY_SHARE_OF_MEAN = 0.2  # share of the mean number of rows in a cluster
REMEDY = "try other columns, another scale or another n_clusters"


@dataclass(frozen=True)
class Doubts:
    """Reasons to doubt a partition.

    Parameters
    ----------
    sentences : sequence of str, default=()
        The doubts, the most serious first: weak evidence, clusters that can be split
        further, a clearer partition with fewer clusters, an uncertain number of
        clusters.
    no_structure : bool, default=False
        Whether the clusters are no clearer than in rows without structure.
    """

    sentences: Sequence[str] = ()
    no_structure: bool = False


def doubts_about(
    structure: Structure, labels: np.ndarray, number: ChosenNumber
) -> Doubts:
    """Return the reasons to doubt a partition.

    Parameters
    ----------
    structure : Structure
        Partitions of the nodes.
    labels : ndarray of shape (p,), int64
        The chosen partition.
    number : ChosenNumber
        The number of clusters, and how it was chosen.

    Returns
    -------
    Doubts
    """
    if labels.max() == 0:
        reason = number.reason.removesuffix(".")
        return Doubts([reason or "one cluster contains all rows, as requested"])
    chosen = structure.scored(labels)
    z = chosen.z
    divided = split(structure.groups, labels, structure.graph.counts)
    n_more = int(divided.max() - labels.max())
    sentences = []
    if z <= GATE:
        sentences.append(
            "the clusters are no clearer than in rows without structure "
            f"(evidence {z:.1f}; more than {GATE} is needed)"
        )
    elif z < 2 * GATE:
        sentences.append(
            f"the evidence for clusters is weak ({z:.1f}; more than {2 * GATE:g} is "
            "clear)"
        )
    elif structure.d < LINE_DIMENSION:
        sentences.append(
            "the rows are nearly on a line, where gaps between single rows resemble "
            "gaps between clusters"
        )
    if n_more > 0:
        sentences.append(f"splitting each cluster again suggests {n_more} more")
    if not number.reason:  # the number was requested
        fewer = _clearer_with_fewer(structure, chosen)
        if fewer is not None:
            sentences.append(
                f"{fewer.n_clusters} clusters are clearer than the requested "
                f"{chosen.n_clusters} (J {fewer.J:.2f} instead of {chosen.J:.2f})"
            )
    if number.agreement < LIKELY_NUMBER:
        sentences.append(
            f"the expected agreement with the true partition is {number.agreement:.2f}"
        )
    return Doubts(sentences, no_structure=z <= GATE)


def _clearer_with_fewer(
    structure: Structure, chosen: ScoredPartition
) -> ScoredPartition | None:
    """Return a partition with fewer clusters that is much clearer, or None.

    Return None if there are at least as many groups of nodes as chosen clusters,
    because a partition with fewer clusters may then merge real groups. A cluster of
    equal rows counts as a group.
    """
    n_of_equal_rows = np.count_nonzero(np.bincount(chosen.labels) == 1)
    n_groups = structure.groups.max() + 1 + n_of_equal_rows
    if n_groups >= chosen.n_clusters:
        return None
    clearer = [
        partition
        for partition in structure.partitions
        if partition.n_clusters < chosen.n_clusters
        and partition.z > GATE
        and partition.score > chosen.score + CLEARER
        and partition.J > chosen.J + CLEARER
    ]
    return max(clearer, key=lambda partition: partition.score, default=None)


def tiny_clusters(labels: np.ndarray, rows_of_node: np.ndarray) -> str:
    """Return a doubt if most of the clusters are tiny, otherwise an empty string.

    Tiny clusters are often tails or outliers. Among many clusters of about equal size,
    no cluster is tiny.

    Parameters
    ----------
    labels : ndarray of shape (p,), int64
        The chosen partition.
    rows_of_node : ndarray of shape (p,)
        Number of rows that each node represents.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.trust import tiny_clusters
    >>> tiny_clusters(np.arange(3), np.array([998.0, 1.0, 1.0]))
    '2 of 3 clusters have fewer than 1 % of the rows each'
    """
    sizes = np.bincount(labels, rows_of_node)
    least = min(TINY_SHARE * sizes.sum(), TINY_SHARE_OF_MEAN * sizes.mean())
    n_tiny = int(np.count_nonzero(sizes < least))
    if 2 * n_tiny <= sizes.size:
        return ""
    share = 100 * least / sizes.sum()
    return (
        f"{n_tiny} of {sizes.size} clusters have fewer than {share:.2g} % of the rows "
        "each"
    )


class Without(NamedTuple):
    """Result of a search without the columns that alone determine the clusters.

    Attributes
    ----------
    n_clusters : int
        Number of clusters that this search found.
    agreement : float
        Adjusted Rand index of the clusters found and the chosen clusters, at least 0.
    """

    n_clusters: int
    agreement: float

    def sentence(self, pronoun: str) -> str:
        """Return a clause for a message; ``pronoun`` refers to the left-out columns."""
        if self.n_clusters == 1:
            return f"without {pronoun} there is one cluster"
        return (
            f"without {pronoun} there are {self.n_clusters} clusters, which agree with "
            f"these by {self.agreement:.2f}"
        )


class Trust(NamedTuple):
    """How far a partition can be trusted.

    Attributes
    ----------
    level : {"low", "medium", "high"}
        Level of trust.
    reason : str
        One sentence that explains the level.
    agreement : float
        Weighted mean of the adjusted Rand indices of the partition and each other
        candidate. The logarithm of the weight is J of the candidate minus J of the
        partition.
    columns : list of str or int
        Columns that alone determine the clusters; empty if there are none.
    without : Without or None
        Result of a search without these columns; None if there was no such search.
    """

    level: str
    reason: str
    agreement: float = 0.0
    columns: Sequence[Any] = ()
    without: Without | None = None

    def with_doubt(self, doubt: str) -> "Trust":
        """Return the trust with a further doubt.

        The level becomes "medium" if it was "high".
        """
        level = "medium" if self.level == "high" else self.level
        return self._replace(level=level, reason=f"{doubt}; {self.reason}")

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for the report."""
        entry = self._asdict() | {"columns": list(self.columns)}
        del entry["without"]
        if self.without is not None:
            entry["without"] = self.without._asdict()
        return entry


def trust(
    best: Candidate,
    others: Sequence[Candidate],
    single: SingleColumns | None = None,
    doubts: Doubts = Doubts(),
    without: Without | None = None,
) -> Trust:
    """Assess how far a partition can be trusted.

    Parameters
    ----------
    best : Candidate
        The chosen partition.
    others : sequence of Candidate
        All other candidates.
    single : SingleColumns or None, default=None
        Columns that alone determine the clusters; None if there are none.
    doubts : Doubts, default=Doubts()
        Reasons to doubt the partition.
    without : Without or None, default=None
        Result of a search without the columns of ``single``; None if there was no such
        search.

    Returns
    -------
    Trust
    """
    if best.n_clusters == 1:
        reasons = [*doubts.sentences, "there is one cluster"]
        return Trust("low", f"{reasons[0]}.")
    mean = mean_agreement(best, others)
    figures = "there is no other candidate"
    if others:
        figures = f"the agreement with other candidates is {mean:.2f}"
    figures += f", and J is {best.score.J:.2f}"
    if single is not None:
        reason = single.sentence
        if without is not None:
            reason += f"; {without.sentence(single.pronoun)}"
        return Trust("low", f"{reason}.", mean, single.names, without)
    if doubts.no_structure:
        return Trust("low", f"{doubts.sentences[0]}; {figures}.", mean)
    if others and mean >= HIGH_AGREEMENT and not doubts.sentences:
        return Trust("high", f"{figures}.", mean)
    if best.score.J + AGREEMENT_WEIGHT * mean < LOW_SUM:
        return Trust("low", f"{figures}; {REMEDY}.", mean)
    return Trust("medium", f"{'; '.join([*doubts.sentences, figures])}.", mean)


def mean_agreement(best: Candidate, others: Sequence[Candidate]) -> float:
    """Return the mean agreement of ``best`` with other candidates, weighted by exp(J).

    The result is 0 if there are no other candidates.
    """
    if not others:
        return 0.0
    differences = [min(other.score.J - best.score.J, 50.0) for other in others]
    weights = np.exp(differences)
    agreements = [agreement(best.labels, other.labels) for other in others]
    return float(weights @ np.array(agreements) / weights.sum())
