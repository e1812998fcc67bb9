"""Fill gaps in rows (missing values) from the nearest rows that have a value."""

import numpy as np

from mmcnb._numba import njit

# A gap is not filled if the farthest donor that would be used has more than this
# multiple of the squared distance of at least n_neighbors donors.
FAR = 9.0


@njit()
def _add_squares(distances, scaled, columns, donors, is_known):
    """Add the squared differences in four columns of numbers at once."""
    c0, c1, c2, c3 = columns
    x0 = scaled[c0]
    x1 = scaled[c1]
    x2 = scaled[c2]
    x3 = scaled[c3]
    for j in range(distances.size):
        d0 = x0 - donors[c0, j]
        d1 = x1 - donors[c1, j]
        d2 = x2 - donors[c2, j]
        d3 = x3 - donors[c3, j]
        distances[j] += (
            is_known[c0, j] * (d0 * d0)
            + is_known[c1, j] * (d1 * d1)
            + is_known[c2, j] * (d2 * d2)
            + is_known[c3, j] * (d3 * d3)
        )


@njit()
def _squared_distances(distances, scaled, steps, donors, is_known, n_shared):
    """Compute squared distances from a row to all donors, over shared columns.

    A column is shared if both the row and the donor have a value there. The squared
    distances are divided by the fraction of columns that are shared, and are infinite
    if there are no shared columns. On entry, ``n_shared`` contains the number of values
    of each donor; on return, it contains the number of shared columns.
    """
    n_columns, n_donors = donors.shape
    numbers = np.empty(n_columns, np.int64)
    n_numbers = 0
    distances[:] = 0.0
    for c in range(n_columns):
        x = scaled[c]
        if np.isnan(x):
            for j in range(n_donors):
                n_shared[j] -= is_known[c, j]
        elif steps[c] > 0.0:
            for j in range(n_donors):
                step = steps[c] if donors[c, j] != x else 0.0
                distances[j] += is_known[c, j] * step
        else:
            numbers[n_numbers] = c
            n_numbers += 1
    n_fours = n_numbers // 4 * 4
    for k in range(0, n_fours, 4):
        columns = (numbers[k], numbers[k + 1], numbers[k + 2], numbers[k + 3])
        _add_squares(distances, scaled, columns, donors, is_known)
    for k in range(n_fours, n_numbers):
        c = numbers[k]
        x = scaled[c]
        for j in range(n_donors):
            difference = x - donors[c, j]
            distances[j] += is_known[c, j] * (difference * difference)
    for j in range(n_donors):
        if n_shared[j] > 0.0:
            distances[j] *= n_columns / n_shared[j]
        else:
            distances[j] = np.inf


@njit()
def _nearest_known(distances, is_known, nearest, nearest_distances):
    """Find the nearest donors that have a value in a column; return their number.

    The nearest donor comes first. Ties go to the donor with the smaller index.
    """
    n_found = 0
    most = nearest.size
    farthest = np.inf
    for j in range(distances.size):
        distance = distances[j]
        if not distance < farthest or is_known[j] == 0.0:
            continue
        place = min(n_found, most - 1)
        while place > 0 and distance < nearest_distances[place - 1]:
            nearest[place] = nearest[place - 1]
            nearest_distances[place] = nearest_distances[place - 1]
            place -= 1
        nearest[place] = j
        nearest_distances[place] = distance
        n_found = min(n_found + 1, most)
        if n_found == most:
            farthest = nearest_distances[most - 1]
    return n_found


@njit()
def _count_below(distances, bound):
    """Count the donors whose distance is below a bound."""
    count = 0
    for j in range(distances.size):
        count += distances[j] < bound
    return count


@njit()
def _most_frequent(values):
    """Return the most frequent value; ties go to the first value."""
    best = values[0]
    most = 0
    for value in values:
        count = 0
        for other in values:
            count += value == other
        if count > most:
            most = count
            best = value
    return best


@njit()
def fill_gaps(rows, scaled, steps, donors, scaled_donors, n_neighbors):
    """Fill the gaps of rows, in place, from the nearest donors with a value there.

    Donors are rows from which values are taken. The squared distance to a donor is
    summed over the columns in which both rows have values, and divided by the fraction
    of these columns, as in `sklearn.metrics.pairwise.nan_euclidean_distances`. A gap is
    filled with the lower median of the values of the nearest donors, or with their most
    frequent category. Therefore, the new value always occurs among the donors, even if
    their values form two groups.

    A gap is not filled if none of the donors with a value in its column shares a column
    with the row, or if the nearest of these donors are more than three times as far
    from the row as the nearest of all donors. In the second case, a whole group of rows
    lacks values in this column, and values from other groups would split the group.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns), float64
        The rows. Values are numbers, or integers that stand for categories. Gaps are
        NaN.
    scaled : ndarray of shape (n_rows, n_columns), float64
        The same rows, with columns scaled so that their differences are comparable.
    steps : ndarray of shape (n_columns,), float64
        For each column of categories, the squared distance between two different
        categories; 0 for columns of numbers.
    donors : ndarray of shape (n_columns, n_donors), float64
        Values of the donors, one row per column. Gaps are NaN.
    scaled_donors : ndarray of shape (n_columns, n_donors), float64
        The same values, scaled like ``scaled``.
    n_neighbors : int
        Number of nearest donors from which a gap is filled.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels.gaps import fill_gaps
    >>> donors = np.array([[0.0, 1.0, 9.0], [2.0, 4.0, 60.0]])
    >>> rows = np.array([[0.4, np.nan]])
    >>> fill_gaps(rows, rows.copy(), np.zeros(2), donors, donors, 2)
    >>> rows
    array([[0.4, 2. ]])
    """
    n_columns, n_donors = donors.shape
    is_known = np.empty((n_columns, n_donors))
    plain = np.empty((n_columns, n_donors))
    for c in range(n_columns):
        for j in range(n_donors):
            is_gap = np.isnan(donors[c, j])
            is_known[c, j] = 0.0 if is_gap else 1.0
            plain[c, j] = 0.0 if is_gap else scaled_donors[c, j]
    n_known = is_known.sum(axis=0)
    n_shared = np.empty(n_donors)
    distances = np.empty(n_donors)
    nearest = np.empty(n_neighbors, np.int64)
    nearest_distances = np.empty(n_neighbors)
    values = np.empty(n_neighbors)
    for row in range(rows.shape[0]):
        if not np.isnan(rows[row]).any():
            continue
        n_shared[:] = n_known
        _squared_distances(distances, scaled[row], steps, plain, is_known, n_shared)
        for c in range(n_columns):
            if not np.isnan(rows[row, c]):
                continue
            n_found = _nearest_known(distances, is_known[c], nearest, nearest_distances)
            if n_found == 0:
                continue
            farthest = nearest_distances[n_found - 1] / FAR
            if _count_below(distances, farthest) >= n_neighbors:
                continue
            for k in range(n_found):
                values[k] = donors[c, nearest[k]]
            if steps[c] > 0.0:
                rows[row, c] = _most_frequent(values[:n_found])
            else:
                rows[row, c] = np.sort(values[:n_found])[(n_found - 1) // 2]
