"""Arguments that each compiled routine takes, and the plain twins of the routines."""

import inspect

import numpy as np

from mmcnb import kernels
from mmcnb.kernels import unchecked
from mmcnb.samples import CSRBlock
from tests import reference, reference_graph

DTYPES = ["float32", "float64"]
BY_ROWS = sorted(
    name.replace("_csr", "") for name in unchecked.__all__ if "_csr" in name
)


def rows_and_basis(rows, d, p, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, d)).astype(dtype), rng.standard_normal(
        (p, d)
    ).astype(dtype)


def sparse_rows(rows, d, dtype="float64", seed=0):
    """CSR triplet with empty rows, rows of all lengths and columns in random order."""
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(rows)]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])]).astype(
        np.int64
    )
    indices = np.concatenate([*columns, []]).astype(np.int32)
    return rng.standard_normal(len(indices)).astype(dtype), indices, indptr


def routine_of(name):
    """The routine that checks its arguments, where there is one."""
    return getattr(kernels if name in kernels.__all__ else unchecked, name)


def no_planes(rows, p):
    """Return the state of a working set whose planes have no labels yet."""
    planes = np.zeros((1, 3 * p + 3))
    planes[0, p + 1] = np.inf
    members = np.zeros((1, rows), np.int8)
    return unchecked.SamplePlanes(planes, members, np.zeros(rows, np.int8))


def rows_with_gaps(rng, n_rows, n_columns, n_donors):
    """Return rows and donors with gaps, with categories in the last column."""
    n_all = n_rows + n_donors
    values = rng.standard_normal((n_all, n_columns))
    values[:, -1] = rng.integers(3, size=n_all)
    values[rng.random(values.shape) < 0.3] = np.nan
    values[0, 0] = np.nan
    scaled = values * 2.0
    scaled[:, -1] = values[:, -1]
    return {
        "rows": values[:n_rows],
        "scaled": scaled[:n_rows],
        "steps": np.r_[np.zeros(n_columns - 1), 0.25],
        "donors": np.ascontiguousarray(values[n_rows:].T),
        "scaled_donors": np.ascontiguousarray(scaled[n_rows:].T),
        "n_neighbors": 3,
    }


def flipped(features, matrix, rng):
    """Return arguments of `flip_labels`: half of the labels are flipped."""
    n = len(features)
    M = features @ features.T if matrix else features
    y = rng.permutation(np.tile([-1, 1], n // 2)).astype(np.int8)
    return {"M": M, "y": y, "product": y @ M, "flips": rng.permutation(n)[: n // 2]}


def good_arguments(name, seed=0, dtype="float64", sparse=False):
    """Arguments by name, of random sizes; the rows in CSR form on demand."""
    rng = np.random.default_rng(seed)
    rows, d, k, p, r, planes = rng.integers(
        [6, 2, 2, 2, 2, 2], [10, 6, 6, 6, 6, 6]
    ).tolist()
    X, B = rows_and_basis(rows, d, p, dtype, seed)
    R = rng.standard_normal((rows, rows))
    P = rng.standard_normal((planes, 3))
    labels = np.r_[:k, rng.integers(k, size=rows - k)]
    weights = rng.random(rows) + 0.1
    shares = weights / weights.sum()
    signs = np.where(rng.random(rows) < 0.5, -1, 1).astype(np.int8)
    even = rows + rows % 2
    flag = bool(seed % 2)
    features = rng.standard_normal((even, 3))
    counts = (
        "rounds",
        "most",
        "sweeps",
        "n_offspring",
        "generations",
        "patience",
        "seed",
        "limit",
        "degree",
    )
    numbers = dict(zip(counts, rng.integers(2, 6, len(counts)).tolist(), strict=True))
    names = ("gamma", "coef0", "offset", "rho", "amplitude", "decay")
    numbers |= dict(zip(names, (rng.random(len(names)) + 0.1).tolist(), strict=True))
    every = numbers | {
        **{
            "F": X,
            "X": X,
            "B": B,
            "nodes": B,
            "centres": B,
            "R": R @ R.T,
            "labels": labels,
        },
        **{
            "y": signs,
            "weights": weights,
            "adaptive": flag,
            "matrix": flag,
        },
        **{"by_mean": flag, "n_clusters": k, "C": 2.0, "balance": 0.1, "gram": P @ P.T},
        "coef": rng.standard_normal(d),
        "coefs": rng.standard_normal((d, planes)),
        "offsets": rng.standard_normal(planes),
        "rhos": rng.standard_normal(planes),
        "s": np.r_[1, rng.random(planes - 1)],
        "t": rng.standard_normal(planes) / 4,
        "M": features @ features.T / 10 if flag else features,
        "population": np.array(
            [rng.permutation(np.tile([-1, 1], even // 2)) for _ in range(r)], np.int8
        ),
        "proportions": rng.random(k),
        "low": np.ones(k, np.int64),
        "high": np.full(k, -(-rows // k)),
        "order": rng.permutation(rows),
        "scores": rng.standard_normal((rows, k)),
        "start": rng.standard_normal(k),
        "out": np.zeros((rows, p), dtype),
        "halves": reference.squared_norms(B) / 2,
        "starts": np.r_[0, np.sort(rng.integers(0, p + 1, r - 1)), p],
        "probes": np.array([rng.permutation(r)[:2] for _ in range(rows)]),
        "numbers": rng.integers(0, p, (rows, r)),
        "distances": np.sort(rng.random((rows, r)), axis=1),
        "idle": rng.integers(0, 4, planes),
        "multipliers": rng.choice([0.0, 1e-12, 0.5], planes),
        "lowers": (1 - 2 * flag)
        * np.r_[rng.random(3), np.ones(26 + r)],  # around the 30 that are compared
    }
    rng_of_own = np.random.default_rng(seed)
    sample_problem = {
        "rows": unchecked.SampleRows(
            F=X,
            y=signs,
            shares=shares,
            mean=shares @ X.astype(float),
            inverse=np.eye(d) + np.ones((d, d)),
        ),
        "start": no_planes(rows, d),
        "limits": unchecked.Limits(C=2.0, eta=1e-7, norm2=0.0, most_planes=1000),
    }
    own = {
        "basis_fixed_point_sums": {
            "z": signs * weights,
            "b": B[0].astype(float),
        },
        "centre_kernel_block_into": {
            "K": rng_of_own.standard_normal((rows, p)).astype(dtype),
            "row_means": rng_of_own.random(rows),
            "column_means": rng_of_own.random(p),
            "mean": 0.3,
        },
        "cluster_scores": {
            "coef": rng.standard_normal((k, d)),
            "offset": rng.standard_normal(k),
        },
        "cone_step": {
            "grams": np.stack([P @ P.T, np.eye(planes), 2 * P @ P.T]),
            "multipliers": rng_of_own.random(planes),
            "weights": np.array([0.6, 0.0, 0.8]),
        },
        "flip_labels": flipped(features, flag, rng_of_own),
        "hinge_loss_sums": {"f": 2 * rng_of_own.standard_normal(rows)},
        "kmeans_plusplus_rows": {"uniforms": rng_of_own.random(r)},
        "nystroem_map": {"tolerance": 1e-6},
        "ramp_loss_sums": {"f": 2 * rng_of_own.standard_normal(rows), "most": 1.3},
        "fill_gaps": rows_with_gaps(rng, rows, d, 3 * p),
        "three_nearest_into": {"numbers": np.zeros((rows, 3), np.int64)},
        "node_shares_into": {
            "weights": rng.random((rows, r)) + 0.1,
            "labels": rng.integers(k, size=p),
            "out": np.zeros((rows, k), dtype),
        },
        "sample_subproblem": sample_problem,
        "sample_subproblem_parts": sample_problem,
        "size_multipliers": {"weights": np.ones(rows)},
    }
    taken = inspect.signature(routine_of(name)).parameters
    values = every | own.get(name, {})
    given = {argument: values[argument] for argument in taken}
    if sparse:
        given[next(iter(given))] = CSRBlock(*sparse_rows(rows, d, dtype, seed), d)
        given |= {"B": B.astype(float)} if "B" in given else {}  # as fits pass it
    return given


def written(name):
    """Names of the arrays that a routine writes to."""
    return {
        "count_idle": ["idle"],
        "fill_gaps": ["rows"],
        "nearest_nodes_into": ["numbers", "distances"],
        "three_nearest_into": ["numbers"],
    }.get(name, ["out"] if name.endswith("_into") else [])


def largest_margin(rows, start, limits):
    """Return |w|² at the optimum of a subproblem."""
    gram = rows.F.astype(float) @ rows.inverse @ rows.F.T
    return reference.n_slack_norm2(gram, rows.y, limits.C, rows.shares)


# What each routine writes or returns, from arguments in their order, with dense rows.
TWINS = {
    name: getattr(reference, name)
    for name in unchecked.__all__
    if hasattr(reference, name)
} | {
    "calibrated_weights": reference_graph.calibrated_weights,
    "centre_kernel_block_into": lambda *a: reference.centred_kernel_block(*a[:-1]),
    "column_tiles": lambda B: reference.column_tiles(B).astype(np.float32),
    "count_idle": lambda *a: reference.count_idle(*a)[::-1],
    "evolve_labels": lambda M, matrix, *a: reference.evolve_labels(
        M if matrix else M @ M.T, *a
    ),
    "nearest_nodes_into": lambda X, nodes, halves, starts, probes, numbers, distances: (
        reference_graph.nearest_nodes(X, nodes, starts, probes, numbers.shape[1])
    ),
    "three_nearest_into": lambda X, nodes, halves, starts, probes, numbers: (
        reference_graph.nearest_nodes(X, nodes, starts, probes, 3)[0]
    ),
    "node_shares_into": lambda *a: reference_graph.node_shares(*a[:3], a[3].shape[1]),
    "nystroem_map": lambda gram, tolerance: np.linalg.pinv(
        gram, rcond=tolerance, hermitian=True
    ),
    "polynomial_kernel_block_into": lambda *a: reference.polynomial_kernel_block(
        *a[:-1]
    ),
    "rbf_kernel_block_into": lambda *a: reference.rbf_kernel_block(*a[:-1]),
    "sample_subproblem": largest_margin,
    "sample_subproblem_parts": largest_margin,
    "size_multipliers": lambda scores, low, high, *_: reference.best_sizes_partition(
        scores, low, high
    ),
    "steepest_moves": lambda *a: reference.steepest(
        *a[:-1], reference.mean_objective if a[-1] else reference.sum_objective
    ),
}
