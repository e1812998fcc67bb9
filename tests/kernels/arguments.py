"""Arguments that a routine takes, made from its own description, and their plain twins."""

import numpy as np

from mmcnb import kernels
from mmcnb.kernels import unchecked
from mmcnb.kernels._checks import FLOATS, Array, Flag, Number, Rows, Signs, Starts, Whole
from mmcnb.samples import CSRBlock
from tests import reference, reference_graph
from tests.kernels.inputs import sparse_rows

# What routines take that only mmcnb calls, and which check nothing.
INTERNAL = {
    "calibrated_weights": {"distances": Array("(rows, r)", "float64")},
    "nearest_centres_into": {
        "X": Array("(rows, d)", FLOATS),
        "centres": Array("(p, d)", FLOATS),
        "halves": Array("(p,)", "float64"),
        "numbers": Array("(rows,)", "int64", written=True),
    },
    "sample_subproblem": {
        "F": Array("(rows, p)", FLOATS),
        "y": Signs("(rows,)", "int8"),
        "shares": Array("(rows,)", "float64", least=0),
        "mean": Array("(p,)", "float64"),
        "inverse": Array("(p, p)", "float64"),
        "planes": Array("(planes, columns)", "float64"),
        "members": Array("(planes, rows)", "int8"),
        "signs": Array("(rows,)", "int8"),
        **dict.fromkeys(("C", "eta", "norm2"), Number(least=0)),
        "most_planes": Whole(1),
    },
    "column_tiles": {"B": Array("(p, d)", FLOATS)},
    "count_idle": {
        "idle": Array("(planes,)", "int64", least=0, below="planes", written=True),
        "multipliers": Array("(planes,)", "float64", least=0),
        "C": Number(least=0),
    },
    "stalls": {"lowers": Array("(sweeps,)", "float64")},
}
BY_ROWS = [
    name for name in kernels.__all__ if isinstance(next(iter(getattr(kernels, name).takes.values())), Rows)
]


def takes_of(name):
    return INTERNAL[name] if name in INTERNAL else getattr(kernels, name).takes


def routine_of(name):
    return getattr(unchecked if name in INTERNAL else kernels, name)


def good_arguments(name, seed=0, dtype="float64", sparse=False):
    """Arguments by name, of random sizes; the rows in CSR form on demand."""
    takes = takes_of(name)
    rng = np.random.default_rng(seed)
    sizes = {}

    def size(axis):
        symbol, more = axis
        if symbol.isdigit():
            return int(symbol)
        least = 6 if symbol in "mn" else 2  # rows of a search, more than it has clusters
        return sizes.setdefault(symbol, int(rng.integers(least, least + 4))) + more

    def make(kind):
        if isinstance(kind, Flag):
            return bool(rng.integers(2))
        if isinstance(kind, Number):
            return rng.random() + 0.1
        if not isinstance(kind, Array):
            return size((kind.size, 0)) if kind.size else int(rng.integers(2, 6))
        shape = tuple(size(axis) for axis in kind.axes)
        if isinstance(kind, Signs):
            return rng.choice(np.array([-1, 1], np.int8), shape)
        if isinstance(kind, Starts):
            return np.sort(rng.integers(0, size((kind.below, 0)) + 1, shape))
        if kind.below is not None:
            return rng.integers(kind.least, size((kind.below, 0)), shape)
        if "int" in kind.dtype:
            return np.zeros(shape, kind.dtypes[-1])
        values = rng.random(shape) if kind.least is not None else rng.standard_normal(shape)
        return values.astype(dtype if np.dtype(dtype) in kind.dtypes else kind.dtypes[-1])

    given = {argument: make(kind) for argument, kind in takes.items()}
    SPECIAL.get(name, lambda given, rng: None)(given, rng)
    if sparse:
        first = next(iter(given))
        n, d = given[first].shape
        given[first] = CSRBlock(*sparse_rows(n, d, dtype, seed), d)
    return given


def _symmetric(given, rng):
    A = rng.standard_normal((len(given["labels"]),) * 2)
    given["R"] = A @ A.T


def _bounded(given, rng):
    _symmetric(given, rng)
    k, m = len(given["low"]), len(given["labels"])
    given["labels"][:k], given["low"], given["high"] = np.arange(k), np.ones(k, np.int64), np.full(k, m)


def _ordered(given, rng):
    _bounded(given, rng)
    given["order"] = rng.permutation(len(given["order"]))


def _sized(given, rng):
    n, k = given["scores"].shape
    given |= {"low": np.zeros(k, np.int64), "high": np.full(k, -(-n // k)), "weights": np.ones(n)}


def _evolved(given, rng):
    mu, n = given["population"].shape
    n, A = n + n % 2, rng.standard_normal((n + n % 2, 3))
    given["M"] = A @ A.T / 10 if given["matrix"] else A
    given["population"] = np.array([rng.permutation(np.tile([-1, 1], n // 2)) for _ in range(mu)], np.int8)


def _nearest(given, rng):
    cells, p = len(given["starts"]) - 1, len(given["nodes"])
    given["starts"] = np.r_[0, np.sort(rng.integers(0, p + 1, cells - 1)), p]
    given["halves"] = reference.squared_norms(given["nodes"]) / 2
    given["probes"] = np.array([rng.permutation(cells)[: given["probes"].shape[1]] for _ in given["X"]])


def _centred(given, rng):
    given["halves"] = reference.squared_norms(given["centres"]) / 2


def _rising(given, rng):
    given["distances"] = np.sort(np.abs(given["distances"]), axis=1)


def _weighed(given, rng):
    given["weights"] = np.abs(given["weights"]) + 0.1


def _without_planes(given, rng):
    n, p = given["F"].shape
    given["shares"] /= given["shares"].sum()
    given["mean"] = given["shares"] @ given["F"].astype(float)
    given["inverse"] = given["inverse"] @ given["inverse"].T + np.eye(p)
    given["planes"], given["members"] = np.zeros((1, 3 * p + 3)), np.zeros((1, n), np.int8)
    given["planes"][0, p + 1], given["signs"] = 1.0, np.zeros(n, np.int8)
    # In few rows a plane holds one of them, whose margin is then rho but for rounding.
    given |= {"C": 2.0, "most_planes": 1}


def _planes(given, rng):
    P = rng.standard_normal((len(given["s"]), 3))
    given |= {"gram": P @ P.T, "s": np.r_[1, rng.random(len(P) - 1)], "C": 2.0, "balance": 0.1}
    given["t"] *= given["s"]


SPECIAL = {
    "sample_subproblem": _without_planes,
    "plane_qp": _planes,
    "shake": _symmetric,
    "steepest_moves": _bounded,
    "stochastic_moves": _ordered,
    "size_multipliers": _sized,
    "evolve_labels": _evolved,
    "nearest_centres_into": _centred,
    "nearest_nodes_into": _nearest,
    "calibrated_weights": _rising,
    "node_shares_into": _weighed,
}


def dense(value):
    """A block of rows as an array."""
    return reference.dense_rows(*value) if isinstance(value, CSRBlock) else value


# What each routine writes or returns, from arguments in their order, with dense rows.
TWINS = {
    "calibrated_weights": reference_graph.calibrated_weights,
    "cluster_row_sums": reference.cluster_row_sums,
    "cluster_scores": reference.cluster_scores,
    "column_tiles": lambda B: reference.column_tiles(B).astype(np.float32),
    "count_idle": lambda *a: reference.count_idle(*a)[1],
    "decision_values": reference.decision_values,
    "evolve_labels": lambda M, matrix, *a: reference.evolve_labels(M if matrix else M @ M.T, *a),
    "most_violated_constraint": reference.most_violated_constraint,
    "most_violated_runner_ups": reference.most_violated_runner_ups,
    "nearest_centres_into": lambda X, centres, halves, numbers: reference_graph.nearest_centres(X, centres),
    "nearest_nodes_into": lambda X, nodes, halves, starts, probes, numbers, distances: (
        reference_graph.nearest_nodes(X, nodes, starts, probes, numbers.shape[1])
    ),
    "node_shares_into": lambda *a: reference_graph.node_shares(*a[:3], a[3].shape[1]),
    "plane_qp": reference.plane_qp,
    "plane_sums": reference.plane_sums,
    "polynomial_kernel_block_into": lambda *a: reference.polynomial_kernel_block(*a[:-1]),
    "rbf_kernel_block_into": lambda *a: reference.rbf_kernel_block(*a[:-1]),
    "sample_subproblem": reference.sample_subproblem,
    "shake": reference.shake,
    "size_multipliers": lambda scores, low, high, *_: reference.best_sizes_partition(scores, low, high),
    "squared_norms": reference.squared_norms,
    "stalls": reference.stalls,
    "steepest_moves": lambda *a: reference.steepest(
        *a[:-1], reference.mean_objective if a[-1] else reference.sum_objective
    ),
    "stochastic_moves": reference.stochastic_moves,
}
