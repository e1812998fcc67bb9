"""The basis: how many labels of the exact method landmarks and the other bases give, and at what cost.

``python -m benchmarks basis [--seeds N]`` fits `KernelCPMMC` at width 1 on the small UCI sets, and
`SparseKernelMMC` with 10, 20, 50, 100 and n landmarks and, for one seed, with the bases that grow, at C = 2
and C = 10. Agreement is the share of rows with the same label; kernel evaluations are those for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import UCI, Data, Goal, Options, Result, load, say
from benchmarks._compare import fit, gamma_of, mean_squared_distance, measure, warm_up

SETS = tuple(name for name in UCI if name != "waveform-1v2")
LANDMARKS = (10, 20, 50, 100)
GROWING = ("shared", "own")
WIDTH = 1.0
CS = (2.0, 10.0)


def run(options: Options) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.

    Returns
    -------
    Result
        Tables and goals.
    """
    rows: list[dict[str, Any]] = []
    for name in SETS:
        data = load(name, options)
        say(f"{name}, {len(data.y):,} rows")
        compiled = warm_up(data.X)
        gamma = gamma_of(WIDTH, mean_squared_distance(data.X))
        for C in CS:
            for seed in range(options.seeds or 3):
                rows += [row | {"compile_seconds": compiled} for row in _agreements(data, gamma, C, seed)]
    frame = pd.DataFrame(rows)
    return Result({"basis-fits": frame, "basis": _table(frame)}, _goals(frame), shown=("basis",))


def _agreements(data: Data, gamma: float, C: float, seed: int) -> list[dict[str, Any]]:
    exact = fit(mmcnb.KernelCPMMC(C=C, gamma=gamma, random_state=seed), data.X)
    n = len(data.y)
    choices: list[tuple[str, int | None]] = [("landmarks", p) for p in (*LANDMARKS, n) if p <= n]
    choices += [(basis, None) for basis in GROWING if seed == 0]
    rows = []
    for basis, p in choices:
        estimator: Any = mmcnb.SparseKernelMMC(
            C=C, gamma=gamma, basis=basis, n_landmarks=p, random_state=seed
        )
        row = measure(data, f"basis={basis}", _parameters(p, n), estimator)
        same = float(np.mean(estimator.labels_ == exact.labels_))
        vectors = len(estimator.model_.basis)
        # Landmarks take one kernel value a row each; only the fit itself knows what fixed points took.
        evaluations = vectors if p else estimator.report_.get("kernel_evaluations", np.nan)
        rows.append(
            row
            | {
                "C": C,
                "agreement": max(same, 1 - same),
                "basis vectors": vectors,
                "kernel evaluations": evaluations,
            }
        )
    return rows


def _parameters(p: int | None, n: int) -> str:
    if p is None:
        return "grown"
    return "n landmarks" if p == n else f"{p} landmarks"


def _table(frame: pd.DataFrame) -> pd.DataFrame:
    groups = frame.groupby(["method", "parameters", "C"], sort=False)
    table = groups[["agreement", "basis vectors", "kernel evaluations", "seconds"]].mean()
    table.insert(1, "least agreement", groups["agreement"].min())
    return table.reset_index().sort_values("C", kind="stable")


def _goals(frame: pd.DataFrame) -> list[Goal]:
    whole = frame[frame["parameters"] == "n landmarks"]
    fifty = frame[(frame["parameters"] == "50 landmarks") & (frame["C"] == 2)]
    return [
        Goal("n landmarks: least agreement", 100 * whole["agreement"].min(), 100, "%", at_least=True),
        Goal("50 landmarks, C = 2: mean agreement", 100 * fifty["agreement"].mean(), 99, "%", at_least=True),
    ]
