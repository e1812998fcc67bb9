"""Many clusters at a given number: hundreds in wide rows, thirty in few rows."""

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

# of a scale, and of a cluster
QUICK_ROWS = 20_000
LEAST_ROWS = 20
# of the centres, in deviations of a cluster: 9 of 10 neighbours are of one of 1,000
# groups
GROUP_SPREAD = 0.8
# of the centres of blobs: least distance and deviation
LEAST = 5.0
SPREAD = 2.5


class Groups(NamedTuple):
    """Rows in many clusters.

    Parameters
    ----------
    name : str
        For the tables.
    rows, columns, n_clusters : int
        Their shape, and how many clusters they have.
    least, spread : float
        Least distance of two centres, and deviation of the centres, in deviations of a
        cluster.
    with_peers : bool
        Whether peers run on them.
    """

    name: str
    rows: int
    columns: int
    n_clusters: int
    least: float
    spread: float
    with_peers: bool

    def within(self, rows: int) -> "Groups":
        """The same with at most so many rows, and no cluster of less than twenty."""
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
    """The default on all of them, and peers on the large ones."""
    most = options.rows or options.pick(ALL[1].rows, QUICK_ROWS, QUICK_ROWS)
    peers = (MINIBATCH, *installed((EVOC,)))
    for one in ALL:
        groups = one.within(most)
        for seed in options.repeats(3):
            for method in (FRONT_DOOR, *(peers if one.with_peers else ())):
                yield Run(one.name, method, seed, settings={"groups": list(groups)})


def compute(run: Run) -> dict[str, Any]:
    """The second of two fits at the given number."""
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
        fit(model, data.X)  # compiles
    measures = facts(data.X) | timed(model, data.X)
    return (
        measures | clustering(data.y, model.labels_) | {"clusters": groups.n_clusters}
    )


def tables(frame: pd.DataFrame) -> Result:
    """Mean ARI and median seconds."""
    table = over_seeds(frame, ["dataset", "clusters", "method"], "ari", "error")
    return Result({"number-large": table})
