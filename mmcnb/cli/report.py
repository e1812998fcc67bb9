"""Write a page about clusters: trust, sentences, columns, a map, candidates and settings."""

from mmcnb.cli import explain
from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_options
from mmcnb.cli._outputs import whole_outputs


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb report``."""
    explain.add_arguments(parser)
    parser.add_argument(
        "--out",
        required=True,
        metavar="PAGE",
        help="path of the page, such as page.html",
    )
    add_options(parser, "overwrite")


def run(arguments: Arguments) -> Report:
    """Write the page."""
    from mmcnb import config, load

    sources = [
        arguments.model,
        arguments.store,
        *([arguments.labels] if arguments.labels else []),
    ]
    outputs = whole_outputs([arguments.out], sources, arguments.overwrite)
    # By settings of the process, as the page shows the parameters of the fit alone.
    with outputs as (page,), config(**runtime_of(arguments)):
        load(arguments.model).write_report(
            arguments.store, page, arguments.labels, element=arguments.element
        )
    return {"page": arguments.out}


def lines(report: Report) -> Lines:
    """Word the place of the page."""
    yield f"{report['page']}: open it in a browser"
