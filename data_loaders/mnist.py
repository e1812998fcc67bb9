"""MNIST and Fashion-MNIST: 70,000 images of digits or clothes, as 28 x 28 pixels divided by 255.

``mnist`` has the training rows and then the test rows; ``mnist-train`` and
``mnist-test`` have one part. A name such as ``mnist-1v7`` selects the rows of two
digits from both parts, as in Tab. IV of the SKMMC paper. ``fashion-mnist`` has the same
form; its ten classes run from T-shirts, 0, to ankle boots, 9.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mmcnb.samples import BLOCK_ROWS

from ._dataset import Block, published_files, whole_and_parts

PAGE = "http://yann.lecun.com/exdb/mnist/"
FASHION_PAGE = "https://github.com/zalandoresearch/fashion-mnist"
# The publisher no longer serves the files; the checksums of this copy are the published
# ones.
_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION_URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049


def read_idx(*contents: bytes) -> Iterator[Block]:
    """Read pairs of IDX files.

    Parameters
    ----------
    *contents : bytes
        Images, labels, images, labels, ...

    Yields
    ------
    X : ndarray of shape (rows, 784), dtype float32
        Pixels between 0 (paper) and 1 (ink).
    y : ndarray of shape (rows,), dtype int64
        The digits.
    """
    for images, labels in zip(contents[::2], contents[1::2], strict=True):
        n_samples, height, width = _header(images, _IMAGES_MAGIC, 3)
        if _header(labels, _LABELS_MAGIC, 1) != [n_samples]:
            raise ValueError(
                f"the number of labels differs from the number of images ({n_samples})"
            )
        pixels = np.frombuffer(images, np.uint8, offset=16).reshape(
            n_samples, height * width
        )
        digits = np.frombuffer(labels, np.uint8, offset=8)
        if len(digits) != n_samples:
            raise ValueError(
                f"the header announces {n_samples} labels, but the file has {len(digits)}"
            )
        for start in range(0, n_samples, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            yield pixels[rows] / np.float32(255), digits[rows].astype(np.int64)


def _header(content: bytes, magic: int, n_dimensions: int) -> list[int]:
    found, *shape = np.frombuffer(content, ">i4", count=1 + n_dimensions).tolist()
    if found != magic:
        raise ValueError(
            f"the file begins with {found}, but an IDX file begins with {magic}"
        )
    return shape


_TRAIN = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
}
_TEST = {
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_TRAIN_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
_TEST_COUNTS = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)
_PARTS = {
    "train": (_TRAIN_COUNTS, published_files("mnist", _URL, _TRAIN)),
    "test": (_TEST_COUNTS, published_files("mnist", _URL, _TEST)),
}
_FASHION_TRAIN = {
    "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
}
_FASHION_TEST = {
    "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
_FASHION_PARTS = {
    "train": (
        (6000,) * 10,
        published_files("fashion-mnist", _FASHION_URL, _FASHION_TRAIN),
    ),
    "test": (
        (1000,) * 10,
        published_files("fashion-mnist", _FASHION_URL, _FASHION_TEST),
    ),
}
DATASETS = [
    *whole_and_parts("mnist", 784, _PARTS, PAGE, read_idx, "float32"),
    *whole_and_parts(
        "fashion-mnist", 784, _FASHION_PARTS, FASHION_PAGE, read_idx, "float32"
    ),
]
