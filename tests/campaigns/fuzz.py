"""Input of every kind: each answer is right by a plain reference, or is one sentence.

**Promised.** Arrays, SciPy matrices, stores, CSV and LIBSVM texts, values of rows,
parameters and command lines either give the right answer, or are refused by one
sentence: `mmcnb.InputError`, or exit code 2 and one line on stderr. There is no
traceback, no warning of NumPy and no hang, and no file is left behind.

**Judged** by plain references. Rows equal the numbers that were drawn, in float32 or
float64 as the rule of types says; a loop over the places adds up what sparse matrices
hold; texts are written from known numbers. What cannot be a number must be refused, and
what is sound may not be. A fit has a finite objective, and ``labels_ == predict(X)``.

**Not promised.** Parameters and rows that are sound may ask for work without end; such
sizes are not tried.
"""

import contextlib
import functools
import io
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import mmcnb
from mmcnb import cli
from mmcnb.stores import convert
from tests.campaigns._fuzz_rows import array, sparse, store
from tests.campaigns._fuzz_tables import table
from tests.campaigns._fuzz_texts import csv, libsvm
from tests.campaigns._judge import judged, one_of, refusal

TRIES = 25_000
CI_TRIES = 200
SECONDS = 60


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One input of the kind that the seed gives."""
    kind = list(KINDS)[seed % len(KINDS)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mmcnb.ClusterWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*(Zarr V3 specification|matrix subclass)")
        return {"kind": kind, **KINDS[kind](np.random.default_rng(seed), folder)}


# -- values of rows, parameters and command lines --------------------------------------


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
    "",
    "a",
    "1",
    "nan",
    "auto",
    "rbf",
    "\0",
    b"a",
    1.5,
    0,
    -1,
    -3,
    2,
    3,
    True,
    False,
    None,
    [],
    [1],
    {},
    (),
    {"a": 1},
    [[1]],
    [None],
    [0.5, 0.5],
    set(),
    object(),
    int,
    len,
    1j,
    slice(1),
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    1e-308,
    2**70,
    -(2**70),
    np.int64(3),
    np.float32(1.5),
    np.bool_(True),
    np.array([1, 2]),
    np.array(3),
    np.array("a"),
    np.timedelta64(1, "s"),
    np.datetime64("2020"),
    np.ma.masked,
    np.str_("rbf"),
)


def parameters(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """An estimator with one parameter of any value."""
    kind = getattr(mmcnb, one_of(rng, ESTIMATORS))
    plain_ones = {"n_jobs": 1, "random_state": 0, "n_init": 1, "C": 1.5, "gamma": 0.1}
    names = sorted(set(kind().get_params()) - {"engine", "checkpoint"})
    given = {name: value for name, value in plain_ones.items() if name in names}
    name = one_of(rng, names)
    value = one_of(rng, ODD_VALUES)
    model = kind(**given | {name: value})
    X = known_rows()

    def fit() -> None:
        model.fit(X)
        assert math.isfinite(model.objective_), "the objective is not finite"
        assert np.array_equal(model.labels_, model.predict(X)), (
            "labels_ differ from predict"
        )

    return judged(refusal(fit), None, f"{kind.__name__}({name})")


@functools.cache
def known_files() -> tuple[str, str, str]:
    """A store, a model and labels that command lines may name; none of them writes there."""
    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    rows = folder / "rows.zarr"
    model = folder / "known.model"
    labels = folder / "labels.zarr"
    convert(known_rows(), rows, progress=False)
    clusterer = mmcnb.CPMMC(C=1.5, n_init=1, n_jobs=1, random_state=0).fit(known_rows())
    clusterer.save(model)
    clusterer.predict(rows, out=labels)
    return str(rows), str(model), str(labels)


# Each option of a verb with sound texts.
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "fit": {
        "--method": ("cpmmc", "kernel-kmeans", "unsupervised-rls"),
        "--n-clusters": ("2",),
        "--set": ("n_init=1", "n_init=2"),
        "--scale": ("standard",),
        "--jobs": ("1", "-1"),
        "--memory-limit": ("4GiB", "3000MB"),
        "--random-state": ("0", "7"),
        "--element": ("X",),
    },
    "predict": {"--jobs": ("1",), "--memory-limit": ("4GiB",), "--element": ("X",)},
    "convert": {
        "--layout": ("auto", "dense", "csr"),
        "--dtype": ("float32", "float64"),
        "--element": ("X",),
    },
    "plan": {
        "--method": ("cpmmc", "kernel-kmeans"),
        "--n-clusters": ("2",),
        "--memory-limit": ("4GiB",),
    },
    "score": {"--element": ("X",), "--random-state": ("0", "7")},
    "info": {"--element": ("X",)},
    "verify": {},
}
ODD_TEXTS = (
    "",
    "a",
    "1.5",
    "0",
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "auto",
    "1B",
    "-1MiB",
    "é",
    "a" * 300,
    "--",
    "-x",
    "-x",
    "٣",
    "1_0",
    "2**3",
    "None",
    "[1]",
    "1,2",
    "99999999999999999999",
    "X/../X",
    "\n",
    "a\tb",
    "\udcff",
)


def command(rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """A sound command line, of which one word may be spoiled, lost or added."""
    rows, model, labels = known_files()
    verb = one_of(rng, list(OPTIONS))
    places = {
        "predict": [model, rows],
        "score": [rows, labels],
        "convert": [rows, str(folder / "out.zarr")],
    }
    argv = [verb, *places.get(verb, [rows])]
    names = [
        name
        for name in OPTIONS[verb]
        if rng.random() < 0.4 or (verb, name) == ("fit", "--method")
    ]
    for name in names:
        argv += [name, one_of(rng, OPTIONS[verb][name])]
    if verb == "fit":
        argv += ["--model", str(folder / "out.model")]
    if verb in ("fit", "predict"):
        argv += [
            "--labels",
            str(folder / one_of(rng, ("labels.zarr", "labels.csv", "labels.parquet"))),
        ]
    spoiled = rng.random() < 0.6
    if spoiled:
        place = int(rng.integers(1, len(argv) + 1))
        word = one_of(
            rng,
            (
                *ODD_TEXTS,
                str(folder),
                str(folder / "nowhere"),
                "--nothing",
                "--json",
                "--overwrite",
            ),
        )
        argv[place : place + int(rng.integers(0, 2))] = (
            [] if rng.random() < 0.15 else [word]
        )
    with contextlib.chdir(folder):
        code, said = run(argv)
    lines = [
        line for line in said.splitlines() if not line.startswith("mmcnb: warning: ")
    ]
    assert code in (0, 2), f"exit code {code} of {argv}: {said}"
    assert spoiled or code == 0, f"a sound command was refused: {argv}: {said}"
    assert code == 0 or len(lines) == 1, f"{len(lines)} lines of {argv}: {said}"
    assert code == 0 or not any(folder.iterdir()), f"left behind by {argv}"
    assert not list(folder.rglob(".part-*")), f"a part left behind by {argv}"
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
    "table": table,
    "table again": table,
}
