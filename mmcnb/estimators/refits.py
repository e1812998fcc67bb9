"""Fits to parts of a sample, and how often they give a row the same cluster."""

from dataclasses import replace
from typing import Any

import numpy as np

from mmcnb.engine.session import FitSession
from mmcnb.estimators.choice import features_of, labels_of
from mmcnb.features.confidence import calibrated, kept_shares
from mmcnb.features.model import Model
from mmcnb.features.rules import margins_of
from mmcnb.kernels import unchecked as kernels
from mmcnb.least_squares.all_rows import constrained_scores
from mmcnb.least_squares.search import SampleClusters, SearchSettings, search

# Of the sample, in each refit. In theory fits to halves differ as two fits to new samples do; but smaller
# samples are harder too. Chosen on the tuning half of `python -m benchmarks choice --part confidence`.
PART = 0.6


def confidence_of_refits(
    settings: SearchSettings, session: FitSession, model: Model, n_refits: int
) -> dict[str, Any]:
    """How often rows of some margin keep their cluster, from fits to random parts of the sample.

    Parameters
    ----------
    settings : SearchSettings
        How each part is clustered; in the place of a method by the hinge loss, too.
    session : FitSession
        The fit.
    model : Model
        The model of the fit, for rows whose columns are scaled.
    n_refits : int
        Number of parts, at least 2.

    Returns
    -------
    dict
        The knots of a `Confidence`.
    """
    size, labellings, k = session.sample.shape[0], list[np.ndarray](), settings.partition.n_clusters
    part = max(k, int(PART * size))
    for _ in range(n_refits):
        rows = np.sort(session.random_state.permutation(size)[:part])
        one = replace(session.of_rows(rows), random_state=np.random.RandomState(session.seed()))
        labellings.append(labels_of(model_of_sample(one, search(one, settings)), session.sample))
    values = model.rule.decide(features_of(model, session.sample))
    return calibrated(margins_of(values), kept_shares(labellings, k)).to_dict()


def model_of_sample(session: FitSession, clusters: SampleClusters) -> Model:
    """The model of a clustered sample alone, for rows whose columns are scaled."""
    sample, config = clusters.sample, clusters.config
    model = sample.model(session, config.alpha)
    assert model.ridge is not None
    given = sample.values, clusters.found[0].labels, config.n_clusters, sample.features.weights
    sums, sizes = kernels.cluster_row_sums(*given)
    bounds = config.bounds_by_size(sizes)
    rule, _ = constrained_scores(sample, model.ridge, config, model.ridge.means(sums, sizes), sizes, bounds)
    return replace(model, rule=rule, mean=None, deviation=None)
