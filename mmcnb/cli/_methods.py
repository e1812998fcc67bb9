"""The methods a fit can use, and their parameters as options."""

import argparse
import inspect
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from mmcnb.cli._common import number_or_name
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
NAMED = 4  # methods that a refusal lists at most
CLASSIFIER = "support-cluster-machine"
SETTING = {"rbf": "gamma", "poly": "degree"}  # what may stand behind the name of a kernel


def method_name(text: str) -> str:
    """Read the name of a method; the one that is no clusterer is told apart."""
    if text == CLASSIFIER:
        raise argparse.ArgumentTypeError(
            f"{text} is a classifier, which needs the class of each row; use mmcnb.SupportClusterMachine "
            "from Python"
        )
    return text


def shares_or_name(text: str) -> list[float] | str:
    """Read shares such as ``.5,.3,.2``, and leave a name as it is.

    Parameters
    ----------
    text : str
        What stands on the command line.

    Returns
    -------
    list of float or str
    """
    if "," not in text:
        return text
    try:
        return [float(share) for share in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no shares; write them like .5,.3,.2") from None


def count_or_auto(text: str) -> int | str:
    """Read a number of clusters, and leave "auto" as it is."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of clusters; give one, or "auto"') from None


def kernels_or_name(text: str) -> list[Any] | str:
    """Read kernels such as ``linear,poly:2,rbf:0.5,rbf:median``, and leave "auto" as it is.

    Parameters
    ----------
    text : str
        What stands on the command line.

    Returns
    -------
    list or str
        As `MultipleKernelClustering` takes kernels.
    """
    if text == "auto":
        return text
    from mmcnb.features.base_kernels import check_base_kernels

    kernels = [_kernel(word.strip()) for word in text.split(",")]
    try:
        check_base_kernels(kernels, None)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
    return kernels


def _kernel(word: str) -> str | tuple[str, dict[str, Any]]:
    name, colon, value = word.partition(":")
    if colon and value and name in SETTING:
        return name, {SETTING[name]: number_or_name(value)}
    if word not in (*SETTING, "linear"):
        shape = "linear, rbf, rbf:GAMMA, poly or poly:DEGREE"
        raise argparse.ArgumentTypeError(
            f"{word!r} is no kernel; give {shape}, such as linear,poly:2,rbf:0.5,rbf:median"
        )
    return word


def _takes(kind: Any, metavar: str, text: str) -> dict[str, Any]:
    return {"type": kind, "metavar": metavar, "help": text}


def _yes_or_no(text: str) -> dict[str, Any]:
    return {"action": argparse.BooleanOptionalAction, "help": text}


# Options that are parameters of the estimators under the same name; one that is not given keeps the
# estimator's own default, so that no default is written twice.
PARAMETERS: dict[str, dict[str, Any]] = {
    "n_clusters": _takes(
        count_or_auto, "K", 'clusters to find, at least 2; "auto" chooses (maximum-margin-clustering)'
    ),
    "max_clusters": _takes(int, "K", "most clusters that --n-clusters auto tries"),
    "n_refits": _takes(int, "N", "fits to parts of the sample, for the confidence of rows"),
    "gamma": {"type": number_or_name, "help": 'kernel width: a number, "auto", "mean", "median" or "scale"'},
    "kernels": _takes(
        kernels_or_name,
        "LIST",
        "kernels whose combination is learned, such as linear,poly:2,rbf:0.5,rbf:median: a number "
        'is the degree of "poly" and the gamma of "rbf"; or "auto"',
    ),
    "C": {"type": float, "help": "final C of the continuation"},
    "threshold": {
        "choices": ["adaptive", "fixed"],
        "help": "of the margin: a variable, or 1 as in the papers",
    },
    "alpha": {"type": number_or_name, "help": "ridge a row, above 0, of the least squares methods"},
    "n_init": _takes(int, "N", "starts tried on the sample"),
    "n_landmarks": _takes(int, "N", "basis vectors of the model"),
    "sample_size": _takes(int, "ROWS", "rows of the sample the starts are tried on"),
    "cluster_sizes": _takes(
        shares_or_name,
        "SIZES",
        'sizes to hold: "equal", or a share for each cluster such as .5,.3,.2',
    ),
    "size_tolerance": _takes(float, "SHARE", "how far held sizes may lie from theirs"),
    "search": {"choices": ["shaking", "steepest", "stochastic"], "help": "local search on the sample"},
    "max_iter": _takes(int, "N", "most passes of kernel-kmeans, or rounds of label-generation-mmc"),
    "max_passes": _takes(int, "N", "passes over all rows after the sample"),
    "scale": {"choices": ["standard"], "help": "scale the columns inside the stream"},
    "basis": {
        "help": 'where the basis vectors come from: "landmarks"; "shared" of sparse-kernel-mmc; '
        '"exact" of multiple-kernel-clustering'
    },
    "kernel": {"help": "kernel, such as graph, rbf or linear"},
    "degree": _takes(int, "N", "degree of the polynomial kernel"),
    "coef0": {"type": float, "help": "constant of the polynomial kernel"},
    "loss": {
        "help": '"auto", "hinge" or "squared" of maximum-margin-clustering; "epsilon_insensitive" or '
        '"hinge" of iterative-svr'
    },
    "balance": {"type": float, "help": "allowed imbalance l/n, in the form scaled by rho"},
    "min_share": _takes(float, "SHARE", "least share of a cluster, as a fraction of an equal one"),
    "init": {"help": 'kind of starts, such as "mixed", "random" or "k-means"'},
    "eta": {"type": float, "help": "tolerance of the cutting-plane loop"},
    "max_rounds": _takes(int, "N", "most rounds over labels"),
    "continuation": _yes_or_no("raise C from near 1 to its value"),
    "schedule": {"choices": ["mixed", "paper"], "help": "steps of the search of unsupervised-rls"},
    "tol": {"type": float, "help": "the iterations end below this relative change"},
    "algorithm": {"choices": ["full", "mini-batch"], "help": "passes of kernel-kmeans"},
    "epsilon": {"type": float, "help": "half the width of the tube without loss of iterative-svr"},
    "centre": _yes_or_no("centre the kernel of evolutionary-mmc"),
    "n_parents": _takes(int, "N", "parents of a generation of evolutionary-mmc"),
    "n_offspring": _takes(int, "N", "children of a generation of evolutionary-mmc"),
    "max_generations": _takes(int, "N", "most generations of evolutionary-mmc"),
    "patience": _takes(int, "N", "generations without a surviving child that end evolutionary-mmc"),
    "random_state": _takes(int, "SEED", "seed: the same seed gives the same labels"),
}
ELSEWHERE = {"n_jobs": "jobs", "memory_limit": "memory-limit", "engine": "dask"}  # options of all verbs


def add_method(parser: argparse.ArgumentParser, *parameters: str) -> None:
    """Add ``--method`` and the options of some parameters, of all where none is named."""
    default = next(iter(METHODS))
    shared: dict[str, Any] = {"default": default, "help": f"default: {default}"}
    parser.add_argument("--method", type=method_name, choices=METHODS, **shared)
    for name in parameters or PARAMETERS:
        parser.add_argument(_option(name), **PARAMETERS[name])


def make_estimator(arguments: argparse.Namespace, **others: Any) -> Any:
    """Make the estimator that the arguments ask for.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `add_method` read.
    **others
        Further parameters; those that are None keep their default.

    Returns
    -------
    estimator
        Not fitted.

    Raises
    ------
    InputError
        If the method has no such option, or fewer than two clusters are asked for.
    """
    named = {name: getattr(arguments, name, None) for name in PARAMETERS} | others
    given = {name: value for name, value in named.items() if value is not None} | limits_of(arguments)
    n_clusters: Any = given.get("n_clusters", 2)
    # The estimators take 1, for the sake of scikit-learn's checks.
    if n_clusters != "auto" and n_clusters < 2:
        raise InputError(f"--n-clusters {n_clusters} is out of range; give at least 2.")
    if n_clusters == 2 and "n_clusters" not in _parameters_of(arguments.method):
        given.pop("n_clusters", None)  # it finds two, and has no such parameter
    for name in given:
        if name not in _parameters_of(arguments.method):
            able = [method for method in METHODS if name in _parameters_of(method)]
            lacks = f"--method {arguments.method} has no {_option(name)}"
            raise InputError(f"{lacks}; leave it out, or choose --method {' or '.join(able[:NAMED])}.")
    return estimator_class(arguments.method)(**given)


def estimator_class(method: str) -> Any:
    """The class of a method."""
    import mmcnb

    return getattr(mmcnb, METHODS[method])


def _parameters_of(method: str) -> Collection[str]:
    return inspect.signature(estimator_class(method)).parameters


def limits_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of all estimators that options of the same verb name otherwise, where they are given."""
    named = {name: getattr(arguments, option.replace("-", "_"), None) for name, option in ELSEWHERE.items()}
    return {name: value for name, value in named.items() if value is not None}


@contextmanager
def option_names() -> Iterator[None]:
    """Complaints name options instead of the parameters they stand for."""
    try:
        yield
    except InputError as error:
        raise type(error)(as_options(str(error))) from error


def _option(name: str) -> str:
    return f"--{ELSEWHERE.get(name, name).replace('_', '-')}"


def as_options(sentence: str) -> str:
    """``sample_size=5`` as ``--sample-size 5``; a word such as "scale" stays one where it has no value."""
    for name in (*PARAMETERS, *ELSEWHERE):
        sentence = re.sub(rf"(?<![\w/.-]){name}=", f"{_option(name)} ", sentence)
        if "_" in name:
            sentence = re.sub(rf"(?<![\w/.-]){name}(?![\w/]|\.\w)", _option(name), sentence)
    return sentence
