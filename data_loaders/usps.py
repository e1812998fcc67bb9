"""USPS: handwritten digits of 16 x 16 pixels, and an extended form with shifted zeros and ones.

The files are those of the book "The Elements of Statistical Learning", with pixels
between -1 and 1; the pixels in LIBSVM's files of the same name differ. ``usps`` has the
training rows and then the test rows; ``usps-train`` and ``usps-test`` have one of the
two parts.

``usps-extended`` (266,079 rows) and ``usps-extended-test`` (75,383 rows) are made from
the digits 0 and 1 of the training and of the test rows. Pixels are mapped to (x + 1) /
2, and each image is placed in 26 x 26 pixels of zeros and shifted by 0 to 10 pixels
down and to the right, which gives 121 rows per image, in the order of the file.
Although only about 15 % of the pixels are not zero, the rows are stored dense: the
shifted copies compress to about 3 MB on disk, a quarter of the size of CSR, and are
read at least as fast.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmcnb.samples import BLOCK_ROWS

from ._dataset import Block, DataSet, published_files, whole_and_parts

PAGE = "https://hastie.su.domains/ElemStatLearn/data.html"
_URL = "https://hastie.su.domains/ElemStatLearn/datasets"
SIDE = 16
SHIFTS = 11
EXTENDED_SIDE = SIDE + SHIFTS - 1
IMAGES = SHIFTS**2  # number of rows made from one image


def read_zip(*contents: bytes) -> Iterator[Block]:
    """Read files in the book's format: the digit and 256 pixels in each line.

    Parameters
    ----------
    *contents : bytes
        The text of each file.

    Yields
    ------
    X : ndarray of shape (rows, 256), dtype float32
        Pixels between -1 (paper) and 1 (ink).
    y : ndarray of shape (rows,), dtype int64
        The digits.
    """
    for content in contents:
        digits, pixels = _parse(content)
        yield pixels.astype(np.float32), digits


def read_extended(content: bytes) -> Iterator[Block]:
    """Generate the extended form of one file, block by block.

    Parameters
    ----------
    content : bytes
        The text of zip.train or zip.test.

    Yields
    ------
    X : ndarray of shape (rows, 676), dtype float32
        Pixels between 0 and 1.
    y : ndarray of shape (rows,), dtype int64
        0 and 1.
    """
    digits, pixels = _parse(content)
    wanted = digits <= 1
    images = ((pixels[wanted] + 1) / 2).astype(np.float32)
    n_samples = len(images) * IMAGES
    for start in range(0, n_samples, BLOCK_ROWS):
        rows = np.arange(start, min(start + BLOCK_ROWS, n_samples))
        yield shifted(images, rows), digits[wanted][rows // IMAGES]


def shifted(images: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Generate rows of the extended form.

    Parameters
    ----------
    images : ndarray of shape (n_images, 256)
        Images of 16 x 16 pixels.
    rows : ndarray of shape (n_rows,), dtype int64
        Row numbers: row ``121 i + 11 s + t`` is image i shifted s pixels down and t to
        the right.

    Returns
    -------
    ndarray of shape (n_rows, 676)
        Images of 26 x 26 pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.datasets.usps import shifted
    >>> shifted(np.ones((1, 256)), np.array([120])).reshape(26, 26)[9:11, 9:11]
    array([[0., 0.],
           [0., 1.]])
    """
    made = np.zeros((len(rows), EXTENDED_SIDE, EXTENDED_SIDE), dtype=images.dtype)
    squares = images.reshape(-1, SIDE, SIDE)
    image, shift = np.divmod(rows, IMAGES)
    for number in range(IMAGES):
        down, right = divmod(number, SHIFTS)
        here = np.flatnonzero(shift == number)
        made[here, down : down + SIDE, right : right + SIDE] = squares[image[here]]
    return made.reshape(len(rows), -1)


def _parse(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(content.split(), dtype=np.float64).reshape(-1, 1 + SIDE**2)
    return table[:, 0].astype(np.int64), table[:, 1:]


_TRAIN = {
    "zip.train.gz": "66ebf231ab51f2cf6ac1a892d0f98ccffee1079d7a5db638c1f11f366046ca16"
}
_TEST = {
    "zip.test.gz": "8dacc3c6e136af6c3488de9e5113a7daf140c8c2f1f0b61c54ee02f03f1a962f"
}
_TRAIN_COUNTS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)
_TEST_COUNTS = (359, 264, 198, 166, 200, 160, 170, 147, 166, 177)
_PARTS = {
    "train": (_TRAIN_COUNTS, published_files("usps", _URL, _TRAIN)),
    "test": (_TEST_COUNTS, published_files("usps", _URL, _TEST)),
}


def _extended(name: str, part: str) -> DataSet:
    counts, files = _PARTS[part]
    extended = {digit: IMAGES * counts[digit] for digit in (0, 1)}
    return DataSet(
        name, EXTENDED_SIDE**2, extended, files, PAGE, read_extended, dtype="float32"
    )


DATASETS = [
    *whole_and_parts("usps", SIDE**2, _PARTS, PAGE, read_zip, "float32"),
    _extended("usps-extended", "train"),
    _extended("usps-extended-test", "test"),
]
