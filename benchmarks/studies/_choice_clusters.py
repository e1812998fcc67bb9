"""Runs with each number of clusters, and signs at each number that need no classes."""

import time
from typing import Any

import numpy as np

import mmcnb
from benchmarks.protocol import clustering, fit
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import GEOMETRY, MANY, PAIRS, Problem, of_scale, problems, rows_of
from benchmarks.studies._choice_signs import signs_of, stability_of

GRAPH = "graph"
METHODS: dict[str, dict[str, Any]] = {GRAPH: {"kernel": "graph"}, "rbf": {"cluster_sizes": None}}
NUMBERS = range(2, 13)


def cases() -> list[Problem]:
    """Problems of 2 to 10 classes: few pairs, even and uneven draws, and the shapes.

    Examples
    --------
    >>> from benchmarks.studies._choice_clusters import cases
    >>> len(cases()) >= 60
    True
    """
    known = problems()
    pairs = [one for one in known if one.domain == PAIRS]
    return pairs[::5] + [one for one in known if one.domain in (MANY, GEOMETRY)]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Each method with each number of clusters on each problem, the tuning half first."""
    for problem in of_scale(options, cases(), ("optdigits 4 even", "two-moons")):
        settings = {"problem": list(problem), "rows": options.rows}
        for name in METHODS:
            for k in NUMBERS if not options.smoke else NUMBERS[:4]:
                yield Run(problem.name, name, 0, {"n_clusters": k}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Signs of one number of clusters: of the fit, of its labels, and of fits to two halves."""
    (problem,) = (one for one in cases() if one.name == run.dataset)
    data, k = rows_of(problem, run.settings["rows"]), int(run.parameters["n_clusters"])
    started = time.perf_counter()
    model = _fitted(run.method, k, data.X, run.seed)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "classes": int(data.y.max()) + 1}
    found |= {"objective": float(model.objective_), **clustering(data.y, model.labels_)}
    if run.method == GRAPH:
        found |= _spectrum(model.report_["graph"]["eigenvalues"], k)
    found |= signs_of(data, model.labels_, run.seed)

    def refit(rows: np.ndarray) -> np.ndarray:
        return np.asarray(_fitted(run.method, k, data.X[rows], run.seed).predict(data.X))

    return found | stability_of(refit, model.labels_, run.seed)


def _fitted(method: str, k: int, X: np.ndarray, seed: int) -> Any:
    return fit(mmcnb.UnsupervisedRLS(k, random_state=seed, **METHODS[method]), X)


def _spectrum(eigenvalues: list[float], k: int) -> dict[str, float]:
    """The gap after k - 1 eigenvalues, as a ratio: k clusters that hardly touch have as many near 1."""
    beyond = np.maximum(1 - np.array(eigenvalues), 1e-9)
    if k > len(beyond):
        return {"eigenvalue": float(1 - beyond[-1]), "gap": 0.0}
    return {"eigenvalue": float(1 - beyond[k - 2]), "gap": float(np.log(beyond[k - 1] / beyond[k - 2]))}
