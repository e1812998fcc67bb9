"""Options of ``fit`` and ``plan`` for the clustering method and its parameters.

The parameters of the default method have options of their own, such as
``--n-clusters``. The option ``--set`` accepts the parameters of any method.
"""

import argparse
import inspect
from typing import Any, NoReturn

import mmcnb
from mmcnb.errors import InputError
from mmcnb.estimators.methods import DEFAULT, METHODS, OPTIONS, value_of

# Help on values that the documentation of the parameters shows as Python objects.
HELP = {
    "n_clusters": "a number such as 5, or a range such as 5,30",
    "scale": "auto, standard, None, or the scaling of single columns, such as "
    "\"{'income': 'log', 'age': None}\"",
}


def setting(text: str) -> tuple[str, Any]:
    """Parse the argument ``name=value`` of ``--set``, and return name and value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no value; write name=value, such as n_init=3"
        )
    return name, value_of(value)


class MethodHelp(argparse.Action):
    """Argparse action for ``--help`` that also prints the parameters of the method."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object
    ) -> NoReturn:
        docstring = inspect.getdoc(estimator_class(namespace.method)) or ""
        parameters = docstring.split("----------\n")[1].partition("\n\n")[0]
        # Leave out memory_limit and the following parameters, which are runtime
        # parameters and have options of their own.
        parameters = parameters.partition("\nmemory_limit :")[0]
        print(parser.format_help())
        print(f"parameters of {namespace.method}, for --set:\n\n{parameters}")
        parser.exit()


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add ``--method``, ``--set`` and the options of the default method."""
    parser.add_argument(
        "-h", "--help", action=MethodHelp, nargs=0, help="show this help and exit"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default=DEFAULT,
        help=f"clustering method (default: {DEFAULT}); "
        '"--method M --help" lists the parameters of M',
    )
    parser.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the method, such as n_init=3, gamma=median or "
        "cluster_sizes=0.5,0.3,0.2; can be repeated",
    )
    group = parser.add_argument_group("parameters with a separate option")
    for name in OPTIONS:
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=value_of,
            metavar="VALUE",
            default=argparse.SUPPRESS,
            help=HELP.get(name),
        )


def make_estimator(arguments: argparse.Namespace, **runtime: Any) -> Any:
    """Create the estimator that the command-line arguments request.

    Parameters
    ----------
    arguments : argparse.Namespace
        Parsed arguments of the command, including those of `add_method`.
    **runtime
        Additional runtime parameters of the estimator, such as ``verbose``.

    Returns
    -------
    estimator
        Unfitted estimator.

    Raises
    ------
    InputError
        If the method does not have one of the parameters, or if a value is invalid
        for any rows.
    """
    method = arguments.method
    known = parameters_of(method)
    options = vars(arguments)
    parameters = {name: options[name] for name in OPTIONS if name in options}
    parameters |= dict(arguments.set)
    if parameters.get("n_clusters") == 2 and "n_clusters" not in known:
        del parameters["n_clusters"]  # the method always finds two clusters
    for name in parameters.keys() - known:
        methods = [other for other in METHODS if name in parameters_of(other)]
        if methods:
            remedy = f"--method {' or '.join(methods[:4])}"
        else:
            remedy = f"one of {', '.join(sorted(known))}"
        raise InputError(
            f"{method} has no parameter {name}; leave it out, or choose {remedy}."
        )
    known_class = estimator_class(method)
    estimator = known_class(**parameters, **runtime_of(arguments), **runtime)
    # A fit would also check the parameters, but only after it has opened the rows and
    # issued warnings about them.
    estimator._check_parameters()
    return estimator


def estimator_class(method: str) -> Any:
    """Return the estimator class of a method."""
    return getattr(mmcnb, METHODS[method])


def parameters_of(method: str) -> set[str]:
    """Return the names of the parameters of a method, except runtime parameters."""
    from mmcnb.estimators.parameters import RUNTIME_NAMES

    names = inspect.signature(estimator_class(method)).parameters
    return set(names).difference(RUNTIME_NAMES)


def runtime_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the runtime parameters that are set on the command line, by name."""
    runtime = {}
    for name in ("memory_limit", "n_jobs", "engine"):
        value = getattr(arguments, name, None)
        if value is not None:
            runtime[name] = value
    return runtime
