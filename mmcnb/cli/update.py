"""Take the rows of a store into an existing model; clusters keep their numbers."""

from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import (
    Arguments,
    Lines,
    Parser,
    Report,
    add_model,
    add_options,
    add_store,
)
from mmcnb.cli._outputs import whole_outputs
from mmcnb.cli._words import table
from mmcnb.errors import InputError


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb update``."""
    add_model(parser)
    add_store(parser)
    add_options(parser, "labels", "table")
    parser.add_argument(
        "--out",
        metavar="MODEL2",
        help="path of the new model (default: it replaces MODEL)",
    )
    add_options(parser, "memory-limit", "jobs", "dask", "checkpoint", "overwrite")


def run(arguments: Arguments) -> Report:
    """Update the model, then write it, and the labels of the new rows."""
    from mmcnb import load

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
    with outputs as paths:
        estimator = load(old)
        if not hasattr(estimator, "update"):
            raise InputError(
                f"{old} has a {type(estimator).__name__}, which takes no new rows; "
                "fit all rows."
            )
        estimator.set_params(
            **runtime_of(arguments), checkpoint=arguments.checkpoint, verbose=1
        )
        estimator.update(store, element=arguments.element)
        if paths.labels is not None:
            estimator.predict(store, paths.labels, element=arguments.element)
        if paths.table is not None:
            estimator.label_table(store, paths.table, element=arguments.element)
        estimator.save(paths.output)
    report = {"store": store, "model": new, "labels": arguments.labels}
    report["table"] = arguments.table
    for name in ("sizes", "noise", "changes"):
        report[name] = estimator.report_.get(name)
    return report


def lines(report: Report) -> Lines:
    """Word what became of each number."""
    entries = report | {"changes": None}
    for change in report["changes"]:
        outcome = dict(change)
        entries[f"cluster {outcome.pop('number')}"] = outcome
    return table(entries)
