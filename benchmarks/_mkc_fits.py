"""Fits of multiple kernel clustering and of its rivals: over a grid, and without classes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

import mmcnb
from benchmarks._common import Data
from benchmarks._compare import fit
from benchmarks._mkc_data import CUT, K1, K2, K3, KMEANS, MKC, OURS, SETS, SVR, distance_range, scores
from benchmarks._peers import faster, spectral

PAPER, FREE = "paper", "label-free"
PROTOCOLS = (PAPER, FREE)
DEGREES = (2, 4, 8)  # of its 2^0 to 2^10; 2^5 and more leave the range of numbers on raw digits
SIGMAS = (5.0,)  # of its 0.5 to 20
FRACTIONS = (0.3, 1.0)  # sigma = f sigma0, as for the normalised cut, in exp(-d²/(2 sigma))
SQUARED = (0.1, 0.2, 0.4, 0.8)  # sigma = (f sigma0)², the usual Gaussian
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
COMBINED = 3  # Gaussians, best alone, that are tried in the combination
CUT_FRACTIONS = tuple(np.arange(1, 11) / 10)
SVR_WEIGHTS = (0.1, 1.0, 10.0)  # C of a row
BALANCES = (0.03, 0.1, 0.3, 0.4)
RUNS = 50  # of k-means
MOST_AFFINITIES = 5000  # rows whose square is still held


class Point(NamedTuple):
    """Kernels by the names they have in the tables, and the form of the fit.

    Parameters
    ----------
    kernels : dict of str to object
        What the estimator takes, by name.
    form : str
        One of `FORMS` or `FLIPS`.
    """

    kernels: dict[str, Any]
    form: str

    def __str__(self) -> str:
        return ", ".join([*filter(None, self.kernels), self.form])


# -- multiple kernel clustering --------------------------------------------------------------------


def mkc_fits(data: Data, protocol: str, seed: int) -> list[dict[str, Any]]:
    """Each kernel alone and their combination: rows of the tidy table.

    Parameters
    ----------
    data : Data
        One of `SETS`.
    protocol : {"paper", "label-free"}
        A grid, to be judged by the classes; or no parameter but the kernel.
    seed : int
        Of the fits.

    Returns
    -------
    list of dict
        One a fit.
    """
    if protocol == FREE:
        return [measure(data, FREE, method, "default", default(data, method, seed), seed) for method in OURS]
    return [row for found in grid_fits(data, seed).values() for _, row in found]


def default(data: Data, method: str, seed: int) -> Any:
    """A kernel alone, or all that "auto" takes, at the defaults; not yet fitted."""
    kernels = {K1: ["linear"], K2: [polynomial(2)], K3: ["rbf"], MKC: "auto"}
    k = SETS[data.name].n_clusters
    return mmcnb.MultipleKernelClustering(k, kernels=kernels[method], random_state=seed)


def at_point(data: Data, point: Point, seed: int, **given: Any) -> Any:
    """The estimator with the kernels and the form of a point, and what else is given; not yet fitted."""
    k, kernels = SETS[data.name].n_clusters, list(point.kernels.values())
    given = {"random_state": seed, **(FORMS | FLIPS)[point.form], **given}
    return mmcnb.MultipleKernelClustering(k, kernels=kernels, **given)


def grid_fits(data: Data, seed: int) -> dict[str, list[tuple[Point, dict[str, Any]]]]:
    """Fits over the grid: each kernel alone, then the best of each kind together."""
    sigma0, found = distance_range(data.X), {}
    forms = [*FORMS, *(FLIPS if SETS[data.name].n_clusters == 2 else ())]
    for method, kernels in base_kernels(sigma0).items():
        points = [Point({name: one}, form) for name, one in kernels.items() for form in forms]
        found[method] = _fits(data, method, points, seed)
    linear, powers, widths = (ranked(found[method]) for method in (K1, K2, K3))
    together = [linear[0] | powers[0] | width for width in widths[:COMBINED]]
    together.append({name: one for width in widths[:COMBINED] for name, one in width.items()})
    points = [Point(kernels, form) for kernels in together for form in forms]
    return found | {MKC: _fits(data, MKC, points, seed)}


def _fits(data: Data, method: str, points: Iterable[Point], seed: int) -> list[tuple[Point, dict[str, Any]]]:
    def one(point: Point) -> dict[str, Any]:
        return measure(data, PAPER, method, str(point), at_point(data, point, seed, basis="exact"), seed)

    return [(point, one(point)) for point in points]


def base_kernels(sigma0: float) -> dict[str, dict[str, Any]]:
    """The kernels that are tried for each of the paper's three kinds, by name."""
    sigmas = {f"sigma={sigma:g}": sigma for sigma in SIGMAS}
    sigmas |= {f"sigma={f:g} sigma0": f * sigma0 for f in FRACTIONS}
    sigmas |= {f"sigma=({f:g} sigma0)²": (f * sigma0) ** 2 for f in SQUARED}
    return {
        K1: {"": "linear"},
        K2: {f"d={degree}": polynomial(degree) for degree in DEGREES},
        K3: {name: ("rbf", {"gamma": gamma_of(sigma)}) for name, sigma in sigmas.items()},
    }


def polynomial(degree: int) -> tuple[str, dict[str, Any]]:
    """(1 + x·b)^d."""
    return "poly", {"degree": degree, "gamma": 1.0, "coef0": 1.0}


def gamma_of(sigma: float) -> float:
    """gamma of exp(-d²/(2 sigma)), which the paper writes without a square."""
    return 1 / (2 * sigma)


def ranked(found: Sequence[tuple[Point, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Kernels by the accuracy of their best fit; the earlier of equals first."""
    best: dict[str, tuple[float, dict[str, Any]]] = {}
    for point, row in found:
        name = str(list(point.kernels))
        if name not in best or row["accuracy"] > best[name][0]:
            best[name] = row["accuracy"], point.kernels
    return [kernels for _, kernels in sorted(best.values(), key=lambda pair: -pair[0])]


def best_point(found: Sequence[tuple[Point, dict[str, Any]]]) -> Point:
    """The point of highest accuracy; the earlier of equals."""
    return max(found, key=lambda pair: pair[1]["accuracy"])[0]


# -- rivals ----------------------------------------------------------------------------------------


def rival_fits(data: Data, protocol: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """k-means, normalised cut and IterSVR: rows of the tidy table; what cannot be run says why."""
    rows = kmeans_fits(data, protocol, seeds)
    for method, reason, made in (
        (CUT, _no_cut(data), cuts),
        (SVR, _no_svr(data), machines),
    ):
        if reason:
            rows.append(_row(data, protocol, method, f"not run: {reason}", 0))
        else:
            rows += [
                measure(data, protocol, method, text, make(seed), seed)
                for text, make in made(data, protocol).items()
                for seed in seeds
            ]
    return rows


def kmeans_fits(data: Data, protocol: str, seeds: Iterable[int]) -> list[dict[str, Any]]:
    """Fifty runs from random rows, as published; or ten starts, the best kept."""
    k = SETS[data.name].n_clusters
    if protocol == PAPER:
        return [
            measure(data, PAPER, KMEANS, f"mean of {RUNS} runs", _random_kmeans(k, seed), seed)
            for seed in range(RUNS)
        ]
    return [measure(data, FREE, KMEANS, "n_init=10", _kmeans_of_ten(k, seed), seed) for seed in seeds]


def _random_kmeans(k: int, seed: int) -> KMeans:
    return KMeans(k, init="random", n_init=1, random_state=seed)


def _kmeans_of_ten(k: int, seed: int) -> Any:
    return faster(lambda: KMeans(k, n_init=10, random_state=seed))


def _no_cut(data: Data) -> str:
    n = len(data.y)
    return f"{n:,}² affinities" if n > MOST_AFFINITIES else ""


def cuts(data: Data, protocol: str) -> dict[str, Callable[[int], Any]]:
    """Normalised cut of a Gaussian graph, a width each; without classes that of ten neighbours."""
    k = SETS[data.name].n_clusters
    if protocol == FREE:
        return {"10 neighbours": lambda seed: spectral(k, seed)}
    sigma0 = distance_range(data.X)

    def make(fraction: float) -> Callable[[int], Any]:
        gamma = gamma_of(fraction * sigma0)
        return lambda seed: NormalisedCut(k, gamma, seed)

    return {f"sigma={f:g} sigma0": make(f) for f in CUT_FRACTIONS}


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


def _no_svr(data: Data) -> str:
    return "two clusters only" if SETS[data.name].n_clusters > 2 else ""


def machines(data: Data, protocol: str) -> dict[str, Callable[[int], Any]]:
    """IterSVR over widths and C, its balance by the sizes of the classes; or by default."""
    if protocol == FREE:
        return {"default": lambda seed: mmcnb.IterativeSVR(random_state=seed)}
    sigma0, balance = distance_range(data.X), known_balance(data.y)

    def make(fraction: float, C: float) -> Callable[[int], Any]:
        gamma = gamma_of(fraction * sigma0)
        return lambda seed: mmcnb.IterativeSVR(C, gamma, balance=balance, random_state=seed)

    return {f"sigma={f:g} sigma0, C={C:g}": make(f, C) for f in CUT_FRACTIONS for C in SVR_WEIGHTS}


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


# -- the tidy table --------------------------------------------------------------------------------


def measure(
    data: Data, protocol: str, method: str, parameters: str, estimator: Any, seed: int
) -> dict[str, Any]:
    """Fit once, and return the row of the tidy table."""
    started = time.perf_counter()
    fit(estimator, data.X)
    seconds = getattr(estimator, "seconds_", time.perf_counter() - started)
    row = _row(data, protocol, method, parameters, seed)
    return row | scores(data.y, estimator.labels_) | {"seconds": seconds, "weights": weights_of(estimator)}


def weights_of(estimator: Any) -> str:
    """The weights of the kernels by name; nothing where there are none."""
    weights = getattr(estimator, "kernel_weights_", ())
    names = getattr(estimator, "kernel_names_", ())
    return "; ".join(f"{name}: {weight:.2f}" for name, weight in zip(names, weights, strict=True))


def _row(data: Data, protocol: str, method: str, parameters: str, seed: int) -> dict[str, Any]:
    """A row without figures."""
    facts = {"dataset": data.name, "n": len(data.y), "protocol": protocol, "method": method}
    figures = dict.fromkeys(("accuracy", "rand", "ari", "seconds"), np.nan)
    return {**facts, "parameters": parameters, "seed": seed, **figures, "weights": ""}


def best_rows(fits: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, at the parameters of the highest mean accuracy; the earlier of equals.

    The weights of the kernels are those of the first seed.
    """
    keys = ["dataset", "method", "protocol"]
    points = fits.groupby([*keys, "parameters"], sort=False)
    means = points.mean(numeric_only=True).join(points["weights"].first()).reset_index()
    means["judged"] = means["accuracy"].fillna(-1)
    best = means.loc[means.groupby(keys, sort=False)["judged"].idxmax()]
    return best.drop(columns=["judged", "seed"]).reset_index(drop=True)


def weights_table(best: pd.DataFrame) -> pd.DataFrame:
    """The weights of the kernels where there are several."""
    return best.loc[best["method"] == MKC, ["dataset", "protocol", "parameters", "weights"]]
