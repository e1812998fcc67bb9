"""Rows of AnnData objects, in memory or backed."""

from typing import Any

from mmcnb.errors import InputError
from mmcnb.samples.base import Samples
from mmcnb.samples.elements import plain_names
from mmcnb.samples.open import open_named, open_samples


def open_anndata(data: Any, element: str | None) -> Samples:
    """Open the rows of an element of an AnnData object.

    Parameters
    ----------
    data : anndata.AnnData, or a backed sparse dataset of anndata
        The object. An AnnData object may be in memory, backed, or a view of either.
    element : str or None
        Element that contains the rows: ``"X"``, ``"raw/X"``, ``"layers/NAME"``,
        ``"obsm/NAME"`` or ``"obsp/NAME"``. None means ``"X"``.

    Raises
    ------
    InputError
        If the object has no such element. The message lists the elements that exist.
    """
    if not hasattr(data, "obsm"):
        return open_samples(data.group, element)
    path = (element or "X").strip("/")
    kind, _, name = path.partition("/")
    found: Any = None
    if path == "X":
        found = data.file["X"] if data.isbacked and not data.is_view else data.X
    elif path == "raw/X" and data.raw is not None:
        found = data.raw.X
    elif kind in ("layers", "obsm", "obsp") and name in getattr(data, kind):
        found = getattr(data, kind)[name]
    if found is None:
        has = ["X"] * (data.X is not None) + ["raw/X"] * (data.raw is not None)
        # AnnData lists X itself as a layer without a name.
        has += [
            f"{kind}/{one}"
            for kind in ("layers", "obsm", "obsp")
            for one in getattr(data, kind)
            if one
        ]
        known = ", ".join(has) or "none"
        raise InputError(
            f"AnnData has no element {path!r}; it has: {known}. Name one with element."
        )
    variables = {"X": data, "layers": data, "raw": data.raw}.get(kind)
    names = None if variables is None else plain_names(variables.var_names)
    return open_named(found, f"AnnData's {path}", names)
