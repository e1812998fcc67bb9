"""Show maximum margin clustering beside k-means: ten digits, and rings larger than the memory given."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from mmcnb._compiling import times
from mmcnb._machine import peak_memory
from mmcnb.cli._common import table

PEER_ROWS = 2**15  # rows from which k-means takes its centres, and that it labels at a time
NO_PICTURE = 'none, for want of matplotlib: install it with "python -m pip install matplotlib"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb demo``."""
    parser.add_argument("--out", default="mmcnb-demo", help="folder for the pictures (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of rings (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the stores there too")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Cluster both data sets and draw their pictures."""
    import numpy as np
    from sklearn.datasets import load_digits

    from mmcnb.datasets import write_synthetic
    from mmcnb.stores import create_dense_store
    from mmcnb.stores.atomic import scratch_folder

    folder, started = Path(arguments.out), time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder, "work") as scratch:
        stores = folder if arguments.keep else scratch
        rings, digits = stores / "rings.zarr", stores / "digits.zarr"
        write_synthetic("rings", rings, arguments.rows, n_features=90, random_state=0)
        X, y = load_digits(return_X_y=True)
        with create_dense_store(digits, X.shape[1], dtype="float32") as writer:
            writer.append(X.astype(np.float32), y)
        # The Gaussian kernel finds the rings too, and labels rows in less time and memory than the graph.
        # The limit is below the size of the store, and leaves room to compile the first fit.
        return {
            "rings": _compare(
                rings, folder, _scatter, (1, 2), n_clusters=2, kernel="rbf", memory_limit="600MiB"
            ),
            "digits": _compare(digits, folder, _mean_images, (2, 1), n_clusters=10),
            "seconds": time.perf_counter() - started,
        }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the measures."""
    parts = {"ten digits": report["digits"], "two rings": report["rings"]}
    yield "Balanced clustering error, no labels used:"
    yield f"{'':<12}{'k-means':>9}{'mmcnb':>9}"
    for name, part in parts.items():
        yield f"{name:<12}{part['k_means_error']:>9.1%}{part['mmcnb_error']:>9.1%}"
    for name, part in parts.items():
        others = {key: value for key, value in part.items() if not key.endswith("_error")}
        yield f"\n{name}:"
        yield from (f"  {line}" for line in table(others | {"picture": part["picture"] or NO_PICTURE}))
    yield f"\nwhole demo: {report['seconds']:.0f} s"


def _compare(
    store: Path, folder: Path, draw: Callable[..., None], grid: tuple[int, int], **parameters: Any
) -> dict[str, Any]:
    """Errors of both methods, and a picture with a part for each if matplotlib is installed."""
    import numpy as np
    from sklearn.cluster import KMeans

    from mmcnb import MaximumMarginClustering, open_samples
    from mmcnb.metrics import balanced_clustering_error
    from mmcnb.stores import describe_store, open_class_labels

    samples, y = open_samples(store), np.asarray(open_class_labels(store))  # classes for measuring alone
    estimator = MaximumMarginClustering(**parameters, random_state=0, verbose=1)
    call = f"{' '.join(str(estimator).split())}.fit({store.name!r})"
    print(f"mmcnb demo: {call}", file=sys.stderr, flush=True)
    started = times()[0]
    labels = {"mmcnb": estimator.fit(samples).labels_}
    fitted, memory, limit = times()[0], peak_memory(), estimator.memory_limit
    ends = [*range(0, samples.n_samples, PEER_ROWS), samples.n_samples]
    peer = KMeans(estimator.n_clusters, n_init=10, random_state=0).fit(samples.block(0, ends[1]))
    labels["k_means"] = np.concatenate([peer.predict(samples.block(*block)) for block in pairwise(ends)])
    report = {
        **{name: getattr(samples, name) for name in ("n_samples", "n_features")},
        **{name: getattr(estimator, f"{name}_") for name in ("kernel", "candidate")},
        "bytes_on_disk": describe_store(store)["bytes_on_disk"],
        "memory_limit": limit,
        "peak_memory_bytes": memory if limit else None,  # Python and its libraries included
        "seconds": fitted - started,
        "k_means_seconds": times()[0] - fitted,
        **{f"{name}_error": balanced_clustering_error(y, found) for name, found in labels.items()},
        "picture": None if find_spec("matplotlib") is None else str(folder / f"{store.stem}.png"),
    }
    if report["picture"]:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.0, 4.0), layout="constrained")
        X: Any = samples.block(0, min(4096, samples.n_samples))
        parts: Any = figure.subfigures(*grid)
        for part, (name, found) in zip(parts, sorted(labels.items()), strict=True):
            part.suptitle(f"{name.replace('_', '-')}, balanced error {report[f'{name}_error']:.1%}")
            draw(part, X, found[: len(X)], y[: len(X)])
        figure.savefig(report["picture"], dpi=120)
    return report


def _mean_images(part: Any, X: Any, labels: Any, y: Any) -> None:
    """Draw the mean image of each cluster, under its most frequent digit and the share of that."""
    import pandas as pd

    shares = pd.crosstab(labels, y, normalize="index")
    digits = shares.idxmax(axis=1).sort_values(kind="stable")
    for ax, (cluster, digit) in zip(part.subplots(1, len(digits)), digits.items(), strict=True):
        ax.imshow(X[labels == cluster].mean(axis=0).reshape(8, 8), cmap="gray_r")
        ax.set(title=f"{digit}: {shares.loc[cluster, digit]:.0%}", xticks=[], yticks=[])


def _scatter(part: Any, X: Any, labels: Any, y: Any) -> None:
    """Draw the rows in the plane of the rings."""
    from mmcnb.plotting import ClusterDisplay

    display = ClusterDisplay.from_predictions(X, labels, ax=part.subplots())
    display.ax_.set(aspect="equal", xticks=[], yticks=[])
