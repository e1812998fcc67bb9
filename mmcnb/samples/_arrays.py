"""Arrays in memory that are more or less than numbers, and names of columns."""

from typing import Any

import numpy as np

from mmcnb.errors import InputError
from mmcnb.samples.matrix import check_dtype


def plain_array(source: Any, name: str, numbers: bool = True) -> np.ndarray:
    """An array without a class of its own; what would lose its meaning is refused.

    Parameters
    ----------
    source : array or sequence of rows
        Objects that are all numbers become float64.
    name : str
        For messages.
    numbers : bool, default=True
        Whether to convert objects.

    Returns
    -------
    ndarray

    Raises
    ------
    InputError
        The array is a matrix, has masked values, or holds text, dates or records.
    """
    if isinstance(source, np.matrix):
        raise InputError(f"{name} is an np.matrix, which is not supported: give np.asarray(X).")
    if isinstance(source, np.ma.MaskedArray):
        _check_mask(source, name)
    try:
        array = np.asarray(source)
    except ValueError as error:
        raise InputError(f"{name} has rows of different lengths: give rows x features (2-D).") from error
    if array.dtype.kind in "VMmUST":
        check_dtype(array.dtype, name)
    return array if array.dtype.kind != "O" else _from_objects(array, name, numbers)


def _check_mask(array: np.ma.MaskedArray, name: str) -> None:
    places = np.argwhere(np.ma.getmaskarray(array))
    if len(places):
        column = f", column {places[0][1]}" if array.ndim == 2 else ""
        raise InputError(
            f"{name} is a masked array with {len(places)} masked values, the first at row {places[0][0]}"
            f"{column}: fill them, such as by X.filled(0), or drop such rows."
        )


def _from_objects(array: np.ndarray, name: str, numbers: bool) -> np.ndarray:
    text = next((k for k, value in enumerate(array.flat) if isinstance(value, str | bytes)), None)
    if text is not None:
        place = np.unravel_index(text, array.shape)
        where = ", ".join(f"{axis} {k}" for axis, k in zip(("row", "column"), place, strict=False))
        raise InputError(
            f"{name} holds text, {array.flat[text]!r} at {where}: convert it to a number, or drop its column."
        )
    if not numbers:
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} holds objects that are no numbers: convert them to real numbers."
        ) from error


def check_feature_names(names: Any, n_features: int, name: str) -> list[str] | None:
    """Names of columns as a list of text, one a column; None where there are none."""
    if names is None:
        return None
    listed = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(listed) != n_features or not all(isinstance(one, str) for one in listed):
        raise InputError(
            f"{name}: feature_names has {len(listed)} entries for {n_features} columns: "
            "give one text a column, or None."
        )
    return [str(one) for one in listed]
