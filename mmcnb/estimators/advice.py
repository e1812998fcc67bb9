"""Warnings about data and settings that make the clusters wrong or the fit slow.

Each check examines the sample or the store. If it finds a problem, it yields one
sentence that describes the problem and a remedy. The thresholds were chosen so that
none of the data sets used for tuning causes a warning. In these data sets, the column
with the largest variance contributes at most 74 % of the total variance (heart, german,
and moons with additional noise columns). In scikit-learn's wine data, it contributes
more than 99 %.
"""

from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from mmcnb._fit_warnings import Importance, warn
from mmcnb.engine.session import FitSession
from mmcnb.features.bandwidth import candidate_gammas
from mmcnb.samples import Samples
from mmcnb.samples.matrix import moments
from mmcnb.samples.zarr import chunk_advice

# A smaller square matrix may be symmetric by chance, and its rows would have too few
# neighbours for a graph.
LEAST_DISTANCES = 11
MOST_LOOKED_AT = 200  # maximum number of rows that are tested for symmetry

if TYPE_CHECKING:
    from mmcnb.estimators.base import Estimator


def warn_of_settings(estimator: "Estimator", session: FitSession) -> None:
    """Run all checks, and issue a warning for each problem.

    The category is scikit-learn's ``EfficiencyWarning`` if the problem makes the fit
    slow, and ``ClusterWarning`` if it may make the clusters wrong.

    Parameters
    ----------
    estimator : Estimator
        The estimator that is being fitted.
    session : FitSession
        Session of the fit, which contains the sample.
    """
    from sklearn.exceptions import EfficiencyWarning

    sample = session.sample
    distances = list(distance_advice(session.samples))
    for sentence in distances:
        warn(sentence, Importance.DATA)
    sentences: list[str] = []
    if estimator.scale is None:
        sentences += count_advice(sample)
        if not sentences and not distances:
            names = session.samples.feature_names
            sentences += spread_advice(sample, names, session.column_order)
    parameters = estimator.get_params(deep=False)
    if parameters.get("kernel") == "rbf":
        sentences += gamma_advice(parameters.get("gamma"), sample)
    for sentence in sentences:
        warn(sentence, Importance.CLUSTERS)
    slow = chunk_advice(session.samples)
    if slow:
        warn(slow, Importance.ADVICE, EfficiencyWarning)


def distance_advice(samples: Samples) -> Iterator[str]:
    """Yield a warning if the rows look like a matrix of pairwise distances.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.estimators.advice import distance_advice
    >>> from mmcnb.samples import open_samples
    >>> places = np.arange(11.0) ** 2
    >>> next(distance_advice(open_samples(abs(places - places[:, None]))))[:38]
    'X is symmetric with zeros on its diago'
    """
    n = samples.n_samples
    if samples.is_sparse or samples.n_features != n or n < LEAST_DISTANCES:
        return
    n_looked_at = min(n, MOST_LOOKED_AT)
    corner = np.asarray(samples.block(0, n_looked_at))[:, :n_looked_at]
    is_positive = np.count_nonzero(corner > 0) > 0.9 * (corner.size - n_looked_at)
    is_distance = not corner.diagonal().any() and corner.min() >= 0 and is_positive
    if is_distance and np.allclose(corner, corner.T, rtol=1e-5, atol=0):
        count = min(25, n - 1)
        yield (
            f"{samples.name} is symmetric with zeros on its diagonal, like a matrix of "
            "distances between rows, but its columns are used as features; cluster by "
            "distances with mmcnb.MaximumMarginClustering("
            'metric="precomputed").fit(sklearn.neighbors.kneighbors_graph('
            f'X, {count}, mode="distance", metric="precomputed")).'
        )


def spread_advice(
    sample: Any,
    feature_names: list[str] | None = None,
    column_order: np.ndarray | None = None,
) -> Iterator[str]:
    """Yield a warning if one column dominates the distances between rows.

    There is no warning if fewer than three columns vary. For each column of the sample,
    ``column_order`` contains its position in ``feature_names``. If it is None, both are
    in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.estimators.advice import spread_advice
    >>> list(spread_advice(np.random.default_rng(0).normal(size=(50, 3))))
    []
    """
    mean, square = moments(sample, None)
    variances = np.maximum(square - mean**2, 0)
    varying = variances[variances > 0]
    if varying.size < 3:
        return
    widest = int(variances.argmax())
    share = variances[widest] / variances.sum()
    # With this share, all other columns together contribute less than a tenth of the
    # mean squared distance.
    if share > 0.9 and variances[widest] > 100 * np.median(varying):
        column = widest if column_order is None else int(column_order[widest])
        name = column if feature_names is None else repr(feature_names[column])
        yield (
            f"column {name} has more than {int(100 * share)}% of the variance, "
            "so it alone decides which rows are close to each other; "
            "scale='standard' makes all columns count."
        )


def count_advice(sample: Any) -> Iterator[str]:
    """Yield a warning if sparse rows look like raw counts of words or genes.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from mmcnb.estimators.advice import count_advice
    >>> list(count_advice(csr_array(np.eye(9))))
    []
    """
    if not issparse(sample) or sample.nnz == 0:
        return
    values = sample.data
    if values.min() < 0 or values.max() < 5 or (values != np.round(values)).any():
        return
    used = np.unique(sample.indices[values > 0]).size
    counted = np.unique(sample.indices[values > 1]).size
    # In a matrix of counts, many nonzero entries are 1, some are large, and several
    # columns have entries above 1.
    is_large = counted >= max(3, 0.05 * used)
    if is_large and np.count_nonzero(values == 1) >= 0.3 * np.count_nonzero(values):
        yield (
            "the rows look like counts, so frequent words or genes and long rows "
            "dominate the distances; weight words, for example with "
            "sklearn.feature_extraction.text."
            "TfidfTransformer().fit_transform(X), and log-normalise single cells."
        )


def gamma_advice(gamma: object, sample: Any) -> Iterator[str]:
    """Yield a warning if gamma makes the kernel matrix almost constant or the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.estimators.advice import gamma_advice
    >>> list(gamma_advice(1e6, np.arange(9.0)[:, None]))
    ["gamma=1e+06 is too large: kernel values between different rows are almost 0; \
pass about 0.0094 to 0.6, or gamma='auto'."]
    """
    from sklearn.metrics.pairwise import euclidean_distances

    if not isinstance(gamma, Real) or sample.shape[0] < 3:
        return
    rows = np.arange(0, sample.shape[0], -(-sample.shape[0] // 200))
    squares = euclidean_distances(
        sample[rows].astype(np.float64), sample.astype(np.float64), squared=True
    )
    squares[np.arange(rows.size), rows] = np.inf
    nearest = np.exp(-float(gamma) * np.median(squares.min(axis=1)))
    squares[np.arange(rows.size), rows] = 0
    farthest = np.exp(-float(gamma) * np.quantile(squares, 0.99))
    gammas = candidate_gammas(sample)
    remedy = f"pass about {min(gammas):.2g} to {max(gammas):.2g}, or gamma='auto'."
    if nearest < 1e-3:
        yield (
            f"gamma={gamma:g} is too large: kernel values between different rows are "
            f"almost 0; {remedy}"
        )
    elif farthest > 0.98:
        yield (
            f"gamma={gamma:g} is too small: all kernel values are almost 1; {remedy}"
        )
