"""Take the rows of a store into a model that was written before; clusters keep their numbers."""

from mmcnb.cli._methods import runtime_of
from mmcnb.cli._options import Arguments, Lines, Parser, Report, add_options, add_store
from mmcnb.cli._outputs import whole_outputs
from mmcnb.cli._words import table
from mmcnb.errors import InputError


def add_arguments(parser: Parser) -> None:
    """Add the arguments of ``mmcnb update``."""
    parser.add_argument(
        "model", metavar="MODEL", help="model file that mmcnb fit --model wrote"
    )
    add_store(parser)
    add_options(parser, "labels")
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
    out = arguments.out or arguments.model
    store = arguments.store
    given = (
        [out],
        [store, old][: 1 + (out != old)],
        arguments.overwrite,
        arguments.labels,
    )
    with whole_outputs(*given, old) as (model, *labels):
        estimator = load(old)
        if not hasattr(estimator, "update"):
            fault = f"{old} has a {type(estimator).__name__}, which takes no new rows"
            raise InputError(f"{fault}; fit all rows.")
        estimator.set_params(
            **runtime_of(arguments), checkpoint=arguments.checkpoint, verbose=1
        )
        estimator.update(store, element=arguments.element)
        for path in labels:
            estimator.predict(store, path, element=arguments.element)
        estimator.save(model)
    told = {name: estimator.report_.get(name) for name in ("sizes", "noise", "changes")}
    return {"store": store, "model": out, "labels": arguments.labels} | told


def lines(report: Report) -> Lines:
    """Word what became of each number."""
    changes = {
        f"cluster {(rest := dict(one)).pop('number')}": rest
        for one in report["changes"]
    }
    return table(report | {"changes": None} | changes)
