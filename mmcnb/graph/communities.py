"""Communities of a graph by Louvain, as many as are asked for, and the tree of their merges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mmcnb.graph.nodes import check_fits

# so many a cluster are moved as wholes, but no more than one for so many nodes
PIECES = 8
NODES_A_PIECE = 8
# of the resolution
MOST_DOUBLINGS = 40
MOST_BISECTIONS = 40
NO_WEIGHT = 1e-100  # of nodes without an edge
LEAST_LINK = (
    1e-6  # two clusters with less are components: nothing but a bridge joins them
)

Graph = tuple[
    np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # CSR arrays, and the diagonal


def communities_at(
    graph: Any, loops: np.ndarray, n_clusters: int, seed: int
) -> np.ndarray | None:
    """Communities of a graph, exactly as many as are asked for.

    Louvain at a high resolution gives pieces. At a lower one it joins them to
    communities: the resolution is bisected until their number is right. Then single
    nodes move among the communities.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights above 0, without a diagonal. It may have several components.
    loops : ndarray of shape (p,)
        The diagonal: weight of each node with itself, at least 0.
    n_clusters : int
        Number of communities.
    seed : int
        Gives the order in which nodes look first.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Community of each node, numbered by first node; None if the graph does not fall
        into so many.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.communities import communities_at
    >>> pairs = np.array([[0.0, 5.0], [5.0, 0.0]])
    >>> weights = np.block([[pairs, np.eye(2)], [np.eye(2), pairs]])
    >>> communities_at(csr_array(weights), np.zeros(4), 2, seed=0)
    array([0, 0, 1, 1])
    """
    from mmcnb.graph import _louvain as kernels  # loads numba

    p = loops.shape[0]
    arrays = as_arrays(graph, loops)
    order = np.random.RandomState(seed).permutation(p)
    wanted = min(PIECES * n_clusters, max(n_clusters, p // NODES_A_PIECE))
    pieces, resolution = pieces_of(arrays, wanted, order)
    if (count := pieces.max() + 1) < n_clusters:
        return None
    joined, resolution = _joined(
        kernels.aggregate(*arrays, pieces, count), n_clusters, resolution
    )
    return by_first(
        kernels.move_nodes(*arrays, joined[pieces], n_clusters, resolution, order)
    )


def communities_by(graph: Any, loops: np.ndarray, resolution: float) -> np.ndarray:
    """Communities of a graph by Louvain at a resolution, numbered by first nodes; nothing is random."""
    from mmcnb.graph import _louvain as kernels

    return np.asarray(
        kernels.louvain(*as_arrays(graph, loops), resolution, np.arange(loops.shape[0]))
    )


def by_first(labels: np.ndarray) -> np.ndarray:
    """Labels with clusters numbered by their first nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.communities import by_first
    >>> by_first(np.array([7, 7, 2]))
    array([0, 0, 1])
    """
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[numbers.ravel()])


def as_arrays(graph: Any, loops: np.ndarray) -> Graph:
    """A graph as arrays of one type, so that there is one compiled version of each routine."""
    starts = graph.indptr.astype(np.int64)
    ends = graph.indices.astype(np.int64)
    return starts, ends, graph.data.astype(np.float64), loops.astype(np.float64)


def pieces_of(
    graph: Graph, wanted: int, order: np.ndarray, start: float = 1.0
) -> tuple[np.ndarray, float]:
    """Communities at the first resolution, doubled each time, that gives so many; and the resolution."""
    from mmcnb.graph import _louvain as kernels

    for at in start * 2.0 ** np.arange(MOST_DOUBLINGS + 1):
        pieces = kernels.louvain(*graph, at, order)
        if pieces.max() + 1 >= wanted:
            break
    return pieces, float(at)


def _joined(pieces: Graph, k: int, resolution: float) -> tuple[np.ndarray, float]:
    """Communities of at least k pieces, k of them, and their resolution; at the one given no pieces join."""
    from mmcnb.graph import _louvain as kernels

    count = pieces[3].shape[0]
    order = nearest = np.arange(count)
    low = 0.0
    high = resolution
    nearest_at = resolution
    for _ in range(MOST_BISECTIONS if count > k else 0):
        middle = float(np.sqrt(low * high)) if low else high / 2
        labels = kernels.louvain(*pieces, middle, order)
        found = labels.max() + 1
        if k <= found <= nearest.max():
            nearest = labels
            nearest_at = middle
        if found == k:
            break
        low, high = (low, middle) if found > k else (middle, high)
    joined = kernels.aggregate(*pieces, nearest, nearest.max() + 1)
    return MergeTree(nearest, *_merged(_between(joined))).labels(k), nearest_at


# -- the merge tree --------------------------------------------------------------------


@dataclass(frozen=True)
class MergeTree:
    """Nested clusters of nodes, one for each number from 1 to that of the pieces.

    Parameters
    ----------
    piece_of_node : ndarray of shape (p,), int64
        Piece of each node, numbered by first nodes.
    merges : ndarray of shape (c - 1, 2), int64
        The two that each merge joins: a piece, or c plus the number of an earlier
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

    @classmethod
    def restore(cls, arrays: Sequence[np.ndarray], n_nodes: int) -> "MergeTree":
        """The tree of its three arrays, which may be anything."""
        pieces, merges, links = arrays
        c = len(links) + 1
        check_fits(
            "pieces",
            pieces.shape == (n_nodes,)
            and np.array_equal(np.unique(pieces), np.arange(c)),
        )
        check_fits("merges", merges.shape == (c - 1, 2) and merges.dtype == np.int64)
        below = c + np.arange(c - 1)[:, None]  # of earlier merges
        once = (
            np.bincount(np.clip(merges, 0, 2 * c).ravel(), minlength=1).max(initial=1)
            == 1
        )
        check_fits("merges", bool(((merges >= 0) & (merges < below)).all()) and once)
        check_fits(
            "links",
            links.ndim == 1 and bool((links > 0).all() and (np.diff(links) <= 0).all()),
        )
        return cls(pieces, merges, links)

    def labels(self, n_clusters: int) -> np.ndarray:
        """Cluster of each node in the cut with so many clusters, numbered by first nodes.

        Examples
        --------
        >>> import numpy as np
        >>> from mmcnb.graph.communities import MergeTree
        >>> tree = MergeTree(np.array([0, 1, 2]), np.array([[1, 2], [0, 3]]), np.array([3.0, 0.5]))
        >>> tree.labels(2)
        array([0, 1, 1])
        """
        return self.without(np.arange(self.links.size) >= self.n_pieces - n_clusters)

    def without(self, is_undone: np.ndarray) -> np.ndarray:
        """Cluster of each node if some merges, and all above them, are undone."""
        c = self.n_pieces
        undone = is_undone.copy()
        for t, (a, b) in enumerate(self.merges - self.n_pieces):
            undone[t] |= (a >= 0 and undone[a]) or (b >= 0 and undone[b])
        root = np.arange(2 * c - 1)
        for t in range(c - 2, -1, -1):
            if not undone[t]:
                root[self.merges[t]] = root[c + t]
        return by_first(root[self.piece_of_node])

    def cluster_of_piece(self, n_clusters: int) -> np.ndarray:
        """Cluster of each piece in the cut with so many, numbered from that of most nodes on."""
        labels = self.labels(n_clusters)
        clusters = np.empty(self.n_pieces, np.int64)
        rank = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))
        clusters[self.piece_of_node] = rank[labels]
        return clusters

    def n_at(self, link: float) -> int:
        """Number of clusters in the cut at a link."""
        return int(self.n_pieces - np.count_nonzero(self.links >= link))

    def sums(self, of_nodes: np.ndarray) -> np.ndarray:
        """Sums of a figure of the nodes over each piece and each merge, of shape (2 c - 1,)."""
        sums = np.append(
            np.bincount(self.piece_of_node, of_nodes), np.zeros(self.links.size)
        )
        for t, pair in enumerate(self.merges):
            sums[self.n_pieces + t] = sums[pair].sum()
        return sums

    def merge_of_pieces(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Number of the merge that joins two pieces each, which differ."""
        from scipy.cluster.hierarchy import cophenet

        numbered = np.column_stack(
            [self.merges, np.arange(1.0, self.n_pieces), self.linkage()[:, 3]]
        )
        low = np.minimum(one, other)
        high = np.maximum(one, other)
        place = (
            self.n_pieces * low + high - (low + 1) * (low + 2) // 2
        )  # in SciPy's condensed matrix
        return (
            np.asarray(cophenet(numbered))[place].astype(np.int64) - 1
            if place.size
            else place
        )

    def linkage(self) -> np.ndarray:
        """The tree as SciPy's linkage matrix, of shape (c - 1, 4), whose leaves are the pieces.

        The height of a merge is 1 / link; components join at twice the largest other
        height.
        """
        joins = self.links < LEAST_LINK
        heights = 1 / np.maximum(self.links, LEAST_LINK)
        heights[joins] = 2 * heights[~joins].max(initial=0.5)
        leaves = self.sums(1 / np.bincount(self.piece_of_node)[self.piece_of_node])[
            self.n_pieces :
        ]
        return np.column_stack([np.sort(self.merges, axis=1), heights, np.rint(leaves)])


def merge_tree(
    weights: Any, loops: np.ndarray, n_clusters: int | None = None
) -> MergeTree:
    """The merge tree of a graph: pieces by Louvain, then merges by the largest link.

    Nothing in it is random.

    Parameters
    ----------
    weights : csr_array of shape (p, p)
        Symmetric weights above 0, without a diagonal.
    loops : ndarray of shape (p,)
        The diagonal, at least 0.
    n_clusters : int or None, default=None
        A number of clusters that the tree must have.

    Returns
    -------
    MergeTree
        Of about 900 pieces, of 12 nodes at least; or of more and smaller ones, three
        for each cluster.

    References
    ----------
    T. Bonald et al., Hierarchical graph clustering using node pair sampling.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.communities import merge_tree
    >>> blocks = np.kron(np.eye(2), np.ones((30, 30))) + 0.01
    >>> np.fill_diagonal(blocks, 0)
    >>> merge_tree(csr_array(blocks), np.zeros(60)).labels(2).sum()
    np.int64(30)
    """
    from mmcnb.graph import _louvain as kernels  # loads numba

    p = loops.shape[0]
    wanted = min(p, max(1, min(p // 12, 900), 3 * (n_clusters or 0)))
    arrays = as_arrays(weights, loops)
    order = np.arange(p)
    pieces, resolution = pieces_of(arrays, wanted, order, max(1.0, wanted / 64))
    fewer, _ = pieces_of(arrays, 0, order, resolution / 2**0.5)
    pieces = fewer if fewer.max() + 1 >= wanted else pieces
    return MergeTree(
        pieces, *_merged(_between(kernels.aggregate(*arrays, pieces, pieces.max() + 1)))
    )


def _between(pieces: Graph) -> np.ndarray:
    """Weights between pieces, dense and symmetric, with the diagonal."""
    from scipy.sparse import csr_array

    indptr, ends, weights, loops = pieces
    table: np.ndarray = csr_array(
        (weights, ends, indptr), shape=(len(loops),) * 2
    ).toarray()
    table = (
        np.triu(table) + np.triu(table, 1).T
    )  # sums in another order have another rounding
    table[np.diag_indices_from(table)] = loops
    return table


def _merged(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges and their links, by the chain of nearest neighbours: of equal links the first piece counts.

    Of pieces without an edge between them, those of small volume merge first.
    """
    c = table.shape[0]
    number = np.arange(table.shape[0])
    volumes = np.maximum(table.sum(axis=1), NO_WEIGHT)
    total = volumes.sum()
    below = np.full(2 * c, np.inf)
    np.fill_diagonal(table, -1.0)
    made = list[tuple[int, int]]()
    links = list[float]()
    chain = list[int]()
    while len(made) < c - 1:
        chain = chain or [int(np.flatnonzero(number >= 0)[0])]
        one = chain[-1]
        before = chain[-2] if len(chain) > 1 else None
        weights = np.where(table[one] == 0, NO_WEIGHT, table[one])
        link = weights * (total / volumes[one]) / volumes
        other = int(link.argmax())
        if before is None or link[before] < link[other]:
            chain.append(other)
            continue
        chain = chain[:-2]
        # Rounding may give a merge a larger link than those below it.
        links.append(min(link[before], below[number[one]], below[number[before]]))
        made.append((number[one], number[before]))
        table[before] += table[one]
        table[:, before] = table[before]
        table[before, before] = table[one] = table[:, one] = -1.0
        volumes[before] += volumes[one]
        number[one], number[before] = -1, c + len(made) - 1
        below[number[before]] = links[-1]
    order = np.argsort(-np.array(links), kind="stable")
    place = np.append(np.arange(c), c + np.argsort(order))
    return place[np.array(made, np.int64).reshape(-1, 2)][order], np.array(links)[order]
