"""Convert array-like objects to numeric arrays, with errors that name the problem."""

import numbers
import reprlib
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse

from mmcnb.errors import InputError, worded
from mmcnb.samples.matrix import block_dtype, check_dtype, check_shape


def plain_array(source: Any, name: str, are_rows: bool = False) -> np.ndarray:
    """Convert an array-like object to a NumPy array of real numbers.

    Parameters
    ----------
    source : array or sequence of rows
        The values. Python objects must all be numbers, and are converted to float64.
    name : str
        Name used for the array in messages.
    are_rows : bool, default=False
        Whether ``source`` contains the rows to cluster. If these are text, the error
        message then says how to cluster text.

    Returns
    -------
    ndarray
        The array.

    Raises
    ------
    InputError
        If ``source`` is an np.matrix, has masked values, or contains a value that is
        not a real number.
    """
    if isinstance(source, np.matrix):
        raise InputError(
            f"{name} is an np.matrix, which is not supported: pass np.asarray(X)."
        )
    if isinstance(source, np.ma.MaskedArray):
        _check_mask(source, name)
    array = _joined(source, name)
    if are_rows:
        _refuse_texts(array, name)
    if array.dtype.kind != "O":
        check_dtype(array.dtype, name)
        return array
    _refuse_objects(array, name, is_number)
    with worded(
        f"{name} contains a number above the largest float64", "scale it", OverflowError
    ):
        return array.astype(np.float64)


def plain_values(source: Any, name: str, text: bool = False) -> np.ndarray:
    """Convert one value per row, such as a weight or a class, to a NumPy array.

    Parameters
    ----------
    source : array-like
        The values. The caller checks their shape.
    name : str
        Name used for the values in messages.
    text : bool, default=False
        Whether strings, such as class names, are allowed.

    Returns
    -------
    ndarray
        The values.

    Raises
    ------
    InputError
        If ``source`` has no order (a set, for example), has masked values, or contains
        a value that is not a number or, if ``text`` is True, a string.
    """
    # NumPy would drop the mask of a Dask array.
    if hasattr(source, "compute"):
        source = source.compute()
    ordered = isinstance(source, list | tuple | range) or hasattr(source, "__array__")
    if not ordered or isinstance(source, type) or scipy.sparse.issparse(source):
        raise InputError(
            f"{name} is a {type(source).__name__}: pass an array or a list of values."
        )
    if not text or isinstance(source, np.matrix | np.ma.MaskedArray):
        return plain_array(source, name)
    array = _joined(source, name)
    if array.dtype.kind == "O":
        _refuse_objects(
            array,
            name,
            lambda value: is_number(value) or isinstance(value, str | bytes),
        )
        missing = any(_is_missing(value) for value in array.flat)
    else:
        if array.dtype.kind not in "UST":
            check_dtype(array.dtype, name)
        missing = array.dtype.kind == "f" and not np.isfinite(array).all()
    if missing:
        raise InputError(
            f"Input {name} contains NaN, infinity or a missing value: "
            "assign a class to each row."
        )
    return array


def _joined(source: Any, name: str) -> np.ndarray:
    """Convert an object to a NumPy array; raise InputError if this fails."""
    if isinstance(source, np.ndarray):
        return np.asarray(source)
    if isinstance(source, list | tuple):
        _check_rows(source, name)
    # The object's own __array__ may raise any exception.
    with (
        worded(f"{name} is not an array of numbers", "correct it"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")  # such as a masked value that becomes NaN
        return np.asarray(source)


def _check_mask(array: np.ma.MaskedArray, name: str) -> None:
    places = np.argwhere(np.ma.getmaskarray(array))
    if len(places):
        column = f", column {places[0][1]}" if array.ndim == 2 else ""
        found = f"{len(places)} masked values, the first at row {places[0][0]}{column}"
        remedy = "replace each by a value"
        if array.ndim == 2:
            remedy = "replace them by NaN with X.astype(float).filled(numpy.nan)"
        raise InputError(f"{name} is a masked array with {found}: {remedy}.")


def _check_rows(rows: Sequence[Any], name: str) -> None:
    """Raise InputError if rows differ in length, are sparse, or have masked values."""
    for number, row in enumerate(rows):
        if isinstance(row, np.ma.MaskedArray) and row.ndim:
            _check_mask(row, f"row {number} of {name}")
        if scipy.sparse.issparse(row):
            raise InputError(
                f"{name} is a list of sparse matrices: "
                "join them with scipy.sparse.vstack(X)."
            )
    lengths = [len(row) if isinstance(row, list | tuple) else None for row in rows]
    other = next((k for k, length in enumerate(lengths) if length != lengths[0]), None)
    if other is not None:
        unlike = f"rows of different lengths, such as rows 0 and {other}"
        raise InputError(f"{name} has {unlike}: pass rows x features (2-D).")


def _refuse_texts(array: np.ndarray, name: str) -> None:
    """Raise InputError if all values of an array are text.

    The message says how to cluster text.
    """
    is_text = array.dtype.kind in "UST"
    if array.dtype.kind == "O" and array.size:
        is_text = all(isinstance(value, str) for value in array.flat)
    if not is_text:
        return
    try:
        array.astype(np.float64)
        remedy = "convert it with numpy.asarray(X, dtype=float)"
    except (ValueError, TypeError):
        remedy = "pass pandas.DataFrame(X), whose text columns become categories"
        if array.ndim < 2 or array.shape[1] == 1:
            texts = "X" if array.ndim < 2 else "numpy.ravel(X)"
            remedy = (
                "convert documents to numbers, such as TF-IDF with sklearn.feature_"
                f"extraction.text.TfidfVectorizer().fit_transform({texts}), or the "
                "embeddings of a language model"
            )
    raise NoNumberError(
        f"{name} contains text (dtype {array.dtype}), which is not supported: {remedy}."
    )


def _refuse_objects(
    array: np.ndarray, name: str, is_fine: Callable[[Any], bool]
) -> None:
    """Raise NoNumberError for the first object that ``is_fine`` rejects."""
    for place, value in np.ndenumerate(array):
        if is_fine(value):
            continue
        at = ", ".join(
            f"{axis} {k}" for axis, k in zip(("row", "column"), place, strict=False)
        )
        # scikit-learn's common checks expect this part of the message of float().
        type_ = type(value).__name__
        kind = f"(an argument must be a string or a real number, not {type_!r})"
        shown = reprlib.repr(value)
        found = (
            f"text, {shown}" if isinstance(value, str | bytes) else f"{shown} {kind}"
        )
        missing = _is_missing(value)
        remedy = (
            "fill in or drop such rows"
            if missing
            else "convert it to a number, or drop its column"
        )
        raise NoNumberError(f"{name} contains {found}{at and f' at {at}'}: {remedy}.")


class NoNumberError(InputError, TypeError):
    """Error for values that are not numbers.

    It is also a TypeError, because scikit-learn's estimator checks expect one.
    """


def is_number(value: Any) -> bool:
    """Return whether an object is a real number or a bool.

    NumPy registers timedelta64 as an integer type, but mmcnb does not treat durations
    as numbers.
    """
    return isinstance(value, numbers.Real | Decimal | np.bool_) and not isinstance(
        value, np.timedelta64
    )


def _is_missing(value: Any) -> bool:
    named = type(value).__name__ in ("NoneType", "NAType", "NaTType", "MaskedConstant")
    return named or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def plain_csr(source: Any, name: str) -> Any:
    """Convert a SciPy sparse matrix of any format to CSR.

    Parameters
    ----------
    source : sparse matrix or array
        The matrix. Its indices are checked before it is converted, because SciPy would
        read out of bounds if they were invalid.
    name : str
        Name used for the matrix in messages.

    Returns
    -------
    csr_array or csr_matrix
        ``source`` itself, with unchecked indices, if it is already in CSR format;
        otherwise a CSR matrix with the dtype that `block_dtype` returns.

    Raises
    ------
    InputError
        If the values are not real numbers, if the matrix is not 2-D or is empty, or if
        its index arrays are inconsistent.
    """
    check_shape(source.shape, name)
    check_dtype(source.dtype, name)
    if isinstance(getattr(source, "data", None), np.ma.MaskedArray):
        _check_mask(source.data, f"the array data of {name}")
    if source.format == "csr":
        return source
    fault = f"{name}: the {source.format.upper()} matrix is damaged"
    with worded(fault, "make it again"), warnings.catch_warnings():
        warnings.simplefilter("error")
        if hasattr(source, "check_format"):  # CSC and BSR
            source.check_format(full_check=True)
        elif source.format == "coo":
            # The constructor checks the indices.
            type(source)((source.data, (source.row, source.col)), shape=source.shape)
        # The conversion sums duplicate entries, and small integers could overflow in
        # their own dtype.
        return source.astype(block_dtype(source.dtype), copy=False).tocsr()


def check_feature_names(names: Any, n_features: int, name: str) -> list[str] | None:
    """Return the column names as a list of str, or None if ``names`` is None."""
    if names is None:
        return None
    listed = list(names) if np.iterable(names) and not isinstance(names, str) else []
    if len(listed) != n_features or not all(isinstance(one, str) for one in listed):
        fault = (
            f"{name}: feature_names has {len(listed)} entries for {n_features} columns"
        )
        raise InputError(f"{fault}: pass one string per column, or None.")
    return [str(one) for one in listed]
