"""Evidence for a number of clusters: figures for each k, from fits to subsets of a sample."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index, contingency
from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import SAMPLE_ROWS, draw_sample, sample_rows
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError, shown
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import PrincipalFeatures, choose_landmarks
from mmcnb.least_squares.landmark_sample import LANDMARKS, sample_on_landmarks
from mmcnb.least_squares.local_search import DEFAULT_ALPHA
from mmcnb.samples import open_samples
from mmcnb.samples.derived import standardized
from mmcnb.samples.matrix import with_short_indices

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["select_n_clusters"]


def select_n_clusters(
    estimator: Any,
    X: Any,
    n_clusters: Iterable[int] = range(2, 13),
    *,
    n_subsets: int = 5,
    sample_size: int = SAMPLE_ROWS,
    random_state: Any = None,
) -> "pd.DataFrame":
    """Figures for each number of clusters: evidence to examine, without a choice.

    For each k the estimator is fitted to subsets of a sample of the rows, and each fit labels the whole
    sample. A suitable number of clusters shows high stability, and J hardly rises beyond it. The eigengap
    depends on the kernel alone. The figures need not agree.

    Parameters
    ----------
    estimator : estimator
        Clusterer with the parameter ``n_clusters``, ``fit`` and ``predict``; it is cloned, not changed.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows; a sample of them is read once.
    n_clusters : iterable of int, default=range(2, 13)
        Numbers of clusters to examine, each at least 2.
    n_subsets : int, default=5
        Subsets, each of two thirds of the sample and at most 1,000 rows.
    sample_size : int, default=2000
        Most rows of the sample.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the subsets and the fits; None takes that of the estimator.

    Returns
    -------
    DataFrame
        One row for each k. ``n_clusters`` is k. ``objective`` is J = Σ|S_h|²/n_h of the labels of the
        sample, at most k - 1. ``relative_objective`` is J/(k - 1). ``margin`` is |w| where the estimator
        reports it, and NaN elsewhere. ``stability`` is the mean adjusted Rand index between the fits.
        ``eigengap`` is eigenvalue k - 1 over eigenvalue k of the centred kernel. Figures of fits are means
        over the fits. J and the eigengap use a Gaussian kernel with the estimator's ``gamma``, where that
        is a number or a rule of thumb. Otherwise sigma is 0.55 times the root mean squared distance between
        two rows.

    Raises
    ------
    InputError
        If the estimator has no ``n_clusters``, no k is given, or a k is below 2 or too large for the sample.

    See Also
    --------
    mmcnb.plotting.SelectionDisplay : Draws the figures against k.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.selection import select_n_clusters
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.4, random_state=0)
    >>> frame = select_n_clusters(mmcnb.UnsupervisedRLS(random_state=0), X, range(2, 6))
    >>> int(frame.loc[frame["eigengap"].idxmax(), "n_clusters"])
    3
    """
    import pandas as pd

    parameters = estimator.get_params()
    if "n_clusters" not in parameters:
        raise InputError(
            f"{type(estimator).__name__} has no n_clusters to choose; give an estimator that takes one."
        )
    numbers = _checked(n_clusters)
    Interval(2, integer=True).check("n_subsets", n_subsets)
    seed, sample = _seed_and_sample(estimator, X, sample_size, random_state)
    subsets = _subsets(sample.shape[0], max(numbers), int(n_subsets), np.random.RandomState(seed))
    features = _features(parameters, sample, seed)
    rows = []
    for k in numbers:
        fits = [_fresh(estimator, seed, k).fit(sample[part]) for part in subsets]
        labelings = [np.asarray(one.predict(sample)) for one in fits]
        objective = float(np.mean([_objective(features, parameters, one, k) for one in labelings]))
        rows.append(
            {
                "n_clusters": k,
                "objective": objective,
                "relative_objective": objective / (k - 1),
                "margin": float(np.mean([_margin(one) for one in fits])),
                "stability": _stability(labelings),
                "eigengap": _eigengap(features.variances, k),
            }
        )
    return pd.DataFrame(rows)


def _checked(n_clusters: Iterable[int]) -> list[int]:
    try:
        given = list(n_clusters)
    except TypeError as error:
        raise InputError(
            f"n_clusters={shown(n_clusters)} is no list; give one such as range(2, 13)."
        ) from error
    if not given:
        raise InputError("n_clusters is empty; give at least one number of clusters, such as range(2, 13).")
    for place, k in enumerate(given):
        Interval(2, integer=True).check(f"n_clusters[{place}]", k)
    return sorted({int(k) for k in given})


def _features(parameters: dict[str, Any], sample: Any, seed: int) -> PrincipalFeatures:
    """The sample in landmark features of its Gaussian kernel."""
    rows = standardized(sample, parameters.get("scale"))
    gamma = parameters.get("gamma")
    kernel = Kernel("rbf", default_gamma("auto" if gamma is None else gamma, "rbf", rows))
    basis = choose_landmarks(rows, min(LANDMARKS, sample.shape[0]), np.random.RandomState(seed))
    return sample_on_landmarks(rows, None, kernel, basis).features


def _objective(features: PrincipalFeatures, parameters: dict[str, Any], labels: np.ndarray, k: int) -> float:
    """J of labels at the estimator's ridge."""
    alpha = parameters.get("alpha")
    ridge = DEFAULT_ALPHA if alpha is None or isinstance(alpha, str) else float(alpha)
    return features.objective(labels.astype(np.int64), k, ridge)


def _margin(fitted: Any) -> float:
    return float(getattr(fitted, "report_", {}).get("w_norm", np.nan))


def _eigengap(variances: np.ndarray, k: int) -> float:
    """Ratio of eigenvalues k - 1 and k; centring removes one direction, so k clusters show in k - 1."""
    # Smaller eigenvalues are rounding.
    if k > variances.shape[0] or variances[k - 1] < 1e-6 * variances[0]:
        return float("nan")
    return float(variances[k - 2] / variances[k - 1])


def _seed_and_sample(estimator: Any, X: Any, sample_size: int, random_state: Any) -> tuple[int, Any]:
    """A seed for all fits, and a uniform sample of X in memory, read in one pass."""
    Interval(4, integer=True).check("sample_size", sample_size)
    source = generator(estimator.get_params().get("random_state") if random_state is None else random_state)
    seed, samples = int(source.randint(2**31 - 1)), open_samples(X)
    rows = sample_rows(samples.n_samples, sample_size, None, source)
    with ThreadEngine(estimator.get_params().get("n_jobs")) as engine:
        return seed, with_short_indices(draw_sample(engine, samples, rows).sample)


def _subsets(
    n_samples: int, n_clusters: int, n_subsets: int, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Rising row numbers of random subsets of a sample: two thirds of its rows, at most 1,000."""
    # The local search takes a second for 1,000 rows.
    size = min(1000, 2 * n_samples // 3)
    if size <= n_clusters:
        raise InputError(
            f"stability compares fits on subsets of {size} of the {n_samples} rows of the sample, which are "
            f"too few for n_clusters={n_clusters}; give more rows, a larger sample_size or fewer clusters."
        )
    return [np.sort(random_state.permutation(n_samples)[:size]) for _ in range(n_subsets)]


def _fresh(estimator: Any, seed: int, n_clusters: int) -> Any:
    """An unfitted copy with a number of clusters, the seed and no checkpoint."""
    from sklearn.base import clone

    given = {"random_state": seed, "checkpoint": None, "n_clusters": n_clusters}
    known = estimator.get_params()
    return clone(estimator).set_params(**{name: given[name] for name in given.keys() & known.keys()})


def _stability(labelings: Sequence[np.ndarray]) -> float:
    """Mean adjusted Rand index between any two labelings of the same rows."""
    pairs = combinations(labelings, 2)
    return float(np.mean([adjusted_rand_index(contingency(one, other)) for one, other in pairs]))
