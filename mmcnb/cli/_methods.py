"""The methods of a fit: the parameters of the default one are options, and ``--set`` takes those of any."""

import argparse
import ast
import inspect
from typing import Any, NoReturn

from mmcnb.errors import InputError

METHODS = {
    "maximum-margin-clustering": "MaximumMarginClustering",
    "sparse-kernel-mmc": "SparseKernelMMC",
    "crammer-singer-mmc": "CrammerSingerMMC",
    "unsupervised-rls": "UnsupervisedRLS",
    "evolutionary-mmc": "EvolutionaryMMC",
    "multiple-kernel-clustering": "MultipleKernelClustering",
    "kernel-kmeans": "KernelKMeans",
    "cpmmc": "CPMMC",
    "kernel-cpmmc": "KernelCPMMC",
}
DEFAULT, CLASSIFIER = "maximum-margin-clustering", "support-cluster-machine"
OPTIONS = (
    *("n_clusters", "kernel", "loss", "cluster_sizes", "size_tolerance", "min_share", "max_clusters"),
    *("n_refits", "scale", "random_state"),
)
RUNTIME = ("memory_limit", "n_jobs", "engine")  # options of several verbs


def method_name(text: str) -> str:
    """Read the name of a method; the classifier is none."""
    if text == CLASSIFIER:
        raise argparse.ArgumentTypeError(
            f"{text} is a classifier, which needs the class of each row; use mmcnb.SupportClusterMachine "
            "from Python"
        )
    return text


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
        return [value_of(part.strip()) for part in text.split(",")] if "," in text else text
    return list(value) if isinstance(value, tuple) else value


def setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} has no value; write name=value, such as n_init=3")
    return name, value_of(value)


class MethodHelp(argparse.Action):
    """Print the help of a verb, then the parameters of the method named before it."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any) -> NoReturn:
        parameters = (inspect.getdoc(estimator_class(namespace.method)) or "").split("----------\n")[1]
        shown = parameters.partition("\nmemory_limit :")[0].partition("\n\n")[0]
        print(f"{parser.format_help()}\nparameters of {namespace.method}, for --set:\n\n{shown}")
        parser.exit()


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add ``--method``, ``--set`` and the options of the default method."""
    parser.add_argument("-h", "--help", action=MethodHelp, nargs=0, help="show this message, and stop")
    help_ = f'how rows are clustered (default: {DEFAULT}); "--method M --help" lists the parameters of M'
    parser.add_argument("--method", type=method_name, choices=METHODS, default=DEFAULT, help=help_)
    settings: dict[str, Any] = {"action": "append", "type": setting, "default": [], "metavar": "NAME=VALUE"}
    help_ = "a parameter of the method: n_init=3, gamma=median, cluster_sizes=0.5,0.3,0.2; repeatable"
    parser.add_argument("--set", **settings, help=help_)
    of_default = parser.add_argument_group("parameters with an option of their own")
    for name in OPTIONS:
        option = f"--{name.replace('_', '-')}"
        of_default.add_argument(option, type=value_of, metavar="VALUE", default=argparse.SUPPRESS)


def make_estimator(arguments: argparse.Namespace, **others: Any) -> Any:
    """Make the estimator that the arguments of `add_method` ask for, with further parameters.

    Raises
    ------
    InputError
        If the method has no such parameter, or fewer than two clusters are asked for.
    """
    method, named = arguments.method, vars(arguments)
    given = {name: named[name] for name in OPTIONS if name in named} | dict(arguments.set)
    n_clusters = given.get("n_clusters", 2)
    if isinstance(n_clusters, int) and n_clusters < 2:  # the estimators take 1, as scikit-learn's checks ask
        raise InputError(f"n_clusters={n_clusters} is out of range; give at least 2.")
    if n_clusters == 2 and "n_clusters" not in parameters_of(method):
        given.pop("n_clusters", None)  # it finds two, and has no such parameter
    for name in given.keys() - parameters_of(method):
        able = [other for other in METHODS if name in parameters_of(other)][:4]
        remedy = f"choose --method {' or '.join(able)}" if able else f'see "--method {method} --help"'
        raise InputError(f"{method} has no parameter {name}; leave it out, or {remedy}.")
    return estimator_class(method)(**given, **runtime_of(arguments), **others)


def estimator_class(method: str) -> Any:
    """The class of a method."""
    import mmcnb

    return getattr(mmcnb, METHODS[method])


def parameters_of(method: str) -> set[str]:
    """Names of the parameters that ``--set`` takes: all but those that say how a fit runs."""
    from mmcnb.estimators.parameters import RUNTIME_NAMES

    return set(inspect.signature(estimator_class(method)).parameters).difference(RUNTIME_NAMES)


def runtime_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that say how a fit runs, as far as they are given."""
    return {name: value for name in RUNTIME if (value := getattr(arguments, name, None)) is not None}
