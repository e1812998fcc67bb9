"""Part of the study ``basis``: `mmcnb.estimate_basis` on a store larger than its memory.

The study measures peak memory and reads, and compares the bits. ``python -m
benchmarks.studies._basis_streamed STORE`` computes one estimate and prints its figures
as JSON.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

import mmcnb
from benchmarks.protocol import MIB, run_and_watch, written_once
from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result
from mmcnb.datasets import write_synthetic

ROWS = 10**7
QUICK_ROWS = 10**6
SMOKE_ROWS = 1000
COMPARED_ROWS = 10**5
FEATURES = 32
GAMMA = 1.0
LIMIT = 512  # MiB
MOST_READS = 2.0  # per step, including the pass for the coefficient


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield the rows whose bits are compared, and all rows."""
    sizes = options.sizes_within(
        (COMPARED_ROWS, options.pick(ROWS, QUICK_ROWS, SMOKE_ROWS))
    )
    for n in dict.fromkeys(sizes):
        yield Run(
            "rings",
            "estimate_basis",
            0,
            parameters={"rows": n},
            settings={"compared": n <= COMPARED_ROWS},
        )


def compute(run: Run) -> dict[str, Any]:
    """Estimate once in a watched process and, if there are few rows, in memory."""
    n = run.parameters["rows"]
    store = written_once(
        run.folder,
        f"rings-{n}",
        lambda path: write_synthetic("rings", path, n, FEATURES),
    )
    found, peak = run_and_watch([sys.executable, "-m", __name__, store])
    measures = {name: found[name] for name in ("seconds", "steps", "reads")}
    measures |= {"n": n, "d": FEATURES, "peak_mib": peak / MIB}
    if run.settings["compared"]:
        other = estimate(np.array(mmcnb.open_samples(store).block(0, n)))
        measures["same_bits"] = float(
            all(found[name] == other[name] for name in ("basis", "beta"))
        )
    return measures


def estimate(X: Any) -> dict[str, Any]:
    """Return the basis vector of a sum of signed rows, with its bits as text.

    A third of the signs is -1.
    """
    z = np.random.default_rng(0).choice(
        [1.0, 1.0, -1.0], mmcnb.open_samples(X).n_samples
    )
    given: dict[str, Any] = {"gamma": GAMMA, "random_state": 0}
    # Compiles the routines.
    mmcnb.estimate_basis(np.eye(2, FEATURES), np.ones(2), **given)
    started = time.perf_counter()
    found = mmcnb.estimate_basis(X, z, **given)
    seconds = time.perf_counter() - started
    bits = {"basis": found.basis.tobytes().hex(), "beta": found.beta.tobytes().hex()}
    return bits | {
        "seconds": seconds,
        "steps": found.n_iter,
        "reads": found.n_iter + len(found.beta),
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return the peak, the reads per step and the bits, with a goal for each."""
    table = frame.reindex(
        columns=[
            "dataset",
            "n",
            "d",
            "steps",
            "reads",
            "seconds",
            "peak_mib",
            "same_bits",
        ]
    )
    a_step = float((table["reads"] / table["steps"]).max())
    goals = [
        Goal("streamed: peak memory", float(table["peak_mib"].max()), LIMIT, "MiB"),
        Goal("streamed: reads a step", a_step, MOST_READS),
        Goal(
            "streamed: same bits as in memory",
            float(table["same_bits"].min()),
            1.0,
            at_least=True,
        ),
    ]
    return Result({"basis-streamed": table}, goals)


if __name__ == "__main__":
    print(json.dumps(estimate(sys.argv[1])))
