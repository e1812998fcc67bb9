"""Five data sets whose files were made from published ones, and must be in the folder MMCNB_DATA_DIR.

``mecs`` has 182 stem cells of mice in three phases of the cell cycle, as float32
logarithms of the counts of 8,989 genes. ``vowel`` has 990 English vowels of 10 numbers
each; the columns with the set, the speaker and the sex are dropped.
``agnews-embedded``, ``tweet-embedded`` and ``search-snippets-embedded`` are the texts
of the module `texts`, embedded by a multilingual universal sentence encoder. The
vectors have length 1 up to the precision of float16.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import numpy as np

from . import texts
from ._dataset import Block, DataSet, File

_SIMLR = "https://github.com/BatzoglouLabSU/SIMLR"
_VOWELS = "https://archive.ics.uci.edu/dataset/152/connectionist+bench+vowel+recognition+deterding+data"


def read_cells(content: bytes) -> Iterator[Block]:
    """Read the rows ``X`` and the classes ``y`` from a NumPy archive.

    Parameters
    ----------
    content : bytes
        The archive.

    Yields
    ------
    X : ndarray of shape (n_samples, n_features)
        The rows, unchanged.
    y : ndarray of shape (n_samples,), dtype int64
        The classes: phases 1 to 3 of the cell cycle.
    """
    yield _array(content, "X"), _array(content, "y").astype(np.int64)


def read_vowel(content: bytes) -> Iterator[Block]:
    """Read the vowels, whose classes follow from the order of the rows.

    Parameters
    ----------
    content : bytes
        The archive, with 13 columns ``X``.

    Yields
    ------
    X : ndarray of shape (n_samples, 10), dtype float64
        The columns after the set, the speaker and the sex.
    y : ndarray of shape (n_samples,), dtype int64
        The eleven vowels, 0 to 10. Every speaker says the vowels in the same order, so
        the class follows from the row number. The file stores the classes only as
        Python objects, which are not unpickled.
    """
    X = _array(content, "X")[:, 3:]
    yield X, np.arange(len(X)) % 11


def read_embedded(content: bytes, lines: bytes) -> Iterator[Block]:
    """Read embeddings of texts, and the classes from the file of the texts.

    Parameters
    ----------
    content : bytes
        The archive, in which ``X`` has one row per text.
    lines : bytes
        The file of the texts, in the format that `texts.read_texts` reads.

    Yields
    ------
    X : ndarray of shape (n_samples, n_features)
        The embeddings.
    y : ndarray of shape (n_samples,), dtype int64
        The classes.
    """
    yield _array(content, "X"), texts.parsed(lines)[0]


def _array(content: bytes, name: str) -> np.ndarray:
    with np.load(BytesIO(content)) as arrays:
        return arrays[name]


def _made(path: str, sha256: str) -> File:
    return File(path, None, sha256, made=True)


def _embedded(name: str, archive: str, sha256: str) -> DataSet:
    facts = next(one for one in texts.DATASETS if one.name == name)
    files = (
        _made(f"text/{archive}.sentence-embeddings.float16.npz", sha256),
        *facts.files,
    )
    told = (512, facts.class_counts, files, facts.page, read_embedded, "float32")
    return DataSet(f"{name}-embedded", *told)


_CELLS = _made(
    "mecs/mecs.npz", "7e58652c7fab9019d535cb1a97e2a97850097305d37d4085031af5db84b54397"
)
_VOWEL = _made(
    "vowel/vowel.npz",
    "58a6d98f724abb43fe4d53683f6bcf7f726f03360fa86d711c61b0483362c2d1",
)
DATASETS = [
    DataSet(
        "mecs", 8989, {1: 59, 2: 58, 3: 65}, (_CELLS,), _SIMLR, read_cells, "float32"
    ),
    DataSet("vowel", 10, dict.fromkeys(range(11), 90), (_VOWEL,), _VOWELS, read_vowel),
    _embedded(
        "agnews",
        "agnews",
        "babf9f4a65cbeb980c75ecc5c9796386c174c796216bd659502f602e435b924f",
    ),
    _embedded(
        "tweet",
        "tweet",
        "a8c9cc36956bf284fcd7471a6687e804ebfe2e3618dc1ef4c9332e7e01cd5d93",
    ),
    _embedded(
        "search-snippets",
        "searchsnippets",
        "16d19c47a065fa33027d44dc085b26b3b8e4a31cd1177a2b7fcb653f699d3467",
    ),
]
