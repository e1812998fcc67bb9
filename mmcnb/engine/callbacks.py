"""Callbacks of scikit-learn 1.9 or later, which follow a fit by its history."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator

from mmcnb.engine.session import Record
from mmcnb.samples import Samples

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an earlier scikit-learn than 1.9 has no callbacks
    CallbackSupportMixin = object

    def with_callbacks(method: Callable) -> Callable:
        """Return a method unchanged."""
        return method


# An estimator has one of them if callbacks were set, or if it is fitted inside another
# estimator that has callbacks.
CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_parent_callback_ctx")


@contextmanager
def callback_record(estimator: BaseEstimator, samples: Samples) -> Iterator[Record]:
    """Tell the callbacks of an estimator that its fit begins, and that it ends.

    Parameters
    ----------
    estimator : estimator
        Has one of the attributes ``CALLBACK_ATTRIBUTES``.
    samples : Samples
        The rows, which callbacks may ask for.

    Yields
    ------
    callable
        Takes each row of the history: a task of the fit, named by its stage, with the
        row as its metadata.
    """
    context = {"estimator": estimator, "X": samples}
    fit = estimator._init_callback_context(max_subtasks=None)
    fit.call_on_fit_task_begin(**context)

    def record(row: dict[str, Any]) -> None:
        task = fit.subcontext(row["stage"])
        task.call_on_fit_task_begin(**context)
        task.call_on_fit_task_end(**context, metadata=row)

    yield record
    fit.call_on_fit_task_end(**context, reconstruction_attributes={})
