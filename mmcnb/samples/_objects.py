"""Objects of other libraries, taken apart into arrays and matrices."""

from typing import Any, NamedTuple

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples.matrix import block_dtype

READ_AS_THEY_ARE = ("zarr", "h5py")


class Rows(NamedTuple):
    """What an object holds: rows that have a reader, names of the columns, and a name for messages."""

    source: Any
    names: list[str] | None = None
    name: str | None = None


def packages(source: Any) -> set[str]:
    """The packages that define the type of an object and its bases."""
    return {base.__module__.partition(".")[0] for base in type(source).__mro__}


def names_in_frame(source: Any) -> list[str] | None:
    """Names of the columns of a data frame, whose numbers are not read; None for anything else."""
    if not packages(source).isdisjoint((*READ_AS_THEY_ARE, *OBJECTS)):
        return None
    frame = _frame(source)
    if frame is None:
        return None
    from mmcnb.samples._frames import column_names

    return column_names(frame)


def unwrap(source: Any, element: str | None) -> Rows:
    """What an object holds, for its reader.

    Raises
    ------
    InputError
        It holds no rows, or has no such element.
    """
    take = next((OBJECTS[package] for package in OBJECTS if package in packages(source)), None)
    if take is not None and "pandas" not in packages(source):  # AnnData's views are frames
        return take(source, element)
    frame = _frame(source)
    _refuse_element(source, element)
    if frame is not None:
        from mmcnb.samples._frames import FRAME, read_frame

        return Rows(*read_frame(frame), FRAME)
    if isinstance(source, list | tuple) or (hasattr(source, "__array__") and not isinstance(source, type)):
        from mmcnb.samples._arrays import plain_array

        return Rows(plain_array(source, "X"))
    raise InputError(
        f"X is a {type(source).__name__}, which cannot be read: give an array, a SciPy CSR matrix, a data "
        "frame, AnnData, a Zarr array or group, or a path."
    )


def _refuse_element(source: Any, element: str | None) -> None:
    if element is not None:
        raise InputError(
            f"X is a {type(source).__name__}, which has no element {element!r}: leave element out."
        )


def _frame(source: Any) -> Any:
    if isinstance(source, list | tuple) or type(source).__module__ == "builtins":
        return None
    from mmcnb.samples._frames import as_frame

    return as_frame(source)


def _anndata(source: Any, element: str | None) -> Rows:
    from mmcnb.samples._anndata import element_of, stored_rows

    return Rows(*element_of(source, element)) if hasattr(source, "obsm") else Rows(stored_rows(source))


def _dask(source: Any, element: str | None) -> Rows:
    _refuse_element(source, element)
    if type(source).__module__.startswith("dask.dataframe"):
        return _dask_frame(source)
    raise InputError(f"X is a Dask {type(source).__name__}, which has no rows: give a Dask array or frame.")


def _dask_frame(source: Any) -> Rows:
    from mmcnb.samples._frames import column_names

    if source.ndim != 2:
        raise InputError("X is one column of a Dask frame: give a frame, such as by X.to_frame().")
    for name, dtype in source.dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf" or not isinstance(dtype, np.dtype):
            raise InputError(
                f"column {name!r} of the Dask frame holds {dtype}, no plain numbers: convert it by "
                "X.astype('float64'), or drop it."
            )
    rows = source.astype(block_dtype(*source.dtypes)).to_dask_array(lengths=True)
    return Rows(rows, column_names(source), "the Dask frame")


def _xarray(source: Any, element: str | None) -> Rows:
    _refuse_element(source, element)
    if not hasattr(source, "data") or not hasattr(source, "dims"):
        raise InputError(f"X is an xarray {type(source).__name__}: give one DataArray, such as by X['name'].")
    return Rows(source.data, None, "the DataArray")


OBJECTS = {"anndata": _anndata, "dask": _dask, "xarray": _xarray}
"""How objects are taken apart, by their package."""
