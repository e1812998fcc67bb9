"""Write an HTML page about the clusters: trust, sentences, columns, map, candidates."""

from mmcnb.cli import explain
from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_options
from mmcnb.cli._outputs import whole_outputs
from mmcnb.cli._rows import open_rows


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb report``."""
    explain.add_arguments(parser)
    parser.add_argument(
        "--out",
        required=True,
        metavar="PAGE",
        help="path of the page, such as page.html",
    )
    parser.add_argument(
        "--hide-rows",
        action="store_true",
        help="leave out the texts, dates and times in cells, the names and numbers of "
        "rows, and the path of DATA, so that the page can be shared",
    )
    add_options(parser, "overwrite")


def run(arguments: Arguments) -> Report:
    """Write the page, and return its path."""
    from mmcnb import config, load

    sources = [arguments.model, arguments.store]
    sources += filter(None, (arguments.labels, arguments.meta))
    outputs = whole_outputs(sources, arguments.overwrite, arguments.out)
    # The runtime options are set for the process instead of the estimator, because the
    # page shows the parameters of the estimator, which must be those of the fit.
    with outputs as paths, config(**runtime_of(arguments)):
        estimator = load(arguments.model)
        samples = open_rows(arguments, estimator)
        estimator.write_report(
            samples,
            paths.output,
            arguments.labels,
            meta=arguments.meta,
            hide_rows=arguments.hide_rows,
        )
    return {"page": arguments.out}


def lines(report: Report) -> Lines:
    """Return a line with the path of the page."""
    yield f"{report['page']}: open it in a browser"
