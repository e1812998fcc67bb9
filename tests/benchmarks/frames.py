"""Made-up frames of studies."""

import json

import numpy as np
import pandas as pd

from benchmarks.journal import COLUMNS

PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9")
SIZES = (1605, 2265, 3185, 6414, 32561)
VERSIONS = {
    "mmcnb": "0.1.0",
    "cores": 2,
    "jobs": 1,
    "commit": "abc1234",
    "date": "2026-11-26",
}


def run(
    dataset,
    method,
    metrics,
    seed=0,
    protocol="paper",
    n=100,
    seconds=1.0,
    part="",
    **parameters,
):
    """The tidy rows of a run."""
    shared = {
        "part": part,
        "dataset": dataset,
        "protocol": protocol,
        "method": method,
        "parameters": json.dumps(parameters, sort_keys=True),
        "seed": seed,
        "seconds": seconds,
        "compile_seconds": 0.5,
        "peak_mib": 200.0,
        "n": float(n),
        "d": 10.0,
        "status": "ok",
        "reason": "",
        "versions": json.dumps(VERSIONS),
        "digest": f"digest-of-{dataset}",
    }
    return [
        shared | {"metric": name, "value": value} for name, value in metrics.items()
    ]


def failed(dataset, method, reason, **more):
    """The row of a run that failed."""
    nothing = dict.fromkeys(
        ("seconds", "compile_seconds", "peak_mib", "n", "d"), np.nan
    )
    (row,) = run(dataset, method, {"": np.nan}, **more)
    return [row | nothing | {"status": "failed", "reason": reason}]


def write(folder, study, rows, scale="full", most=None):
    """The frame of a study, and the first line of its journal."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(study=study)
    frame.to_parquet(folder / f"{study}.parquet", index=False)
    header = {"format": 2, "study": study, "scale": scale, "rows": most}
    (folder / f"{study}.jsonl").write_text(json.dumps(header) + "\n")
    return folder / f"{study}.parquet"


def mnist():
    """Two methods by both protocols, one a grid, with k-means; three seeds."""
    rows = []
    for place, name in enumerate(PAIRS):
        for seed in range(3):
            error = 0.05 + 0.04 * place + seed / 1000
            rows += run(
                name, "k-means", {"balanced_error": error}, seed, "label-free", n=14000
            )
            for protocol, widths in (
                ("paper", (0.5, 1.0, 2.0)),
                ("label-free", (1.0,)),
            ):
                for width in widths:
                    error = {
                        "balanced_error": 0.012
                        + 0.03 * place
                        + 0.01 * abs(np.log2(width))
                        + seed / 2000
                    }
                    rows += run(
                        name, "SKMMC", error, seed, protocol, 14000, 2.0, width=width
                    )
    return rows


def adult():
    """Two methods on some sizes: seconds of SKMMC grow as n to the 0.9, those of IterSVR as its square."""
    rows = []
    for place, n in enumerate(SIZES):
        for method, power in (("SKMMC", 0.9), ("IterSVR", 2.0)):
            for seed in range(2):
                seconds = 1e-4 * n**power * (1 + 0.05 * seed)
                rows += run(
                    f"a{place + 1}a",
                    method,
                    {"balanced_error": 0.3},
                    seed,
                    "paper",
                    n,
                    seconds,
                )
    return rows


def eta():
    """One method on two sets over three precisions."""
    rows = []
    for name in ("heart", "liver"):
        for value in (0.01, 0.1, 1.0):
            measures = {"balanced_error": 0.2 + 0.02 * value, "cuts": 3 / value}
            rows += run(name, "SKMMC", measures, protocol="label-free", eta=value)
    return rows
