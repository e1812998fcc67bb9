"""Base classes of all estimators: fit, predict, plan and save."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mmcnb._constraints import Constraint
from mmcnb._docstrings import fill_docstrings
from mmcnb._fit_warnings import Importance, collected_warnings, warn, warn_of_notes
from mmcnb._machine import return_freed_memory
from mmcnb.choice.known import KnownRows
from mmcnb.columns.gaps import donors_of_sample
from mmcnb.columns.order import order_of_columns
from mmcnb.columns.treatment import centred, treat
from mmcnb.engine import session as fits
from mmcnb.engine.callbacks import (
    CALLBACK_ATTRIBUTES,
    CallbackSupportMixin,
    callback_record,
    with_callbacks,
)
from mmcnb.engine.checkpoint import Checkpoint, CheckpointEngine
from mmcnb.engine.fit_report import Report
from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_fit, plan_passes
from mmcnb.engine.run import Engine, Pass, Traffic
from mmcnb.engine.sample_weights import read_weights
from mmcnb.errors import (
    AbsentError,
    GapsError,
    InputError,
    MemoryLimitError,
)
from mmcnb.estimators.advice import warn_of_settings
from mmcnb.estimators.given_rows import (
    chosen_columns,
    collecting_warnings,
    columns_left_out,
    filling_gaps,
    open_meta,
    read_input,
    warn_of_left_out,
)
from mmcnb.estimators.notebook import summary
from mmcnb.estimators.outputs import columns_of, in_report, rows_output
from mmcnb.estimators.parameters import check_parameters, open_checkpoint
from mmcnb.estimators.persistence import save_estimator
from mmcnb.estimators.repeat import PageArguments, how_to_repeat, input_of
from mmcnb.features.labelling import (
    CLUSTER,
    ClusterColumnsPass,
    ColumnPasses,
    DecisionPass,
    KeptLabels,
    LabelsPass,
    TablePass,
)
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Rule
from mmcnb.samples import Samples
from mmcnb.samples.derived import scaled_matrix
from mmcnb.samples.matrix import take_columns
from mmcnb.samples.row_index import RowIndex
from mmcnb.stores.matched_labels import labels_of_rows
from mmcnb.stores.row_index import row_index_of
from mmcnb.tables.array_table import open_array
from mmcnb.tables.options import OF_FITS

if TYPE_CHECKING:
    import pandas as pd

    from mmcnb.explanation.explanation import Explanation


class Attributes:
    """Attributes of estimators that are not parameters.

    This class is not a dataclass, because dataclass fields would become parameters. A
    fit sets the attributes whose names end with an underscore.
    """

    labels_: np.ndarray
    _row_index: RowIndex  # index of the rows of labels_
    model_: Model
    n_features_in_: int
    feature_names_in_: np.ndarray
    history_: "pd.DataFrame"
    report_: dict[str, Any]
    # Sentences of the last explanation, and the report_ of the fit that they explain.
    # Another fit replaces report_, and the sentences are then no longer shown.
    _sentences: Sequence[str] = ()
    _explained_report: dict[str, Any] | None = None
    scale: Any  # a parameter of every class
    metric: str = "euclidean"

    @property
    def _depends_on_origin(self) -> bool:
        """Whether a shift of all rows changes the kernel values between them."""
        return False

    @property
    def _orders_columns(self) -> bool:
        """Whether the fit sorts columns into the canonical order."""
        return False


@fill_docstrings
@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Attributes, BaseEstimator):
    """Base class of all estimators, with their common parameters as fields.

    ``constraints`` maps the names of parameters that are not in `SHARED` to their valid
    values. ``fitted_names`` lists the fitted attributes that a model file stores,
    without the underscore at the end. Subclasses are decorated with `estimator`.

    Parameters
    ----------
    memory_limit : str, int or None, default=None
        Limit on the resident memory of the process, in bytes or as text such as
        "512MiB". None uses the setting of `mmcnb.config` or, without one, half of the
        free memory.
    n_jobs : int or None, default=None
        Number of threads; -1 uses all cores. None uses the setting of `mmcnb.config`
        or, without one, all cores. The result does not depend on the number of threads.
    random_state : int, RandomState or None, default=None
        Seed of all random choices of the fit. Pass an int for reproducible results. If
        None, ``report_["seed"]`` contains the seed that the fit has drawn.
    verbose : int, default=0
        If 1, show one progress bar for the whole fit on a terminal or in a notebook,
        and print a line every 30 s elsewhere. The logger "mmcnb" reports the rows,
        bytes and seconds of each pass at level INFO.
    engine : None, str or dask.distributed.Client, default=None
        Where the passes over the rows run. A client, or the address of its scheduler,
        selects a Dask cluster. None uses the setting of `mmcnb.config` or, without one,
        threads of this process.
    """

    memory_limit: str | int | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0
    engine: Any = None

    constraints: ClassVar[Mapping[str, Constraint]] = {}
    fitted_names: ClassVar[tuple[str, ...]] = (
        "objective",
        "rho",
        "gamma",
        "converged",
        "n_changed",
        "report",
    )
    # Required entries of the report in a model file.
    needed_in_report: ClassVar[frozenset[str]] = frozenset()
    needs_ridge: ClassVar[bool] = False
    # Parameters that count rows or landmarks; each must be at least n_clusters.
    sizes_of_search: ClassVar[tuple[str, ...]] = ("sample_size",)
    # The parameter that can end a fit before it converges, and the beginning of the
    # warning about this.
    limit: ClassVar[str] = "max_rounds"
    unsettled: ClassVar[str] = "the fit did not converge within"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.metric != "precomputed"
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"engine": fits.picklable(self.engine)}

    def __sklearn_clone__(self) -> Self:
        bare = copy(self)
        bare.engine = None
        clone = super(Estimator, bare).__sklearn_clone__()
        clone.engine = self.engine  # a client cannot be copied
        return clone

    @property
    def _repr_html_(self) -> Callable[[], str]:
        boxes: Callable[[], str] = super()._repr_html_
        return lambda: self._summary() + boxes()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._summary() + bundle["text/html"]
        return bundle

    def _summary(self) -> str:
        """Return the results of the fit as HTML, or "" if there was no fit yet."""
        if not hasattr(self, "report_"):
            return ""
        labels = getattr(self, "labels_", None)
        return summary(
            type(self).__name__,
            self.report_,
            None if labels is None else len(labels),
            self._sentences if self._explained_report is self.report_ else (),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, atomically; `mmcnb.load` reads the file.

        Parameters
        ----------
        path : path
            Path of the file. An existing file is replaced.
        """
        check_is_fitted(self, "model_")
        save_estimator(self, path)

    def _open_engine(self, n_jobs: int | None) -> AbstractContextManager[Engine]:
        return fits.open_engine(
            self.engine, n_jobs, show_progress=None if self.verbose else False
        )

    def _engine_of(self, features: Samples) -> AbstractContextManager[Engine]:
        """Open an engine with as many threads as the memory limit allows."""
        rows = RowShape.of(features.root, self.n_jobs)
        needs = FitNeeds(_computed_columns(features))
        plan = plan_passes(rows, needs, self.memory_limit, self.n_jobs)
        return self._open_engine(plan.threads)

    def _shape_of(self, X: object, element: str | None) -> RowShape:
        """Return the shape of the rows that a fit would read; X may be a shape."""
        self._check_parameters()
        if isinstance(X, RowShape):
            return X
        samples = read_input(copy(self), X, reset=True, least_rows=2, element=element)
        return RowShape.of(samples, self.n_jobs)

    def _check_parameters(self) -> None:
        """Raise InputError if a parameter is invalid, whatever the rows are."""
        check_parameters(self)

    def _run(
        self, pass_: Pass[list[np.ndarray]], features: Samples, description: str
    ) -> np.ndarray:
        """Run a pass over all rows, and return its results in the order of the rows."""
        with self._engine_of(features) as engine:
            return np.concatenate(engine.run(pass_, features, description))

    def _features(
        self, X: object, element: str | None = None, **layer: Any
    ) -> tuple[Samples, Rule]:
        """Open rows, and return their features and the rule that labels them."""
        check_is_fitted(self, "model_")
        samples = read_input(self, X, reset=False, element=element)
        return self.model_.labelling(samples, **layer)

    @filling_gaps
    def predict(
        self,
        X: object,
        out: str | os.PathLike[str] | None = None,
        *,
        element: str | None = None,
    ) -> np.ndarray | None:
        """Return the cluster of each row.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        out : path or None, default=None
            Path of a new file, which is written block by block. Unlike `save`, this
            method does not replace an existing file. If the path ends with ``.csv`` or
            ``.parquet``, the file is a table with the columns of `to_frame` and the
            number or name of each row. Otherwise, it is a Zarr array.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,), int32, or None
            Labels; None if they were written to ``out``.
        """
        return self._labels(X, out, element)

    def _labels(
        self,
        X: object,
        out: str | os.PathLike[str] | None,
        element: str | None,
        **layer: Any,
    ) -> np.ndarray | None:
        """Label rows by the clusters or by a layer, and return the labels.

        If ``out`` is a path, write the labels and return None.
        """
        features, rule = self._features(X, element, **layer)
        if out is None:
            return self._run(LabelsPass(rule), features, "labels")
        with (
            self._engine_of(features) as engine,
            rows_output(out, X, features) as (_, write),
        ):
            write(self, engine, features, rule)
        return None

    @filling_gaps
    def decision_function(self, X: object, *, element: str | None = None) -> np.ndarray:
        """Return the decision values that determine the labels of `predict`.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        {element}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_clusters), float64
            If one boundary separates two clusters, the decision function f(x) = w·φ(x)
            + b of each row; its sign determines the cluster. Otherwise, one score for
            each cluster; the cluster with the largest score is predicted.
        """
        features, rule = self._features(X, element)
        return self._run(DecisionPass(rule), features, "labels")

    @filling_gaps
    def to_frame(self, X: object = None, *, element: str | None = None) -> Any:
        """Return the cluster and the margin of each row as a data frame.

        The margin of a row is the score of its cluster minus the best other score. If
        one decision function f separates two clusters, the margin is abs(f). On a
        boundary between clusters, the margin is 0.

        Parameters
        ----------
        X : {rows}, or None, default=None
            Rows with the columns of the fit, which are read block by block. If None,
            the frame contains the clusters of the rows of the fit, without margins,
            because the model stores only the labels of these rows.
        {element}

        Returns
        -------
        DataFrame of shape (n_samples, 1 or 2)
            Frame with the columns ``cluster`` (int32) and, if X was passed, ``margin``
            (float64). It is a polars frame if X is a polars frame, and a pandas frame
            otherwise. The pandas index is the index of X, the ``obs_names`` of an
            AnnData object, the index that is stored with the rows, or the row numbers.

        Raises
        ------
        InputError
            If the rows cannot be read, or if X is None and the model does not have
            ``labels_``.

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
        if X is not None:
            return self._frame(X, element)
        if not hasattr(self, "labels_"):
            raise InputError(
                "this model does not store the labels of the rows of its fit; "
                "pass the rows to to_frame."
            )
        return pd.DataFrame({"cluster": self.labels_}, index=self.row_index_)

    def label_table(
        self,
        X: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        element: str | None = None,
    ) -> Any:
        """Return or write a table with the cluster of each row in a new column.

        The new columns are ``cluster`` and, if the estimator computes them,
        ``probability`` (of the row's cluster, 0 for noise) and ``outlier_score``. If
        the table already has a column with one of these names, a number is appended to
        the name of the new column. Rows that the table options leave out, for example
        with ``missing="drop"``, have missing values in the new columns.

        Parameters
        ----------
        X : data frame, path or rows of `read_table`
            A table with the columns of the fit.
        out : path or None, default=None
            Path of a new file; None returns a data frame instead. Unlike `save`, this
            method does not replace an existing file. Rows are read and written in
            batches. The end of the path selects the format:

            - ``.csv``: if X is a CSV file, its bytes are copied and the new values are
              added at the end of each row. Other tables are converted to CSV.
            - ``.parquet``: columns keep their types. A column of a CSV file becomes
              numeric if all its values are numbers.
            - ``/``: a folder with a Parquet file for each cluster, such as
              ``cluster=0/part-0.parquet``.
        {element}

        Returns
        -------
        data frame or None
            A frame of the same library as ``X``, or a pandas frame if ``X`` is a file;
            None if ``out`` was passed.

        Raises
        ------
        InputError
            If ``X`` is not a table, or if it cannot be read or written.

        Examples
        --------
        >>> import pandas as pd
        >>> import mmcnb
        >>> X = pd.DataFrame({"age": [20.0, 21.0, 60.0, 61.0]})
        >>> mmcnb.CPMMC(random_state=0).fit(X).label_table(X)
            age  cluster
        0  20.0        0
        1  21.0        0
        2  60.0        1
        3  61.0        1
        """
        from mmcnb.estimators.label_tables import label_frame, write_label_table
        from mmcnb.samples.frames import is_stream, table_of_stream

        check_is_fitted(self, "model_")
        if is_stream(X):  # X is read twice, but a stream can be read only once
            X = table_of_stream(X)
        samples = read_input(self, X, reset=False, element=element)
        if out is None:
            return label_frame(self, X, samples)
        write_label_table(self, X, samples, out)
        return None

    def _column_passes(self, samples: Samples) -> tuple[ColumnPasses, list[str]]:
        """Return the passes for the new columns of a table, and the column names."""
        features, rule = self.model_.labelling(samples)
        return [(ClusterColumnsPass(rule), features)], [CLUSTER]

    def _frame(self, X: Any, element: str | None, **layer: Any) -> Any:
        """Return the frame of `to_frame`, optionally with a column for each layer."""
        import pandas as pd

        features, rule = self._features(X, element, **layer)
        with self._engine_of(features) as engine:
            columns = columns_of(engine.run(TablePass(rule), features, "labels"))
        if type(X).__module__.startswith("polars"):
            return type(X)(columns)
        return pd.DataFrame(columns, index=row_index_of(X, features).to_pandas())


@fill_docstrings
@dataclass(kw_only=True, eq=False, repr=False)
class StreamedClusterer(ClusterMixin, Estimator, CallbackSupportMixin):
    """Base class of the clusterers, which implement `_needs` and `_fit`.

    Parameters
    ----------
    checkpoint : path or None, default=None
        Folder to which the fit writes checkpoints. Calling `fit` again with the same
        rows, parameters and seed resumes an interrupted fit. With None, no checkpoints
        are written.
    """

    checkpoint: str | os.PathLike[str] | None = None

    # -- methods of subclasses ---------------------------------------------------------

    @abstractmethod
    def _needs(self, rows: RowShape) -> FitNeeds:
        """Return the memory and the work that a fit needs.

        Raise InputError if the fit is impossible.
        """

    def _smaller_needs(self, rows: RowShape) -> Iterable[FitNeeds]:
        """Yield alternative needs for a fit whose `_needs` exceed the memory limit.

        Each alternative needs less memory than the previous one. The first one within
        the memory limit is used, and determines sizes such as the number of sampled
        rows.
        """
        return ()

    @abstractmethod
    def _fit(self, session: fits.FitSession) -> fits.FitResult:
        """Fit the model to the sample, then to all rows."""

    # -- the estimator -----------------------------------------------------------------

    @collecting_warnings
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        element: str | None = None,
        columns: object = None,
        keep: object = None,
    ) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : {rows}
            The rows.
        y : None
            Ignored; for compatibility with scikit-learn.
        sample_weight : {weights}
            Weight of each row. A row of weight 2 counts as two equal rows, and a row of
            weight 0 does not count. Only the proportions of the weights matter.
        {element}
        columns : {None, "auto", "all"}, list of str or int, or plan, default=None
            Columns of a data frame or a table to use, by name or number. None and
            "auto" leave out text columns with many different values, dates, row
            numbers, identifiers and empty columns. "all" also uses these columns. A
            plan of `mmcnb.table_plan` sets all table options.
        keep : list of str or int, default=None
            Columns of a data frame or a table to use even though "auto" would leave
            them out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        InputError
            If the rows or a parameter are invalid. The message states the problem and
            its remedy.
        """
        samples = read_input(
            self,
            X,
            reset=True,
            least_rows=2,
            element=element,
            options=chosen_columns(columns, keep),
        )
        with fits.connected(self.engine):  # one Dask cluster for the fit and its labels
            samples = self._fit_samples(
                samples, sample_weight, label_rows, KeptLabels()
            )
        self._row_index = row_index_of(X, samples)
        return self

    @property
    def row_index_(self) -> "pd.Index":
        """Pandas index of the rows that ``labels_`` describes.

        This is the index of a data frame, the names of the rows, for example from
        ``index_column``, or the row numbers in the file. The index does not contain the
        rows that ``missing="drop"`` leaves out. If the rows come from a folder, the
        index also contains the file of each row. Row names in a file are read when this
        attribute is accessed. The attribute exists only if ``labels_`` exists.
        """
        if not hasattr(self, "labels_"):
            raise AbsentError(
                "this model does not store the labels of the rows of its fit; "
                "call fit to have labels_ and row_index_."
            )
        return self._row_index.to_pandas()

    @collecting_warnings
    def fit_model(
        self,
        X: object,
        sample_weight: object = None,
        *,
        element: str | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit without storing ``labels_``, an array with one entry per row.

        Parameters
        ----------
        X : {rows}
            The rows.
        sample_weight : {weights}
            Weight of each row.
        {element}
        out : path or None, default=None
            Path of a new file for the labels, in the formats of `predict`. This is
            faster than calling `predict` later, because features that the fit has
            cached are not computed again. With None, no labels are written.

        Returns
        -------
        self
            The fitted estimator, without ``labels_``. Use `predict` to label rows.

        Examples
        --------
        >>> import mmcnb
        >>> model = mmcnb.CPMMC(random_state=0).fit_model([[0.0], [0.1], [2.0], [2.1]])
        >>> hasattr(model, "labels_"), model.predict([[1.9]]).tolist()
        (False, [1])
        """
        samples = read_input(self, X, reset=True, least_rows=2, element=element)
        self.__dict__.pop("labels_", None)  # labels of an earlier fit
        with fits.connected(self.engine), rows_output(out, X, samples) as (kept, write):
            if out is not None:
                write = in_report(write)
            self._fit_samples(samples, sample_weight, write, kept)
        return self

    @filling_gaps
    def explain(
        self,
        X: object,
        labels: Any = None,
        *,
        element: str | None = None,
        meta: object = None,
    ) -> "Explanation":
        """Describe what distinguishes each cluster, in one sentence per cluster.

        All statistics are in the original units of the columns. Means are computed from
        all rows. Medians and ranges are computed from a sample of at most 20,000 rows,
        which are drawn from each cluster with a fixed seed. Rules such as "orders > 12
        and payment = invoice" and a decision tree that predicts the cluster are also
        learned from this sample. If the sample does not contain all rows, all rows are
        read a second time to count the rows of each rule and each leaf. Statistics
        ignore missing values, and a sentence names columns in which a cluster has more
        or fewer missing values than the other clusters. If rows of the sample have
        missing values, the sample is read again with these values filled in.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        labels : {labels}
            Cluster of each row, as numbers or names, with -1 for noise, or the path of
            labels that `predict` wrote. With None, ``labels_`` is used if X appears to
            be the rows of the fit: it has the same number of rows, and the model
            predicts the same labels for its first 4,096 and its last 4,096 rows.
            Otherwise, `predict` labels the rows, which reads X once more.
        {element}
        meta : data frame, path or None, default=None
            A table with one row for each row of X, in the same order. The clusters are
            explained by its columns instead of the columns of X, for example if X is an
            embedding. Text columns with many different values are left out, and a
            warning names them.

        Returns
        -------
        Explanation
            Printing it shows one sentence per cluster. It has the data frames
            ``clusters``, ``columns``, ``rows`` and ``rules``, and also ``words`` for
            sparse counts with named columns. In addition, it has the decision tree
            ``tree`` and the methods ``to_frame()`` and ``to_dict()``.

        Raises
        ------
        InputError
            If the rows or the labels are invalid, or if the memory limit is too small.
            The message states the problem and its remedy.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import mmcnb
        >>> age = [20.0, 21, 22, 70, 71, 72]
        >>> X = pd.DataFrame({"age": age, "visits": [3.0, 1, 2, 2, 3, 1]})
        >>> print(mmcnb.CPMMC(random_state=0).fit(X).explain(X))
        Cluster 0 (50 %): age low (median 21, others 71).
        Cluster 1 (50 %): age high (median 71, others 21).
        >>> mmcnb.CPMMC(random_state=0).fit(X).explain(X).rules["rule"].tolist()
        ['age <= 50', 'age > 50']
        >>> embedding = [[0.0], [0.1], [0.2], [2.0], [2.1], [2.2]]
        >>> model = mmcnb.CPMMC(random_state=0).fit(embedding)
        >>> model.explain(embedding, meta=X).rules["rule"].tolist()
        ['age <= 50', 'age > 50']
        """
        return self._explanation(X, labels, element, meta)

    def _explanation(
        self,
        X: object,
        labels: Any,
        element: str | None,
        meta: object = None,
        hides: bool = False,
    ) -> "Explanation":
        """Explain rows; raise `GapsError` if a pass finds unfilled missing values."""
        from mmcnb.explanation.explanation import Sources, explain
        from mmcnb.explanation.groups import agree, grouped, plan_explanation
        from mmcnb.explanation.hidden import hide_cells

        if self.metric == "precomputed":
            raise InputError(
                "a model of distances has no columns to explain; fit an estimator to "
                "the rows, and call its explain with these labels."
            )
        features, rule = self._features(X, element)
        samples = features.root
        rows = RowShape.of(samples, self.n_jobs)
        fitted_labels = getattr(self, "labels_", None)
        if labels is not None:
            labels = labels_of_rows(labels, None, samples)
        elif agree(fitted_labels, rule, features):
            labels = fitted_labels
        else:
            # This raises before the rows are labelled if the memory limit is too small.
            plan_explanation(
                rows,
                self.model_.rule.n_clusters,
                self.memory_limit,
                self.n_jobs,
                _computed_columns(features),
            )
            labels = self._run(LabelsPass(rule), features, "labels")
        groups = grouped(labels)
        described = samples
        if meta is not None:
            described = open_meta(meta, samples, self.memory_limit)
            warn_of_left_out(described)
        with_gaps = described
        if described.with_gaps is not None:
            with_gaps = described.with_gaps()
        held = {id(source): source for source in (samples, described, with_gaps)}
        held_bytes = sum(source.held_bytes for source in held.values())
        plans = []
        for source in (samples, described):
            shape = replace(RowShape.of(source, self.n_jobs), held_bytes=held_bytes)
            plan = plan_explanation(
                shape, groups.counts.size, self.memory_limit, self.n_jobs
            )
            plans.append(plan)
        with self._open_engine(min(threads for _, threads in plans)) as engine:
            engine.traffic = Traffic(with_gaps)
            explanation = explain(
                engine,
                Sources(samples, described, with_gaps),
                groups,
                self.model_,
                row_index_of(X, samples),
                min(most for most, _ in plans),
            )
        self._sentences = explanation.clusters["sentence"].tolist()
        self._explained_report = self.report_
        return hide_cells(explanation, described) if hides else explanation

    @filling_gaps
    def score(
        self, X: object, y: object = None, *, element: str | None = None
    ) -> float:
        """Return the score J of the clusters that `predict` finds in X.

        Use it to compare fits with the same number of clusters, for example in a grid
        search over other parameters. See `partition_score`.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        y : None
            Ignored; for compatibility with scikit-learn.
        {element}

        Returns
        -------
        float
            The score J. A larger J means that the clusters are better separated. J is 0
            if all rows are in one cluster.

        Raises
        ------
        InputError
            If the rows are invalid.

        Examples
        --------
        >>> import mmcnb
        >>> from mmcnb.datasets import make_shape
        >>> X, _ = make_shape("two-moons", 400, random_state=0)
        >>> model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(X)
        >>> linear = mmcnb.MaximumMarginClustering(2, kernel="linear", random_state=0)
        >>> model.score(X) > linear.fit(X).score(X)
        True
        """
        from mmcnb.estimators.partition_score import partition_score

        features, rule = self._features(X, element)
        labels = self._run(LabelsPass(rule), features, "labels")
        if labels.min() == labels.max():
            return 0.0
        rows = self.model_.scaled(features.root)
        score = partition_score(
            rows, labels, metric=self.metric, scale=None, random_state=0
        )
        return score.J

    @filling_gaps
    @collected_warnings(elsewhere="")  # the rows are opened twice
    def write_report(
        self,
        X: object,
        path: str | os.PathLike[str],
        labels: object = None,
        *,
        element: str | None = None,
        meta: object = None,
        hide_rows: bool = False,
    ) -> None:
        """Write an HTML page that describes the fit and the clusters of some rows.

        The page shows the trust in the clusters, a sentence for each cluster with the
        columns and rows that support it, a heat map of the effects of columns, a map of
        the rows, the layers, the candidates, and the command and the Python call that
        reproduce these clusters. On the map, check boxes show and hide each cluster,
        rows with missing values, and outliers. The page is a single file without
        scripts and loads nothing from the network.

        Parameters
        ----------
        X : {rows}
            Rows with the columns of the fit.
        path : path
            Path of the HTML file. An existing file is replaced.
        labels : {labels}
            Cluster of each row, as in `explain`.
        {element}
        meta : data frame, path or None, default=None
            A table whose columns explain the clusters, as in `explain`.
        hide_rows : bool, default=False
            Whether to leave out everything that may identify a row, so that the page
            can be shown to readers who must not see the data. This omits texts, dates
            and times in the table, names and numbers of rows, names of given labels,
            the path of the rows, warnings, and statistics of fewer than five rows. The
            page still has the names of columns, and medians, means and thresholds of
            numbers.

        Raises
        ------
        InputError
            If the rows or the labels are invalid, or if the page cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, mmcnb
        >>> near = np.random.default_rng(0).normal(size=(50, 2))
        >>> X = np.r_[near, np.full((50, 2), 9.0)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = pathlib.Path(folder, "page.html")
        ...     mmcnb.CPMMC(random_state=0).fit(X).write_report(X, page)
        ...     "Cluster 1 (50 %): column 0 high" in page.read_text(encoding="utf-8")
        True
        """
        from mmcnb.explanation.hidden import numbered_labels
        from mmcnb.plotting.report import write_report
        from mmcnb.plotting.report_map import PageRows

        samples = read_input(self, X, reset=False, element=element)
        page = PageArguments(labels, meta, hide_rows)
        repeat = how_to_repeat(self, X, samples, page)
        if labels is not None:
            labels = labels_of_rows(labels, None, samples)
            if hide_rows:
                labels = numbered_labels(labels)
        left_out = None
        if meta is not None:
            meta = open_meta(meta, samples, self.memory_limit)
            left_out = columns_left_out(meta)
        explanation = self._explanation(X, labels, element, meta, hide_rows)
        index = None if hide_rows else row_index_of(X, samples)
        rows = PageRows(samples, index, labels, left_out)
        write_report(path, self, explanation, rows, repeat)

    def plan(self, X: object, *, element: str | None = None) -> FitPlan:
        """Estimate what a fit would read, cache and write, without running it.

        Parameters
        ----------
        X : {rows}
            The rows, or a `RowShape` if the rows do not exist yet.
        {element}

        Returns
        -------
        FitPlan
            Memory, passes over the data, and time. Printing the plan shows the text of
            ``mmcnb plan``.

        Raises
        ------
        InputError
            If a parameter is invalid, or if the memory limit is too small.
        """
        return self._plan(self._shape_of(X, element))

    # -- the fit -----------------------------------------------------------------------

    @property
    def _least_clusters(self) -> int:
        """Smallest number of clusters that the parameters allow."""
        return int(getattr(self, "n_clusters", 1))

    def _check_sizes(self, n_samples: int) -> None:
        """Raise InputError if there are too few rows or landmarks for the clusters."""
        least = self._least_clusters
        if least > n_samples:
            raise InputError(
                f"n_clusters={least} is more than the {n_samples:,} rows; "
                f"pass n_clusters={n_samples} or fewer."
            )
        for name in self.sizes_of_search:
            size = getattr(self, name, None)
            if size is not None and size < least:
                what = "landmarks" if name == "n_landmarks" else "rows"
                raise InputError(
                    f"{name}={size} is smaller than n_clusters={least}; "
                    f"pass more {what}."
                )

    def _plan(self, rows: RowShape) -> FitPlan:
        self._check_sizes(rows.n_samples)
        *larger, least = [self._needs(rows), *self._smaller_needs(rows)]
        for needs in larger:
            with suppress(MemoryLimitError):
                return plan_fit(rows, needs, self.memory_limit, self.n_jobs)
        return plan_fit(rows, least, self.memory_limit, self.n_jobs)

    def _fit_samples(
        self,
        samples: Samples,
        sample_weight: object,
        label: Callable[..., None],
        kept: KeptLabels | None,
        known: KnownRows | None = None,
    ) -> Samples:
        """Fit the model to the rows, and return the rows.

        If a pass finds missing values, they are filled, and the fit starts again.
        """
        generator = self.random_state
        before: Any = None
        if isinstance(generator, np.random.RandomState):
            before = generator.get_state()
        try:
            self._fit_rows(samples, sample_weight, label, kept, known)
        except GapsError:
            if isinstance(generator, np.random.RandomState):
                generator.set_state(before)
            samples = open_array(samples, options=OF_FITS)
            self._fit_rows(samples, sample_weight, label, kept, known)
        return samples

    @with_callbacks
    def _fit_rows(
        self,
        samples: Samples,
        sample_weight: object,
        label: Callable[..., None],
        kept: KeptLabels | None,
        known: KnownRows | None,
    ) -> None:
        """Fit, then call `label` to label the rows while their features are cached."""
        self._check_parameters()
        weights = None
        unit = 1.0
        if sample_weight is not None:
            weights, unit = read_weights(sample_weight, samples.n_samples)
        random_state = check_random_state(self.random_state)
        drawn_seed = None
        if self.random_state is None:
            drawn_seed = int(random_state.randint(2**31 - 1))
            random_state = check_random_state(drawn_seed)
        plan = self._plan(RowShape.of(samples, self.n_jobs))
        plan.compile_ahead()
        callbacks: AbstractContextManager[fits.Record] = nullcontext(fits.ignore)
        if any(hasattr(self, name) for name in CALLBACK_ATTRIBUTES):
            callbacks = callback_record(self, samples)
        with (
            self._open_engine(plan.threads) as engine,
            open_checkpoint(
                self, samples, weights, unit, {"the known rows": known}
            ) as checkpoint,
            fits.show_progress(engine, plan) as enter,
            callbacks as record_callbacks,
        ):
            engine.traffic = Traffic(samples)
            history = fits.History(engine, record_callbacks, unit)
            session = fits.FitSession(
                engine=engine,
                samples=samples,
                weights=weights,
                plan=plan,
                record=history.record,
                random_state=random_state,
                known=known,
                weight_unit=unit,
                drawn_seed=drawn_seed,
                kept_labels=kept,
            )
            if checkpoint is not None:
                session = self._recorded(session, checkpoint)
            session = self._with_sample(session)
            enter("search, compiling (once)" if plan.compile_seconds else "search")
            result = self._fit(session)
            self._set_attributes(session, result)
            enter("passes")
            # The search has ended, so its memory is freed for blocks of rows.
            return_freed_memory()
            features, rule = self.model_.labelling(samples)
            if rule is self.model_.rule and result.features.cached:
                features = result.features
            label(self, engine, features, rule, result.kept_labels)
        import pandas as pd

        self.report_["compile_seconds"] = history.compile_seconds
        self.history_ = pd.DataFrame(history.rows)

    def _recorded(
        self, session: fits.FitSession, checkpoint: Checkpoint
    ) -> fits.FitSession:
        """Return a session that records its passes in a checkpoint.

        Passes that the checkpoint already contains are replayed.
        """
        kept = session.kept_labels
        if kept is not None and kept.sink is None:
            kept = None  # a checkpoint does not store labels
        session = replace(
            session,
            engine=CheckpointEngine(session.engine, checkpoint),
            kept_labels=kept,
        )
        if self.random_state is not None:
            return session
        seed = checkpoint.seed
        return replace(session, random_state=check_random_state(seed), drawn_seed=seed)

    def _with_sample(self, session: fits.FitSession) -> fits.FitSession:
        """Draw the sample, and return the session with it.

        The sample includes all rows with known labels.
        """
        samples = session.samples
        weights = session.weights
        known = session.known
        size = session.plan.needs.sample_size
        rows = sample_rows(samples.n_samples, size, weights, session.random_state)
        if known is not None:
            rows = np.union1d(rows, known.rows)
            known = known.among(rows)
        is_standard = self.scale == "standard"
        sample, moments = draw_sample(
            session.engine, samples, rows, weights, moments=is_standard
        )
        donors = None
        takes_gaps = not samples.is_sparse and self.metric != "precomputed"
        if takes_gaps:
            donors = donors_of_sample(sample, samples.encoding)
        n_weighted = samples.n_samples
        sample_weights = None
        if weights is not None:
            n_weighted = int(np.count_nonzero(weights))
            sample_weights = weights[rows]
        treatment = treat(
            self.scale,
            sample,
            moments,
            sample_weights,
            samples.sources,
            kept="directions alone count" if self.metric == "cosine" else "",
            is_part=rows.size < n_weighted,
            orders=samples.orders,
        )
        if not self._depends_on_origin:
            treatment = centred(treatment)
        scaling = treatment.scaling
        order = order_of_columns(sample) if self._orders_columns else None
        scaled = scaled_matrix(sample, scaling, overwrite=is_standard)
        return replace(
            session,
            known=known,
            sample=take_columns(scaled, order),
            sample_weights=sample_weights,
            scaling=scaling,
            column_order=order,
            treatment=treatment,
            donors=donors,
        )

    def _set_attributes(self, session: fits.FitSession, result: fits.FitResult) -> None:
        """Number the clusters by their first rows, set fitted attributes, and warn."""
        order = first_row_order(session, result)
        rule = result.model.rule.ordered(order)
        encoding = session.samples.encoding
        unit = session.weight_unit
        model = replace(result.model, rule=rule)
        self.model_ = model.reading(encoding, session.donors)
        for name, value in fits.rescaled(result.attributes, unit).items():
            setattr(self, f"{name}_", value)
        report = {
            name: [figures[k] for k in order]
            for name, figures in result.per_cluster.items()
        }
        report = fits.rescaled(report | result.report, unit)
        report = session.treatment.report(encoding) | report | input_of(session)
        self.report_ = Report(report | {"warnings": []})
        self._warn(session, result)

    def _warn(self, session: fits.FitSession, result: fits.FitResult) -> None:
        """Warn about the rows, the result and the settings of a fit."""
        warn_of_notes(session.samples.notes)
        for sentence in session.treatment.sentinels:
            warn(sentence, Importance.DATA)
        if not result.attributes.get("converged", True):
            limit = f"{self.limit}={getattr(self, self.limit)}"
            remedy = "raise it or tol" if hasattr(self, "tol") else "raise it"
            sentence = f"{self.unsettled} {limit}; {remedy}."
            warn(sentence, Importance.CLUSTERS, ConvergenceWarning)
        for sentence in result.warnings:
            is_quiet = sentence in result.quiet
            warn(sentence, Importance.CLUSTERS, is_quiet=is_quiet)
        warn_of_settings(self, session)


def _computed_columns(features: Samples) -> int:
    """Return the number of dense columns that a pass computes from each row.

    The number is 0 for sparse features and for features that are the rows themselves.
    """
    if features.is_sparse or features is features.root:
        return 0
    return features.n_features


def label_rows(
    model: Estimator,
    engine: Engine,
    features: Samples,
    rule: Rule,
    kept: list[np.ndarray] | None,
) -> None:
    """Set ``labels_`` to the labels that the fit kept, if any.

    If it kept none, compute the labels of all rows.
    """
    labels = kept or engine.run(LabelsPass(rule), features, "labels")
    model.labels_ = np.concatenate(labels)


def first_row_order(session: fits.FitSession, result: fits.FitResult) -> list[int]:
    """Return the numbers of the clusters, sorted by the index of their first row."""
    rule = result.model.rule
    if isinstance(rule, Hyperplane):  # the first row belongs to the side with f below 0
        f = rule.decide(result.model.features(session.samples).block(0, 1))[0]
        return [1, 0] if f >= 0 else [0, 1]
    if result.first_rows is None:
        return list(range(rule.n_clusters))
    return np.argsort(result.first_rows, kind="stable").tolist()
