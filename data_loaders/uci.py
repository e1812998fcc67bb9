"""The 15 data sets in Tab. I of the SKMMC paper, and iris, from the files of the UCI repository.

Features are not scaled. Classes that are words are replaced by numbers, as the
docstring of each reader describes; classes that are numbers are unchanged. Every reader
accepts the content (bytes) of each file of a data set and yields blocks of rows: X, an
ndarray of shape (rows, n_features) and dtype float64, and y, of shape (rows,) and dtype
int64.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ._dataset import Block, DataSet, File, Reader
from ._tables import codes, fields, numbers

_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_PAGE = "https://archive.ics.uci.edu/dataset"


def read_echocardiogram(content: bytes) -> Iterator[Block]:
    """Read the rows. Class: still alive at the end of the survival period (1) or not (0).

    The 8 features are survival (months), age, pericardial effusion, fractional
    shortening, epss, lvdd, wall motion score and wall motion index; the product, the
    name and the group are left out, and so is "alive at 1", which follows from
    survival. The row with a missing class is dropped, which leaves 131 rows; missing
    values are replaced by the mean of their column in these rows.
    """
    rows = [row for row in fields(content) if row[1] != "?"]
    text = np.array([[row[0], *row[2:9]] for row in rows])
    X = np.where(text == "?", "nan", text).astype(np.float64)
    yield (
        np.where(np.isnan(X), np.nanmean(X, axis=0), X),
        codes([row[1] for row in rows], {"0": 0, "1": 1}),
    )


def read_spectf(*contents: bytes) -> Iterator[Block]:
    """Read the training and then the test rows. Class, the first column: abnormal (1) or normal (0)."""
    for content in contents:
        yield numbers(fields(content), class_column=0)


def read_class_last(content: bytes) -> Iterator[Block]:
    """Read rows of numbers separated by commas, with the class in the last column.

    Classes of haberman: survived 5 years (1) or not (2). Liver: the selector in UCI's
    seventh column (1, 2), which the literature uses as the class. Spambase: spam (1) or
    not (0).
    """
    yield numbers(fields(content))


def read_spaced_class_last(content: bytes) -> Iterator[Block]:
    """Read rows of numbers separated by spaces, with the class in the last column.

    Classes of heart (Statlog): no disease (1), disease (2). Australian: 0 and 1; UCI
    has coded the attributes as numbers. German, in the numeric form with 24 features:
    good (1), bad (2).
    """
    yield numbers(fields(content, separator=None))


def read_ionosphere(content: bytes) -> Iterator[Block]:
    """Read the rows. Class: good (g, 1) or bad (b, 0) radar returns. The second feature, 0 in every row, is kept."""
    yield numbers(fields(content), classes={"b": 0, "g": 1})


def read_house_votes(content: bytes) -> Iterator[Block]:
    """Read the votes: y is 1, n is -1, ? is 0. Class, the first column: democrat (0) or republican (1)."""
    rows = fields(content)
    votes = [codes(row[1:], {"y": 1, "n": -1, "?": 0}) for row in rows]
    parties = codes([row[0] for row in rows], {"democrat": 0, "republican": 1})
    yield np.array(votes, np.float64), parties


def read_clean1(content: bytes) -> Iterator[Block]:
    """Read Musk, version 1, without its two columns of names. Class: musk (1) or not (0)."""
    yield numbers([row[2:] for row in fields(content)])


def read_breast(content: bytes) -> Iterator[Block]:
    """Read the original Wisconsin breast cancer data. Class: benign (2) or malignant (4).

    The sample number is dropped, and so are the 16 rows with a missing value, which
    leaves 683 of the 699 rows.
    """
    yield numbers([row[1:] for row in fields(content) if "?" not in row])


def read_satellite(*contents: bytes) -> Iterator[Block]:
    """Read two classes of Statlog's satellite image, red soil (1) and cotton crop (2), from the training and test rows."""
    for content in contents:
        X, y = numbers(fields(content, separator=None))
        yield X[y <= 2], y[y <= 2]


def read_kr_vs_kp(content: bytes) -> Iterator[Block]:
    """Read king and rook against king and pawn. Class: White can win (won, 1) or not (nowin, 0).

    Each of the 36 attributes is a letter and becomes one column: f is 0 and t is 1; g
    is 0 and l is 1; b is 0, n is 0.5 and w is 1.
    """
    values = {"f": 0, "t": 2, "g": 0, "l": 2, "b": 0, "n": 1, "w": 2}
    rows = fields(content)
    X = np.array([codes(row[:-1], values) for row in rows]) / 2
    yield X, codes([row[-1] for row in rows], {"nowin": 0, "won": 1})


def read_waveform(content: bytes) -> Iterator[Block]:
    """Read classes 1 and 2 of the waveforms with noise, which have 40 features; class 0 is left out."""
    X, y = numbers(fields(content))
    yield X[y > 0], y[y > 0]


def read_iris(content: bytes) -> Iterator[Block]:
    """Read the rows. Class: setosa (0), versicolor (1), virginica (2)."""
    species = {"Iris-setosa": 0, "Iris-versicolor": 1, "Iris-virginica": 2}
    yield numbers(fields(content), classes=species)


# sha256 of each file as the repository serves it, if a copy is known to equal that file
# byte for byte.
_SHA256 = {
    "echocardiogram/echocardiogram.data": "3d7dc4b3daef837f1b3b3c042e561697d6add718a2d6694de824faf1f1e340d4",
    "spectf/SPECTF.train": "9c837e4fd4b7931d9be5304989e39f284f35f767518ffd4dfd42a6a519a9f30c",
    "spectf/SPECTF.test": "467a65c81e14a71c029fa58bf9350ecdf28ff072303b99a832e8606e193a3882",
    "heart/heart.dat": "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9",
    "haberman/haberman.data": "b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2",
    "liver/bupa.data": "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92",
    "ionosphere/ionosphere.data": "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd",
    "house-votes-84/house-votes-84.data": "c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e",
    "breast-cancer-wisconsin/breast-cancer-wisconsin.data": (
        "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"
    ),
    "german/german.data-numeric": "2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",
    "waveform/waveform-+noise.data": "b95842ef008156c06fbdebd9b6b1c45b058dfd6592d41f21c73b8c164b9579c6",
    "iris/iris.data": "6f608b71a7317216319b4d27b4d9bc84e6abd734eda7872b71a458569e2656c0",
}


def _uci(
    name: str,
    n_features: int,
    counts: dict[int, int],
    read: Reader,
    page: str,
    folder: str | None,
    *paths: str,
) -> DataSet:
    """Return a data set with the given facts; its files are in `folder` of the repository, or None if only packed."""
    files = tuple(
        File(path, folder and f"{_URL}/{folder}/{Path(path).name}", _SHA256.get(path))
        for path in paths
    )
    return DataSet(name, n_features, counts, files, f"{_PAGE}/{page}", read)


# fmt: off
DATASETS = [
    _uci("echocardiogram", 8, {0: 88, 1: 43}, read_echocardiogram, "38/echocardiogram",
         "echocardiogram", "echocardiogram/echocardiogram.data"),
    _uci("spectf", 44, {0: 55, 1: 212}, read_spectf, "96/spectf+heart",
         "spect", "spectf/SPECTF.train", "spectf/SPECTF.test"),
    _uci("heart", 13, {1: 150, 2: 120}, read_spaced_class_last, "145/statlog+heart",
         "statlog/heart", "heart/heart.dat"),
    _uci("haberman", 3, {1: 225, 2: 81}, read_class_last, "43/haberman+s+survival",
         "haberman", "haberman/haberman.data"),
    _uci("liver", 6, {1: 145, 2: 200}, read_class_last, "60/liver+disorders",
         "liver-disorders", "liver/bupa.data"),
    _uci("ionosphere", 34, {0: 126, 1: 225}, read_ionosphere, "52/ionosphere",
         "ionosphere", "ionosphere/ionosphere.data"),
    _uci("house-votes", 16, {0: 267, 1: 168}, read_house_votes, "105/congressional+voting+records",
         "voting-records", "house-votes-84/house-votes-84.data"),
    _uci("clean1", 166, {0: 269, 1: 207}, read_clean1, "74/musk+version+1",
         None, "musk1/clean1.data"),
    _uci("breast", 9, {2: 444, 4: 239}, read_breast, "15/breast+cancer+wisconsin+original",
         "breast-cancer-wisconsin", "breast-cancer-wisconsin/breast-cancer-wisconsin.data"),
    _uci("australian", 14, {0: 383, 1: 307}, read_spaced_class_last, "143/statlog+australian+credit+approval",
         "statlog/australian", "australian/australian.dat"),
    _uci("german", 24, {1: 700, 2: 300}, read_spaced_class_last, "144/statlog+german+credit+data",
         "statlog/german", "german/german.data-numeric"),
    _uci("satellite-1v2", 36, {1: 1533, 2: 703}, read_satellite, "146/statlog+landsat+satellite",
         "statlog/satimage", "satellite/sat.trn", "satellite/sat.tst"),
    _uci("kr-vs-kp", 36, {0: 1527, 1: 1669}, read_kr_vs_kp, "22/chess+king+rook+vs+king+pawn",
         "chess/king-rook-vs-king-pawn", "kr-vs-kp/kr-vs-kp.data"),
    _uci("waveform-1v2", 40, {1: 1653, 2: 1655}, read_waveform, "108/waveform+database+generator+version+2",
         None, "waveform/waveform-+noise.data"),
    _uci("spambase", 57, {0: 2788, 1: 1813}, read_class_last, "94/spambase",
         "spambase", "spambase/spambase.data"),
    _uci("iris", 4, {0: 50, 1: 50, 2: 50}, read_iris, "53/iris",
         "iris", "iris/iris.data"),
]
# fmt: on
