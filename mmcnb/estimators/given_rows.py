"""Rows that an estimator is given: opened, and compared with the columns of its fit."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from mmcnb.errors import ClusterWarning, GapsError, InputError
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.open import names_in_frame
from mmcnb.tables.array_table import open_array, open_as_fitted
from mmcnb.tables.options import (
    NUMBERS_ALONE,
    OF_FITS,
    TableOptions,
    options_of_fit,
    options_of_gaps,
)

if TYPE_CHECKING:
    from mmcnb.estimators.base import Estimator

OF_META = TableOptions(dates="epoch", missing="median")
P = ParamSpec("P")
Result = TypeVar("Result")


def read_input(
    estimator: "Estimator",
    X: object,
    reset: bool,
    least_rows: int = 1,
    element: str | None = None,
    options: TableOptions | None = None,
) -> Samples:
    """Open rows of any kind, and compare their columns with the columns of the fit.

    Parameters
    ----------
    estimator : Estimator
        Has the columns of the fit, or is given them.
    X : array, frame, path or other rows
        The rows.
    reset : bool
        Whether these are the rows of a fit.
    least_rows : int, default=1
        How many rows there must be.
    element : str or None, default=None
        Element of an AnnData object, a group or a file.
    options : TableOptions or None, default=None
        Columns of a frame or a table that are taken in a fit.

    Returns
    -------
    Samples
        The rows, opened.

    Raises
    ------
    InputError
        If they cannot be read or are too few; or if names of columns are missing, new
        or in another order, or their number differs. The message lists them.
    """
    encoding = None if reset else estimator.model_.encoding
    is_table = encoding is not None and not encoding.is_ordered
    names = None if reset or is_table else names_in_frame(X)
    if names is not None:  # before numbers are read from other columns
        _check_columns(estimator, "X", len(names), names, reset)
    samples = _open_input(estimator, X, reset, element, options)
    table = samples.encoding
    if samples.n_samples < least_rows:
        raise InputError(
            f"{samples.name} contains {samples.n_samples} sample(s), "
            f"while a minimum of {least_rows} is required; give more rows."
        )
    if encoding is not None and _is_table_of(samples, encoding):
        return samples
    if not reset and estimator.metric == "precomputed":
        _check_distances(samples, estimator.n_features_in_)
    if names is None:
        n_features = samples.n_features
        names = samples.feature_names
        if reset and table is not None:
            n_features = len(table.names_or_numbers)
            names = table.names
        _check_columns(estimator, samples.name, n_features, names, reset)
    return samples


def _open_input(
    estimator: "Estimator",
    X: object,
    reset: bool,
    element: str | None,
    chosen: TableOptions | None,
) -> Samples:
    """Open the rows of a fit, or others as the fit did, with their gaps filled."""
    memory_limit = estimator.memory_limit
    if reset and chosen is None:
        return open_with_filled_gaps(X, element, memory_limit)
    options = chosen or options_of_fit(estimator) or NUMBERS_ALONE
    of_gaps = None if reset else options_of_gaps(estimator)
    try:
        samples = _opened(X, element, options, memory_limit)
    except GapsError:
        if of_gaps is None:
            raise
        samples = open_array(X, element, of_gaps)
        _warn_of_notes(samples)
    if chosen is not None and samples.encoding is None:
        name = "columns" if chosen.columns is not None else "keep"
        raise InputError(
            f"{name} is of frames and tables, and {samples.name} is none; leave it out."
        )
    return samples


def filled_from_fit(
    estimator: object, X: object, element: str | None = None
) -> Samples | None:
    """Open rows with gaps filled from the rows of a fit; None if its model has none."""
    of_gaps = options_of_gaps(estimator)
    return None if of_gaps is None else open_array(X, element, of_gaps)


def filling_gaps(method: Callable[P, Result]) -> Callable[P, Result]:
    """Answer again with gaps filled as in the fit, if a pass over the rows finds some.

    Parameters
    ----------
    method : callable
        Of a fitted estimator, with rows X and perhaps an element of them.
    """

    @wraps(method)
    def answer(*args: P.args, **options: P.kwargs) -> Result:
        try:
            return method(*args, **options)
        except GapsError:
            call = signature(method).bind(*args, **options)
            given = call.arguments
            element = given.pop("element", None)
            given["X"] = filled_from_fit(given["self"], given["X"], element)
            if given["X"] is None:
                raise
        warnings.warn(
            f"{given['X'].name}: gaps are filled from the nearest rows of the fit.",
            ClusterWarning,
            stacklevel=2,
        )
        return method(*call.args, **call.kwargs)

    return answer


def open_with_filled_gaps(
    X: object, element: str | None = None, memory_limit: str | int | None = None
) -> Samples:
    """Open rows as for a fit; gaps of arrays that are read later raise `GapsError`."""
    try:
        return _opened(X, element, OF_FITS, memory_limit)
    except GapsError:
        return open_array(X, element, OF_FITS)


def _opened(
    X: object,
    element: str | None,
    options: TableOptions,
    memory_limit: str | int | None,
) -> Samples:
    if isinstance(X, Samples):
        return _filled_as_fitted(X, element, options)
    return open_samples(X, element, options=options, memory_limit=memory_limit)


def _filled_as_fitted(
    samples: Samples, element: str | None, options: TableOptions
) -> Samples:
    """Fill the gaps of rows that are open already, if they can be read again."""
    if samples.encoding is None:
        return open_as_fitted(samples, element, options) or samples
    if samples.refilled is None or options.missing != "neighbors":
        return samples
    return samples.refilled(options.encoding)


def open_meta(
    meta: object, samples: Samples, memory_limit: str | int | None = None
) -> Samples:
    """Open a table beside rows, with dates, and with gaps filled by medians.

    Raises
    ------
    InputError
        It cannot be read, or has another number of rows.
    """
    described = _opened(meta, None, OF_META, memory_limit)
    if described.n_samples != samples.n_samples:
        raise InputError(
            f"meta has {described.n_samples:,} rows, but {samples.name} has "
            f"{samples.n_samples:,}; give one row of meta for each row."
        )
    return described


def chosen_columns(columns: object, keep: object) -> TableOptions | None:
    """Return options with the columns that a fit takes; None if nothing is chosen."""
    if columns is None and keep is None:
        return None
    from mmcnb.tables.plan import TablePlan

    if isinstance(columns, TablePlan):
        if keep is not None:
            raise InputError(
                "keep cannot change a plan of columns: give columns=plan.keep(...)."
            )
        if columns.options.missing != "auto":
            return columns.options
        return replace(columns.options, missing="neighbors")
    return TableOptions(columns=columns, keep=keep, missing="neighbors")


def _check_distances(samples: Samples, n_fitted: int) -> None:
    """Refuse rows that are not distances to the rows of the fit."""
    if samples.n_features != n_fitted:
        raise InputError(
            f"{samples.name} has {samples.n_features} columns, but a model with "
            f"metric='precomputed' wants the distances of each row to the {n_fitted:,} "
            "rows of the fit, of which those to the nearest suffice; give sklearn."
            "neighbors.NearestNeighbors(n_neighbors=10).fit(rows_of_the_fit)."
            "kneighbors_graph(X, mode='distance')."
        )


def _is_table_of(samples: Samples, encoding: Encoding) -> bool:
    """Return whether rows have the named columns of a fit; others must be numbers."""
    table = samples.encoding
    if (table or samples).feature_names == encoding.feature_names:
        _warn_of_notes(samples)
        return True
    if table is not None or not encoding.is_plain:
        raise InputError(
            f"{samples.name} is no table with the columns of the fit; "
            "give a frame or the path of one."
        )
    return False


def _warn_of_notes(samples: Samples) -> None:
    for note in samples.notes:
        warnings.warn(note, ClusterWarning, stacklevel=5)


def _check_columns(
    estimator: "Estimator",
    name: str,
    n_features: int,
    names: list[str] | None,
    reset: bool,
) -> None:
    """Set the columns of a fit, or compare other columns with them, as scikit-learn."""
    columns: Any = np.empty((0, n_features))
    if names is not None:
        import pandas as pd

        columns = pd.DataFrame(columns=names)
    try:
        validate_data(estimator, columns, reset=reset, skip_check_array=True)
    except ValueError as error:
        sentence = str(error).replace("X has", f"{name} has", 1)
        if sentence.endswith("\n"):
            remedy = "Give rows with the columns of the fit."
            if names is not None and set(names) == set(estimator.feature_names_in_):
                remedy = "Give X[estimator.feature_names_in_]."
        else:
            sentence = " ".join(sentence.split()).removesuffix(".")
            remedy = "; give rows with the columns of the fit."
        raise InputError(sentence + remedy) from error
