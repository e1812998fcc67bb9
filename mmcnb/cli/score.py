"""Compare clusters with known classes, and measure how well they separate the rows."""

import numpy as np

from mmcnb.cli._options import (
    Arguments,
    Lines,
    Parser,
    Report,
    add_store,
    add_table,
    attributes,
)
from mmcnb.cli._rows import open_rows
from mmcnb.errors import InputError
from mmcnb.samples import Samples

MEASURES = {
    "balanced_error": (
        "{:.1%}",
        "mean error rate of the classes, each matched to one cluster",
    ),
    "adjusted_rand_index": ("{:.3f}", "1 is perfect, 0 is chance"),
    "adjusted_mutual_information": ("{:.3f}", "1 is perfect, 0 is chance"),
    "normalized_mutual_information": ("{:.3f}", "1 is perfect; also called V-measure"),
    "J": (
        "{:.2f}",
        "does not need classes; larger is better for a fixed number of clusters",
    ),
}


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb score``."""
    add_store(parser)
    parser.add_argument(
        "labels", metavar="LABELS", help="labels written by fit or predict"
    )
    parser.add_argument(
        "--classes",
        metavar="FILE",
        help="known classes, one per row: CSV, Parquet or a Zarr array "
        "(default: the classes in DATA)",
    )
    parser.add_argument(
        "--label-column",
        dest="class_column",
        metavar="NAME",
        help="column with the classes in FILE, or in LABELS without --classes",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model of the fit; its scaling of the columns is used for J (default: the "
        "scaling is chosen from these rows)",
    )
    parser.add_argument(
        "--random-state",
        type=int,
        default=0,
        metavar="SEED",
        help="random seed of the sample for J (default: 0)",
    )
    add_table(parser, without="label_column")


def run(arguments: Arguments) -> Report:
    """Return scores of the clusters."""
    from mmcnb.stores.matched_labels import labels_of_rows

    samples, rows = _rows(arguments)
    labels = labels_of_rows(arguments.labels, None, samples)
    classes = _classes(arguments, samples)
    clusters, counts = np.unique(labels, return_counts=True)
    report = attributes(arguments, "store", "labels")
    report |= attributes(samples, "n_samples", "n_features")
    report["sizes"] = dict(
        zip(map(str, clusters.tolist()), counts.tolist(), strict=True)
    )
    if classes is not None:
        report |= _agreement(classes, labels)
    return report | _separation(arguments, rows, labels)


def _rows(arguments: Arguments) -> tuple[Samples, Samples]:
    """Return the rows of DATA, and the same rows with the scaling of the model."""
    from mmcnb import load
    from mmcnb.estimators.given_rows import read_input

    if not arguments.model:
        samples = open_rows(arguments)
        return samples, samples
    estimator = load(arguments.model)
    samples = read_input(estimator, open_rows(arguments, estimator), reset=False)
    return samples, estimator.model_.scaled(samples)


def _classes(arguments: Arguments, samples: Samples) -> np.ndarray | None:
    """Read the known classes of the rows, or return None."""
    from mmcnb.stores.labels import stored_classes
    from mmcnb.stores.matched_labels import labels_of_rows

    if arguments.classes or arguments.class_column:
        source = arguments.classes or arguments.labels
        return labels_of_rows(source, arguments.class_column, samples)
    return stored_classes(samples)


def _agreement(classes: np.ndarray, labels: np.ndarray) -> Report:
    """Return metrics of the agreement between clusters and classes."""
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    from mmcnb import metrics

    class_codes = np.unique(classes, return_inverse=True)[1]
    label_codes = np.unique(labels, return_inverse=True)[1]
    common = metrics.matched_confusion(classes, labels)
    class_sizes = common.sum(axis=1).to_numpy()
    cluster_sizes = common.sum(axis=0).to_numpy()
    # Jaccard index |A and B| / |A or B| of each class A and cluster B
    jaccard = common / (np.add.outer(class_sizes, cluster_sizes) - common)
    return {
        "balanced_error": metrics.balanced_clustering_error(classes, labels),
        "adjusted_rand_index": metrics.adjusted_rand_index(classes, labels),
        "adjusted_mutual_information": adjusted_mutual_info_score(
            class_codes, label_codes
        ),
        "normalized_mutual_information": normalized_mutual_info_score(
            class_codes, label_codes
        ),
        "confusion": {
            "counts": common.to_numpy(),
            "classes": common.index,
            "clusters": common.columns,
        },
        "by_class": {
            "best": jaccard.idxmax(axis=1),
            "Jaccard": jaccard.max(axis=1),
        },
    }


def _separation(arguments: Arguments, rows: Samples, labels: np.ndarray) -> Report:
    """Return the objective J of the labels, or the reason why it cannot be computed."""
    from mmcnb import partition_score

    scale = None if arguments.model else "auto"
    try:
        score = partition_score(
            rows, labels, scale=scale, random_state=arguments.random_state
        )
    except InputError as error:
        return {"J": None, "no_J": str(error)}
    return {"J": score.J}


def lines(report: Report) -> Lines:
    """Format the scores as text."""
    n = report["n_samples"]
    yield f"{n:,} rows x {report['n_features']:,} features of {report['store']}"
    shares = [
        f"{name}: {size:,} ({size / n:.1%})" for name, size in report["sizes"].items()
    ]
    yield f"cluster sizes  {', '.join(shares)}"
    for name, (form, meaning) in MEASURES.items():
        if report.get(name) is not None:
            value = form.format(report[name])
            yield f"{name.replace('_', ' '):<31}{value:>6}  ({meaning})"
    if report["J"] is None:
        yield f"J: not computed; {report['no_J']}"
    if "confusion" not in report:
        yield "no known classes: the store has none; give them with --classes FILE"
        return
    import pandas as pd

    confusion = report["confusion"]
    counts = pd.DataFrame(
        confusion["counts"], index=confusion["classes"], columns=confusion["clusters"]
    )
    counts = counts.map("{:,}".format)
    by_class = pd.DataFrame(report["by_class"]).round(2)
    both = pd.concat([counts, by_class], axis=1)
    both = both.rename_axis(index=None, columns="class / cluster")
    yield both.to_string(max_rows=20, max_cols=20)  # --json prints the whole table
