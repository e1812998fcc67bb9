"""Ringnorm: two Gaussians around nearly the same point, one of four times the variance; 20 features.

The form of the IDA benchmark collection (Raetsch): every feature standardised, the class first.
"""

from __future__ import annotations

from collections.abc import Iterator

from data_loaders._dataset import Block, DataSet, File
from data_loaders._tables import numbers

# One commit, so that the bytes stay what they are.
_COMMIT = "ea5a06d19c62de8bf28a43b2c948a011fd896fda"


def read_ringnorm(content: bytes) -> Iterator[Block]:
    """Class, the first column: the narrow Gaussian (-1) or the wide one (+1)."""
    yield numbers(content, class_column=0)


DATASETS = [
    DataSet(
        "ringnorm",
        20,
        {-1: 3736, 1: 3664},
        (
            File(
                "ringnorm/ringnorm_data.csv",
                f"https://raw.githubusercontent.com/mikeizbicki/datasets/{_COMMIT}/csv/ida/ringnorm_data.csv",
                "a4b49c912830e773fe8f59e0f21c7c0a1012447112df2a8c400826166e2b8df2",
            ),
        ),
        "https://github.com/mikeizbicki/datasets",
        read_ringnorm,
    )
]
