"""Describe a store, the columns of a table, or a model."""

from pathlib import Path

from mmcnb.cli import convert
from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_store, add_table
from mmcnb.cli._rows import options_of_tables
from mmcnb.cli._words import table, words


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb info``."""
    add_store(parser, help="a Zarr store, a table, or a model file")
    add_table(parser)


def run(arguments: Arguments) -> Report:
    """Describe the store, the columns of the table, or the fit of the model."""
    from mmcnb.features.model import is_model
    from mmcnb.samples.formats import table_format
    from mmcnb.stores import describe_store

    store = arguments.store
    options = options_of_tables(arguments)
    is_local = "://" not in store
    if is_local and table_format(Path(store)) and not arguments.element:
        from mmcnb.tables.open import describe_table
        from mmcnb.tables.options import named_options

        return describe_table(store, named_options({"missing": "neighbors"} | options))
    if is_local and is_model(store):
        return _describe_model(store)
    return describe_store(store, arguments.element)


def _describe_model(path: str) -> Report:
    """Return the class and parameters of a model, and the report of its fit."""
    from mmcnb import load

    estimator = load(path)
    fit = {
        "model": path,
        "estimator": " ".join(str(estimator).split()),
        "n_features": estimator.n_features_in_,
    }
    return fit | estimator.report_


def lines(report: Report) -> Lines:
    """Format the description of a store, a table or a model."""
    if "estimator" not in report:
        yield from convert.lines(report)
        return
    from mmcnb.engine.fit_report import verdict

    facts = {name: report[name] for name in ("model", "estimator", "n_features")}
    facts["cluster sizes"] = words(report["sizes"]) if report.get("sizes") else None
    for title, text in verdict(report | {"warnings": []}).items():
        facts[title.lower()] = text or None
    yield from table(facts)
    for warning in report["warnings"]:
        yield f"warning: {warning}"
