"""Names of the methods and of their parameters on the command line."""

import ast
import re
from collections.abc import Sequence
from typing import Any

CLASSES = (
    "MaximumMarginClustering",
    "SparseKernelMMC",
    "CrammerSingerMMC",
    "UnsupervisedRLS",
    "EvolutionaryMMC",
    "MultipleKernelClustering",
    "KernelKMeans",
    "CPMMC",
    "KernelCPMMC",
)
METHODS = {re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower(): name for name in CLASSES}
DEFAULT = "maximum-margin-clustering"
# Parameters with an option of their own; `--set` sets all other parameters.
OPTIONS = (
    "n_clusters",
    "kernel",
    "metric",
    "min_cluster_size",
    "noise",
    "n_nodes",
    "scale",
    "random_state",
)


def value_of(text: str) -> Any:
    """Parse a Python literal; split other text at commas, or return it unchanged.

    Examples
    --------
    >>> from mmcnb.estimators.methods import value_of
    >>> [value_of(text) for text in ("0.5", "median", "False", "0.5,0.3", "linear,rbf")]
    [0.5, 'median', False, [0.5, 0.3], ['linear', 'rbf']]
    """
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if "," not in text:
            return text
        return [value_of(part.strip()) for part in text.split(",")]
    return list(value) if isinstance(value, tuple) else value


def text_of(value: Any) -> str | None:
    """Return the text that `value_of` parses to a given value, or None if none exists.

    Examples
    --------
    >>> from mmcnb.estimators.methods import text_of
    >>> [text_of(value) for value in (0.5, "median", "1", (5, 30), {0: "log"}, len)]
    ['0.5', 'median', "'1'", '5,30', "{0: 'log'}", None]
    """
    texts = [str(value), repr(value)]
    if isinstance(value, tuple):
        value = [*value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        texts.insert(0, ",".join(map(str, value)))
    for text in texts:
        parsed = value_of(text)
        if type(parsed) is type(value) and repr(parsed) == repr(value):
            return text
    return None
