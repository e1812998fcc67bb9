"""Signs of a good partition that need no classes: each is a number, at a small cost."""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

import mmcnb
from benchmarks.protocol import Data

NEIGHBOURS = 10
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of a Gaussian kernel, in root mean squared distances
LANDMARKS, RIDGES = 200, (1e-3, 1e-2)
FOLDS, TREES = 3, 30
AXES = 50


class Context(NamedTuple):
    """Facts that all partitions of the same rows share.

    Parameters
    ----------
    numbers, lengths : ndarray of shape (n, r)
        Nearest rows of each row, and their distances.
    graph : csr_array of shape (n, n)
        The symmetric graph of nearest rows.
    features : dict
        Features along their principal axes, by name: of Gaussian kernels, of no kernel, and of the graph.
    """

    numbers: np.ndarray
    lengths: np.ndarray
    graph: Any
    features: dict[str, np.ndarray]

    @property
    def axes(self) -> np.ndarray:
        """The rows along their leading principal axes."""
        return self.features["linear"]


@lru_cache(maxsize=2)
def context_of(key: tuple[str, int], standard: bool, data: Any) -> Context:
    """Neighbours and features of the rows of a problem; the key tells problems apart."""
    rows = data.rows
    scaled = rows - rows.mean(axis=0)
    deviations = scaled.std(axis=0)
    columns = scaled / np.where(deviations > 0, deviations, 1.0)
    rows = columns if standard else scaled
    numbers, lengths = _neighbours(rows)
    n, r = numbers.shape
    directed = csr_array((np.ones(n * r), numbers.ravel(), np.arange(0, n * r + 1, r)), shape=(n, n))
    graph = (directed + directed.T).tocsr()
    return Context(numbers, lengths, graph, _features(rows, graph))


class Rows:
    """Rows that count as one value in a cache."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows)

    def __hash__(self) -> int:
        return 0


def density_order(data: Data) -> np.ndarray:
    """Rows by rising distance from their neighbours."""
    lengths = _context(data, False).lengths
    return np.argsort(lengths[:, -1], kind="stable")


def _context(data: Data, standard: bool) -> Context:
    return context_of((data.name, len(data.y)), standard, Rows(np.asarray(data.X, np.float64)))


def stability_of(
    refit: Callable[[np.ndarray], np.ndarray], labels: np.ndarray, seed: int
) -> dict[str, float]:
    """Agreement of fits to two halves of the rows with one another, and with the labels; 0 if one fails.

    ``refit`` labels all rows by a fit to the rows of some numbers.
    """
    from sklearn.metrics import adjusted_rand_score

    order = np.random.RandomState(seed).permutation(len(labels))
    try:
        one, other = (refit(np.sort(part)) for part in np.array_split(order, 2))
    except mmcnb.InputError:
        return {"halves": 0.0, "refits": 0.0}
    refits = [adjusted_rand_score(labels, half) for half in (one, other)]
    return {"halves": float(adjusted_rand_score(one, other)), "refits": float(np.mean(refits))}


def signs_of(data: Data, labels: np.ndarray, seed: int) -> dict[str, float]:
    """All signs of one partition, on the rows as they are and on columns of variance 1."""
    found: dict[str, float] = {}
    _, labels = np.unique(labels, return_inverse=True)
    if labels.max() == 0:
        return found
    for name, standard in (("", False), (" standard", True)):
        context = _context(data, standard)
        signs = {
            "cut": _cut(context, labels),
            "knn": _neighbour_kappa(context, labels),
            "dunn": _dunn(context, labels),
            "valley": _valley(context, labels),
            **{f"loo {kind}": _leave_one_out(z, labels) for kind, z in context.features.items()},
        }
        found |= {sign + name: value for sign, value in signs.items()}
    sizes = np.bincount(labels) / len(labels)
    found |= {
        "balance": float(-(sizes * np.log(sizes)).sum() / np.log(len(sizes))),
        "smallest": float(sizes.min() * len(sizes)),
        "logistic": _kappa_of("logistic", context.axes, labels, seed),
        "trees": _kappa_of("trees", context.axes, labels, seed),
    }
    return found


def _neighbours(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(rows) - 1)).fit(rows)
    lengths, numbers = found.kneighbors()
    return numbers, lengths


def _features(rows: np.ndarray, graph: Any) -> dict[str, np.ndarray]:
    """Features of Gaussian kernels, the leading axes, and the leading eigenvectors of the graph."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem

    distance = 2 * rows.var(axis=0).sum()
    count = min(LANDMARKS, len(rows))
    found = {
        f"rbf {width:g}": Nystroem(
            gamma=1 / (2 * width**2 * distance), n_components=count, random_state=0
        ).fit_transform(rows)
        for width in WIDTHS
    }
    found["linear"] = PCA(min(AXES, *rows.shape), random_state=0).fit_transform(rows)
    roots = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    S = (diags_array(1 / roots) @ graph @ diags_array(1 / roots)).tocsr()
    q = min(30, len(rows) - 2)
    _, vectors = eigsh(S, q, which="LA", v0=np.cos(np.arange(len(rows))), tol=1e-4)
    found["graph"] = vectors / roots[:, None]
    return {name: _turned(z - z.mean(axis=0)) for name, z in found.items()}


def _turned(z: np.ndarray) -> np.ndarray:
    """Centred features along their principal axes."""
    return np.asarray(z @ np.linalg.eigh(z.T @ z)[1])


def _cut(context: Context, labels: np.ndarray) -> float:
    """Normalised cut, as a share of that of random labels."""
    edges = context.graph.tocoo()
    k = labels.max() + 1
    crossing = labels[edges.row] != labels[edges.col]
    cuts = np.bincount(labels[edges.row[crossing]], edges.data[crossing], k)
    return float((cuts / np.bincount(labels[edges.row], edges.data, k)).sum() / (k - 1))


def _neighbour_kappa(context: Context, labels: np.ndarray) -> float:
    """Kappa of the vote of the nearest rows: their agreement with a row's label, above chance."""
    k = labels.max() + 1
    votes = np.zeros((len(labels), k))
    np.add.at(votes, (np.arange(len(labels))[:, None], labels[context.numbers]), 1)
    return _kappa(labels, votes.argmax(axis=1))


def _kappa(labels: np.ndarray, guessed: np.ndarray) -> float:
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(labels, guessed))


def _dunn(context: Context, labels: np.ndarray) -> float:
    """Log of the shortest neighbour distance across clusters over the mean one within."""
    across = labels[context.numbers] != labels[:, None]
    least = np.quantile(context.lengths[across], 0.05) if across.any() else context.lengths.max()
    within = context.lengths[~across].mean() if (~across).any() else 1.0
    return float(np.log(max(least, 1e-300) / max(within, 1e-300)))


def _valley(context: Context, labels: np.ndarray) -> float:
    """How much farther apart neighbours are at the boundary than elsewhere, as a log, in deviations."""
    spread = np.log(np.maximum(context.lengths[:, -1], 1e-300))
    at_boundary = (labels[context.numbers] != labels[:, None]).mean(axis=1) >= 0.3
    if not at_boundary.any() or spread.std() == 0:
        return 3.0
    return float((spread[at_boundary].mean() - spread.mean()) / spread.std())


def _leave_one_out(z: np.ndarray, labels: np.ndarray) -> float:
    """Least mean squared residual of ridge regression of the labels, row by row from the others."""
    one_hot = np.eye(labels.max() + 1)[labels]
    y = one_hot - one_hot.mean(axis=0)
    n = len(y)
    values, products, best = (z**2).mean(axis=0), z.T @ y / n, np.inf
    for ridge in RIDGES:
        inverse = 1 / (values + ridge * values.sum())
        leverage = (1 + (z**2) @ inverse) / n
        residual = (y - z @ (inverse[:, None] * products)) / np.maximum(1 - leverage, 1e-9)[:, None]
        best = min(best, float((residual**2).sum() / (y**2).sum()))
    return best


def _kappa_of(kind: str, rows: np.ndarray, labels: np.ndarray, seed: int) -> float:
    """Kappa of a fresh classifier on rows that it has not seen."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    if np.bincount(labels).min() < FOLDS:
        return 0.0
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    if kind == "trees":
        model: Any = ExtraTreesClassifier(TREES, min_samples_leaf=3, random_state=seed, n_jobs=1)
    else:
        model = LogisticRegression(max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _kappa(labels, cross_val_predict(model, rows, labels, cv=folds))
