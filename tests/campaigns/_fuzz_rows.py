"""Arrays, sparse matrices and stores of known numbers, sound and spoiled."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zarr

import mmcnb
from mmcnb.samples import open_samples
from mmcnb.stores import convert
from tests.campaigns._judge import (
    FLOAT32,
    FLOAT64,
    drawn_rows,
    fits,
    judged,
    numbers_of,
    one_of,
    refusal,
    same_rows,
)

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def array(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """An array in some form, which may be spoiled."""
    rows = drawn_rows(rng)
    if rng.random() < 0.5:
        name = one_of(rng, list(FORMS))
        source = FORMS[name](rows)
        same_rows(source, numbers_of(rows), rng)
        refused = fits(source, rng) if rng.random() < 0.5 else None
        return judged(refused, None, name)
    name = one_of(rng, list(SPOILED))
    where = int(rng.integers(len(rows))), int(rng.integers(rows.shape[1]))
    ask = one_of(rng, list(WAYS_IN))
    refused = refusal(lambda: WAYS_IN[ask](SPOILED[name](rows, where), folder))
    assert not any(folder.iterdir()), "a refused input left a file"
    return judged(refused, True, name)


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda X: X,
    "by columns": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1][::-1],
    "masked nowhere": np.ma.masked_array,
    "read only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "unaligned": lambda X: (
        np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:]
        .copy()[: X.nbytes]
        .view(X.dtype)
        .reshape(X.shape)
    ),
}


def with_value(rows: np.ndarray, where: tuple[int, int], value: Any) -> np.ndarray:
    """The rows as objects, one of them another."""
    found = rows.astype(object)
    found[where] = value
    return found


def hidden(rows: np.ndarray, where: tuple[int, int]) -> np.ma.MaskedArray:
    """The rows with one value behind a mask."""
    found = np.ma.masked_array(rows.copy(), np.zeros(rows.shape, bool))
    found[where] = np.ma.masked
    return found


SPOILED: dict[str, Callable[[np.ndarray, tuple[int, int]], Any]] = {
    "infinity": lambda X, at: with_value(X, at, -math.inf).astype(np.float32),
    "masked": hidden,
    "masked rows in a list": lambda X, at: list(hidden(X, at)),
    "None": lambda X, at: with_value(X, at, None),
    "text": lambda X, at: with_value(X, at, "1"),
    "all text": lambda X, at: X.astype(str),
    "bytes": lambda X, at: X.astype(str).astype("S"),
    "duration": lambda X, at: with_value(X, at, np.timedelta64(1, "s")),
    "durations": lambda X, at: X.astype("i8").astype("m8[s]"),
    "dates": lambda X, at: X.astype("i8").astype("M8[s]"),
    "complex": lambda X, at: X.astype(np.complex128),
    "complex object": lambda X, at: with_value(X, at, 1j),
    "list": lambda X, at: with_value(X, at, {"a": 1}),
    "huge": lambda X, at: with_value(X, at, 10**400),
    "matrix": lambda X, at: np.matrix(X),
    "records": lambda X, at: np.zeros(X.shape, [("a", "f4"), ("b", "f4")]),
    "ragged": lambda X, at: [*X.tolist(), [1.0] * (X.shape[1] + 1)],
    "one dimension": lambda X, at: X[:, 0],
    "three dimensions": lambda X, at: X[None],
    "no rows": lambda X, at: X[:0],
    "no columns": lambda X, at: X[:, :0],
    "scalar": lambda X, at: X[at],
    "mapping": lambda X, at: {"a": X},
    "no path": lambda X, at: "a\0b",
}
WAYS_IN: dict[str, Callable[[Any, Path], Any]] = {
    "open": lambda X, folder: open_samples(X),
    "fit": lambda X, folder: mmcnb.CPMMC(n_jobs=1).fit(X),
    "predict": lambda X, folder: fitted(X).predict(X),
    "decide": lambda X, folder: fitted(X).decision_function(X),
    "predict to a file": lambda X, folder: fitted(X).predict(X, folder / "labels.zarr"),
    "plan": lambda X, folder: mmcnb.UnsupervisedRLS().plan(X),
    "convert": lambda X, folder: convert(X, folder / "rows.zarr", progress=False),
}


def fitted(X: Any) -> Any:
    """A model of as many columns as there are."""
    shape = np.shape(X) if isinstance(X, np.ndarray) else ()
    return _model(shape[1] if len(shape) == 2 and shape[1] else 1)


@functools.cache
def _model(columns: int) -> Any:
    rows = np.arange(12.0)[:, None] + 100 * (np.arange(12.0)[:, None] > 5)
    return mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(
        np.repeat(rows, columns, axis=1)
    )


# -- sparse rows -----------------------------------------------------------------------


def sparse(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A SciPy matrix with zeros, places given twice and no order, which may be damaged."""
    n = int(rng.integers(4, 30))
    d = int(rng.integers(1, 6))
    size = int(rng.integers(1, 90))
    row = rng.integers(0, n, size)
    column = rng.integers(0, d, size)
    dtype = one_of(rng, FLOAT32 + FLOAT64)
    data = rng.integers(0, 30, size).astype(dtype)
    expected = np.zeros((n, d), np.float32 if dtype in FLOAT32 else np.float64)
    for r, c, value in zip(row, column, data, strict=True):
        expected[r, c] += float(value)
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(n + 1))
    kind = one_of(rng, (np.int32, np.int64))
    form = one_of(rng, FORMATS)
    make = one_of(rng, (scipy.sparse.csr_array, scipy.sparse.csr_matrix))
    matrix = make(
        (np.zeros(size), column[order].astype(kind), indptr.astype(kind)), (n, d)
    )
    matrix.data = data[order]
    if rng.random() < 0.5:
        if form != "csr" and (data.dtype.char in "e?g" or not data.dtype.isnative):
            # SciPy's own conversions lack these types, or add truth values by "or"
            form = "csr"
        if form != "csr":
            matrix.data = matrix.data.astype(expected.dtype)
            matrix = matrix.asformat(form)
        same_rows(matrix, expected, rng)
        if rng.random() < 0.3:
            convert(matrix, folder / "rows.zarr", layout="csr", progress=False)
            same_rows(folder / "rows.zarr", expected, rng)
        return judged(fits(matrix, rng) if rng.random() < 0.3 else None, None, form)
    name = one_of(rng, list(DAMAGED))
    damaged = DAMAGED[name](matrix, rng)
    ask = one_of(rng, list(WAYS_IN))
    refused = refusal(lambda: WAYS_IN[ask](damaged, folder))
    assert not any(folder.iterdir()), "a refused input left a file"
    return judged(refused, True, name)


def spoil(matrix: Any, part: str, value: Any, rng: np.random.Generator) -> Any:
    """Change one number of an array of a matrix."""
    found = np.array(getattr(matrix, part))
    found = found.astype(np.float64) if isinstance(value, float) else found
    found[int(rng.integers(len(found)))] = value
    setattr(matrix, part, found)
    return matrix


DAMAGED: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "column beyond": lambda m, rng: spoil(
        m, "indices", int(rng.integers(m.shape[1], 2**31)), rng
    ),
    "column below": lambda m, rng: spoil(
        m, "indices", -int(rng.integers(1, 2**31)), rng
    ),
    "pointer beyond": lambda m, rng: spoil(
        m, "indptr", int(rng.integers(len(m.data) + 1, 2**31)), rng
    ),
    "pointer below": lambda m, rng: spoil(
        m, "indptr", -int(rng.integers(1, 2**31)), rng
    ),
    "row beyond, by columns": lambda m, rng: spoil(
        plain(m).tocsc(), "indices", m.shape[0], rng
    ),
    "place beyond": lambda m, rng: spoil(plain(m).tocoo(), "col", m.shape[1], rng),
    "NaN": lambda m, rng: spoil(m, "data", math.nan, rng),
    "short": lambda m, rng: _cut(m),
    "complex": lambda m, rng: plain(m).astype(np.complex128),
    "three dimensions": lambda m, rng: scipy.sparse.coo_array(np.ones((2, 2, 2))),
    "one dimension": lambda m, rng: scipy.sparse.coo_array(np.ones(4)),
}


def plain(matrix: Any) -> Any:
    """The matrix in a type of number that SciPy converts."""
    matrix.data = matrix.data.astype(np.float64)
    return matrix


def _cut(matrix: Any) -> Any:
    matrix.data = matrix.data[:-1]
    return matrix


# -- stores ----------------------------------------------------------------------------


def store(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A Zarr array or file of any chunks and types, read and converted: the same numbers."""
    rows = drawn_rows(rng)
    expected, n, d = numbers_of(rows), *rows.shape
    name = one_of(
        rng, ("zarr 2", "zarr 3", "sharded", "npy", "npy by columns", "memory map")
    )
    if name.startswith(("zarr", "sharded")):
        rows = rows.astype(np.float64) if rows.dtype == np.longdouble else rows
        chunks = int(rng.integers(1, n + 1)), int(rng.integers(1, d + 1))
        shards = {"shards": (2 * chunks[0], chunks[1])} if name == "sharded" else {}
        version = 2 if name == "zarr 2" else 3
        source: Any = folder / "in.zarr"
        zarr.create_array(
            source, data=rows, chunks=chunks, zarr_format=version, **shards
        )
    else:
        source = folder / "in.npy"
        np.save(source, np.asfortranarray(rows) if name == "npy by columns" else rows)
        source = np.load(source, mmap_mode="r") if name == "memory map" else source
    same_rows(source, expected, rng)
    layout = one_of(rng, ("auto", "dense", "csr"))
    convert(source, folder / "out.zarr", layout=layout, progress=False)
    same_rows(folder / "out.zarr", expected, rng)
    refused = fits(folder / "out.zarr", rng) if rng.random() < 0.2 else None
    return judged(refused, None, name)
