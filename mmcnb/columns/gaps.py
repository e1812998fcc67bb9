"""Fill missing values of rows from similar rows of the fit, called donors."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mmcnb._config import n_threads
from mmcnb.columns.order import order_of_columns
from mmcnb.columns.treatment import treat
from mmcnb.kernels import unchecked
from mmcnb.samples.donors import Donors
from mmcnb.samples.encoding import Encoding
from mmcnb.samples.one_hot import narrow, widen

MOST_DONORS = 1000
MOST_DONATED = 2**19  # numbers in all donors together: 4 MiB of a model file
LEAST_DONORS = 250
N_NEIGHBORS = 5
PART_ROWS = 2048  # rows that a thread fills at a time


def donor_numbers(n_rows: int, n_columns: int) -> np.ndarray:
    """Draw the rows that become donors, using a fixed random seed.

    Parameters
    ----------
    n_rows : int
        Number of rows to draw from.
    n_columns : int
        Number of columns. The more columns, the fewer donors are drawn.

    Returns
    -------
    ndarray of int
        Indices of the drawn rows, in ascending order. At most 1,000 rows are drawn. If
        these would have more than 2**19 numbers in total, fewer rows are drawn, but not
        fewer than 250.
    """
    most = max(LEAST_DONORS, min(MOST_DONORS, MOST_DONATED // max(1, n_columns)))
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.RandomState(0).permutation(n_rows)[:most])


def donors_of_sample(
    sample: np.ndarray, encoding: Encoding | None = None
) -> Donors | None:
    """Make donors from a sample of the rows of a fit.

    Parameters
    ----------
    sample : ndarray of shape (m, d)
        Rows without missing values. A text has a 0/1 column for each category.
    encoding : Encoding or None, default=None
        Encoding of the table from which the rows come; None if they come from an array.

    Returns
    -------
    Donors or None
        None if the encoding already determines how missing values are filled, which is
        the case unless the fit left out rows with missing values.
    """
    if encoding is not None and not encoding.drops_gaps:
        return None
    n_categories: list[int | None] = [None] * sample.shape[1]
    rows = sample[donor_numbers(*sample.shape)].astype(np.float64)
    if encoding is not None:
        n_categories = encoding.n_categories
        rows = narrow(rows, n_categories)
    return make_donors(rows, n_categories)


def make_donors(rows: np.ndarray, n_categories: Sequence[int | None]) -> Donors:
    """Make donors from rows, with a scaling that makes their columns comparable.

    The columns are scaled as with ``scale="auto"``.

    Parameters
    ----------
    rows : ndarray of shape (m, c), float64
        The rows. Texts are represented by category codes, and missing values by NaN.
    n_categories : sequence of int or None
        Number of categories of each text column, and None for each numeric column.

    Returns
    -------
    Donors

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.columns.gaps import fill_from, make_donors
    >>> rows = np.c_[np.arange(30.0), 2.0 * np.arange(30.0)]
    >>> donors = make_donors(rows, [None, None])
    >>> block = np.array([[20.0, np.nan]])
    >>> fill_from(donors, block).tolist()
    [[20.0, 40.0]]
    """
    is_text = np.array([n_values is not None for n_values in n_categories])
    whole = rows
    known = ~np.isnan(rows)
    if not known.all():
        medians = np.zeros(rows.shape[1])
        for k, has_value in enumerate(known.T):
            if has_value.any():
                medians[k] = np.median(rows[has_value, k])
        whole = np.where(known, rows, np.where(is_text, np.floor(medians), medians))
    widths = [1 if n_values is None else n_values for n_values in n_categories]
    sources = np.repeat(np.arange(len(widths)), widths).astype(str).tolist()
    scaling = treat("auto", widen(whole, n_categories), None, sources=sources).scaling
    center = np.zeros(len(widths))
    divisor = np.ones(len(widths))
    unit = np.zeros(len(widths))
    if scaling is not None:
        first = np.cumsum(widths) - widths
        center = scaling.mean[first]
        divisor = np.where(scaling.deviation[first] > 0, scaling.deviation[first], 1.0)
        if scaling.units is not None:
            unit = scaling.units[first]
    # Two different categories differ by 1 in two 0/1 columns, hence the factor 2.
    steps = np.zeros(len(widths))
    steps[is_text] = 2.0 / divisor[is_text] ** 2
    return Donors(rows, center, divisor, unit, steps)


def fill_from(donors: Donors, block: np.ndarray) -> np.ndarray:
    """Fill missing values of rows from their five nearest donors.

    For each column, the five nearest donors that have a value in this column are used.
    A missing number becomes the lower median of their values, which is always one of
    these values. A missing text becomes their most frequent category. A value stays
    missing if each donor either lacks a value in the column, or shares no column with
    the row in which both have a value.

    Parameters
    ----------
    donors : Donors
        Rows whose values replace missing values.
    block : ndarray of shape (n, c)
        Rows to fill. Texts are represented by category codes, and missing values by
        NaN.

    Returns
    -------
    ndarray of shape (n, c)
        The block itself if no value is missing, otherwise a filled copy.
    """
    with_gaps = np.flatnonzero(np.isnan(block).any(axis=1))
    if not with_gaps.size:
        return block
    prepared = _prepared(donors)
    order = prepared.order
    donors = prepared.donors
    rows = np.take(block[with_gaps].astype(np.float64), order, axis=1)
    compared = _compared(donors, rows)

    def fill(start: int) -> None:
        part = slice(start, start + PART_ROWS)
        unchecked.fill_gaps(
            rows[part],
            compared[part],
            donors.steps,
            prepared.values,
            prepared.compared,
            N_NEIGHBORS,
        )

    starts = range(0, len(rows), PART_ROWS)
    if len(starts) == 1:
        fill(0)
    else:
        with ThreadPoolExecutor(n_threads(None)) as threads:
            list(threads.map(fill, starts))
    filled = block.copy()
    filled[with_gaps[:, None], order] = rows
    return filled


def filled_rows(rows: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Fill missing values from the donors of an encoding, then with its fill values."""
    if encoding.donors is not None:
        rows = fill_from(encoding.donors, rows)
    rows = rows.copy()
    for k, column in enumerate(encoding.features):
        if column.fill is not None:
            rows[np.isnan(rows[:, k]), k] = column.fill
    return rows


class _Prepared(NamedTuple):
    """Donors, prepared for comparison with rows.

    Attributes
    ----------
    order : ndarray of shape (c,), int64
        Canonical order of the columns, determined by the values of the donors.
        Distances are sums over columns, so a canonical order makes their rounding
        independent of how the table arranges its columns.
    donors : Donors
        Donors with their columns in this order.
    values, compared : ndarray of shape (c, m), float64
        Transposed rows of these donors, unscaled and scaled for comparison.
    """

    order: np.ndarray
    donors: Donors
    values: np.ndarray
    compared: np.ndarray


@lru_cache(maxsize=2)
def _prepared(donors: Donors) -> _Prepared:
    """Return the donors in the form used to fill missing values.

    The result is cached, because all blocks of rows have the same donors.
    """
    order = order_of_columns(donors.rows)
    if order is None:
        order = np.arange(donors.rows.shape[1])
    donors = donors.of_columns(order)
    return _Prepared(
        order=order,
        donors=donors,
        values=np.ascontiguousarray(donors.rows.T),
        compared=np.ascontiguousarray(_compared(donors, donors.rows).T),
    )


def _compared(donors: Donors, rows: np.ndarray) -> np.ndarray:
    """Return rows with scaled numbers and unchanged category codes, to compare rows."""
    logged = np.flatnonzero(donors.unit)
    values = rows.copy()
    units = donors.unit[logged]
    values[:, logged] = np.copysign(
        np.log1p(np.abs(rows[:, logged]) / units), rows[:, logged]
    )
    is_number = donors.steps == 0
    values[:, is_number] -= donors.center[is_number]
    values[:, is_number] /= donors.divisor[is_number]
    return values
