"""Checks of the neighbour graphs in AnnData objects."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.graph.neighbours import N_LISTED, SCALE_NEIGHBOUR
from mmcnb.samples import Samples
from mmcnb.samples.matrix import CSRBlock

CONNECTIVITIES = "connectivities"
CHECKED_ROWS = 10_000  # number of rows in each block whose neighbours are counted

# Arguments of `scanpy.pp.neighbors` that affect the neighbours, with their defaults.
_ARGUMENTS: dict[str, object] = {
    "use_rep": None,
    "n_pcs": None,
    "metric": "euclidean",
    "metric_kwds": {},
}


def has_connectivities(adata: Any, element: str) -> bool:
    """Return whether an element of an AnnData object is a graph of connectivities.

    Parameters
    ----------
    adata : AnnData
        The object.
    element : str
        Name of the element, such as "obsp/connectivities".

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from mmcnb.estimators.cell_graphs import has_connectivities
    >>> adata = anndata.AnnData(np.eye(3))
    >>> has_connectivities(adata, "obsp/pca_connectivities")
    True
    """
    kind, _, name = element.partition("/")
    if kind != "obsp":
        return False
    _, record = _recorded(adata, name)
    is_recorded = record.get("connectivities_key") == name
    return is_recorded or name == CONNECTIVITIES or name.endswith(f"_{CONNECTIVITIES}")


def distances_beside(adata: Any, element: str) -> str:
    """Return the name of the distances from which connectivities were computed.

    Parameters
    ----------
    adata : AnnData
        The object.
    element : str
        Name of the element with the connectivities, such as "obsp/connectivities".

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from mmcnb.estimators.cell_graphs import distances_beside
    >>> distances_beside(anndata.AnnData(np.eye(3)), "obsp/pca_connectivities")
    'obsp/pca_distances'
    """
    _, record = _recorded(adata, element.partition("/")[2])
    likely = element.removesuffix(CONNECTIVITIES).removeprefix("obsp/") + "distances"
    return f"obsp/{record.get('distances_key', likely)}"


def check_neighbours(X: Any, element: str | None, rows: Samples) -> None:
    """Raise InputError if a row of a graph in ``obsp`` has too few neighbours.

    Parameters
    ----------
    X : AnnData or other rows
        Object that contains the graph. Other objects than AnnData are not checked.
    element : str or None
        Name of the graph, such as "obsp/distances". Elements outside ``obsp`` are not
        checked.
    rows : Samples
        The opened graph. Dense matrices are not checked.

    Raises
    ------
    InputError
        If a row has fewer than 7 neighbours, or fewer than all other rows if there are
        at most 7 rows. The message contains the call that computes the graph with more
        neighbours.

    Examples
    --------
    >>> import anndata, mmcnb, numpy as np, scipy.sparse
    >>> from mmcnb.estimators.cell_graphs import check_neighbours
    >>> adata = anndata.AnnData(np.eye(30))
    >>> adata.obsp["distances"] = scipy.sparse.eye(30, k=1, format="csr")
    >>> rows = mmcnb.open_samples(adata, "obsp/distances")
    >>> check_neighbours(adata, "obsp/distances", rows)
    Traceback (most recent call last):
    mmcnb.errors.InputError: row 29 of adata.obsp['distances'] has 0 neighbours, but 7
    are needed; call sc.pp.neighbors(adata, n_neighbors=25).
    """
    if element is None or not (hasattr(X, "obsp") and element.startswith("obsp/")):
        return
    least = min(SCALE_NEIGHBOUR, rows.n_samples - 1)
    for start in range(0, rows.n_samples, CHECKED_ROWS):
        stop = min(start + CHECKED_ROWS, rows.n_samples)
        block = rows.block(start, stop)
        if not isinstance(block, CSRBlock):
            return
        n_entries = np.diff(block.indptr)
        row = np.repeat(np.arange(stop - start), n_entries)
        is_other = block.indices != row + start
        n_neighbours = np.bincount(row[is_other], minlength=stop - start)
        if n_neighbours.min() < least:
            name = element.partition("/")[2]
            raise InputError(
                f"row {start + n_neighbours.argmin()} of adata.obsp[{name!r}] has "
                f"{n_neighbours.min()} neighbours, but {least} are needed; call "
                f"{_call_for_more_neighbours(X, name)}."
            )


def _call_for_more_neighbours(adata: Any, name: str) -> str:
    """Return the Python code that computes the graph with more neighbours."""
    n_neighbours = min(N_LISTED, adata.n_obs)  # scanpy also counts the row itself
    key, record = _recorded(adata, name)
    if key is None and name not in ("distances", CONNECTIVITIES):
        source = "adata.X"
        if "X_pca" in adata.obsm:
            source = "adata.obsm['X_pca']"
        return (
            f"adata.obsp[{name!r}] = sklearn.neighbors.kneighbors_graph("
            f"{source}, {n_neighbours - 1}, mode='distance')"
        )
    arguments = [f"n_neighbors={n_neighbours}"]
    params = record.get("params", {})
    for argument, default in _ARGUMENTS.items():
        value = _plain(params.get(argument, default))
        if value != default and isinstance(value, str | int | dict):
            arguments.append(f"{argument}={value!r}")
    if key not in (None, "neighbors"):
        arguments.append(f"key_added={key!r}")
    return f"sc.pp.neighbors(adata, {', '.join(arguments)})"


def _recorded(adata: Any, name: str) -> tuple[str | None, Mapping[str, Any]]:
    """Return scanpy's record of a graph, preceded by the key of the record in ``uns``.

    If scanpy did not record the graph, return None and an empty dict.
    """
    for key, record in adata.uns.items():
        if isinstance(record, Mapping) and name in (
            record.get("distances_key"),
            record.get("connectivities_key"),
        ):
            return key, record
    return None, {}


def _plain(value: object) -> object:
    """Convert the NumPy scalars in a value to Python scalars."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return value.item() if isinstance(value, np.generic) else value
