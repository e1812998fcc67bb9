"""Compare the clusters of a store with known classes, and tell how well they part the rows."""

import argparse
from collections.abc import Iterator
from typing import Any

from mmcnb.cli._common import add_store
from mmcnb.errors import InputError

MOST_SHOWN = 20  # classes and clusters of a confusion that is printed; --json has them all
MEASURES = {
    "balanced_error": "mean error rate of the classes, each matched to one cluster",
    "adjusted_rand_index": "1 is perfect, 0 is chance",
    "normalized_mutual_information": "1 is perfect",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb score``."""
    add_store(parser)
    labels = "file that mmcnb fit or predict wrote with --labels: .csv, .parquet or Zarr"
    parser.add_argument("labels", metavar="LABELS", help=labels)
    classes = "known classes: CSV, Parquet or a Zarr array, one a row (default: those that STORE keeps)"
    parser.add_argument("--classes", metavar="FILE", help=classes)
    column = "column of the classes, of FILE or otherwise of LABELS"
    parser.add_argument("--label-column", metavar="NAME", help=column)
    rows = "rows of the sample for the silhouette (default: %(default)s)"
    parser.add_argument("--sample-size", type=int, default=5000, metavar="ROWS", help=rows)
    scale = "scale the columns for the silhouette, as a fit with this option did"
    parser.add_argument("--scale", choices=["standard"], help=scale)
    parser.add_argument("--random-state", type=int, default=0, metavar="SEED", help="seed of that sample")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Score the clusters."""
    import numpy as np

    from mmcnb import open_samples
    from mmcnb.metrics import sampled_silhouette
    from mmcnb.stores._label_table import read_values

    samples = open_samples(arguments.store, arguments.element)
    labels = _one_a_row(read_values(arguments.labels), arguments.labels, samples)
    clusters, counts = np.unique(labels, return_counts=True)
    report = {
        "store": arguments.store,
        "labels": arguments.labels,
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        "sizes": dict(zip(map(str, clusters.tolist()), counts.tolist(), strict=True)),
    }
    classes = _classes(arguments, samples)
    if classes is not None:
        report |= _against(classes, labels)
    report |= {"silhouette": None, "silhouette_rows": min(arguments.sample_size, samples.n_samples)}
    try:
        given = {name: getattr(arguments, name) for name in ("sample_size", "scale", "random_state")}
        return report | {"silhouette": sampled_silhouette(samples, labels, **given), "no_silhouette": None}
    except InputError as error:
        return report | {"no_silhouette": str(error)}


def _classes(arguments: argparse.Namespace, samples: Any) -> Any:
    """The known classes, one a row; None if there are none."""
    from mmcnb.stores._label_table import read_values
    from mmcnb.stores._labels import stored_classes

    if arguments.classes is None and arguments.label_column is None:
        return stored_classes(samples)
    source = arguments.classes or arguments.labels
    return _one_a_row(read_values(source, arguments.label_column), source, samples)


def _one_a_row(values: Any, source: str, samples: Any) -> Any:
    if len(values) != samples.n_samples:
        raise InputError(
            f"{source} has {len(values):,} rows and {samples.name} has {samples.n_samples:,}; give one label "
            "a row, in the order of the rows."
        )
    if values.dtype.kind == "f" and (values % 1).any():
        raise InputError(
            f"{source} has labels such as {values[values % 1 != 0][0]:g}; give whole numbers or names."
        )
    _check_names(source, samples)
    return values


def _check_names(source: str, samples: Any) -> None:
    """Refuse a table whose rows have other names than those of the store, if both have names."""
    import numpy as np

    from mmcnb.stores import open_index
    from mmcnb.stores._label_table import read_names

    given, kept = read_names(source), open_index(samples)
    if given is None or kept is None:
        return
    text = np.dtypes.StringDType()
    other = given.astype(text) != kept.astype(text)
    if other.any():
        row = int(other.argmax())
        raise InputError(
            f"{source} has other rows than {samples.name}: row {row} is {given[row]}, not {kept[row]}; give "
            "the labels of these rows, in their order."
        )


def _against(classes: Any, labels: Any) -> dict[str, Any]:
    """The measures against known classes."""
    import numpy as np
    from sklearn.metrics import normalized_mutual_info_score

    from mmcnb.metrics import adjusted_rand_index, balanced_clustering_error, matched_confusion

    confusion = matched_confusion(classes, labels)
    codes = (np.unique(values, return_inverse=True)[1] for values in (classes, labels))
    named = {"classes": confusion.index, "clusters": confusion.columns, "counts": confusion.to_numpy()}
    return {
        "balanced_error": float(balanced_clustering_error(classes, labels)),
        "adjusted_rand_index": float(adjusted_rand_index(classes, labels)),
        "normalized_mutual_information": float(normalized_mutual_info_score(*codes)),
        "confusion": {name: values.tolist() for name, values in named.items()},
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the scores."""
    n = report["n_samples"]
    yield f"{n:,} rows x {report['n_features']:,} features of {report['store']}"
    shares = (f"{name}: {size:,} ({size / n:.1%})" for name, size in report["sizes"].items())
    yield f"cluster sizes  {', '.join(shares)}"
    if "confusion" in report:
        for name, meaning in MEASURES.items():
            value = f"{report[name]:.1%}" if name == "balanced_error" else f"{report[name]:.3f}"
            yield f"{name.replace('_', ' '):<31}{value:>6}  ({meaning})"
    else:
        yield "no known classes: the store keeps none; give them with --classes FILE"
    if report["silhouette"] is None:
        yield f"silhouette: none; {report['no_silhouette']}"
    else:
        rows = f"of {report['silhouette_rows']:,} rows; -1 to 1, high if clusters are round and apart"
        yield f"{'silhouette':<31}{report['silhouette']:>6.3f}  ({rows})"
    if "confusion" in report:
        yield from _table(**report["confusion"])


def _table(classes: list[Any], clusters: list[Any], counts: list[list[int]]) -> Iterator[str]:
    """Rows of each class in each cluster, the matched ones on the diagonal."""
    import pandas as pd

    if max(len(classes), len(clusters)) > MOST_SHOWN:
        yield f"confusion of {len(classes)} classes and {len(clusters)} clusters: see --json"
        return
    table = pd.DataFrame(counts, classes, pd.Index(clusters, name="class / cluster"))
    yield table.map("{:,}".format).to_string()
