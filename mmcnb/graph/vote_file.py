"""Arrays of a vote in a model file, which are validated when they are read."""

from collections.abc import Mapping

import numpy as np

from mmcnb.errors import InputError
from mmcnb.graph.axes import Axes
from mmcnb.graph.inverted_file import InvertedFileIndex
from mmcnb.graph.merge_tree import MergeTree
from mmcnb.graph.neighbours import NodeSearch, RowMap
from mmcnb.graph.precomputed import Precomputed
from mmcnb.graph.sparse_nodes import AllColumns, SparseSearch, csr_of, csr_parts
from mmcnb.graph.vote import Vote

Arrays = Mapping[str, np.ndarray]


def vote_arrays(vote: Vote) -> dict[str, np.ndarray]:
    """Return the arrays of a vote in a dict, with prefixed names as keys."""
    tree = vote.tree
    n_probes = getattr(vote.search, "n_probes", 1)
    arrays = {
        **_axes_arrays(vote.axes),
        **_search_arrays(vote.search),
        "pieces": tree.piece_of_node,
        "merges": tree.merges,
        "links": tree.links,
        "labels": vote.labels,
        "sizes": vote.sizes,
        "offsets": vote.offsets,
        "search": np.array([n_probes, vote.n_neighbors, vote.n_features]),
    }
    if vote.thresholds is not None:
        arrays["threshold"] = vote.thresholds
    if vote.bound < np.inf:
        arrays["bound"] = np.array(vote.bound)
    if vote.is_deep is not None:
        arrays["is_deep"] = vote.is_deep
    return {f"graph_{name}": array for name, array in arrays.items()}


def _axes_arrays(axes: RowMap) -> dict[str, np.ndarray]:
    if isinstance(axes, Precomputed):
        return {"shape": np.array([axes.n_features])}
    if not isinstance(axes, Axes):
        return {}
    if axes.axes is None:
        return {"mean": axes.mean}
    return {"mean": axes.mean, "axes": axes.axes}


def _search_arrays(search: NodeSearch) -> dict[str, np.ndarray]:
    if isinstance(search, InvertedFileIndex):
        return {
            "nodes": search.nodes,
            "starts": search.starts,
            "centres": search.centres,
        }
    return csr_parts(search.nodes) if isinstance(search, SparseSearch) else {}


def restore_vote(arrays: Arrays) -> Vote:
    """Restore a vote from the result of `vote_arrays`.

    Raises
    ------
    InputError
        If an array is inconsistent with the others. Compiled routines do not check
        indices, so an invalid array could make a search read outside the nodes.
    """
    # Use only arrays with the prefix, because the scaling of a model also has a "mean".
    parts = {
        name.removeprefix("graph_"): array
        for name, array in arrays.items()
        if name.startswith("graph_")
    }
    _check_fits("search", parts["search"].shape == (3,))
    n_probes, n_neighbors, n_clusters = parts["search"].tolist()
    search = _restore_search(parts, n_probes)
    axes = _restore_axes(parts, search)
    p = axes.n_features if search.nodes is None else search.nodes.shape[0]
    sizes = parts["sizes"]
    labels = parts["labels"]
    is_deep = parts.get("is_deep")
    _check_fits("search", min(n_probes, n_neighbors, n_clusters) >= 1)
    _check_fits("search", n_neighbors <= p)
    for name in ("sizes", "labels", "offsets"):
        _check_fits(name, parts[name].shape == (p,))
    _check_fits("sizes", (sizes > 0).all())
    is_cluster = (labels >= 0) & (labels < n_clusters)
    _check_fits("labels", is_cluster.all())
    if is_deep is not None:
        _check_fits("is_deep", is_deep.shape == (p,))
        _check_fits("is_deep", (is_deep >> 1 == 0).all())
    thresholds = parts.get("threshold")
    if thresholds is not None:
        # Files of version 0.3 and earlier have one threshold for all nodes.
        _check_fits("threshold", thresholds.shape in ((), (p,)))
        thresholds = np.broadcast_to(thresholds, (p,))
    for name in ("offsets", "threshold", "bound"):  # because outlier scores are float32
        values = np.abs(parts.get(name, 0.0))
        _check_fits(name, np.max(values) < np.finfo(np.float32).max)
    return Vote(
        axes=axes,
        search=search,
        labels=labels,
        n_features=n_clusters,
        sizes=sizes,
        n_neighbors=n_neighbors,
        tree=restore_tree(parts, p),
        offsets=parts["offsets"],
        thresholds=thresholds,
        bound=float(parts.get("bound", np.inf)),
        is_deep=is_deep,
    )


def _check_fits(name: str, fits: bool | np.bool_) -> None:
    """Raise InputError, which names an array of the graph, unless ``fits`` is true."""
    if not fits:
        raise InputError(f"graph_{name} does not fit the other arrays of the graph")


def _restore_search(parts: Arrays, n_probes: int) -> NodeSearch:
    if "indptr" in parts:
        _check_fits("shape", parts["shape"].shape == (2,))
        rows = csr_of(parts, "graph_indptr does not fit the other arrays of the graph")
        return SparseSearch(rows.astype(np.float64, copy=False))
    if "nodes" not in parts:
        _check_fits("shape", parts["shape"].shape == (1,))
        return Precomputed(int(parts["shape"][0]))
    return _restore_index(parts, n_probes)


def _restore_index(parts: Arrays, n_probes: int) -> InvertedFileIndex:
    nodes = parts["nodes"]
    starts = parts["starts"]
    centres = parts["centres"]
    _check_fits("starts", starts.dtype == np.int64)
    _check_fits("starts", starts.shape == (centres.shape[0] + 1,))
    _check_fits("starts", starts[0] == 0)
    _check_fits("starts", starts[-1] == nodes.shape[0])
    _check_fits("starts", (np.diff(starts) > 0).all())
    _check_fits("centres", nodes.shape[1] == centres.shape[1])
    _check_fits("centres", nodes.dtype == centres.dtype)
    return InvertedFileIndex(nodes, starts, centres, n_probes)


def _restore_axes(parts: Arrays, search: NodeSearch) -> RowMap:
    if isinstance(search, Precomputed):
        return search
    is_sparse = isinstance(search, SparseSearch)
    n_columns = search.nodes.shape[1]
    if "mean" not in parts:
        return AllColumns(n_columns - 1, is_sparse)
    axes = Axes(parts["mean"], parts.get("axes"))
    _check_fits("axes", axes.axes is None or len(axes.axes) == len(axes.mean))
    _check_fits("shape" if is_sparse else "centres", n_columns == axes.n_axes)
    return axes


def restore_tree(parts: Arrays, n_nodes: int) -> MergeTree:
    """Restore a merge tree from its arrays ``pieces``, ``merges`` and ``links``."""
    pieces = parts["pieces"]
    merges = parts["merges"]
    links = parts["links"]
    n_merges = links.size
    n_pieces = n_merges + 1
    used_pieces = np.unique(pieces)
    _check_fits("pieces", pieces.shape == (n_nodes,))
    _check_fits("pieces", np.array_equal(used_pieces, np.arange(n_pieces)))
    _check_fits("merges", merges.shape == (n_merges, 2))
    _check_fits("merges", merges.dtype == np.int64)
    # Each piece and each earlier merge is joined at most once.
    n_parts_before = n_pieces + np.arange(n_merges)
    is_known = (merges >= 0) & (merges < n_parts_before[:, None])
    joined = np.unique(merges)
    _check_fits("merges", is_known.all())
    _check_fits("merges", joined.size == merges.size)
    _check_fits("links", links.ndim == 1)
    _check_fits("links", (links > 0).all())
    _check_fits("links", (np.diff(links) <= 0).all())
    return MergeTree(pieces, merges, links)
