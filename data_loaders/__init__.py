"""Benchmark data: found or downloaded, checked against its known facts, in memory or as a Zarr store.

``python -m mmcnb.datasets list`` shows the names; ``python -m mmcnb.datasets NAME --out
NAME.zarr`` writes a store. Files are looked for in the folder that MMCNB_DATA_DIR
names, then downloaded from their publisher. `make_shape` makes small `SHAPES` of many
kinds, `make_block` rows of sets of any size. A checkout has these modules as
``data_loaders`` too, which is their place there.
"""

from ._fetch import (
    fetch_adult,
    fetch_mnist,
    fetch_optdigits,
    fetch_pendigits,
    fetch_uci,
    fetch_usps,
)
from ._files import Source
from ._load import load, names, registry, write
from .shapes import SHAPES, make_shape
from .synthetic import make_block, write_synthetic

__all__ = [
    "SHAPES",
    "Source",
    "fetch_adult",
    "fetch_mnist",
    "fetch_optdigits",
    "fetch_pendigits",
    "fetch_uci",
    "fetch_usps",
    "load",
    "make_block",
    "make_shape",
    "names",
    "registry",
    "write",
    "write_synthetic",
]
