"""The clusters to explain: their labels, and a sample of the rows of each."""

import os
from typing import Any, NamedTuple

import numpy as np

from mmcnb.engine.passes import sample_rows
from mmcnb.engine.run import Engine
from mmcnb.errors import InputError
from mmcnb.features.model import Model
from mmcnb.features.rules import LabelsPass
from mmcnb.samples import BLOCK_ROWS, GROUP_ROWS, Samples
from mmcnb.samples._arrays import plain_values
from mmcnb.stores._label_table import labels_of_rows


def labels_of(engine: Engine, model: Model, samples: Samples, own: Any) -> np.ndarray:
    """The labels of a fit, if the model gives the first and last rows the same ones; otherwise its own.

    Parameters
    ----------
    engine : Engine
        Runs the pass.
    model : Model
        Labels the rows.
    samples : Samples
        The rows.
    own : ndarray or None
        Labels of the rows of the fit.
    """
    rule: Any
    features, rule = model.labelling(samples)
    n = samples.n_samples

    def agrees(start: int) -> bool:
        stop = min(start + BLOCK_ROWS, n)
        return np.array_equal(rule.label(features.block(start, stop)), own[start:stop])

    if own is not None and own.size == n and agrees(0) and agrees((n - 1) // BLOCK_ROWS * BLOCK_ROWS):
        return np.asarray(own)
    return np.concatenate(engine.run(LabelsPass(rule), features, "labels"))


def given_labels(labels: Any, samples: Samples) -> np.ndarray:
    """Labels that a user gives, in memory or as a path, one a row."""
    if isinstance(labels, str | os.PathLike):
        return labels_of_rows(labels, None, samples)
    values = plain_values(labels, "labels", text=True)
    if values.shape != (samples.n_samples,):
        fault = f"labels has the shape {values.shape} for the {samples.n_samples} rows of {samples.name}"
        raise InputError(f"{fault}; give one label a row.")
    return values


class Groups(NamedTuple):
    """Rows by cluster.

    Attributes
    ----------
    clusters : ndarray of shape (k,)
        The labels that occur, in order.
    counts : ndarray of shape (k,), int64
        Rows of each.
    codes : ndarray of shape (n,), int8 or int32
        Place of the label of each row among them.
    """

    clusters: np.ndarray
    counts: np.ndarray
    codes: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Places of the clusters, without noise."""
        return np.flatnonzero(self.clusters != -1)


class Sample(NamedTuple):
    """Some rows.

    Attributes
    ----------
    X : ndarray or csr_array of shape (m, d)
        The rows, not scaled.
    rows : ndarray of shape (m,), int64
        Their numbers.
    codes : ndarray of shape (m,), int8 or int32
        Place of the cluster of each.
    weights : ndarray of shape (m,), float64
        How many rows of its cluster each stands for.
    """

    X: Any
    rows: np.ndarray
    codes: np.ndarray
    weights: np.ndarray


def grouped(labels: np.ndarray) -> Groups:
    """Rows by their labels.

    Raises
    ------
    InputError
        A label is a number that is not whole.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import grouped
    >>> grouped(np.array([3, -1, 3])).codes
    array([1, 0, 1], dtype=int8)
    """
    import pandas as pd

    sizes = pd.Series(labels, copy=False).value_counts().sort_index()
    clusters = sizes.index.to_numpy()
    if clusters.dtype.kind == "f" and (clusters % 1).any():
        example = clusters[clusters % 1 != 0][0]
        raise InputError(f"labels has numbers such as {example:g}; give whole numbers or names.")
    # A byte a row, of which each Dask worker gets that of its own rows.
    codes = np.empty(len(labels), np.int8 if len(clusters) < 128 else np.int32)
    for start in range(0, len(labels), GROUP_ROWS):
        part = slice(start, start + GROUP_ROWS)
        codes[part] = np.searchsorted(clusters, labels[part])
    clusters = clusters.astype(np.int64) if clusters.dtype.kind in "iufb" else clusters
    return Groups(clusters, sizes.to_numpy(), codes)


def sizes_of_samples(counts: np.ndarray, most: int) -> np.ndarray:
    """As many rows of each cluster as fall to it, and all rows of small ones.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.groups import sizes_of_samples
    >>> sizes_of_samples(np.array([900, 20, 80]), 100)
    array([40, 20, 40])
    """
    sizes = np.zeros_like(counts)
    for done, k in enumerate(np.argsort(counts, kind="stable")):
        sizes[k] = min(counts[k], max(1, (most - sizes.sum()) // (len(counts) - done)))
    return sizes


def drawn_rows(groups: Groups, sizes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Numbers of rows drawn at random from each cluster, in rising order."""
    random, rows = np.random.RandomState(seed), []
    for k, size in enumerate(sizes.tolist()):
        ranks, seen = sample_rows(int(groups.counts[k]), size, None, random), 0
        for start in range(0, len(groups.codes), GROUP_ROWS):
            members = np.flatnonzero(groups.codes[start : start + GROUP_ROWS] == k)
            first, last = np.searchsorted(ranks, (seen, seen + members.size))
            rows.append(start + members[ranks[first:last] - seen])
            seen += members.size
    return np.sort(np.concatenate(rows))
