"""Cluster the rows of a store and write the model, and the labels if wanted."""

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmcnb._compiling import times
from mmcnb._config import format_bytes
from mmcnb._machine import peak_memory
from mmcnb.cli._methods import DEFAULT, add_method, make_estimator
from mmcnb.cli._options import (
    OF_TABLES,
    Arguments,
    Lines,
    Parser,
    Report,
    add_options,
    add_store,
    add_table,
)
from mmcnb.cli._outputs import check_paths, whole_outputs
from mmcnb.cli._words import listed, words
from mmcnb.errors import InputError

OF_ALL = (
    "n_clusters",
    "objective",
    "converged",
    "candidate",
    "kernel",
    "kernel_names",
    "kernel_weights",
)
OF_SOME_METHODS = (
    "sizes",
    "sample_sizes",
    "noise",
    "labels_seconds",
    "number",
    "layers",
    "trust",
    "scaling",
    "columns",
    "gamma",
    "w_norm",
    "w_norm_random",
    "score",
    "gap",
    "changes",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb fit``."""
    add_store(parser)
    parser.add_argument("--model", help="path of the model")
    add_options(parser, "labels")
    of_layers = "write one more column of labels for each layer: the rows in more or fewer clusters"
    parser.add_argument("--layers", action="store_true", help=of_layers)
    parser.add_argument(
        "--like",
        metavar="MODEL",
        help="number the clusters as those of this model file",
    )
    add_method(parser)
    add_table(parser, "label_column")
    add_options(parser, "memory-limit", "jobs", "dask", "checkpoint", "overwrite")
    parser.add_argument(
        "--verbose", action="store_true", help="log each step of the fit"
    )


def run(arguments: Arguments) -> Report:
    """Fit, then write the model and the labels."""
    if arguments.verbose:
        logging.basicConfig(level=logging.INFO, format="mmcnb: %(message)s")
    sources = [arguments.store]
    overwrite = arguments.overwrite
    if arguments.checkpoint is not None:
        from mmcnb.engine.checkpoint import is_finished

        check_paths([arguments.checkpoint], sources)
        sources.append(arguments.checkpoint)
        # The outputs that are there are those of the command that is given again.
        overwrite = overwrite or is_finished(arguments.checkpoint)
    sources += [arguments.like] if arguments.like else []
    outputs = [] if arguments.model is None else [arguments.model]
    if not outputs and arguments.labels is None:
        raise InputError(
            "nothing would be written; give --labels OUT.csv, or --model FILE, or both."
        )
    for option in ("layers", "like"):
        if getattr(arguments, option) and arguments.method != DEFAULT:
            raise InputError(
                f"--{option} is of {DEFAULT}, not of {arguments.method}; leave it out."
            )
    if arguments.layers and not str(arguments.labels).lower().endswith(
        (".csv", ".parquet")
    ):
        raise InputError(
            "--layers writes columns of a table; give --labels OUT.csv or OUT.parquet."
        )
    with whole_outputs(outputs, sources, overwrite, arguments.labels) as asides:
        return _fit(arguments, *asides if outputs else (None, *asides))


def _rows(arguments: Arguments) -> Any:
    """The rows, of a table by its options."""
    from mmcnb import open_samples
    from mmcnb.samples.text import table_format
    from mmcnb.tables.columns import TableOptions

    given = {
        name: value
        for name in OF_TABLES
        if (value := getattr(arguments, name, None)) is not None
    }
    if given and table_format(Path(arguments.store)) is None:
        option = next(iter(given)).replace("_", "-")
        fault = f"--{option} is of CSV, Parquet and Arrow files, but {arguments.store} is none"
        raise InputError(f"{fault}; leave it out.")
    return open_samples(
        arguments.store,
        arguments.element,
        options=TableOptions(**given) if given else None,
    )


def _fit(arguments: Arguments, model: str | None, labels: str | None = None) -> Report:
    from sklearn.exceptions import ConvergenceWarning, EfficiencyWarning

    from mmcnb import load
    from mmcnb.engine.checkpoint import recorded_passes
    from mmcnb.errors import ClusterWarning
    from mmcnb.estimators.like import number_like, read_like
    from mmcnb.stores.report import unchecked

    for category in (
        ClusterWarning,
        ConvergenceWarning,
        EfficiencyWarning,
    ):  # the verdict says it
        warnings.simplefilter("ignore", category)
    estimator = make_estimator(arguments, checkpoint=arguments.checkpoint, verbose=1)
    samples = _rows(arguments)
    is_later = arguments.layers or arguments.like
    earlier = (
        read_like(load(arguments.like), arguments.store, arguments.element)
        if arguments.like
        else None
    )
    if not samples.checksummed:
        warnings.warn(unchecked(samples.name), stacklevel=1)
    resumed = recorded_passes(arguments.checkpoint) if arguments.checkpoint else 0
    started = times()[0]  # a clock that stands still while something is compiled
    estimator.fit_model(samples, out=None if is_later else labels)
    if earlier is not None:
        number_like(estimator, samples, earlier)
    if is_later and labels is not None:
        estimator.predict(
            samples, out=labels, **{"layer": "all"} if arguments.layers else {}
        )
    estimator.set_params(
        verbose=0
    )  # the progress belongs to this command and not to the model
    if model is not None:
        estimator.save(model)
    seconds = times()[0] - started
    report = dict.fromkeys(OF_SOME_METHODS) | estimator.report_
    return report | {
        **{
            name: getattr(arguments, name)
            for name in ("store", "method", "model", "labels", "checkpoint")
        },
        **{name: getattr(samples, name) for name in ("n_samples", "n_features")},
        **{name: getattr(estimator, f"{name}_", None) for name in OF_ALL},
        "passes": int((estimator.history_["stage"] == "all rows").sum()),
        "fit_seconds": seconds - (report["labels_seconds"] or 0.0),
        "rows_per_second": samples.n_samples / seconds,
        "peak_memory_bytes": peak_memory(),
        "resumed": resumed,
        "is_table": samples.encoding is not None,
    }


def lines(report: Report) -> Lines:
    """Word the verdict."""
    yield f"{report['n_samples']:,} rows x {report['n_features']:,} features of {report['store']}"
    if report["is_table"]:
        yield from listed(report["columns"])
    yield from (f"{name:<17}{text}" for name, text in _entries(report) if text)


def _entries(report: Report) -> Iterator[tuple[str, str | None]]:
    """Names and texts of the lines; those without text are left out."""
    yield "columns", report["scaling"]
    yield "cluster sizes", _sizes(report)
    yield "candidate", report["candidate"]
    yield "noise", report["noise"] and f"{words(report['noise'])} rows, labelled -1"
    yield "number", report["number"] and report["number"]["reason"]
    for one in report["layers"] or ():
        found = (
            f"{one['n_clusters']} clusters, found at {one['persistence']} resolutions"
        )
        yield (
            "layer",
            f"{found}, the smallest of about {one['smallest']:,} rows{', taken' * one['taken']}",
        )
    for one in report["changes"] or ():
        rows = f"{words(one['before'])} rows before and {words(one['after'])} now"
        yield "cluster", f"{one['number']}: {one['change']}, {rows}"
    yield (
        "trust",
        report["trust"] and f"{report['trust']['level']}: {report['trust']['reason']}",
    )
    yield "gamma", report["gamma"] and words(report["gamma"])
    for number, name in enumerate(report["kernel_names"] or ()):
        yield "kernel weight", f"{report['kernel_weights'][number]:.3f}  {name}"
    yield "objective", words(report["objective"])
    if report["w_norm"] is not None:
        yield (
            "|w|",
            f"{words(report['w_norm'])}; random labels give {words(report['w_norm_random'])}",
        )
    yield from (("warning", warning) for warning in report["warnings"])
    of_labels = (
        f", {report['labels_seconds']:.1f} to label all rows"
        if report["labels_seconds"]
        else ""
    )
    yield "seconds", f"{report['fit_seconds']:.1f} to fit{of_labels}"
    if report["compile_seconds"] >= 0.1:
        yield (
            "compiling",
            f"{report['compile_seconds']:.1f} s, once; the next fit needs none",
        )
    yield "speed", f"{report['rows_per_second']:,.0f} rows/s"
    yield "peak memory", format_bytes(report["peak_memory_bytes"])
    if report["checkpoint"]:
        yield (
            "checkpoint",
            f"{report['checkpoint']}; {report['resumed']} passes were taken from it",
        )
    yield from ((name, report[name]) for name in ("model", "labels"))


def _sizes(report: Report) -> str:
    """The sizes of all rows, or of the sample if the fit has seen no others."""
    sizes = report["sizes"] or report["sample_sizes"]
    shares = ", ".join(f"{size:,} ({size / sum(sizes):.1%})" for size in sizes)
    return shares if report["sizes"] else f"{shares} of a sample of {sum(sizes):,} rows"
