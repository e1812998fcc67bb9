"""Part ``constants`` of ``no-structure``: constants in the evidence for clusters.

A partition of n nodes into k clusters has the loss L = 1 - MI / H, where H is the
entropy of the volumes of its clusters; d is the dimension of the rows. For data without
structure, log L closely follows a formula in n, k, H and d, and its standard deviation
follows another formula. Both formulas are fitted on one half of the simulated data
sets.

``python -m benchmarks.studies._no_structure_constants FOLDER`` writes the constants of
a run of the study, whose tables are in FOLDER, into the library.
"""

import json
import re
import sys
from collections.abc import Iterable
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
# z is measured in units of 1.5 standard deviations.
LEAST_SPREAD = 0.04
SPREADS = 1.5
SIGNIFICANT = 2.5  # value of z above which a partition counts as clusters
PARTITION = ["n", "k", "H", "d", "L"]


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each kind of cloud with each number of rows and columns."""
    quick_rows = tuple(n for n in ROWS if n <= QUICK_ROWS)
    sizes = options.sizes_within(options.pick(ROWS, quick_rows, ROWS[:2]))
    columns = options.pick(COLUMNS, COLUMNS, SMOKE_COLUMNS)
    for seed, *cloud in product(options.repeats(3), KINDS, sizes, columns):
        yield Run(Cloud(*cloud).name, "partitions", seed, settings={"cloud": cloud})


def compute(run: Run) -> dict[str, Any]:
    """Return the loss of all partitions from which the number of clusters may be selected."""
    X = rows_of(Cloud(*run.settings["cloud"]), run.seed)
    found = evidence_of(graph_of(X, run.seed))
    return facts(X) | {"partitions": json.dumps(found), "count": len(found)}


def loss_table(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the terms of log L, by name."""
    n, k, H, d = (table[name].to_numpy(float) for name in PARTITION[:4])
    return loss_terms(n, k, H, d)


def spread_table(table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the terms of the logarithm of the spread of log L, by name."""
    n, H, d = (table[name].to_numpy(float) for name in ("n", "H", "d"))
    return spread_terms(n, H, d)


def loss_features(table: pd.DataFrame) -> np.ndarray:
    """Return the terms of log L as columns."""
    return term_matrix(loss_table(table))


def spread_features(table: pd.DataFrame) -> np.ndarray:
    """Return the terms of the logarithm of the spread of log L as columns."""
    return term_matrix(spread_table(table))


def fitted(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Fit the constants of both formulas by least squares.

    The first formula is for log L, the second for the logarithm of the residual of log
    L.

    The constant term of the spread is shifted, so that the residuals in units of the
    spread have a mean square of 1.

    Parameters
    ----------
    table : DataFrame
        The columns of `PARTITION`, with one row per partition.

    Returns
    -------
    loss : ndarray of shape (16,)
    spread : ndarray of shape (6,)
    """
    terms = loss_features(table)
    log_loss = np.log(table["L"].to_numpy())
    loss = np.linalg.lstsq(terms, log_loss)[0]
    residual = np.abs(terms @ loss - log_loss)
    width_terms = spread_features(table)
    log_residual = np.log(np.maximum(residual, 1e-9))
    spread = np.linalg.lstsq(width_terms, log_residual)[0]
    in_spreads = residual / np.exp(width_terms @ spread)
    spread[0] += np.log(np.mean(in_spreads**2)) / 2
    return loss, spread


def significance(
    table: pd.DataFrame, loss: np.ndarray, spread: np.ndarray
) -> np.ndarray:
    """Return z of each partition, which measures how far its loss is below the formula."""
    expected = loss_features(table) @ loss
    spreads = np.exp(spread_features(table) @ spread)
    width = np.maximum(LEAST_SPREAD, SPREADS * spreads)
    return (expected - np.log(table["L"].to_numpy())) / width


def partitions_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per partition, with its data set and half."""
    parts = []
    for run in frame[frame["status"] == OK].itertuples():
        kind, _, shape = run.dataset.rpartition(", ")
        rows, columns = map(int, shape.split(" x "))
        part = pd.DataFrame(json.loads(run.partitions), columns=PARTITION)
        part["set"] = run.dataset
        part["kind"] = kind
        part["rows"] = rows
        part["columns"] = columns
        part["seed"] = run.seed
        part["half"] = Cloud(kind, rows, columns).half
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def tables(frame: pd.DataFrame) -> Result:
    """Return both formulas, and how well they fit on each half.

    A table counts the data sets with a significant partition, and has the residuals.
    """
    table = partitions_of(frame)
    loss, spread = fitted(table[table["half"] == TUNING])
    z = significance(table, loss, spread)
    residual = (loss_features(table) @ loss - np.log(table["L"])).abs()
    keys = ["half", "kind", "rows", "columns", "set", "seed"]
    sets = table.assign(significant=z, left=residual).groupby(keys, sort=False)
    judged = sets.agg(significant=("significant", "max"), left=("left", "mean"))
    judged = judged.reset_index()
    judged["significant"] = judged["significant"] > SIGNIFICANT
    halves = {}
    for half in (TUNING, CONFIRMATION):
        part = judged[judged["half"] == half]
        if len(part):
            halves[half] = shares(part, ("significant", "left"))
    constants = [
        *_constants("log L", loss_table(table), loss),
        *_constants("spread", spread_table(table), spread),
    ]
    return Result(
        {
            "no-structure-constants": pd.DataFrame(constants),
            "no-structure-fit": pd.concat(halves, names=["half"]).reset_index("half"),
        }
    )


def _constants(
    formula: str, terms: Iterable[str], values: np.ndarray
) -> list[dict[str, Any]]:
    """Return one row for each constant of a formula."""
    return [
        {"formula": formula, "feature": term, "constant": value}
        for term, value in zip(terms, values, strict=True)
    ]


def write_coefficients(table: pd.DataFrame, path: Path) -> None:
    """Write the fitted constants to the dictionaries of a module.

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
        lines = [f"{name} = {{\n"]
        for term, constant in zip(
            constants["feature"], constants["constant"], strict=True
        ):
            lines.append(f'    "{term}": {constant:.4f},\n')
        dictionary = "".join([*lines, "}"])
        text, count = re.subn(
            rf"^{name} = \{{.*?^\}}", dictionary, text, flags=re.MULTILINE | re.DOTALL
        )
        if count != 1:
            raise ValueError(f"{path} has no dictionary {name}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    table = pd.read_csv(Path(sys.argv[1], "no-structure-constants.csv"))
    write_coefficients(table, Path(COEFFICIENTS_FILE))
