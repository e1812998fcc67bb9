"""Twelve more data sets of the UCI repository, from copies of their files at a fixed commit.

``pendigits`` has the training rows and then the test rows; ``pendigits-train`` and
``pendigits-test`` have one of the files. ``satellite`` and ``waveform`` have all of
their classes. ``shuttle-test`` has only the test rows, because the training rows are
published only packed (.Z). The others are ``segment``, ``wdbc``, ``magic``, ``letter``,
``cnae9``, ``dermatology``, ``new-thyroid`` and ``faults``. Features are not scaled.
Classes that are words are replaced by numbers, as the docstring of each reader
describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase

import numpy as np

from ._dataset import Block, DataSet, Reader, published_files, whole_and_parts
from ._tables import fields, numbers
from .uci import read_class_last, read_spaced_class_last

# The addresses name commits, so that the files cannot change.
_RAW = "https://raw.githubusercontent.com"
_COPIES = (
    f"{_RAW}/mikeizbicki/datasets/ea5a06d19c62de8bf28a43b2c948a011fd896fda/csv/uci"
)
_WAVES = f"{_RAW}/javierfernandobotia/AnalisisAvanzadoDatos/32f8fffb111d177fc3476e70752c1b89a7b69417"
_PAGE = "https://archive.ics.uci.edu/dataset"


def read_pendigits(*contents: bytes) -> Iterator[Block]:
    """Read one file or both: the x and y (0 to 100) of eight points on the pen's path, and then the digit."""
    for content in contents:
        yield numbers(fields(content))


def read_wdbc(content: bytes) -> Iterator[Block]:
    """Read the diagnostic Wisconsin breast cancer data. Class: benign (B, 0) or malignant (M, 1).

    The number of the patient is dropped. The standard deviations of two columns differ
    by a factor of 215,000.
    """
    yield numbers(
        [row[1:] for row in fields(content)], class_column=0, classes={"B": 0, "M": 1}
    )


def read_magic(content: bytes) -> Iterator[Block]:
    """Read particle showers seen by a gamma-ray telescope. Class, the last column: gamma (g, 1) or hadron (h, 0)."""
    yield numbers(fields(content), classes={"h": 0, "g": 1})


def read_letter(content: bytes) -> Iterator[Block]:
    """Read sixteen measures of printed capitals. Class, the first column: A (0) to Z (25)."""
    classes = {letter: number for number, letter in enumerate(ascii_uppercase)}
    yield numbers(fields(content), class_column=0, classes=classes)


def read_landsat(*contents: bytes) -> Iterator[Block]:
    """Read Statlog's satellite image. Class, the last column: the kind of ground, 1 to 5 and 7."""
    for content in contents:
        yield numbers(fields(content, separator=None))


def read_class_first(content: bytes) -> Iterator[Block]:
    """Read rows of numbers separated by commas, with the class in the first column.

    CNAE-9 has counts of words; its classes are kinds of business (1 to 9). Classes of
    new-thyroid: normal (1), hyper (2), hypo (3).
    """
    yield numbers(fields(content), class_column=0)


def read_dermatology(content: bytes) -> Iterator[Block]:
    """Read the rows without the age, which is missing in 8 rows. Class, the last column: the disease, 1 to 6."""
    yield numbers([row[:33] + row[34:] for row in fields(content)])


def read_faults(content: bytes) -> Iterator[Block]:
    """Read faults of steel plates. Seven columns of 0 and 1 after the 27 features become the classes 1 to 7.

    The classes are pastry (1), scratches in Z (2) and in K (3), stains (4), dirt (5),
    bumps (6) and other faults (7).
    """
    table = np.array(fields(content, separator=None), np.float64)
    yield table[:, :27], table[:, 27:].argmax(axis=1) + 1


_TRAIN = {
    "pendigits.train.data": "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3"
}
_TEST = {
    "pendigits.test.data": "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015"
}
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
    sha256: dict[str, str],
) -> DataSet:
    """Return a data set with the given facts; `sha256` has the hash of each file in the folder of its name."""
    files = published_files(name.removesuffix("-test"), url, sha256)
    return DataSet(name, n_features, counts, files, f"{_PAGE}/{page}", read)


_LETTERS = (
    789,
    766,
    736,
    805,
    768,
    775,
    773,
    734,
    755,
    747,
    739,
    761,
    792,
    783,
    753,
    803,
    783,
    758,
    748,
    796,
    813,
    764,
    752,
    787,
    786,
    734,
)
# fmt: off
DATASETS = [
    *whole_and_parts("pendigits", 16, _PARTS, _PENDIGITS, read_pendigits),
    # Statlog's image segmentation: brickface (1), sky, foliage, cement, window, path
    # and grass (7).
    _copy("segment", 19, dict.fromkeys(range(1, 8), 330), read_spaced_class_last,
          "147/statlog+image+segmentation", _COPIES,
          {"segment.dat": "d8985260e6e47056da89a4e4124c82ee88fd6072e0db139484c50ff4b390cd82"}),
    _copy("wdbc", 30, {0: 357, 1: 212}, read_wdbc,
          "17/breast+cancer+wisconsin+diagnostic", _COPIES,
          {"wdbc.data": "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a"}),
    _copy("magic", 10, {0: 6688, 1: 12332}, read_magic,
          "159/magic+gamma+telescope", _COPIES,
          {"magic04.data": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"}),
    _copy("waveform", 40, {0: 1692, 1: 1653, 2: 1655}, read_class_last,
          "108/waveform+database+generator+version+2", _WAVES,
          {"waveform-+noise.data": "b95842ef008156c06fbdebd9b6b1c45b058dfd6592d41f21c73b8c164b9579c6"}),
    _copy("letter", 16, dict(enumerate(_LETTERS)), read_letter, "59/letter+recognition", _COPIES,
          {"letter-recognition.data": "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"}),
    _copy("satellite", 36, {1: 1533, 2: 703, 3: 1358, 4: 626, 5: 707, 7: 1508}, read_landsat,
          "146/statlog+landsat+satellite", _COPIES,
          {"sat.trn": "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
           "sat.tst": "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479"}),
    _copy("cnae9", 856, dict.fromkeys(range(1, 10), 120), read_class_first, "233/cnae+9", _COPIES,
          {"CNAE-9.data": "fec557bade36db8d35b29596d73eab7fd88c26f75f0ba07ee69636614c5d6055"}),
    _copy("dermatology", 33, {1: 112, 2: 61, 3: 72, 4: 49, 5: 52, 6: 20}, read_dermatology,
          "33/dermatology", _COPIES,
          {"dermatology.data": "455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742"}),
    _copy("new-thyroid", 5, {1: 150, 2: 35, 3: 30}, read_class_first, "102/thyroid+disease", _COPIES,
          {"new-thyroid.data": "0760039b928ecba5170f377b8fd96caaf55ed26f9861511c52f81395a9d8227a"}),
    _copy("faults", 27, {1: 158, 2: 190, 3: 391, 4: 72, 5: 55, 6: 402, 7: 673}, read_faults,
          "198/steel+plates+faults", _COPIES,
          {"Faults.NNA": "08994f5b0185a8e6cc22afe9910fd36834990fb1ca30852ed79012a832fbff55"}),
    _copy("shuttle-test", 9, {1: 11478, 2: 13, 3: 39, 4: 2155, 5: 809, 6: 4, 7: 2}, read_spaced_class_last,
          "148/statlog+shuttle", _COPIES,
          {"shuttle.tst": "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661"}),
]
# fmt: on
