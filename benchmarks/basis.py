"""The basis: how many labels of the exact method landmarks and the other bases give, and at what cost.

``python -m benchmarks basis [--seeds N]`` fits `KernelCPMMC` at width 1 on the small UCI sets, and
`SparseKernelMMC` with 10, 20, 50, 100 and n landmarks and with the bases that grow, at C = 2 and C = 10.
Agreement is the share of rows with the same label; kernel evaluations are counted for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks._common import UCI, Data, Goal, Options, Result, load, say
from benchmarks._compare import fit, gamma_of, mean_squared_distance, warm_up
from mmcnb._errors import InputError

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
    choices = [("landmarks", p) for p in (*LANDMARKS, n) if p <= n] + [(basis, None) for basis in GROWING]
    rows = []
    for basis, p in choices:
        estimator = mmcnb.SparseKernelMMC(C=C, gamma=gamma, basis=basis, n_landmarks=p, random_state=seed)
        if basis in GROWING and not _known(estimator, data.X):
            continue
        fit(estimator, data.X)
        vectors = len(estimator.model_.basis)
        same = float(np.mean(estimator.labels_ == exact.labels_))
        rows.append(
            {
                "dataset": data.name,
                "n": n,
                "d": data.X.shape[1],
                "method": f"basis={basis}",
                "parameters": "n landmarks" if p == n else (f"{p} landmarks" if p else ""),
                "C": C,
                "seed": seed,
                "agreement": max(same, 1 - same),
                "basis vectors": vectors,
                "kernel evaluations": estimator.report_.get("kernel_evaluations", n * vectors) / n,
            }
        )
    return rows


def _known(estimator: Any, X: Any) -> bool:
    """Whether this version has the basis."""
    try:
        fit(estimator, X)
    except InputError as error:
        if "basis" in str(error):
            return False
        raise
    return True


def _table(frame: pd.DataFrame) -> pd.DataFrame:
    groups = frame.groupby(["method", "parameters", "C"], sort=False)
    table = groups[["agreement", "basis vectors", "kernel evaluations"]].mean()
    table.insert(1, "least agreement", groups["agreement"].min())
    return table.reset_index().sort_values("C", kind="stable")


def _goals(frame: pd.DataFrame) -> list[Goal]:
    whole = frame[frame["parameters"] == "n landmarks"]
    fifty = frame[(frame["parameters"] == "50 landmarks") & (frame["C"] == 2)]
    return [
        Goal("n landmarks: least agreement", 100 * whole["agreement"].min(), 100, "%", at_least=True),
        Goal("50 landmarks, C = 2: mean agreement", 100 * fifty["agreement"].mean(), 99, "%", at_least=True),
    ]
