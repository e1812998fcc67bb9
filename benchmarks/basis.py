"""The basis: how many labels of the exact method landmarks and the other bases give, and at what cost.

``python -m benchmarks basis [--seeds N]`` fits `KernelCPMMC` at width 1 on the small UCI sets, and
`SparseKernelMMC` with 10, 20, 50, 100 and n landmarks and, for one seed, with the bases that grow, at C = 2
and C = 10. Agreement is the share of rows with the same label; kernel evaluations are those for each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._cells import Cell, facts, load_once
from benchmarks._common import UCI, Goal, Options, Result, rows_of
from benchmarks._compare import clustering, compile_seconds, fit, gamma_of, mean_squared_distance, timed
from benchmarks._journal import Journal

SETS = tuple(name for name in UCI if name != "waveform-1v2")
LANDMARKS: tuple[int | str, ...] = (10, 20, 50, 100, "n")
GROWING = ("shared", "own")
WIDTH = 1.0
CS = (2.0, 10.0)


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    frame = journal.rows(list(cells_of(options)))
    return Result({"basis": table_of(frame)}, goals_of(frame))


def cells_of(options: Options) -> Iterator[Cell]:
    """Each basis at each C, in turn for each data set and seed."""
    for name in SETS[2:3] if options.smoke else SETS:
        rows = rows_of(name, options)
        for C in CS[:1] if options.smoke else CS:
            for seed in range(options.seeds or 3):
                for landmarks in LANDMARKS:
                    given: dict[str, Any] = {"C": C, "landmarks": landmarks}
                    yield Cell(name, "landmarks", seed, partial(agreed, name, rows, seed, **given), given)
                for basis in GROWING if seed == 0 else ():
                    compute = partial(agreed, name, rows, seed, C, basis=basis)
                    yield Cell(name, basis, seed, compute, {"C": C})


@lru_cache(maxsize=1)
def exact_labels(name: str, rows: int | None, gamma: float, C: float, seed: int) -> np.ndarray:
    """Labels of the exact method, kept for the cells that are compared with it."""
    return fit(mmcnb.KernelCPMMC(C=C, gamma=gamma, random_state=seed), load_once(name, rows).X).labels_


def agreed(
    name: str,
    rows: int | None,
    seed: int,
    C: float,
    landmarks: int | str | None = None,
    basis: str = "landmarks",
) -> dict[str, Any]:
    """Compute a cell: a basis beside the exact method."""
    data = load_once(name, rows)
    gamma = gamma_of(WIDTH, mean_squared_distance(data.X))
    p = len(data.y) if isinstance(landmarks, str) else landmarks
    estimator: Any = mmcnb.SparseKernelMMC(C=C, gamma=gamma, basis=basis, n_landmarks=p, random_state=seed)
    compiled = compile_seconds(data.X)
    measures = timed(estimator, data.X)
    same = float(np.mean(estimator.labels_ == exact_labels(name, rows, gamma, C, seed)))
    vectors = len(estimator.model_.basis)
    return {
        **facts(data.X),
        **measures,
        **clustering(data.y, estimator.labels_),
        "compile_seconds": compiled,
        "agreement": max(same, 1 - same),
        "basis_vectors": vectors,
        # Landmarks take one kernel value a row each; only the fit itself knows what fixed points took.
        "kernel_evaluations": vectors if p else estimator.report_.get("kernel_evaluations", np.nan),
    }


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a basis and C: means over data sets and seeds, and the least agreement."""
    groups = frame.groupby(["method", "landmarks", "C"], sort=False, dropna=False)
    table = groups[["agreement", "basis_vectors", "kernel_evaluations", "seconds"]].mean()
    table.insert(1, "least agreement", groups["agreement"].min())
    return table.reset_index().sort_values("C", kind="stable")


def goals_of(frame: pd.DataFrame) -> list[Goal]:
    """As many landmarks as rows are the exact method; fifty are almost."""
    whole = frame.loc[frame["landmarks"] == "n", "agreement"]
    fifty = frame.loc[(frame["landmarks"] == 50) & (frame["C"] == 2), "agreement"]
    return [
        Goal("n landmarks: least agreement", 100 * whole.min(), 100, "%", at_least=True),
        Goal("50 landmarks, C = 2: mean agreement", 100 * fifty.mean(), 99, "%", at_least=True),
    ]
