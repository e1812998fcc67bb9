"""Calls of the system that fail: the command says so in one sentence, or has done its work.

**Promised.** Whichever call fails on the files of a command (open, flush to the disk,
rename, remove, make a folder, ask for a status or a list), ``convert``, ``fit``, ``predict``, ``update``,
``explain``, ``report`` and a resumed ``fit`` end in status 0 with the right outputs, or in status 2 with one
sentence. Then the outputs that stood before stand, none is half-written, and the same command works again.

**Not promised.** Calls inside libraries that are no Python, such as those of HDF5 and Arrow. Single reads and
writes of an open file are not tried.

A try lets the n-th call fail, at random among those that the command makes when all is well.
"""

import contextlib
import errno
import io
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mmcnb
from mmcnb.cli import main
from mmcnb.samples import open_samples

TRIES = 5000
CI_TRIES = 60
SECONDS = 60
CALLS = (
    "open",
    "replace",
    "rename",
    "unlink",
    "remove",
    "rmdir",
    "mkdir",
    "fsync",
    "stat",
    "lstat",
    "scandir",
)
FAULTS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE)


@contextlib.contextmanager
def failing(folder: Path, at: int | None, fault: int) -> Iterator[list[int]]:
    """Count calls on files below a folder, and let one of them fail."""
    count, kept = [0], {name: getattr(os, name) for name in CALLS}
    opened = io.open

    def call() -> None:
        count[0] += 1
        if count[0] == at:
            raise OSError(fault, os.strerror(fault), str(folder / "somewhere"))

    def concerns(path: Any) -> bool:
        with contextlib.suppress(TypeError, ValueError):
            return os.fspath(path).startswith(str(folder))
        return isinstance(path, int)

    def patched(original: Any) -> Any:
        def function(path: Any, *given: Any, **options: Any) -> Any:
            if concerns(path):
                call()
            return original(path, *given, **options)

        return function

    def open_file(path: Any, *given: Any, **options: Any) -> Any:
        if isinstance(path, int) or not concerns(path):
            return opened(path, *given, **options)
        call()
        return opened(path, *given, **options)

    try:
        for name, original in kept.items():
            setattr(os, name, patched(original))
        io.open = open_file  # type: ignore[assignment]
        yield count
    finally:
        io.open = opened  # type: ignore[assignment]
        for name, original in kept.items():
            setattr(os, name, original)


# -- commands ----------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Rows, a store and a model, from which each command starts."""
    X = np.random.default_rng(0).normal(size=(900, 3)) + 6 * (np.arange(900) % 2)[:, None]
    np.savetxt(folder / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    np.save(folder / "rows.npy", X)
    silent("convert", folder / "rows.npy", folder / "rows.zarr")
    mmcnb.MaximumMarginClustering(2, kernel="graph", random_state=0).fit(X).save(folder / "old.model")


COMMANDS: dict[str, tuple[list[str], list[str]]] = {  # arguments after the verb, and outputs
    "convert": (["rows.csv", "out.zarr"], ["out.zarr"]),
    "fit": (["rows.zarr", "--model", "out.model", "--labels", "out.csv", "--random-state", "0"], []),
    "predict": (["old.model", "rows.zarr", "--labels", "out.csv"], ["out.csv"]),
    "update": (["old.model", "rows.zarr", "--out", "out.model"], ["out.model"]),
    "explain": (["old.model", "rows.zarr"], []),
    "report": (["old.model", "rows.zarr", "--out", "out.html"], ["out.html"]),
}
COMMANDS["fit"][1].extend(["out.model", "out.csv"])


def silent(*words: Any) -> tuple[int, str]:
    """Status of a command, and what it prints on standard error."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            status = main([str(word) for word in words])
        except SystemExit as ended:
            status = int(ended.code or 0)
    return status, error.getvalue()


def answer(path: Path, folder: Path) -> Any:
    """What an output says, whatever its bytes; None if it is not there."""
    if not path.exists():
        return None
    if path.suffix == ".model":
        return mmcnb.load(path).predict(folder / "rows.npy").tolist()
    if path.suffix == ".zarr":
        samples = open_samples(path)
        return samples.block(0, samples.n_samples).tolist()
    return path.read_text(encoding="utf-8")


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """One call that fails in one command."""
    random = np.random.default_rng(seed)
    verb = [*COMMANDS][random.integers(len(COMMANDS))]
    prepare(folder)
    given, outputs = COMMANDS[verb]
    words = [verb, *(folder / word if "." in word else word for word in given)]
    is_old = bool(outputs) and random.random() < 0.5  # outputs stand there already
    with failing(folder, None, 0) as calls:
        status, said = silent(*words)
    assert status == 0, said
    right = {name: answer(folder / name, folder) for name in outputs}
    for name in outputs:
        path = folder / name
        if is_old:
            path.rename(folder / f"kept-{name}")
            (path.mkdir() if path.suffix == ".zarr" else path.write_text("old"))
            if path.suffix == ".zarr":
                shutil.copytree(folder / "rows.zarr", path, dirs_exist_ok=True)
        else:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    words += ["--overwrite"] if is_old else []
    before = {name: bytes_of(folder / name) for name in outputs}
    at, fault = int(random.integers(1, calls[0] + 1)), FAULTS[random.integers(len(FAULTS))]
    with failing(folder, at, fault):
        status, said = silent(*words)
    facts = {"verb": verb, "at": at, "calls": calls[0], "fault": errno.errorcode[fault], "old": is_old}
    if status == 0:
        found = {name: answer(folder / name, folder) for name in outputs}
        assert found == right, f"{verb}: status 0 and another output"
        return facts | {"answer": "done"}
    last = [line for line in said.splitlines() if not line.startswith("mmcnb: warning")]
    is_sentence = len(last) == 1 and last[0].endswith(".")
    assert (status, is_sentence) == (2, True), f"{verb}: status {status}: {said[:300]}"
    assert {name: bytes_of(folder / name) for name in outputs} == before, f"{verb}: an output has changed"
    status, said = silent(*words)
    assert status == 0, f"{verb}, again: {said[:300]}"
    assert {name: answer(folder / name, folder) for name in outputs} == right, (
        f"{verb}, again: another output"
    )
    return facts | {"answer": "refused"}


def bytes_of(path: Path) -> Any:
    """All bytes at a path."""
    if path.is_dir():
        return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}
    return path.read_bytes() if path.exists() else None
