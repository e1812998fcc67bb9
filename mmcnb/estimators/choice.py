"""What a choice was made from, candidate by candidate, and how far its clusters can be trusted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.session import FitResult, FitSession
from mmcnb.features.model import Model
from mmcnb.features.valley import Surroundings, boundary_valley, surroundings, weakest_valley
from mmcnb.samples import open_samples

# Chosen on the tuning half of `python -m benchmarks choice`.
CLEAR_CUT = 0.15  # of a random partition's; above it the clusters are no valleys of the graph
LEAST_AGREEMENT = 0.4  # of the other partitions with the best
NO_CUT = 0.01  # up to which the others do not matter: few of them find a small cluster
CLEAR_VALLEY = 0.3  # of density, in standard deviations; below it more than half of the fits had failed
CLEAR_AGREEMENT = 0.6  # of the searches; below it too: it was taken in when both halves had been seen
SAMPLED_ROWS, FEW_ROWS = 3000, 100  # on which valleys are measured; and with fewer, nothing is sure


@dataclass(frozen=True)
class Candidate:
    """A kernel that was tried, and what it was judged by; None where a sign was not needed.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    kernel, loss : str
        Kernel and loss.
    relative_cut : float or None, default=None
        Normalised cut on the graph, as a share of that of random labels.
    agreement : float or None, default=None
        Mean adjusted Rand index of its best partition with the others that the search found.
    broken : float or None, default=None
        Share of the known labels and pairs that it breaks.
    """

    n_clusters: int
    kernel: str
    loss: str
    relative_cut: float | None = None
    agreement: float | None = None
    broken: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the graph has such clusters: it is cut little, and other searches agree."""
        assert self.relative_cut is not None
        return self.relative_cut <= (CLEAR_CUT if self.agrees else NO_CUT)

    @property
    def agrees(self) -> bool:
        """Whether other searches find much the same."""
        assert self.agreement is not None
        return self.agreement >= LEAST_AGREEMENT

    def to_dict(self, taken: "Candidate") -> dict[str, Any]:
        """A row of the report."""
        return {**asdict(self), "taken": self is taken}


class Chosen(NamedTuple):
    """A fit, the candidate that was taken, and all that were tried, the graph first."""

    result: FitResult
    taken: Candidate
    candidates: list[Candidate]


def why(candidates: Sequence[Candidate], taken: Candidate) -> str:
    """One sentence on why the graph, which comes first, was taken, or why it was not."""
    graph = candidates[0]
    kernel = "graph" if taken is graph else "Gaussian"
    if graph.is_clear != (taken is graph):
        if taken.broken is None:
            reason = "the graph is not clear, but the fit with the Gaussian kernel does not converge."
            return f"{kernel} kernel: {reason}"
        return f"{kernel} kernel: it breaks {taken.broken:.0%} of what is known, the other kernel more."
    signs = f"its best partition cuts {graph.relative_cut:.2g} of what random labels cut"
    signs += f", and other searches agree with it by {graph.agreement:.2g}."
    return f"{kernel} kernel: {signs if graph.is_clear else f'the graph is not clear, as {signs}'}"


def trust_in(model: Model, session: FitSession, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """How far the clusters of a model can be trusted, measured on rows of the sample.

    Parameters
    ----------
    model : Model
        For rows whose columns are scaled.
    session : FitSession
        The fit.
    candidates : sequence of Candidate
        What was tried; the searches on the graph, which come first, are those that should agree.

    Returns
    -------
    dict
        As `trust` has it; "high" where one cluster was asked for.
    """
    if candidates[0].n_clusters == 1:
        reason = "one cluster holds all rows, as asked."
        return {"level": "high", "reason": reason, "valley": None, "weakest_valley": None}
    sample, random_state = session.sample, session.random_state
    rows = np.sort(random_state.permutation(sample.shape[0])[:SAMPLED_ROWS])
    around = surroundings(sample[rows], random_state, session.engine)
    return trust(around, labels_of(model, sample[rows]), candidates[0].agreement)


def trust(around: Surroundings, labels: np.ndarray, agreement: float | None = None) -> dict[str, Any]:
    """How far clusters can be trusted: whether rows get sparse between them, and whether searches agree.

    Parameters
    ----------
    around : Surroundings
        Of some rows.
    labels : ndarray of shape (m,), int
        Their clusters.
    agreement : float or None, default=None
        Mean adjusted Rand index of the best partition with the others; None where it is not known.

    Returns
    -------
    dict
        ``level`` is "low" where the boundary runs through rows as dense as elsewhere, or searches disagree.
        It is "medium" where the boundary does so between two of the clusters, or with fewer than 100 rows.
        Otherwise it is "high". ``reason`` is one sentence. ``valley`` and ``weakest_valley`` are the figures;
        None with one cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.estimators.choice import trust
    >>> from mmcnb.features.valley import surroundings
    >>> rows = np.random.RandomState(0).normal(size=(600, 2))
    >>> around = surroundings(rows, np.random.RandomState(0))
    >>> trust(around, (rows[:, 0] > 0) * 1)["level"]
    'low'
    """
    if (labels == labels[0]).all():
        reason = "all rows of the sample lie in one cluster; give fewer clusters."
        return {"level": "low", "reason": reason, "valley": None, "weakest_valley": None}
    valley, (weakest, pair) = boundary_valley(around, labels), weakest_valley(around, labels)
    figures = {"valley": valley, "weakest_valley": weakest}
    if valley < CLEAR_VALLEY:
        reason = (
            f"rows at the boundary lie nearly as close together as elsewhere (valley {valley:.2f}); try "
            "other columns, scale='standard' or another n_clusters."
        )
        return {"level": "low", "reason": reason, **figures}
    if agreement is not None and agreement < CLEAR_AGREEMENT:
        reason = (
            f"searches end in different clusters (agreement {agreement:.2f}), and others are hardly worse; "
            "try another n_clusters or other columns, or give a few labels."
        )
        return {"level": "low", "reason": reason, **figures}
    if weakest < CLEAR_VALLEY and pair is not None:
        one, other = pair
        reason = f"hardly any gap parts the clusters {one} and {other} (valley {weakest:.2f})."
        return {"level": "medium", "reason": reason, **figures}
    p = around.neighbours.shape[0]
    if p < FEW_ROWS:
        return {"level": "medium", "reason": f"{p} rows that differ are too few to tell.", **figures}
    reason = f"rows are sparse between the clusters (valley {valley:.2f})."
    return {"level": "high", "reason": reason, **figures}


def features_of(model: Model, rows: Any) -> Any:
    """Features of rows in memory."""
    return model.features(open_samples(rows)).block(0, rows.shape[0])


def labels_of(model: Model, rows: Any) -> np.ndarray:
    """Clusters of rows in memory, int64."""
    return model.rule.label(features_of(model, rows)).astype(np.int64)
