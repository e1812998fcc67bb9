"""Part ``large`` of ``number``: many given clusters, hundreds in wide rows or thirty in few rows."""

from typing import Any, NamedTuple

import pandas as pd

from benchmarks import libraries
from benchmarks.libraries import EVOC
from benchmarks.methods import FRONT_DOOR, MINIBATCH, estimator
from benchmarks.protocol import clustering, facts, fit, timed
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies._number_made import blobs
from benchmarks.studies.peers import installed
from benchmarks.tables import Result, over_seeds

# QUICK_ROWS: of the quick scale. LEAST_ROWS: of a cluster.
QUICK_ROWS = 20_000
LEAST_ROWS = 20
# Standard deviation of the centres, in standard deviations of a cluster. With 1,000
# groups, 9 of 10 neighbours are in the same group.
GROUP_SPREAD = 0.8
# Smallest distance and standard deviation of the centres of blobs.
LEAST = 5.0
SPREAD = 2.5


class Groups(NamedTuple):
    """Rows in many clusters.

    Parameters
    ----------
    name : str
        Name in the tables.
    rows, columns, n_clusters : int
        Numbers of rows, columns and clusters.
    least, spread : float
        Smallest distance between two centres, and standard deviation of the centres, in
        standard deviations of a cluster.
    with_peers : bool
        Whether peers are fitted to the rows.
    """

    name: str
    rows: int
    columns: int
    n_clusters: int
    least: float
    spread: float
    with_peers: bool

    def within(self, rows: int) -> "Groups":
        """Return the groups with at most `rows` rows, and on average at least twenty rows per cluster."""
        rows = min(rows, self.rows)
        return self._replace(
            rows=rows, n_clusters=min(self.n_clusters, max(2, rows // LEAST_ROWS))
        )


ALL = (
    Groups("100 groups", 50_000, 128, 100, 0.0, GROUP_SPREAD, True),
    Groups("1,000 groups", 100_000, 128, 1000, 0.0, GROUP_SPREAD, True),
    *(
        Groups(f"{k} blobs", 2000, 10, k, LEAST, SPREAD, False)
        for k in (29, 30, 31, 40, 60)
    ),
)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the default on all of them, and peers on the large ones."""
    most = options.rows or options.pick(ALL[1].rows, QUICK_ROWS, QUICK_ROWS)
    peers = (MINIBATCH, *installed((EVOC,)))
    for one in ALL:
        groups = one.within(most)
        for seed in options.repeats(3):
            for method in (FRONT_DOOR, *(peers if one.with_peers else ())):
                yield Run(one.name, method, seed, settings={"groups": list(groups)})


def compute(run: Run) -> dict[str, Any]:
    """Measure the second of two fits with the given number of clusters."""
    groups = Groups(*run.settings["groups"])
    data = blobs(
        groups.rows,
        groups.n_clusters,
        groups.columns,
        groups.least,
        groups.spread,
        run.seed,
    )
    model = estimator(run.method, groups.n_clusters, random_state=run.seed)
    libraries.first_seconds(run.method)
    if run.method == FRONT_DOOR:
        fit(model, data.X)  # compiles the routines
    measures = facts(data.X) | timed(model, data.X)
    return (
        measures | clustering(data.y, model.labels_) | {"clusters": groups.n_clusters}
    )


def tables(frame: pd.DataFrame) -> Result:
    """Return mean ARI and median seconds."""
    table = over_seeds(frame, ["dataset", "clusters", "method"], "ari", "error")
    return Result({"number-large": table})
