"""Show maximum margin clustering beside k-means: ten digits, and rings larger than the memory given."""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mmcnb.errors import InputError

RING_ROWS, RING_FEATURES, RING_MEMORY = 2_000_000, 80, "600MiB"
PEER_ROWS = 2**15  # rows k-means is given at a time
PICTURE_ROWS = 4096
OF_FIT = (
    *("n_samples", "n_features", "kernel", "loss", "rows_per_second", "passes", "peak_memory_bytes"),
    *("fit_seconds", "labels_seconds"),
)
NO_PICTURE = 'none, for want of matplotlib: install it with "python -m pip install matplotlib"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb demo``."""
    parser.add_argument("--out", default="mmcnb-demo", help="folder for the pictures (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, default=RING_ROWS, help="rows of the rings (default: %(default)s)"
    )
    parser.add_argument("--keep", action="store_true", help="keep stores, labels and models there too")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run both parts and draw their pictures."""
    from mmcnb._config import format_bytes
    from mmcnb.stores.atomic import scratch_folder

    folder, started = Path(arguments.out), time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    needed = arguments.rows * RING_FEATURES * 4
    if shutil.disk_usage(folder).free < needed:
        size = format_bytes(needed, up=True)
        raise InputError(f"{folder}: the rings need {size} of free space; give --out on another disk.")
    with scratch_folder(folder, "work") as scratch:
        stores = folder if arguments.keep else scratch
        digits = _digits(stores / "digits.zarr", folder / "digits.png")
        rings = _rings(stores / "rings.zarr", arguments.rows, folder / "rings.png")
    return {"digits": digits, "rings": rings, "seconds": time.perf_counter() - started}


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the measures."""
    from mmcnb._config import format_bytes

    digits, rings = report["digits"], report["rings"]
    yield "Balanced clustering error, no labels used:"
    yield f"{'':<34}{'k-means':>9}{'mmcnb':>9}"
    for name, part in (("ten digits", digits), ("two rings", rings)):
        size = f"{name}, {part['n_samples']:,} x {part['n_features']}"
        yield f"{size:<34}{part['k_means_error']:>9.1%}{part['mmcnb_error']:>9.1%}"
    yield ""
    yield f"Digits: kernel {digits['kernel']}, loss {digits['loss']}, both chosen without labels"
    yield f"  seconds      {digits['seconds']:.1f}; k-means: {digits['k_means_seconds']:.1f}"
    yield f"  picture      {digits['picture'] or NO_PICTURE}"
    yield f"Rings: a store of {format_bytes(rings['store_bytes'])}, clustered within {RING_MEMORY}"
    yield f"  speed        {rings['rows_per_second']:,.0f} rows/s, {rings['passes']} passes over all rows"
    yield f"  peak memory  {format_bytes(rings['peak_memory_bytes'])} (Python and its libraries included)"
    yield f"  seconds      {rings['seconds']:.1f}; k-means in two passes: {rings['k_means_seconds']:.1f}"
    yield f"  picture      {rings['picture'] or NO_PICTURE}"
    yield f"Whole demo: {report['seconds']:.0f} s"


def _digits(store: Path, picture: Path) -> dict[str, Any]:
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits

    from mmcnb.stores import create_dense_store

    _say("digits: writing them to a Zarr store")
    X, y = load_digits(return_X_y=True)
    with create_dense_store(store, X.shape[1], dtype="float32") as writer:
        writer.append(X.astype(np.float32), y)

    def draw(part: Any, labels: np.ndarray) -> None:
        """The mean image of each cluster, under its most frequent digit and the share of that."""
        counts = np.zeros((10, 10), int)
        np.add.at(counts, (labels, y), 1)
        order = np.argsort(counts.argmax(axis=1), kind="stable")
        for ax, cluster in zip(part.subplots(1, 10), order, strict=True):
            ax.imshow(X[labels == cluster].mean(axis=0).reshape(8, 8), cmap="gray_r")
            share = counts[cluster].max() / counts[cluster].sum()
            ax.set(title=f"{counts[cluster].argmax()}: {share:.0%}", xticks=[], yticks=[])

    def k_means() -> np.ndarray:
        return KMeans(10, n_init=10, random_state=0).fit_predict(X)

    return _compare(store, k_means, ("--n-clusters", "10"), picture, draw, (2, 1), (11.0, 3.6))


def _rings(store: Path, n_samples: int, picture: Path) -> dict[str, Any]:
    import numpy as np
    from sklearn.cluster import MiniBatchKMeans

    from mmcnb.plotting import ClusterDisplay
    from mmcnb.samples import open_samples
    from mmcnb.synthetic import write_synthetic

    _say(f"rings: writing {n_samples:,} rows to a Zarr store, block by block")
    write_synthetic("rings", store, n_samples, RING_FEATURES, random_state=0)
    samples = open_samples(store)

    def draw(part: Any, labels: np.ndarray) -> None:
        X, ax = samples.block(0, min(PICTURE_ROWS, n_samples)), part.subplots()
        ClusterDisplay.from_predictions(X, labels[: len(X)], ax=ax)
        ax.set(aspect="equal", xticks=[], yticks=[])

    def k_means() -> np.ndarray:
        _say("rings: k-means, a block at a time")
        peer, starts = MiniBatchKMeans(2, n_init=10, random_state=0), range(0, n_samples, PEER_ROWS)
        blocks = [(start, min(start + PEER_ROWS, n_samples)) for start in starts]
        for block in blocks:
            peer.partial_fit(samples.block(*block))
        return np.concatenate([peer.predict(samples.block(*block)) for block in blocks])

    # The Gaussian kernel finds the rings too, and labels many rows in less time and memory than the graph.
    options = "--kernel", "rbf", "--memory-limit", RING_MEMORY
    report = _compare(store, k_means, options, picture, draw, (1, 2), (9.0, 4.5))
    store_bytes = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return report | {"store_bytes": store_bytes, "memory_limit": RING_MEMORY}


def _compare(
    store: Path,
    k_means: Callable[[], Any],
    options: tuple[str, ...],
    picture: Path,
    draw: Callable[[Any, Any], None],
    grid: tuple[int, int],
    size: tuple[float, float],
) -> dict[str, Any]:
    """Errors of both methods, and a picture with a part for each, if matplotlib is there."""
    import numpy as np
    import zarr

    from mmcnb.metrics import balanced_clustering_error
    from mmcnb.stores import open_class_labels

    started = time.perf_counter()
    peer = k_means()
    seconds = time.perf_counter() - started
    report = {name: value for name, value in _fit(store, *options).items() if name in OF_FIT}
    labels = np.asarray(zarr.open_array(store.with_suffix(".labels.zarr"), mode="r")[:])
    y = np.asarray(open_class_labels(store))  # only now: known classes are for measuring
    found = {"k_means": peer, "mmcnb": labels}
    report |= {f"{name}_error": balanced_clustering_error(y, one) for name, one in found.items()}
    report |= {"k_means_seconds": seconds, "seconds": report["fit_seconds"] + report["labels_seconds"]}
    if find_spec("matplotlib") is None:
        return report | {"picture": None}
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    parts: Any = figure.subfigures(*grid)
    for part, (name, one) in zip(parts, found.items(), strict=True):
        part.suptitle(f"{name.replace('_', '-')}, balanced error {report[f'{name}_error']:.1%}")
        draw(part, one)
    figure.savefig(picture, dpi=120)
    return report | {"picture": str(picture)}


def _fit(store: Path, *options: str) -> dict[str, Any]:
    """Run ``mmcnb fit`` as a user would: a process of its own, whose peak memory is its own."""
    outputs = "--model", store.with_suffix(".model"), "--labels", store.with_suffix(".labels.zarr")
    words = [str(word) for word in ("fit", store, *outputs, *options, "--random-state", 0)]
    _say("$ mmcnb " + " ".join(Path(word).name for word in words))
    command = [sys.executable, "-m", "mmcnb", *words, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise InputError('the fit of the demo did not finish; "mmcnb doctor" checks this installation.')
    return dict(json.loads(done.stdout))


def _say(text: str) -> None:
    print(f"mmcnb demo: {text}", file=sys.stderr, flush=True)
