"""Svmguide1: four measurements of a particle physics experiment, not scaled, in LIBSVM's form.

``svmguide1`` has the 3,089 training rows and then the 4,000 test rows;
``svmguide1-train`` and ``svmguide1-test`` have one of the two parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

from sklearn.datasets import load_svmlight_file

from ._dataset import Block, File, whole_and_parts

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"
_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"


def read_svmguide1(*contents: bytes) -> Iterator[Block]:
    """Read LIBSVM files with four features.

    Parameters
    ----------
    *contents : bytes
        The text of each file.

    Yields
    ------
    X : ndarray of shape (rows, 4), dtype float64
        The measurements.
    y : ndarray of shape (rows,), dtype int64
        0 and 1.
    """
    for content in contents:
        X, y = load_svmlight_file(BytesIO(content), n_features=4, zero_based=False)
        yield X.toarray(), y.astype("int64")


# No sha256, because no copy is known to equal the publisher's file byte for byte.
_PARTS = {
    "train": ((1089, 2000), (File("svmguide1/svmguide1", f"{_URL}/svmguide1"),)),
    "test": ((2000, 2000), (File("svmguide1/svmguide1.t", f"{_URL}/svmguide1.t"),)),
}
DATASETS = whole_and_parts("svmguide1", 4, _PARTS, PAGE, read_svmguide1)
