"""Lay out the nodes of a graph in a few dimensions, and cluster them by k-means."""

import numpy as np
from scipy.sparse import csr_array, diags_array

from mmcnb.samples.matrix import with_fixed_signs

N_COMPONENTS = 10
# On text, 200 epochs do not give better clusters.
N_EPOCHS = 100
N_NEGATIVE = 3
# Number of smoothing steps, and the number of steps between orthogonalisations.
SMOOTHINGS = 60
BETWEEN = 5
REACH = 10.0  # largest absolute value of the initial positions
N_STARTS = 10  # number of starts of k-means
BITS = 20  # positions are rounded to this number of bits of a column's range


def layout(graph: csr_array, seed: int, n_components: int = N_COMPONENTS) -> np.ndarray:
    """Compute positions in which strongly connected nodes are close to each other.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights; each node has at least one edge.
    seed : int
        Random seed, at least 0.
    n_components : int, default=10
        Number of dimensions.

    Returns
    -------
    ndarray of shape (p, n_components), float64
        Coordinates of each node.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.layout import layout
    >>> layout(csr_array(1.0 - np.eye(5)), seed=0, n_components=2).shape
    (5, 2)
    """
    from mmcnb.graph import _layout  # loads numba

    weights = graph.data.astype(np.float64)
    start = smooth_start(graph, n_components, seed)
    weights /= weights.max()
    return _layout.lay_out(
        graph.indptr, graph.indices, weights, start, N_EPOCHS, N_NEGATIVE, seed
    )


def smooth_start(graph: csr_array, n_components: int, seed: int) -> np.ndarray:
    """Return approximate leading eigenvectors of the random walk on a graph.

    These eigenvectors vary smoothly along the edges of the graph.

    Parameters
    ----------
    graph : csr_array of shape (p, p)
        Symmetric weights; each node has at least one edge.
    n_components : int
        Number of vectors; vectors beyond the first p - 1 are 0.
    seed : int
        Random seed, at least 0.

    Returns
    -------
    ndarray of shape (p, n_components), float64
        The vectors as columns, scaled so that the largest absolute value is 10. The
        entry with the largest absolute value of each column is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.graph.layout import smooth_start
    >>> smooth_start(csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), 1, seed=0).round(3)
    array([[ 10.],
           [-10.]])
    """
    from threadpoolctl import threadpool_limits

    p = graph.shape[0]
    n_columns = min(n_components, p - 1)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    roots = np.sqrt(degrees)
    # D^-1/2 W D^-1/2 is symmetric, and has the eigenvalues of the walk D^-1 W.
    scaling = diags_array(1 / roots)
    walk = (scaling @ graph @ scaling).tocsr()
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((p, n_columns))
    with threadpool_limits(1):  # BLAS sums depend on the number of threads
        for step in range(SMOOTHINGS):
            if step % BETWEEN == 0:
                columns = _orthogonal(roots, columns)
            columns = (columns + walk @ columns) / 2
        columns = _orthogonal(roots, columns)
    functions = with_fixed_signs(columns / roots[:, None])
    largest = np.abs(functions).max()
    start = np.zeros((p, n_components))
    start[:, :n_columns] = _rounded(functions * (REACH / largest))
    return start


def _orthogonal(first: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Orthonormalise the columns and make them orthogonal to ``first``."""
    basis, _ = np.linalg.qr(np.column_stack([first, columns]))
    return basis[:, 1:]


def _rounded(columns: np.ndarray) -> np.ndarray:
    """Round columns to 20 bits of their range, because BLAS results differ slightly."""
    _, exponents = np.frexp(np.ptp(columns, axis=0))
    return np.ldexp(np.rint(np.ldexp(columns, BITS - exponents)), exponents - BITS)


def kmeans_in_layout(
    positions: np.ndarray, sizes: np.ndarray, n_clusters: int, seed: int
) -> np.ndarray | None:
    """Cluster positions by k-means, weighted by the sizes of the nodes.

    Parameters
    ----------
    positions : ndarray of shape (p, q)
        Positions of the nodes.
    sizes : ndarray of shape (p,)
        Weights of the nodes, positive.
    n_clusters : int
        Number of clusters, up to p.
    seed : int
        Random seed of k-means.

    Returns
    -------
    ndarray of shape (p,), int64, or None
        Cluster of each node; None if there are fewer than ``n_clusters`` distinct
        positions.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.graph.layout import kmeans_in_layout
    >>> positions = np.array([[0.0], [1.0], [9.0]])
    >>> labels = kmeans_in_layout(positions, np.ones(3), 2, seed=0)
    >>> labels[0] == labels[1] != labels[2]
    np.True_
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    positions = _rounded(positions)
    if len(np.unique(positions, axis=0)) < n_clusters:
        return None
    kmeans = KMeans(n_clusters, n_init=N_STARTS, algorithm="lloyd", random_state=seed)
    with threadpool_limits(1):
        kmeans.fit(positions, sample_weight=sizes)
    return kmeans.labels_.astype(np.int64)
