"""A fit whose clusters keep the numbers of an earlier model."""

from typing import Any

import numpy as np

from mmcnb.choice.match import changes, matched
from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.engine.sample_weights import read_weights
from mmcnb.engine.session import whole_numbers
from mmcnb.errors import InputError, shown
from mmcnb.estimators.base import read_input
from mmcnb.features.model import Model, n_clusters_of, renumbered
from mmcnb.features.rules import LabelsPass, SizesPass
from mmcnb.samples import Samples, open_samples


def read_like(
    like: Any, X: Any, element: str | None = None
) -> tuple[Model, list[float], Samples]:
    """The model of a fitted estimator, the sizes of its clusters, and rows with its columns.

    Raises
    ------
    InputError
        If it is not fitted or has counted no clusters, or the rows have other columns.
    """
    if not getattr(like, "report_", {}).get("sizes"):
        raise InputError(
            f"like={shown(like)} is no fitted model with sizes of clusters; fit or load one."
        )
    return (
        like.model_,
        like.report_["sizes"],
        read_input(like, X, reset=False, element=element),
    )


def number_like(
    estimator: Any,
    samples: Samples,
    earlier: Any,
    sample_weight: Any = None,
    kept: Any = None,
) -> Any:
    """Number the clusters of a fitted estimator as those of an earlier model that they match.

    Both models label rows drawn at random, at most 100,000. Then one pass labels all
    rows by the new numbers, as these decide between equal scores.

    Parameters
    ----------
    estimator : MaximumMarginClustering
        Its model and its report are changed.
    samples : Samples
        All n rows.
    earlier : tuple
        The earlier model, the sizes of its clusters, and the rows with its columns, by
        `read_like`.
    sample_weight : ndarray of shape (n,), path or None, default=None
        Weights of the rows.
    kept : KeptLabels or None, default=None
        Where the labels of all rows are kept; None keeps none.

    Returns
    -------
    list
        What was kept of the labels.
    """
    (old, before, theirs), model, a = earlier, estimator.model_, len(earlier[1])
    is_weighted = sample_weight is not None
    weights, unit = (
        read_weights(sample_weight, samples.n_samples) if is_weighted else (None, 1.0)
    )
    # Two rows and 500 numbers a node take less memory than the graph did.
    most = int(estimator.n_nodes) * (2 + 500 // samples.n_features)
    rows = sample_rows(samples.n_samples, min(100_000, most), weights, 0)
    own = None if weights is None else weights[rows]
    bins: Any = (
        np.arange(a + 1),
        np.arange(n_clusters_of(model) + 1),
    )  # without -1, which is noise
    with estimator._engine_of(samples) as engine:
        one = _labels(engine, old, theirs, rows)
        other = _labels(engine, model, samples, rows)
        common = np.histogram2d(one, other, bins, weights=own)[0]
        numbers = matched(common)
        count = max(a, int(numbers.max()) + 1)
        new: Any = renumbered(model, numbers, count)
        features, rule = new.labelling(samples)
        sizes, _, found = engine.run(
            SizesPass(weights, rule, kept=kept), features, "labels"
        )
    table = np.zeros((count, count))
    after = whole_numbers((unit * sizes).tolist())
    table[:a, numbers] = common
    told = changes(table, [*before, *[0] * (count - a)], after)
    estimator.model_ = new
    estimator.report_ |= {"sizes": after, "changes": told}
    return found


def _labels(
    engine: Engine, model: Any, samples: Samples, rows: np.ndarray
) -> np.ndarray:
    """Labels of some rows by a model."""
    features, rule = model.labelling(
        open_samples(draw_sample(engine, samples, rows)[0])
    )
    return np.concatenate(engine.run(LabelsPass(rule), features))
