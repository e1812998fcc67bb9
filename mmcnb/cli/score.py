"""Compare the clusters of a store with known classes, and tell how well they separate the rows."""

from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_store
from mmcnb.errors import InputError

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
        "without classes: the larger, the wider the gap; beside as many clusters",
    ),
}


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb score``."""
    add_store(parser)
    parser.add_argument(
        "labels", metavar="LABELS", help="labels that fit or predict wrote"
    )
    classes = "known classes: CSV, Parquet or a Zarr array, one a row (default: those that STORE keeps)"
    parser.add_argument("--classes", metavar="FILE", help=classes)
    column = "column of the classes, of FILE or otherwise of LABELS"
    parser.add_argument("--label-column", metavar="NAME", help=column)
    scale = "model of the fit: J is of columns as it scales them (default: as these rows ask for)"
    parser.add_argument("--model", metavar="MODEL", help=scale)
    parser.add_argument(
        "--random-state",
        type=int,
        default=0,
        metavar="SEED",
        help="seed of J (default: 0)",
    )


def run(arguments: Arguments) -> Report:
    """Score the clusters."""
    import numpy as np
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    from mmcnb import load, metrics, open_samples, partition_score
    from mmcnb.estimators.base import read_input
    from mmcnb.stores.label_table import labels_of_rows
    from mmcnb.stores.labels import stored_classes

    if arguments.model:
        estimator = load(arguments.model)
        samples = read_input(
            estimator, arguments.store, reset=False, element=arguments.element
        )
        rows = estimator.model_.scaled(samples)
        scale = None
    else:
        rows = samples = open_samples(arguments.store, arguments.element)
        scale = "auto"
    labels = labels_of_rows(arguments.labels, None, samples)
    source = arguments.classes or arguments.labels
    is_given = arguments.classes or arguments.label_column
    classes = (
        labels_of_rows(source, arguments.label_column, samples)
        if is_given
        else stored_classes(samples)
    )
    clusters, counts = np.unique(labels, return_counts=True)
    report = {
        **{name: getattr(arguments, name) for name in ("store", "labels")},
        **{name: getattr(samples, name) for name in ("n_samples", "n_features")},
        "sizes": dict(zip(map(str, clusters.tolist()), counts.tolist(), strict=True)),
    }
    if classes is not None:
        codes = [
            np.unique(values, return_inverse=True)[1] for values in (classes, labels)
        ]
        table = metrics.matched_confusion(classes, labels)
        either = (
            np.add.outer(table.sum(axis=1).to_numpy(), table.sum(axis=0).to_numpy())
            - table
        )
        jaccard = table / either
        report |= {
            "balanced_error": metrics.balanced_clustering_error(classes, labels),
            "adjusted_rand_index": metrics.adjusted_rand_index(classes, labels),
            "adjusted_mutual_information": adjusted_mutual_info_score(*codes),
            "normalized_mutual_information": normalized_mutual_info_score(*codes),
            "confusion": {
                "counts": table.to_numpy(),
                "classes": table.index,
                "clusters": table.columns,
            },
            "by_class": {
                "best": jaccard.idxmax(axis=1),
                "Jaccard": jaccard.max(axis=1),
            },
        }
    try:
        score = partition_score(
            rows, labels, scale=scale, random_state=arguments.random_state
        )
        return report | {"J": score.J}
    except InputError as error:
        return report | {"J": None, "no_J": str(error)}


def lines(report: Report) -> Lines:
    """Word the scores."""
    n = report["n_samples"]
    yield f"{n:,} rows x {report['n_features']:,} features of {report['store']}"
    shares = (
        f"{name}: {size:,} ({size / n:.1%})" for name, size in report["sizes"].items()
    )
    yield f"cluster sizes  {', '.join(shares)}"
    for name, (form, meaning) in MEASURES.items():
        if report.get(name) is not None:
            value = form.format(report[name])
            yield f"{name.replace('_', ' '):<31}{value:>6}  ({meaning})"
    if report["J"] is None:
        yield f"J: none; {report['no_J']}"
    if "confusion" not in report:
        yield "no known classes: the store keeps none; give them with --classes FILE"
        return
    import pandas as pd

    table = pd.DataFrame(*report["confusion"].values())
    both = pd.concat(
        [table.map("{:,}".format), pd.DataFrame(report["by_class"]).round(2)], axis=1
    )
    both = both.rename_axis(index=None, columns="class / cluster")
    yield both.to_string(max_rows=20, max_cols=20)  # --json has them all
