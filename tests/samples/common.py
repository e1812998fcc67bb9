"""What the tests of rows share: all rows of a source, equality of two sources, refusals in one sentence."""

import bz2
import gzip
import lzma
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from mmcnb import InputError, open_samples
from mmcnb.samples import BLOCK_ROWS


def zstd(content):
    """The bytes of a .zst file."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
SPANS = [
    (0, 1),
    (0, BLOCK_ROWS),
    (4000, 4100),
    (BLOCK_ROWS, 2 * BLOCK_ROWS),
    (8999, 9000),
    (0, 9000),
]
ROWS = np.array([0, 1, 2, 999, 1000, 4095, 4096, 5000, 8999])


def rows_of(source):
    """All rows of a source, as a dense array."""
    samples = open_samples(source)
    block = samples.block(0, samples.n_samples)
    if not samples.is_sparse:
        return block
    return scipy.sparse.csr_array(
        block[:3], shape=(samples.n_samples, samples.n_features)
    ).toarray()


def as_csv(frame, folder):
    """Write a frame to a CSV file."""
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_parquet(frame, folder):
    """Write a frame to a Parquet file of several row groups."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=70)
    return folder / "rows.parquet"


def same_bits(a, b):
    """Whether two blocks agree in type, shape and every bit."""
    parts = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    arrays = [(np.asarray(p), np.asarray(q)) for p, q in parts]
    return all(
        (p.dtype, p.shape, p.tobytes()) == (q.dtype, q.shape, q.tobytes())
        for p, q in arrays
    )


def assert_same(samples, reference):
    """Blocks, gathered rows and digest of two sources of 9,000 rows agree bit for bit."""
    assert (samples.n_samples, samples.n_features) == (
        reference.n_samples,
        reference.n_features,
    )
    assert samples.dtype == reference.dtype
    for span in SPANS:
        assert same_bits(samples.block(*span), reference.block(*span))
    for rows in (ROWS, ROWS[:0]):
        assert same_bits(samples.gather(rows), reference.gather(rows))
    assert samples.digest == reference.digest


@contextmanager
def one_sentence(match, error=InputError):
    """The block is refused, in one line."""
    with pytest.raises(error, match=match) as caught:
        yield caught
    assert "\n" not in str(caught.value)
