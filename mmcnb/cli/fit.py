"""Cluster the rows of a store and write the model, and the labels where wanted."""

import argparse
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from mmcnb._machine import peak_memory
from mmcnb.cli._common import add_options, add_store, words
from mmcnb.cli._methods import add_method, as_options, make_estimator, option_names
from mmcnb.cli._outputs import check_ending, check_paths, whole_outputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb fit``."""
    add_store(parser)
    parser.add_argument("--model", required=True, help="where the model is written")
    add_options(parser, "labels")
    add_method(parser)
    add_options(parser, "memory-limit", "jobs", "dask")
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="folder that keeps how far the fit has come: the same command again goes on from there",
    )
    add_options(parser, "overwrite")
    parser.add_argument("--verbose", action="store_true", help="tell what the fit does as it does it")


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
    with option_names(), whole_outputs(outputs, sources, overwrite) as asides:
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
    kept = _recorded_passes(arguments)
    started, compiled = times()  # a clock that stands still while something is compiled
    estimator.fit_model(samples, out=labels)
    estimator.set_params(verbose=0)  # the progress belongs to this command and not to the model
    estimator.save(model)
    finished, total = times()
    labels_seconds = estimator.report_.get("labels_seconds")
    return {
        "store": arguments.store,
        "method": arguments.method,
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        **_verdict(estimator),
        "fit_seconds": finished - started - (labels_seconds or 0.0),
        "compile_seconds": total - compiled,
        "labels_seconds": labels_seconds,
        "rows_per_second": samples.n_samples / (finished - started),
        "peak_memory_bytes": peak_memory(),
        "model": arguments.model,
        "labels": arguments.labels,
        "checkpoint": arguments.checkpoint,
        "resumed": kept,
        "recorded": _recorded_passes(arguments),
    }


def _recorded_passes(arguments: argparse.Namespace) -> int:
    """Passes in the checkpoint; 0 without one."""
    from mmcnb.engine.checkpoint import recorded_passes

    return recorded_passes(arguments.checkpoint) if arguments.checkpoint else 0


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the verdict."""
    from mmcnb._config import format_bytes

    yield f"{report['n_samples']:,} rows x {report['n_features']:,} features of {report['store']}"
    yield from _sizes(report)
    for name in ("kernel", "loss"):
        if report[name] is not None:
            yield f"{name:<17}{report[name]}"
    yield from _evidence(report)
    if report["gamma"] is not None:
        yield f"gamma            {words(report['gamma'])}"
    for name, weight in zip(report["kernel_names"] or (), report["kernel_weights"] or (), strict=True):
        yield f"kernel weight    {weight:.3f}  {name}"
    yield f"objective        {words(report['objective'])}"
    if report["w_norm"] is not None:
        random = words(report["w_norm_random"])
        yield f"|w|              {words(report['w_norm'])}; random labels give {random}"
    for warning in report["warnings"]:
        yield f"warning          {as_options(warning)}"
    yield f"seconds          {report['fit_seconds']:.1f} to fit" + (
        f", {report['labels_seconds']:.1f} to label all rows" if report["labels"] else ""
    )
    if report["compile_seconds"] >= 0.1:
        yield f"compiling        {report['compile_seconds']:.1f} s, once; the next fit needs none"
    yield f"speed            {report['rows_per_second']:,.0f} rows/s"
    yield f"peak memory      {format_bytes(report['peak_memory_bytes'])}"
    if report["checkpoint"]:
        taken = f"{report['resumed']} of {report['recorded']} passes were taken from it"
        yield f"checkpoint       {report['checkpoint']}; {taken}"
    yield f"model            {report['model']}"
    if report["labels"]:
        yield f"labels           {report['labels']}"


def _evidence(report: dict[str, Any]) -> Iterator[str]:
    """Why this kernel and this number of clusters, and how far to trust them."""
    if report["choice"]:
        yield f"choice           {report['choice']}"
    if report["numbers"]:
        signs = {one["n_clusters"]: one for one in report["numbers"]}
        taken = signs[report["n_clusters"]]
        yield (
            f"number           {report['n_clusters']} of {min(signs)} to {max(signs)}: searches agree by "
            f"{taken['agreement']:.2g}, weakest valley {taken['weakest_valley']:.2g}"
        )
    if report["trust"]:
        yield f"trust            {report['trust']['level']}: {report['trust']['reason']}"


def _sizes(report: dict[str, Any]) -> Iterator[str]:
    """The sizes of all rows, or of the sample where a fit has seen no others."""
    sizes, where = report["sizes"], ""
    if sizes is None:
        sizes = report["sample_sizes"]
        where = f" of a sample of {sum(sizes):,} rows"
    shares = ", ".join(f"{size:,} ({size / sum(sizes):.1%})" for size in sizes)
    yield f"cluster sizes    {shares}{where}"


def _verdict(estimator: Any) -> dict[str, Any]:
    report, history = estimator.report_, estimator.history_
    weights = getattr(estimator, "kernel_weights_", None)
    return {
        **dict.fromkeys(("sizes", "sample_sizes", "kernel", "loss", "choice", "numbers", "trust")),
        **dict.fromkeys(("gamma", "w_norm", "w_norm_random", "score", "gap")),
        **report,
        "kernel_names": getattr(estimator, "kernel_names_", None),
        "kernel_weights": weights if weights is None else weights.tolist(),
        "n_clusters": getattr(estimator, "n_clusters_", None),
        "objective": estimator.objective_,
        "converged": estimator.converged_,
        "passes": int((history["stage"] == "all rows").sum()),
    }
