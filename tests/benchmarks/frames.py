"""Made-up frames of studies."""

import json

import numpy as np
import pandas as pd

from benchmarks.journal import COLUMNS

VERSIONS = json.dumps({"mmcnb": "0.1.0", "cores": 2, "jobs": 1})
PAIRS = ("mnist-1v7", "mnist-2v7", "mnist-3v8", "mnist-8v9")
SMALL = ("echocardiogram", "spectf", "heart", "haberman", "liver", "ionosphere", "house-votes", "german")
SIZES = (1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696, 32561)


def run(dataset, method, metrics, seed=0, protocol="label-free", n=100, seconds=1.0, part="", **parameters):
    """The tidy rows of a run."""
    shared = {
        "study": "made-up",
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
        "versions": VERSIONS,
        "digest": f"digest-of-{dataset}",
    }
    return [shared | {"metric": name, "value": value} for name, value in metrics.items()]


def failed(dataset, method, reason, **more):
    """The row of a run that failed."""
    nothing = dict.fromkeys(("seconds", "compile_seconds", "peak_mib", "n", "d"), np.nan)
    return [
        row | nothing | {"status": "failed", "reason": reason}
        for row in run(dataset, method, {"": np.nan}, **more)
    ]


def write(folder, study, rows, scale="full", goals=(), shuffled=None):
    """The frame of a study, its goals, and the first line of its journal."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows, columns=COLUMNS).assign(study=study)
    if shuffled is not None:
        frame = frame.sample(frac=1, random_state=shuffled)
    frame.to_parquet(folder / f"{study}.parquet", index=False)
    header = {"format": 2, "study": study, "scale": scale, "rows": None}
    (folder / f"{study}.jsonl").write_text(json.dumps(header) + "\n")
    if goals:
        columns = ["goal", "figure", "bound", "unit", "verdict"]
        pd.DataFrame(goals, columns=columns).to_csv(folder / f"{study}-goals.csv", index=False)
    return folder


def mnist():
    """Two methods by both protocols, one a grid, with k-means; three seeds."""
    rows = []
    for place, name in enumerate(PAIRS):
        for seed in range(3):
            rows += run(name, "k-means", {"balanced_error": 0.05 + 0.04 * place + seed / 1000}, seed, n=14000)
            for protocol, widths in (("paper", (0.5, 1.0, 2.0)), ("label-free", (1.0,))):
                for width in widths:
                    error = 0.012 + 0.03 * place + 0.01 * abs(np.log2(width)) + seed / 2000
                    rows += run(
                        name, "SKMMC", {"balanced_error": error}, seed, protocol, 14000, 2.0, width=width
                    )
    return rows


def small():
    """Seven methods on eight sets by both protocols, with coin flips."""
    rng = np.random.default_rng(0)
    rows = []
    for place, name in enumerate(SMALL):
        for protocol in ("paper", "label-free"):
            for k, method in enumerate(
                ("SKMMC", "SKMMCv2", "k-means", "normalised cut", "IterSVR", "CPMMC", "LG-MMC")
            ):
                for seed in range(2):
                    error = 0.1 + 0.04 * place + 0.01 * k + 0.03 * rng.random()
                    rows += run(
                        name,
                        method,
                        {"balanced_error": error},
                        seed,
                        protocol,
                        100 + 50 * place,
                        0.1 * k + 0.1,
                    )
        rows += run(name, "coin flips", {"balanced_error": 0.3 + 0.02 * place}, 0, "paper", 100 + 50 * place)
    rows += failed("german", "SDPMMC", "InputError: 1,000 rows need n³ <numbers> & more", protocol="paper")
    return rows


def adult():
    """Six methods on nine sizes by both protocols; the seconds of SKMMC grow as n to the 0.9."""
    rows = []
    errors = {
        "SKMMC": 0.241,
        "k-means": 0.27,
        "CPMMC": 0.262,
        "IterSVR": 0.3,
        "LG-MMC": 0.33,
        "normalised cut": 0.45,
    }
    powers = {
        "SKMMC": 0.9,
        "k-means": 1.0,
        "CPMMC": 1.0,
        "IterSVR": 2.0,
        "LG-MMC": 2.1,
        "normalised cut": 1.9,
    }
    for place, n in enumerate(SIZES):
        for protocol in ("paper", "label-free"):
            for method, error in errors.items():
                if powers[method] > 1.5 and n > 7000:
                    continue
                for seed in range(3):
                    seconds = 1e-4 * n ** powers[method] * (1 + 0.05 * seed)
                    found = {
                        "balanced_error": error
                        + 0.004 * np.sin(place + seed)
                        + 0.01 * (protocol == "label-free")
                    }
                    rows += run(f"a{place + 1}a", method, found, seed, protocol, n, seconds)
    return rows


def eta():
    """One method on four sets over five precisions."""
    return [
        row
        for place, name in enumerate(SMALL[:4])
        for value in (0.01, 0.03, 0.1, 0.3, 1.0)
        for row in run(
            name,
            "SKMMC",
            {"balanced_error": 0.2 + 0.05 * place + 0.02 * value, "cuts": 3 / value},
            n=100 + 50 * place,
            seconds=0.1 / value**0.5,
            eta=value,
        )
    ]


def mkc():
    """Two sections, one of them over rows of one data set."""
    rows = []
    for name in ("digits1v7", "ionosphere"):
        for method, value in {"MKC": 0.97, "K1 linear": 0.9, "k-means": 0.88}.items():
            for protocol in ("paper", "label-free"):
                rows += run(
                    name, method, {"accuracy": value, "rand": value - 0.05}, 0, protocol, part="table2"
                )
    for n in (250, 500, 1000, 2000):
        rows += run("letter-AvB", "MKC", {"planes": 12.0}, n=n, seconds=n / 500, part="speed", rows=n)
    return rows


def everything(folder):
    """A folder with frames of all kinds."""
    goals = [
        ("a9a: time", 1.2, "<= 2", "of k-means", "reached"),
        ("a9a: error", 26.0, "<= 24.1", "%", "missed"),
    ]
    write(folder, "small", small())
    write(folder, "mnist", mnist())
    write(folder, "adult", adult(), goals=goals)
    write(folder, "eta", eta(), scale="quick")
    write(folder, "mkc", mkc())
    write(folder, "startup", run("import", "python", {"": np.nan}, seconds=0.1))
    return folder
