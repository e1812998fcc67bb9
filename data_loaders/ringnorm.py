"""Ringnorm: two Gaussians with 20 features and nearly the same mean; one has four times the variance.

The file is that of the IDA benchmark collection (Raetsch): every feature is
standardised, and the class is the first column.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._dataset import Block, DataSet, published_files
from ._tables import fields, numbers

# The address names a commit, so that the file cannot change.
_COMMIT = "ea5a06d19c62de8bf28a43b2c948a011fd896fda"
_URL = f"https://raw.githubusercontent.com/mikeizbicki/datasets/{_COMMIT}/csv/ida"
_SHA256 = {
    "ringnorm_data.csv": "a4b49c912830e773fe8f59e0f21c7c0a1012447112df2a8c400826166e2b8df2"
}
_PAGE = "https://github.com/mikeizbicki/datasets"


def read_ringnorm(content: bytes) -> Iterator[Block]:
    """Read the rows. Class, the first column: the narrow Gaussian (-1) or the wide Gaussian (+1)."""
    yield numbers(fields(content), class_column=0)


_FILES = published_files("ringnorm", _URL, _SHA256)
DATASETS = [DataSet("ringnorm", 20, {-1: 3736, 1: 3664}, _FILES, _PAGE, read_ringnorm)]
