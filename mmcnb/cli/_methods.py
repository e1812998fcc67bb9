"""The methods of a fit: the parameters of the default one are options, and ``--set`` takes those of any."""

import argparse
import ast
import inspect
import re
from typing import Any, NoReturn

import mmcnb
from mmcnb.errors import InputError

CLASSES = (
    "MaximumMarginClustering",
    "SparseKernelMMC",
    "CrammerSingerMMC",
    "UnsupervisedRLS",
    "EvolutionaryMMC",
    "MultipleKernelClustering",
    "KernelKMeans",
    "CPMMC",
    "KernelCPMMC",
)
METHODS = {re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower(): name for name in CLASSES}
DEFAULT = "maximum-margin-clustering"
OPTIONS = (
    "n_clusters",
    "kernel",
    "metric",
    "min_cluster_size",
    "noise",
    "n_nodes",
    "scale",
    "random_state",
)


def value_of(text: str) -> Any:
    """Read a value as Python writes it; other text stays text, or becomes a list if it has commas.

    Examples
    --------
    >>> from mmcnb.cli._methods import value_of
    >>> [value_of(text) for text in ("0.5", "median", "False", "0.5,0.3", "linear,rbf")]
    [0.5, 'median', False, [0.5, 0.3], ['linear', 'rbf']]
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return (
            [value_of(part.strip()) for part in text.split(",")]
            if "," in text
            else text
        )
    return list(value) if isinstance(value, tuple) else value


def setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no value; write name=value, such as n_init=3"
        )
    return name, value_of(value)


class MethodHelp(argparse.Action):
    """Print the help of a verb, then the parameters of the method named before it."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any
    ) -> NoReturn:
        parameters = (inspect.getdoc(estimator_class(namespace.method)) or "").split(
            "----------\n"
        )[1]
        shown = parameters.partition("\nmemory_limit :")[0].partition("\n\n")[0]
        print(
            f"{parser.format_help()}\nparameters of {namespace.method}, for --set:\n\n{shown}"
        )
        parser.exit()


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add ``--method``, ``--set`` and the options of the default method."""
    parser.add_argument(
        "-h", "--help", action=MethodHelp, nargs=0, help="show this message, and stop"
    )
    help_ = f'how rows are clustered (default: {DEFAULT}); "--method M --help" lists the parameters of M'
    parser.add_argument("--method", choices=METHODS, default=DEFAULT, help=help_)
    help_ = "a parameter of the method: n_init=3, gamma=median, cluster_sizes=0.5,0.3,0.2; repeatable"
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help=help_,
    )
    of_default = parser.add_argument_group("parameters with an option of their own")
    shared: dict[str, Any] = {
        "type": value_of,
        "metavar": "VALUE",
        "default": argparse.SUPPRESS,
    }
    for name in OPTIONS:
        of_default.add_argument(f"--{name.replace('_', '-')}", **shared)


def make_estimator(arguments: argparse.Namespace, **others: Any) -> Any:
    """Make the estimator that the arguments of `add_method` ask for, with further parameters.

    Raises
    ------
    InputError
        If the method has no such parameter.
    """
    method = arguments.method
    named = vars(arguments)
    given = {name: named[name] for name in OPTIONS if name in named} | dict(
        arguments.set
    )
    known = parameters_of(method)
    if given.get("n_clusters") == 2 and "n_clusters" not in known:
        del given["n_clusters"]  # it finds two, and has no such parameter
    for name in given.keys() - known:
        able = [other for other in METHODS if name in parameters_of(other)][:4]
        remedy = (
            f"--method {' or '.join(able)}"
            if able
            else f"one of {', '.join(sorted(known))}"
        )
        raise InputError(
            f"{method} has no parameter {name}; leave it out, or choose {remedy}."
        )
    return estimator_class(method)(**given, **runtime_of(arguments), **others)


def estimator_class(method: str) -> Any:
    """The class of a method."""
    return getattr(mmcnb, METHODS[method])


def parameters_of(method: str) -> set[str]:
    """Names of the parameters that ``--set`` takes: all but those that say how a fit runs."""
    from mmcnb.estimators.parameters import RUNTIME_NAMES

    return set(inspect.signature(estimator_class(method)).parameters).difference(
        RUNTIME_NAMES
    )


def runtime_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that say how a fit runs, as far as they are given."""
    given = {
        name: getattr(arguments, name, None)
        for name in ("memory_limit", "n_jobs", "engine")
    }
    return {name: value for name, value in given.items() if value is not None}
