"""Input of every kind: each answer is right by a plain reference, or is one sentence.

**Promised.** Arrays, SciPy matrices, stores, CSV and LIBSVM texts, values of rows, parameters and command
lines either give the right answer, or are refused by one sentence: `mmcnb.InputError`, or exit code 2
and one line on stderr. There is no traceback, no warning of NumPy and no hang, and no file is left behind.

**Judged** by plain references. Rows equal the numbers that were drawn, in float32 or float64 as the rule of
types says; a loop over the places adds up what sparse matrices hold; texts are written from known numbers.
What cannot be a number must be refused, and what is sound may not be. A fit has a finite objective, and
``labels_ == predict(X)``.

**Not promised.** Parameters and rows that are sound may ask for work without end; such sizes are not tried.
"""

import contextlib
import functools
import io
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zarr
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb import cli
from mmcnb.errors import InputError
from mmcnb.samples import convert, open_class_labels, open_samples
from mmcnb.samples.matrix import as_matrix

TRIES = 20_000
CI_TRIES = 200
SECONDS = 60

FLOAT32 = ("?", "i1", "u1", "<i2", ">i2", "<u2", ">u2", "<f2", ">f2", "<f4", ">f4")
FLOAT64 = ("<i4", ">i4", "<u4", "<i8", ">i8", "<u8", "<f8", ">f8", "g")
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One input of the kind that the seed gives."""
    kind = list(KINDS)[seed % len(KINDS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*(Zarr V3 specification|matrix subclass)")
        return {"kind": kind, **KINDS[kind](np.random.default_rng(seed), folder)}


def refusal(ask: Callable[[], Any]) -> str | None:
    """The sentence by which something is refused; None where it is done."""
    try:
        ask()
    except InputError as error:
        sentence = str(error)
    else:
        return None
    assert "\n" not in sentence, f"more than one line: {sentence}"
    assert 10 < len(sentence) < 2000, f"no sentence: {sentence}"
    return sentence


def judged(refused: str | None, must: bool | None, what: str) -> dict[str, Any]:
    """A row of facts; ``must`` says whether there must be a refusal, and None leaves it open."""
    assert must is not True or refused is not None, f"{what} was taken"
    assert must is not False or refused is None, f"{what} was refused: {refused}"
    return {"what": what, "answer": "right" if refused is None else "refused"}


def one_of(rng: np.random.Generator, choices: Any) -> Any:
    """One of a few values, as it is."""
    return choices[int(rng.integers(len(choices)))]


# -- rows in memory ------------------------------------------------------------------------------


def drawn_rows(rng: np.random.Generator) -> np.ndarray:
    """Two groups of whole numbers, of any type that holds them."""
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    rows = rng.integers(0, 40, (n, d))
    rows[: n // 2] += 60
    return rows.astype(one_of(rng, FLOAT32 + FLOAT64))


def numbers_of(rows: np.ndarray) -> np.ndarray:
    """The numbers as `Samples` shall give them, number by number."""
    dtype = np.float32 if rows.dtype.str.lstrip("|=") in (*FLOAT32, "|b1", "b1") else np.float64
    return np.array([[float(value) for value in row] for row in rows], dtype)


def same_rows(source: Any, expected: np.ndarray, rng: np.random.Generator) -> None:
    """Assert that blocks and gathered rows are these numbers, to the bit."""
    samples = open_samples(source)
    begin, end = sorted(rng.integers(0, len(expected) + 1, 2).tolist())
    some = np.flatnonzero(rng.random(len(expected)) < 0.5)
    for got, wanted in (
        (samples.block(0, samples.n_samples), expected),
        (samples.block(begin, end), expected[begin:end]),
        (samples.gather(some), expected[some]),
    ):
        block = as_matrix(got)
        block = block.toarray() if scipy.sparse.issparse(block) else block
        assert block.dtype == wanted.dtype, f"{block.dtype} where {wanted.dtype} is the rule"
        assert block.tobytes() == np.ascontiguousarray(wanted).tobytes(), "other numbers"


def fits(source: Any, rng: np.random.Generator) -> str | None:
    """Fit to rows that can be read; the labels must be those of predict."""
    model = one_of(rng, MODELS)()

    def fit() -> None:
        model.fit(source)
        assert math.isfinite(model.objective_), "the objective is not finite"
        assert np.array_equal(model.labels_, model.predict(source)), "labels_ differ from predict"
        assert np.isfinite(model.decision_function(source)).all(), "decision values are not finite"

    refused = refusal(fit)
    assert refused is None or "rows" in refused or "sample" in refused, f"sound rows were refused: {refused}"
    return refused


MODELS = (
    lambda: mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.KernelKMeans(n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.UnsupervisedRLS(n_init=1, n_jobs=1, random_state=0),
)


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
        np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].copy()[: X.nbytes].view(X.dtype).reshape(X.shape)
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
    "NaN": lambda X, at: with_value(X, at, math.nan).astype(np.float64),
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
    return mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(np.repeat(rows, columns, axis=1))


# -- sparse rows ---------------------------------------------------------------------------------


def sparse(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A SciPy matrix with zeros, places given twice and no order, which may be damaged."""
    n, d, size = int(rng.integers(4, 30)), int(rng.integers(1, 6)), int(rng.integers(1, 90))
    row, column = rng.integers(0, n, size), rng.integers(0, d, size)
    dtype = one_of(rng, FLOAT32 + FLOAT64)
    data = rng.integers(0, 30, size).astype(dtype)
    expected = np.zeros((n, d), np.float32 if dtype in FLOAT32 else np.float64)
    for r, c, value in zip(row, column, data, strict=True):
        expected[r, c] += float(value)
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(n + 1))
    kind = one_of(rng, (np.int32, np.int64))
    form, make = one_of(rng, FORMATS), one_of(rng, (scipy.sparse.csr_array, scipy.sparse.csr_matrix))
    matrix = make((np.zeros(size), column[order].astype(kind), indptr.astype(kind)), (n, d))
    matrix.data = data[order]
    if rng.random() < 0.5:
        if form != "csr" and (data.dtype.char in "e?g" or not data.dtype.isnative):
            form = "csr"  # SciPy's own conversions lack these types, or add truth values by "or"
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
    "column beyond": lambda m, rng: spoil(m, "indices", int(rng.integers(m.shape[1], 2**31)), rng),
    "column below": lambda m, rng: spoil(m, "indices", -int(rng.integers(1, 2**31)), rng),
    "pointer beyond": lambda m, rng: spoil(m, "indptr", int(rng.integers(len(m.data) + 1, 2**31)), rng),
    "pointer below": lambda m, rng: spoil(m, "indptr", -int(rng.integers(1, 2**31)), rng),
    "row beyond, by columns": lambda m, rng: spoil(plain(m).tocsc(), "indices", m.shape[0], rng),
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


# -- stores --------------------------------------------------------------------------------------


def store(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A Zarr array or file of any chunks and types, read and converted: the same numbers."""
    rows = drawn_rows(rng)
    expected, n, d = numbers_of(rows), *rows.shape
    name = one_of(rng, ("zarr 2", "zarr 3", "sharded", "npy", "npy by columns", "memory map"))
    if name.startswith(("zarr", "sharded")):
        rows = rows.astype(np.float64) if rows.dtype == np.longdouble else rows
        chunks = int(rng.integers(1, n + 1)), int(rng.integers(1, d + 1))
        shards = {"shards": (2 * chunks[0], chunks[1])} if name == "sharded" else {}
        version = 2 if name == "zarr 2" else 3
        source: Any = folder / "in.zarr"
        zarr.create_array(source, data=rows, chunks=chunks, zarr_format=version, **shards)
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


# -- texts ---------------------------------------------------------------------------------------

NO_NUMBERS = (
    "1_000",
    "٣",
    "0x1F",
    "1e",
    "--1",
    "1 2",
    "1,5 x",
    "½",
    "1.2.3",
    "e5",
    "+-1",
    "1f",
    "NaN1",
    "\x00",
)
MISSING = ("nan", "inf", "-inf", "NaN", "Infinity", "1e999")


def written(value: float, rng: np.random.Generator) -> str:
    """A number as people and programs write it."""
    text = repr(float(np.float32(value)))
    return one_of(
        rng,
        (
            text,
            f"{text}e0",
            text if text[0] == "-" else f"+{text}",
            f"{float(text):.12e}",
            f"{float(text):.17g}",
        ),
    )


def csv(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A table of known numbers as CSV, which may be spoiled."""
    n, d = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    numbers = np.round(rng.normal(size=(n, d)) * 10.0 ** int(rng.integers(-3, 6)), 3).astype(np.float32)
    cells = [[written(value, rng) for value in row] for row in numbers]
    spoiled, what = rng.random() < 0.5, "sound"
    if spoiled:
        r, c = int(rng.integers(n)), int(rng.integers(d))
        what = one_of(rng, ("no number", "missing", "short", "long"))
        if what == "no number":
            cells[r][c] = one_of(rng, NO_NUMBERS)
        elif what == "missing":
            cells[r][c] = one_of(rng, MISSING)
        elif what == "short":
            del cells[r][c]
        else:
            cells[r].insert(c, "1.5")
    header = spoiled or rng.random() < 0.6  # a spoiled first line would be a header
    quote = rng.random() < 0.2
    lines = [",".join(f'"{cell}"' if quote else cell for cell in row) for row in cells]
    lines = [",".join(f"c{k}" for k in range(d)), *lines] if header else lines
    end = one_of(rng, ("\n", "\r\n"))
    text = end.join(lines) + (end if rng.random() < 0.8 else "")
    path = folder / "in.csv"
    path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode())
    if not header and _counts(cells[0]):  # cells that count 0, 1, 2 are names, as the page on tables says
        return judged(None, None, "counting cells")
    same = functools.partial(same_rows, expected=numbers, rng=rng)
    refused = refusal(lambda: convert(path, folder / "out.zarr", progress=False))
    if refused is None:
        assert not spoiled or (d == 1 and what == "short"), f"{what} was taken in {text!r}"
        if not spoiled:
            same(folder / "out.zarr")
            same(path)
    else:
        assert {entry.name for entry in folder.iterdir()} == {"in.csv"}, "a refused text left a file"
        assert refusal(lambda: open_samples(path).block(0, 1)) is not None, "fit reads what convert refuses"
    return judged(refused, None if d == 1 and what == "short" else spoiled, f"CSV, {what}")


def _counts(cells: list[str]) -> bool:
    return [float(cell) for cell in cells] == list(range(len(cells)))


def libsvm(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """Sparse rows of known numbers as LIBSVM text, which may be spoiled."""
    n, d = int(rng.integers(1, 20)), int(rng.integers(1, 9))
    numbers = rng.integers(-50, 50, (n, d)).astype(np.float32) / 4
    numbers[rng.random((n, d)) < 0.5] = 0
    numbers[0, d - 1] = 1.5  # so that the width is known
    classes = rng.integers(-2, 3, n)
    lines = []
    for label, row in zip(classes, numbers, strict=True):
        pairs = [f"{column + 1}:{written(value, rng)}" for column, value in enumerate(row) if value]
        lines.append(" ".join([str(label), *pairs]) + one_of(rng, ("", " ", " # note")))
    spoiled = rng.random() < 0.5
    if spoiled:
        r = int(rng.integers(n))
        lines[r] = lines[r].partition("#")[0] + " " + one_of(rng, LIBSVM_SPOILS)
    path = folder / "in.libsvm"
    path.write_text(one_of(rng, ("\n", "\r\n")).join(lines) + "\n", newline="")
    refused = refusal(lambda: convert(path, folder / "out.zarr", layout="csr", progress=False))
    if refused is None and not spoiled:
        same_rows(folder / "out.zarr", numbers, rng)
        assert np.array_equal(open_class_labels(folder / "out.zarr"), classes), "other classes"
    if refused is not None:
        assert {entry.name for entry in folder.iterdir()} == {"in.libsvm"}, "a refused text left a file"
    return judged(refused, spoiled, "LIBSVM, spoiled" if spoiled else "LIBSVM")


LIBSVM_SPOILS = (
    "0:1",
    "-1:1",
    "a:1",
    "9:1_000",
    "9:٣",
    "9:",
    ":1",
    "9:nan",
    "9:inf",
    "9:0x1F",
    "9:1:2",
    "9.5:1",
    "9",
)


# -- values of rows, parameters and command lines ------------------------------------------------


@functools.cache
def known_rows() -> np.ndarray:
    """Rows of two plain groups."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(24, 2)) + 8 * (np.arange(24) % 2)[:, None]


def values(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """Weights of rows in any form: the fit of the plain ones, or one sentence."""
    X = known_rows()
    weights = rng.integers(0, 4, len(X)) + np.arange(len(X)) % 2
    name = one_of(rng, list(SPOILED_VALUES) if rng.random() < 0.6 else list(VALUES))
    model = mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0)
    if name in VALUES:
        expected = model.fit(X, sample_weight=weights.astype(np.float64)).objective_
        model.fit(X, sample_weight=VALUES[name](weights))
        assert model.objective_ == expected, "another objective"
        return judged(None, False, name)
    value = SPOILED_VALUES[name](weights)
    return judged(refusal(lambda: model.fit(X, sample_weight=value)), True, name)


VALUES: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda w: w.tolist(),
    "tuple": lambda w: tuple(w.tolist()),
    "small": lambda w: w.astype("u1"),
    "half": lambda w: w.astype("f2"),
    "big-endian": lambda w: w.astype(">f8"),
    "long double": lambda w: w.astype("g"),
    "objects": lambda w: w.astype(object),
    "masked nowhere": np.ma.masked_array,
}
SPOILED_VALUES: dict[str, Callable[[np.ndarray], Any]] = {
    "masked": lambda w: np.ma.masked_array(w, np.arange(len(w)) == 3),
    "dates": lambda w: w.astype("M8[s]"),
    "durations": lambda w: w.astype("m8[s]"),
    "text": lambda w: w.astype(str),
    "complex": lambda w: w * 1j,
    "None": lambda w: [None, *w[1:].tolist()],
    "NaN": lambda w: [math.nan, *w[1:].tolist()],
    "infinity": lambda w: [math.inf, *w[1:].tolist()],
    "negative": lambda w: -1 - w,
    "zero": lambda w: 0 * w,
    "short": lambda w: w[1:],
    "two columns": lambda w: np.c_[w, w],
    "ragged": lambda w: [[1], [1, 2]],
    "set": lambda w: set(w.tolist()),
    "mapping": lambda w: dict(enumerate(w.tolist())),
    "generator": lambda w: iter(w.tolist()),
    "no path": lambda w: "nowhere.zarr",
    "class": lambda w: int,
}

ESTIMATORS = (
    "CPMMC",
    "KernelKMeans",
    "UnsupervisedRLS",
    "SparseKernelMMC",
    "KernelCPMMC",
    "CrammerSingerMMC",
)
ODD_VALUES: tuple[Any, ...] = (
    *("", "a", "1", "nan", "auto", "rbf", "\0", b"a", 1.5, 0, -1, -3, 2, 3, True, False, None),
    *([], [1], {}, (), {"a": 1}, [[1]], [None], [0.5, 0.5], set(), object(), int, len, 1j, slice(1)),
    *(math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-308, 2**70, -(2**70)),
    *(np.int64(3), np.float32(1.5), np.bool_(True), np.array([1, 2]), np.array(3), np.array("a")),
    *(np.timedelta64(1, "s"), np.datetime64("2020"), np.ma.masked, np.str_("rbf")),
)


def parameters(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """An estimator with one parameter of any value."""
    kind = getattr(mmcnb, one_of(rng, ESTIMATORS))
    plain_ones = {"n_jobs": 1, "random_state": 0, "n_init": 1, "C": 1.5, "gamma": 0.1}
    names = sorted(set(kind().get_params()) - {"engine", "checkpoint"})
    given = {name: value for name, value in plain_ones.items() if name in names}
    name, value = one_of(rng, names), one_of(rng, ODD_VALUES)
    model = kind(**given | {name: value})
    X = known_rows()

    def fit() -> None:
        model.fit(X)
        assert math.isfinite(model.objective_), "the objective is not finite"
        assert np.array_equal(model.labels_, model.predict(X)), "labels_ differ from predict"

    return judged(refusal(fit), None, f"{kind.__name__}({name})")


@functools.cache
def known_files() -> tuple[Path, Path]:
    """A store and a model that command lines may name."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    convert(known_rows(), folder / "rows.zarr", progress=False)
    mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(known_rows()).save(folder / "known.model")
    return folder / "rows.zarr", folder / "known.model"


OPTIONS = {
    "fit": (
        "--model",
        "--labels",
        "--method",
        "--clusters",
        "--C",
        "--gamma",
        "--threads",
        "--memory-limit",
        "--seed",
    ),
    "predict": ("--model", "--labels", "--threads"),
    "convert": (
        "--layout",
        "--dtype",
        "--drop",
        "--columns",
        "--label-column",
        "--delimiter",
        "--memory-limit",
    ),
    "plan": ("--clusters", "--memory-limit", "--rows", "--columns"),
    "score": ("--classes", "--labels"),
    "info": ("--element",),
    "verify": ("--element",),
}
ODD_TEXTS = (
    "",
    "a",
    "1",
    "0",
    "-1",
    "1.5",
    "nan",
    "inf",
    "auto",
    "1MiB",
    "4GiB",
    "2GiB",
    "é",
    "a" * 300,
    "--",
    "-x",
    "٣",
    "1_0",
)


def command(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A command line of known and odd words."""
    rows, model = known_files()
    verb = one_of(rng, list(OPTIONS))
    out = folder / "out.zarr"
    paths = (str(rows), str(model), str(folder / "nowhere"), str(out), str(folder), "")
    argv = [verb, str(rows) if rng.random() < 0.8 else one_of(rng, paths)]
    if verb == "convert":
        argv.append(str(out))
    for option in rng.permutation(OPTIONS[verb])[: int(rng.integers(0, 4))].tolist():
        known = (
            one_of(rng, paths) if option in ("--model", "--labels", "--classes") else one_of(rng, ODD_TEXTS)
        )
        argv += [option, known if rng.random() < 0.8 else one_of(rng, (*paths, *ODD_TEXTS))]
    if verb in ("fit", "predict") and rng.random() < 0.7:
        argv += ["--labels", str(folder / "labels.zarr")]
    if rng.random() < 0.3:
        argv.append(one_of(rng, ("--json", "--nothing", "extra", "--overwrite")))
    before = sorted(folder.rglob("*"))
    code, said = run(argv)
    lines = [line for line in said.splitlines() if not line.startswith("mmcnb: warning: ")]
    assert code in (0, 2), f"exit code {code} of {argv}: {said}"
    if code == 2:
        assert len(lines) == 1, f"{len(lines)} lines of {argv}: {said}"
        assert sorted(folder.rglob("*")) == before, f"left behind by {argv}"
    assert not [path for path in folder.rglob(".part-*") if path.name != ".part"], f"a part of {argv}"
    return {"what": verb, "answer": "right" if code == 0 else "refused"}


def run(argv: list[str]) -> tuple[int, str]:
    """Exit code and stderr of a command."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            code = cli.main(argv)
        except SystemExit as end:  # of the parser of arguments
            code = int(end.code or 0)
    return code, said.getvalue()


KINDS: dict[str, Callable[[np.random.Generator, Path], dict[str, Any]]] = {
    "array": array,
    "sparse": sparse,
    "store": store,
    "csv": csv,
    "libsvm": libsvm,
    "values": values,
    "parameters": parameters,
    "command": command,
}
