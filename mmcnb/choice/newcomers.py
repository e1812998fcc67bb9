"""Find new groups in an update: groups of new rows outside all earlier clusters."""

import numpy as np
from scipy.special import bdtr

from mmcnb.choice.inner_splits import LEAST_GROUP
from mmcnb.choice.number import NumberedStructure
from mmcnb.choice.small import far_groups
from mmcnb.choice.structure import ScoredPartition
from mmcnb.graph.inverted_file import exact_index
from mmcnb.graph.neighbours import N_NEIGHBORS, NodeGraph, NodeSearch
from mmcnb.graph.sparse_nodes import SparseSearch
from mmcnb.samples.matrix import Matrix

# A new row stands out if five other new rows are nearer to it than any node. Because
# there are at least four nodes for each compared row, fewer than 1 % of the rows stand
# out if they have the same distribution as the nodes. This rate is highest in tables
# with many columns: the axes are fitted to the noise of the nodes, so that new rows are
# nearer to each other than to nodes.
NEAREST_NEW = 5
NODES_PER_ROW = 4
MOST_COMPARED = 2000
# A group is new if it has at most EARLIER_SHARE times as many earlier nodes as expected
# by chance, and if so few earlier nodes have a probability below CHANCE. In addition,
# the neighbours of its new nodes must include at most NEAR_SHARE times as many earlier
# nodes as expected. This excludes clusters that have moved slightly: the neighbours of
# their new nodes include about half of the expected number of earlier nodes.
EARLIER_SHARE = 0.25
CHANCE = 1e-6
NEAR_SHARE = 0.1
JOINING_ROUNDS = 5


def are_among_new(points: Matrix, nodes: NodeSearch) -> np.ndarray:
    """Mark the new rows that are nearer to five other new rows than to any node.

    If new rows have the same distribution as the nodes, fewer than 1 % are marked.

    Parameters
    ----------
    points : ndarray or csr_array of shape (m, c)
        New rows, projected on the axes of the nodes, in random order. Only the first s
        rows are compared, where s is at most 2,000 and at most a quarter of the number
        of nodes.
    nodes : InvertedFileIndex or SparseSearch
        Search index of the nodes.

    Returns
    -------
    ndarray of shape (s,), bool
        True for each compared row that is marked; all False if s is at most 5.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.newcomers import are_among_new
    >>> from mmcnb.graph.inverted_file import exact_index
    >>> random = np.random.RandomState(0)
    >>> nodes = exact_index(random.normal(size=(400, 2)))
    >>> same = are_among_new(random.normal(size=(100, 2)), nodes)
    >>> other = are_among_new(random.normal(9.0, size=(100, 2)), nodes)
    >>> bool(same.mean() < 0.02), bool(other.mean() > 0.9)
    (True, True)
    """
    n_compared = min(
        points.shape[0], nodes.nodes.shape[0] // NODES_PER_ROW, MOST_COMPARED
    )
    if n_compared <= NEAREST_NEW:
        return np.zeros(n_compared, bool)
    points = points[:n_compared]
    index = SparseSearch if hasattr(points, "indptr") else exact_index
    _, to_new = index(points).nearest(points, NEAREST_NEW + 1)
    _, to_nodes = nodes.nearest(points, 1)
    return np.asarray(to_new[:, NEAREST_NEW] < to_nodes[:, 0])


def new_groups(
    found: NumberedStructure, is_new: np.ndarray, is_far: np.ndarray
) -> np.ndarray:
    """Return the groups of new nodes that are outside all earlier clusters.

    Candidates are the groups of the merge tree, and the clusters of all partitions that
    a new search has found. A candidate is a new group if the candidate itself, and also
    the neighbours of its new nodes, include far fewer earlier nodes than expected by
    chance. A group of the merge tree is also new if at least half of its nodes are far
    from all earlier nodes.

    Parameters
    ----------
    found : NumberedStructure
        Result of a new search in a graph of the earlier nodes and the new nodes.
    is_new : ndarray of shape (p,), bool
        Mask of the nodes that are new rows.
    is_far : ndarray of shape (p,), bool
        Mask of the new nodes that are far from all earlier nodes.

    Returns
    -------
    ndarray of shape (p,), int64
        Number of the new group of each node, from 1; 0 for earlier nodes, and for new
        nodes outside the new groups.
    """
    graph = found.structure.graph
    groups = found.structure.groups
    numbers = far_groups(groups, is_far)
    partitions = sorted(found.structure.partitions, key=_number)
    all_labels = [partition.labels for partition in partitions]
    for labels in (groups, found.number.labels, *all_labels):
        for group in np.flatnonzero(_are_new(graph, labels, is_new)):
            inside = labels == group
            known = numbers[inside & (numbers > 0)]
            number = numbers.max() + 1
            if known.size:
                number = np.bincount(known).argmax()
            numbers[inside & (numbers == 0)] = number
    numbers = _with_nearest(graph, np.where(is_new, numbers, 0), is_new)
    return renumbered(numbers, np.unique(numbers[numbers > 0]))


def renumbered(groups: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Renumber the groups in ``taken`` as 1, 2, ..., and all other groups as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.newcomers import renumbered
    >>> renumbered(np.array([0, 3, 1, 2, 3]), np.array([2, 3]))
    array([0, 2, 0, 1, 2])
    """
    numbers = np.zeros(int(groups.max()) + 1, np.int64)
    numbers[taken] = 1 + np.arange(taken.size)
    return numbers[groups]


def _number(partition: ScoredPartition) -> int:
    return partition.n_clusters


def _are_new(graph: NodeGraph, labels: np.ndarray, is_new: np.ndarray) -> np.ndarray:
    """Mark the clusters that have far fewer earlier nodes than expected by chance.

    Earlier nodes must be rare in the cluster and among the neighbours of its new nodes.
    A marked cluster also has a minimum number of new nodes.
    """
    share = np.mean(~is_new)
    sizes = np.bincount(labels)
    n_new = np.bincount(labels, is_new)
    n_earlier = sizes - n_new
    is_rare = n_earlier <= EARLIER_SHARE * share * sizes
    is_rare &= bdtr(n_earlier, sizes, share) < CHANCE
    is_earlier_near = ~is_new[graph.numbers[:, :N_NEIGHBORS]]
    near = np.bincount(labels, is_new * is_earlier_near.mean(axis=1))
    is_apart = near <= NEAR_SHARE * share * n_new
    return np.asarray(is_rare & is_apart & (n_new >= LEAST_GROUP))


def _with_nearest(
    graph: NodeGraph, groups: np.ndarray, is_new: np.ndarray
) -> np.ndarray:
    """Add ungrouped new nodes to the groups to which they are linked most strongly.

    A new node stays ungrouped if its links to earlier nodes are stronger than its links
    to each group. The groups grow in at most five rounds.
    """
    if not groups.any():
        return groups
    weights, _ = graph.edges()
    for _ in range(JOINING_ROUNDS):
        is_free = is_new & (groups == 0)
        free = np.flatnonzero(is_free)
        members = np.eye(int(groups.max()) + 1)[groups]
        members[free] = 0
        nearest = (weights[free] @ members).argmax(axis=1)
        if not nearest.any():
            break
        groups[free] = nearest
    return groups
