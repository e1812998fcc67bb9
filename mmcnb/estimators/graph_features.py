"""Coordinates of rows on the graph of their nearest neighbours, as a transformer."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.plan import RowShape, plan_fit
from mmcnb.estimators.base import Estimator, estimator, read_input
from mmcnb.estimators.outputs import RowTransformerMixin
from mmcnb.features.graph import N_NODES, GraphKernel, needs_of_nodes, node_graph
from mmcnb.features.model import Model
from mmcnb.features.rules import DecisionPass, Scores
from mmcnb.samples.derived import scaled_matrix


@estimator
class GraphFeatures(RowTransformerMixin, Estimator):
    """Coordinates of rows on the graph of their nearest neighbours.

    The leading eigenvectors of the graph of a sample are its coordinates: rows that many short steps connect
    are near one another, whatever the shape of their cluster. Any other row has the weighted mean of its
    nearest rows of the sample. Clusters of any shape become compact there, so that `KMeans` finds them.

    Parameters
    ----------
    n_components : int, default=50
        Number of coordinates; fewer if the graph has fewer nodes.
    n_neighbors : int or None, default=None
        Nearest nodes of each row; None is 10.
    n_nodes : int, default=20000
        Most nodes of the graph: rows drawn at random, or all of fewer rows.
    filter : {"root", "cut-off", "resolvent"}, default="root"
        How eigenvalues weigh their eigenvectors; see `GraphKernel`.
    scale : {None, "standard"}, default=None
        "standard" divides columns by their deviation (and centres dense ones).
    {runtime}

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the normalised graph after the trivial one, falling.
    report_ : dict
        Nodes, neighbours and components of the graph before they were joined, and the cells of the search.
    n_features_in_, feature_names_in_ : int, ndarray of object
        Number of columns; their names, if they have names.

    See Also
    --------
    MaximumMarginClustering : Clusters, with the graph if it suits the rows.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.synthetic import make_shape
    >>> X, y = make_shape("two-moons", random_state=0)
    >>> features = mmcnb.GraphFeatures(n_components=4, random_state=0).fit(X)
    >>> features.transform(X).shape
    (1200, 4)
    """

    n_components: int = 50
    n_neighbors: int | None = None
    n_nodes: int = N_NODES
    filter: str = "root"
    scale: str | None = None

    fitted_names: ClassVar[tuple[str, ...]] = ("report",)

    def fit(self, X: Any, y: Any = None, *, element: str | None = None) -> Self:
        """Build the graph of a sample.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            The rows.
        y : None
            Ignored; for compatibility with scikit-learn.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        self
            The fitted transformer.

        Raises
        ------
        InputError
            If the rows or a parameter are invalid; the message says which, and what to do.
        """
        import pandas as pd

        self._check_parameters()
        kernel = GraphKernel(self.n_neighbors, self.n_nodes, self.filter)
        kernel.check()
        samples = read_input(self, X, reset=True, least_rows=2, element=element)
        random_state = check_random_state(self.random_state)
        shape = RowShape.of(samples, self.n_jobs)
        needs = needs_of_nodes(kernel, self.n_components, shape)
        plan = plan_fit(shape, needs, self.memory_limit, self.n_jobs)
        rows = sample_rows(samples.n_samples, needs.sample_size, None, random_state)
        with self._open_engine(plan.threads) as engine:
            drawn = draw_sample(engine, samples, rows, moments=self.scale == "standard")
            sample = scaled_matrix(drawn.sample, drawn.mean, drawn.deviation, overwrite=True)
            graph = node_graph(sample, kernel, self.n_components, random_state, engine)
        identity = Scores(np.eye(graph.map.n_features), np.zeros(graph.map.n_features))
        moments = drawn.mean, drawn.deviation
        self.model_ = Model(identity, None, None, *moments, feature_dtype="float64", graph=graph.map)
        self.report_, self.history_ = graph.to_dict(), pd.DataFrame()
        return self

    @property
    def eigenvalues_(self) -> np.ndarray:
        """Eigenvalues of the normalised graph after the trivial one, falling."""
        return np.array(self.report_["eigenvalues"])

    def transform(self, X: Any, *, element: str | None = None) -> np.ndarray:
        """Coordinates of rows.

        Parameters
        ----------
        X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
            Rows with the columns of the fit.
        element : str or None, default=None
            Element of an AnnData object, a group or a file, such as "layers/counts"; None is "X".

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            The coordinates.
        """
        features, identity = self._features(X, element)
        return self._run(DecisionPass(identity), features, "features")

    @property
    def _n_features_out(self) -> int:
        assert self.model_.graph is not None
        return self.model_.graph.n_features
