"""Four data sets of short texts, as TF-IDF weights of their words: sparse rows of length 1.

``agnews`` has 8,000 news items, ``tweet`` 2,472 tweets, ``stackoverflow`` 20,000 titles
of questions and ``search-snippets`` 12,340 results of web searches. Words that occur in
fewer than three texts are left out, and so are scikit-learn's English stop words. Texts
without other words are rows of zeros: 3 tweets, 32 titles and 5 snippets. Classes keep
their numbers. The module `made` has sentence embeddings of three of the data sets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from ._dataset import Block, DataSet, File

PAGE = "https://github.com/rashadulrakib/short-text-clustering-enhancement"
# The address names a commit, so that the files cannot change.
_COMMIT = "f363b66e6fd51f9dd1db679d2a9ce55538ab9868"
_URL = f"https://raw.githubusercontent.com/rashadulrakib/short-text-clustering-enhancement/{_COMMIT}/data"


def read_texts(content: bytes) -> Iterator[Block]:
    """Compute the TF-IDF weights of the words of texts.

    Parameters
    ----------
    content : bytes
        UTF-8 text with one line for each text: its class, a tab and the text.

    Yields
    ------
    X : csr_matrix of shape (n_samples, n_words), dtype float64
        The weights, with the words in alphabetical order.
    y : ndarray of shape (n_samples,), dtype int64
        The classes.

    Examples
    --------
    >>> from mmcnb.datasets.texts import read_texts
    >>> [(X, y)] = read_texts(b"1\\tred rose\\n2\\tred wine\\n1\\ta red rose\\n1\\trose\\n")
    >>> X.toarray().round(2).tolist(), y.tolist()
    ([[0.71, 0.71], [1.0, 0.0], [0.71, 0.71], [0.0, 1.0]], [1, 2, 1, 1])
    """
    labels, texts = parsed(content)
    X = TfidfVectorizer(min_df=3, stop_words="english").fit_transform(texts)
    X.sort_indices()
    yield X, labels


def parsed(content: bytes) -> tuple[np.ndarray, list[str]]:
    """Split a file into the classes and the texts."""
    lines = [line.decode().split("\t", 1) for line in content.splitlines()]
    return np.array([label for label, _ in lines], np.int64), [
        text for _, text in lines
    ]


# fmt: off
# Number of rows of each class of `tweet`, from class 0; classes without rows are left out.
_TWEETS = (
    0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 24, 5, 4, 4, 27, 1, 1, 11, 1, 26, 40, 34, 60, 2, 4, 26, 13, 9,
    1, 7, 10, 0, 3, 0, 0, 0, 36, 28, 14, 0, 8, 5, 12, 0, 11, 36, 8, 0, 0, 1, 0, 5, 11, 0, 4, 114,
    11, 19, 17, 4, 248, 8, 31, 4, 9, 16, 80, 10, 17, 0, 3, 40, 43, 6, 17, 96, 0, 12, 1, 93, 16, 10, 22, 8,
    36, 19, 15, 90, 151, 19, 24, 1, 12, 5, 9, 52, 65, 55, 11, 249, 7, 16, 4, 5, 84, 0, 16, 23, 32, 9, 13,
)
# fmt: on
_SNIPPETS = (1500, 1500, 2210, 2660, 370, 1180, 1500, 1420)


def _texts(
    name: str,
    n_words: int,
    counts: dict[int, int],
    path: str,
    published: str,
    sha256: str,
) -> DataSet:
    file = File(f"text/{path}.txt", f"{_URL}/{published}", sha256)
    return DataSet(name, n_words, counts, (file,), PAGE, read_texts, layout="csr")


# fmt: off
DATASETS = [
    _texts("agnews", 8318, dict.fromkeys(range(1, 5), 2000), "agnews", "agnewsdataraw-8000",
           "9a3ecfb3d5daef1cdef2fa1cc23d1f1c23784220116c39072d6d8422f5781c06"),
    _texts("tweet", 1424, {label: count for label, count in enumerate(_TWEETS) if count}, "tweet",
           "tweet-original-order.txt", "bd63058a56d4b2ff35eca50db6fdbdf51d4dbc222e16604cbcaad813c2831479"),
    _texts("stackoverflow", 3779, dict.fromkeys(range(1, 21), 1000), "stackoverflow_true_text",
           "stackoverflow/stackoverflow_true_text",
           "e683a764d1c05828ee13828695fb273c3d61991b853af716da383061356e9ff5"),
    _texts("search-snippets", 7384, dict(enumerate(_SNIPPETS, 1)), "search_snippets_true_text",
           "search_snippets/search_snippets_true_text",
           "e39dbcb5d956c2a34d1a68727c18b05646dfd4921857f7f61beccf6481e94787"),
]
# fmt: on
