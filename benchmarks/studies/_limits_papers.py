"""Fit one method of the papers to a store within a memory limit, in a separate process.

``python -m benchmarks.studies._limits_papers METHOD STORE MIB SEED OUT`` writes labels,
and prints the plan as JSON. With ``warm-up METHOD`` as arguments, it fits a few rows
instead, so that the compile cache contains the routines of the method.
"""

import json
import sys
import time
import warnings
from typing import Any

import numpy as np

import mmcnb
from mmcnb.errors import MemoryLimitError

MIB = 2**20
BASIS = "estimate_basis"
SCM = "SupportClusterMachine"
GAMMA = 0.05  # for the basis vectors
WARM_UP_ROWS = 300
METHODS = {
    "SparseKernelMMC": lambda **how: mmcnb.SparseKernelMMC(**how),
    "SparseKernelMMC, basis of the paper": lambda **how: mmcnb.SparseKernelMMC(
        basis="paper", **how
    ),
    "CPMMC": lambda **how: mmcnb.CPMMC(**how),
    "UnsupervisedRLS": lambda **how: mmcnb.UnsupervisedRLS(2, **how),
    "EvolutionaryMMC, fast": lambda **how: mmcnb.EvolutionaryMMC(
        n_landmarks=200, **how
    ),
    "EvolutionaryMMC, exact": lambda **how: mmcnb.EvolutionaryMMC(**how),
    "KernelKMeans": lambda **how: mmcnb.KernelKMeans(2, **how),
    "CrammerSingerMMC, 3 clusters": lambda **how: mmcnb.CrammerSingerMMC(3, **how),
    "MultipleKernelClustering": lambda **how: mmcnb.MultipleKernelClustering(**how),
    "MultipleKernelClustering, 3 clusters": (
        lambda **how: mmcnb.MultipleKernelClustering(3, **how)
    ),
    BASIS: None,
    SCM: lambda **how: mmcnb.SupportClusterMachine(**how),
}


def estimate(store: str, seed: int, limit: str) -> dict[str, Any]:
    """Estimate a basis vector of the mean of all rows."""
    plan = mmcnb.basis_plan(store, memory_limit=limit)
    n = mmcnb.open_samples(store).n_samples
    mmcnb.estimate_basis(
        store,
        np.ones(n),
        gamma=GAMMA,
        random_state=seed,
        memory_limit=limit,
    )
    return {"planned_mib": plan.peak / MIB}


def fit(name: str, store: str, seed: int, limit: str, out: str) -> dict[str, Any]:
    """Fit a method and write its labels; return its plan."""
    make = METHODS[name]
    assert make is not None
    model = make(memory_limit=limit, random_state=seed)
    plan = model.plan(store)
    if name == SCM:
        model.fit(store)  # the store contains the classes
        model.predict(store, out=out)
    else:
        model.fit_model(store, out=out)
    return {"planned_mib": plan.peak / MIB}


def warm_up(name: str) -> None:
    """Compile the routines that a method calls."""
    make = METHODS[name]
    if make is not None:
        mmcnb.warmup(make())
        return
    for dtype in ("float32", "float64"):
        X = np.random.default_rng(0).normal(size=(WARM_UP_ROWS, 4)).astype(dtype)
        mmcnb.estimate_basis(X, np.ones(WARM_UP_ROWS), gamma=1.0, random_state=0)


def main() -> None:
    """Fit, and print the result."""
    warnings.simplefilter("ignore")
    if sys.argv[1] == "warm-up":
        warm_up(sys.argv[2])
        print("{}")
        return
    name, store, mib, seed, out = sys.argv[1:]
    limit = f"{mib}MiB"
    started = time.perf_counter()
    report: dict[str, Any] = {"refused": ""}
    try:
        if name == BASIS:
            report |= estimate(store, int(seed), limit)
        else:
            report |= fit(name, store, int(seed), limit, out)
    except MemoryLimitError as error:
        report["refused"] = str(error).rpartition("works is ")[2].rstrip(".")
    seconds = time.perf_counter() - started
    print(json.dumps(report | {"seconds": seconds}))


if __name__ == "__main__":
    main()
