"""What becomes of the rows: clusters, margins and confidence, as a frame or as a file."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mmcnb._compiling import times
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.confidence import Confidence, ConfidenceRule, TablePass
from mmcnb.features.rules import DecisionPass, KeptLabels, LabelsPass
from mmcnb.samples import Samples
from mmcnb.stores import LabelsWriter
from mmcnb.stores._label_table import INDEX, StoredNames, TableWriter, is_table, names_of


class FrameMixin:
    """Rows with their clusters as a pandas frame, for estimators whose model has a rule."""

    if TYPE_CHECKING:
        _features: Any
        _open_engine: Any
        n_jobs: Any

    def to_frame(self, X: Any = None, *, element: str | None = None) -> Any:
        """Cluster, margin and confidence of rows, as a pandas frame.

        The margin of a row is the score of its cluster minus the best other score; with one decision function
        f for two clusters it is abs(f). It is 0 on a boundary.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path, Zarr node or None, of shape (n_samples, n_features)
            Rows with the columns of the fit; they are streamed. None is the rows of the fit: as nothing but
            their labels is kept, the frame has the column ``cluster`` alone.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        DataFrame of shape (n_samples, 1 to 3)
            ``cluster`` (int32; of a classifier ``class``), ``margin`` (float64), and ``confidence`` (float64)
            where the model was fitted with refits. The index is that of a pandas frame, the ``obs_names`` of
            an AnnData object, the index that a store keeps beside its rows, or the row numbers.

        Raises
        ------
        InputError
            If the rows cannot be read, or there is no X and the rows of the fit were not labelled.

        Examples
        --------
        >>> import mmcnb
        >>> X = [[0.0], [0.1], [2.0], [2.1]]
        >>> model = mmcnb.CPMMC(random_state=0).fit(X)
        >>> model.to_frame(X)["cluster"].tolist()
        [0, 0, 1, 1]
        >>> model.to_frame(X).columns.tolist(), model.to_frame().columns.tolist()
        (['cluster', 'margin'], ['cluster'])
        """
        import pandas as pd

        check_is_fitted(self, "model_")
        if X is None:
            if not hasattr(self, "labels_"):
                raise InputError(
                    "this model holds no labels of the rows of its fit; give to_frame the rows, X."
                )
            return pd.DataFrame({"cluster": self.labels_})
        features, rule = self._features(X, element)
        with self._open_engine(self.n_jobs) as engine:
            blocks = engine.run(TablePass(rule, confidence_of(self)), features, "labels")
        names = index_of(X, features.root)
        names = names[0 : len(names)].astype(object) if isinstance(names, StoredNames) else names
        return pd.DataFrame(columns_of(self, blocks), index=names)


class DecisionMixin(FrameMixin):
    """Decision values, for estimators whose model has a rule."""

    if TYPE_CHECKING:
        _features: Any
        _run: Any

    def decision_function(self, X: Any, *, element: str | None = None) -> np.ndarray:
        """Decision values of rows, by which `predict` labels them.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_clusters), float64
            f(x) = w·φ(x) + b, whose sign gives the cluster (or class); or one score for each, whose largest
            gives it.
        """
        features, rule = self._features(X, element)
        values: np.ndarray = self._run(DecisionPass(rule), features, "labels")
        return values


class ConfidenceMixin:
    """The confidence of rows, for estimators that refit parts of the sample."""

    if TYPE_CHECKING:
        _features: Any
        _run: Any
        report_: Any

    def confidence(self, X: Any, *, element: str | None = None) -> np.ndarray:
        """How often rows keep their cluster when the fit is repeated on another sample.

        It follows from the margin of a row, by what became of rows of that margin in fits to random parts of
        the sample. It does not tell whether clusters are known classes.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit; they are streamed.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Shares in [0, 1].

        Raises
        ------
        InputError
            If the model was fitted without refits.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.synthetic import make_shape
        >>> X, y = make_shape("two-moons", 400, random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(n_refits=2, random_state=0).fit(X)
        >>> bool(model.confidence(X).mean() > 0.95)
        True
        """
        features, rule = self._features(X, element)
        knots = self.report_["confidence"]
        if knots is None:
            raise InputError("confidence needs refits of the sample; fit with n_refits=2 or more.")
        return self._run(DecisionPass(ConfidenceRule(rule, Confidence.from_dict(knots))), features, "labels")


class RowTransformerMixin(TransformerMixin):
    """Columns computed from rows, whatever holds them."""

    if TYPE_CHECKING:
        fit: Any

    def fit_transform(self, X: Any, y: Any = None, *, element: str | None = None, **options: Any) -> Any:
        """Fit, then transform the same rows.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored; for compatibility with scikit-learn.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".
        **options
            What else ``fit`` takes.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            What ``transform`` gives.
        """
        return self.fit(X, y, element=element, **options).transform(X, element=element)


@contextmanager
def rows_output(
    out: str | os.PathLike[str] | None, X: Any, rows: Samples
) -> Iterator[tuple[KeptLabels | None, Callable[..., None]]]:
    """Begin a Zarr array of labels, or a table with margins, by the ending of ``out``.

    Parameters
    ----------
    out : path or None
        Must not exist; None writes nothing.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows as they were given; a table has their names.
    rows : Samples
        The same, opened.

    Yields
    ------
    kept : KeptLabels or None
        Where a fit may keep the labels that it finds.
    write : callable
        Takes a fitted estimator, an engine, the rows in the features of a rule, the rule, and what was kept
        of their labels or None. It writes their clusters.
    """
    if out is None:
        yield None, lambda *_: None
    elif is_table(out):
        names = index_of(X, rows.root)
        with TableWriter(out, rows.n_samples, names, str(getattr(names, "name", None) or INDEX)) as table:
            yield None, partial(_write_table, table)
    else:
        with LabelsWriter(out, rows.n_samples) as writer:
            kept = KeptLabels(writer.sink())
            yield kept, partial(_write_labels, writer, kept)


def in_report(write: Callable[..., None]) -> Callable[..., None]:
    """What writes the clusters of rows, and notes its seconds in the report of the estimator."""

    def write_and_note(estimator: Any, *given: Any) -> None:
        started, _ = times()
        write(estimator, *given)
        estimator.report_["labels_seconds"] = times()[0] - started

    return write_and_note


def _write_table(
    table: TableWriter, estimator: Any, engine: Engine, features: Samples, rule: Any, _labels: None = None
) -> None:
    sweep = TablePass(rule, confidence_of(estimator))
    for group in engine.stream(sweep, features, "labels"):
        table.append(columns_of(estimator, group))


def _write_labels(
    writer: LabelsWriter,
    kept: KeptLabels,
    _estimator: Any,
    engine: Engine,
    features: Samples,
    rule: Any,
    labels: list[str] | None = None,
) -> None:
    writer.finish_chunks(labels or engine.run(LabelsPass(rule, kept), features, "labels"))


def confidence_of(estimator: Any) -> Confidence | None:
    """The confidence of a model that was fitted with refits."""
    knots = estimator.report_.get("confidence")
    return None if knots is None else Confidence.from_dict(knots)


def columns_of(estimator: Any, blocks: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The columns of some blocks of rows; those of a classifier name the class."""
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    classes = getattr(estimator, "classes_", None)
    return columns if classes is None else {"class": classes[columns.pop("cluster")]} | columns


def index_of(X: Any, samples: Samples) -> Any:
    """Names of the rows: of a pandas frame, of AnnData or of a store; None where they have numbers alone."""
    names: Any = getattr(X, "obs_names", getattr(X, "index", None))
    if names is None or callable(names):  # a list has a method of this name
        return names_of(samples)
    import pandas as pd

    numbers = isinstance(names, pd.RangeIndex) and names.equals(pd.RangeIndex(len(names)))
    return None if numbers else names
