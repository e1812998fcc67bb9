"""Open rows for an estimator, and compare their columns with the columns of its fit."""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from mmcnb._fit_warnings import (
    Importance,
    collected_warnings,
    warn,
    warn_of_notes,
)
from mmcnb.errors import GapsError, InputError
from mmcnb.estimators.cell_graphs import check_neighbours
from mmcnb.samples import Samples, open_samples
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.open import names_in_frame
from mmcnb.tables.array_table import open_array, open_as_fitted
from mmcnb.tables.notes import listed
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

logger = logging.getLogger("mmcnb")


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
        The estimator. If ``reset`` is True, the number and the names of its features
        are set from the rows; otherwise, the rows are compared with them.
    X : array, frame, path or other rows
        The rows.
    reset : bool
        Whether the rows are read for a fit.
    least_rows : int, default=1
        Minimum number of rows.
    element : str or None, default=None
        Element to read from an AnnData object, a group or a file.
    options : TableOptions or None, default=None
        Table options of a fit, such as the columns to use. If None, a fit uses its
        default options, and other methods use the options of the fit.

    Returns
    -------
    Samples
        The opened rows.

    Raises
    ------
    InputError
        If the rows cannot be read or are too few, or if their columns differ from the
        columns of the fit in number, names or order. The message lists the differences.
    """
    encoding = None if reset else estimator.model_.encoding
    is_table = encoding is not None and not encoding.is_ordered
    names = None if reset or is_table else names_in_frame(X)
    if names is not None:
        # Check the names now, before any values are read from the wrong columns.
        _check_columns(estimator, "X", len(names), names, reset)
    samples = _open_input(estimator, X, reset, element, options)
    table = samples.encoding
    if reset:
        warn_of_notes(samples.notes)
    if samples.n_samples < least_rows:
        raise InputError(
            f"{samples.name} contains {samples.n_samples} sample(s), "
            f"while a minimum of {least_rows} is required; pass more rows."
        )
    if encoding is not None and _is_table_of(samples, encoding):
        return samples
    if takes_distances(estimator):
        if reset:
            check_neighbours(X, element, samples)
        else:
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
    """Open rows with the table options of the fit, and fill their missing values."""
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
        warn_of_notes(samples.notes)
    if chosen is not None and samples.encoding is None:
        name = "columns" if chosen.columns is not None else "keep"
        raise InputError(
            f"{name} applies to data frames and tables only, and {samples.name} is "
            "neither; leave it out."
        )
    return samples


def filled_from_fit(
    estimator: object, X: object, element: str | None = None
) -> Samples | None:
    """Open rows, and fill their missing values from the rows of the fit.

    Return None if the model does not store rows of the fit.
    """
    of_gaps = options_of_gaps(estimator)
    return None if of_gaps is None else open_array(X, element, of_gaps)


def filling_gaps(method: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a method to run again with filled rows if X has missing values.

    If a pass over X raises `GapsError`, the missing values are filled from the rows of
    the fit, a warning is issued, and the method is called again.

    Parameters
    ----------
    method : callable
        Method of a fitted estimator with a parameter ``X`` and optionally ``element``.
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
        warn(
            f"{given['X'].name}: missing values are filled from the nearest rows of "
            "the fit.",
            Importance.ADVICE,
        )
        return method(*call.args, **call.kwargs)

    return answer


def takes_distances(estimator: Any) -> bool:
    """Return whether the input of an estimator is a matrix of distances between rows.

    ``metric`` may have any type here, because parameters are checked only after the
    rows are opened.
    """
    return isinstance(estimator.metric, str) and estimator.metric == "precomputed"


def collecting_warnings(method: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a fit to issue its warnings at the end, and to list them in its report.

    Parameters
    ----------
    method : callable
        Method of an estimator that sets ``report_``.
    """

    @wraps(method)
    def answer(*args: P.args, **options: P.kwargs) -> Result:
        with collected_warnings() as collected:
            result = method(*args, **options)
            estimator: Any = args[0]
            estimator.report_["warnings"] = collected.sentences
        for sentence in collected.sentences:
            logger.info(sentence)
        return result

    return answer


def open_with_filled_gaps(
    X: object, element: str | None = None, memory_limit: str | int | None = None
) -> Samples:
    """Open rows as a fit does, and fill their missing values.

    If the values of an array are not read when it is opened, missing values raise
    `GapsError` when they are read.
    """
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
    """Fill the missing values of opened samples if they can be opened or read again.

    Otherwise, return the samples unchanged.
    """
    if samples.encoding is None:
        return open_as_fitted(samples, element, options) or samples
    if samples.refilled is None or options.missing != "neighbors":
        return samples
    return samples.refilled(options.encoding)


def open_meta(
    meta: object, samples: Samples, memory_limit: str | int | None = None
) -> Samples:
    """Open a table that describes the rows, and fill missing values with medians.

    Dates are read as seconds since 1970.

    Raises
    ------
    InputError
        If the table cannot be read, or if it has more or fewer rows than ``samples``.
    """
    described = _opened(meta, None, OF_META, memory_limit)
    if described.n_samples != samples.n_samples:
        raise InputError(
            f"meta has {described.n_samples:,} rows, but {samples.name} has "
            f"{samples.n_samples:,}; pass one row of meta for each row."
        )
    return described


def columns_left_out(samples: Samples) -> dict[str, str]:
    """Return the columns of a table that are left out, with the reasons."""
    columns = () if samples.encoding is None else samples.encoding.columns
    return {
        column.name: column.why
        for column in columns
        if column.kind == "left out" and column.why
    }


def warn_of_left_out(described: Samples) -> None:
    """Warn of columns of a table about the rows that do not explain the clusters."""
    reasons = [f"{name!r} ({why})" for name, why in columns_left_out(described).items()]
    if not reasons:
        return
    verb = "column of meta is" if len(reasons) == 1 else "columns of meta are"
    warn(
        f"{len(reasons)} {verb} left out of the explanation: {listed(reasons)}.",
        Importance.DATA,
    )


def chosen_columns(columns: object, keep: object) -> TableOptions | None:
    """Return the table options that select columns by ``columns`` and ``keep``.

    Return None if both are None.
    """
    if columns is None and keep is None:
        return None
    from mmcnb.tables.plan import TablePlan

    if isinstance(columns, TablePlan):
        if keep is not None:
            raise InputError(
                "keep cannot change a plan of columns; pass columns=plan.keep(...)."
            )
        if columns.options.missing != "auto":
            return columns.options
        return replace(columns.options, missing="neighbors")
    return TableOptions(columns=columns, keep=keep, missing="neighbors")


def _check_distances(samples: Samples, n_fitted: int) -> None:
    """Raise InputError if rows are not distances to the rows of the fit."""
    if samples.n_features != n_fitted:
        raise InputError(
            f"{samples.name} has {samples.n_features} columns, but a model with "
            f"metric='precomputed' needs one column for each of the {n_fitted:,} rows "
            "of the fit, with the distances to the nearest of them; pass sklearn."
            "neighbors.NearestNeighbors(n_neighbors=10).fit(rows_of_the_fit)."
            "kneighbors_graph(X, mode='distance')."
        )


def _is_table_of(samples: Samples, encoding: Encoding) -> bool:
    """Return whether rows are a table with the columns of the fit.

    Raise InputError if the rows are a table with other columns, or if they are not a
    table although the fit had columns that are not plain numbers.
    """
    table = samples.encoding
    if (table or samples).feature_names == encoding.feature_names:
        warn_of_notes(samples.notes)
        return True
    if table is not None or not encoding.is_plain:
        raise InputError(
            f"{samples.name} is not a table with the columns of the fit; "
            "pass a data frame or the path of a table."
        )
    return False


def _check_columns(
    estimator: "Estimator",
    name: str,
    n_features: int,
    names: list[str] | None,
    reset: bool,
) -> None:
    """Set the number and names of the features if ``reset``, otherwise check them.

    This is done by scikit-learn.
    """
    columns: Any = np.empty((0, n_features))
    if names is not None:
        import pandas as pd

        columns = pd.DataFrame(columns=names)
    try:
        validate_data(estimator, columns, reset=reset, skip_check_array=True)
    except ValueError as error:
        sentence = str(error).replace("X has", f"{name} has", 1)
        if sentence.endswith("\n"):
            remedy = "Pass rows with the columns of the fit."
            if names is not None and set(names) == set(estimator.feature_names_in_):
                remedy = "Pass X[estimator.feature_names_in_]."
        else:
            sentence = " ".join(sentence.split()).removesuffix(".")
            remedy = "; pass rows with the columns of the fit."
        raise InputError(sentence + remedy) from error
