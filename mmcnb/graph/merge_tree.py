"""Merge tree of a graph: nested clusters, with one partition per number of clusters."""

from dataclasses import dataclass

import numpy as np

NO_WEIGHT = 1e-100  # weight that replaces 0 between pieces without an edge
# A merge with a smaller link joins components of the graph that are connected at most
# by a bridge.
LEAST_LINK = 1e-6


@dataclass(frozen=True)
class MergeTree:
    """Nested clusters of nodes, with one partition for each number of clusters.

    Parameters
    ----------
    piece_of_node : ndarray of shape (p,), int64
        Index of each node's piece, from 0 to c - 1. Pieces are never divided.
    merges : ndarray of shape (c - 1, 2), int64
        The two parts that each merge joins. A part is either a piece, given by its
        index, or the result of merge t, given by c + t.
    links : ndarray of shape (c - 1,), float64
        Link of each merge, in descending order: w_ab 2m / (vol_a vol_b), where w_ab is
        the weight between the two parts, 2m is the volume of the graph, and vol_a is
        the volume of part a. The link is the resolution at which the two parts would
        merge.
    """

    piece_of_node: np.ndarray
    merges: np.ndarray
    links: np.ndarray

    @property
    def n_pieces(self) -> int:
        """Number of pieces, c."""
        return self.links.size + 1

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each node in the cut with ``n_clusters`` clusters.

        Clusters are numbered in the order of their first nodes.

        Examples
        --------
        >>> import numpy as np
        >>> from mmcnb.graph.merge_tree import MergeTree
        >>> merges = np.array([[1, 2], [0, 3]])
        >>> MergeTree(np.arange(3), merges, np.array([3.0, 0.5])).labels(2)
        array([0, 1, 1])
        """
        return self.without(np.arange(self.links.size) >= self.n_pieces - n_clusters)

    def without(self, is_undone: np.ndarray) -> np.ndarray:
        """Return the cluster of each node after some merges are undone.

        ``is_undone`` marks the merges to undo. All merges that involve the result of an
        undone merge are undone, too.
        """
        c = self.n_pieces
        # Use lists, because reading single elements of an array is slow.
        merges = self.merges.tolist()
        is_cut = [False] * c + is_undone.tolist()  # pieces stay whole
        for number, (a, b) in enumerate(merges, c):
            is_cut[number] |= is_cut[a] | is_cut[b]
        root = list(range(len(is_cut)))
        for number in range(len(is_cut) - 1, c - 1, -1):
            if is_cut[number]:
                continue
            a, b = merges[number - c]
            root[a] = root[number]
            root[b] = root[number]
        return by_first(np.array(root)[self.piece_of_node])

    def cluster_of_piece(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each piece when the tree is cut into ``n_clusters``.

        Clusters are numbered in order of decreasing number of nodes.
        """
        labels = self.labels(n_clusters)
        by_size = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.argsort(by_size)
        clusters = np.empty(self.n_pieces, np.int64)
        clusters[self.piece_of_node] = rank[labels]
        return clusters

    def n_at(self, link: float) -> int:
        """Return the number of clusters after all merges with a link >= ``link``."""
        return int(self.n_pieces - np.count_nonzero(self.links >= link))

    def sums(self, of_nodes: np.ndarray) -> np.ndarray:
        """Sum the values of the nodes in each piece and in the result of each merge.

        The sums of the pieces come first.
        """
        c = self.n_pieces
        of_pieces = np.bincount(self.piece_of_node, of_nodes)
        sums = np.append(of_pieces, np.zeros(c - 1))
        for t, parts in enumerate(self.merges, c):
            sums[t] = sums[parts].sum()
        return sums

    def merge_of_pieces(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the index of the merge that joins each pair of different pieces."""
        c = self.n_pieces
        joined_by = np.zeros((c, c), np.int64)
        # The pieces in each part. The parts that result from merges are appended below.
        pieces = [np.array([piece]) for piece in range(c)]
        for t, (a, b) in enumerate(self.merges):
            left = pieces[a]
            right = pieces[b]
            joined_by[np.ix_(left, right)] = t
            pieces.append(np.append(left, right))
        joined_by += joined_by.T
        return joined_by[starts, ends]

    def linkage(self) -> np.ndarray:
        """Return SciPy's linkage matrix, of shape (c - 1, 4), with pieces as leaves.

        The height of a merge is 1 / link. Components of the graph are joined at twice
        the largest height within a component.
        """
        joins_components = self.links < LEAST_LINK
        heights = 1 / np.maximum(self.links, LEAST_LINK)
        heights[joins_components] = 2 * heights[~joins_components].max(initial=0.5)
        # Each node is weighted by its share of a piece, so sums are numbers of pieces.
        shares = 1 / np.bincount(self.piece_of_node)[self.piece_of_node]
        n_leaves = np.rint(self.sums(shares)[self.n_pieces :])
        parts = np.sort(self.merges, axis=1)
        return np.column_stack([parts, heights, n_leaves])


def by_first(labels: np.ndarray) -> np.ndarray:
    """Renumber clusters in the order of their first nodes.

    Labels must be nonnegative integers, but need not be consecutive.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.merge_tree import by_first
    >>> by_first(np.array([7, 7, 2]))
    array([0, 0, 1])
    """
    places = np.arange(labels.size)
    first = np.full(labels.max(initial=-1) + 1, labels.size)
    first[labels[::-1]] = places[::-1]  # if labels repeat, the last assignment counts
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return np.asarray(rank[labels])


def merged(piece_of_node: np.ndarray, weights: np.ndarray) -> MergeTree:
    """Merge pieces by the largest link, with the nearest-neighbour chain algorithm.

    Ties go to the first piece. Pieces without an edge between them merge last, and
    among these, pieces with small volumes merge first.

    Parameters
    ----------
    piece_of_node : ndarray of shape (p,), int64
        Piece of each node.
    weights : ndarray of shape (c, c)
        Symmetric weights between the pieces; the diagonal has the weight of each piece
        with itself. The array is overwritten.

    Returns
    -------
    MergeTree
        The merge tree, with merges in order of decreasing link.

    References
    ----------
    T. Bonald et al., Hierarchical graph clustering using node pair sampling.
    """
    c = weights.shape[0]
    volumes = np.maximum(weights.sum(axis=1), NO_WEIGHT)
    total = volumes.sum()
    # Each row of the weights is a cluster. ``number`` is its index in
    # `MergeTree.merges`, or -1 if the cluster was merged into another row. A weight of
    # -1 excludes a pair: a cluster with itself, and a cluster with a merged row.
    number = np.arange(c)
    np.fill_diagonal(weights, -1.0)
    link_of = np.full(2 * c, np.inf)  # indexed by piece, then by merge
    merges = list[tuple[int, int]]()
    chain = list[int]()
    while len(merges) < c - 1:
        if not chain:
            chain.append(int(np.argmax(number >= 0)))
        last = chain[-1]
        # w_ab 2m / (vol_a vol_b)
        to_last = np.where(weights[last] == 0, NO_WEIGHT, weights[last])
        links = to_last * (total / volumes[last]) / volumes
        nearest = int(links.argmax())
        if len(chain) == 1 or links[chain[-2]] < links[nearest]:
            chain.append(nearest)
            continue
        into = chain[-2]
        del chain[-2:]
        new = c + len(merges)
        merges.append((number[last], number[into]))
        # Limit the link, because rounding may make it larger than the links of the
        # merges below it.
        below = min(link_of[number[last]], link_of[number[into]])
        link_of[new] = min(links[into], below)
        _join_rows(weights, into, last)
        volumes[into] += volumes[last]
        number[into] = new
        number[last] = -1
    pairs = np.array(merges, np.int64).reshape(-1, 2)
    return _by_falling_link(piece_of_node, pairs, link_of[c : 2 * c - 1])


def _join_rows(weights: np.ndarray, into: int, last: int) -> None:
    """Add the weights of cluster ``last`` to cluster ``into``, and remove ``last``."""
    weights[into] += weights[last]
    weights[:, into] = weights[into]
    weights[into, into] = -1.0
    weights[last] = -1.0
    weights[:, last] = -1.0


def _by_falling_link(
    piece_of_node: np.ndarray, merges: np.ndarray, links: np.ndarray
) -> MergeTree:
    """Return the tree with its merges sorted by decreasing link.

    The sort is stable, so a merge stays after the merges whose results it joins.
    """
    c = links.size + 1
    order = np.argsort(-links, kind="stable")
    rank = np.argsort(order)
    new_number = np.append(np.arange(c), c + rank)  # new number of each piece and merge
    renumbered = new_number[merges]
    return MergeTree(piece_of_node, renumbered[order], links[order])
