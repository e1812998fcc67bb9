"""Raw tables of six kinds, whose columns are unscaled, standardised, or scaled by ``scale="auto"``.

``python -m benchmarks columns [--quick] [--seeds N] [--part NAME ...]`` has seven
sections:

sets   synthetic tables with flags, text and dates; synthetic numbers with units and
       long tails; real tables; data sets of one unit (pixels, embeddings, words,
       expression, spectra); shapes in the plane; coordinates in metres. Each is
       clustered with the number of its classes by `MaximumMarginClustering` and by
       k-means with ten starts, with each scale; by UMAP and HDBSCAN on standardised
       columns; and, if it has flags and text, by PAM on Gower's distance. Tables have
       means by kind and half, and the data sets that gain or lose most by "auto" over
       the better of the other scales
mixed  tables of numbers, flags and texts, without gaps and with gaps in a fifth of the
       cells of every second column, by the default and by peers for such tables: PAM on
       Gower's distance, KAMILA, k-prototypes, latent classes (StepMix), and k-means on
       the factors of mixed data. A table has the means by kind
surveys
       answers from 1 to 5 as numbers, as texts and as ordered texts, beside an age and
       a score, and two real tables: with known scales, and as if no scale were known
gaps   gaps of four kinds in half of the columns of 15 tables, filled from the nearest
       rows and by the median, with the number of classes and without it
flags  for the fits of "sets": in how many failed and in how many good partitions the
       trust names columns that alone determine the clusters
texts  the step of texts beside numbers, as "auto" selects it and at fixed lengths:
       synthetic tables of 1 to 8 numbers and 2 to 20 texts, with the clusters in the
       numbers, in the texts or in both, and the paired gain over the shortest step
levels counts, flags and grades beside numbers with 2 to 5 clusters, scaled by "auto" and
       as beside wide clusters, with the number of clusters given and unknown
costs  ratio of the times of "auto" and None, for 20,000 rows of 100 columns in memory,
       and for a million rows of 50 columns (or ``--rows``) in a store; and whether both
       read the store equally often. Run this section alone, on an idle machine

At most 4,000 rows are drawn, and columns are not preprocessed. For all methods except
"auto", texts become columns of 0 and 1, and dates become seconds. UMAP has the settings
of its guide to clustering, and noise counts as a cluster. Everything derived from a
data set is in one half; ``--quick`` uses the tuning half, and one seed.
"""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks import libraries
from benchmarks.libraries import UMAP_DENSITY
from benchmarks.methods import FRONT_DOOR, GOWER, KMEANS, estimator
from benchmarks.protocol import compile_seconds, facts, fit, timed
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import (
    _columns_costs,
    _columns_gaps,
    _columns_levels,
    _columns_peers,
    _columns_surveys,
    _columns_texts,
)
from benchmarks.studies._columns_costs import AUTO, NONE, SCALES, STANDARD
from benchmarks.studies._columns_sets import (
    MIXED,
    MOST_ROWS,
    Set,
    numbers_of,
    rows_of,
    sets_of,
    with_seconds,
)
from benchmarks.studies._columns_tables import tables_of_flags, tables_of_sets
from benchmarks.studies.peers import installed, with_noise

SETS = "sets"


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield all installed methods on each data set.

    The default and k-means run with each scale.
    """
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    peers = installed((UMAP_DENSITY,))
    for data_set, seed in product(sets_of(options), options.repeats(3)):
        settings = {"rows": rows, "set": list(data_set)}
        for method, scale in product((FRONT_DOOR, KMEANS), SCALES):
            yield Run(
                data_set.name,
                method,
                seed,
                parameters={"scale": scale},
                part=SETS,
                settings=settings,
            )
        unscaled = [*peers, GOWER] if data_set.kind == MIXED else peers
        for method in unscaled:
            yield Run(data_set.name, method, seed, part=SETS, settings=settings)


def grid_of_flags(options: Options) -> pd.DataFrame:
    """Return our fits among the fits of the section "sets".

    If that section ran, the journal has these fits.
    """
    runs = grid(options)
    return runs[runs["method"] == FRONT_DOOR]


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one data set, without the classes."""
    method = run.method
    data_set = Set(*run.settings["set"])
    rows = run.settings["rows"]
    data = rows_of(data_set, rows, run.seed)
    numbers = numbers_of(data.X)
    scale = run.parameters.get("scale", STANDARD)
    parameters: dict[str, Any] = {"random_state": run.seed}
    if method == FRONT_DOOR:
        parameters["scale"] = SCALES[scale]
    elif method == KMEANS:
        parameters["n_init"] = 10
    if method == GOWER:
        X = data.X
    elif method == FRONT_DOOR and scale == AUTO:
        X = taken_whole(data.X)
    elif method == FRONT_DOOR:
        X = numbers
    elif scale == AUTO:
        X = treated(data_set, rows, run.seed)
    else:
        X = scaled(numbers, scale)
    model = estimator(method, np.unique(data.y).size, **parameters)
    compiled = libraries.first_seconds(method) or compile_seconds(numbers, model)
    measures = facts(numbers) | {"compile_seconds": compiled} | timed(model, X)
    measures |= with_noise(data.y, model.labels_)
    if method == FRONT_DOOR:
        measures |= flag_of(model)
    return measures


def taken_whole(X: Any) -> Any:
    """Return a table with all of its columns, which the default then uses."""
    return with_seconds(X) if isinstance(X, pd.DataFrame) else X


def scaled(numbers: Any, scale: str) -> Any:
    """Return numbers unchanged or standardised, for methods that do not scale."""
    from sklearn.preprocessing import StandardScaler

    if scale == NONE:
        return numbers
    return StandardScaler().fit_transform(numbers)


@lru_cache(maxsize=1)
def treated(data_set: Set, rows: int, seed: int) -> Any:
    """Return the rows of a data set as the default compares them with ``scale="auto"``."""
    data = rows_of(data_set, rows, seed)
    n_clusters = np.unique(data.y).size
    model = estimator(FRONT_DOOR, n_clusters, scale=AUTO, random_state=seed)
    X = taken_whole(data.X)
    fit(model, X)
    samples = model.model_.scaled(mmcnb.open_samples(X))
    return samples.block(0, samples.n_samples)


def flag_of(model: Any) -> dict[str, Any]:
    """Return the trust in a fit, and the columns that alone determine its clusters."""
    trust = model.report_["trust"]
    columns = list(map(str, trust.get("columns") or ()))
    return {
        "trust": trust["level"],
        "columns": ", ".join(columns),
        "flagged": len(columns),
    }


SECTIONS = {
    SETS: Section(grid, compute, tables_of_sets),
    "gaps": Section(_columns_gaps.grid, _columns_gaps.compute, _columns_gaps.tables),
    "mixed": Section(
        _columns_peers.grid, _columns_peers.compute, _columns_peers.tables
    ),
    "surveys": Section(
        _columns_surveys.grid, _columns_surveys.compute, _columns_surveys.tables
    ),
    "flags": Section(grid_of_flags, compute, tables_of_flags),
    "texts": Section(
        _columns_texts.grid, _columns_texts.compute, _columns_texts.tables
    ),
    "levels": Section(
        _columns_levels.grid, _columns_levels.compute, _columns_levels.tables
    ),
    "costs": Section(
        _columns_costs.grid, _columns_costs.compute, _columns_costs.tables
    ),
}
