"""Calls that fail: the command says so in one sentence, or has done its work.

**Promised.** One call fails: on the files of a command (open, flush to the disk,
rename, remove, make a folder, ask for a status or a list, map into memory), a single
read, write, seek or end of an open file, or one that makes an array. ``convert``,
``predict``, ``update``, ``explain``, ``report`` and ``fit``, also with a checkpoint or
a scratch file or resumed, end in status 0 with the right outputs, or in status 2 with
one sentence; that names the memory limit where memory ran out. Then the outputs that
stood before stand, none is half-written, and the same command works again and leaves
nothing else behind.

**Not promised.** Calls inside libraries that are no Python, such as those of HDF5 and
Arrow, and what they allocate.

A try lets the n-th call of a kind fail, at random among those that the command makes
when all is well; of three tries in ten those that follow and write fail too, as on a
disk that stays full.
"""

import contextlib
import io
import shutil
import tempfile
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import mmcnb
from mmcnb.cli import main
from mmcnb.engine.plan import plan_fit
from mmcnb.samples import open_samples
from tests.campaigns._faults import KINDS, error_of, failing

TRIES = 5000
CI_TRIES = 30
SECONDS = 60
_FIT = [
    "fit",
    "rows.zarr",
    "--model",
    "out.model",
    "--labels",
    "out.csv",
    "--random-state",
    "0",
]
COMMANDS = {
    "convert": ["convert", "rows.csv", "out.zarr"],
    "fit": _FIT,
    "fit by scratch": [*_FIT, "--method", "sparse-kernel-mmc"],
    "fit with checkpoint": [*_FIT, "--checkpoint", "run.folder"],
    "resumed fit": [*_FIT, "--checkpoint", "run.folder"],
    "predict": ["predict", "old.model", "rows.zarr", "--labels", "out.csv"],
    "update": ["update", "old.model", "rows.zarr", "--out", "out.model"],
    "explain": ["explain", "old.model", "rows.zarr"],
    "report": ["report", "old.model", "rows.zarr", "--out", "out.html"],
}


@cache
def _prepared() -> tempfile.TemporaryDirectory[str]:
    """Rows, a store and a model, from which each command starts; made once in this process."""
    made = tempfile.TemporaryDirectory(prefix="campaign-errors-")
    folder = Path(made.name)
    X = (
        np.random.default_rng(0).normal(size=(900, 3))
        + 6 * (np.arange(900) % 2)[:, None]
    )
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    np.save(folder / "rows.npy", X)
    assert silent("convert", folder / "rows.npy", folder / "rows.zarr")[0] == 0
    mmcnb.MaximumMarginClustering(2, kernel="graph", random_state=0).fit(X).save(
        folder / "old.model"
    )
    return made


def silent(*words: Any) -> tuple[int, str, str]:
    """Status of a command, what it prints, and what it prints on standard error."""
    out = io.StringIO()
    error = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            status = main([str(word) for word in words])
        except SystemExit as ended:
            status = int(ended.code or 0)
    return status, out.getvalue(), error.getvalue()


def run(name: str, folder: Path, *more: str) -> tuple[int, str]:
    """Status of one of the commands in a folder, and what it says: sentences of clusters, or of its end."""
    words = [folder / word if "." in word else word for word in COMMANDS[name]]
    with contextlib.ExitStack() as stack:
        if name == "fit by scratch":
            plan = lambda *given: replace(plan_fit(*given), store="scratch")  # noqa: E731
            # Internal: a plan takes the scratch file only for more rows than a try has.
            stack.enter_context(mock.patch("mmcnb.estimators.base.plan_fit", plan))
            stack.enter_context(mock.patch.object(tempfile, "tempdir", str(folder)))
        status, out, error = silent(*words, *more)
    return status, out if name == "explain" and status == 0 else error


def outputs(name: str, folder: Path) -> dict[str, Any]:
    """What the outputs of a command say, whatever their bytes; None for one that is not there."""
    return {
        word: answer(folder / word)
        for word in COMMANDS[name]
        if word.startswith("out.")
    }


def answer(path: Path) -> Any:
    """What an output says."""
    if not path.exists():
        return None
    if path.suffix == ".model":
        return mmcnb.load(path).predict(path.with_name("rows.npy")).tolist()
    if path.suffix == ".zarr":
        samples = open_samples(path)
        return samples.block(0, samples.n_samples).tolist()
    return path.read_text(encoding="utf-8").replace(str(path.parent), "")


@cache
def right(name: str, kind: str) -> tuple[str, dict[str, Any], int]:
    """What a command says and writes when all is well, and its calls of a kind."""
    folder = Path(_prepared().name)
    assert run(name, folder)[0] == 0  # imports and compiles all that it needs
    clear(name, folder)
    with failing(kind, folder) as trap:
        status, said = run(name, folder)
    assert status == 0, said
    written = outputs(name, folder)
    clear(name, folder)
    return said, written, trap.calls


def clear(name: str, folder: Path) -> None:
    """Remove what a command has written."""
    for word in COMMANDS[name]:
        path = folder / word
        if word.startswith(("out.", "run.")) and path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_old(name: str, folder: Path) -> None:
    """Put other outputs where those of a command will be."""
    for word in outputs(name, folder):
        if word.endswith(".zarr"):
            shutil.copytree(folder / "rows.zarr", folder / word)
        else:
            (folder / word).write_text("old")


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One call that fails in one command."""
    random = np.random.default_rng(seed)
    name = [*COMMANDS][random.integers(len(COMMANDS))]
    kind = [*KINDS][random.integers(len(KINDS))]
    sentence, written, calls = right(name, kind)
    shutil.copytree(_prepared().name, folder, dirs_exist_ok=True)
    if name == "resumed fit":
        with failing(
            "files", folder, int(random.integers(1, right(name, "files")[2] + 1))
        ):
            run(name, folder)
        for word in written:
            (folder / word).unlink(missing_ok=True)
    is_old = bool(written) and random.random() < 0.5  # outputs stand there already
    if is_old:
        put_old(name, folder)
    before = bytes_of(name, folder)
    more = ["--overwrite"] * is_old
    at = int(random.integers(1, calls + 1))
    fault = int(random.integers(4))
    lasts = bool(random.random() < 0.3)
    facts = {
        "command": name,
        "kind": kind,
        "at": at,
        "calls": calls,
        "fault": fault,
        "lasts": lasts,
    }
    with failing(kind, folder, at, error_of(kind, fault, folder), lasts):
        status, said = run(name, folder, *more)
    if status == 0:
        assert outputs(name, folder) == written, f"{name}: status 0 and another output"
        assert name != "explain" or said == sentence, (
            f"{name}: status 0 and another text"
        )
        return facts | {"old": is_old, "answer": "done"}
    notices = "mmcnb: warning", f"checkpoint {folder}"  # of a pass that runs again
    last = [line for line in said.splitlines() if not line.startswith(notices)]
    is_sentence = len(last) == 1 and last[0].endswith(".")
    is_told = kind != "memory" or "memory-limit" in said.replace("_", "-")
    assert (status, is_sentence, is_told) == (2, True, True), (
        f"{name}: status {status}: {said[:300]}"
    )
    assert bytes_of(name, folder) == before, f"{name}: an output has changed"
    status, said = run(name, folder, *more)
    assert status == 0, f"{name}, again: {said[:300]}"
    assert outputs(name, folder) == written, f"{name}, again: another output"
    left = sorted(path.name for path in folder.rglob(".part-*"))
    assert not left, f"{name}, again: {left} are left behind"
    return facts | {
        "old": is_old,
        "answer": "refused",
        "said": last[0].replace(str(folder), ""),
    }


def bytes_of(name: str, folder: Path) -> dict[str, Any]:
    """All bytes of the outputs of a command."""
    paths = [folder / word for word in COMMANDS[name] if word.startswith("out.")]
    files = [
        file for path in paths for file in (path, *path.rglob("*")) if file.is_file()
    ]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}
