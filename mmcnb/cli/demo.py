"""Compare maximum margin clustering with k-means on digits and on rings."""

from pathlib import Path
from typing import Any

from mmcnb._machine import peak_memory
from mmcnb.cli._options import Arguments, Lines, Parser, Report, attributes
from mmcnb.cli._words import table

# Smaller than the store of rings, but enough memory to compile the routines of a fit.
LIMIT = "750MiB"
BLOCK = 2**15  # rows that k-means labels at a time


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb demo``."""
    parser.add_argument(
        "--out",
        default="mmcnb-demo",
        help="folder for the HTML pages (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=2_600_000,
        help="number of rows in the data set of rings (default: %(default)s)",
    )


def run(arguments: Arguments) -> Report:
    """Cluster digits and rings, and write an HTML page about each data set."""
    from sklearn.datasets import load_digits

    from mmcnb.datasets import write_synthetic
    from mmcnb.stores import create_dense_store
    from mmcnb.stores.atomic import scratch_folder

    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder(folder, "work") as scratch:
        rings = scratch / "rings.zarr"
        digits = scratch / "digits.zarr"
        write_synthetic("rings", rings, arguments.rows, n_features=90, random_state=0)
        with create_dense_store(digits, 64, dtype="float32") as writer:
            images, classes = load_digits(return_X_y=True)
            writer.append(images, classes)
        # The Gaussian kernel also finds the rings. It needs less time and memory to
        # label rows than the default kernel, which uses a graph.
        return {
            "rings": _compare(
                rings, folder, n_clusters=2, kernel="rbf", memory_limit=LIMIT
            ),
            "digits": _compare(digits, folder, n_clusters=10),
        }


def lines(report: Report) -> Lines:
    """Format the errors and sizes as text."""
    for name, measures in report.items():
        for line in table(measures):
            yield f"{name:<8}{line}"
    yield (
        "the errors are mean error rates of the classes; the methods were not given "
        "the classes"
    )
    yield f"\n{report['digits']['page']}: open it in a browser"


def _compare(store: Path, folder: Path, **parameters: Any) -> Report:
    """Cluster a store with mmcnb and with k-means, and return the error of each method.

    The result also contains the sizes of the data and the path of an HTML page about
    the fit of mmcnb, which is written to ``folder``.
    """
    import numpy as np
    from sklearn.cluster import KMeans

    from mmcnb import MaximumMarginClustering, metrics, open_samples, stores

    samples = open_samples(store)
    classes = np.asarray(stores.open_class_labels(store))
    n = samples.n_samples
    page = folder / f"{store.stem}.html"
    model = MaximumMarginClustering(**parameters, random_state=0, verbose=1)
    model.fit(samples)
    memory = peak_memory()  # includes the memory of Python and its libraries
    model.set_params(verbose=0).write_report(samples, page)
    peer = KMeans(model.n_clusters, n_init=10, random_state=0)
    peer.fit(samples.block(0, min(n, BLOCK)))
    labels = [
        peer.predict(samples.block(start, min(n, start + BLOCK)))
        for start in range(0, n, BLOCK)
    ]
    return {
        "k_means_error": metrics.balanced_clustering_error(
            classes, np.concatenate(labels)
        ),
        "mmcnb_error": metrics.balanced_clustering_error(classes, model.labels_),
        **attributes(samples, "n_samples", "n_features"),
        "bytes_on_disk": stores.describe_store(store)["bytes_on_disk"],
        "memory_limit": model.memory_limit,
        "peak_memory_bytes": memory if model.memory_limit else None,
        "page": str(page),
    }
