"""Runs with each number of clusters, and signs at each number that need no classes."""

import json
import time
from typing import Any

import numpy as np

import mmcnb
from benchmarks.methods import FRONT_DOOR
from benchmarks.protocol import clustering, fit
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import GEOMETRY, MANY, PAIRS, Problem, of_scale, problems, rows_of

GRAPH = "graph"
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
    """The estimator's choice, and the graph with each number of clusters; the tuning half first."""
    for problem in of_scale(options, cases(), ("optdigits 4 even", "two-moons")):
        settings = {"problem": list(problem), "rows": options.rows}
        yield Run(problem.name, FRONT_DOOR, 0, settings=settings)
        for k in NUMBERS if not options.smoke else NUMBERS[:4]:
            yield Run(problem.name, GRAPH, 0, {"n_clusters": k}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """The chosen number and its evidence; or figures of the graph with one number."""
    (problem,) = (one for one in cases() if one.name == run.dataset)
    data = rows_of(problem, run.settings["rows"])
    started = time.perf_counter()
    if run.method == FRONT_DOOR:
        model = fit(mmcnb.MaximumMarginClustering(None, random_state=run.seed), data.X)
    else:
        k = int(run.parameters["n_clusters"])
        model = fit(mmcnb.UnsupervisedRLS(k, kernel=GRAPH, random_state=run.seed), data.X)
    found: dict[str, Any] = {"seconds": time.perf_counter() - started, "classes": int(data.y.max()) + 1}
    found |= clustering(data.y, model.labels_)
    if run.method == FRONT_DOOR:
        return found | {"taken": model.n_clusters_, "numbers": json.dumps(model.report_["numbers"])}
    sizes = np.bincount(model.labels_) / len(data.y)
    found |= {"objective": float(model.objective_), "smallest": float(sizes.min() * len(sizes))}
    return found | _spectrum(model.report_["graph"]["eigenvalues"], k)


def _spectrum(eigenvalues: list[float], k: int) -> dict[str, float]:
    """The gap after k - 1 eigenvalues, as a ratio: k clusters that hardly touch have as many near 1."""
    beyond = np.maximum(1 - np.array(eigenvalues), 1e-9)
    if k > len(beyond):
        return {"eigenvalue": float(1 - beyond[-1]), "gap": 0.0}
    return {"eigenvalue": float(1 - beyond[k - 2]), "gap": float(np.log(beyond[k - 1] / beyond[k - 2]))}
