"""State the reads, memory and files of a fit, before any work."""

from mmcnb.cli._methods import add_method, make_estimator
from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_options, add_store
from mmcnb.errors import InputError


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb plan``."""
    add_store(parser, nargs="?")
    parser.add_argument(
        "--rows", type=int, help="plan for this many rows instead of a store's"
    )
    parser.add_argument(
        "--features", type=int, help="plan for this many features instead of a store's"
    )
    add_method(parser)
    add_options(parser, "memory-limit", "jobs")


def run(arguments: Arguments) -> Report:
    """Plan the fit."""
    from mmcnb._constraints import Interval
    from mmcnb.engine.plan import RowShape

    rows = arguments.store
    sizes = {name: getattr(arguments, name) for name in ("rows", "features")}
    if sum(size is not None for size in sizes.values()) != (2 if rows is None else 0):
        raise InputError("plan takes either STORE or both --rows and --features.")
    if rows is None:
        for name, size in sizes.items():
            Interval(1, integer=True).check(name, size)
        rows = RowShape(*sizes.values())
    plan = make_estimator(arguments).plan(rows, element=arguments.element)
    return {"method": arguments.method, **plan.to_dict(), "lines": plan.lines()}


def lines(report: Report) -> Lines:
    """Word the plan."""
    return report["lines"]
