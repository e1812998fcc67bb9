"""Slow, plain twins of the compiled routines: formulas in float64."""

import itertools
import math

import numpy as np
import scipy.optimize


def dense_rows(data, indices, indptr, n_features):
    X = np.zeros((len(indptr) - 1, n_features))
    for i in range(len(X)):
        for position in range(indptr[i], indptr[i + 1]):
            X[i, indices[position]] = data[position]
    return X


def squared_norms(X):
    return np.array([sum(float(value) ** 2 for value in x) for x in X])


def column_tiles(B):
    """64 basis vectors a tile, feature by feature."""
    tiles = np.zeros((math.ceil(len(B) / 64), B.shape[1], 64))
    for k, b in enumerate(B):
        for j in range(len(b)):
            tiles[k // 64, j, k % 64] = b[j]
    return tiles


def rbf_kernel_block(X, B, gamma):
    K = np.empty((len(X), len(B)))
    for i, x in enumerate(X):
        for k, b in enumerate(B):
            K[i, k] = math.exp(
                -gamma * sum((float(x[j]) - float(b[j])) ** 2 for j in range(len(x)))
            )
    return K


def linear_kernel_block(X, B):
    return polynomial_kernel_block(X, B, 1.0, 0.0, 1)


def polynomial_kernel_block(X, B, gamma, coef0, degree):
    K = np.empty((len(X), len(B)))
    for i, x in enumerate(X):
        for k, b in enumerate(B):
            K[i, k] = (
                gamma * sum(float(x[j]) * float(b[j]) for j in range(len(x))) + coef0
            ) ** degree
    return K


def basis_fixed_point_sums(X, z, b, gamma):
    """Wu & Zhang, eq. (47): numerator and denominator."""
    weights = z * rbf_kernel_block(X, b[None], gamma)[:, 0]
    total = np.zeros(X.shape[1])
    for x, weight in zip(X, weights, strict=True):
        total = total + weight * x.astype(float)
    return total, sum(weights)


def centred_kernel_block(K, row_means, column_means, mean):
    return K - np.add.outer(row_means, column_means) + mean


def cone_step(grams, multipliers, weights):
    """Return weights as the lengths of the normal vectors to the power 2/3."""
    q = np.array([multipliers @ gram @ multipliers for gram in grams])
    lengths = weights * np.sqrt(q)
    better = lengths ** (2 / 3)
    gap = 1 - weights @ q / np.linalg.norm(q)
    return better / np.linalg.norm(better), gap


def hinge_loss_sums(f, y, weights, rho):
    losses = [max(0, rho - sign * value) for sign, value in zip(y, f, strict=True)]
    return np.dot(weights, losses), sum(weights)


def ramp_loss_sums(f, y, weights, rho, most):
    """Return the difference of two hinge losses: Collobert et al. (2006)."""
    loss, weight = hinge_loss_sums(f, y, weights, rho)
    return loss - hinge_loss_sums(f, y, weights, rho - most)[0], weight


def kmeans_plusplus_rows(X, weights, uniforms):
    """Draw rows by weight, then by weight times the squared distance to the nearest."""
    X = X.astype(float)
    masses = weights
    drawn = []
    for uniform in uniforms:
        if not masses.sum() > 0:
            break
        shares = np.cumsum(masses) / masses.sum()
        drawn.append(int(np.searchsorted(shares, uniform, side="right")))
        masses = [
            weight * min(((x - X[i]) ** 2).sum() for i in drawn)
            for x, weight in zip(X, weights, strict=True)
        ]
        masses = np.array(masses)
    return np.array(drawn)


def decision_values(F, coef, offset):
    return np.array(
        [sum(float(row[j]) * coef[j] for j in range(len(row))) + offset for row in F]
    )


def most_violated_constraint(F, y, weights, coef, offset, rho):
    """Wu & Zhang, eq. (12): c_i = 1 where y_i f_i <= rho."""
    f = decision_values(F, coef, offset)
    c = y * f <= rho
    sums = [
        sum(weights[c]),
        sum((weights * y)[c]),
        sum((weights * (rho - y * f))[c]),
        sum(weights[f >= 0]),
        sum(weights[np.where(f >= 0, 1, -1) != y]),
        sum(weights * np.maximum(0, rho - abs(f))),
        sum(weights),
    ]
    return (
        c,
        sum(
            (weights[i] * y[i] * F[i].astype(float) for i in np.flatnonzero(c)),
            np.zeros(F.shape[1]),
        ),
        np.array(sums),
    )


def plane_sums(F, y, weights, coefs, offsets, rhos):
    planes = [
        most_violated_constraint(F, y, weights, coef, offset, rho)
        for coef, offset, rho in zip(coefs.T, offsets, rhos, strict=True)
    ]
    s = np.array([sums[0] for _, _, sums in planes])
    t = np.array([sums[1] for _, _, sums in planes])
    return s, t, np.array([row_sum for _, row_sum, _ in planes])


def centred(K):
    """HKH."""
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def plane_qp(gram, s, t, C, balance, adaptive):
    """Solve the dual program over cutting planes by Clarabel, as `plane_qp` does."""
    import clarabel

    planes = len(s)
    scale = np.mean(np.diag(gram)) or 1.0
    size = planes + 1  # the last variable is the bound u of |t'λ|
    P = np.zeros((size, size))
    rows = [np.r_[np.ones(planes), 0.0]]
    right = [C]
    P[:planes, :planes] = gram / scale
    cost = np.zeros(size) if adaptive else np.r_[-s, balance] / scale
    if adaptive:
        rows = [*rows, np.r_[-s, balance]]
        right = [*right, -1.0]
    rows += [np.r_[t, -1.0], np.r_[-t, -1.0], *-np.eye(size)]
    right += [0.0] * (2 + size)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_gap_abs, settings.tol_gap_rel, settings.tol_feas = (
        False,
        *[1e-10] * 3,
    )
    cones = [clarabel.NonnegativeConeT(len(right))]
    program = (
        scipy.sparse.csc_matrix(np.triu(P)),
        cost,
        scipy.sparse.csc_matrix(rows),
        np.array(right),
        cones,
    )
    found = clarabel.DefaultSolver(*program, settings).solve()
    solved = str(found.status) in ("Solved", "AlmostSolved")
    multipliers = np.maximum(found.x[:planes], 0.0)
    z = scale * np.array(found.z)
    return (
        multipliers,
        z[1] if adaptive else 1.0,
        z[0],
        z[1 + adaptive] - z[2 + adaptive],
        solved,
    )


def stalls(lowers, planes=30, share=1e-6):
    """Return whether the last lower bound is hardly above those of older sweeps."""
    older = list(lowers)[:-planes]
    return bool(older) and lowers[-1] - max(older) <= share * abs(lowers[-1])


def count_idle(idle, multipliers, C):
    """Planes that stay, and in how many solutions in a row each had no weight."""
    idle = np.where(multipliers > 1e-9 * C, 0, idle + 1)
    return (idle < 3) | (np.arange(len(idle)) == 0), idle


def kernel_clusters_primal(Z, labels, C, threshold="fixed", bound=0.0):
    """Return objective and kernel weights of Zhao, Kwok and Zhang, eq. (4.33).

    It has a slack for each row and a score for each cluster.

    Z holds the centred features of each kernel; ``bound`` is l/n: how far mean scores
    may lie apart.
    """
    import cvxpy

    n = len(labels)
    k = int(max(labels)) + 1
    v = [cvxpy.Variable((one.shape[1], k)) for one in Z]
    share = cvxpy.Variable(len(Z))
    weights = cvxpy.Variable(len(Z), nonneg=True)
    xi = cvxpy.Variable(n, nonneg=True)
    rho = cvxpy.Variable(nonneg=True) if threshold == "adaptive" else 1.0
    scores = sum(one @ w for one, w in zip(Z, v, strict=True))
    held = [cvxpy.quad_over_lin(w, weights[q]) <= share[q] for q, w in enumerate(v)]
    held.append(cvxpy.norm(weights) <= 1)
    for i, c in enumerate(labels):
        held += [scores[i, c] - scores[i, r] >= rho - xi[i] for r in range(k) if r != c]
    means = cvxpy.sum(scores, axis=0) / n
    held += [means[p] - means[q] <= bound for p in range(k) for q in range(k) if p != q]
    cost = (
        0.5 * cvxpy.sum(share)
        + C * cvxpy.sum(xi) / n
        - (rho if threshold == "adaptive" else 0.0)
    )
    problem = cvxpy.Problem(cvxpy.Minimize(cost), held)
    # Rounding errors can keep a cone program from 1e-10.
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == "optimal"
    return problem.value, weights.value / np.linalg.norm(weights.value)


def hinge_objective(f, y, norm2, rho, C, shares=None, threshold="adaptive"):
    """Compute 1/2|w|² - rho + C Σ shares max(0, rho - y f), the n-slack objective."""
    shares = np.full(len(f), 1 / len(f)) if shares is None else shares
    slack = sum(
        share * max(0.0, rho - label * value)
        for share, label, value in zip(shares, y, f, strict=True)
    )
    return 0.5 * norm2 - (rho if threshold == "adaptive" else 0.0) + C * slack


def n_slack_norm2(K, y, C, shares=None):
    """Return |w|² of problem (7) without balance: half of that of scores (w, -w)."""
    return crammer_singer_norm2(K, (np.asarray(y) > 0).astype(int), 2, C, shares) / 2


def best_labeling_norm2(K, C, least):
    """Largest |w|² over all labelings whose clusters hold at least ``least`` rows."""
    n = len(K)
    best = 0.0
    for rest in itertools.product((-1, 1), repeat=n - 1):
        y = np.array([1, *rest])
        if least <= np.count_nonzero(y > 0) <= n - least:
            best = max(best, n_slack_norm2(K, y, C))
    return best


def rivals_of(scores, labels):
    """Return the best other cluster of each row, and the row's margin to it."""
    others = scores.astype(float).copy()
    others[np.arange(len(scores)), labels] = -np.inf
    runner_ups = others.argmax(axis=1)
    return runner_ups, scores[np.arange(len(scores)), labels] - others.max(axis=1)


def cluster_scores(F, coef, offset):
    """Scores of rows, one at a time."""
    return np.array(
        [[row @ one - off for one, off in zip(coef, offset, strict=True)] for row in F]
    )


def most_violated_runner_ups(F, scores, labels, weights, rho):
    """Sums of the most violated constraint of k scores: Crammer and Singer's."""
    k = scores.shape[1]
    row_sums = np.zeros((k, F.shape[1]))
    shares = np.zeros(k)
    sums = np.zeros(4)
    if k == 1:
        return row_sums, shares, sums
    runner_ups, margins = rivals_of(scores, labels)
    own = scores.argmax(axis=1)
    _, own_margins = rivals_of(scores, own)
    for i in range(len(F)):
        sums[2] += weights[i] * (own[i] != labels[i])
        sums[3] += weights[i] * max(0.0, rho - own_margins[i])
        if margins[i] <= rho:
            sign = np.eye(k)[labels[i]] - np.eye(k)[runner_ups[i]]
            row_sums += weights[i] * np.outer(sign, F[i])
            shares += weights[i] * sign
            sums[:2] += weights[i], weights[i] * (rho - margins[i])
    return row_sums, shares, sums


def crammer_singer_norm2(K, labels, k, C, shares=None):
    """Return |W|² of the n-slack problem in centred features, by its dual.

    min 1/2 |W|², W = Σ_ir a_ir (e_ci - e_r) φ_i', with Σ_ir a_ir >= 1 and C shares_i >=
    Σ_r a_ir >= 0.
    """
    n = len(labels)
    shares = np.full(n, 1 / n) if shares is None else shares
    H = np.eye(n) - np.outer(np.ones(n), shares)
    pairs = [(i, r) for i in range(n) for r in range(k) if r != labels[i]]
    signs = np.array([np.eye(k)[labels[i]] - np.eye(k)[r] for i, r in pairs])
    rows = np.array([i for i, _ in pairs])
    G = (signs @ signs.T) * (H @ K @ H.T)[np.ix_(rows, rows)]
    scale = np.trace(G) / len(pairs) or 1.0
    most = C * shares
    member = (rows == np.arange(n)[:, None]).astype(float)
    solution = scipy.optimize.minimize(
        lambda a: a @ G @ a / 2 / scale,
        np.repeat(shares / (k - 1), k - 1),
        jac=lambda a: G @ a / scale,
        bounds=[(0, None)] * len(pairs),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda a: a.sum() - 1,
                "jac": lambda a: np.ones(len(a)),
            },
            {
                "type": "ineq",
                "fun": lambda a: most - member @ a,
                "jac": lambda a: -member,
            },
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert solution.success, solution.message
    return 2 * scale * solution.fun


def leave_one_out_residuals(y, z, ridge, weights):
    """Return the residual of each row under ridge regression of all other rows."""
    shares = weights / weights.sum()
    centre = shares @ z
    total_variance = sum(
        shares[i] * ((z[i] - centre) ** 2).sum() for i in range(len(z))
    )
    residuals = np.empty(len(z))
    for i in range(len(z)):
        kept = np.arange(len(z)) != i
        rows = np.c_[z[kept], np.ones(kept.sum())]
        labels = y[kept]
        share = shares[kept]
        penalty = np.diag(np.r_[np.full(z.shape[1], ridge * total_variance), 0.0])
        coef = np.linalg.solve(
            (rows * share[:, None]).T @ rows + penalty,
            (rows * share[:, None]).T @ labels,
        )
        residuals[i] = y[i] - np.r_[z[i], 1.0] @ coef
    return residuals


def cluster_row_sums(F, labels, n_clusters, weights):
    sums = np.zeros((n_clusters, F.shape[1]))
    sizes = np.zeros(n_clusters)
    for row, h, weight in zip(F, labels, weights, strict=True):
        sums[h] += weight * row
        sizes[h] += weight
    return sums, sizes


def sum_objective(R, labels, n_clusters):
    """Σ_h e_h'R e_h: what is left of Q, turned, for a centred kernel."""
    return sum(R[np.ix_(labels == h, labels == h)].sum() for h in range(n_clusters))


def mean_objective(R, labels, n_clusters):
    """J = Σ_h e_h'R e_h / n_h."""
    return sum(
        R[np.ix_(labels == h, labels == h)].sum() / np.count_nonzero(labels == h)
        for h in range(n_clusters)
        if (labels == h).any()
    )


def _moved(labels, i, d):
    moved = labels.copy()
    moved[i] = d
    return moved


def shake(R, labels, shares, amplitude, decay, rounds):
    """Pahikkala et al., Algorithm 3, each candidate's objective from scratch."""
    labels = labels.copy()
    k = len(shares)
    m = len(R)
    moves = 0
    for i in range(rounds):
        for d in range(k):
            wanted = (
                amplitude * decay**i * m * shares[d]
                + m * shares[d]
                - np.count_nonzero(labels == d)
            )
            for _ in range(int(wanted)):
                values = [
                    sum_objective(R, _moved(labels, j, d), k)
                    if labels[j] != d and np.count_nonzero(labels == labels[j]) > 1
                    else -np.inf
                    for j in range(m)
                ]
                if max(values) == -np.inf:
                    break
                labels[int(np.argmax(values))] = d
                moves += 1
    return labels, moves


def steepest(R, labels, low, high, most, objective):
    """The best single move of all within the bounds, until none raises the objective.

    While clusters are too large, moves from these alone; while others are too small,
    moves to those alone.
    """
    labels = labels.copy()
    k = len(low)
    for step in range(most):
        counts = np.bincount(labels, minlength=k)
        over = counts > high
        under = counts < low
        leave = over if over.any() else counts > low
        enter = under if under.any() and not over.any() else counts < high
        moves = [
            (objective(R, _moved(labels, j, d), k), -j, -d)
            for j in range(len(R))
            for d in range(k)
            if d != labels[j] and leave[labels[j]] and enter[d]
        ]
        forced = over.any() or under.any()
        if not moves or not (forced or max(moves)[0] > objective(R, labels, k) + 1e-9):
            return labels, step
        _, j, d = max(moves)
        labels[-j] = -d
    return labels, most


def stochastic_moves(R, labels, low, high, order, sweeps):
    """Move each row in turn to the best cluster: Pahikkala et al., Algorithm 1."""
    labels = labels.copy()
    k = len(low)
    moves = 0
    for _ in range(sweeps):
        before = moves
        for j in order:
            counts = np.bincount(labels, minlength=k)
            values = [
                sum_objective(R, _moved(labels, j, d), k)
                if d == labels[j]
                or (counts[labels[j]] > low[labels[j]] and counts[d] < high[d])
                else -np.inf
                for d in range(k)
            ]
            if max(values) > values[labels[j]] + 1e-9:
                labels[j] = int(np.argmax(values))
                moves += 1
        if moves == before:
            break
    return labels, moves


def best_sizes_partition(scores, low, high):
    """Return the largest sum of scores with sizes in bounds, by linear programming."""
    n, k = scores.shape
    rows = np.kron(np.eye(n), np.ones(k))
    sizes = np.tile(np.eye(k), n)
    found = scipy.optimize.linprog(
        -scores.ravel(),
        A_eq=rows,
        b_eq=np.ones(n),
        A_ub=np.vstack([sizes, -sizes]),
        b_ub=np.concatenate([high, -np.asarray(low)]),
        bounds=(0, 1),
    )
    return -found.fun


def random_numbers(seed):
    """SplitMix64, as numbers in [0, 1)."""
    mask = 2**64 - 1
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        x = state
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        yield ((x ^ (x >> 31)) >> 11) * 2.0**-53


def two_cluster_loss(R, y):
    """F(y) = 1 - y'Ry/n."""
    return 1 - sum(
        y[i] * y[j] * R[i, j] for i in range(len(y)) for j in range(len(y))
    ) / len(y)


def flip_labels(M, matrix, y, product, flips):
    """Return the change of y'Ry from scratch, the new labels, their product with M."""
    R = M if matrix else M @ M.T
    turned = y.astype(float)
    turned[flips] *= -1
    return turned @ R @ turned - y @ R @ y, turned, turned @ M


def evolve_labels(R, population, limit, n_offspring, generations, patience, seed):
    """Gieseke et al., Algorithm 1, every fitness from scratch."""
    numbers = random_numbers(seed)

    def below(n):
        return int(next(numbers) * n)

    parents = [y.astype(int) for y in population]
    n = population.shape[1]
    best = []
    idle = 0
    t = 0
    order = list(range(n))
    while t < generations and idle < patience:
        children = []
        for _ in range(n_offspring):
            y = parents[below(len(parents))].copy()
            flipped = set()
            wanted = max(1, n // (t + 1))
            for step in range(wanted):
                chosen = step + below(n - step)
                order[step], order[chosen] = order[chosen], order[step]
                i = order[step]
                turned = [order[step]]
                if i in flipped:
                    continue
                if abs(y.sum() - 2 * y[i]) > limit:
                    partner = None
                    for _ in range(64):
                        other = below(n)
                        if y[other] != y[i] and other not in flipped:
                            partner = other
                            break
                    if partner is None:
                        continue
                    turned.append(partner)
                for row in turned:
                    y[row] *= -1
                    flipped.add(row)
            children.append(y)
        everyone = sorted(
            [
                (round(two_cluster_loss(R, y), 10), c, y)
                for c, y in enumerate(parents + children)
            ],
            key=lambda one: one[:2],
        )[: len(parents)]
        survivors = {c for _, c, _ in everyone}
        born = [y for c, y in enumerate(children) if c + len(parents) in survivors]
        idle = 0 if born else idle + 1
        for place in range(len(parents)):
            if place not in survivors:
                parents[place] = born.pop(0)
        best.append(everyone[0][0])
        t += 1
    return (
        np.array(parents),
        np.array([two_cluster_loss(R, y) for y in parents]),
        np.array(best),
    )


def estimated_basis(X, z, gamma, n_basis, delta, random_state):
    """Return basis, coefficients and number of steps of Wu and Zhang, Algorithm 4."""
    n = len(X)
    steps = 0
    basis = []
    beta = np.empty(0)

    def kernel(one, other):
        return np.exp(-gamma * np.sum((one - other) ** 2))

    for _ in range(n_basis):
        for start in range(4):
            rows = np.unique(random_state.randint(n, size=1 if start else 5))
            b = X[rows].mean(axis=0)
            highest = -1.0
            is_fixed = False
            for _ in range(50):
                steps += 1
                total = np.zeros(X.shape[1])
                weight = 0.0
                for x, one in [
                    *zip(X, z, strict=True),
                    *zip(basis, -n * beta, strict=True),
                ]:
                    total = total + one * kernel(x, b) * x
                    weight = weight + one * kernel(x, b)
                if abs(weight) > highest:
                    best = b
                    highest = abs(weight)
                moved = np.sum((total / weight - b) ** 2)
                b = total / weight
                if is_fixed := moved <= delta / (2 * gamma):
                    break
            if is_fixed:
                break
        basis.append(best)
        K = np.array([[kernel(one, other) for other in basis] for one in basis])
        beta = np.linalg.pinv(K) @ [
            sum(c * kernel(x, one) for x, c in zip(X, z, strict=True)) / n
            for one in basis
        ]
    return np.array(basis), beta, steps


def smoothed_log_density(weights, graph, d, steps):
    """Node by node, from a dense matrix of edges."""
    p = graph.n_nodes
    h = np.empty(p)
    for i in range(p):
        ten = graph.numbers[i, :10]
        mass = (graph.counts[i] + sum(graph.counts[j] for j in ten)) / 11
        h[i] = math.log(mass) - d * math.log(graph.distances[i, 9])
    for _ in range(steps):
        before = h.copy()
        for i in range(p):
            neighbors = [j for j in range(p) if weights[i, j] > 0]
            h[i] = (before[i] + sum(before[j] for j in neighbors)) / (
                1 + len(neighbors)
            )
    return h


def fill_gaps(rows, scaled, steps, donors, scaled_donors, n_neighbors):
    """Rows with gaps filled from the nearest donors, one gap after the other."""
    filled = rows.copy()
    for i, c in np.argwhere(np.isnan(rows)):
        distances = {}
        for j in range(donors.shape[1]):
            shared = np.flatnonzero(~np.isnan(scaled[i]) & ~np.isnan(donors[:, j]))
            if not shared.size:
                continue
            difference = scaled[i, shared] - scaled_donors[shared, j]
            of_texts = steps[shared] * (difference != 0)
            squares = np.where(steps[shared] > 0, of_texts, difference**2)
            distances[j] = squares.sum() * len(steps) / shared.size
        known = [j for j in distances if not np.isnan(donors[c, j])]
        nearest = sorted(known, key=distances.get)[:n_neighbors]
        values = donors[c, nearest].tolist()
        if not values:
            continue
        far = distances[nearest[-1]] / 9
        if sum(distance < far for distance in distances.values()) >= n_neighbors:
            continue
        if steps[c] > 0:
            filled[i, c] = max(values, key=values.count)  # of equal counts the first
        else:
            filled[i, c] = sorted(values)[(len(values) - 1) // 2]
    return filled
