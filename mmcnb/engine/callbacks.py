"""Support for the callbacks of scikit-learn 1.9 and later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import BaseEstimator

from mmcnb.engine.session import Record
from mmcnb.samples import Samples

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks
    CallbackSupportMixin = object

    def with_callbacks(method: Callable) -> Callable:
        """Return the method unchanged."""
        return method


# An estimator has one of these attributes if callbacks were set, or if it is fitted
# inside another estimator that has callbacks.
CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_parent_callback_ctx")


@contextmanager
def callback_record(estimator: BaseEstimator, samples: Samples) -> Iterator[Record]:
    """Notify the callbacks of an estimator of the beginning and the end of its fit.

    Parameters
    ----------
    estimator : estimator
        An estimator with one of the attributes ``CALLBACK_ATTRIBUTES``.
    samples : Samples
        The rows, which are passed to the callbacks as ``X``.

    Yields
    ------
    callable
        Function to call with each row of the history. The callbacks receive a task of
        the fit, named after the stage, with the row as its metadata.
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
