"""The number of clusters that the default finds: data sets, many and small clusters, noise, outliers, costs.

``python -m benchmarks number [--quick] [--seeds N] [--part NAME ...]`` has thirteen
sections; without ``--part`` it runs the first:

sets      the whole data sets and the shapes of the study ``choice``, with
          ``n_clusters=None``: ARI, the number found and the number of classes, and ARI
          of the best layer; beside Leiden at resolution 1 on the same graph, EVoC,
          PLSCAN, HDBSCAN and UMAP with HDBSCAN. Means by kind and half, mean ranks, and
          how often a high trust is right
families  synthetic data sets of 1,000 to 20,000 rows: curves, shapes, places on a map,
          blobs and Gaussians, and clouds without clusters, with correlated columns,
          heavy tails or skewed columns: ARI and numbers found, false alarms, and how
          often a high trust is right
noise     a hundred data sets without structure: the share with more than one cluster
          (as in the study ``no-structure``)
large     100 and 1,000 Gaussian groups of 128 columns, and 29 to 60 blobs of 2,000
          rows, with their number: ARI, and seconds of the second fit, beside
          MiniBatchKMeans and EVoC
blobs     20 blobs in 8 columns, with centres at least 7 standard deviations apart, in
          500 to 200,000 rows: the numbers found with five seeds
small     five clusters with 1 % to 0.01 % of 100,000 rows beside four large ones,
          without and with 2 % uniform rows: how many are found with recall and
          precision of at least 0.8
tails     seven clusters with the tails of Student's t or of log-normal numbers in two
          directions each, in 150,000 rows of 40 columns, and in three million of 300
          (once, 3.6 GB in a store): the number of clusters, the number of clusters
          below 1 %, ARI and trust
outliers  2 % added rows, uniform in the bounding box of a data set or in three distant
          clumps: AUC of ``score_outliers`` beside HDBSCAN's score and
          LocalOutlierFactor with 20 neighbours; at most 5,000 rows
seeds     eleven data sets and shapes with the number of classes and ten seeds:
          agreement between seeds (mean and smallest ARI of two), mean and worst ARI and
          balanced error; all rows of adult
lead      directions in 6 to 40 clusters of uneven sizes, with the tails of Student's t:
          ARI of the selected candidate, of the layout, and of the best other candidate
noise-cluster
          four clusters, one of which has 3 % of the rows and is 2 to 4 times as wide,
          and blobs with 2 % and 10 % uniform rows: the share of the wide cluster that
          ``noise="auto"`` keeps, and precision, recall and F1 of noise, beside one
          threshold for all rows and HDBSCAN
update    5,000 rows of 100 columns in 8 directions, Gaussian, of length 1, with heavy
          tails or noise, and an update with 100, 300 or 1,000 rows in a new direction,
          with rows in the old directions, or with rows that have moved: the share of
          the new rows in one cluster, of the old rows that keep their cluster,
          warnings, and trust
costs     ratio of the times without and with the same number of clusters, on 20,000
          rows: the median over the turns. Run this section alone, on an idle machine

The data sets have the rows of the study ``choice``, at most 10,000. EVoC needs at least
four columns; its noise counts as a cluster. A library that is not installed is left
out, with a message. Each data set has the same weight in a mean, and is in one half;
``--quick`` uses the tuning half, and one seed.
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
    """Return the section "sets"; a smoke run has all sections."""
    return tuple(SECTIONS) if options.smoke else (SETS,)
