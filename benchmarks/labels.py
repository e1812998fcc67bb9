"""Compare the labels and objectives of every estimator at two commits.

``python -m benchmarks.labels OUT.json [--quick] [--root DIR]`` fits the real data in
MMCNB_DATA_DIR, with the mmcnb of the tree DIR, and writes a digest of each fit.
``python -m benchmarks.labels --compare BEFORE.json AFTER.json`` then names the fits
that differ. If a run was stopped, the same command resumes it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any

TWO_CLASSES = {
    "adult": 32561,
    "ringnorm": 7400,
    "echocardiogram": 131,
    "spectf": 267,
    "heart": 270,
    "haberman": 306,
    "liver": 345,
    "ionosphere": 351,
    "house-votes": 435,
    "clean1": 476,
    "breast": 683,
    "german": 1000,
    "waveform-1v2": 3308,
    "mnist-1v7": 15170,
    "mnist-3v8": 13966,
}
MANY_CLASSES = {"iris": 150, "optdigits": 5620, "usps": 9298, "mnist": 70000}
ROWS = {**TWO_CLASSES, **MANY_CLASSES}
# several blocks of 4,096 rows, so that the passes over all rows run
STORED = {
    "adult": 20_000,
    "mnist": 20_000,
}

# The largest number of rows of a fit; the last four methods keep a matrix of all pairs
# of rows, or solve a program over them.
MOST_ROWS = {
    "MaximumMarginClustering": 3000,
    "SparseKernelMMC": 3000,
    "CPMMC": 3000,
    "UnsupervisedRLS": 3000,
    "KernelKMeans": 3000,
    "MultipleKernelClustering": 2000,
    "IterativeSVR": 2000,
    "EvolutionaryMMC": 1000,
    "KernelCPMMC": 400,
    "LabelGenerationMMC": 100,
    "SDPMMC": 80,
}
FRONT = "MaximumMarginClustering"
ANY_NUMBER = (FRONT, "UnsupervisedRLS", "KernelKMeans", "MultipleKernelClustering")
MANY = "CrammerSingerMMC"
STREAMED = (
    FRONT,
    "SparseKernelMMC",
    "CPMMC",
    "UnsupervisedRLS",
    "KernelKMeans",
    "MultipleKernelClustering",
    MANY,
)

Settings = list[dict[str, Any]]
KERNELS: Settings = [{"kernel": "linear"}, {"kernel": "poly"}]
WIDTHS: Settings = [{"gamma": "median"}, {"gamma": 0.1}]
COMMON: Settings = [*KERNELS, *WIDTHS, {"scale": "standard"}]
HINGE: Settings = [
    {"threshold": "fixed"},
    {"continuation": False},
    {"init": "random"},
    {"init": "k-means"},
]
HINGE += [{"balance": 0.3}, {"min_share": 0.5}, {"scale": "standard"}, {"C": 3.0}]
RIDGE: Settings = [
    {"search": "steepest"},
    {"search": "stochastic"},
    {"schedule": "paper"},
    {"alpha": "auto"},
]
VARIANTS: dict[str, Settings] = {
    FRONT: [
        *({"kernel": kernel} for kernel in ("graph", "rbf", "linear")),
        {"metric": "cosine"},
        {"cluster_sizes": "equal"},
        {"scale": "standard"},
        {"n_clusters": 3},
        {"n_nodes": 150},
        {"n_clusters": 3, "kernel": "rbf"},
    ],
    "SparseKernelMMC": [
        *KERNELS,
        *WIDTHS,
        *HINGE,
        {"basis": "shared"},
        {"basis": "own"},
        {"n_jobs": 2},
    ],
    "KernelCPMMC": [*KERNELS, *WIDTHS, *HINGE],
    "CPMMC": HINGE,
    "UnsupervisedRLS": [
        *COMMON,
        *RIDGE,
        {"sample_size": 150},
        {"cluster_sizes": "equal"},
        {"n_clusters": 3},
    ],
    "EvolutionaryMMC": [
        *COMMON,
        {"centre": False},
        {"n_landmarks": 40},
        {"sample_size": 150},
    ],
    "MultipleKernelClustering": [
        *HINGE,
        {"basis": "exact"},
        {"kernels": ["linear", "poly"]},
        {"n_clusters": 3},
    ],
    "KernelKMeans": [*COMMON, {"sample_size": 150}, {"n_clusters": 3}],
    "IterativeSVR": [
        *COMMON,
        {"C": 3.0},
        {"loss": "hinge"},
        {"init": "random"},
        {"sample_size": 150},
    ],
    "LabelGenerationMMC": [*COMMON, {"C": 3.0}],
    "SDPMMC": [*COMMON, {"C": 3.0}],
    MANY: [
        *COMMON,
        {"C": 3.0},
        {"n_clusters": 4},
        {"cluster_sizes": [0.5, 0.3, 0.2]},
        {"sample_size": 150},
    ],
}
VARIED = ("ionosphere", "heart")
WEIGHTED = "heart"
QUICK = ("echocardiogram", "ionosphere", "iris", "adult", "optdigits")


@dataclass(frozen=True)
class Job:
    """One fit to compare."""

    estimator: str
    data: str
    rows: int
    seed: int
    parameters: dict[str, Any] = field(default_factory=dict)
    how: str = ""  # "stored" in a Zarr store, "weighted" rows, or "" for neither

    @property
    def key(self) -> str:
        """Name of the fit in the file of digests."""
        parameters = [f"{name}={value}" for name, value in self.parameters.items()]
        words = [self.estimator, self.data, str(self.rows), f"seed={self.seed}"]
        return " ".join([*words, *parameters, self.how]).strip()


def plain_jobs() -> Iterator[Job]:
    """Yield fits of every estimator to every data set, with one cluster per class."""
    for data, n_rows in ROWS.items():
        classes = {"n_clusters": n_classes(data)}
        for seed in (0, 1):
            for estimator, most in MOST_ROWS.items():
                parameters = classes if estimator in ANY_NUMBER else {}
                yield Job(estimator, data, min(most, n_rows), seed, parameters)
            if data in MANY_CLASSES:
                yield Job(MANY, data, min(3000, n_rows), seed, classes)
        searched = {"n_clusters": None}
        yield Job(FRONT, data, min(MOST_ROWS[FRONT], n_rows), 0, searched)


def n_classes(data: str) -> int:
    """Return the number of classes of a data set."""
    if data in TWO_CLASSES:
        return 2
    return 3 if data == "iris" else 10


def default_parameters(estimator: str) -> dict[str, Any]:
    """Return the number of clusters as a parameter, for estimators that have it."""
    if estimator == MANY:
        return {"n_clusters": 3}
    return {"n_clusters": 2} if estimator in ANY_NUMBER else {}


def other_jobs() -> Iterator[Job]:
    """Yield fits with other parameters, with weights, and with rows in a store."""
    for estimator, variants in VARIANTS.items():
        defaults = default_parameters(estimator)
        for data in VARIED:
            rows = min(MOST_ROWS.get(estimator, 3000), ROWS[data])
            for variant in variants:
                yield Job(estimator, data, rows, 0, {**defaults, **variant})
            if data == WEIGHTED:
                yield Job(estimator, data, rows, 0, defaults, "weighted")
    for data, rows in STORED.items():
        for estimator in STREAMED:
            defaults = default_parameters(estimator)
            yield Job(estimator, data, rows, 0, defaults, "stored")
            if estimator != MANY:
                scaled = {**defaults, "scale": "standard"}
                yield Job(estimator, data, rows, 0, scaled, "stored")


def is_quick(job: Job) -> bool:
    """Return whether a fit is in a quick run, which includes every estimator."""
    if job.how == "stored":
        return job.data == "adult"
    if job.how == "weighted" or job.data == VARIED[0]:
        return True
    return job.data in QUICK and job.seed == 0


def jobs(quick: bool) -> list[Job]:
    """Return all fits, or the fits of a quick run."""
    every = [*plain_jobs(), *other_jobs()]
    return [job for job in every if is_quick(job)] if quick else every


def find(name: str) -> Any:
    """Return a class of the library, or a baseline of the benchmarks, by name."""
    for home in ("mmcnb", "mmcnb.baselines", "benchmarks.baselines"):
        try:
            return getattr(import_module(home), name)
        except (AttributeError, ModuleNotFoundError):
            continue
    return None


def estimator_of(job: Job) -> Any:
    """Return the estimator of a fit, also at commits where it has another name."""
    settings = {
        "n_jobs": 1,
        "memory_limit": "2GiB",
        "random_state": job.seed,
        **job.parameters,
    }
    estimator = find(job.estimator)
    if estimator is None and job.estimator == MANY:
        # At these commits, it found any number of clusters.
        estimator = find("SparseKernelMMC")
    if settings.get("basis") == "own" and find("OwnBasisMMC"):
        estimator = find("OwnBasisMMC")
        del settings["basis"]
    # A baseline does not plan its memory and has no threads.
    known = signature(estimator).parameters
    return estimator(
        **{name: value for name, value in settings.items() if name in known}
    )


def digest(job: Job, folder: str) -> str:
    """Return a hash of the labels and the objective, or the error of a refusal."""
    import numpy as np

    import data_loaders

    X = f"{folder}/{job.data}.zarr"
    if job.how != "stored":
        X, _ = data_loaders.load(job.data, rows=job.rows, random_state=0)
    options = {}
    if job.how == "weighted":
        random_state = np.random.RandomState(0)
        options["sample_weight"] = random_state.uniform(0.5, 2.0, job.rows)
    try:
        model = estimator_of(job).fit(X, **options)
    except ValueError as error:  # an input that the estimator refuses
        return f"refused with {type(error).__name__}"
    labels = np.asarray(model.labels_, dtype=np.int32)
    objective = float(getattr(model, "objective_", 0.0))
    return f"{hashlib.sha256(labels.tobytes()).hexdigest()[:24]} {objective!r}"


def timed(job: Job, folder: str) -> tuple[str, float]:
    """Return the digest of a fit, and its seconds."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    return digest(job, folder), time.perf_counter() - start


def write_stores(names: set[str], folder: str) -> None:
    """Write the stores of the data sets that are fitted from a store."""
    import data_loaders

    for name in names:
        data_loaders.write(
            name, f"{folder}/{name}.zarr", rows=STORED[name], random_state=0
        )


def use_tree(root: Path) -> None:
    """Import mmcnb from a tree, in a process that has not imported it yet."""
    sys.path.insert(0, str(root))
    spec = find_spec("mmcnb")
    if spec is None or Path(str(spec.origin)).parent != root / "mmcnb":
        raise SystemExit(f"{spec} would be imported instead of the mmcnb of {root}.")


def run(out: Path, wanted: list[Job], root: Path, processes: int) -> int:
    """Compute the digests that the file does not contain; return 1 if a fit failed."""
    done = json.loads(out.read_text()) if out.exists() else {}
    left = [job for job in wanted if job.key not in done]
    failed = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            processes, get_context("spawn"), initializer=use_tree, initargs=(root,)
        ) as pool,
    ):
        pool.submit(
            write_stores, {job.data for job in left if job.how == "stored"}, folder
        ).result()
        futures = {pool.submit(timed, job, folder): job.key for job in left}
        for future in as_completed(futures):
            key = futures[future]
            if future.exception():  # the next run tries again
                failed += 1
                print(f"failed  {key}  {future.exception()!r}", flush=True)
                continue
            done[key], seconds = future.result()
            print(f"{seconds:7.2f} s  {key}  {done[key][:30]}", flush=True)
            partial = out.with_suffix(".part")
            partial.write_text(json.dumps(done, indent=0, sort_keys=True))
            partial.replace(out)
    return int(bool(failed))


def compare(first: Path, second: Path) -> int:
    """Name the fits with different digests in two files, and count the equal ones."""
    before, after = (json.loads(path.read_text()) for path in (first, second))
    both = sorted(before.keys() & after.keys())
    labels = [key for key in both if before[key].split()[0] != after[key].split()[0]]
    objectives = [
        key for key in both if key not in labels and before[key] != after[key]
    ]
    alone = sorted(before.keys() ^ after.keys())
    equal = len(both) - len(labels) - len(objectives)
    print(
        f"{equal} equal, {len(labels)} with other labels, "
        f"{len(objectives)} with only another objective."
    )
    for kind, keys in (("labels   ", labels), ("objective", objectives)):
        for key in keys:
            print(f"{kind}  {key}  {before[key]} -> {after[key]}")
    print(f"{len(alone)} in only one of the files.")
    return int(bool(labels or objectives))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.json")
    parser.add_argument(
        "--compare", action="store_true", help="compare two files; 1 if a hash differs"
    )
    parser.add_argument(
        "--quick", action="store_true", help="only some fits of every estimator"
    )
    parser.add_argument(
        "--root",
        type=Path,
        default=".",
        help="folder of the tree with the mmcnb to run",
    )
    parser.add_argument("--processes", type=int, default=1, choices=(1, 2))
    options = parser.parse_args()
    if options.compare:
        return compare(*options.files)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    wanted = jobs(options.quick)
    root = options.root.resolve()
    return run(options.files[0], wanted, root, options.processes)


if __name__ == "__main__":
    sys.exit(main())
