"""Clusters of the observations of an AnnData object, written where scanpy's users look for them."""

from typing import Any

import numpy as np

from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import StreamedClusterer
from mmcnb.estimators.parameters import RUNTIME_NAMES
from mmcnb.samples import open_samples


def annotate(
    adata: Any,
    n_clusters: int | str | None = None,
    *,
    element: str = "X",
    key_added: str = "mmcnb",
    estimator: StreamedClusterer | None = None,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Cluster the observations of an AnnData object, and write the clusters into it.

    Parameters
    ----------
    adata : AnnData
        The object, in memory or backed. Its rows are clustered as they are, so normalise counts first.
    n_clusters : int, "auto" or None, default=None
        Number of clusters; None and "auto" choose it. With an estimator, None is the estimator's own.
    element : str, default="X"
        Element with the rows: "X", or for instance "layers/counts", "obsm/X_pca" or "raw/X".
    key_added : str, default="mmcnb"
        Name under which the results are written.
    estimator : estimator or None, default=None
        A clusterer of the package, which is fitted. None is `MaximumMarginClustering`.
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
        ``uns[key_added]``
            "params", "objective", "n_clusters" and, of `MaximumMarginClustering`, "trust".

    Raises
    ------
    InputError
        If ``adata`` is no AnnData object, has no such element, or its rows or a parameter cannot be used.

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
        raise InputError("adata is backed and is not copied; leave copy out, or read it to memory first.")
    if estimator is None:
        from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

        estimator = MaximumMarginClustering(n_clusters=n_clusters)
    elif not isinstance(estimator, StreamedClusterer):
        raise InputError(f"estimator={shown(estimator)} is no clusterer of mmcnb; give one, or None.")
    elif n_clusters is not None:
        parameters = {"n_clusters": n_clusters} | parameters
    try:
        estimator.set_params(**parameters)
    except ValueError as error:
        raise InputError(str(error)) from error
    rows = open_samples(adata, element)
    frame = estimator.fit(rows).to_frame(rows)
    adata = adata.copy() if copy else adata
    names = [str(k) for k in range(int(frame["cluster"].max()) + 1)]
    adata.obs[key_added] = pd.Categorical.from_codes(frame.pop("cluster"), names)
    for name in frame:
        adata.obs[f"{key_added}_{name}"] = frame[name].to_numpy()
    given = estimator.get_params(deep=False).items()
    params = {"method": type(estimator).__name__, "element": element}
    params |= {name: value for name, value in given if name not in RUNTIME_NAMES}
    described = {"params": params, "objective": estimator.objective_, "n_clusters": len(names)}
    adata.uns[key_added] = _plain(described | {"trust": estimator.report_.get("trust")})
    return adata if copy else None


def _plain(value: Any) -> Any:
    """A value as files of AnnData store it: text, numbers, arrays of numbers, and dicts without None."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    value = np.asarray(value) if isinstance(value, list | tuple) else value
    value = value.item() if isinstance(value, np.generic) else value
    has_numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    return value if has_numbers or isinstance(value, str | bool | int | float) else str(value)
