"""Bandwidth and ridge of any clusterer, chosen without labels on a sample of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mmcnb._config import generator
from mmcnb._constraints import Interval
from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError, shown
from mmcnb.features.bandwidth import mean_squared_distance
from mmcnb.least_squares.all_rows import SAMPLE_ROWS
from mmcnb.least_squares.stability import (
    ALPHAS,
    BANDWIDTHS,
    DEFAULT_ALPHA,
    SUBSETS,
    draw_subsets,
    mean_adjusted_rand_index,
    most_stable,
)
from mmcnb.samples import open_samples
from mmcnb.samples.derived import standardized
from mmcnb.samples.matrix import with_short_indices

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Selection:
    """The settings that were tried, and the chosen one.

    Parameters
    ----------
    frame : DataFrame
        One row for each setting.
    best_params : dict
        The chosen setting, for ``estimator.set_params(**best_params)``.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.selection import select_parameters
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(200, centers=[[0, 0], [9, 9]], random_state=0)
    >>> found = select_parameters(mmcnb.SparseKernelMMC(n_init=1, random_state=0), X)
    >>> list(found.best_params), int(found.frame["chosen"].sum())
    (['gamma'], 1)
    """

    frame: "pd.DataFrame"
    best_params: dict[str, float]


def select_parameters(
    estimator: Any,
    X: Any,
    *,
    widths: Sequence[float] = BANDWIDTHS,
    alphas: Sequence[float] = ALPHAS,
    n_subsets: int = SUBSETS,
    sample_size: int = SAMPLE_ROWS,
    random_state: Any = None,
) -> Selection:
    """Choose the bandwidth of the kernel, and the ridge where there is one, on a sample.

    An estimator with a ridge ``alpha`` is fitted to subsets of the sample at each bandwidth and ridge. The
    setting wins whose fits agree most on the whole sample, by the mean adjusted Rand index. But if the
    setting nearest to the defaults (sigma of 0.55, alpha of 1e-3) lies within 0.1 of it, the defaults win.
    An estimator without a ridge searches bandwidths by itself. Among partitions below the leave-one-out cut
    the largest |w|² relative to the total variance wins. Where the estimator has no search, subsets decide.

    Parameters
    ----------
    estimator : estimator
        Clusterer with ``gamma`` among its parameters, ``fit`` and ``predict``; it is cloned, not changed.
    X : array, CSR, frame, AnnData, path or Zarr node, of shape (n_samples, n_features)
        The rows; a sample of them is read once.
    widths : sequence of float, default=(0.4, 0.55, 0.75)
        Bandwidths sigma to try, in units of the root mean squared distance between two rows.
    alphas : sequence of float, default=(1e-4, 3e-4, 1e-3)
        Ridges to try.
    n_subsets : int, default=5
        Subsets, each of two thirds of the sample and at most 1,000 rows.
    sample_size : int, default=2000
        Most rows of the sample.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the subsets and the fits; None takes that of the estimator.

    Returns
    -------
    Selection
        ``frame`` has the columns gamma, width, alpha, stability, objective (mean over the subsets) and
        chosen; or gamma, width, relative_norm, score (leave-one-out) and chosen. ``best_params`` is for
        ``set_params``.

    Raises
    ------
    InputError
        If the estimator has no ``gamma``, a value is out of range, or the sample is too small.

    Examples
    --------
    >>> import mmcnb
    >>> from mmcnb.selection.parameters import select_parameters
    >>> from sklearn.datasets import make_moons
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> model = mmcnb.UnsupervisedRLS(n_clusters=2, random_state=0)
    >>> found = select_parameters(model, X, alphas=[1e-4, 1e-3], n_subsets=2)
    >>> sorted(found.best_params), len(found.frame)
    (['alpha', 'gamma'], 6)
    >>> model = model.set_params(**found.best_params).fit(X)
    """
    import pandas as pd

    parameters = estimator.get_params()
    if "gamma" not in parameters:
        raise InputError(
            f"{type(estimator).__name__} has no gamma to choose; give an estimator with a Gaussian kernel."
        )
    if parameters.get("kernel", "rbf") != "rbf":
        raise InputError(f"kernel={shown(parameters['kernel'])} has no width to choose; use kernel='rbf'.")
    check_positive("widths", widths)
    check_positive("alphas", alphas)
    seed, sample = seed_and_sample(estimator, X, sample_size, random_state)
    distance = mean_squared_distance(standardized(sample, parameters.get("scale")))
    if "alpha" not in parameters:
        selection = _own_search(fresh(estimator, seed, gamma="auto"), sample, distance)
        if selection is not None:
            return selection
    names = ("gamma", "alpha") if "alpha" in parameters else ("gamma",)
    ridges = alphas if "alpha" in parameters else (DEFAULT_ALPHA,)
    subsets = subsets_of(sample, parameters.get("n_clusters", 2), n_subsets, seed)
    rows: list[dict[str, Any]] = []
    for width, alpha in product(widths, ridges):
        gamma = 1 / (2 * width**2 * distance)
        setting = dict(zip(names, (gamma, alpha), strict=False))
        labelings, fits = fit_subsets(fresh(estimator, seed, **setting), sample, subsets)
        objective = float(np.mean([getattr(one, "objective_", np.nan) for one in fits]))
        figures = {"stability": mean_adjusted_rand_index(labelings), "objective": objective}
        rows.append({"gamma": gamma, "width": width, "alpha": alpha} | figures)
    frame = pd.DataFrame(rows)
    best = most_stable(*(frame[name].tolist() for name in ("stability", "width", "alpha")))
    frame["chosen"] = frame.index == best
    if "alpha" not in names:
        frame = frame.drop(columns="alpha")
    return Selection(frame, {name: float(rows[best][name]) for name in names})


def _own_search(estimator: Any, sample: Any, distance: float) -> Selection | None:
    """The bandwidths that an estimator tries by itself; None where it reports none."""
    import pandas as pd

    fitted = estimator.fit(sample)
    widths = getattr(fitted, "report_", {}).get("widths")
    if not widths:
        return None
    frame = pd.DataFrame(widths).sort_values("gamma", ascending=False, ignore_index=True)
    frame.insert(1, "width", 1 / np.sqrt(2 * frame["gamma"] * distance))
    frame["chosen"] = frame["gamma"] == fitted.gamma_
    return Selection(frame, {"gamma": float(fitted.gamma_)})


def check_positive(name: str, values: Sequence[float]) -> None:
    """Refuse an empty list, and values that are not positive numbers.

    Raises
    ------
    InputError
        If the list is empty or a value is not positive; the message names the list.
    """
    if np.ndim(values) != 1 or not len(values):
        raise InputError(f"{name}={shown(values)} cannot be tried; give at least one positive number.")
    for place, value in enumerate(values):
        Interval(0, open_low=True).check(f"{name}[{place}]", value)


def seed_and_sample(estimator: Any, X: Any, sample_size: int, random_state: Any) -> tuple[int, Any]:
    """A seed for all fits, and a uniform sample of X in memory, read in one pass.

    Raises
    ------
    InputError
        If the rows cannot be read, or the size is not a whole number of at least 4.
    """
    Interval(4, integer=True).check("sample_size", sample_size)
    given = estimator.get_params().get("random_state") if random_state is None else random_state
    source = generator(given)
    seed = int(source.randint(2**31 - 1))
    samples = open_samples(X)
    rows = sample_rows(samples.n_samples, sample_size, None, source)
    with ThreadEngine(estimator.get_params().get("n_jobs")) as engine:
        sample = draw_sample(engine, samples, rows).sample
    return seed, with_short_indices(sample)


def subsets_of(sample: Any, n_clusters: int, n_subsets: int, seed: int) -> list[np.ndarray]:
    """Subsets of the sample, the same at every setting.

    Raises
    ------
    InputError
        If there are fewer than two, or they are too small.
    """
    Interval(2, integer=True).check("n_subsets", n_subsets)
    return draw_subsets(sample.shape[0], n_clusters, int(n_subsets), np.random.RandomState(seed))


def fresh(estimator: Any, seed: int, **parameters: Any) -> Any:
    """An unfitted copy with other parameters, its own seed and no checkpoint."""
    from sklearn.base import clone

    known = estimator.get_params()
    given = {"random_state": seed, "checkpoint": None} | parameters
    return clone(estimator).set_params(**{name: value for name, value in given.items() if name in known})


def fit_subsets(
    estimator: Any, sample: Any, subsets: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[Any]]:
    """Labels of the whole sample from a fit to each subset, and the fits."""
    from sklearn.base import clone

    fits = [clone(estimator).fit(sample[rows]) for rows in subsets]
    return [np.asarray(one.predict(sample)) for one in fits], fits
