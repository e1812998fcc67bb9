"""The engine: passes beside a bare scan and a bare product, fits within 1 GiB, k-means, and Dask.

``python -m benchmarks engine [--quick] [--part NAME ...]`` measures, each in turn with its peer:

scan    the pass of ``predict`` over a Zarr store of incompressible float32 (64 columns, 64 basis vectors)
        against plain Zarr slices of the same chunks with the best number of threads
product the same pass over rows in memory (784 columns, 256 basis vectors) against a bare single-precision
        product of the pass's blocks
csr     kernel values of a9a against 200 of its rows, beside scikit-learn's ``rbf_kernel``
large   ``mmcnb fit`` of two rings and two blobs (32 columns) under 1 GiB: peak memory of the process tree,
        time in multiples of a bare scan, reads of the rows
peers   time and error beside k-means with ten starts: a9a, MNIST pairs, extended USPS
dask    a fit on 1 and 2 worker processes beside threads: time and labels

Ratios are of medians of runs that take turns. ``--quick`` takes small sizes.
"""

from __future__ import annotations

from benchmarks._common import Options, Result
from benchmarks._fits import dask, large, peers
from benchmarks._journal import Journal
from benchmarks._parts import run_parts
from benchmarks._passes import csr, product, scan

PARTS = {"scan": scan, "product": product, "csr": csr, "large": large, "peers": peers, "dask": dask}


def run(options: Options, journal: Journal) -> Result:
    """Run the study.

    Parameters
    ----------
    options : Options
        From the command line.
    journal : Journal
        Record of the cells.

    Returns
    -------
    Result
        Tables and goals.
    """
    return run_parts(PARTS, options, journal)
