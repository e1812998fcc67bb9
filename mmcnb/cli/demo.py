"""Show maximum margin clustering beside k-means: ten digits, and rings larger than the memory given."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmcnb.errors import InputError

if TYPE_CHECKING:
    import numpy as np

DIGITS = 10
RING_FEATURES = 80
RING_ROWS = 2_000_000
RING_MEMORY = "600MiB"
PEER_ROWS = 2**15  # rows k-means is given at a time
PICTURE_ROWS = 4096
SEED = 0
NO_PICTURE = 'none, for want of matplotlib: install it with "python -m pip install matplotlib"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb demo``."""
    parser.add_argument("--out", default="mmcnb-demo", help="folder for the pictures (default: mmcnb-demo)")
    parser.add_argument(
        "--rows", type=int, default=RING_ROWS, help=f"rows of the rings (default: {RING_ROWS:,})"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the stores, labels and models in that folder"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run both parts and draw their pictures."""
    from mmcnb.stores.atomic import scratch_folder

    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    _check_space(folder, arguments.rows)
    started = time.perf_counter()
    with scratch_folder(folder, "work") as scratch:
        stores = folder if arguments.keep else scratch
        digits = _digits(stores, folder / "digits.png")
        rings = _rings(stores, arguments.rows, folder / "rings.png")
    return {"digits": digits, "rings": rings, "seconds": time.perf_counter() - started}


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word what was measured."""
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
    yield f"Rings: a store of {format_bytes(rings['store_bytes'])}, clustered within {rings['memory_limit']}"
    yield f"  speed        {rings['rows_per_second']:,.0f} rows/s, {rings['passes']} passes over all rows"
    yield f"  peak memory  {format_bytes(rings['peak_memory_bytes'])} (Python and its libraries included)"
    yield f"  seconds      {rings['seconds']:.1f}; k-means in two passes: {rings['k_means_seconds']:.1f}"
    yield f"  picture      {rings['picture'] or NO_PICTURE}"
    yield f"Whole demo: {report['seconds']:.0f} s"


def _digits(folder: Path, picture: Path) -> dict[str, Any]:
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits

    from mmcnb.stores import create_dense_store

    _say("digits: writing them to a Zarr store")
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    store = folder / "digits.zarr"
    with create_dense_store(store, X.shape[1], dtype="float32") as writer:
        writer.append(X, y)
    started = time.perf_counter()
    peer = KMeans(DIGITS, n_init=10, random_state=SEED).fit_predict(X)
    report = _compare(store, peer, time.perf_counter() - started, "--n-clusters", str(DIGITS))
    report["picture"] = _draw_digits(X, y, _answers(report, store, peer), picture)
    return report


def _rings(folder: Path, n_samples: int, picture: Path) -> dict[str, Any]:
    from mmcnb.samples import open_samples
    from mmcnb.synthetic import write_synthetic

    _say(f"rings: writing {n_samples:,} rows to a Zarr store, block by block")
    store = folder / "rings.zarr"
    write_synthetic("rings", store, n_samples, RING_FEATURES, random_state=SEED)
    store_bytes = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    _say("rings: k-means, a block at a time")
    started = time.perf_counter()
    peer = _streamed_k_means(open_samples(store))
    # The Gaussian kernel finds the rings too, and labels many rows in less time and memory than the graph.
    options = "--kernel", "rbf", "--memory-limit", RING_MEMORY
    report = _compare(store, peer, time.perf_counter() - started, *options)
    report |= {"store_bytes": store_bytes, "memory_limit": RING_MEMORY}
    X = open_samples(store).block(0, min(PICTURE_ROWS, n_samples))
    report["picture"] = _draw_rings(X, _answers(report, store, peer), picture)
    return report


def _compare(store: Path, peer: np.ndarray, peer_seconds: float, *options: str) -> dict[str, Any]:
    import numpy as np

    from mmcnb.metrics import balanced_clustering_error
    from mmcnb.stores import open_class_labels

    report = _fit(store, *options)
    y = np.asarray(open_class_labels(store))  # only now: known classes are for measuring
    of_fit = ("n_samples", "n_features", "kernel", "loss", "rows_per_second", "passes", "peak_memory_bytes")
    return {name: report[name] for name in of_fit} | {
        "k_means_error": balanced_clustering_error(y, peer),
        "mmcnb_error": balanced_clustering_error(y, _read_labels(store)),
        "k_means_seconds": peer_seconds,
        "seconds": report["fit_seconds"] + report["labels_seconds"],
    }


def _fit(store: Path, *options: str) -> dict[str, Any]:
    """Run ``mmcnb fit`` as a user would: a process of its own, whose peak memory is its own."""
    model, labels = store.with_suffix(".model"), store.with_suffix(".labels.zarr")
    command = ["fit", store, "--model", model, "--labels", labels, *options, "--random-state", SEED]
    words = [str(word) for word in command]
    _say("$ mmcnb " + " ".join(Path(word).name for word in words))
    done = subprocess.run(
        [sys.executable, "-m", "mmcnb", *words, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise InputError('the fit of the demo did not finish; "mmcnb doctor" checks this installation.')
    return json.loads(done.stdout)


def _read_labels(store: Path) -> np.ndarray:
    import numpy as np
    import zarr

    return np.asarray(zarr.open_array(store.with_suffix(".labels.zarr"), mode="r")[:])


def _streamed_k_means(samples: Any) -> np.ndarray:
    import numpy as np
    from sklearn.cluster import MiniBatchKMeans

    def over_blocks(function: Callable[[np.ndarray], Any]) -> list[Any]:
        starts = range(0, samples.n_samples, PEER_ROWS)
        return [function(samples.block(start, min(start + PEER_ROWS, samples.n_samples))) for start in starts]

    peer = MiniBatchKMeans(2, n_init=10, random_state=SEED)
    over_blocks(peer.partial_fit)
    return np.concatenate(over_blocks(peer.predict))


def _answers(report: dict[str, Any], store: Path, peer: np.ndarray) -> dict[str, np.ndarray]:
    """Labels by both methods, under the title of their panel."""
    return {
        f"k-means, balanced error {report['k_means_error']:.1%}": peer,
        f"mmcnb, balanced error {report['mmcnb_error']:.1%}": _read_labels(store),
    }


def _draw_digits(X: Any, y: np.ndarray, answers: dict[str, np.ndarray], picture: Path) -> str | None:
    """Draw the mean image of each cluster, under its most frequent digit and the share of that."""
    import numpy as np

    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(1.1 * DIGITS, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(len(answers), 1)
    for part, (title, labels) in zip(parts, answers.items(), strict=True):
        part.suptitle(title)
        counts = np.zeros((DIGITS, DIGITS), int)
        np.add.at(counts, (labels, y), 1)
        order = np.argsort(counts.argmax(axis=1), kind="stable")
        for ax, cluster in zip(part.subplots(1, DIGITS), order, strict=True):
            ax.imshow(X[labels == cluster].mean(axis=0).reshape(8, 8), cmap="gray_r")
            share = counts[cluster].max() / counts[cluster].sum()
            ax.set(title=f"{counts[cluster].argmax()}: {share:.0%}", xticks=[], yticks=[])
    figure.savefig(picture, dpi=120)
    return str(picture)


def _draw_rings(X: Any, answers: dict[str, np.ndarray], picture: Path) -> str | None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    from mmcnb.plotting import ClusterDisplay

    figure = Figure(figsize=(4.5 * len(answers), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, (title, labels) in zip(figure.subplots(1, len(answers)), answers.items(), strict=True):
        ClusterDisplay.from_predictions(X, labels[: len(X)], ax=ax)
        ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    figure.savefig(picture, dpi=120)
    return str(picture)


def _check_space(folder: Path, n_samples: int) -> None:
    from mmcnb._config import format_bytes

    needed = n_samples * RING_FEATURES * 4
    if shutil.disk_usage(folder).free < needed:
        size = format_bytes(needed, up=True)
        raise InputError(f"{folder}: the rings need {size} of free space; give --out on another disk.")


def _say(text: str) -> None:
    print(f"mmcnb demo: {text}", file=sys.stderr, flush=True)
