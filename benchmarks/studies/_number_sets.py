"""Part ``sets`` of ``number``: the number of clusters that mmcnb and its peers find in real data sets and shapes."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Self

import numpy as np

import mmcnb
from benchmarks import libraries
from benchmarks.libraries import EVOC, LEIDEN, PLSCAN, UMAP_DENSITY
from benchmarks.methods import DENSITY, FRONT_DOOR, estimator
from benchmarks.protocol import scored
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._choice_problems import MOST_ROWS, Problem, problems_of, rows_of
from benchmarks.studies._inner import graph_of
from benchmarks.studies.choice import FEW_COLUMNS
from benchmarks.studies.peers import installed, with_noise
from mmcnb.metrics import adjusted_rand_index

RESOLUTION = 1.0


def sets_of(options: Options) -> list[Problem]:
    """Return the problems of the study ``choice`` that are whole data sets or shapes."""
    return [problem for problem in problems_of(options) if not problem.classes]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the default and the installed peers on each data set."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    methods = (FRONT_DOOR, *installed(list(MODELS)[1:]))
    for problem, seed, method in product(sets_of(options), options.repeats(3), methods):
        if not (method == EVOC and problem.source in FEW_COLUMNS):
            yield Run(
                problem.name,
                method,
                seed,
                settings={"rows": rows, "problem": list(problem)},
            )


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, without the classes and without their number."""
    problem = Problem(*run.settings["problem"])
    problem = problem._replace(classes=tuple(problem.classes))
    data = rows_of(problem, run.settings["rows"], run.seed)
    compiled = libraries.first_seconds(run.method)
    model = MODELS[run.method](run.seed)
    measures = scored(data, model, with_noise)
    if compiled:
        measures["compile_seconds"] = compiled
    measures["k"] = np.unique(data.y).size
    if run.method == FRONT_DOOR:
        measures["trust"] = model.report_["trust"]["level"]
        n_layers = len(model.layers_)
        layers = [model.predict(data.X, layer=layer) for layer in range(n_layers)]
    else:
        layers = getattr(model, "layers_", [])
    return measures | of_layers(data.y, [model.labels_, *layers], len(layers))


def of_layers(
    y: np.ndarray, partitions: list[np.ndarray], n_layers: int
) -> dict[str, Any]:
    """Return ARI of the best partition, and the numbers of clusters of the layers.

    The last ``n_layers`` partitions are the layers.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.studies._number_sets import of_layers
    >>> y, one = np.array([0, 0, 1, 1]), np.zeros(4, int)
    >>> of_layers(y, [one, one, np.array([1, 1, 0, 0])], 2)
    {'best layer': 1.0, 'layers': '1, 2'}
    """
    if not n_layers:
        return {}
    numbers = [np.unique(labels[labels >= 0]).size for labels in partitions[-n_layers:]]
    best = max(adjusted_rand_index(y, labels) for labels in partitions)
    return {"best layer": best, "layers": ", ".join(map(str, numbers))}


class GraphCommunities:
    """Leiden at resolution 1 on the graph of ten neighbours, without layers.

    The default uses the same graph.
    """

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Label the rows by the communities of their nodes."""
        import random

        import igraph

        graph = graph_of(X, self.random_state)
        ends, weights = edges_of(*graph.edges())
        igraph.set_random_number_generator(random.Random(self.random_state))
        found = igraph.Graph(graph.n_nodes, ends).community_leiden(
            "modularity", weights=weights, resolution=RESOLUTION, n_iterations=-1
        )
        self.labels_ = np.asarray(found.membership)[graph.node_of]
        return self


def edges_of(weights: Any, loops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each edge once, and a loop for each node that has a weight with itself.

    A loop counts twice in the volume of its node.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from benchmarks.studies._number_sets import edges_of
    >>> graph = csr_array([[0.0, 3.0], [3.0, 0.0]])
    >>> ends, weights = edges_of(graph, np.array([0.0, 2.0]))
    >>> ends.tolist(), weights.tolist()
    ([[0, 1], [1, 1]], [3.0, 1.0])
    """
    from scipy.sparse import triu

    upper = triu(weights).tocoo()
    looped = np.flatnonzero(loops)
    edges = np.column_stack([upper.row, upper.col])
    ends = np.vstack([edges, np.column_stack([looped, looped])])
    return ends, np.append(upper.data, loops[looped] / 2)


class EvocLayers:
    """EVoC with the number of clusters that it finds, and all its layers; noise is -1."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Label the rows in all layers."""
        from evoc import EVoC

        model = EVoC(random_state=self.random_state)
        clusterer = libraries.DenseClusterer(
            lambda rows: model.fit_predict(rows.astype(np.float32))
        )
        self.labels_ = clusterer.fit(X).labels_
        self.layers_ = [np.asarray(layer) for layer in model.cluster_layers_]
        return self


def _own_number(method: str, random_state: int) -> Any:
    """Return a peer that finds the number of clusters itself and ignores a given number."""
    return estimator(method, random_state=random_state)


MODELS: dict[str, Callable[[int], Any]] = {
    FRONT_DOOR: lambda seed: mmcnb.MaximumMarginClustering(
        n_clusters=None, random_state=seed
    ),
    LEIDEN: GraphCommunities,
    EVOC: EvocLayers,
    **{name: partial(_own_number, name) for name in (UMAP_DENSITY, PLSCAN, DENSITY)},
}
