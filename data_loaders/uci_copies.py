"""Five more sets of the UCI repository, from copies of its files that are kept at one commit.

They are ``pendigits``, ``segment``, ``wdbc``, ``magic`` and ``waveform``, which has all three classes.
``pendigits`` has the training rows and then the test rows; ``pendigits-train`` and ``pendigits-test`` have
one file. Features are raw: no column is scaled. Classes that are words become numbers, as each reader says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._dataset import Block, DataSet, Reader, published_files, whole_and_parts
from ._tables import fields, numbers
from .uci import read_class_last, read_spaced_class_last

# One commit each, so that the bytes stay the same.
_RAW = "https://raw.githubusercontent.com"
_COPIES = f"{_RAW}/mikeizbicki/datasets/ea5a06d19c62de8bf28a43b2c948a011fd896fda/csv/uci"
_WAVES = f"{_RAW}/javierfernandobotia/AnalisisAvanzadoDatos/32f8fffb111d177fc3476e70752c1b89a7b69417"
_PAGE = "https://archive.ics.uci.edu/dataset"


def read_pendigits(*contents: bytes) -> Iterator[Block]:
    """Eight points of a pen's path, each x and then y from 0 to 100, and the digit last; one file or both."""
    for content in contents:
        yield numbers(fields(content))


def read_wdbc(content: bytes) -> Iterator[Block]:
    """Wisconsin breast cancer, diagnostic. Class: benign (B, 0) or malignant (M, 1).

    The number of the patient is dropped; one column spreads 215,000 times as far as another.
    """
    yield numbers([row[1:] for row in fields(content)], class_column=0, classes={"B": 0, "M": 1})


def read_magic(content: bytes) -> Iterator[Block]:
    """Showers seen by a gamma-ray telescope. Class, the last column: gamma (g, 1) or hadron (h, 0)."""
    yield numbers(fields(content), classes={"h": 0, "g": 1})


_TRAIN = {"pendigits.train.data": "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3"}
_TEST = {"pendigits.test.data": "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015"}
_TRAIN_COUNTS = (780, 779, 780, 719, 780, 720, 720, 778, 719, 719)
_TEST_COUNTS = (363, 364, 364, 336, 364, 335, 336, 364, 336, 336)
_PARTS = {
    "train": (_TRAIN_COUNTS, published_files("pendigits", _COPIES, _TRAIN)),
    "test": (_TEST_COUNTS, published_files("pendigits", _COPIES, _TEST)),
}
_PENDIGITS = f"{_PAGE}/81/pen+based+recognition+of+handwritten+digits"


def _copy(
    name: str,
    n_features: int,
    counts: dict[int, int],
    read: Reader,
    page: str,
    url: str,
    file: str,
    sha256: str,
) -> DataSet:
    files = published_files(name, url, {file: sha256})
    return DataSet(name, n_features, counts, files, f"{_PAGE}/{page}", read)


# fmt: off
DATASETS = [
    *whole_and_parts("pendigits", 16, _PARTS, _PENDIGITS, read_pendigits),
    # Statlog's image segmentation: brickface (1), sky, foliage, cement, window, path and grass (7).
    _copy("segment", 19, dict.fromkeys(range(1, 8), 330), read_spaced_class_last,
          "147/statlog+image+segmentation", _COPIES, "segment.dat",
          "d8985260e6e47056da89a4e4124c82ee88fd6072e0db139484c50ff4b390cd82"),
    _copy("wdbc", 30, {0: 357, 1: 212}, read_wdbc,
          "17/breast+cancer+wisconsin+diagnostic", _COPIES, "wdbc.data",
          "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a"),
    _copy("magic", 10, {0: 6688, 1: 12332}, read_magic,
          "159/magic+gamma+telescope", _COPIES, "magic04.data",
          "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"),
    _copy("waveform", 40, {0: 1692, 1: 1653, 2: 1655}, read_class_last,
          "108/waveform+database+generator+version+2", _WAVES, "waveform-+noise.data",
          "b95842ef008156c06fbdebd9b6b1c45b058dfd6592d41f21c73b8c164b9579c6"),
]
# fmt: on
