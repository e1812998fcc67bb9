"""Several processes take one place at once: an output, a checkpoint, a journal of a study, the compile cache.

Promised is that one of the commands that write an output wins. With ``--overwrite``,
each of them does that waits for no other longer than ten seconds. What stands at the
end is whole, checked, and of one command alone, its model and its labels too. The
others end in one sentence, and nothing else is left. A checkpoint has one fit at a
time, and a journal loses no run. The compile cache of several processes gives right
results, whether it is empty, shared or cannot be written.

The commands run in forks of a process that has loaded all. They begin together, up to
the time that a command takes apart, and dawdle between the moves of two outputs. Each
has input of its own, so that the output says whose it is.
"""

import json
import multiprocessing
import multiprocessing.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import benchmarks.journal
import benchmarks.run
import mmcnb.cli
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import as_matrix
from mmcnb.stores import verify_store
from mmcnb.stores.atomic import AtomicOutput

# Internal: a table of labels is read while another process writes it.
from mmcnb.stores.label_table import read_values

TRIES = 50
CI_TRIES = 6
SECONDS = 300  # three cold starts of Python on a machine that is busy
MOST = 3  # processes in one race
RUNS = 8  # of a study, by each process
SAVES = 10
METHOD = ("--method", "cpmmc", "--random-state", "0")

KERNELS = """
from mmcnb._numba import njit

@njit()
def halved(x):
    return x / 2

@njit()
def doubled(x):
    return x * 2
"""
USE = "import sys; from kernels import doubled, halved; x = eval(sys.argv[1]); print(halved(x), doubled(x))"
COUNT = (
    "from kernels import halved, doubled; print(halved(3.0), halved(5), doubled(3.0), doubled(5), "
    "sum(sum(f.stats.cache_hits.values()) for f in (halved, doubled)))"
)


@cache
def inputs() -> list[Path]:
    """A folder for each process: rows as .npy, as sparse .npz and as a store, a model and its labels."""
    top = Path(tempfile.mkdtemp(prefix="races-inputs-"))
    multiprocessing.util.Finalize(None, shutil.rmtree, (top, True), exitpriority=1)
    for number in range(MOST):
        folder = top / str(number)
        rng = np.random.default_rng(number)
        folder.mkdir()
        X = rng.normal(size=(300 + number, 3)) + 4 * (
            rng.random((300 + number, 1)) < 0.5
        )
        np.save(folder / "rows.npy", X)
        scipy.sparse.save_npz(
            folder / "rows.npz", scipy.sparse.csr_array(np.where(X > 0.5, X, 0))
        )
        mmcnb.stores.convert(folder / "rows.npy", folder / "rows.zarr", progress=False)
        fitted = mmcnb.CPMMC(C=3.0 + number, random_state=0).fit(folder / "rows.zarr")
        fitted.save(folder / "model")
        np.save(folder / "labels.npy", fitted.labels_)
    return [top / str(number) for number in range(MOST)]


# -- processes -------------------------------------------------------------------------


def race(
    jobs: list[Any], rng: np.random.Generator, folder: Path, apart: float
) -> list[tuple[int, str]]:
    """Run functions in processes that begin together; the exit code of each, and what it said."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    go = context.Event()
    with tempfile.TemporaryDirectory(prefix="races-said-") as said:
        told = [Path(said, str(number)) for number in range(len(jobs))]
        pauses = [
            (float(rng.uniform(0, apart)), float(rng.choice([0.0, 0.05]))) for _ in jobs
        ]
        given = zip(jobs, pauses, told, strict=True)
        processes = [
            context.Process(target=_run, args=(go, str(folder), *one)) for one in given
        ]
        for process in processes:
            process.start()
        go.set()
        for process in processes:
            process.join()
        return [
            (process.exitcode, path.read_text())
            for process, path in zip(processes, told, strict=True)
        ]


def _run(
    go: Any, folder: str, job: Any, pauses: tuple[float, float], said: Path
) -> None:
    with said.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    place = AtomicOutput._place

    def slowly(self: AtomicOutput) -> None:
        place(self)
        time.sleep(pauses[1])

    AtomicOutput._place = slowly  # type: ignore[method-assign]
    go.wait()
    time.sleep(pauses[0])
    function, *words = job
    sys.exit(function(*words))


def command(*words: Any) -> tuple[Any, ...]:
    """A command line as a job; what it prints besides complaints is not looked at."""
    return _main, *map(str, words)


def _main(*words: str) -> int:
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = nowhere
        return mmcnb.cli.main(words)


def _save(model: str, target: str) -> None:
    fitted = mmcnb.load(model)
    for _ in range(SAVES):
        fitted.save(target)


def _study(first: int) -> None:
    runs = pd.DataFrame(
        [
            benchmarks.run.Run("rings", "guess", seed)
            for seed in range(first, first + RUNS)
        ]
    )
    with benchmarks.journal.Journal(
        "study", benchmarks.run.Options(Path()), "of today"
    ) as journal:
        journal.results(runs, _guess)


def _guess(run: Any) -> dict[str, float]:
    time.sleep(0.005)
    return {"error": run.seed / 10}


# -- what is raced for -----------------------------------------------------------------


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One race."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    overwrite = bool(seed // len(KINDS) % 2)
    return {"kind": kind.__name__, "overwrite": overwrite} | kind(
        rng, folder, overwrite
    )


def outputs(
    rng: np.random.Generator,
    folder: Path,
    overwrite: bool,
    words: list[list[Any]],
    made: set[str],
) -> dict[str, Any]:
    """Race commands for outputs: who won, and whether the others were refused and nothing else is left."""
    more = ["--overwrite"] if overwrite else []
    ends = race([command(*one, *more) for one in words], rng, folder, apart=0.3)
    winners = [number for number, (code, _) in enumerate(ends) if code == 0]
    for code, said in ends:
        assert code in (0, 2), f"a command ended with {code}: {said}"
        assert "Traceback" not in said, said
        if code == 2:
            assert said.count("\n") == 1, f"a loser said more than a sentence: {said}"
            assert (
                "is being written by another process" in said
                or "exists already" in said
            ), said
    assert winners if overwrite else len(winners) == 1, f"won: {winners}, ended: {ends}"
    left = {path.name for path in folder.iterdir()}
    assert left == made, f"there are {sorted(left)} and not {sorted(made)}"
    return {
        "processes": len(words),
        "answer": f"{len(winners)} won",
        "winners": winners,
    }


def contestants(rng: np.random.Generator) -> list[Path]:
    """The inputs of two or three processes."""
    return inputs()[: int(rng.integers(2, MOST + 1))]


def owner_of(length: int) -> int:
    """The process whose rows are as many."""
    return length - 300


def convert(rng: np.random.Generator, folder: Path, overwrite: bool) -> dict[str, Any]:
    """Stores, dense and sparse."""
    sources = contestants(rng)
    ending = str(rng.choice(["npy", "npz"]))
    words = [["convert", source / f"rows.{ending}", "rows.zarr"] for source in sources]
    row = outputs(rng, folder, overwrite, words, {"rows.zarr"})
    verify_store(folder / "rows.zarr")
    rows = open_samples(folder / "rows.zarr")
    owner = owner_of(rows.n_samples)
    assert owner in row["winners"]
    found = as_matrix(rows.block(0, rows.n_samples))
    if ending == "npy":
        wanted = np.load(sources[owner] / "rows.npy")
    else:
        wanted = scipy.sparse.load_npz(sources[owner] / "rows.npz").toarray()
        found = found.toarray() if rows.is_sparse else found
    assert np.array_equal(found, wanted), "the store is not what was converted"
    return row


def fit(rng: np.random.Generator, folder: Path, overwrite: bool) -> dict[str, Any]:
    """A model and its labels, which belong together."""
    labels = f"labels.{rng.choice(['csv', 'parquet', 'zarr'])}"
    words = [
        [
            "fit",
            source / "rows.zarr",
            "--model",
            "model",
            "--labels",
            labels,
            "--set",
            f"C={3 + number}",
            *METHOD,
        ]
        for number, source in enumerate(contestants(rng))
    ]
    row = outputs(rng, folder, overwrite, words, {"model", labels})
    found = read_values(folder / labels)
    owner = owner_of(len(found))
    assert owner in row["winners"]
    modelled = int(mmcnb.load(folder / "model").C) - 3
    assert modelled == owner, (
        f"the model is of process {modelled}, the labels are of {owner}"
    )
    assert np.array_equal(found, np.load(inputs()[owner] / "labels.npy")), (
        "labels differ"
    )
    return row


def predict(rng: np.random.Generator, folder: Path, overwrite: bool) -> dict[str, Any]:
    """Labels as a table or as an array."""
    labels = f"labels.{rng.choice(['csv', 'parquet', 'zarr'])}"
    words = [
        ["predict", one / "model", one / "rows.zarr", "--labels", labels]
        for one in contestants(rng)
    ]
    row = outputs(rng, folder, overwrite, words, {labels})
    found = read_values(folder / labels)
    owner = owner_of(len(found))
    assert owner in row["winners"]
    assert np.array_equal(found, np.load(inputs()[owner] / "labels.npy")), (
        "labels differ"
    )
    return row


def save(rng: np.random.Generator, folder: Path, overwrite: bool) -> dict[str, Any]:
    """Models that are saved over each other, again and again."""
    sources = contestants(rng)
    ends = race(
        [(_save, str(one / "model"), "model") for one in sources],
        rng,
        folder,
        apart=0.02,
    )
    assert [code for code, _ in ends] == [0] * len(sources), ends
    assert [path.name for path in folder.iterdir()] == ["model"]
    owner = int(mmcnb.load(folder / "model").C) - 3
    assert (folder / "model").read_bytes() == (
        inputs()[owner] / "model"
    ).read_bytes(), "the model differs"
    return {"processes": len(sources), "answer": "all won"}


def checkpoint(
    rng: np.random.Generator, folder: Path, overwrite: bool
) -> dict[str, Any]:
    """One fit in several processes with one checkpoint: one at a time, and all answers alike."""
    numbers = range(int(rng.integers(2, MOST + 1)))
    jobs = [_checkpointed(number, overwrite) for number in numbers]
    ends = race(jobs, rng, folder, apart=0.05)
    winners = [number for number in numbers if ends[number][0] == 0]
    for code, said in ends:
        assert code == 0 or (
            code == 2 and "is in use by another fit" in said and said.count("\n") == 1
        ), said
    assert winners, f"each refused the other: {ends}"
    made = {"run"} | {
        one for number in winners for one in (f"model{number}", f"labels{number}.csv")
    }
    assert {path.name for path in folder.iterdir()} == made, sorted(
        path.name for path in folder.iterdir()
    )
    ((code, said),) = race([_checkpointed(MOST, overwrite)], rng, folder, apart=0)
    assert code == 0, said
    wanted = np.load(inputs()[0] / "labels.npy")
    for number in (*winners, MOST):
        assert np.array_equal(read_values(folder / f"labels{number}.csv"), wanted)
    return {
        "processes": len(numbers),
        "answer": "one won" if len(winners) == 1 else "all won",
    }


def _checkpointed(number: int, overwrite: bool) -> tuple[Any, ...]:
    words = [
        "--model",
        f"model{number}",
        "--labels",
        f"labels{number}.csv",
        "--checkpoint",
        "run",
    ]
    return command(
        "fit",
        inputs()[0] / "rows.zarr",
        *words,
        *METHOD,
        "--set",
        "C=3",
        *["--overwrite"] * overwrite,
    )


def journal(rng: np.random.Generator, folder: Path, overwrite: bool) -> dict[str, Any]:
    """Runs of a study, some of them asked for by several processes."""
    firsts = [
        int(first)
        for first in rng.integers(0, 2 * RUNS, int(rng.integers(2, MOST + 1)))
    ]
    ends = race([(_study, first) for first in firsts], rng, folder, apart=0.05)
    assert [code for code, _ in ends] == [0] * len(firsts), ends
    wanted = {seed for first in firsts for seed in range(first, first + RUNS)}
    header, *lines = [
        json.loads(line) for line in (folder / "study.jsonl").read_text().splitlines()
    ]
    assert "format" in header, "the journal does not begin with its header"
    assert {line["seed"] for line in lines} == wanted, "runs are lost"
    assert len({json.dumps(line["found"]["error"]) for line in lines}) == len(wanted)
    frame = pd.read_parquet(folder / "study.parquet")
    assert sorted(frame["seed"]) == sorted(wanted), "the frame has other runs"
    left = {path.name for path in folder.iterdir()} - {"study.lock"}
    assert left == {"study.jsonl", "study.parquet"}, sorted(left)
    return {"processes": len(firsts), "answer": "nothing lost"}


def compile_cache(
    rng: np.random.Generator, folder: Path, overwrite: bool
) -> dict[str, Any]:
    """Compile small routines in a cache that is empty, or cannot be written, or by default without a home."""
    state = str(rng.choice(["empty", "empty", "closed", "no home"]))
    (folder / "kernels.py").write_text(KERNELS)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "HOME" or state != "no home"
    }
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment["NUMBA_CACHE_DIR"] = str(folder / "cache")
    if state == "closed":
        (folder / "cache").touch()  # no folder can be made there, by whomever
    if state == "no home":
        del environment["NUMBA_CACHE_DIR"]
    processes = [_python(environment, USE, value) for value in ("3.0", "5")]
    ends = [(*process.communicate(), process.returncode) for process in processes]
    assert [out for out, _, _ in ends] == ["1.5 6.0\n", "2.5 10\n"], ends
    assert not any("Traceback" in told for _, told, _ in ends), ends
    out, told = _python(environment, COUNT).communicate()
    assert out.split()[:4] == ["1.5", "2.5", "6.0", "10"], (out, told)
    if state == "empty":
        assert out.split()[4] == "4", f"{out.split()[4]} of 4 routines were kept"
    return {"processes": 2, "answer": "right results", "state": state}


def _python(environment: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", *words],
        env=environment,
        stdout=pipe,
        stderr=pipe,
        text=True,
    )


KINDS = (
    convert,
    fit,
    predict,
    fit,
    convert,
    save,
    checkpoint,
    predict,
    journal,
    fit,
    convert,
    compile_cache,
)
