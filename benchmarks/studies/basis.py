"""How well landmarks and other bases reproduce the labels of the exact method, and what they cost.

``python -m benchmarks basis [--quick] [--seeds N] [--part NAME]`` has two sections:

labels    `KernelCPMMC` at bandwidth 1 on the small UCI sets. It is compared with
          `SparseKernelMMC` with 10, 20, 50, 100 and n landmarks and, for one seed, with
          the basis of the paper, at C = 2 and C = 10. Agreement is the share of rows
          with the same label; kernel evaluations are counted per row
streamed  `mmcnb.estimate_basis` of a Zarr store: of 10^7 x 32 (``--quick``: 10^6), peak
          memory and reads; and of 10^5 rows, whether the basis has the same bits as in
          memory
"""

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.methods import SKMMC, estimator
from benchmarks.protocol import UCI, fit, load_once, scored, with_gamma
from benchmarks.run import Options, Run, Runs, Section, frame_of_runs
from benchmarks.studies import _basis_streamed
from benchmarks.tables import Result, goals_of

SETS = tuple(name for name in UCI if name != "waveform-1v2")
LANDMARKS: tuple[int | str, ...] = (10, 20, 50, 100, "n")
WIDTH = 1.0
CS = (2.0, 10.0)


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each basis at each C, in turn for each data set and seed."""
    for name, C in product(
        options.pick(SETS, SETS, SETS[2:3]), options.pick(CS, CS, CS[:1])
    ):
        rows = {"rows": options.rows_of(name)}
        for seed in range(options.seeds or 3):
            for landmarks in LANDMARKS:
                yield Run(
                    name,
                    "landmarks",
                    seed,
                    parameters={"C": C, "landmarks": landmarks},
                    settings=rows,
                )
        yield Run(name, "paper", 0, parameters={"C": C}, settings=rows)


def compute(run: Run) -> dict[str, Any]:
    """Fit with a basis, and compare the labels with those of the exact method."""
    data = run.data
    C = run.parameters["C"]
    landmarks = run.parameters.get("landmarks")
    given = {"C": C, "random_state": run.seed} | with_gamma({"width": WIDTH}, data.X)
    exact = _exact_labels(run.dataset, run.settings["rows"], **given)
    p = len(data.y) if landmarks == "n" else landmarks
    model = estimator(SKMMC, basis=run.method, n_landmarks=p, **given)
    found = scored(data, model)
    same = float(np.mean(model.labels_ == exact))
    vectors = len(model.model_.basis)
    return found | {
        "agreement": max(same, 1 - same),
        "basis_vectors": vectors,
        # Landmarks need one kernel value per row and landmark; the cost of the paper's
        # basis is only known after the fit.
        "kernel_evaluations": vectors
        if landmarks
        else model.report_.get("kernel_evaluations", np.nan),
    }


@lru_cache(maxsize=1)
def _exact_labels(name: str, rows: int | None, **given: Any) -> np.ndarray:
    """Return the labels of the exact method, cached for the runs that are compared with them."""
    return fit(mmcnb.KernelCPMMC(**given), load_once(name, rows).X).labels_


def tables(frame: pd.DataFrame) -> Result:
    """Return one row per basis and C: means over data sets and seeds, and the smallest agreement.

    There are two goals: with one landmark per row, the labels equal those of the exact
    method; with fifty, they almost do.
    """
    groups = frame.groupby(["method", "landmarks", "C"], sort=False, dropna=False)
    table = groups[
        ["agreement", "basis_vectors", "kernel_evaluations", "seconds"]
    ].mean()
    table.insert(1, "least agreement", groups["agreement"].min())
    fifty = frame.loc[
        (frame["landmarks"] == 50) & (frame["C"] == 2), "agreement"
    ].mean()
    figures = {
        "n landmarks: least agreement": frame.loc[
            frame["landmarks"] == "n", "agreement"
        ].min(),
        "50 landmarks, C = 2: mean agreement": fifty,
    }
    goals = goals_of(
        figures, dict(zip(figures, (1.0, 0.99), strict=True)), "{}", "%", at_least=True
    )
    return Result({"basis": table.reset_index().sort_values("C", kind="stable")}, goals)


SECTIONS = {
    "labels": Section(grid, compute, tables),
    "streamed": Section(
        _basis_streamed.grid, _basis_streamed.compute, _basis_streamed.tables
    ),
}
