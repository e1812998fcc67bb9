"""Constants of the evidence of clusters: what partitions of rows without structure lose, by least squares.

A partition into k clusters of n nodes has the loss L = 1 - MI / H, with H the entropy
of the volumes of its clusters, and d is the dimension of the rows. Without structure
log L is nearly a formula of n, k, H and d; its spread follows another one. Both are
fitted on one half of the simulated sets.

``python -m benchmarks.studies._no_structure_constants FOLDER`` writes the constants of
a run of the study, whose tables are in the folder, into the library.
"""

import json
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.protocol import facts
from benchmarks.run import OK, Options, Run, Runs, frame_of_runs
from benchmarks.studies._inner import (
    COEFFICIENTS_FILE,
    evidence_of,
    graph_of,
    loss_terms,
    spread_terms,
    term_matrix,
)
from benchmarks.studies._no_structure import KINDS, Cloud, rows_of, shares
from benchmarks.tables import Result

ROWS = (100, 200, 500, 1000, 2000, 5000, 10_000)
COLUMNS = (2, 3, 5, 8, 15, 30, 50)
QUICK_ROWS = 1000
SMOKE_COLUMNS = (2, 5, 15)
# z is in units of 1.5 spreads
LEAST_SPREAD = 0.04
SPREADS = 1.5
SIGNIFICANT = 2.5  # of z: a partition above it is taken for clusters
PARTITION = ["n", "k", "H", "d", "L"]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Each kind with each number of rows and columns."""
    sizes = options.pick(ROWS, tuple(n for n in ROWS if n <= QUICK_ROWS), ROWS[:2])
    columns = options.pick(COLUMNS, COLUMNS, SMOKE_COLUMNS)
    shapes = product(options.repeats(3), KINDS, options.sizes_within(sizes), columns)
    for seed, *cloud in shapes:
        yield Run(Cloud(*cloud).name, "partitions", seed, settings={"cloud": cloud})


def compute(run: Run) -> dict[str, Any]:
    """The loss of all partitions of a cloud that the choice of the number looks at."""
    X = rows_of(Cloud(*run.settings["cloud"]), run.seed)
    found = evidence_of(graph_of(X, run.seed))
    return facts(X) | {"partitions": json.dumps(found), "count": len(found)}


def loss_table(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the terms of log L, by name."""
    return loss_terms(*(table[name].to_numpy(float) for name in PARTITION[:4]))


def spread_table(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the terms of the logarithm of the spread of log L, by name."""
    return spread_terms(*(table[name].to_numpy(float) for name in ("n", "H", "d")))


def loss_features(table: pd.DataFrame) -> np.ndarray:
    """Return the terms of log L as columns."""
    return term_matrix(loss_table(table))


def spread_features(table: pd.DataFrame) -> np.ndarray:
    """Return the terms of the logarithm of the spread of log L as columns."""
    return term_matrix(spread_table(table))


def fitted(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Constants of both formulas by least squares, of log L and then of the logarithm of what is left.

    The constant of the spread is shifted, so that what is left has a mean square of 1
    in units of the spread.

    Parameters
    ----------
    table : DataFrame
        The columns of `PARTITION`, one row a partition.

    Returns
    -------
    loss : ndarray of shape (16,)
    spread : ndarray of shape (6,)
    """
    features = loss_features(table)
    widths = spread_features(table)
    values = np.log(table["L"].to_numpy())
    loss = np.linalg.lstsq(features, values)[0]
    left = np.abs(features @ loss - values)
    spread = np.linalg.lstsq(widths, np.log(np.maximum(left, 1e-9)))[0]
    spread[0] += np.log(np.mean((left / np.exp(widths @ spread)) ** 2)) / 2
    return loss, spread


def significance(
    table: pd.DataFrame, loss: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """z of each partition: how far its loss is below the formula."""
    width = np.maximum(LEAST_SPREAD, SPREADS * np.exp(spread_features(table) @ spread))
    return (loss_features(table) @ loss - np.log(table["L"].to_numpy())) / width


def partitions_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a partition, with the set and the half it belongs to."""
    parts = []
    for run in frame[frame["status"] == OK].itertuples():
        part = pd.DataFrame(json.loads(run.partitions), columns=PARTITION)
        kind, _, shape = run.dataset.rpartition(", ")
        rows, columns = map(int, shape.split(" x "))
        half = Cloud(kind, rows, columns).half
        known = {
            "kind": kind,
            "rows": rows,
            "columns": columns,
            "seed": run.seed,
            "half": half,
        }
        parts.append(part.assign(set=run.dataset, **known))
    return pd.concat(parts, ignore_index=True)


def tables(frame: pd.DataFrame) -> Result:
    """Both formulas, and on each half the sets with a significant partition and what the formula leaves."""
    table = partitions_of(frame)
    loss, spread = fitted(table[table["half"] == TUNING])
    z = significance(table, loss, spread)
    keys = ["half", "kind", "rows", "columns", "set", "seed"]
    left = (loss_features(table) @ loss - np.log(table["L"])).abs()
    sets = table.assign(significant=z, left=left).groupby(keys, sort=False)
    judged = sets.agg(
        significant=("significant", "max"), left=("left", "mean")
    ).reset_index()
    judged["significant"] = judged["significant"] > SIGNIFICANT
    halves = [
        pd.concat({half: shares(part, ("significant", "left"))}, names=["half"])
        for half in (TUNING, CONFIRMATION)
        if len(part := judged[judged["half"] == half])
    ]
    constants = [
        (formula, name, constant)
        for formula, names, values in (
            ("log L", loss_table(table), loss),
            ("spread", spread_table(table), spread),
        )
        for name, constant in zip(names, values, strict=True)
    ]
    named = pd.DataFrame(constants, columns=["formula", "feature", "constant"])
    return Result(
        {
            "no-structure-constants": named,
            "no-structure-fit": pd.concat(halves).reset_index("half"),
        }
    )


def write_coefficients(table: pd.DataFrame, path: Path) -> None:
    """Write the fitted constants into the dictionaries of a module.

    Parameters
    ----------
    table : DataFrame
        The columns "formula", "feature" and "constant".
    path : Path
        The module, with the dictionaries ``LOG_LOSS`` and ``LOG_SPREAD``.
    """
    text = path.read_text(encoding="utf-8")
    for formula, name in (("log L", "LOG_LOSS"), ("spread", "LOG_SPREAD")):
        constants = table[table["formula"] == formula]
        lines = [
            f'    "{feature}": {constant:.4f},\n'
            for feature, constant in zip(
                constants["feature"], constants["constant"], strict=True
            )
        ]
        dictionary = f"{name} = {{\n{''.join(lines)}}}"
        text, count = re.subn(
            rf"^{name} = \{{.*?^\}}", dictionary, text, flags=re.MULTILINE | re.DOTALL
        )
        if count != 1:
            raise ValueError(f"{path} has no dictionary {name}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    table = pd.read_csv(Path(sys.argv[1], "no-structure-constants.csv"))
    write_coefficients(table, Path(COEFFICIENTS_FILE))
