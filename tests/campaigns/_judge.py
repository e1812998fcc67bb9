"""How the campaign of all kinds of input judges: plain references of rows, and what a refusal is."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import mmcnb
from mmcnb.errors import InputError
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix

FLOAT32 = ("?", "i1", "u1", "<i2", ">i2", "<u2", ">u2", "<f2", ">f2", "<f4", ">f4")
FLOAT64 = ("<i4", ">i4", "<u4", "<i8", ">i8", "<u8", "<f8", ">f8", "g")


def refusal(ask: Callable[[], Any]) -> str | None:
    """The sentence by which something is refused; None where it is done."""
    try:
        ask()
    except InputError as error:
        sentence = str(error)
    else:
        return None
    # scikit-learn asks for its own words about names, which have a line each.
    is_of_names = sentence.startswith("The feature names should match")
    assert is_of_names or "\n" not in sentence, f"more than one line: {sentence}"
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


def drawn_rows(rng: np.random.Generator) -> np.ndarray:
    """Two groups of whole numbers, of any type that holds them."""
    n = int(rng.integers(4, 40))
    d = int(rng.integers(1, 5))
    rows = rng.integers(0, 40, (n, d))
    rows[: n // 2] += 60
    return rows.astype(one_of(rng, FLOAT32 + FLOAT64))


def numbers_of(rows: np.ndarray) -> np.ndarray:
    """The numbers as `Samples` shall give them, number by number."""
    dtype = (
        np.float32
        if rows.dtype.str.lstrip("|=") in (*FLOAT32, "|b1", "b1")
        else np.float64
    )
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
        assert block.dtype == wanted.dtype, (
            f"{block.dtype} where {wanted.dtype} is the rule"
        )
        assert block.tobytes() == np.ascontiguousarray(wanted).tobytes(), (
            "other numbers"
        )


def fits(source: Any, rng: np.random.Generator) -> str | None:
    """Fit to rows that can be read; the labels must be those of predict."""
    model = one_of(rng, MODELS)()

    def fit() -> None:
        model.fit(source)
        assert math.isfinite(model.objective_), "the objective is not finite"
        assert np.array_equal(model.labels_, model.predict(source)), (
            "labels_ differ from predict"
        )
        assert np.isfinite(model.decision_function(source)).all(), (
            "decision values are not finite"
        )

    refused = refusal(fit)
    assert refused is None or "rows" in refused or "sample" in refused, (
        f"sound rows were refused: {refused}"
    )
    return refused


MODELS = (
    lambda: mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.KernelKMeans(n_init=1, n_jobs=1, random_state=0),
    lambda: mmcnb.UnsupervisedRLS(n_init=1, n_jobs=1, random_state=0),
)
