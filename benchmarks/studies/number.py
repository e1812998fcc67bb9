"""The number of clusters left to the default: sets, hundreds, small clusters, noise, outliers, costs.

``python -m benchmarks number [--quick] [--seeds N] [--part NAME ...]`` has thirteen
sections; without ``--part`` it runs the first:

sets      the whole sets and the shapes of the study of choices, with
          ``n_clusters=None``: ARI, the number found beside that of the classes, and ARI
          of the best layer; beside Leiden at resolution 1 on the same graph, EVoC,
          PLSCAN, HDBSCAN and UMAP with HDBSCAN. Means by kind and half, mean ranks, and
          how often a high trust is right
families  made sets of 1,000 to 20,000 rows: curves, shapes, places on a map, blobs and
          Gaussians, and clouds without clusters, with correlated columns, heavy tails
          or skewed columns: ARI and numbers found, false alarms, and how often a high
          trust is right
noise     a hundred sets without structure: shares with more than one cluster (also
          `no-structure`)
large     100 and 1,000 Gaussian groups of 128 columns, and 29 to 60 blobs of 2,000
          rows, at the number given: ARI, and seconds of the second fit, beside
          MiniBatchKMeans and EVoC
blobs     20 blobs in 8 columns, their centres at least 7 deviations apart, in 500 to
          200,000 rows: the numbers that five seeds find
small     five clusters of 1 % to 0.01 % of 100,000 rows beside four large ones, without
          and with 2 % uniform rows: those with a cluster whose recall and precision are
          at least 0.8
tails     seven clusters with the tails of Student's t or of log-normal numbers in two
          directions each, in 150,000 rows of 40 columns, and in three million of 300
          (once, 3.6 GB in a store): clusters found, those below 1 %, ARI and trust
outliers  2 % uniform rows in the box of the sets, or in three far clumps: AUC of
          ``score_outliers`` beside HDBSCAN's score and LocalOutlierFactor with 20
          neighbours; at most 5,000 rows
seeds     eleven sets and shapes at the number of classes, with ten seeds: agreement
          between seeds (mean and least ARI of two), ARI and balanced error, mean and
          worst; all rows of adult
lead      directions in 6 to 40 clusters of uneven sizes, with the tails of Student's t:
          ARI of the candidate that is picked, of the layout, and of the best other one
noise-cluster
          four clusters, one of them with 3 % of the rows and 2 to 4 times as wide, and
          blobs with 2 % and 10 % uniform rows: rows of the wide cluster that
          ``noise="auto"`` keeps, and precision, recall and F1 of noise, beside one
          threshold for all rows and HDBSCAN
update    8 directions of 5,000 rows of 100 columns, Gaussian, of length 1, with heavy
          tails or noise, and an update by 100, 300 or 1,000 rows of a new direction, by
          rows of the old ones, or by rows that have moved: new rows in one cluster, old
          rows that keep theirs, warnings, and trust
costs     time of None over that of the same number given, on 20,000 rows: the median of
          turns. Run it alone, on an idle machine

Rows of sets are those of the study of choices, at most 10,000. EVoC takes four columns
or more; its noise is a cluster of its own. A library that is not installed is left out,
with a line that says so. Each set weighs the same in a mean, and is in one half;
``--quick`` takes the half for tuning, and one seed.
"""

from benchmarks.run import Options, Section
from benchmarks.studies import (
    _number_blobs,
    _number_costs,
    _number_family_fits,
    _number_large,
    _number_lead,
    _number_noise_cluster,
    _number_outliers,
    _number_seeds,
    _number_sets,
    _number_small,
    _number_tails,
    _number_update,
)
from benchmarks.studies._no_structure import alarms
from benchmarks.studies._number_tables import tables_of_sets

SETS = "sets"
SECTIONS = {
    SETS: Section(_number_sets.grid, _number_sets.compute, tables_of_sets),
    "families": Section(
        _number_family_fits.grid,
        _number_family_fits.compute,
        _number_family_fits.tables,
    ),
    "noise": alarms("number-noise"),
    "large": Section(_number_large.grid, _number_large.compute, _number_large.tables),
    "blobs": Section(_number_blobs.grid, _number_blobs.compute, _number_blobs.tables),
    "small": Section(_number_small.grid, _number_small.compute, _number_small.tables),
    "tails": Section(_number_tails.grid, _number_tails.compute, _number_tails.tables),
    "outliers": Section(
        _number_outliers.grid, _number_outliers.compute, _number_outliers.tables
    ),
    "seeds": Section(_number_seeds.grid, _number_seeds.compute, _number_seeds.tables),
    "lead": Section(_number_lead.grid, _number_lead.compute, _number_lead.tables),
    "noise-cluster": Section(
        _number_noise_cluster.grid,
        _number_noise_cluster.compute,
        _number_noise_cluster.tables,
    ),
    "update": Section(
        _number_update.grid, _number_update.compute, _number_update.tables
    ),
    "costs": Section(_number_costs.grid, _number_costs.compute, _number_costs.tables),
}


def usual_sections(options: Options) -> tuple[str, ...]:
    """The sets; a smoke run takes all sections."""
    return tuple(SECTIONS) if options.smoke else (SETS,)
