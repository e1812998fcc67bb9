"""Clusters of the observations of an AnnData object, written where scanpy's users look for them."""

from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import StreamedClusterer
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
    **parameters: Any,
) -> Any:
    """Cluster the observations of an AnnData object, and write the clusters into it.

    Parameters
    ----------
    adata : AnnData
        The object, in memory or backed. Its rows are clustered as they are, so
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
        Name under which the results are written.
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
    import pandas as pd

    if not (hasattr(adata, "obs_names") and hasattr(adata, "uns")):
        raise InputError(f"adata is a {type(adata).__name__}; give an AnnData object.")
    if copy and adata.isbacked:
        raise InputError(
            "adata is backed and is not copied; leave copy out, or read it to memory first."
        )
    if estimator is None:
        from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

        estimator = MaximumMarginClustering(n_clusters=n_clusters)
    elif not isinstance(estimator, StreamedClusterer):
        raise InputError(
            f"estimator={shown(estimator)} is no clusterer of mmcnb; give one, or None."
        )
    elif n_clusters is not None:
        parameters = {"n_clusters": n_clusters} | parameters
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"{type(estimator).__name__} has no probabilities; leave them out."
        )
    if element.startswith("obsp/"):
        parameters = {"metric": "precomputed"} | parameters
    try:
        estimator.set_params(**parameters)
    except ValueError as error:
        raise InputError(str(error)) from error
    rows = open_samples(adata, element)
    if element == "obsp/connectivities":
        rows = _distances(adata.obsp["connectivities"], estimator)
    given: Any = estimator.fit(rows)
    layers = given._layer("all") if given.report_.get("layers") else {}
    frame = given._frame(rows, None, **layers).set_axis(adata.obs_names)
    adata = adata.copy() if copy else adata
    if probabilities:
        adata.obsm[f"{key_added}_probabilities"] = given.predict_proba(rows)
    for name, values in frame.items():
        if name != "margin":
            values = pd.Categorical.from_codes(
                values, [str(k) for k in range(int(values.max()) + 1)]
            )
        adata.obs[key_added if name == "cluster" else f"{key_added}_{name}"] = values
    params = {"method": type(estimator).__name__, "element": element}
    params |= {
        name: value
        for name, value in given.get_params(False).items()
        if name not in RUNTIME_NAMES
    }
    told = {
        "params": params,
        "objective": estimator.objective_,
        "trust": estimator.report_.get("trust"),
    }
    adata.uns[key_added] = _plain(
        told | {"n_clusters": len(adata.obs[key_added].cat.categories)}
    )
    return adata if copy else None


def _distances(connectivities: Any, estimator: Any) -> Samples:
    """Distances in the order of connectivities, for a known number of clusters."""
    if not isinstance(estimator.n_clusters, Integral):
        fault = "connectivities do not tell the number of clusters"
        raise InputError(f"{fault}; give n_clusters, or element='obsp/distances'.")
    found = csr_array(connectivities, copy=True)
    found.data = np.where(
        found.data < 0, found.data, 1 - np.log(np.clip(found.data, 1e-12, 1))
    )
    return open_samples(found)


def _plain(value: Any) -> Any:
    """A value as files of AnnData store it: text, numbers, arrays of numbers, and dicts without None."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    value = value.item() if isinstance(value, np.generic) else value
    has_numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    return (
        value
        if has_numbers or isinstance(value, str | bool | int | float)
        else str(value)
    )
