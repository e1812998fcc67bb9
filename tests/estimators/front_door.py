"""The front door with a fixed seed, and the ways to ask it for clusters."""

import mmcnb
from tests.engine.fakes import FakeSamples

# A number of clusters, and parameters with it.
WAYS = {
    "found": (None, {}),
    "two": (2, {}),
    "graph": (3, {"kernel": "graph"}),
    "Gaussian margin": (2, {"kernel": "rbf"}),
    "linear margin": (3, {"kernel": "linear"}),
    "directions": (None, {"metric": "cosine"}),
}


def front_door(n_clusters=None, **parameters):
    """`MaximumMarginClustering` with a fixed seed."""
    return mmcnb.MaximumMarginClustering(n_clusters, **{"random_state": 0} | parameters)


def report_of(model):
    """The report, without what differs between equal fits."""
    report = {
        name: value
        for name, value in model.report_.items()
        if not name.endswith("seconds")
    }
    report["candidates"] = [{**one, "seconds": None} for one in report["candidates"]]
    return report


def changes_of(model):
    """What became of each number of a cluster in an update or a fit like an earlier model."""
    return [one["change"] for one in model.report_["changes"]]


class InterruptedRows(FakeSamples):
    """Rows in memory that can be read some number of times."""

    path = None
    is_reopenable = False

    def __init__(self, X, n_reads):
        super().__init__(X)
        self.n_reads = n_reads

    def _count(self):
        if self.n_reads == 0:
            raise KeyboardInterrupt
        self.n_reads -= 1

    def block(self, start, stop):
        self._count()
        return super().block(start, stop)

    def gather(self, rows):
        self._count()
        return super().gather(rows)
