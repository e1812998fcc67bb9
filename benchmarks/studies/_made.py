"""Rows that studies generate: few rows with many columns, or sparse rows with many columns."""

import numpy as np
from scipy.sparse import csr_array

from benchmarks.protocol import Data

# MARKERS: share of the columns in which the classes of `genes` differ. SHIFT: their
# difference.
MARKERS = 0.02
SHIFT = 1.0
# OWN_WORDS: share of the columns that are words of a topic. OWN_SHARE: share of these
# words in a text.
OWN_WORDS = 0.02
OWN_SHARE = 0.3


def genes(rows: int, columns: int, seed: int = 0) -> Data:
    """Draw two classes that differ in a few of very many columns; the other columns are noise.

    Examples
    --------
    >>> from benchmarks.studies._made import genes
    >>> genes(30, 200).X.shape
    (30, 200)
    """
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    X = random.standard_normal((rows, columns), np.float32)
    X[y == 1, : int(MARKERS * columns)] += SHIFT
    return Data("genes", X, y)


def texts(rows: int, columns: int, topics: int, words: int, seed: int = 0) -> Data:
    """Draw counts of words; some words of each text are words of its topic.

    Frequent words occur in the texts of all topics.

    Examples
    --------
    >>> from benchmarks.studies._made import texts
    >>> made = texts(30, 1000, 3, 20)
    >>> made.X.shape, int(made.X.sum())
    ((30, 1000), 600)
    """
    random = np.random.default_rng(seed)
    y = np.arange(rows) % topics
    shape = (rows, words)
    # Words with small numbers are frequent.
    common = columns ** random.random(shape)
    common = np.minimum(columns - 1, common).astype(int)
    n_preferred = max(1, int(OWN_WORDS * columns))
    preferred = y[:, None] * n_preferred + random.integers(0, n_preferred, shape)
    preferred = preferred * 31 % columns
    is_preferred = random.random(shape) < OWN_SHARE
    drawn = np.where(is_preferred, preferred, common).astype(np.int32)
    # k-means accepts only int32 indices.
    starts = np.arange(rows + 1, dtype=np.int32) * words
    counts = np.ones(drawn.size, np.float32)
    X = csr_array((counts, drawn.ravel(), starts), (rows, columns))
    X.sum_duplicates()
    return Data("texts", X, y)
