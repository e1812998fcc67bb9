"""Cluster the rows of a store and write the model, and the labels where wanted."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mmcnb.cli._common import add_dask, add_limits, add_overwrite, add_store, number_or_name, words
from mmcnb.cli._memory import peak_memory
from mmcnb.cli._outputs import check_paths, whole_outputs

if TYPE_CHECKING:
    from mmcnb import SparseKernelMMC

# Options that are parameters of the estimator under the same name; one that is not given keeps the
# estimator's own default, so that no default is written twice.
PARAMETERS: dict[str, dict[str, Any]] = {
    "gamma": {"type": number_or_name, "help": 'kernel width: a number, "auto", "mean", "median" or "scale"'},
    "C": {"type": float, "help": "final C of the continuation"},
    "n_init": {"type": int, "metavar": "N", "help": "starts tried on the sample"},
    "n_landmarks": {"type": int, "metavar": "N", "help": "basis vectors of the model"},
    "sample_size": {"type": int, "metavar": "ROWS", "help": "rows of the sample the starts are tried on"},
    "scale": {"choices": ["standard"], "help": "scale the columns inside the stream"},
    "basis": {"choices": ["landmarks", "shared", "own"], "help": "where the basis vectors come from"},
    "kernel": {"help": "kernel function, such as rbf or linear"},
    "balance": {"type": float, "help": "allowed imbalance l/n, in the form scaled by rho"},
    "min_share": {
        "type": float,
        "metavar": "SHARE",
        "help": "least share of a cluster, as a fraction of 1/2",
    },
    "random_state": {"type": int, "metavar": "SEED", "help": "seed: the same seed gives the same labels"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mmcnb fit``."""
    add_store(parser)
    parser.add_argument("--model", required=True, help="where the model is written")
    parser.add_argument("--labels", help="Zarr array the labels are written to, one integer a row, from 0")
    for name, options in PARAMETERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    add_limits(parser)
    add_dask(parser)
    parser.add_argument(
        "--checkpoint",
        metavar="FOLDER",
        help="folder that keeps how far the fit has come: the same command again goes on from there",
    )
    add_overwrite(parser)
    parser.add_argument("--verbose", action="store_true", help="tell what the fit does as it does it")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit, then write the model and the labels."""
    if arguments.verbose:
        logging.basicConfig(level=logging.INFO, format="mmcnb: %(message)s")
    outputs = [path for path in (arguments.model, arguments.labels) if path is not None]
    sources, overwrite = [arguments.store], arguments.overwrite
    if arguments.checkpoint is not None:
        from mmcnb.engine import is_finished

        check_paths([arguments.checkpoint], sources)
        sources.append(arguments.checkpoint)
        # The outputs that are there are those of the command that is given again.
        overwrite = overwrite or is_finished(arguments.checkpoint)
    with whole_outputs(outputs, sources, overwrite) as asides:
        return _fit(arguments, *asides)


def _fit(arguments: argparse.Namespace, model: str, labels: str | None = None) -> dict[str, Any]:
    from mmcnb import SparseKernelMMC, open_samples
    from mmcnb.engine import connected
    from mmcnb.estimators import ClusterWarning

    warnings.simplefilter("ignore", ClusterWarning)  # the verdict says it
    estimator = SparseKernelMMC(**_parameters(arguments), verbose=int(sys.stderr.isatty()))
    samples = open_samples(arguments.store, arguments.element)
    if not samples.checksummed:
        _warn_unchecked(samples.name)
    started = time.perf_counter()
    with connected(arguments.dask):  # one cluster for the fit and the labels
        estimator.fit_model(samples)
        fitted = time.perf_counter()
        if labels is not None:
            estimator.predict(samples, out=labels)
    estimator.set_params(verbose=0)  # the progress bar belongs to this terminal and not to the model
    estimator.save(model)
    finished = time.perf_counter()
    return {
        "store": arguments.store,
        "n_samples": samples.n_samples,
        "n_features": samples.n_features,
        **_verdict(estimator),
        "fit_seconds": fitted - started,
        "labels_seconds": finished - fitted if labels is not None else None,
        "rows_per_second": samples.n_samples / (finished - started),
        "peak_memory_bytes": peak_memory(),
        "model": arguments.model,
        "labels": arguments.labels,
        "checkpoint": arguments.checkpoint,
    }


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Word the verdict."""
    from mmcnb.engine import format_bytes

    yield f"{report['n_samples']:,} rows x {report['n_features']:,} features of {report['store']}"
    if report["sizes"] is not None:
        shares = (f"{size:,} ({size / sum(report['sizes']):.1%})" for size in report["sizes"])
        yield f"cluster sizes    {', '.join(shares)}"
    yield f"gamma            {words(report['gamma'])}"
    yield f"objective        {words(report['objective'])}"
    yield f"|w|              {words(report['w_norm'])}; random labels give {words(report['w_norm_random'])}"
    for warning in report["warnings"]:
        yield f"warning          {warning}"
    yield f"seconds          {report['fit_seconds']:.1f} to fit" + (
        f", {report['labels_seconds']:.1f} to label all rows" if report["labels"] else ""
    )
    yield f"speed            {report['rows_per_second']:,.0f} rows/s"
    yield f"peak memory      {format_bytes(report['peak_memory_bytes'])}"
    if report["checkpoint"]:
        yield f"checkpoint       {report['checkpoint']}; {report['resumed']} sweeps were taken from it"
    yield f"model            {report['model']}"
    if report["labels"]:
        yield f"labels           {report['labels']}"


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in (*PARAMETERS, "memory_limit", "checkpoint")}
    given |= {"n_jobs": arguments.jobs, "engine": arguments.dask}
    return {name: value for name, value in given.items() if value is not None}


def _verdict(estimator: SparseKernelMMC) -> dict[str, Any]:
    report = estimator.report_
    return {
        "sizes": report.get("sizes"),
        "gamma": report.get("gamma"),
        "objective": estimator.objective_,
        "w_norm": report.get("w_norm"),
        "w_norm_random": report.get("w_norm_random"),
        "score": report.get("score"),
        "gap": report.get("gap"),
        "converged": estimator.converged_,
        "passes": int((estimator.history_["stage"] == "all rows").sum()),
        "resumed": int(estimator.history_["resumed"].sum()),
        "warnings": list(report.get("warnings", ())),
    }


def _warn_unchecked(name: str) -> None:
    warnings.warn(
        f"{name} has no checksums, so a damaged byte would pass as a number; "
        f'"mmcnb convert {name} OUT.zarr" writes a store that is checked.',
        stacklevel=1,
    )
