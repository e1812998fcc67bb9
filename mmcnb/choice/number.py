"""The number of clusters: the one whose best candidate has the largest J."""

from collections.abc import Iterable
from typing import Any

from mmcnb.choice.candidates import LAYOUT, candidates, makers
from mmcnb.choice.judge import judge
from mmcnb.errors import InputError
from mmcnb.graph.genie import spanning_tree
from mmcnb.graph.neighbours import NodeGraph


def best_number(
    graph: NodeGraph, numbers: Iterable[int], seed: int, each: Any = map
) -> tuple[int, list[dict[str, float]]]:
    """The number of clusters with the largest J, its information divided by log(k + 1).

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    numbers : iterable of int
        What to try, in rising order; of equal J the first counts.
    seed : int
        Seed of the candidates.
    each : callable, default=map
        Maps a function over items, perhaps in threads.

    Returns
    -------
    n_clusters : int
        The number taken.
    tried : list of dict
        ``n_clusters`` and ``J`` of each number that some candidate has.
    """
    tried, tree = list[dict[str, float]](), spanning_tree(graph.lengths())
    for k in numbers:
        try:
            made = [one for one in makers(graph, k, seed, tree) if one[0] != LAYOUT]
            found, _ = candidates(graph, k, made, each)
        except InputError:  # fewer nodes, or components
            continue
        tried.append({"n_clusters": k, "J": max(judge(graph, one.labels, k + 1).J for one in found)})
    if not tried:
        raise InputError("the rows fall into no two clusters; give rows that differ.")
    return int(max(tried, key=lambda one: one["J"])["n_clusters"]), tried
