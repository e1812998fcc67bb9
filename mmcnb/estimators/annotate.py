"""Cluster the observations of an AnnData object, and store the results in it."""

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.cell_graphs import (
    check_neighbours,
    distances_beside,
    has_connectivities,
)
from mmcnb.estimators.given_rows import open_with_filled_gaps, takes_distances
from mmcnb.estimators.outputs import layer_options
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.samples import Samples, open_samples


def annotate(
    adata: Any,
    n_clusters: int | str | None = None,
    *,
    element: str = "X",
    key_added: str = "mmcnb",
    estimator: StreamedClusterer | None = None,
    probabilities: bool = False,
    copy: bool = False,
    **parameters: object,
) -> Any:
    """Cluster the observations of an AnnData object, and store the results in it.

    Parameters
    ----------
    adata : AnnData
        The object, in memory, backed or lazy. Its rows are clustered as they are, so
        normalise counts first.
    n_clusters : int, "auto" or None, default=None
        Number of clusters; "auto" chooses it from the data. None uses the value of the
        estimator, which is "auto" for the default estimator.
    element : str, default="X"
        Element that contains the rows, for example "X", "layers/counts", "obsm/X_pca"
        or "raw/X". An element of ``obsp``, such as "obsp/distances" or
        "obsp/connectivities", is used as a neighbour graph with
        ``metric="precomputed"``. Connectivities require ``n_clusters``: they only rank
        the neighbours of each row, so the number of clusters cannot be chosen from
        them.
    key_added : str, default="mmcnb"
        Name under which the results are stored. The results of an earlier call with
        this name are removed, even if the object has been saved and read again.
    estimator : estimator or None, default=None
        The mmcnb clusterer to fit. None uses `MaximumMarginClustering`.
    probabilities : bool, default=False
        Whether to store the probabilities of `MaximumMarginClustering.predict_proba`.
    copy : bool, default=False
        Whether to return a copy with the results instead of changing ``adata``. Backed
        objects cannot be copied.
    **parameters
        Parameters of the estimator, such as ``random_state``.

    Returns
    -------
    AnnData or None
        The copy if ``copy`` is True, otherwise None. The copy, or ``adata`` itself,
        contains these results:

        ``obs[key_added]``
            Cluster of each observation, as a categorical with the categories "0", "1",
            ….
        ``obs[f"{key_added}_margin"]``
            Margin (float64); see ``to_frame`` of the estimator.
        ``obs[f"{key_added}_layer_12"]``
            Only for `MaximumMarginClustering`: the clusters of the layer with 12
            clusters, as a categorical. There is one such column for each layer except
            the selected partition.
        ``obsm[f"{key_added}_probabilities"]``
            Probability of each cluster (float64), if ``probabilities`` is True.
        ``uns[key_added]``
            A dict with "params", "objective", "n_clusters" and, for
            `MaximumMarginClustering`, "trust".

    Raises
    ------
    InputError
        If ``adata`` is not an AnnData object or does not have the element, if its rows
        or a parameter are invalid, if ``n_clusters`` is missing for connectivities, if
        a row of a graph has fewer than 7 neighbours, or if probabilities are requested
        from an estimator that does not compute them.

    Examples
    --------
    >>> import anndata, mmcnb
    >>> from mmcnb.datasets import make_shape
    >>> X, _ = make_shape("two-moons", 200, random_state=0)
    >>> adata = anndata.AnnData(X)
    >>> mmcnb.annotate(adata, n_clusters=2, random_state=0)
    >>> adata.obs["mmcnb"].cat.categories.tolist()
    ['0', '1']
    """
    if not (hasattr(adata, "obs_names") and hasattr(adata, "uns")):
        raise InputError(
            f"adata is of type {type(adata).__name__}; pass an AnnData object."
        )
    if copy and adata.isbacked:
        raise InputError(
            "adata is backed and cannot be copied; "
            "leave copy out, or read it to memory first."
        )
    if n_clusters is not None:
        parameters["n_clusters"] = n_clusters
    if element.startswith("obsp/"):
        parameters = {"metric": "precomputed"} | parameters
    model = _with_parameters(estimator, parameters, probabilities)
    rows = _open_rows(adata, element, model)
    model.fit(rows)
    # All results are computed before the first one is stored, so that an error leaves
    # the object unchanged.
    columns = _columns(key_added, model, rows)
    arrays = {}
    if probabilities:
        arrays[f"{key_added}_probabilities"] = model.predict_proba(rows)
    settings = model.get_params(deep=False)
    for name in RUNTIME_NAMES:
        settings.pop(name, None)
    params = {"method": type(model).__name__, "element": element} | settings
    description = _storable(
        {
            "params": params,
            "objective": model.objective_,
            "trust": model.report_.get("trust"),
            "n_clusters": len(columns[key_added].categories),
        }
    )
    target = adata.copy() if copy else adata
    removed = _remove_earlier(target, key_added)
    for name in removed - columns.keys():
        target.uns.pop(f"{name}_colors", None)  # colours stored by scanpy's plots
    for name, values in columns.items():
        target.obs[name] = values
    target.obsm.update(arrays)
    target.uns[key_added] = description
    return target if copy else None


def _with_parameters(
    estimator: StreamedClusterer | None,
    parameters: dict[str, object],
    probabilities: bool,
) -> Any:
    """Set parameters of the estimator, or of a new default estimator, and return it."""
    if estimator is None:
        from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

        estimator = MaximumMarginClustering()
    elif not isinstance(estimator, StreamedClusterer):
        raise InputError(
            f"estimator={shown(estimator)} is not a clusterer of mmcnb; "
            "pass an mmcnb clusterer, or None."
        )
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{type(estimator).__name__} does not compute probabilities; leave "
            "probabilities out."
        )
    try:
        return estimator.set_params(**parameters)
    except ValueError as error:
        raise InputError(str(error)) from error


def _open_rows(adata: Any, element: str, model: Any) -> Samples:
    """Open an element of ``adata``; in a graph, check that rows have enough neighbours.

    Connectivities are converted to distances.
    """
    rows = open_with_filled_gaps(adata, element)
    if takes_distances(model):
        check_neighbours(adata, element, rows)
    if has_connectivities(adata, element):
        return _distances(adata, element, model.n_clusters)
    return rows


def _columns(key: str, model: Any, rows: Samples) -> dict[str, Any]:
    """Return the columns of ``obs`` by name: clusters, margins and other layers."""
    layers = layer_options(model, "all") if model.report_.get("layers") else {}
    columns = {}
    for name, values in model._frame(rows, None, **layers).items():
        column = key if name == "cluster" else f"{key}_{name}"
        if name == "margin":
            columns[column] = np.asarray(values)
        else:
            columns[column] = _categorical(values)
    return columns


def _remove_earlier(adata: Any, key: str) -> set[str]:
    """Remove what an earlier call wrote with the same key.

    Return the names of the removed columns of ``obs``.
    """
    earlier = adata.uns.get(key)
    if not isinstance(earlier, Mapping) or "params" not in earlier:
        return set()
    # Deletions in a view of an AnnData object are ignored. This assignment turns a view
    # into an independent object.
    adata.uns[key] = earlier
    frame = getattr(adata.obs, "ds", adata.obs)  # the Dataset of a lazy object
    written = re.compile(rf"{re.escape(key)}(_margin|_layer_\d+)?")
    names = {
        name
        for name in adata.obs.columns
        if isinstance(name, str) and written.fullmatch(name)
    }
    for name in names:
        del frame[name]
    adata.obsm.pop(f"{key}_probabilities", None)
    del adata.uns[key]
    return names


def _categorical(labels: Any) -> Any:
    """Convert zero-based labels to a categorical with the categories "0", "1", …."""
    import pandas as pd

    names = [str(label) for label in range(int(labels.max()) + 1)]
    return pd.Categorical.from_codes(labels, names)


def _distances(adata: Any, element: str, n_clusters: object) -> Samples:
    """Convert connectivities to distances that decrease as connectivity increases."""
    if not isinstance(n_clusters, Integral):
        raise InputError(
            "the number of clusters cannot be chosen from connectivities; "
            f"pass n_clusters, or element={distances_beside(adata, element)!r}."
        )
    distances = csr_array(adata.obsp[element.partition("/")[2]], copy=True)
    strengths = distances.data
    decreasing = 1 - np.log(np.clip(strengths, 1e-12, 1))
    # Negative connectivities are left unchanged, so that the fit rejects them as
    # negative distances.
    distances.data = np.where(strengths < 0, strengths, decreasing)
    return open_samples(distances)


def _storable(value: object) -> object:
    """Convert a value to types that AnnData can write to disk.

    These types are strings, numbers, numeric arrays, and dicts of such values. Entries
    of a dict that are None are left out. Any other object is converted to a string.
    """
    if isinstance(value, dict):
        return {
            name: _storable(part) for name, part in value.items() if part is not None
        }
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    elif isinstance(value, np.generic):
        value = value.item()
    is_numeric = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    if is_numeric or isinstance(value, str | bool | int | float):
        return value
    return str(value)
