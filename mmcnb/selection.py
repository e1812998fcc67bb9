"""Evidence for a number of clusters: figures for each k, from fits to subsets of a sample."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index, contingency
from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import SAMPLE_ROWS, sample_rows
from mmcnb.errors import InputError, shown
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import PrincipalFeatures, choose_landmarks
from mmcnb.least_squares.partition import DEFAULT_ALPHA
from mmcnb.least_squares.search import LANDMARKS, sample_on_landmarks
from mmcnb.samples import open_samples
from mmcnb.samples.derived import standardized
from mmcnb.samples.matrix import as_matrix, with_short_indices

__all__ = ["select_n_clusters"]


def select_n_clusters(
    estimator: Any,
    X: Any,
    n_clusters: Iterable[int] = range(2, 13),
    *,
    n_subsets: int = 5,
    sample_size: int = SAMPLE_ROWS,
    random_state: Any = None,
) -> Any:
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
        sample, at most k - 1. ``relative_objective`` is J/(k - 1). ``margin`` is |w| if the estimator
        reports it, and otherwise NaN. ``stability`` is the mean adjusted Rand index between the fits.
        ``eigengap`` is eigenvalue k - 1 over eigenvalue k of the centred kernel. Figures of fits are means
        over the fits. J and the eigengap use a Gaussian kernel with the estimator's ``gamma``, if that
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
        name = type(estimator).__name__
        raise InputError(f"{name} has no n_clusters to choose; give an estimator that takes one.")
    numbers = _checked(n_clusters)
    Interval(2, integer=True).check("n_subsets", n_subsets)
    Interval(4, integer=True).check("sample_size", sample_size)
    source = generator(parameters.get("random_state") if random_state is None else random_state)
    seed, samples = int(source.randint(2**31 - 1)), open_samples(X)
    drawn = sample_rows(samples.n_samples, sample_size, None, source)
    sample = with_short_indices(as_matrix(samples.gather(drawn)))
    subsets = _subsets(sample.shape[0], max(numbers), int(n_subsets), np.random.RandomState(seed))
    features = _features(parameters, sample, seed)
    ridge = float(parameters.get("alpha") or DEFAULT_ALPHA)
    rows = []
    for k in numbers:
        fits = [_fresh(estimator, seed, k).fit(sample[part]) for part in subsets]
        labelings = [np.asarray(one.predict(sample)) for one in fits]
        objective = float(np.mean([features.objective(one.astype(np.int64), k, ridge) for one in labelings]))
        margins = [getattr(one, "report_", {}).get("w_norm", np.nan) for one in fits]
        pairs = [contingency(*pair) for pair in combinations(labelings, 2)]
        rows.append(
            {
                "n_clusters": k,
                "objective": objective,
                "relative_objective": objective / (k - 1),
                "margin": float(np.mean(margins)),
                "stability": float(np.mean([adjusted_rand_index(counts) for counts in pairs])),
                "eigengap": _eigengap(features.variances, k),
            }
        )
    return pd.DataFrame(rows)


def _checked(n_clusters: Iterable[int]) -> list[int]:
    given = list(n_clusters) if np.iterable(n_clusters) else []
    if not given:
        raise InputError(f"n_clusters={shown(n_clusters)} is no list of numbers; give one: range(2, 13).")
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


def _eigengap(variances: np.ndarray, k: int) -> float:
    """Ratio of eigenvalues k - 1 and k; centring removes one direction, so k clusters show in k - 1."""
    # Smaller eigenvalues are rounding.
    if k > variances.shape[0] or variances[k - 1] < 1e-6 * variances[0]:
        return float("nan")
    return float(variances[k - 2] / variances[k - 1])


def _subsets(
    n_samples: int, n_clusters: int, n_subsets: int, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Rising row numbers of random subsets of a sample: two thirds of its rows, at most 1,000."""
    # The local search takes a second for 1,000 rows.
    size = min(1000, 2 * n_samples // 3)
    if size <= n_clusters:
        subsets = f"subsets of {size} of the {n_samples} rows of the sample"
        fault = f"stability compares fits on {subsets}, which are too few for n_clusters={n_clusters}"
        raise InputError(f"{fault}; give more rows, a larger sample_size or fewer clusters.")
    return [np.sort(random_state.permutation(n_samples)[:size]) for _ in range(n_subsets)]


def _fresh(estimator: Any, seed: int, n_clusters: int) -> Any:
    """An unfitted copy with a number of clusters, the seed and no checkpoint."""
    from sklearn.base import clone

    given = {"random_state": seed, "checkpoint": None, "n_clusters": n_clusters}
    known = estimator.get_params()
    return clone(estimator).set_params(**{name: given[name] for name in given.keys() & known.keys()})
