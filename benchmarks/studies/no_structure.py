"""Rows without structure: how often clusters are found in them, and the constants in the evidence for clusters.

``python -m benchmarks no-structure [--quick] [--seeds N] [--part NAME ...]`` has two
sections:

alarms     `MaximumMarginClustering` with ``n_clusters=None`` on a hundred data sets:
           Gaussian rows, uniform rows in a cube and in a ball, correlated Gaussian
           rows, rows with heavy tails (t with 3 degrees of freedom), and Laplace rows.
           They have 2 to 50 columns and 100 to 5,000 rows; four have up to 100,000
           rows. The tables show the share of the data sets with more than one cluster,
           by kind, rows and columns, and the share with high trust
constants  the partitions from which the number of clusters may be selected, on 294 data
           sets with three seeds: the formulas of their loss without structure and of
           its standard deviation, fitted by least squares on the tuning half; and on
           both halves, the share of the data sets with a partition that would count as
           clusters

``--quick`` stops at 1,000 rows.
"""

from benchmarks.run import Section
from benchmarks.studies import _no_structure_constants as _constants
from benchmarks.studies._no_structure import alarms

SECTIONS = {
    "alarms": alarms("no-structure"),
    "constants": Section(_constants.grid, _constants.compute, _constants.tables),
}
