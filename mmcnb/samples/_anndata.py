"""AnnData: its elements in memory and backed, and the names of its variables."""

from collections.abc import Iterable
from typing import Any

import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._inventory import REMEDY, check_codecs, join


def annotation_of(path: str) -> str | None:
    """Path of the data frame that names the columns of an element; None where none does.

    The columns of ``X`` and of all layers are the variables; those of ``obsm`` have no names.
    """
    *above, last = path.split("/")
    if last == "X":
        return join(*above, "var")
    return join(*above[:-1], "var") if above and above[-1] == "layers" else None


def plain_text(values: Iterable[Any]) -> list[str]:
    """Names as text, also those that HDF5 gives as bytes."""
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def plain_names(values: Iterable[Any]) -> list[str] | None:
    """Names as text; None where they are the numbers of the columns, which AnnData gives by default."""
    names = plain_text(values)
    return None if names == [str(column) for column in range(len(names))] else names


def stored_names(node: zarr.Array | zarr.Group, name: str) -> list[str] | None:
    """Names of the columns of an element of a Zarr store, where the store is AnnData's."""
    path = annotation_of(node.path)
    if path is None:
        return None
    try:
        group: Any = zarr.open_group(node.store, mode="r", path=path, use_consolidated=False)
        array = _index_of(group, name)
        return None if array is None else plain_names(array[:])
    except InputError:  # of a store that could not be reached
        raise
    except FileNotFoundError:
        return None
    except Exception as error:  # each codec and each store has its own exceptions
        raise DamagedStoreError(f"{name}: the names in {path} cannot be read: {REMEDY}.") from error


def _index_of(group: Any, name: str) -> Any:
    """The array of names that a data frame's attribute ``_index`` names, which is a member of its group."""
    key = group.attrs.get("_index")
    if key is None:
        return None
    if not isinstance(key, str) or "/" in key or key not in group:
        raise DamagedStoreError(f"{name}: {group.name} names no member of its own as _index: {REMEDY}.")
    array = group[key]
    if len(getattr(array, "shape", ())) != 1:
        raise DamagedStoreError(f"{name}: {key} of {group.name} is no 1-D array of names: {REMEDY}.")
    if isinstance(array, zarr.Array):
        check_codecs(array, name)
    return array


def observation_names(samples: Any) -> Any:
    """The array of the names of the observations beside rows of an AnnData store or file, not yet read."""
    node = getattr(samples.root, "node", None)
    if node is None:
        return None
    in_zarr = isinstance(node, zarr.Array | zarr.Group)
    path = (node.path if in_zarr else node.name).strip("/")
    if path not in ("X", "raw/X") and path.partition("/")[0] not in ("layers", "obsm"):
        return None
    try:
        root: Any = zarr.open_group(node.store, mode="r", use_consolidated=False) if in_zarr else node.file
        group = root.get("obs")
        return None if group is None else _index_of(group, samples.name)
    except InputError:  # of a store that could not be reached
        raise
    except FileNotFoundError:
        return None
    except Exception as error:  # as for the names of variables
        raise DamagedStoreError(f"{samples.name}: the names in obs cannot be read: {REMEDY}.") from error


def element_of(data: Any, element: str | None) -> tuple[Any, list[str] | None, str]:
    """Rows of an element of an AnnData object, names of their columns, and a name for messages.

    Parameters
    ----------
    data : anndata.AnnData
        In memory, backed, or a view of either.
    element : str or None
        ``"X"``, ``"raw/X"``, ``"layers/NAME"`` or ``"obsm/NAME"``; None is ``"X"``.

    Raises
    ------
    InputError
        The object has no such element; the message lists those it has.
    """
    path = (element or "X").strip("/")
    kind, _, name = path.partition("/")
    found: Any = None
    if path == "X":
        found = data.file["X"] if data.isbacked and not data.is_view else data.X
    elif path == "raw/X" and data.raw is not None:
        found = data.raw.X
    elif kind in ("layers", "obsm") and name in getattr(data, kind):
        found = getattr(data, kind)[name]
    if found is None:
        has = [] if data.X is None else ["X"]
        has += [] if data.raw is None else ["raw/X"]
        has += [f"{group}/{name}" for group in ("layers", "obsm") for name in getattr(data, group)]
        known = ", ".join(has) or "none"
        raise InputError(f"AnnData has no element {path!r}; it has: {known}. Name one with element.")
    variables = {"X": data, "layers": data, "raw": data.raw}.get(kind)
    names = None if variables is None else plain_names(variables.var_names)
    return stored_rows(found), names, f"AnnData's {path}"


def stored_rows(rows: Any) -> Any:
    """The group of a file or store that AnnData's own sparse rows stand for; others as they are."""
    is_backed = type(rows).__module__.startswith("anndata") and type(rows).__name__.endswith("Dataset")
    return rows.group if is_backed else rows
