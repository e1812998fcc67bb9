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
        """Return ``method`` unchanged, in place of scikit-learn's decorator."""
        return method


# scikit-learn sets the first attribute on an estimator with callbacks, and the second
# on an estimator that is fitted inside another estimator with callbacks.
CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_parent_callback_ctx")


@contextmanager
def callback_record(estimator: BaseEstimator, samples: Samples) -> Iterator[Record]:
    """Notify the callbacks of an estimator when its fit begins and ends.

    Parameters
    ----------
    estimator : estimator
        An estimator with at least one of the attributes in ``CALLBACK_ATTRIBUTES``.
    samples : Samples
        All rows; the callbacks receive them as ``X``.

    Yields
    ------
    callable
        Function to call with each row of the history. For each row, the callbacks are
        notified of a task that is named after the stage and has the row as metadata.
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
