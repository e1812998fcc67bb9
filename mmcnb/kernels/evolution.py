"""Evolution of two-cluster labels by least squares: Gieseke et al., Algorithm 1.

Labels are y in {-1, +1}. The fitness F(y) = 1 - y'Ry/n is minimised. R is either a
symmetric matrix of shape (n, n), or is represented by features Z of shape (n, r) with R
= ZZ'. Each individual stores the product y'R or y'Z, which a flip of coordinate i
changes by -2 y_i times row i. Computing the fitness after s flips costs O(s²) with R
and O(s r) with Z. If the individual survives, updating its product costs another O(s n)
or O(s r). Random numbers come from SplitMix64, so that a seed gives the same labels on
every machine and in every thread. `mmcnb.graph` has a copy of this generator, because
compiled routines that call each other must share a file: numba's cache only notices
changes in the file of a routine.
"""

import numpy as np

from mmcnb._numba import VECTORISED, njit
from mmcnb.errors import InputError
from mmcnb.kernels._checks import INTEGERS, Array, Flag, FromZero, Signs, Whole, takes

DIGITS = 10  # decimals to which fitness values are rounded before comparison
# SplitMix64: the step of the state, the multipliers and the shifts.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_30 = np.uint64(30)
SHIFT_27 = np.uint64(27)
SHIFT_31 = np.uint64(31)
SHIFT_11 = np.uint64(11)


def _check_form(arguments):
    rows, columns = arguments["M"].shape
    if arguments["matrix"] and rows != columns:
        raise InputError(
            f"M has {columns} columns; a matrix R must have as many as rows, {rows}."
        )


def _check_population(arguments):
    _check_form(arguments)
    excess = np.abs(arguments["population"].sum(axis=1, dtype=np.int64)).max()
    limit = arguments["limit"]
    if excess > limit:
        raise InputError(
            f"limit={limit} is below {excess}, the largest absolute sum of a parent's "
            f"labels; give a limit of at least {excess}."
        )


def _check_flips(arguments):
    _check_form(arguments)
    rows, counts = np.unique(arguments["flips"], return_counts=True)
    if (counts > 1).any():
        row = rows[counts > 1][0]
        raise InputError(f"flips has {row} more than once; give different rows.")


@njit()
def _random(state, n):
    """Draw a random integer from 0 to n - 1."""
    state[0] += GOLDEN
    x = state[0]
    x = (x ^ (x >> SHIFT_30)) * MIX_1
    x = (x ^ (x >> SHIFT_27)) * MIX_2
    x = x ^ (x >> SHIFT_31)
    return np.int64(np.float64(x >> SHIFT_11) * 2.0**-53 * n)


@njit(fastmath=VECTORISED)
def _dot(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit()
def _add_scaled(total, row, scale):
    for j in range(total.shape[0]):
        total[j] += row[j] * scale


@njit()
def _begin(M, matrix, population, products, values, excess):
    """Write y'M, y'Ry and the sum of y for each parent; products must be 0 on entry."""
    y = np.empty(population.shape[1])
    for p in range(population.shape[0]):
        product = products[p]
        excess[p] = 0
        for i in range(y.shape[0]):
            y[i] = population[p, i]
            excess[p] += population[p, i]
            _add_scaled(product, M[i], y[i])
        values[p] = _dot(product, y if matrix else product)


@njit()
def _flip(M, matrix, y, product, flips, step, scratch):
    """Flip y at ``flips[step]``, after earlier flips; return the change of y'Ry."""
    i = flips[step]
    sign = np.float64(y[i])
    if matrix:
        now = product[i]
        # In y, the rows flipped in earlier steps already have their new labels.
        for previous in flips[:step]:
            now += 2.0 * y[previous] * M[i, previous]
        change = 4.0 * (M[i, i] - sign * now)
    else:
        change = 4.0 * (_dot(M[i], M[i]) - sign * _dot(M[i], scratch))
        _add_scaled(scratch, M[i], -2.0 * sign)
    y[i] = -y[i]
    return change


@njit()
@takes(
    _check_flips,
    M=Array("(n, r)", "float64"),
    matrix=Flag(),
    y=Signs("(n,)", "int8"),
    product=Array("(r,)", "float64"),
    flips=FromZero("(flips,)", INTEGERS, below="n"),
)
def flip_labels(M, matrix, y, product, flips):
    """Flip some labels and update y'Ry, by Gieseke et al., Theorems 1 and 2.

    Flipping s labels costs O(s²) with R (Theorem 1) or O(s r) with features
    (Theorem 2), and O(s r) more for the new product. The fitness 1 - y'Ry/n falls by
    ``change / n``.

    Parameters
    ----------
    M : ndarray of shape (n, r), float64
        The symmetric matrix R, with r = n columns, or features Z with R = ZZ'.
    matrix : bool
        Whether M is R itself.
    y : ndarray of shape (n,), int8, -1 or +1
        Labels -1 or +1.
    product : ndarray of shape (r,), float64
        ``y @ M``.
    flips : ndarray of shape (flips,), int32 or int64, in [0, n)
        Indices of the rows whose labels are flipped, without duplicates.

    Returns
    -------
    change : float
        Increase of y'Ry.
    y : ndarray of shape (n,), int8
        The new labels.
    product : ndarray of shape (r,), float64
        Product of the new labels with M.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import flip_labels
    >>> Z, y = np.array([[1.0], [2.0]]), np.array([1, -1], np.int8)
    >>> change, y, product = flip_labels(Z, False, y, y @ Z, np.array([1]))
    >>> change, y.tolist(), product.tolist()
    (8.0, [1, 1], [3.0])
    """
    y = y.copy()
    product = product.copy()
    scratch = product.copy()
    change = 0.0
    for step in range(flips.shape[0]):
        change += _flip(M, matrix, y, product, flips, step, scratch)
    for i in flips:
        _add_scaled(product, M[i], 2.0 * y[i])
    return change, y, product


@njit()
def _partner(y, i, flipped, state):
    """Draw a row of the other cluster not yet flipped; return -1 if 64 tries fail."""
    for _ in range(64):
        other = _random(state, y.shape[0])
        if y[other] != y[i] and not flipped[other]:
            return other
    return -1


@njit()
def _mutate(
    M, matrix, y, product, excess, limit, most, order, flips, flipped, scratch, state
):
    """Choose rows to flip; return their number, the change of y'Ry, and the sum of y.

    The sum includes the flips, but y itself is left unchanged. A flip that would
    violate the balance constraint is replaced by a swap with a row of the other
    cluster. No row is flipped twice.
    """
    n = y.shape[0]
    count = 0
    change = 0.0
    if not matrix:
        for j in range(scratch.shape[0]):
            scratch[j] = product[j]
    for step in range(most):
        chosen = step + _random(state, n - step)
        order[step], order[chosen] = order[chosen], order[step]
        i = order[step]
        partner = -1
        if flipped[i]:
            continue
        if abs(excess - 2 * y[i]) > limit:
            partner = _partner(y, i, flipped, state)
            if partner < 0:
                continue
        for row in (i, partner):
            if row >= 0:
                excess -= 2 * y[row]
                flips[count] = row
                change += _flip(M, matrix, y, product, flips, count, scratch)
                flipped[row] = True
                count += 1
    for row in flips[:count]:
        y[row] = -y[row]
        flipped[row] = False
    return count, change, excess


@njit()
def _mark_best(fitness, mu, lives):
    """Mark the ``mu`` individuals with the lowest fitness; ties go to the first.

    Return how many of the marked individuals are children, which come after the first
    ``mu`` individuals.
    """
    for i in range(lives.shape[0]):
        lives[i] = False
    n_behind = 0
    for _ in range(mu):
        best = -1
        for i in range(fitness.shape[0]):
            if not lives[i] and (best < 0 or fitness[i] < fitness[best]):
                best = i
        lives[best] = True
        n_behind += best >= mu
    return n_behind


@njit()
def _select(M, population, products, values, excess, parents, counts, flips, lives):
    """Select the mu best individuals; return whether a child is among them."""
    mu, n = population.shape
    total = values.shape[0]
    worst = values[0]
    for p in range(mu):
        worst = min(worst, values[p])
    is_better = False
    for child in range(mu, total):
        is_better = is_better or values[child] > worst
    # Most generations end here, without a search for the best individuals.
    if not is_better:
        return False
    fitness = np.empty(total)
    for i in range(total):
        # Labels and their negation have equal fitness up to rounding errors, so round
        # the fitness.
        fitness[i] = np.around(-values[i] / n, DIGITS)
    n_children = _mark_best(fitness, mu, lives)
    if n_children == 0:
        return False
    # Compute all children before replacing parents, because the parent of one child may
    # be replaced by another child.
    child_labels = np.empty((n_children, n), np.int8)
    child_products = np.empty((n_children, products.shape[1]))
    made = 0
    for child in range(total - mu):
        if not lives[mu + child]:
            continue
        y = child_labels[made]
        product = child_products[made]
        for i in range(n):
            y[i] = population[parents[child], i]
        for j in range(product.shape[0]):
            product[j] = products[parents[child], j]
        for step in range(counts[child]):
            row = flips[child, step]
            _add_scaled(product, M[row], -2.0 * y[row])
            y[row] = -y[row]
        made += 1
    place = 0
    child = mu
    for c in range(n_children):
        while lives[place]:
            place += 1
        while not lives[child]:
            child += 1
        for i in range(n):
            population[place, i] = child_labels[c, i]
        for j in range(products.shape[1]):
            products[place, j] = child_products[c, j]
        values[place] = values[child]
        excess[place] = excess[child]
        place += 1
        child += 1
    return True


@njit()
@takes(
    _check_population,
    M=Array("(n, r)", "float64"),
    matrix=Flag(),
    population=Signs("(mu, n)", "int8"),
    limit=Whole(),
    n_offspring=Whole(least=1),
    generations=Whole(),
    patience=Whole(),
    seed=Whole(),
)
def evolve_labels(
    M, matrix, population, limit, n_offspring, generations, patience, seed
):
    """Evolve label vectors by a (mu + nu) strategy: Gieseke et al., Algorithm 1.

    In generation t (from 0), each of nu offspring flips max(1, n // (t + 1))
    coordinates of a random parent, where some flips are replaced by swaps to satisfy
    the balance constraint. The mu best of parents and offspring survive; ties go to
    parents.

    Parameters
    ----------
    M : ndarray of shape (n, r), float64
        The symmetric matrix R, with r = n columns, or features Z with R = ZZ'.
    matrix : bool
        Whether M is R itself.
    population : ndarray of shape (mu, n), int8, -1 or +1
        The initial parents. The absolute sum of each parent's labels must be at most
        ``limit``; n is at least 2.
    limit : int, at least 0
        Balance constraint: upper bound l of abs(sum(y)). It must be at least 1 if n is
        odd.
    n_offspring : int, at least 1
        Number of offspring per generation, nu.
    generations : int, at least 0
        Maximum number of generations.
    patience : int, at least 0
        The evolution stops after this number of generations without a surviving child.
    seed : int, at least 0
        Seed of the random numbers.

    Returns
    -------
    population : ndarray of shape (mu, n), int8
        The surviving individuals, in arbitrary order.
    fitness : ndarray of shape (mu,), float64
        Fitness F of each of these individuals.
    best : ndarray of shape (generations run,), float64
        The lowest F after each generation.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.kernels import evolve_labels
    >>> R = np.kron(np.eye(2), np.full((2, 2), 0.4))
    >>> start = np.array([[1, -1, 1, -1]], np.int8)
    >>> y, fitness, best = evolve_labels(R, True, start, 0, 1, 100, 50, 0)
    >>> bool(y[0, 0] == y[0, 1] != y[0, 2] == y[0, 3]), float(fitness[0].round(6))
    (True, 0.2)
    """
    population = population.copy()
    mu, n = population.shape
    total = mu + n_offspring
    state = np.full(1, np.uint64(seed))
    products = np.zeros((mu, M.shape[1]))
    values = np.empty(total)
    excess = np.empty(total, np.int64)
    _begin(M, matrix, population, products, values, excess)
    parents = np.empty(n_offspring, np.int64)
    counts = np.empty(n_offspring, np.int64)
    order = np.arange(n)
    flips = np.empty((n_offspring, n), np.int64)
    flipped = np.zeros(n, np.bool_)
    lives = np.empty(total, np.bool_)
    scratch = np.empty(0 if matrix else M.shape[1])
    best = np.empty(generations)
    idle = 0
    t = 0
    while t < generations and idle < patience:
        most = max(1, n // (t + 1))
        for child in range(n_offspring):
            p = _random(state, mu)
            count, change, balance = _mutate(
                M,
                matrix,
                population[p],
                products[p],
                excess[p],
                limit,
                most,
                order,
                flips[child],
                flipped,
                scratch,
                state,
            )
            parents[child] = p
            counts[child] = count
            values[mu + child] = values[p] + change
            excess[mu + child] = balance
        idle += 1
        if _select(
            M, population, products, values, excess, parents, counts, flips, lives
        ):
            idle = 0
        highest = values[0]
        for p in range(mu):
            highest = max(highest, values[p])
        best[t] = 1.0 - highest / n
        t += 1
    fitness = np.empty(mu)
    for p in range(mu):
        fitness[p] = 1.0 - values[p] / n
    return population, fitness, best[:t]
