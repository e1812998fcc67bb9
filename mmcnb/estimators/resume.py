"""Which fit a checkpoint belongs to."""

import numbers
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mmcnb.engine.checkpoint import Checkpoint, check_folder, environment
from mmcnb.engine.journal import fingerprint
from mmcnb.errors import InputError
from mmcnb.samples import Samples

# How a fit is done; the answer does not depend on it.
MANNER = {"n_jobs", "memory_limit", "engine", "verbose", "checkpoint"}


def open_checkpoint(
    estimator: Any, samples: Samples, weights: np.ndarray | None
) -> AbstractContextManager[Checkpoint | None]:
    """The checkpoint that an estimator was given, to be used in a ``with`` block; None where it has none."""
    folder = estimator.checkpoint
    if folder is None:
        return nullcontext()
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"checkpoint={folder!r} is no path; give the path of a folder, or None.")
    check_folder(folder)  # before the rows are read for their digest
    return Checkpoint(folder, _identity(estimator, samples, weights))


def _identity(estimator: Any, samples: Samples, weights: np.ndarray | None) -> dict[str, Any]:
    """All that the answer depends on, by the names that messages use."""
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in MANNER and name != "random_state"
    }
    return {
        "the estimator": type(estimator).__name__,
        **parameters,
        "random_state": _seed(estimator.random_state),
        "the rows": {"digest": samples.digest},
        "the place of the rows": "a store" if samples.is_reopenable else "memory",  # other passes run
        "the sample weights": {"digest": fingerprint(weights)},
        **environment(),
    }


def _seed(random_state: Any) -> int | str | None:
    """A seed as it is, a generator by its state."""
    if random_state is None or isinstance(random_state, numbers.Integral):
        return None if random_state is None else int(random_state)
    return f"RandomState {fingerprint(check_random_state(random_state).get_state())}"
