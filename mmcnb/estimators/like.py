"""Number the clusters of a fit like the matching clusters of an earlier model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmcnb.choice.match import changes, matched
from mmcnb.engine.passes import draw_sample, sample_rows
from mmcnb.engine.run import Engine
from mmcnb.engine.sample_weights import read_weights
from mmcnb.engine.session import whole_numbers
from mmcnb.errors import GapsError, InputError, shown
from mmcnb.estimators.given_rows import filled_from_fit, read_input
from mmcnb.features.labelling import KeptLabels, LabelsPass, SizesPass
from mmcnb.features.model import Model, renumbered
from mmcnb.samples import Samples, open_samples

if TYPE_CHECKING:
    from mmcnb.estimators.maximum_margin_clustering import MaximumMarginClustering

MOST_COMPARED = 100_000  # rows that both models label to match their clusters


class EarlierModel(NamedTuple):
    """An earlier estimator with its model and cluster sizes, and the rows of a new fit.

    ``samples`` are these rows, opened as input of the earlier estimator.
    """

    estimator: Any
    model: Model
    sizes: list[float]
    samples: Samples


def read_like(like: Any, X: object, element: str | None = None) -> EarlierModel:
    """Check the earlier estimator ``like``, and open the rows as its input.

    Raises
    ------
    InputError
        If the estimator is not fitted, if its report has no cluster sizes, or if the
        rows do not have the columns of its fit.
    """
    sizes = getattr(like, "report_", {}).get("sizes")
    if not sizes:
        raise InputError(
            f"like={shown(like)} is not a fitted model with cluster sizes; "
            "fit or load such a model."
        )
    samples = read_input(like, X, reset=False, element=element)
    return EarlierModel(like, like.model_, sizes, samples)


def number_like(
    estimator: MaximumMarginClustering,
    samples: Samples,
    earlier: EarlierModel,
    sample_weight: object = None,
    kept: KeptLabels | None = None,
) -> list[Any]:
    """Number the clusters of a fitted estimator like the clusters of an earlier model.

    Both models label a random sample of at most 100,000 rows, and their clusters are
    matched by these labels. One pass then labels all rows again, because the numbers of
    clusters break ties between equal scores.

    Parameters
    ----------
    estimator : MaximumMarginClustering
        The fitted estimator. Its ``model_`` and ``report_`` are changed.
    samples : Samples
        All n rows.
    earlier : EarlierModel
        Return value of `read_like`.
    sample_weight : ndarray of shape (n,), path or None, default=None
        Weight of each row.
    kept : KeptLabels or None, default=None
        Receives the labels of all rows; if None, labels are not kept.

    Returns
    -------
    list
        The kept labels, or their digests if ``kept`` writes them to a file.
    """
    weights = None
    unit = 1.0
    if sample_weight is not None:
        weights, unit = read_weights(sample_weight, samples.n_samples)
    # At most 2 + 500 // n_features rows per node are compared, so that the sample takes
    # less memory than the graph.
    most = int(estimator.n_nodes) * (2 + 500 // samples.n_features)
    rows = sample_rows(samples.n_samples, min(MOST_COMPARED, most), weights, 0)
    n_before = len(earlier.sizes)
    model = estimator.model_
    # The bins exclude the label -1 of noise.
    bins: Any = np.arange(n_before + 1), np.arange(model.rule.n_clusters + 1)
    with estimator._engine_of(samples) as engine:
        try:
            before = _labels(engine, earlier.model, earlier.samples, rows)
        except GapsError:
            filled = filled_from_fit(earlier.estimator, earlier.samples)
            if filled is None:
                raise
            before = _labels(engine, earlier.model, filled, rows)
        after = _labels(engine, model, samples, rows)
        row_weights = None if weights is None else weights[rows]
        common = np.histogram2d(before, after, bins, weights=row_weights)[0]
        numbers = matched(common)
        count = max(n_before, int(numbers.max()) + 1)
        model = renumbered(model, numbers, count)
        features, rule = model.labelling(samples)
        sweep = SizesPass(weights, rule, kept=kept)
        sizes, _, kept_labels = engine.run(sweep, features, "labels")
    table = np.zeros((count, count))
    table[:n_before, numbers] = common
    sizes_before = [*earlier.sizes, *[0] * (count - n_before)]
    sizes_after = whole_numbers((unit * sizes).tolist())
    estimator.model_ = model
    estimator.report_ |= {
        "sizes": sizes_after,
        "changes": changes(table, sizes_before, sizes_after),
    }
    return kept_labels


def _labels(
    engine: Engine, model: Model, samples: Samples, rows: np.ndarray
) -> np.ndarray:
    """Return the labels that a model gives to the rows with indices ``rows``."""
    sample = open_samples(draw_sample(engine, samples, rows)[0])
    features, rule = model.labelling(sample)
    return np.concatenate(engine.run(LabelsPass(rule), features))
