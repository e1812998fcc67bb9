"""The merge tree of a graph: nested clusters, one partition for each number."""

from dataclasses import dataclass

import numpy as np

NO_WEIGHT = 1e-100  # of nodes without an edge
# Two clusters with a smaller link are components: only a bridge joins them.
LEAST_LINK = 1e-6


@dataclass(frozen=True)
class MergeTree:
    """Nested clusters of nodes, one partition for each number up to that of the pieces.

    Parameters
    ----------
    piece_of_node : ndarray of shape (p,), int64
        Piece of each node, numbered by first nodes.
    merges : ndarray of shape (c - 1, 2), int64
        The two parts that each merge joins: a piece, or c plus the number of an earlier
        merge.
    links : ndarray of shape (c - 1,), float64
        Link of each merge, falling: w_ab 2m / (vol_a vol_b), the resolution at which
        the two would merge.
    """

    piece_of_node: np.ndarray
    merges: np.ndarray
    links: np.ndarray

    @property
    def n_pieces(self) -> int:
        """Number of pieces, c."""
        return self.links.size + 1

    def labels(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each node in the cut with so many clusters.

        They are numbered by first nodes.

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
        """Return the cluster of each node if some merges, and all above, are undone."""
        c = self.n_pieces
        # Lists, because single elements of an array are slow to read.
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
        """Return the cluster of each piece in the cut with so many clusters.

        They are numbered by falling numbers of nodes.
        """
        labels = self.labels(n_clusters)
        by_size = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.argsort(by_size)
        clusters = np.empty(self.n_pieces, np.int64)
        clusters[self.piece_of_node] = rank[labels]
        return clusters

    def n_at(self, link: float) -> int:
        """Return the number of clusters in the cut at a link."""
        return int(self.n_pieces - np.count_nonzero(self.links >= link))

    def sums(self, of_nodes: np.ndarray) -> np.ndarray:
        """Return sums of a figure over the nodes of each piece, then of each merge."""
        c = self.n_pieces
        of_pieces = np.bincount(self.piece_of_node, of_nodes)
        sums = np.append(of_pieces, np.zeros(c - 1))
        for t, parts in enumerate(self.merges, c):
            sums[t] = sums[parts].sum()
        return sums

    def merge_of_pieces(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the number of the merge that joins each pair of different pieces."""
        c = self.n_pieces
        joined_by = np.zeros((c, c), np.int64)
        pieces = [np.array([piece]) for piece in range(c)]  # then those of each merge
        for t, (a, b) in enumerate(self.merges):
            left = pieces[a]
            right = pieces[b]
            joined_by[np.ix_(left, right)] = t
            pieces.append(np.append(left, right))
        joined_by += joined_by.T
        return joined_by[starts, ends]

    def linkage(self) -> np.ndarray:
        """Return SciPy's linkage matrix, of shape (c - 1, 4), whose leaves are pieces.

        The height of a merge is 1 / link; components join at twice the largest other
        height.
        """
        joins_components = self.links < LEAST_LINK
        heights = 1 / np.maximum(self.links, LEAST_LINK)
        heights[joins_components] = 2 * heights[~joins_components].max(initial=0.5)
        # The shares of the nodes in their piece sum to 1.
        shares = 1 / np.bincount(self.piece_of_node)[self.piece_of_node]
        n_leaves = np.rint(self.sums(shares)[self.n_pieces :])
        parts = np.sort(self.merges, axis=1)
        return np.column_stack([parts, heights, n_leaves])


def by_first(labels: np.ndarray) -> np.ndarray:
    """Number clusters, whose labels are integers from 0, by their first nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.merge_tree import by_first
    >>> by_first(np.array([7, 7, 2]))
    array([0, 0, 1])
    """
    places = np.arange(labels.size)
    first = np.full(labels.max(initial=-1) + 1, labels.size)
    first[labels[::-1]] = places[::-1]  # of equal labels the last assignment stays
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return np.asarray(rank[labels])


def merged(piece_of_node: np.ndarray, weights: np.ndarray) -> MergeTree:
    """Merge pieces by the largest link, found by the chain of nearest neighbours.

    Of equal links the first piece counts. Of pieces without an edge between them, those
    of small volume merge first.

    Parameters
    ----------
    piece_of_node : ndarray of shape (p,), int64
        Piece of each node.
    weights : ndarray of shape (c, c)
        Weights between the pieces, symmetric, with the weight of each with itself. They
        are overwritten.

    Returns
    -------
    MergeTree

    References
    ----------
    T. Bonald et al., Hierarchical graph clustering using node pair sampling.
    """
    c = weights.shape[0]
    volumes = np.maximum(weights.sum(axis=1), NO_WEIGHT)
    total = volumes.sum()
    # A row of the weights is a cluster: its number as in `MergeTree.merges`, or -1 of
    # one that has merged into another row. A weight of -1 is no neighbour.
    number = np.arange(c)
    np.fill_diagonal(weights, -1.0)
    link_of = np.full(2 * c, np.inf)  # by number
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
        # Rounding may give a merge a larger link than those below it.
        below = min(link_of[number[last]], link_of[number[into]])
        link_of[new] = min(links[into], below)
        _join_rows(weights, into, last)
        volumes[into] += volumes[last]
        number[into] = new
        number[last] = -1
    pairs = np.array(merges, np.int64).reshape(-1, 2)
    return _by_falling_link(piece_of_node, pairs, link_of[c : 2 * c - 1])


def _join_rows(weights: np.ndarray, into: int, last: int) -> None:
    """Add the weights of a cluster to those of another one, and remove the first."""
    weights[into] += weights[last]
    weights[:, into] = weights[into]
    weights[into, into] = -1.0
    weights[last] = -1.0
    weights[:, last] = -1.0


def _by_falling_link(
    piece_of_node: np.ndarray, merges: np.ndarray, links: np.ndarray
) -> MergeTree:
    """Return the tree of merges in any order; a merge comes after those below it."""
    c = links.size + 1
    order = np.argsort(-links, kind="stable")
    rank = np.argsort(order)
    new_number = np.append(np.arange(c), c + rank)  # of each piece and merge
    renumbered = new_number[merges]
    return MergeTree(piece_of_node, renumbered[order], links[order])
