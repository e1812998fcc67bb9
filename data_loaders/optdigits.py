"""UCI's optdigits: handwritten digits as 8 x 8 counts (0 to 16) of the black pixels in a square.

``optdigits`` has the 3,823 rows of optdigits.tra and then the 1,797 of optdigits.tes;
``optdigits-tra`` and ``optdigits-tes`` have one of the files. Names such as
``optdigits-3v8`` and ``optdigits-tes-1v7`` select the rows of two digits.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._dataset import Block, published_files, whole_and_parts
from ._tables import fields, numbers

PAGE = (
    "https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits"
)
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/optdigits"


def read_optdigits(*contents: bytes) -> Iterator[Block]:
    """Read files with 64 counts and the digit in each line.

    Parameters
    ----------
    *contents : bytes
        The text of each file.

    Yields
    ------
    X : ndarray of shape (rows, 64), dtype float64
        Counts from 0 to 16.
    y : ndarray of shape (rows,), dtype int64
        The digits.
    """
    for content in contents:
        yield numbers(fields(content))


_TRA = {
    "optdigits.tra": "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"
}
_TES = {
    "optdigits.tes": "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"
}
_TRA_COUNTS = (376, 389, 380, 389, 387, 376, 377, 387, 380, 382)
_TES_COUNTS = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
_PARTS = {
    "tra": (_TRA_COUNTS, published_files("optdigits", _URL, _TRA)),
    "tes": (_TES_COUNTS, published_files("optdigits", _URL, _TES)),
}
DATASETS = whole_and_parts("optdigits", 64, _PARTS, PAGE, read_optdigits)
