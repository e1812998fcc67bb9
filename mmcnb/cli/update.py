"""Add the rows of a table or a store to a saved model; clusters keep their numbers."""

from mmcnb._fit_warnings import collected_warnings
from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import (
    Arguments,
    Lines,
    Parser,
    Report,
    add_model,
    add_options,
    add_store,
    add_table,
)
from mmcnb.cli._outputs import whole_outputs
from mmcnb.cli._rows import open_rows
from mmcnb.cli._words import checkpoint_in_words, table, warnings_elsewhere
from mmcnb.errors import InputError
from mmcnb.estimators.methods import METHODS


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb update``."""
    add_model(parser)
    add_store(parser)
    add_options(parser, "labels", "table")
    parser.add_argument(
        "--out",
        metavar="MODEL2",
        help="path of the new model (default: replace MODEL)",
    )
    add_table(parser, without="label_column")
    add_options(parser, "memory-limit", "jobs", "dask", "checkpoint", "overwrite")


def run(arguments: Arguments) -> Report:
    """Update the model, write the outputs, and return the report."""
    from mmcnb import load
    from mmcnb.engine.checkpoint import recorded_passes

    old = arguments.model
    new = arguments.out or old
    store = arguments.store
    outputs = whole_outputs(
        [store] if new == old else [store, old],
        arguments.overwrite,
        new,
        arguments.labels,
        arguments.table,
        replaced=old,
    )
    resumed = recorded_passes(arguments.checkpoint) if arguments.checkpoint else 0
    elsewhere = warnings_elsewhere(new)
    with collected_warnings(elsewhere) as collected, outputs as paths:
        estimator = load(old)
        if not hasattr(estimator, "update"):
            kind = type(estimator).__name__
            method = next(method for method, name in METHODS.items() if name == kind)
            raise InputError(
                f"{old} is a {kind}, which cannot be updated; fit all rows with "
                f"`mmcnb fit DATA --method {method} --model {old} --overwrite`."
            )
        estimator.set_params(
            **runtime_of(arguments), checkpoint=arguments.checkpoint, verbose=1
        )
        samples = open_rows(arguments, estimator)
        estimator.update(samples)
        if paths.labels is not None:
            estimator.predict(samples, paths.labels)
        if paths.table is not None:
            estimator.label_table(samples, paths.table)
        estimator.report_["warnings"] = collected.sentences
        estimator.save(paths.output)
    report = {"store": store, "model": new, "labels": arguments.labels}
    report["table"] = arguments.table
    report["in_place"] = new == old
    report |= {"checkpoint": arguments.checkpoint, "resumed": resumed}
    for name in ("sizes", "noise", "changes", "warnings"):
        report[name] = estimator.report_.get(name)
    return report


def lines(report: Report) -> Lines:
    """Format the report as text, with a line for the change of each cluster."""
    entries = report | dict.fromkeys(("changes", "resumed", "warnings", "in_place"))
    if report["in_place"]:
        entries["model"] = f"{report['model']} (replaced by the updated model)"
    folder = report["checkpoint"]
    if folder:
        entries["checkpoint"] = checkpoint_in_words(folder, report["resumed"])
    for change in report["changes"]:
        outcome = dict(change)
        entries[f"cluster {outcome.pop('number')}"] = outcome
    return table(entries)
