"""What AnnData keeps beside the rows of an element: the names of its variables."""

from collections.abc import Iterable
from typing import Any

import zarr

from mmcnb.errors import DamagedStoreError, InputError
from mmcnb.samples._inventory import REMEDY, join


def annotation_of(path: str) -> str | None:
    """Path of the data frame that names the columns of an element; None where none does.

    The columns of ``X`` and of all layers are the variables; those of ``obsm`` have no names.
    """
    *above, last = path.split("/")
    if last == "X":
        return join(*above, "var")
    return join(*above[:-1], "var") if above and above[-1] == "layers" else None


def plain_names(values: Iterable[Any]) -> list[str] | None:
    """Names as text; None where they are the numbers of the columns, which AnnData gives by default."""
    names = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    return None if names == [str(column) for column in range(len(names))] else names


def stored_names(node: zarr.Array | zarr.Group, name: str) -> list[str] | None:
    """Names of the columns of an element of a Zarr store, where the store is AnnData's."""
    path = annotation_of(node.path)
    if path is None:
        return None
    try:
        group: Any = zarr.open_group(node.store, mode="r", path=path, use_consolidated=False)
        return None if "_index" not in group.attrs else plain_names(group[str(group.attrs["_index"])][:])
    except InputError:  # of a store that could not be reached
        raise
    except FileNotFoundError:
        return None
    except Exception as error:  # each codec and each store has its own exceptions
        raise DamagedStoreError(f"{name}: the names in {path} cannot be read: {REMEDY}.") from error
