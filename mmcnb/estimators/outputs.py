"""Write the clusters, probabilities or scores of rows to arrays, stores and tables."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mmcnb._compiling import times
from mmcnb._config import format_bytes, resolve_memory_limit
from mmcnb._constraints import Interval
from mmcnb._docstrings import fill_docstrings
from mmcnb.engine.run import Engine
from mmcnb.errors import MemoryLimitError
from mmcnb.features.labelling import (
    Decides,
    DecisionPass,
    KeptLabels,
    LabelsPass,
    TablePass,
)
from mmcnb.features.rules import Rule
from mmcnb.samples import Samples
from mmcnb.stores import LabelsWriter, create_dense_store
from mmcnb.stores.label_table import TableWriter, is_table
from mmcnb.stores.row_index import row_index_of

if TYPE_CHECKING:
    from mmcnb.estimators.base import Estimator
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering


@fill_docstrings
class RowTransformerMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin for estimators that have cluster sizes and a ``transform`` method."""

    @property
    def cluster_sizes_(self: Any) -> np.ndarray:
        """Number of rows in each cluster; with sample weights, their total weight."""
        return np.array(self.report_["sizes"])

    def fit_transform(
        self: Any,
        X: object,
        y: object = None,
        *,
        element: str | None = None,
        **options: object,
    ) -> Any:
        """Fit the estimator to rows, then transform the rows.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : None
            Ignored; for compatibility with scikit-learn.
        {element}
        **options
            Further keyword arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The result of ``transform``.
        """
        return self.fit(X, y, element=element, **options).transform(X, element=element)


@contextmanager
def rows_output(
    out: str | os.PathLike[str] | None, X: object, rows: Samples
) -> Iterator[tuple[KeptLabels | None, Callable[..., None]]]:
    """Open an output for labels; the extension of ``out`` selects the format.

    The output is a table with clusters and margins if the path ends with ``.csv`` or
    ``.parquet``, and otherwise a Zarr array of labels.

    Parameters
    ----------
    out : path or None
        Path of the output, which must not exist. With None, nothing is written.
    X : array, frame, path or other rows
        The rows as the user passed them. Their names or numbers are written to a table.
    rows : Samples
        The same rows, opened.

    Yields
    ------
    kept : KeptLabels or None
        Receives labels that a fit computes before ``write`` is called; None if the
        format does not allow this.
    write : callable
        Writes the clusters. Its arguments are a fitted estimator, an engine, the rows
        mapped to the features of a rule, the rule, and the digests of labels that the
        fit wrote through ``kept``, or None.
    """
    if out is None:
        yield None, lambda *_: None
    elif is_table(out):
        with TableWriter(out, row_index_of(X, rows)) as table:

            def write_table(
                _: object, engine: Engine, features: Samples, rule: Rule, *__: object
            ) -> None:
                for group in engine.stream(TablePass(rule), features, "labels"):
                    table.append(columns_of(group))

            yield None, write_table
    else:
        with LabelsWriter(out, rows.n_samples, overwrite=None) as writer:
            kept = KeptLabels(writer.sink())

            def write(
                _: object,
                engine: Engine,
                features: Samples,
                rule: Rule,
                digests: list[str] | None = None,
            ) -> None:
                writer.finish_chunks(
                    digests or engine.run(LabelsPass(rule, kept), features, "labels")
                )

            yield kept, write


def decide_rows(
    estimator: "Estimator",
    rule: Decides,
    features: Samples,
    out: str | os.PathLike[str] | None,
    n_columns: int,
    name: str,
    dtype: str,
) -> np.ndarray | None:
    """Return the values of a rule for all rows, or write them to a new store.

    Parameters
    ----------
    estimator : Estimator
        Fitted estimator, with a memory limit and an engine.
    rule : Decides
        Rule that computes the values of a row from its features.
    features : Samples
        The n rows, mapped to the features of the rule.
    out : path or None
        Path of a new store; None returns an array.
    n_columns : int
        Number of values per row.
    name : str
        Name of the values in messages and in the progress bar.
    dtype : str
        Data type of the values in the store.

    Returns
    -------
    ndarray of shape (n,) or (n, n_columns), or None

    Raises
    ------
    MemoryLimitError
        If ``out`` is None and the array takes more memory than the limit.
    """
    sweep = DecisionPass(rule)
    size = features.n_samples * n_columns * 8
    limit = resolve_memory_limit(estimator.memory_limit)
    if out is None and size > limit:
        raise MemoryLimitError(
            f"the {name} of {features.n_samples:,} rows take {format_bytes(size)}, but "
            f"the memory limit is {format_bytes(limit)}; pass a path as out to write "
            "them to a store."
        )
    if out is None:
        return estimator._run(sweep, features, name)
    with (
        estimator._engine_of(features) as engine,
        create_dense_store(out, n_columns, dtype, overwrite=None) as store,
    ):
        for blocks in engine.stream(sweep, features, name):
            store.append(np.concatenate(blocks).reshape(-1, n_columns))
    return None


def layer_options(
    estimator: "MaximumMarginClustering", layer: int | str | None
) -> dict[str, Any]:
    """Return the arguments that make `Model.labelling` label rows by a given layer."""
    if layer is None:
        return {}
    tree = estimator._tree
    layers = estimator.layers_
    if isinstance(layer, str) and layer == "all":
        numbers = layers["n_clusters"][~layers["taken"]]
        columns = [(f"layer_{k}", tree.cluster_of_piece(k)) for k in numbers]
        return {"layers": columns}
    Interval(0, len(layers) - 1, integer=True).check("layer", layer)
    if layers["taken"][layer]:
        return {}
    return {"layer": tree.cluster_of_piece(layers["n_clusters"][layer])}


def in_report(write: Callable[..., None]) -> Callable[..., None]:
    """Wrap a function that writes labels, to record its duration in ``report_``."""

    def write_and_note(estimator: "Estimator", *arguments: object) -> None:
        started = times()[0]
        write(estimator, *arguments)
        estimator.report_["labels_seconds"] = times()[0] - started

    return write_and_note


def columns_of(blocks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate the columns of several blocks of rows."""
    return {
        name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]
    }
