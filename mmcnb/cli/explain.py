"""Explain the clusters: columns, typical rows, sentences, rules and a tree."""

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
from mmcnb.cli._rows import open_rows


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb explain``."""
    add_model(parser)
    add_store(parser)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="labels of the rows, written by fit or predict "
        "(default: the model labels the rows)",
    )
    parser.add_argument(
        "--meta",
        metavar="TABLE",
        help="table with one row for each row of DATA; the columns of this table "
        "explain the clusters (default: the columns of DATA)",
    )
    add_table(parser, without="label_column")
    add_options(parser, "memory-limit", "jobs", "dask")


def run(arguments: Arguments) -> Report:
    """Return the explanation of the clusters of a model."""
    from mmcnb import load

    estimator = load(arguments.model).set_params(**runtime_of(arguments), verbose=1)
    rows = open_rows(arguments, estimator)
    explanation = estimator.explain(rows, arguments.labels, meta=arguments.meta)
    return explanation.to_dict()


def lines(report: Report) -> Lines:
    """Yield a sentence and a rule for each cluster, and the tree."""
    for cluster in report["clusters"]:
        yield cluster["sentence"]
    if report["rules"]:
        yield ""
        yield "Rules:"
    for rule in report["rules"]:
        yield rule["sentence"]
    if report["tree"]:
        yield ""
        yield "Tree:"
        yield from report["tree"]["text"].splitlines()
