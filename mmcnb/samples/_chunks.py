"""Whether the chunks of a store make reading slow, or larger than memory."""

import numpy as np
import zarr

from mmcnb._config import format_bytes
from mmcnb._machine import available_memory
from mmcnb.samples._base import Samples

TINY_BYTES = 2**15  # of a decoded chunk: below it the overhead of a read is most of it
MANY_CHUNKS = 256  # fewer tiny ones are read in no time
HUGE_SHARE = 1 / 8  # of the memory that is free: each thread decodes a chunk, and some are held


def chunk_advice(samples: Samples) -> str | None:
    """One sentence if the chunks of a Zarr store make reading slow; None if they are fine.

    Parameters
    ----------
    samples : Samples
        Rows of any storage.

    Returns
    -------
    str or None
        What is wrong, and the command that writes other chunks.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.samples import open_samples
    >>> from mmcnb.samples._chunks import chunk_advice
    >>> chunk_advice(open_samples(np.eye(3))) is None
    True
    """
    arrays = getattr(samples.root, "arrays", None)
    if not arrays or not isinstance(arrays[0], zarr.Array):
        return None
    trouble = _trouble(samples.root, arrays[0])
    name = samples.root.name
    return trouble and f"{name} has {trouble}; `mmcnb convert {name} OUT.zarr` writes chunks that read fast."


def _trouble(samples: Samples, array: object) -> str | None:
    shape, chunks = (tuple(getattr(array, name)) for name in ("shape", "chunks"))
    itemsize = np.dtype(samples.stored_dtype).itemsize
    size = int(np.prod(chunks)) * itemsize
    count = int(np.prod([-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)]))
    # Dense rows are read across all their columns.
    together = size * -(-shape[1] // chunks[1]) if len(shape) == 2 else size
    if min(together, int(np.prod(shape)) * itemsize) > HUGE_SHARE * (available_memory() or np.inf):
        return f"chunks of {format_bytes(together)}, which are decoded whole"
    if count < MANY_CHUNKS:
        return None
    if len(shape) == 2 and chunks[1] < shape[1]:
        return f"chunks of {chunks[1]:,} of {shape[1]:,} columns, so that each row lies in several"
    if size < TINY_BYTES:
        return f"{count:,} chunks of {format_bytes(size)}, so that most of a read is overhead"
    return None
