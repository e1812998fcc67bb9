"""Benchmark data sets, read from a folder or downloaded, and checked against known facts.

A data set is loaded into memory or written to a Zarr store. ``python -m mmcnb.datasets
list`` shows the names; ``python -m mmcnb.datasets NAME --out NAME.zarr`` writes a
store. Files are read from the folder that MMCNB_DATA_DIR names, or else downloaded from
their publisher. `make_shape` generates small `SHAPES` of many kinds, and `make_block`
generates rows of synthetic data of any size. In a checkout, these modules are in the
folder ``data_loaders`` and can also be imported from there.
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
