"""The widest margin between clusters of a sample: a candidate beside those of the neighbour graph."""

from dataclasses import replace

import numpy as np

from mmcnb.engine.plan import FitNeeds, RowShape
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.model import Model
from mmcnb.features.rules import Hyperplane, Scores
from mmcnb.hinge import multiclass
from mmcnb.hinge.landmarks import candidate_kernels, fit_on_landmarks, needs_of_landmarks
from mmcnb.hinge.needs import HELD_ROWS, MARGIN_ROUTINES, needs_of_search
from mmcnb.hinge.sample_search import search_config
from mmcnb.least_squares.partition import PartitionConfig
from mmcnb.least_squares.search import SearchSettings
from mmcnb.samples import open_samples

N_INIT = 8  # starts of least squares, from which more than two clusters come


def margin_on_sample(session: FitSession, n_clusters: int, kernel: str, seed: int) -> Model:
    """The widest margin between clusters of the sample of a fit, in one thread.

    Two clusters are those of `SparseKernelMMC`, and more those of `CrammerSingerMMC`, with their defaults.

    Parameters
    ----------
    session : FitSession
        The fit.
    n_clusters : int
        At least two.
    kernel : {"rbf", "linear"}
        The kernel.
    seed : int
        Seed of the fit.

    Returns
    -------
    Model
        For all rows; a decision value is a margin, in units of the margin of the fit.
    """
    with ThreadEngine(1) as engine:
        alone = _of_sample(session, engine, n_clusters, kernel, seed)
        if n_clusters == 2:
            kernels = candidate_kernels(kernel, "auto", alone.sample, alone.sample_weights)
            result = fit_on_landmarks(alone, search_config(alone), kernels, None)
        else:
            config = search_config(alone, max_rounds=multiclass.ROUNDS)
            result = multiclass.fit_on_landmarks(alone, _settings(n_clusters, kernel), config)
    return replace(result.model, rule=_in_margins(result), scaling=session.scaling)


def _settings(n_clusters: int, kernel: str) -> SearchSettings:
    return SearchSettings(PartitionConfig(n_clusters, n_init=N_INIT, cluster_sizes="equal"), kernel)


def margin_needs(rows: RowShape, n_clusters: int, kernel: str) -> FitNeeds:
    """Bytes and work of the fit to a sample of some rows."""
    if n_clusters == 2:
        needs = needs_of_landmarks(rows, None, None)
    else:
        needs = needs_of_search(rows, _settings(n_clusters, kernel))
    # The rounds of so few rows are compiled: no sweep over blocks.
    called = needs.routines.keys() - MARGIN_ROUTINES.keys()
    return replace(needs, routines={name: needs.routines[name] for name in sorted(called)})


def _of_sample(
    session: FitSession, engine: ThreadEngine, n_clusters: int, kernel: str, seed: int
) -> FitSession:
    """A fit to the sample alone, as if it were all rows."""
    session = session.of_size(HELD_ROWS)  # up to which rounds are compiled
    samples = open_samples(session.sample)
    rows = RowShape.of(samples, 1)
    needs = margin_needs(rows, n_clusters, kernel)
    plan = replace(session.plan, rows=rows, needs=needs, store="memory", threads=1)
    alone = replace(
        session.of_rows(np.arange(rows.n_samples)),
        engine=engine,
        samples=samples,
        weights=session.sample_weights,
        plan=plan,
        scaling=None,
        random_state=np.random.RandomState(seed),
        kept_labels=None,
    )
    return alone.of_size(min(needs.sample_size, rows.n_samples))


def _in_margins(result: FitResult) -> Scores:
    """The scores of a fit in units of its margin; a hyperplane gives two that differ by its value."""
    rule, rho = result.model.rule, float(result.attributes["rho"])
    unit = rho if rho > 0 else 1.0
    if isinstance(rule, Hyperplane):
        half = rule.coef / 2
        rule = Scores(np.column_stack([-half, half]), np.array([rule.offset, -rule.offset]) / 2)
    return Scores(rule.coef / unit, rule.offset / unit)
