"""Rows that studies make themselves: few and wide, or sparse and wide."""

import numpy as np
from scipy.sparse import csr_array

from benchmarks.protocol import Data

# share of the columns in which the classes of `genes` differ, and by how much
MARKERS = 0.02
SHIFT = 1.0
# of the columns, words that a topic prefers; share of a text that they are
OWN_WORDS = 0.02
OWN_SHARE = 0.3


def genes(rows: int, columns: int, seed: int = 0) -> Data:
    """Draw two classes, apart in a few of very many columns; the rest is noise.

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
    """Draw counts of words, a few of each text from those of its topic.

    Frequent words are in all texts.

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
    # Small numbers are frequent words.
    common = columns ** random.random(shape)
    common = np.minimum(columns - 1, common).astype(int)
    n_preferred = max(1, int(OWN_WORDS * columns))
    preferred = y[:, None] * n_preferred + random.integers(0, n_preferred, shape)
    preferred = preferred * 31 % columns
    is_preferred = random.random(shape) < OWN_SHARE
    drawn = np.where(is_preferred, preferred, common).astype(np.int32)
    # k-means takes no indices but int32.
    starts = np.arange(rows + 1, dtype=np.int32) * words
    counts = np.ones(drawn.size, np.float32)
    X = csr_array((counts, drawn.ravel(), starts), (rows, columns))
    X.sum_duplicates()
    return Data("texts", X, y)
