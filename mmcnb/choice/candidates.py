"""Candidates: partitions of the nodes of a graph, found in different ways."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from mmcnb.choice.judge import Score, judge
from mmcnb.choice.known import KnownRows, held_out, spread
from mmcnb.errors import InputError
from mmcnb.graph.communities import communities_at
from mmcnb.graph.genie import genie_at, spanning_tree
from mmcnb.graph.layout import kmeans_in_layout, layout
from mmcnb.graph.neighbours import NodeGraph

NEIGHBOURS = 10, 15, 25  # of the graphs whose communities are candidates
GINI_THRESHOLDS = 0.1, 0.3, 0.5, 0.7
MARGIN = "margin"
KNOWN = "known labels"
LAYOUT = "layout"
TREE = "merge tree"

Maker = Callable[
    [], Any
]  # gives labels of the nodes, or a pair of labels and a model, or None


@dataclass(frozen=True)
class Candidate:
    """A partition of the nodes, and how it is judged.

    Parameters
    ----------
    name : str
        How it was found.
    labels : ndarray of shape (p,), int64
        Cluster of each node.
    score : Score
        What the judge gives it.
    seconds : float, default=0.0
        Time that it took.
    broken : float or None, default=None
        Share of the known labels that it breaks.
    model : object, default=None
        What labels rows by it; None is the vote of the nodes.
    """

    name: str
    labels: np.ndarray
    score: Score
    seconds: float = 0.0
    broken: float | None = None
    model: Any = None

    def to_dict(self, sizes: np.ndarray) -> dict[str, Any]:
        """A row of the report; the sizes of the nodes give those of the clusters."""
        shares = np.bincount(self.labels, sizes) / sizes.sum()
        row = {
            "candidate": self.name,
            **self.score._asdict(),
            "shares": np.sort(shares)[::-1].tolist(),
        }
        return row | {"broken": self.broken, "seconds": self.seconds}


def makers(graph: NodeGraph, n_clusters: int, seed: int) -> list[tuple[str, Maker]]:
    """The candidates that the graph gives, each with its name."""
    tree = cache(lambda: spanning_tree(graph.lengths()))  # made in a thread, not before

    def communities(n_neighbors: int) -> np.ndarray | None:
        return communities_at(*graph.edges(n_neighbors), n_clusters, seed)

    def linkage(gini: float) -> np.ndarray | None:
        return genie_at(tree(), graph.sizes, n_clusters, gini)

    def in_layout() -> np.ndarray | None:
        return kmeans_in_layout(
            layout(graph.edges(15)[0], seed), graph.sizes, n_clusters, seed
        )

    found: list[tuple[str, Maker]] = [
        *(
            (f"communities {count}", partial(communities, count))
            for count in NEIGHBOURS
        ),
        *((f"linkage {gini}", partial(linkage, gini)) for gini in GINI_THRESHOLDS),
    ]
    return [*found, (LAYOUT, in_layout)] if graph.is_unit else found


def candidates(
    graph: NodeGraph,
    n_clusters: int,
    made: Sequence[tuple[str, Maker]],
    each: Any = map,
) -> tuple[list[Candidate], dict[str, str]]:
    """Judged candidates, in the order of their makers, which run side by side.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    n_clusters : int
        How many clusters each candidate must have.
    made : sequence of (str, callable)
        Names, and what makes the candidates.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    candidates : list of Candidate
        Those with so many clusters.
    left_out : dict of str to str
        The names of all others, with the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.candidates import candidates, makers
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).normal(size=(60, 2)) + np.repeat([0, 9], 30)[:, None]
    >>> graph = node_graph(rows, None, np.random.RandomState(0))
    >>> found, left_out = candidates(graph, 2, makers(graph, 2, 0))
    >>> len(found), left_out
    (7, {})
    """
    each = (
        each if len(made) > 1 else map
    )  # one alone has all threads for its own passes
    backwards = list(
        each(partial(_judged, graph, n_clusters), made[::-1])
    )  # the slowest comes last
    judged = list(zip([name for name, _ in made], backwards[::-1], strict=True))
    found = [one for _, one in judged if isinstance(one, Candidate)]
    left_out = {name: one for name, one in judged if isinstance(one, str)}
    if not found:
        reasons = ", ".join(
            f"{name}: {reason.removesuffix('.')}" for name, reason in left_out.items()
        )
        raise InputError(
            f"no candidate has {n_clusters} clusters ({reasons}); give fewer clusters."
        )
    return found, left_out


def with_known(
    graph: NodeGraph, known: KnownRows | None, n_clusters: int, found: list[Candidate]
) -> list[Candidate]:
    """Candidates with the share of the known labels that each breaks, and perhaps one from these labels.

    Of that one, the labels of each half are compared with a partition from the other
    half.
    """
    if known is None:
        return found
    found = [
        replace(one, broken=known.broken(one.labels[graph.node_of])) for one in found
    ]
    labels = spread(graph, known, n_clusters)
    if labels is None or np.unique(labels).size < n_clusters:
        return found
    broken = held_out(graph, known, n_clusters)
    return [*found, Candidate(KNOWN, labels, judge(graph, labels), broken=broken)]


def _judged(
    graph: NodeGraph, n_clusters: int, made: tuple[str, Maker]
) -> Candidate | str:
    """A candidate, or why there is none."""
    name, make = made
    started = time.perf_counter()
    try:
        result = make()
    except (
        InputError,
        IndexError,
        ValueError,
    ) as error:  # of numbers beyond its range: no end of the fit
        return str(error) or type(error).__name__
    labels, model = result if isinstance(result, tuple) else (result, None)
    if labels is None or np.unique(labels).size != n_clusters:
        return f"it finds no {n_clusters} clusters."
    score = judge(graph, labels)
    return Candidate(name, labels, score, time.perf_counter() - started, model=model)
