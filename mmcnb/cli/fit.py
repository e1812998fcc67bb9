"""Cluster the rows of a table or a store, and write the outputs."""

import logging
from collections.abc import Iterator

from mmcnb._compiling import times
from mmcnb._config import format_bytes
from mmcnb._fit_warnings import (
    CollectedWarnings,
    Importance,
    collected_warnings,
    warn,
)
from mmcnb._machine import peak_memory
from mmcnb.cli._methods import add_method, make_estimator
from mmcnb.cli._options import (
    Arguments,
    Lines,
    Parser,
    Report,
    add_options,
    add_store,
    add_table,
    attributes,
)
from mmcnb.cli._outputs import (
    STANDARD_OUTPUT,
    Outputs,
    check_paths,
    whole_outputs,
)
from mmcnb.cli._rows import check_is_there, open_rows
from mmcnb.cli._words import (
    checkpoint_in_words,
    listed,
    warnings_elsewhere,
    words,
)
from mmcnb.errors import InputError
from mmcnb.estimators.methods import DEFAULT

OF_ALL = (
    "n_clusters",
    "objective",
    "converged",
    "n_changed",
    "candidate",
    "kernel",
    "kernel_names",
    "kernel_weights",
)
OF_SOME_METHODS = (
    "sizes",
    "sample_sizes",
    "noise",
    "dropped",
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
    parser.add_argument("--model", help="path of the model file to write")
    add_options(parser, "labels", "table")
    parser.add_argument(
        "--layers",
        action="store_true",
        help="also write a column of labels for each layer; layers split the rows into "
        "more or fewer clusters",
    )
    parser.add_argument(
        "--like",
        metavar="MODEL",
        help="number the clusters like the clusters of this model file",
    )
    add_method(parser)
    add_table(parser, without="label_column")
    add_options(parser, "memory-limit", "jobs", "dask", "checkpoint", "overwrite")
    parser.add_argument(
        "--verbose", action="store_true", help="log each step of the fit"
    )


def run(arguments: Arguments) -> Report:
    """Fit a model, write the outputs, and return the report."""
    if arguments.verbose:
        logging.basicConfig(level=logging.INFO, format="mmcnb: %(message)s")
    sources = [arguments.store]
    overwrite = arguments.overwrite
    if arguments.checkpoint is not None:
        from mmcnb.engine.checkpoint import is_finished

        check_paths([arguments.checkpoint], sources)
        sources.append(arguments.checkpoint)
        # The same command has written the existing outputs, and is run again.
        overwrite = overwrite or is_finished(arguments.checkpoint)
    if arguments.like:
        sources.append(arguments.like)
    _check_outputs(arguments)
    outputs = whole_outputs(
        sources, overwrite, arguments.model, arguments.labels, arguments.table
    )
    elsewhere = warnings_elsewhere(arguments.model)
    with collected_warnings(elsewhere) as collected, outputs as paths:
        return _fit(arguments, paths, collected)


def _check_outputs(arguments: Arguments) -> None:
    """Raise InputError if nothing would be written, or if options are incompatible."""
    wanted = [arguments.model, arguments.labels, arguments.table]
    if wanted == [None, None, None]:
        check_is_there(arguments.store)  # or the next attempt would fail here
        raise InputError(
            "nothing would be written; give --labels OUT.csv, or --model FILE, or, "
            "for a table, --table OUT.csv."
        )
    for option in ("layers", "like"):
        if getattr(arguments, option) and arguments.method != DEFAULT:
            raise InputError(
                f"--{option} applies to {DEFAULT} only, not to {arguments.method}; "
                "leave it out."
            )
    labels = str(arguments.labels).lower()
    is_table = labels == STANDARD_OUTPUT or labels.endswith((".csv", ".parquet"))
    if arguments.layers and not is_table:
        raise InputError(
            "--layers needs a table of labels; give --labels OUT.csv or OUT.parquet."
        )


def _fit(arguments: Arguments, paths: Outputs, collected: CollectedWarnings) -> Report:
    """Fit a model, write the outputs to ``paths``, and return the report."""
    from mmcnb import load
    from mmcnb.engine.checkpoint import recorded_passes
    from mmcnb.estimators.like import number_like, read_like
    from mmcnb.samples.zarr import is_zarr
    from mmcnb.stores.report import unchecked

    estimator = make_estimator(arguments, checkpoint=arguments.checkpoint, verbose=1)
    samples = open_rows(arguments)
    if paths.table is not None:
        from mmcnb.estimators.label_tables import check_label_table

        check_label_table(samples, paths.table)
    earlier = None
    if arguments.like:
        like = load(arguments.like)
        earlier = read_like(like, open_rows(arguments, like))
    if is_zarr(samples.root) and not samples.checksummed:
        warn(unchecked(samples), Importance.ADVICE)
    resumed = recorded_passes(arguments.checkpoint) if arguments.checkpoint else 0
    started = times()[0]  # a clock without the time of compilation
    if arguments.layers or earlier is not None:
        estimator.fit_model(samples)
        if earlier is not None:
            number_like(estimator, samples, earlier)
        if paths.labels is not None:
            layer = {"layer": "all"} if arguments.layers else {}
            estimator.predict(samples, out=paths.labels, **layer)
    else:
        estimator.fit_model(samples, out=paths.labels)
    if paths.table is not None:
        estimator.label_table(samples, out=paths.table)
    estimator.report_["warnings"] = collected.sentences
    estimator.set_params(verbose=0)  # the model file does not store this setting
    if paths.output is not None:
        estimator.save(paths.output)
    seconds = times()[0] - started
    report = dict.fromkeys(OF_SOME_METHODS) | estimator.report_
    names = ("store", "method", "model", "labels", "table", "checkpoint")
    report |= attributes(arguments, *names)
    report |= attributes(samples, "n_samples", "n_features")
    for name in OF_ALL:
        report[name] = getattr(estimator, f"{name}_", None)
    return report | {
        "passes": int((estimator.history_["stage"] == "all rows").sum()),
        "fit_seconds": seconds - (report["labels_seconds"] or 0.0),
        "rows_per_second": samples.n_samples / seconds,
        "peak_memory_bytes": peak_memory(),
        "resumed": resumed,
        "is_table": samples.encoding is not None,
    }


def lines(report: Report) -> Lines:
    """Format the report as text."""
    n_samples = f"{report['n_samples']:,} rows"
    yield f"{n_samples} x {report['n_features']:,} features of {report['store']}"
    if report["is_table"]:
        yield from listed(report["columns"])
    for name, text in _entries(report):
        if text:
            yield f"{name:<17}{text}"


def _entries(report: Report) -> Iterator[tuple[str, str | None]]:
    """Yield the name and the text of each line of the report.

    The text is None or empty if a fact does not apply; `lines` skips such facts.
    """
    yield "columns", report["scaling"]
    yield "cluster sizes", _sizes(report)
    yield "candidate", report["candidate"]
    if report["noise"]:
        yield "noise", f"{words(report['noise'])} rows, labelled -1"
    for cluster in report["dropped"] or ():
        yield "dropped", f"{cluster['share']:.1%} of the rows: {cluster['reason']}"
    if report["number"]:
        yield "number", report["number"]["reason"]
    yield from _partitions(report)
    if report["trust"]:
        yield "trust", f"{report['trust']['level']}: {report['trust']['reason']}"
    if report["gamma"]:
        yield "gamma", words(report["gamma"])
    for number, name in enumerate(report["kernel_names"] or ()):
        yield "kernel weight", f"{report['kernel_weights'][number]:.3f}  {name}"
    yield "objective", words(report["objective"])
    if report["w_norm"] is not None:
        random = words(report["w_norm_random"])
        yield "|w|", f"{words(report['w_norm'])}; random labels give {random}"
    yield from _resources(report)
    yield "model", report["model"]
    yield "labels", report["labels"]
    yield "table", report["table"]


def _resources(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the lines about time, memory and the checkpoint."""
    seconds = f"{report['fit_seconds']:.1f} to fit"
    if report["labels_seconds"]:
        seconds += f", {report['labels_seconds']:.1f} to label all rows"
    yield "seconds", seconds
    compiling = report["compile_seconds"]
    if compiling >= 0.1:
        yield "compiling", f"{compiling:.1f} s, once; the next fit needs none"
    yield "speed", f"{report['rows_per_second']:,.0f} rows/s"
    yield "peak memory", format_bytes(report["peak_memory_bytes"])
    folder = report["checkpoint"]
    if folder:
        yield "checkpoint", checkpoint_in_words(folder, report["resumed"])


def _partitions(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the lines about layers and changed clusters."""
    for layer in report["layers"] or ():
        k = layer["n_clusters"]
        n_found = layer["persistence"]
        parts = [_counted(k, "cluster")]
        if n_found:
            parts.append(f"found at {_counted(n_found, 'resolution')}")
        if k > 1:
            parts.append(f"the smallest of about {layer['smallest']:,} rows")
        if layer["taken"]:
            parts.append("selected")
        yield "layer", ", ".join(parts)
    for change in report["changes"] or ():
        rows = f"{words(change['before'])} rows before and {words(change['after'])} now"
        yield "cluster", f"{change['number']}: {change['change']}, {rows}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _sizes(report: Report) -> str:
    """Format the sizes of the clusters in all rows or, if unknown, in the sample."""
    sizes = report["sizes"] or report["sample_sizes"]
    shares = ", ".join(f"{size:,} ({size / sum(sizes):.1%})" for size in sizes)
    return shares if report["sizes"] else f"{shares} of a sample of {sum(sizes):,} rows"
