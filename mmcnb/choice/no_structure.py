"""Fitted formulas for partitions of data without structure.

The loss L of a partition is the conditional entropy of the labels as a fraction of
their entropy. For data without structure, L follows a closed formula in the number of
nodes n, the number of clusters k, the entropy H of the volumes of the clusters, and the
intrinsic dimension d of the nodes. Real clusters have a smaller loss. Links between
groups follow a similar formula.

`python -m benchmarks no-structure --part constants` fits `LOG_LOSS` and `LOG_SPREAD` by
least squares on clouds without clusters, and
`python -m benchmarks.studies._no_structure_constants FOLDER` writes both to this file.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mmcnb.graph.neighbours import LEAST_DISTANCE, NodeGraph

Values = float | np.ndarray

# The terms are named after their formulas, where i = 1/d, u = log(n/k) and l = log k.
LOG_LOSS = {
    "1": 0.338,
    "i": 0.1264,
    "i²": 2.3488,
    "u": -0.1326,
    "ui": -0.6811,
    "ui²": -0.4522,
    "H": -0.0477,
    "Hi": 0.6175,
    "H²": -0.0043,
    "H²i": 0.0265,
    "l": -0.0557,
    "li": -1.1798,
    "uH": 0.0298,
    "uHi": -0.0225,
    "u²": 0.0049,
    "u²i": 0.0294,
}
LOG_SPREAD = {
    "1": -2.8672,
    "i": 1.4935,
    "log n": 0.2258,
    "i log n": -0.3563,
    "H": -0.4411,
    "Hi": 0.3235,
}
# Logarithm of the link of a merge of two groups of a and c rows (a <= c), among n rows
# in total. The terms use i = 1/d, r = d^(-1/2), u = log(a/10), v = log(n/a),
# w = log(c/a) and e = a/n.
LOG_LINK = {
    "1": -0.2998,
    "i": -2.0011,
    "r": -1.7875,
    "u": -0.1207,
    "v": -0.2353,
    "w": 0.2312,
    "ui": -1.76,
    "vi": -0.0026,
    "wi": 0.2198,
    "ur": 0.3285,
    "vr": 1.8275,
    "wr": -1.4191,
    "u²i": 0.0934,
    "v²": 0.0581,
    "w²": -0.0009,
    "wv": -0.0563,
    "v²i": -0.1307,
    "w²i": -0.4208,
    "vwi": 0.0568,
    "uvi": -0.0023,
    "uwi": 0.1572,
    "e": 2.1332,
    "ei": 10.1903,
    "er": -8.1478,
}
# Lower limit of the spread of log L, so that small spreads do not inflate z.
LEAST_SPREAD = 0.04
SPREAD_FACTOR = 1.5  # the residuals have heavier tails than a normal distribution


def dimension(graph: NodeGraph) -> float:
    """Return the intrinsic dimension of the nodes, between 1.01 and 60.

    This is the maximum likelihood estimate from the distances of each node to its ten
    nearest neighbours.

    References
    ----------
    E. Levina and P. Bickel, Maximum likelihood estimation of intrinsic dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.choice.no_structure import dimension
    >>> from mmcnb.graph.neighbours import node_graph
    >>> rows = np.random.RandomState(0).uniform(size=(900, 2))
    >>> 1.7 < dimension(node_graph(rows, None, np.random.RandomState(0))) < 2.3
    True
    """
    logs = np.log(np.maximum(graph.distances[:, :10], LEAST_DISTANCE))
    sums = (logs[:, -1:] - logs[:, :-1]).sum(axis=1).mean()
    return float(np.clip((logs.shape[1] - 2) / max(sums, 1e-9), 1.01, 60.0))


def loss_terms(
    n: Values, k: Values, entropy: Values, d: Values
) -> dict[str, np.ndarray]:
    """Return the terms of the formula for log L of data without structure, by name."""
    H = np.asarray(entropy)
    i = 1 / np.maximum(d, 1.2)
    u = np.log(n / np.asarray(k))
    logs = np.log(k)
    return {
        "1": np.ones_like(H),
        "i": i,
        "i²": i**2,
        "u": u,
        "ui": u * i,
        "ui²": u * i**2,
        "H": H,
        "Hi": H * i,
        "H²": H**2,
        "H²i": H**2 * i,
        "l": logs,
        "li": logs * i,
        "uH": u * H,
        "uHi": u * H * i,
        "u²": u**2,
        "u²i": u**2 * i,
    }


def spread_terms(n: Values, entropy: Values, d: Values) -> dict[str, np.ndarray]:
    """Return the terms of the formula for the spread of log L, by name.

    The formula gives the logarithm of the spread in data without structure.
    """
    H = np.asarray(entropy)
    i = 1 / np.maximum(d, 1.2)
    return {
        "1": np.ones_like(H),
        "i": i,
        "log n": np.log(n),
        "i log n": i * np.log(n),
        "H": H,
        "Hi": i * H,
    }


def link_terms(a: np.ndarray, c: np.ndarray, n: float, d: float) -> dict[str, Values]:
    """Return the terms of the formula for the link of a merge, by name.

    The formula gives the logarithm of the link in data without structure.
    """
    i = 1 / d
    r = d**-0.5
    u = np.log(a / 10)
    v = np.log(n / a)
    w = np.log(c / a)
    e = np.exp(-v)
    return {
        "1": np.ones_like(u),
        "i": i,
        "r": r,
        "u": u,
        "v": v,
        "w": w,
        "ui": u * i,
        "vi": v * i,
        "wi": w * i,
        "ur": u * r,
        "vr": v * r,
        "wr": w * r,
        "u²i": u**2 * i,
        "v²": v**2,
        "w²": w**2,
        "wv": w * v,
        "v²i": v**2 * i,
        "w²i": w**2 * i,
        "vwi": v * w * i,
        "uvi": u * v * i,
        "uwi": u * w * i,
        "e": e,
        "ei": e * i,
        "er": e * r,
    }


def term_matrix(terms: Mapping[str, Values]) -> np.ndarray:
    """Return the terms, stacked along the last axis of an array."""
    return np.stack(np.broadcast_arrays(*terms.values()), axis=-1)


def weighted_sum(terms: Mapping[str, Values], coefficients: Mapping[str, float]) -> Any:
    """Return the sum of the terms, each multiplied by the coefficient of its name."""
    return term_matrix(terms) @ np.array([coefficients[name] for name in terms])


def significance(n: float, k: Values, loss: Values, entropy: Values, d: float) -> Any:
    """Return the evidence z that a loss is smaller than in data without structure.

    z is the log loss expected for data without structure, minus the observed log loss,
    divided by 1.5 times the spread of the log loss in data without structure. The
    divisor is at least 0.04.

    Parameters
    ----------
    n : float
        Number of nodes.
    k, loss, entropy : int and float, or ndarrays of one shape
        Number of clusters of the partition, its positive loss, and the entropy of the
        volumes of its clusters, in nats.
    d : float
        Intrinsic dimension of the nodes, see `dimension`.

    Returns
    -------
    float or ndarray
        z. The larger it is, the less likely is the loss for data without structure.

    Examples
    --------
    >>> from mmcnb.choice.no_structure import significance
    >>> bool(significance(1000, 2, 0.01, 0.693, 5.0) > 10)
    True
    >>> bool(significance(1000, 2, 0.7, 0.693, 5.0) < 1)
    True
    """
    spread = np.exp(weighted_sum(spread_terms(n, entropy, d), LOG_SPREAD))
    expected = weighted_sum(loss_terms(n, k, entropy, d), LOG_LOSS)
    return (expected - np.log(loss)) / np.maximum(LEAST_SPREAD, SPREAD_FACTOR * spread)
