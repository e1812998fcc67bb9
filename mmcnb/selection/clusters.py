"""Evidence for a number of clusters: figures for each k, from fits to subsets of a sample."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb._constraints import Interval
from mmcnb.errors import InputError, shown
from mmcnb.features.bandwidth import default_gamma
from mmcnb.features.kernel import Kernel
from mmcnb.features.nystroem import PrincipalFeatures, choose_landmarks
from mmcnb.least_squares.all_rows import SAMPLE_ROWS
from mmcnb.least_squares.landmark_sample import LANDMARKS, sample_on_landmarks
from mmcnb.least_squares.stability import DEFAULT_ALPHA, SUBSETS, mean_adjusted_rand_index
from mmcnb.samples.derived import standardized
from mmcnb.selection.parameters import fit_subsets, fresh, seed_and_sample, subsets_of

if TYPE_CHECKING:
    import pandas as pd

SMALLEST_RATIO = 1e-6  # of eigenvalues of the kernel; less is rounding


def select_n_clusters(
    estimator: Any,
    X: Any,
    n_clusters: Iterable[int] = range(2, 13),
    *,
    n_subsets: int = SUBSETS,
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
    >>> from mmcnb.selection.clusters import select_n_clusters
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
    seed, sample = seed_and_sample(estimator, X, sample_size, random_state)
    subsets = subsets_of(sample, max(numbers), n_subsets, seed)
    features = _features(parameters, sample, seed)
    rows = []
    for k in numbers:
        labelings, fits = fit_subsets(fresh(estimator, seed, n_clusters=k), sample, subsets)
        objective = float(np.mean([_objective(features, parameters, one, k) for one in labelings]))
        rows.append(
            {
                "n_clusters": k,
                "objective": objective,
                "relative_objective": objective / (k - 1),
                "margin": float(np.mean([_margin(one) for one in fits])),
                "stability": mean_adjusted_rand_index(labelings),
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
    if k > variances.shape[0] or variances[k - 1] < SMALLEST_RATIO * variances[0]:
        return float("nan")
    return float(variances[k - 2] / variances[k - 1])
