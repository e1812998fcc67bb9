"""Clusters of the observations of an AnnData object, written as scanpy writes them."""

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.given_rows import open_with_filled_gaps
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
    """Cluster the observations of an AnnData object, and write the clusters into it.

    Parameters
    ----------
    adata : AnnData
        The object, in memory, backed or lazy. Its rows are clustered as they are, so
        normalise counts first.
    n_clusters : int, "auto" or None, default=None
        Number of clusters; None and "auto" choose it. With an estimator, None is the
        estimator's own.
    element : str, default="X"
        Element with the rows: "X", or for instance "layers/counts", "obsm/X_pca" or
        "raw/X". "obsp/distances" has distances to the nearest rows, for
        ``metric="precomputed"``. Of "obsp/connectivities" alone, the closest rows are
        known, but not the number of clusters: give it.
    key_added : str, default="mmcnb"
        Name under which the results are written. Those of an earlier call under this
        name are removed.
    estimator : estimator or None, default=None
        A clusterer of the package, which is fitted. None is `MaximumMarginClustering`.
    probabilities : bool, default=False
        Whether those of `MaximumMarginClustering.predict_proba` are written too.
    copy : bool, default=False
        Whether to write into a copy; a backed object has none in memory.
    **parameters
        Parameters of the estimator, such as ``random_state``.

    Returns
    -------
    AnnData or None
        The copy; None if ``adata`` itself is written into. It then has

        ``obs[key_added]``
            Cluster of each observation: a categorical of "0", "1", ….
        ``obs[f"{key_added}_margin"]``
            Margin (float64); see ``to_frame`` of the estimator.
        ``obs[f"{key_added}_layer_12"]``
            Of `MaximumMarginClustering`, clusters of another layer, by their number: a
            categorical.
        ``obsm[f"{key_added}_probabilities"]``
            Probability of each cluster (float64), if asked for.
        ``uns[key_added]``
            "params", "objective", "n_clusters" and, of `MaximumMarginClustering`,
            "trust".

    Raises
    ------
    InputError
        If ``adata`` is no AnnData object, has no such element, or its rows or a
        parameter cannot be used; or the number of clusters is sought in connectivities,
        or the probabilities of a method without any.

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
        raise InputError(f"adata is a {type(adata).__name__}; give an AnnData object.")
    if copy and adata.isbacked:
        raise InputError(
            "adata is backed and is not copied; "
            "leave copy out, or read it to memory first."
        )
    if n_clusters is not None:
        parameters["n_clusters"] = n_clusters
    if element.startswith("obsp/"):
        parameters = {"metric": "precomputed"} | parameters
    model = _with_parameters(estimator, parameters, probabilities)
    rows = open_with_filled_gaps(adata, element)
    if element == "obsp/connectivities":
        rows = _distances(adata.obsp["connectivities"], model.n_clusters)
    model.fit(rows)
    # All results are computed before the first is written, so that an error leaves the
    # object as it was.
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
    _remove_earlier(target, key_added)
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
    """Return the estimator, by default `MaximumMarginClustering`, with parameters."""
    if estimator is None:
        from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

        estimator = MaximumMarginClustering()
    elif not isinstance(estimator, StreamedClusterer):
        raise InputError(
            f"estimator={shown(estimator)} is no clusterer of mmcnb; give one, or None."
        )
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{type(estimator).__name__} has no probabilities; leave them out."
        )
    try:
        return estimator.set_params(**parameters)
    except ValueError as error:
        raise InputError(str(error)) from error


def _columns(key: str, model: Any, rows: Samples) -> dict[str, Any]:
    """Return clusters, also of other layers, and margins by their names in ``obs``."""
    layers = layer_options(model, "all") if model.report_.get("layers") else {}
    columns = {}
    for name, values in model._frame(rows, None, **layers).items():
        column = key if name == "cluster" else f"{key}_{name}"
        if name == "margin":
            columns[column] = np.asarray(values)
        else:
            columns[column] = _categorical(values)
    return columns


def _remove_earlier(adata: Any, key: str) -> None:
    """Remove what an earlier call has written under the same key."""
    earlier = adata.uns.get(key)
    if not isinstance(earlier, Mapping) or "params" not in earlier:
        return
    frame = getattr(adata.obs, "ds", adata.obs)  # the Dataset of a lazy object
    written = re.compile(rf"{re.escape(key)}(_margin|_layer_\d+)?")
    for name in list(adata.obs.columns):
        if isinstance(name, str) and written.fullmatch(name):
            del frame[name]
    adata.obsm.pop(f"{key}_probabilities", None)
    del adata.uns[key]


def _categorical(labels: Any) -> Any:
    """Return labels from 0 as a categorical of their names."""
    import pandas as pd

    names = [str(label) for label in range(int(labels.max()) + 1)]
    return pd.Categorical.from_codes(labels, names)


def _distances(connectivities: object, n_clusters: object) -> Samples:
    """Return distances in the order of connectivities, if n_clusters is a number."""
    if not isinstance(n_clusters, Integral):
        raise InputError(
            "connectivities do not tell the number of clusters; "
            "give n_clusters, or element='obsp/distances'."
        )
    distances = csr_array(connectivities, copy=True)
    strengths = distances.data
    decreasing = 1 - np.log(np.clip(strengths, 1e-12, 1))
    # Negative values stay, and are refused as distances.
    distances.data = np.where(strengths < 0, strengths, decreasing)
    return open_samples(distances)


def _storable(value: object) -> object:
    """Convert a value to text, numbers, arrays of numbers, and dicts without None."""
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
