"""Rows without structure: how often clusters are found in them, and the constants of the evidence.

``python -m benchmarks no-structure [--quick] [--seeds N] [--part NAME ...]`` has two
sections:

alarms     `MaximumMarginClustering` with ``n_clusters=None`` on a hundred sets:
           Gaussian rows, uniform ones in a cube and in a ball, correlated Gaussian
           ones, heavy tails (t with 3 degrees of freedom) and Laplace. They have 2 to
           50 columns and 100 to 5,000 rows, four of them up to 100,000. Shares of the
           sets with more than one cluster, by kind, rows and columns, and of those
           whose trust is high
constants  the partitions at which the choice of the number looks, on 294 sets and three
           seeds: the formula of the loss that they have without structure, and of its
           spread, by least squares on the half for tuning; and on both halves the share
           of sets with a partition that would be taken for clusters

``--quick`` stops at 1,000 rows.
"""

from benchmarks.run import Section
from benchmarks.studies import _no_structure_constants as _constants
from benchmarks.studies._no_structure import alarms

SECTIONS = {
    "alarms": alarms("no-structure"),
    "constants": Section(_constants.grid, _constants.compute, _constants.tables),
}
