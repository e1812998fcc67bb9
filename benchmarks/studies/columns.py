"""Raw tables of six kinds, with columns as they are, standardised, or by ``scale="auto"``.

``python -m benchmarks columns [--quick] [--seeds N] [--part NAME ...]`` has three
sections:

sets   made tables with flags, text and dates; made numbers with units and long tails; real tables; sets of
       one unit (pixels, embeddings, words, expression, spectra); shapes in the plane;
       coordinates in metres. Each is clustered at the number of its classes: by
       `MaximumMarginClustering` and by k-means with ten starts, with each scale; by
       UMAP and HDBSCAN on standardised columns; and, if it has flags and text, by PAM
       on Gower's distance. Tables have means by kind and half, and the sets that gain
       or lose most by "auto" over the better of the other scales
flags  of the same fits: how many failed and how many good partitions have a trust that names columns which
       alone make the clusters
costs  time of "auto" over that of None, for 20,000 rows of 100 columns in memory, and for a million rows of
       50 in a store (or as many as ``--rows`` says); and whether both read the store
       equally often. Run it alone, on an idle machine

At most 4,000 rows are drawn, and no column was touched before. For all but "auto", text
becomes columns of 0 and 1, and dates become seconds. UMAP is at the settings of its
guide to clustering, and noise is a cluster of its own. All that is made of a set is in
one half; ``--quick`` takes the half for tuning, and one seed.
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
from benchmarks.studies import _columns_costs
from benchmarks.studies._columns_costs import AUTO, NONE, SCALES, STANDARD
from benchmarks.studies._columns_sets import (
    MIXED,
    MOST_ROWS,
    Set,
    numbers_of,
    rows_of,
    sets_of,
)
from benchmarks.studies._columns_tables import tables_of_flags, tables_of_sets
from benchmarks.studies.peers import installed, with_noise

SETS = "sets"


@frame_of_runs
def grid(options: Options) -> Runs:
    """All methods that are installed on each set, ours and k-means with each scale."""
    rows = min(options.rows or MOST_ROWS, MOST_ROWS)
    here = installed((UMAP_DENSITY,))
    for one, seed in product(sets_of(options), options.repeats(3)):
        settings = {"rows": rows, "set": list(one)}
        for method, scale in product((FRONT_DOOR, KMEANS), SCALES):
            yield Run(
                one.name,
                method,
                seed,
                parameters={"scale": scale},
                part=SETS,
                settings=settings,
            )
        for method in (*here, *((GOWER,) if one.kind == MIXED else ())):
            yield Run(one.name, method, seed, part=SETS, settings=settings)


def grid_of_flags(options: Options) -> pd.DataFrame:
    """Our fits among those of the sets, which the journal has if that section ran."""
    runs = grid(options)
    return runs[runs["method"] == FRONT_DOOR]


def compute(run: Run) -> dict[str, Any]:
    """Fit one method to one set, without classes."""
    one = Set(*run.settings["set"])
    rows = run.settings["rows"]
    data = rows_of(one, rows, run.seed)
    scale = run.parameters.get("scale", STANDARD)
    numbers = numbers_of(data.X)
    given = dict[str, Any](random_state=run.seed)
    if run.method == FRONT_DOOR:
        X = data.X if scale == AUTO else numbers
        given["scale"] = SCALES[scale]
    elif run.method == GOWER:
        X = data.X
    else:
        X = treated(one, rows, run.seed) if scale == AUTO else scaled(numbers, scale)
        given |= {"n_init": 10} if run.method == KMEANS else {}
    model = estimator(run.method, np.unique(data.y).size, **given)
    compiled = libraries.first_seconds(run.method) or compile_seconds(numbers, model)
    found = facts(numbers) | {"compile_seconds": compiled} | timed(model, X)
    found |= with_noise(data.y, model.labels_)
    return found | (flag_of(model) if run.method == FRONT_DOOR else {})


def scaled(numbers: Any, scale: str) -> Any:
    """Numbers as they are, or standardised, for methods that do not scale them."""
    from sklearn.preprocessing import StandardScaler

    return numbers if scale == NONE else StandardScaler().fit_transform(numbers)


@lru_cache(maxsize=1)
def treated(one: Set, rows: int, seed: int) -> Any:
    """The rows of a set as `MaximumMarginClustering` compares them with ``scale="auto"``."""
    data = rows_of(one, rows, seed)
    model = fit(
        estimator(FRONT_DOOR, np.unique(data.y).size, scale=AUTO, random_state=seed),
        data.X,
    )
    samples = model.model_.scaled(mmcnb.open_samples(data.X))
    return samples.block(0, samples.n_samples)


def flag_of(model: Any) -> dict[str, Any]:
    """The level of trust in a fit, and the columns that alone make its clusters."""
    trust = model.report_["trust"]
    columns = list(map(str, trust.get("columns") or ()))
    return {
        "trust": trust["level"],
        "columns": ", ".join(columns),
        "flagged": len(columns),
    }


SECTIONS = {
    SETS: Section(grid, compute, tables_of_sets),
    "flags": Section(grid_of_flags, compute, tables_of_flags),
    "costs": Section(
        _columns_costs.grid, _columns_costs.compute, _columns_costs.tables
    ),
}
