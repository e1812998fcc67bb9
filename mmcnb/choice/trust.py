"""How far the partition that was taken can be trusted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmcnb._agreement import adjusted_rand_index, contingency
from mmcnb.choice.candidates import Candidate
from mmcnb.columns.columns import SingleColumns

# Fitted on other data sets; `python -m benchmarks choice` prints how often each level is right.
HIGH_AGREEMENT = 0.8
LOW_SUM, AGREEMENT_WEIGHT = 3.5, 1.5  # of J + 1.5 agreement


def trust(
    best: Candidate, others: Sequence[Candidate], single: SingleColumns | None = None
) -> dict[str, Any]:
    """The level of trust, from the agreement of the other candidates and from single columns.

    Parameters
    ----------
    best : Candidate
        The partition that was taken.
    others : sequence of Candidate
        All others.
    single : SingleColumns or None, default=None
        Columns that make the clusters alone.

    Returns
    -------
    dict
        ``level`` is "low", "medium" or "high". ``reason`` is one sentence. ``agreement`` is the mean adjusted
        Rand index with the others, each weighted by exp(J - J of the best). ``columns`` has the names of
        columns that make the clusters alone.
    """
    if int(best.labels.max()) == 0:
        reason = "one cluster contains all rows, as asked."
        return {"level": "low", "reason": reason, "agreement": 0.0, "columns": []}
    agreement = _agreement_of(best, others)
    agreed = f"other candidates agree by {agreement:.2f}" if others else "there is no other candidate"
    figures = f"{agreed}, and J is {best.score.J:.2f}"
    if single is not None:
        level, reason = "low", f"{single.sentence}."
    elif others and agreement >= HIGH_AGREEMENT:
        level, reason = "high", f"{figures}."
    elif best.score.J + AGREEMENT_WEIGHT * agreement < LOW_SUM:
        remedy = "try other columns, another scale or another n_clusters"
        level, reason = "low", f"{figures}; {remedy}."
    else:
        level, reason = "medium", f"{figures}."
    names = [] if single is None else single.names
    return {"level": level, "reason": reason, "agreement": agreement, "columns": names}


def _agreement_of(best: Candidate, others: Sequence[Candidate]) -> float:
    if not others:
        return 0.0
    weights = np.exp([min(one.score.J - best.score.J, 50.0) for one in others])
    same = [adjusted_rand_index(contingency(best.labels, one.labels)) for one in others]
    return float(weights @ np.array(same) / weights.sum())
