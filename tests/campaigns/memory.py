"""Memory: whatever is done to rows larger than the limit, the process stays within the limit.

A try runs one case in a process of its own: an estimator that fits a store, a
prediction, outlier scores, an explanation, a page, an update, a conversion, a
verification or a score. The rows compress well but are larger than the limit once
decoded. Promised is that the peak of resident memory, as the system counted it, is at
most

* the limit, for what takes one, or a refusal that names a limit which is then accepted
  and kept;
* the peak that the plan of a fit has told before any work.

The peak counts the pages of shared libraries too, which a control group would not
charge in full: it is the harder measure. The process may not even ask for much more
than its limit, where there is a ``RLIMIT_DATA``. ``headroom`` of a row is the planned
peak over the true one: far above 1 where a plan is too careful.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

CI_TRIES = 1
SECONDS = 240
MIB = 2**20
ROOT = Path(__file__).parents[2]
BLOCK = 2**14  # rows written at once
BLOBS = 3
NOISY = 4  # columns whose numbers differ from block to block
WIDE_VALUES = 2**22  # of a large chunk of sparse rows
ADDRESSES = 512 * MIB  # that libraries reserve beyond what is resident


@dataclass(frozen=True)
class Case:
    """What is done to which rows, within how many MiB (0: the limit is that of `WITHOUT_LIMIT`)."""

    action: str
    limit: int
    rows: str = "dense"
    estimator: str = "SparseKernelMMC()"
    threads: int = 2
    weighted: bool = False


OF_A_MODEL = (
    "predict",
    "decision_function",
    "layers",
    "score_outliers",
    "predict_proba",
    "explain",
    "report",
    "update",
)
REFUSED = 16  # MiB, too little for anything
# for commands that take no limit: they stream, so this much is enough for any rows
WITHOUT_LIMIT = 640


# -- rows ------------------------------------------------------------------------------


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Holds the stores and the models of this process."""
    return tempfile.TemporaryDirectory(prefix="memory-stores-")


def dense_block(number: int, columns: int, dtype: str = "float32") -> np.ndarray:
    """Rows of some blobs, the same in each block but for a few columns."""
    y = np.arange(BLOCK) % BLOBS
    rows = (
        np.random.default_rng(0)
        .integers(0, 8, (64, columns))
        .astype(dtype)[np.arange(BLOCK) // BLOBS % 64]
    )
    rows += (20 * y[:, None]).astype(dtype)
    noise = np.random.default_rng(number).integers(0, 8, (BLOCK, NOISY))
    rows[:, :NOISY] += noise.astype(dtype)
    return rows


def sparse_block(number: int, columns: int, stored: int) -> Any:
    """CSR rows of some blobs, each of which has columns of its own."""
    from scipy.sparse import csr_array

    rng = np.random.default_rng(number % 4)
    step = columns // stored
    place = np.arange(stored) * step + rng.integers(
        0, max(1, step // BLOBS), (BLOCK, 1)
    )
    place += (np.arange(BLOCK) % BLOBS * (step // BLOBS))[:, None]
    values = rng.integers(1, 8, (BLOCK, stored)).astype(np.float32)
    return csr_array(
        (values.ravel(), place.ravel(), np.arange(0, BLOCK * stored + 1, stored)),
        (BLOCK, columns),
    )


def _write_few(path: Path, rows: int, columns: int) -> None:
    """Rows few enough for a matrix of all of them."""
    from mmcnb.stores import create_dense_store

    with create_dense_store(path, columns) as writer:
        writer.append(dense_block(0, columns)[:rows], y=np.arange(rows) % BLOBS)


def _write_dense(
    path: Path,
    mib: int,
    columns: int,
    dtype: str = "float32",
    chunk_rows: int | None = None,
) -> None:
    from mmcnb.stores import create_dense_store

    decoded = max(4, np.dtype(dtype).itemsize) * columns * BLOCK
    with create_dense_store(
        path, columns, dtype=dtype, chunk_rows=chunk_rows
    ) as writer:
        for number in range(-(-mib * MIB // decoded)):
            writer.append(
                dense_block(number, columns, dtype), y=np.arange(BLOCK) % BLOBS
            )


def _write_sparse(
    path: Path, mib: int, columns: int, stored: int, chunk_values: int | None = None
) -> None:
    # Internal: chunks of few values make a small store like a large one.
    from mmcnb.stores import _write, create_csr_store

    blocks = -(-mib * MIB // (BLOCK * (8 * stored + 8)))
    with (
        mock.patch.object(
            _write, "CSR_CHUNK_VALUES", chunk_values or _write.CSR_CHUNK_VALUES
        ),
        create_csr_store(path, columns) as writer,
    ):
        for number in range(blocks):
            writer.append(
                sparse_block(number, columns, stored), y=np.arange(BLOCK) % BLOBS
            )


STORES: dict[str, Callable[[Path], None]] = {
    "few": partial(_write_few, rows=3000, columns=16),
    # of what takes minutes for many rows
    "short": partial(_write_dense, mib=64, columns=64),
    "narrow": partial(_write_dense, mib=520, columns=64),
    "dense": partial(_write_dense, mib=640, columns=256),
    "dense, small chunks": partial(_write_dense, mib=640, columns=256, chunk_rows=1000),
    "dense, large chunks": partial(
        _write_dense, mib=640, columns=256, chunk_rows=2**15 + 1
    ),
    "dense, float64": partial(_write_dense, mib=800, columns=300, dtype="float64"),
    "dense, uint8": partial(_write_dense, mib=800, columns=300, dtype="uint8"),
    "dense, 2 GiB": partial(_write_dense, mib=2100, columns=1000),
    "wide": partial(_write_dense, mib=1000, columns=4000),
    "CSR": partial(_write_sparse, mib=520, columns=3000, stored=60),
    "CSR, large chunks": partial(
        _write_sparse, mib=520, columns=3000, stored=60, chunk_values=WIDE_VALUES
    ),
    "CSR, wide": partial(_write_sparse, mib=520, columns=30_000, stored=100),
}


@cache
def store(kind: str) -> Path:
    """A store of one kind, written once in this process."""
    path = Path(_folder().name) / f"{kind}.zarr"
    STORES[kind](path)
    return path


@cache
def model(kind: str, estimator: str) -> Path:
    """A model of the first rows of a store."""
    import mmcnb

    path = Path(_folder().name) / f"{kind} {estimator}.model"
    rows = mmcnb.open_samples(store(kind)).block(0, 600)
    rows = mmcnb.samples.matrix.as_matrix(rows)
    _silently(lambda: make(estimator, n_jobs=1).fit(rows).save(path))
    return path


def table(form: str, folder: Path) -> Path:
    """A file of rows in some other format, larger than the limit."""
    path = folder / f"rows.{form}"
    rows = dense_block(0, 64)
    if form == "npy":
        out: Any = np.lib.format.open_memmap(path, "w+", "float32", (140 * BLOCK, 64))
        for number in range(140):
            out[number * BLOCK : (number + 1) * BLOCK] = rows
        out.flush()
    elif form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        block = pa.table({f"c{j}": column for j, column in enumerate(rows.T)})
        with pq.ParquetWriter(path, block.schema, compression="zstd") as writer:
            for _ in range(140):
                writer.write_table(block)
    else:
        lines = [",".join(f"{value:.0f}" for value in row) for row in rows]
        if form == "libsvm":
            lines = [
                " ".join(
                    ["1", *(f"{j + 1}:{value:.0f}" for j, value in enumerate(row))]
                )
                for row in rows
            ]
        text = ("\n".join(lines) + "\n").encode()
        with path.open("wb") as file:
            if form == "csv":
                file.write(",".join(f"c{j}" for j in range(64)).encode() + b"\n")
            for _ in range(-(-600 * MIB // len(text))):
                file.write(text)
    return path


# -- cases -----------------------------------------------------------------------------

_LINEAR = "CPMMC(n_init=2)"
_KERNEL = "SparseKernelMMC(n_init=2)"
_SQUARES = "UnsupervisedRLS(3, n_init=2)"
_MANY = "CrammerSingerMMC(3, n_init=2)"
_MEANS = "KernelKMeans(3, n_init=2, max_iter=3)"
_KERNELS = "MultipleKernelClustering(n_init=2)"
_FRONT = "MaximumMarginClustering(3, kernel='rbf')"
_EVOLUTION = "EvolutionaryMMC(n_init=2, max_generations=50)"
_GRAPH = "MaximumMarginClustering(kernel='graph', n_nodes=4000)"
_DEFAULT = "MaximumMarginClustering()"
_COSINE = "MaximumMarginClustering(metric='cosine')"
_MATRIX = "KernelCPMMC(n_init=2)"
_EXACT = "MultipleKernelClustering(n_init=2, basis='exact')"
_PAPER = "SparseKernelMMC(n_init=2, basis='paper', gamma='mean')"
_TWO = "MaximumMarginClustering(2)"
_NOISE = "MaximumMarginClustering(noise='auto')"

CASES = [
    # every estimator, on dense and on sparse rows
    *(
        Case("fit", 512, "narrow", one)
        for one in (_LINEAR, _KERNEL, _SQUARES, _MEANS, _EVOLUTION)
    ),
    *(
        Case("fit", 576, "dense", one)
        for one in (_LINEAR, _KERNEL, _SQUARES, _MEANS, _MANY, _KERNELS)
    ),
    *(
        Case("fit", 640, "CSR", one)
        for one in (_LINEAR, _KERNEL, _SQUARES, _MEANS, _MANY, _KERNELS)
    ),
    *(
        Case("fit", 1024, "CSR, wide", one)
        for one in (_LINEAR, _KERNEL, _SQUARES, _MEANS, _EVOLUTION)
    ),
    *(
        Case("fit", 1024, "wide", one)
        for one in (_LINEAR, _KERNEL, _SQUARES, _MANY, _KERNELS)
    ),
    *(
        Case("fit", 1024, "dense", one)
        for one in (_FRONT, _EVOLUTION, _GRAPH, _DEFAULT, _TWO, _NOISE)
    ),
    Case("fit", 1024, "CSR", _FRONT),
    *(Case("fit", 1024, "CSR", one) for one in (_GRAPH, _DEFAULT, _COSINE)),
    Case("fit", 1024, "CSR, wide", _MANY),
    Case("fit", 1024, "CSR, wide", _KERNELS),
    # storage, scaling, weights, threads, and where kernel values are kept
    Case("fit", 640, "dense, small chunks", _KERNEL, 1),
    Case("fit", 640, "dense, large chunks", _KERNEL),
    Case("fit", 640, "CSR, large chunks", _SQUARES),
    Case(
        "fit", 768, "dense, float64", "UnsupervisedRLS(3, n_init=2, scale='standard')"
    ),
    Case(
        "fit", 768, "dense, uint8", "CPMMC(n_init=2, scale='standard')", weighted=True
    ),
    Case(
        "fit",
        640,
        "CSR",
        "SparseKernelMMC(n_init=2, scale='standard')",
        1,
        weighted=True,
    ),
    Case("fit", 2048, "dense, 2 GiB", _SQUARES),
    Case("fit", 1536, "dense, 2 GiB", _KERNEL, 1),
    Case("fit", 400, "narrow", _KERNEL, 1),
    # labels and decision values
    Case("predict", 512, "dense, large chunks", _KERNEL),
    Case("predict", 512, "dense, 2 GiB", _SQUARES),
    Case("predict", 512, "CSR", _SQUARES),
    Case("predict", 768, "CSR, wide", _LINEAR),
    Case("predict", 512, "narrow", _MEANS, 1),
    Case("decision_function", 512, "dense, small chunks", _KERNEL),
    Case("decision_function", 512, "CSR, large chunks", _LINEAR),
    *(
        Case(action, 768, "dense", _NOISE)
        for action in ("predict", "layers", "score_outliers")
    ),
    Case("layers", 768, "CSR", _DEFAULT),
    # everything else that reads rows
    *(Case("convert", 512, form) for form in ("csv", "npy", "parquet", "libsvm")),
    Case("convert", 512, "dense, large chunks"),
    # many threads, of which as many run as the limit leaves room for
    *(
        Case(action, 640, "dense, large chunks", _DEFAULT, 16)
        for action in ("explain", "report", "update")
    ),
    Case("predict", 640, "dense, large chunks", _KERNEL, 64),
    Case("predict_proba", 640, "dense, large chunks", _DEFAULT, 64),
    Case("explain", 1024, "wide", _DEFAULT, 8),
    Case("report", 768, "CSR, wide", _LINEAR, 16),
    Case("fit", 1024, "dense", _EVOLUTION, 8),
    Case("fit", 640, "dense, large chunks", _LINEAR, 64),
    # limits that are refused: what is named instead is enough
    *(Case("fit", REFUSED, "narrow", one) for one in (_LINEAR, _KERNEL, _SQUARES)),
    *(
        Case("fit", REFUSED, "short", one)
        for one in (_MANY, _MEANS, _KERNELS, _EVOLUTION, _FRONT)
    ),
    *(Case("fit", REFUSED, "short", one) for one in (_GRAPH, _DEFAULT)),
    *(Case("fit", REFUSED, "few", one) for one in (_MATRIX, _EXACT, _PAPER, _DEFAULT)),
    *(
        Case(action, REFUSED, "narrow", _DEFAULT)
        for action in ("predict", "explain", "report", "update")
    ),
    *(Case(action, REFUSED, "wide", _LINEAR, 64) for action in ("predict", "explain")),
    Case("decision_function", REFUSED, "CSR, large chunks", _LINEAR),
    *(
        Case("convert", REFUSED, form)
        for form in ("csv", "npy", "parquet", "libsvm", "narrow")
    ),
    Case("verify", 0, "dense"),
    Case("verify", 0, "CSR, large chunks"),
    Case("score", 0, "dense"),
]


TRIES = len(CASES)


def make(estimator: str, **parameters: Any) -> Any:
    """An estimator of mmcnb by how it is called."""
    import mmcnb

    names = {name: getattr(mmcnb, name) for name in mmcnb.__all__}
    # our own text
    return eval(estimator, names).set_params(random_state=0, **parameters)


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One case in a process of its own; where its limit is refused, with the limit that the refusal names."""
    case = CASES[seed % len(CASES)]
    facts = _run(case, folder)
    if facts["refused"]:
        least = re.search(r"least that works is (\d+ MiB)", facts["refused"])
        assert least, f"{_told(case)}: the refusal names no remedy: {facts['refused']}"
        # Internal: limits are read as the library reads them.
        from mmcnb._config import parse_bytes

        case = replace(case, limit=-(-parse_bytes(least[1]) // MIB))
        facts = _run(case, folder) | {
            "answer": "refused, and within the limit that is named"
        }
        assert not facts["refused"], (
            f"{_told(case)}: the limit that is named is refused too: {facts['refused']}"
        )
    limit = case.limit or WITHOUT_LIMIT
    peak = facts["peak"] / MIB
    planned = facts["planned"] / MIB
    numbers = {
        "limit": limit,
        "peak": round(peak),
        "planned": round(planned),
        "cpu": facts["cpu"],
    }
    if planned:
        numbers["headroom"] = round(planned / peak, 2)
    assert peak <= limit, (
        f"{_told(case)}: {peak:.0f} MiB at a limit of {limit} ({planned:.0f} planned)"
    )
    assert not planned or peak <= planned, (
        f"{_told(case)}: {peak:.0f} MiB where {planned:.0f} were planned"
    )
    return {"answer": "within", **facts, **asdict(case), **numbers}


def _told(case: Case) -> str:
    return f"{case.action} {case.rows}, {case.estimator}, {case.threads} threads"


def _run(case: Case, folder: Path) -> dict[str, Any]:
    given: dict[str, Any] = {"case": asdict(case), "out": str(folder / "out.zarr")}
    if case.action == "convert" and case.rows not in STORES:
        given["rows"] = str(table(case.rows, folder))
    else:
        given["rows"] = str(store(case.rows))
    if ACTIONS[case.action] is _predict:
        given["model"] = str(model(case.rows, case.estimator))
    command = [sys.executable, "-m", "tests.campaigns.memory", json.dumps(given)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AssertionError(f"{_told(case)}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout.splitlines()[-1])


# -- in the process that is measured ---------------------------------------------------


def _child(given: dict[str, Any]) -> dict[str, Any]:
    from time import process_time

    from mmcnb import InputError

    # Internal: the peak is measured as the library measures it.
    from mmcnb._machine import peak_memory

    case = Case(**given["case"])
    _cap(case.limit or WITHOUT_LIMIT)
    planned = 0
    refused = ""
    try:
        planned = _silently(lambda: ACTIONS[case.action](case, given)) or 0
    except InputError as error:
        refused = str(error)
    return {
        "planned": planned,
        "refused": refused,
        "peak": peak_memory(),
        "cpu": round(process_time(), 1),
    }


def _cap(limit: int) -> None:
    """Let the system refuse what is far beyond the limit, before it takes the memory of others."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit * MIB + ADDRESSES, -1))


def _silently(action: Callable[[], Any]) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action()


def _fit(case: Case, given: dict[str, Any]) -> int:
    import mmcnb

    estimator = make(case.estimator, memory_limit=case.limit * MIB, n_jobs=case.threads)
    samples = mmcnb.open_samples(given["rows"])
    planned = int(estimator.plan(samples).peak) if hasattr(estimator, "plan") else 0
    weights = np.arange(samples.n_samples) % 3 + 1.0 if case.weighted else None
    fit = getattr(estimator, "fit_model", estimator.fit)
    fit(samples, **({} if weights is None else {"sample_weight": weights}))
    return planned


def _predict(case: Case, given: dict[str, Any]) -> None:
    import mmcnb

    estimator = mmcnb.load(given["model"]).set_params(
        memory_limit=case.limit * MIB, n_jobs=case.threads
    )
    if case.action == "predict":
        estimator.predict(given["rows"], out=given["out"])
    elif case.action == "layers":
        estimator.predict(given["rows"], out=f"{given['out']}.csv", layer="all")
    elif case.action == "report":
        estimator.write_report(given["rows"], f"{given['out']}.html")
    elif case.action in ("score_outliers", "predict_proba"):
        getattr(estimator, case.action)(given["rows"], out=given["out"])
    else:
        getattr(estimator, case.action)(given["rows"])


def _command(case: Case, given: dict[str, Any]) -> None:
    """What the command line does for rows."""
    from mmcnb.cli import main
    from mmcnb.stores import convert

    if case.action == "convert":
        convert(
            given["rows"],
            given["out"],
            memory_limit=case.limit * MIB,
            progress=False,
            overwrite=True,
        )
        return
    words = [given["rows"]]
    if case.action == "score":
        words.append(given["rows"] + "/y")
    assert main([case.action, *words, "--json"]) == 0


ACTIONS: dict[str, Callable[[Case, dict[str, Any]], int | None]] = {
    "fit": _fit,
    **dict.fromkeys(OF_A_MODEL, _predict),
    **dict.fromkeys(("convert", "verify", "score"), _command),
}


if __name__ == "__main__":
    print(json.dumps(_child(json.loads(sys.argv[1]))))
