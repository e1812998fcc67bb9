"""Label the rows of a table or a store with a saved model."""

import time

from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import (
    Arguments,
    Parser,
    Report,
    add_model,
    add_options,
    add_store,
    add_table,
    attributes,
)
from mmcnb.cli._outputs import whole_outputs
from mmcnb.cli._rows import check_is_there, open_rows
from mmcnb.cli._words import table
from mmcnb.errors import InputError

lines = table


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb predict``."""
    add_model(parser)
    add_store(parser)
    add_options(parser, "labels", "table")
    add_table(parser, without="label_column")
    add_options(parser, "memory-limit", "jobs", "dask", "overwrite")


def run(arguments: Arguments) -> Report:
    """Label all rows, write the outputs, and return the report."""
    from mmcnb import load

    if arguments.labels is None and arguments.table is None:
        check_is_there(arguments.store)  # or the next attempt would fail here
        raise InputError(
            "nothing would be written; give --labels OUT.csv, or --table OUT.csv."
        )
    outputs = whole_outputs(
        [arguments.store, arguments.model],
        arguments.overwrite,
        labels=arguments.labels,
        table=arguments.table,
    )
    with outputs as paths:
        estimator = load(arguments.model).set_params(**runtime_of(arguments), verbose=1)
        started = time.perf_counter()
        samples = open_rows(arguments, estimator)
        if paths.labels is not None:
            estimator.predict(samples, out=paths.labels)
        if paths.table is not None:
            estimator.label_table(samples, out=paths.table)
        seconds = time.perf_counter() - started
    return {
        **attributes(arguments, "store", "model", "labels", "table"),
        "n_samples": samples.n_samples,
        "seconds": seconds,
        "rows_per_second": samples.n_samples / seconds,
    }
