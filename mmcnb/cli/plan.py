"""Estimate the reads, memory and files of a fit without running it."""

from typing import Any

from mmcnb.cli._methods import add_method, make_estimator
from mmcnb.cli._options import (
    Arguments,
    Lines,
    Parser,
    Report,
    add_options,
    add_store,
    add_table,
)
from mmcnb.cli._rows import open_rows, options_of_tables
from mmcnb.errors import InputError


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb plan``."""
    add_store(parser, nargs="?")
    parser.add_argument("--rows", type=int, help="number of rows, if DATA is not given")
    parser.add_argument(
        "--features", type=int, help="number of features, if DATA is not given"
    )
    add_method(parser)
    add_table(parser, without="label_column")
    add_options(parser, "memory-limit", "jobs")


def run(arguments: Arguments) -> Report:
    """Return the plan of a fit."""
    from mmcnb._constraints import Interval
    from mmcnb.engine.plan import RowShape

    rows: Any = arguments.store
    n_given = 2 - [arguments.rows, arguments.features].count(None)
    if n_given != (2 if rows is None else 0):
        raise InputError("plan takes either DATA or both --rows and --features.")
    if rows is None:
        options_of_tables(arguments)  # raises InputError if a table option is given
        size = Interval(1, integer=True)
        size.check("rows", arguments.rows)
        size.check("features", arguments.features)
        rows = RowShape(arguments.rows, arguments.features)
    else:
        rows = open_rows(arguments)
    plan = make_estimator(arguments).plan(rows)
    report = {"method": arguments.method} | plan.to_dict()
    return report | {"lines": plan.lines()}


def lines(report: Report) -> Lines:
    """Return the plan as lines of text."""
    return report["lines"]
