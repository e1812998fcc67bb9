"""Parameters of estimators: declaration, valid values, and checkpoints."""

import numbers
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils import check_random_state

from mmcnb._config import check_verbose, generator, n_threads, parse_bytes
from mmcnb._constraints import Choice, Constraint, Interval, IntervalOr, Parsed
from mmcnb._docstrings import fill_docstrings
from mmcnb.engine.checkpoint import Checkpoint, check_folder, environment
from mmcnb.engine.entries import fingerprint
from mmcnb.errors import InputError, shown
from mmcnb.features.bandwidth import GAMMA_NAMES, default_gamma
from mmcnb.features.kernel import KERNELS, Kernel
from mmcnb.features.nystroem import check_landmarks
from mmcnb.hinge.cccp import greatest_balance
from mmcnb.hinge.starts import INITS
from mmcnb.least_squares.objective import target_shares
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Matrix
from mmcnb.samples.paths import checked_path, output_path

if TYPE_CHECKING:
    from mmcnb.estimators.base import Estimator, StreamedClusterer

BASES = "mmcnb.estimators.base"  # the module of the classes with shared parameters
Class = TypeVar("Class")


SCALES = ("auto", "standard")


class Scale:
    """Constraint of ``scale``: None, a name, or a mapping from columns to scalings."""

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if the value is invalid."""
        if not isinstance(value, Mapping):
            if value is None or (isinstance(value, str) and value in SCALES):
                return
            raise InputError(
                f"{name}={shown(value)} is unknown; choose one of None, 'auto', "
                "'standard'; or a dict such as {'income': 'log'} for single columns."
            )
        step = Interval(0.0, open_low=True, optional=True)
        treatment = Choice(("log", "standard", None))
        for column, scale in value.items():
            constraint = treatment if isinstance(scale, str) else step
            constraint.check(f"{name}[{column!r}]", scale)


class NumberOrRange:
    """Constraint of ``n_clusters``: a number, a range, "auto" or None."""

    def check(self, name: str, value: Any) -> None:
        """Raise InputError if the value is invalid."""
        if isinstance(value, str) and value != "auto":
            raise InputError(
                f"{name}={shown(value)} is not a number; "
                "pass a number such as 5, a range such as (5, 30), or 'auto'."
            )
        if not isinstance(value, tuple | list):
            return IntervalOr(COUNT, ("auto",), optional=True).check(name, value)
        if len(value) != 2:
            raise InputError(
                f"{name}={shown(value)} is not a range; "
                "pass the smallest and the largest number, as (5, 30)."
            )
        for end in value:
            COUNT.check(name, end)
        if value[0] > value[1]:
            raise InputError(
                f"{name}={shown(value)} has its limits in the wrong order; "
                f"pass ({value[1]}, {value[0]})."
            )


COUNT = Interval(1, integer=True)
POSITIVE = Interval(0.0, open_low=True)
SHARE = Interval(0.0, 1.0)
OPTIONAL_SHARE = Interval(0.0, 1.0, optional=True)
# Constraints by parameter name. The constraints of a class override these.
SHARED: Mapping[str, Constraint] = {
    **dict.fromkeys(("n_clusters", "n_init", "n_parents", "n_offspring"), COUNT),
    "degree": Interval(1, 1000, integer=True),
    **dict.fromkeys(("max_generations", "max_iter", "max_passes", "max_rounds"), COUNT),
    **dict.fromkeys(
        ("n_landmarks", "patience"), Interval(1, integer=True, optional=True)
    ),
    "sample_size": Interval(2, integer=True, optional=True),
    "landmarks": Parsed(check_landmarks),
    "kernel": Choice(KERNELS),
    "gamma": IntervalOr(POSITIVE, GAMMA_NAMES),
    "coef0": Interval(-np.inf),
    "C": Interval(1.0, open_low=True),
    "alpha": POSITIVE,
    "eta": Interval(0.0, 1.0, open_low=True),
    "tol": Interval(0.0),
    "balance": Interval(0.0, 1.0, open_high=True),
    **dict.fromkeys(("min_share", "size_tolerance"), SHARE),
    "scale": Scale(),
    **dict.fromkeys(("continuation", "centre"), Choice((True, False))),
    "init": Choice(INITS),
    "search": Choice(("shaking", "steepest", "stochastic")),
    "schedule": Choice(("mixed", "paper")),
    "threshold": Choice(("adaptive", "fixed")),
    "memory_limit": Parsed(parse_bytes),
    "n_jobs": Parsed(n_threads),
    "random_state": Parsed(generator),
    "verbose": Parsed(check_verbose, optional=False),
}
# Parameters that do not change the result; model files and checkpoints do not store
# them.
RUNTIME_NAMES = ("memory_limit", "n_jobs", "verbose", "engine", "checkpoint")


@dataclass(kw_only=True, eq=False, repr=False)
class KernelFunction:
    """Mixin with the parameters of methods that use one kernel."""

    gamma: float | str = "auto"
    kernel: Any = "rbf"
    scale: str | None = None
    degree: int = 3
    coef0: float = 1.0

    @property
    def _depends_on_origin(self) -> bool:
        return bool(self.kernel == "poly")


@dataclass(kw_only=True, eq=False, repr=False)
class CuttingPlanes:
    """Mixin with the parameters of methods that use cutting planes."""

    C: float = 10.0
    threshold: str = "adaptive"
    continuation: bool = True
    init: str = "mixed"
    n_init: int = 6
    balance: float = 0.0
    min_share: float = 0.1
    eta: float = 0.01
    max_rounds: int = 30
    tol: float = 0.0005


# Names of the parameters of `mmcnb.hinge.sample_search.search_config`.
SEARCH = tuple(CuttingPlanes.__dataclass_fields__)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Class]) -> type[Class]:
    """Decorate a class to make it an estimator with its fields as parameters.

    The shared parameters of the base classes are added after the parameters of the
    class. All parameters are keyword-only except ``n_clusters``. The parameters in the
    signature have the order of the docstring, in which ``{runtime}`` is replaced by the
    documentation of the shared parameters.
    """
    made: Any = dataclass(cls, kw_only=True, eq=False, repr=False)
    docstring = cleandoc(made.__doc__).replace("{runtime}", _shared_parameters(cls))
    made.__doc__ = docstring
    # An entry may document several parameters, such as "C, eta : float".
    entries = re.findall(r"(?m)^(\w[\w, ]*) : ", docstring)
    order = ", ".join(entries).split(", ")
    call = signature(made.__init__)
    itself, *parameters = call.parameters.values()
    parameters.sort(key=lambda parameter: order.index(parameter.name))
    parameters.insert(0, itself)
    made.__init__.__signature__ = call.replace(parameters=parameters)
    return fill_docstrings(made)


def _shared_parameters(cls: type[Class]) -> str:
    """Join the documentation of the parameters of the base classes."""
    parameters = []
    for base in reversed(cls.__mro__):
        # Python strips the indentation of docstrings from 3.13 on.
        docstring = cleandoc(base.__doc__ or "")
        if base.__module__ == BASES and "----------" in docstring:
            parameters.append(docstring.split("----------\n")[1].strip())
    return "\n".join(parameters)


def check_parameters(estimator: "Estimator") -> None:
    """Check all parameters of an estimator against the constraints of its class.

    Raises
    ------
    InputError
        If a parameter is invalid. The message gives its name and value, and the valid
        values.
    """
    constraints = {**SHARED, **estimator.constraints}
    parameters = estimator.get_params(deep=False)
    for name, value in parameters.items():
        if name in constraints:
            constraints[name].check(name, value)
    if "size_tolerance" in parameters:
        target_shares(parameters["cluster_sizes"], parameters["n_clusters"])
    if parameters.get("threshold") != "adaptive":
        return
    C = parameters["C"]
    balance = parameters["balance"]
    greatest = greatest_balance(C)
    if balance > greatest:  # the optimisation would be infeasible for some labels
        raise InputError(
            f"balance={balance:g} is infeasible with C={C:g}; "
            f"pass a balance of at most {max(0.0, greatest):.4g}, or raise C."
        )


def values_of(owner: object, *names: str) -> dict[str, Any]:
    """Return a dict of attributes, with NumPy scalars converted to Python scalars."""
    values = {}
    for name in names:
        value = getattr(owner, name)
        values[name] = value.item() if isinstance(value, np.generic) else value
    return values


def default_kernel(
    estimator: KernelFunction, sample: Matrix, weights: np.ndarray | None
) -> Kernel:
    """Return the kernel that the parameters of an estimator specify.

    If ``gamma`` is the name of a rule, its value is computed from the sample.
    """
    gamma = default_gamma(estimator.gamma, estimator.kernel, sample, weights)
    return Kernel(
        estimator.kernel, gamma, int(estimator.degree), float(estimator.coef0)
    )


def open_checkpoint(
    estimator: "StreamedClusterer",
    samples: Samples,
    weights: np.ndarray | None,
    unit: float,
    others: Mapping[str, object],
) -> AbstractContextManager[Checkpoint | None]:
    """Open the checkpoint of an estimator, for use in a ``with`` block.

    Parameters
    ----------
    estimator : StreamedClusterer
        The estimator. Its parameters are part of the identity of the fit, so that a
        checkpoint of a different fit is rejected.
    samples : Samples
        The rows.
    weights : ndarray of shape (n_samples,) or None
        Sample weights, divided by ``unit``.
    unit : float
        The sample weight that was scaled to 1.
    others : dict
        Other values that affect the result. The keys are their names in messages.

    Returns
    -------
    context manager
        Yields the checkpoint, or None if the estimator has no checkpoint folder.
    """
    folder = estimator.checkpoint
    if folder is None:
        return nullcontext()
    # Check the folder before the rows are read to compute their digest.
    checked_path(folder, "checkpoint")
    check_folder(output_path(folder))
    # Everything that affects the result. The keys are the names used in messages.
    identity: dict[str, object] = {"the estimator": type(estimator).__name__}
    identity |= estimator.get_params(deep=False)
    for name in RUNTIME_NAMES:
        identity.pop(name, None)
    identity["random_state"] = _seed(estimator.random_state)
    identity["the rows"] = {"digest": samples.digest}
    # A fit of rows in memory makes different passes than a fit of a store.
    identity["the place of the rows"] = "a store" if samples.is_reopenable else "memory"
    digest = fingerprint(weights) if unit == 1 else fingerprint(weights, unit)
    identity["the sample weights"] = {"digest": digest}
    identity |= environment()
    for name, other in others.items():
        if other is not None:
            identity[name] = {"digest": fingerprint(other)}
    return Checkpoint(folder, identity)


def _seed(random_state: object) -> int | str | None:
    """Return an integer seed unchanged, or a digest of the state of a generator."""
    if random_state is None:
        return None
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return f"RandomState {fingerprint(check_random_state(random_state).get_state())}"
