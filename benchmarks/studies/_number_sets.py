"""The number of clusters of real sets and shapes: ours, and that of peers that find one."""

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
    """The problems of the study of choices that are whole sets or shapes."""
    return [one for one in problems_of(options) if not one.classes]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Ours on each set, and the peers that are installed."""
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
    """Fit one method to one set, without classes and without their number."""
    name, source, kind, classes, with_peers = run.settings["problem"]
    data = rows_of(
        Problem(name, source, kind, tuple(classes), with_peers),
        run.settings["rows"],
        run.seed,
    )
    compiled = libraries.first_seconds(run.method)
    model = MODELS[run.method](run.seed)
    if run.method != FRONT_DOOR:
        found = scored(data, model, with_noise)
        layers = getattr(model, "layers_", ())
    else:
        found = scored(data, model, with_noise) | {
            "trust": model.report_["trust"]["level"]
        }
        layers = [model.predict(data.X, layer=i) for i in range(len(model.layers_))]
    found |= {
        "compile_seconds": compiled or found["compile_seconds"],
        "k": np.unique(data.y).size,
    }
    return found | of_layers(data.y, [model.labels_, *layers], len(layers))


def of_layers(
    y: np.ndarray, partitions: list[np.ndarray], n_layers: int
) -> dict[str, Any]:
    """ARI of the best of some partitions, and numbers of clusters of the last few, which are layers.

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
    """Leiden at resolution 1 on the graph of ten neighbours that the default stands on; it has no layers."""

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
    """Each edge once, and a loop where a node has a weight with itself; a loop counts twice in a volume.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from benchmarks.studies._number_sets import edges_of
    >>> ends, weights = edges_of(csr_array([[0.0, 3.0], [3.0, 0.0]]), np.array([0.0, 2.0]))
    >>> ends.tolist(), weights.tolist()
    ([[0, 1], [1, 1]], [3.0, 1.0])
    """
    from scipy.sparse import triu

    upper = triu(weights).tocoo()
    own = np.flatnonzero(loops)
    ends = np.vstack(
        [np.column_stack([upper.row, upper.col]), np.column_stack([own, own])]
    )
    return ends, np.append(upper.data, loops[own] / 2)


class EvocLayers:
    """EVoC at its own number of clusters, with all its layers; noise is -1."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, X: Any) -> Self:
        """Label the rows in all layers."""
        from evoc import EVoC

        model = EVoC(random_state=self.random_state)
        labelled = libraries.DenseClusterer(
            lambda rows: model.fit_predict(rows.astype(np.float32))
        ).fit(X)
        self.labels_, self.layers_ = (
            labelled.labels_,
            [np.asarray(one) for one in model.cluster_layers_],
        )
        return self


def _own_number(method: str, random_state: int) -> Any:
    """A peer that finds the number of clusters itself, whatever number it is told."""
    return estimator(method, random_state=random_state)


MODELS: dict[str, Callable[[int], Any]] = {
    FRONT_DOOR: lambda seed: mmcnb.MaximumMarginClustering(
        n_clusters=None, random_state=seed
    ),
    LEIDEN: GraphCommunities,
    EVOC: EvocLayers,
    **{name: partial(_own_number, name) for name in (UMAP_DENSITY, PLSCAN, DENSITY)},
}
