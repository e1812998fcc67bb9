"""Fits of multiple kernel clustering and of its rivals: over a grid, and without classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

import mmcnb
from benchmarks._cells import LABEL_FREE, PAPER, Cell, facts
from benchmarks._common import Data, Options
from benchmarks._compare import compile_seconds, faster_kmeans, timed
from benchmarks._journal import Journal
from benchmarks._mkc_data import (
    CUT,
    K1,
    K2,
    K3,
    KMEANS,
    MKC,
    MNIST_SAMPLE,
    OURS,
    SETS,
    SVR,
    load_set,
    rows_of_set,
    scores,
    sigma0_of,
)
from benchmarks._peers import spectral
from benchmarks._statistics import best, over_seeds

ACCURACY = "accuracy"
QUICK_ROWS = 200
DEGREES = (2, 4, 8)  # of its 2^0 to 2^10; 2^5 and more leave the range of numbers on raw digits
SIGMAS = (5.0,)  # of its 0.5 to 20
FRACTIONS = (0.3, 1.0)  # sigma = f sigma0, as for the normalised cut, in exp(-d²/(2 sigma))
SQUARED = (0.2, 0.4, 0.1, 0.8)  # sigma = (f sigma0)², the usual Gaussian
FORM: dict[str, Any] = {"threshold": "fixed"}  # the paper's: threshold 1
EXPONENTS = (1, 2, 4, 6, 8)  # C = 2^e; the thesis's are 2^-6 to 2^6 for kernels not scaled to unit trace
FORMS: dict[str, dict[str, Any]] = {f"C=2^{e}": FORM | {"C": 2.0**e} for e in EXPONENTS}
FORMS |= {f"C={C:g}, adaptive": {"C": C} for C in (2.0, 10.0)}
# Two clusters: the papers' way, from coin flips directly at a large C, which ends somewhere else each time.
FLIPS: dict[str, dict[str, Any]] = {
    f"C=2^6, coin flip {seed}": FORM
    | {"C": 64.0, "continuation": False, "init": "random", "n_init": 1, "balance": 0.03, "min_share": 0.3}
    | {"random_state": seed}
    for seed in range(4)
}
QUICK_FORMS = ("C=2^1", "C=10, adaptive", "C=2^6, coin flip 0")
COMBINED = 3  # Gaussians, best alone, that are tried in the combination
CUT_FRACTIONS = tuple(f / 10 for f in range(1, 11))
SVR_WEIGHTS = (0.1, 1.0, 10.0)  # C of a row
BALANCES = (0.03, 0.1, 0.3, 0.4)
RUNS, QUICK_RUNS, SMOKE_RUNS = 50, 10, 2  # of k-means
FREE_SEEDS = 3
MOST_AFFINITIES = 5000  # rows whose square is still held


# -- estimators ------------------------------------------------------------------------------------


def base_kernels(sigma0: float) -> dict[str, dict[str, Any]]:
    """The kernels that are tried for each of the paper's three kinds, by name."""
    sigmas = {f"sigma=({f:g} sigma0)^2": (f * sigma0) ** 2 for f in SQUARED}
    sigmas |= {f"sigma={f:g} sigma0": f * sigma0 for f in FRACTIONS}
    sigmas |= {f"sigma={sigma:g}": sigma for sigma in SIGMAS}
    return {
        K1: {"linear": "linear"},
        K2: {f"d={degree}": polynomial(degree) for degree in DEGREES},
        K3: {name: ("rbf", {"gamma": gamma_of(sigma)}) for name, sigma in sigmas.items()},
    }


def polynomial(degree: int) -> tuple[str, dict[str, Any]]:
    """(1 + x·b)^d."""
    return "poly", {"degree": degree, "gamma": 1.0, "coef0": 1.0}


def gamma_of(sigma: float) -> float:
    """gamma of exp(-d²/(2 sigma)), which the paper writes without a square."""
    return 1 / (2 * sigma)


def at_point(
    name: str, rows: int | None, kernels: str, form: str, seed: int, **given: Any
) -> mmcnb.MultipleKernelClustering:
    """The estimator at a point of the grid, and with what else is given; not yet fitted.

    Parameters
    ----------
    name : str
        One of `SETS`.
    rows : int or None
        At most so many rows.
    kernels : str
        Names from `base_kernels`, with ", " between them.
    form : str
        One of `FORMS` or `FLIPS`.
    seed : int
        Where the form has none.
    **given
        More parameters.

    Returns
    -------
    MultipleKernelClustering
        Not yet fitted.
    """
    known = {name: one for kind in base_kernels(sigma0_of(name, rows)).values() for name, one in kind.items()}
    chosen = [known[one] for one in kernels.split(", ")]
    given = {"random_state": seed, **(FORMS | FLIPS)[form], **given}
    return mmcnb.MultipleKernelClustering(SETS[name].n_clusters, kernels=chosen, **given)


def default(name: str, method: str, seed: int) -> mmcnb.MultipleKernelClustering:
    """A kernel alone, or all that "auto" takes, at the defaults; not yet fitted."""
    kernels = {K1: ["linear"], K2: [polynomial(2)], K3: ["rbf"], MKC: "auto"}
    k = SETS[name].n_clusters
    return mmcnb.MultipleKernelClustering(k, kernels=kernels[method], random_state=seed)


class NormalisedCut:
    """k-means of the leading eigenvectors of a normalised Gaussian graph.

    The paper's widths leave raw digits almost without edges, where ARPACK, and with it scikit-learn's
    spectral clustering, does not converge; all eigenvalues of a dense matrix are found.

    Parameters
    ----------
    n_clusters : int
        k.
    gamma : float
        Width of the graph.
    seed : int
        Of k-means.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._mkc_fits import NormalisedCut
    >>> NormalisedCut(2, 1.0, 0).fit(np.array([[0.0], [1.0], [9.0], [10.0]])).labels_.tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """

    def __init__(self, n_clusters: int, gamma: float, seed: int) -> None:
        self.n_clusters, self.gamma, self.seed = n_clusters, gamma, seed

    def fit(self, X: Any) -> NormalisedCut:
        """Divide the rows."""
        from sklearn.metrics.pairwise import rbf_kernel

        k = self.n_clusters
        graph = rbf_kernel(X, gamma=self.gamma)
        root = np.sqrt(graph.sum(axis=1))
        vectors = np.linalg.eigh(graph / root / root[:, None])[1][:, -k:]
        self.labels_ = KMeans(k, n_init=10, random_state=self.seed).fit(vectors / root[:, None]).labels_
        return self


def _machine(name: str, rows: int | None, y: np.ndarray, seed: int, given: Mapping[str, float]) -> Any:
    """IterSVR by default, or at a width and C, its balance by the sizes of the classes."""
    if not given:
        return mmcnb.baselines.IterativeSVR(random_state=seed)
    gamma = gamma_of(given["width"] * sigma0_of(name, rows))
    return mmcnb.baselines.IterativeSVR(given["C"], gamma, balance=known_balance(y), random_state=seed)


def known_balance(y: np.ndarray) -> float:
    """The first bound of abs(sum(y))/n that two classes keep.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks._mkc_fits import known_balance
    >>> known_balance(np.array([0] * 5 + [1] * 4))
    0.3
    """
    counts = np.unique(y, return_counts=True)[1]
    share = np.ptp(counts) / counts.sum()
    return next((bound for bound in BALANCES if bound >= share), BALANCES[-1])


# -- what a cell computes --------------------------------------------------------------------------


def clustered(
    name: str, rows: int | None, method: str, seed: int, given: Mapping[str, Any], **fixed: Any
) -> dict[str, Any]:
    """Compute a cell: a kernel alone or several, at a point of the grid or, without parameters, by default.

    Parameters
    ----------
    name : str
        One of `SETS`.
    rows : int or None
        At most so many rows.
    method : str
        One of `OURS`.
    seed : int
        Of the fit.
    given : mapping
        ``kernels`` and ``form``, or nothing.
    **fixed
        More parameters of the estimator.

    Returns
    -------
    dict
        Facts of the data, measures, `scores` and the weights of the kernels as a text.
    """
    data = load_set(name, rows)
    model = at_point(name, rows, seed=seed, **given, **fixed) if given else default(name, method, seed)
    compiled = compile_kernels(data)
    measures = timed(model, data.X) | {"compile_seconds": compiled}
    return facts(data.X) | measures | scores(data.y, model.labels_) | {"weights": weights_of(model)}


def compile_kernels(data: Data) -> float:
    """Seconds of a first small fit of such rows in this process."""
    k = min(3, SETS[data.name].n_clusters)  # more clusters take the kernels of three
    return compile_seconds(data.X, mmcnb.MultipleKernelClustering(k, random_state=0))


def rival(name: str, rows: int | None, method: str, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Compute a cell: k-means, normalised cut or IterSVR at some parameters, or by default."""
    data, k = load_set(name, rows), SETS[name].n_clusters
    if method == KMEANS and "init" not in given:
        estimator, measures = faster_kmeans(data.X, seed, given, k)
    else:
        if method == KMEANS:
            estimator = KMeans(k, random_state=seed, **given)
        elif method == SVR:
            estimator = _machine(name, rows, data.y, seed, given)
        elif given:
            estimator = NormalisedCut(k, gamma_of(given["width"] * sigma0_of(name, rows)), seed)
        else:
            estimator = spectral(k, seed)
        measures = timed(estimator, data.X)
    return facts(data.X) | measures | scores(data.y, estimator.labels_)


def weights_of(estimator: Any) -> str:
    """The weights of the kernels by name; nothing where there is one."""
    weights, names = estimator.kernel_weights_, estimator.kernel_names_
    told = "; ".join(f"{name}: {weight:.2f}" for name, weight in zip(names, weights, strict=True))
    return told if len(names) > 1 else ""


# -- cells -----------------------------------------------------------------------------------------


def grid_of(names: Iterable[str], options: Options, journal: Journal) -> pd.DataFrame:
    """Fits over the grid: each kernel alone, then the best of each kind together.

    Parameters
    ----------
    names : iterable of str
        Of `SETS`.
    options : Options
        Seeds and scale.
    journal : Journal
        Record of the cells.

    Returns
    -------
    DataFrame
        One row a cell, by the paper's protocol.
    """
    names = tuple(names)
    alone = journal.rows(
        [
            cell
            for name in names
            for method, kernels in base_kernels(1.0).items()
            for cell in _points(name, method, _few(kernels, options), options)
        ]
    )
    combined = [
        cell
        for name in names
        for cell in _points(name, MKC, together(alone[alone["dataset"] == name]), options)
    ]
    return pd.concat([alone, *([journal.rows(combined)] if combined else [])], ignore_index=True)


def _few(kernels: Iterable[str], options: Options) -> list[str]:
    """The kernels of a kind, or the first of them."""
    return list(kernels)[: 1 if options.smoke else 2 if options.quick else None]


def _points(name: str, method: str, kernels: Iterable[str], options: Options) -> Iterator[Cell]:
    """Every form with each choice of kernels."""
    rows = rows_of_set(name, options, QUICK_ROWS if options.quick else None)
    forms = [*FORMS, *(FLIPS if SETS[name].n_clusters == 2 else ())]
    if options.quick:
        forms = [form for form in forms if form in QUICK_FORMS[: 1 if options.smoke else None]]
    part = "mnist" if name == MNIST_SAMPLE else "table2"  # other parts take the same cells
    for one in kernels:
        for form in forms:
            for seed in range(options.seeds or 1):
                given = {"kernels": one, "form": form}
                compute = partial(clustered, name, rows, method, seed, given, basis="exact")
                yield Cell(name, method, seed, compute, given, PAPER, part)


def together(alone: pd.DataFrame) -> list[str]:
    """Combinations to try: the best linear, polynomial and Gaussian kernel, and several Gaussians.

    Parameters
    ----------
    alone : DataFrame
        One row a cell of one data set: method, kernels, form, accuracy.

    Returns
    -------
    list of str
        Names of kernels with ", " between them.
    """
    means = alone.groupby(["method", "kernels", "form"], sort=False)[ACCURACY].mean().dropna()
    most = means.groupby(["method", "kernels"], sort=False).max().sort_values(ascending=False, kind="stable")
    ranked = {method: [one for kind, one in most.index if kind == method] for method in (K1, K2, K3)}
    widths = ranked[K3][:COMBINED]
    found = [", ".join([*ranked[K1][:1], *ranked[K2][:1], width]) for width in widths]
    return found + ([", ".join(widths)] if len(widths) > 1 else [])


def best_points(grid: pd.DataFrame, method: str) -> dict[str, dict[str, str]]:
    """Of each data set the kernels and the form of highest mean accuracy; the earlier of equals."""
    keys = ["dataset", "kernels", "form"]
    settings = over_seeds(grid[grid["method"] == method], keys, ACCURACY)
    chosen = best(settings, ["dataset"], ACCURACY, largest=True)
    return {row.dataset: {"kernels": row.kernels, "form": row.form} for row in chosen.itertuples()}


def free_cells(name: str, options: Options) -> Iterator[Cell]:
    """Each kernel alone and all together, at the defaults."""
    rows = rows_of_set(name, options, QUICK_ROWS if options.quick else None)
    for method in OURS:
        for seed in range(_seeds(options)):
            compute = partial(clustered, name, rows, method, seed, {})
            yield Cell(name, method, seed, compute, {}, LABEL_FREE, "table2")


def _seeds(options: Options) -> int:
    return options.seeds or (1 if options.quick else FREE_SEEDS)


def kmeans_cells(name: str, rows: int | None, options: Options, part: str) -> Iterator[Cell]:
    """Runs from random rows, as published; and ten starts, the best kept."""
    runs = options.seeds or (QUICK_RUNS if options.quick else RUNS)
    for given, protocol, count in (
        ({"init": "random", "n_init": 1}, PAPER, runs),
        ({"n_init": 10}, LABEL_FREE, _seeds(options)),
    ):
        for seed in range(count):
            compute = partial(rival, name, rows, KMEANS, seed, given)
            yield Cell(name, KMEANS, seed, compute, given, protocol, part)


def rival_cells(name: str, options: Options) -> Iterator[Cell]:
    """Normalised cut and IterSVR of two clusters, over their grids and by default; and k-means."""
    rows = rows_of_set(name, options, QUICK_ROWS if options.quick else None)
    yield from kmeans_cells(name, rows, options, "table2")
    step = 5 if options.quick else 1
    points: dict[str, list[dict[str, float]]] = {CUT: [{"width": width} for width in CUT_FRACTIONS[::step]]}
    if SETS[name].n_clusters == 2:
        weights = SVR_WEIGHTS[::step]
        points[SVR] = [{"width": width, "C": C} for width in CUT_FRACTIONS[::step] for C in weights]
    for method, grid in points.items():
        for seed in range(_seeds(options)):
            for given in ({}, *grid):
                compute = partial(rival, name, rows, method, seed, given)
                yield Cell(name, method, seed, compute, given, PAPER if given else LABEL_FREE, "table2")
