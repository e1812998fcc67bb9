"""The one place that imports numba.

Kernels are compiled on first use, without the GIL, and kept in an on-disk
cache where the machine allows one.
"""

import logging
from collections.abc import Callable
from typing import Any

import numba

logger = logging.getLogger("mmcnb")

# Sums may be reordered for SIMD; NaN and infinity keep their meaning.
VECTORISED = {"reassoc", "contract", "nsz", "arcp"}


def njit(**options: Any) -> Callable[[Callable], Callable]:
    """Compile a kernel: no GIL, cached on disk when a cache folder can be written.

    Parameters
    ----------
    **options
        Passed to ``numba.njit``; ``fastmath=VECTORISED`` lets sums be vectorised.

    Returns
    -------
    callable
        A decorator.
    """

    def decorate(function: Callable) -> Callable:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError as error:  # no folder for the cache: read-only or zipped installs
            logger.info("kernel %s is compiled anew in each process: %s", function.__name__, error)
            return numba.njit(nogil=True, **options)(function)

    return decorate
