"""Cluster the rows of a store and write the model, and the labels if wanted."""

import argparse
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from mmcnb._machine import peak_memory
from mmcnb.cli._common import add_options, add_store, words
from mmcnb.cli._methods import add_method, make_estimator
from mmcnb.cli._outputs import check_ending, check_paths, whole_outputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb fit``."""
    add_store(parser)
    parser.add_argument("--model", required=True, help="path of the model")
    add_options(parser, "labels")
    add_method(parser)
    add_options(parser, "memory-limit", "jobs", "dask")
    folder = "checkpoint folder: the same command again resumes from there"
    parser.add_argument("--checkpoint", metavar="FOLDER", help=folder)
    add_options(parser, "overwrite")
    parser.add_argument("--verbose", action="store_true", help="log each step of the fit")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit, then write the model and the labels."""
    if arguments.verbose:
        logging.basicConfig(level=logging.INFO, format="mmcnb: %(message)s")
    if arguments.labels is not None:
        check_ending(arguments.labels)
    outputs = [path for path in (arguments.model, arguments.labels) if path is not None]
    sources, overwrite = [arguments.store], arguments.overwrite
    if arguments.checkpoint is not None:
        from mmcnb.engine.checkpoint import is_finished

        check_paths([arguments.checkpoint], sources)
        sources.append(arguments.checkpoint)
        # The outputs that are there are those of the command that is given again.
        overwrite = overwrite or is_finished(arguments.checkpoint)
    with whole_outputs(outputs, sources, overwrite) as asides:
        return _fit(arguments, *asides)


def _fit(arguments: argparse.Namespace, model: str, labels: str | None = None) -> dict[str, Any]:
    from sklearn.exceptions import ConvergenceWarning, EfficiencyWarning

    from mmcnb import open_samples
    from mmcnb._compiling import times
    from mmcnb.errors import ClusterWarning

    for category in (ClusterWarning, ConvergenceWarning, EfficiencyWarning):  # the verdict says it
        warnings.simplefilter("ignore", category)
    estimator = make_estimator(arguments, checkpoint=arguments.checkpoint, verbose=1)
    samples = open_samples(arguments.store, arguments.element)
    if not samples.checksummed:
        warnings.warn(
            f"{samples.name} has no checksums, so a damaged byte would pass as a number; "
            f'"mmcnb convert {samples.name} OUT.zarr" writes a store that is checked.',
            stacklevel=1,
        )
    resumed = _recorded_passes(arguments)
    started, compiled = times()  # a clock that stands still while something is compiled
    estimator.fit_model(samples, out=labels)
    estimator.set_params(verbose=0)  # the progress belongs to this command and not to the model
    estimator.save(model)
    finished, total = times()
    labels_seconds = estimator.report_.get("labels_seconds")
    return {
        **{name: getattr(arguments, name) for name in ("store", "method", "model", "labels", "checkpoint")},
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        **_verdict(estimator),
        "fit_seconds": finished - started - (labels_seconds or 0.0),
        "compile_seconds": total - compiled,
        "labels_seconds": labels_seconds,
        "rows_per_second": samples.n_samples / (finished - started),
        "peak_memory_bytes": peak_memory(),
        "resumed": resumed,
        "recorded": _recorded_passes(arguments),
    }


def _recorded_passes(arguments: argparse.Namespace) -> int:
    """Passes in the checkpoint; 0 without one."""
    from mmcnb.engine.checkpoint import recorded_passes

    return recorded_passes(arguments.checkpoint) if arguments.checkpoint else 0


def _verdict(estimator: Any) -> dict[str, Any]:
    weights = getattr(estimator, "kernel_weights_", None)
    return {
        **dict.fromkeys(("sizes", "sample_sizes", "kernel", "loss", "choice", "numbers", "trust")),
        **dict.fromkeys(("gamma", "w_norm", "w_norm_random", "score", "gap")),
        **estimator.report_,
        "kernel_names": getattr(estimator, "kernel_names_", None),
        "kernel_weights": weights if weights is None else weights.tolist(),
        "n_clusters": getattr(estimator, "n_clusters_", None),
        "objective": estimator.objective_,
        "converged": estimator.converged_,
        "passes": int((estimator.history_["stage"] == "all rows").sum()),
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the verdict."""
    yield f"{report['n_samples']:,} rows x {report['n_features']:,} features of {report['store']}"
    yield from (f"{name:<17}{text}" for name, text in _entries(report) if text)


def _entries(report: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Names and texts of the lines; those without text are left out."""
    from mmcnb._config import format_bytes

    yield "cluster sizes", _sizes(report)
    yield from ((name, report[name]) for name in ("kernel", "loss", "choice"))
    yield "number", report["numbers"] and _number(report)
    yield "trust", report["trust"] and f"{report['trust']['level']}: {report['trust']['reason']}"
    yield "gamma", None if report["gamma"] is None else words(report["gamma"])
    for name, weight in zip(report["kernel_names"] or (), report["kernel_weights"] or (), strict=True):
        yield "kernel weight", f"{weight:.3f}  {name}"
    yield "objective", words(report["objective"])
    if report["w_norm"] is not None:
        yield "|w|", f"{words(report['w_norm'])}; random labels give {words(report['w_norm_random'])}"
    yield from (("warning", warning) for warning in report["warnings"])
    of_labels = f", {report['labels_seconds']:.1f} to label all rows" if report["labels"] else ""
    yield "seconds", f"{report['fit_seconds']:.1f} to fit{of_labels}"
    if report["compile_seconds"] >= 0.1:
        yield "compiling", f"{report['compile_seconds']:.1f} s, once; the next fit needs none"
    yield "speed", f"{report['rows_per_second']:,.0f} rows/s"
    yield "peak memory", format_bytes(report["peak_memory_bytes"])
    if report["checkpoint"]:
        taken = f"{report['resumed']} of {report['recorded']} passes were taken from it"
        yield "checkpoint", f"{report['checkpoint']}; {taken}"
    yield from ((name, report[name]) for name in ("model", "labels"))


def _number(report: dict[str, Any]) -> str:
    """Why this number of clusters."""
    tried = {one["n_clusters"]: one for one in report["numbers"]}
    taken = tried[report["n_clusters"]]
    return (
        f"{report['n_clusters']} of {min(tried)} to {max(tried)}: searches agree by "
        f"{taken['agreement']:.2g}, weakest valley {taken['weakest_valley']:.2g}"
    )


def _sizes(report: dict[str, Any]) -> str:
    """The sizes of all rows, or of the sample if the fit has seen no others."""
    sizes = report["sizes"] or report["sample_sizes"]
    shares = ", ".join(f"{size:,} ({size / sum(sizes):.1%})" for size in sizes)
    return shares if report["sizes"] else f"{shares} of a sample of {sum(sizes):,} rows"
