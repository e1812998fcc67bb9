"""Processes that write are killed, interrupted or stopped for a while, at any moment.

Promised, wherever a signal comes: each output is as it was, or the whole new one.
Inputs are not touched. The same command again ends with the bits of a run that nothing
disturbed, and does no finished work twice where a checkpoint or a journal keeps it.
After SIGINT and SIGTERM there is one sentence, exit code 130, all outputs or none, and
nothing else is left. What SIGKILL leaves is named and removed by ``mmcnb doctor
--clean``.

A try forks a process that has everything in memory, waits until a moment of the time
that an undisturbed run takes, and sends its signal. A few tries start the command as a
shell does.
"""

import json
import os
import shutil
import signal
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.campaigns.contents import content, digests, objectives
from tests.campaigns.forks import Forks, output_of

TRIES = 500
CI_TRIES = 8
SECONDS = 120

SMALL = "--set sample_size=150 --set n_landmarks=12 --set n_init=1"
METHODS = {  # store and options that make each checkpointed fit quick
    "maximum-margin-clustering": ("rows.zarr", "--n-nodes 300"),
    "sparse-kernel-mmc": ("rows.zarr", SMALL),
    "crammer-singer-mmc": ("rows.zarr", f"{SMALL} --n-clusters 3 --set max_rounds=4"),
    "unsupervised-rls": ("rows.zarr", f"{SMALL} --n-clusters 3"),
    "evolutionary-mmc": ("rows.zarr", SMALL),
    "multiple-kernel-clustering": ("rows.zarr", f"{SMALL} --set max_rounds=4"),
    "kernel-kmeans": ("rows.zarr", f"{SMALL} --n-clusters 3"),
    "cpmmc": ("rows.zarr", "--set sample_size=150 --set n_init=1"),
    "kernel-cpmmc": ("few.zarr", "--set n_init=1"),
}
SIGNALS = {  # and how often each is drawn; "INT INT" is an impatient user
    "KILL": 0.34,
    "TERM": 0.18,
    "INT": 0.16,
    "INT INT": 0.16,
    "STOP CONT": 0.16,
}
SECONDS_BETWEEN = 0.02  # at most, from one signal to the next


@dataclass(frozen=True)
class Command:
    """A command that writes; its words are divided by blanks, and ``{}`` is the folder of the inputs.

    ``targets`` are its outputs, ``kept`` what a run goes on from, and ``old`` the words
    of a command that has written the same outputs before. One that is no ``repeat``
    adds to an output: it does not run again once that is new.
    """

    program: str
    words: str
    targets: tuple[str, ...]
    old: str | None = None
    kept: str | None = None
    repeat: bool = True

    def list_of_words(self, words: str | None = None) -> list[str]:
        """The words of this command, or of the one before it."""
        return (words or self.words).replace("{}", str(inputs())).split()


def fits() -> dict[str, Command]:
    """A fit of each method, with a checkpoint; the labels take turns to be of each kind."""
    made = {}
    for number, (method, (store, options)) in enumerate(METHODS.items()):
        labels = ("labels.csv", "labels.parquet", "labels.zarr")[number % 3]
        words = f"fit {{}}/{store} --model model --labels {labels} --method {method} {options} --random-state 0"
        jobs = 1 + number % 2
        words += f" --jobs {jobs} --checkpoint run"
        made[method] = Command("mmcnb", words, ("model", labels), kept="run")
    return made


def plain_commands() -> dict[str, Command]:
    """Commands that begin anew each time, with outputs that are there before or not."""
    fit = f"fit {{}}/rows.zarr --model model --method sparse-kernel-mmc {SMALL} --jobs 2 --random-state "
    predict = "predict {}/model {}/rows.zarr --jobs 2 --labels "
    before = "predict {}/other {}/rows.zarr --labels "
    update = "update {}/nodes {}/few.zarr --out model --labels labels.csv --jobs 2"
    made = {
        "convert csv": Command("mmcnb", "convert {}/rows.csv out.zarr", ("out.zarr",)),
        "convert libsvm": Command(
            "mmcnb", "convert {}/rows.libsvm out.zarr", ("out.zarr",)
        ),
        "convert over": Command(
            "mmcnb",
            "convert {}/rows.csv out.zarr --overwrite",
            ("out.zarr",),
            old="convert {}/rows.parquet out.zarr",
        ),
        "convert store": Command(
            "mmcnb",
            "convert {}/rows.zarr out.zarr --overwrite --dtype float64",
            ("out.zarr",),
            old="convert {}/few.zarr out.zarr",
        ),
        "fit": Command(
            "mmcnb", fit + "0 --labels labels.zarr", ("model", "labels.zarr")
        ),
        "save": Command("save", "{}/model model", ("model",)),
        "save over": Command(
            "save", "{}/model model", ("model",), old="{}/other model"
        ),
        "update": Command("mmcnb", update, ("model", "labels.csv")),
        "update over": Command(
            "mmcnb",
            f"{update} --overwrite",
            ("model", "labels.csv"),
            old="update {}/nodes {}/rows.zarr --out model --labels labels.csv",
        ),
        "update in place": Command(
            "mmcnb",
            "update model {}/few.zarr",
            ("model",),
            old="update {}/nodes {}/rows.zarr --out model",
            repeat=False,
        ),
        "explain": Command("mmcnb", "explain {}/model {}/rows.zarr --json", ()),
        "report": Command(
            "mmcnb", "report {}/model {}/rows.zarr --out page.html", ("page.html",)
        ),
        "report over": Command(
            "mmcnb",
            "report {}/nodes {}/rows.zarr --out page.html --overwrite",
            ("page.html",),
            old="report {}/model {}/few.zarr --out page.html",
        ),
        "study": Command(
            "benchmarks", "tiny --out .", ("tiny.parquet",), kept="tiny.jsonl"
        ),
        "console": Command("console", "convert {}/rows.csv out.zarr", ("out.zarr",)),
    }
    for labels in ("labels.csv", "labels.parquet", "labels.zarr"):
        made[f"predict {labels}"] = Command("mmcnb", predict + labels, (labels,))
        made[f"predict over {labels}"] = Command(
            "mmcnb", f"{predict}{labels} --overwrite", (labels,), old=before + labels
        )
        made[f"fit over {labels}"] = Command(
            "mmcnb",
            f"{fit}0 --labels {labels} --overwrite",
            ("model", labels),
            old=f"{fit}5 --scale standard --labels {labels}",
        )
    return made


COMMANDS = plain_commands() | fits()
KINDS = tuple(COMMANDS)
PASSES = "passes"
RECORDED = ("mmcnb", "benchmarks", "console")


@cache
def inputs() -> Path:
    """The inputs of all tries of this process: rows in several forms, two models, and one with nodes."""
    from mmcnb import ClusterWarning, MaximumMarginClustering, SparseKernelMMC
    from mmcnb.datasets import make_block, write_synthetic

    folder = Path(shop(), "inputs")
    folder.mkdir()
    write_synthetic("moons", folder / "rows.zarr", 20_000, 3, random_state=1)
    write_synthetic("moons", folder / "few.zarr", 60, 3, random_state=2)
    rows, classes = make_block("moons", 0, 8000, 3, random_state=3)
    frame = pd.DataFrame(rows, columns=["a", "b", "c"])
    frame.to_csv(folder / "rows.csv", index=False)
    frame[:3000].to_parquet(folder / "rows.parquet")
    lines = [
        f"{c} " + " ".join(f"{k}:{x}" for k, x in enumerate(row, 1))
        for c, row in zip(classes, rows, strict=True)
    ]
    Path(folder, "rows.libsvm").write_text("\n".join(lines) + "\n")
    for seed, name in enumerate(("model", "other")):
        fitted = SparseKernelMMC(
            n_landmarks=12, n_init=1, sample_size=150, n_jobs=1, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ClusterWarning)
            fitted.fit(rows[seed :: seed + 1]).save(folder / name)
    nodes = MaximumMarginClustering(
        2, kernel="graph", n_nodes=300, n_jobs=1, random_state=0
    )
    nodes.fit(rows).save(folder / "nodes")
    return folder


@cache
def shop() -> str:
    """A folder that goes with this process."""
    _folders.append(tempfile.TemporaryDirectory(prefix="campaign-kills-"))
    return _folders[0].name


_folders: list[tempfile.TemporaryDirectory[str]] = []


@cache
def forks() -> Forks:
    """The process that forks, with all loaded that a command of each kind loads."""
    folder = Path(shop(), "warm")
    folder.mkdir()
    warm_up = [
        [command.program, *command.list_of_words()]
        for command in COMMANDS.values()
        if command.program != "console" and command.repeat
    ]
    return Forks(folder, warm_up)


@dataclass(frozen=True)
class Untouched:
    """A run that nothing disturbed: what was there before, what after it, and how long it took."""

    before: dict[str, str]
    after: dict[str, str]
    folder: Path
    seconds: float
    n_kept: int


@cache
def untouched(kind: str) -> Untouched:
    """The reference of all tries of a kind."""
    command = COMMANDS[kind]
    folder = Path(shop(), kind.replace(" ", "-"))
    folder.mkdir()
    if command.old is not None:
        run(command, folder, command.list_of_words(command.old))
    old = shutil.copytree(folder, folder.with_name(folder.name + "-old"))
    before = state(command, folder)
    _ = forks()
    began = time.monotonic()
    run(command, folder)
    seconds = time.monotonic() - began
    return Untouched(
        before, state(command, folder), old, seconds, len(kept(command, folder))
    )


def run(command: Command, folder: Path, words: list[str] | None = None) -> None:
    """Run a command to its end, which must be a good one."""
    program = "mmcnb" if command.program == "console" else command.program
    forks().start(program, words or command.list_of_words(), folder)
    code = forks().wait()
    assert code == 0, f"the same command again ended with {code}: {output_of(folder)}"


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Start a command, send it a signal, and judge what is there; then run it again."""
    # a share of the seeds has kinds of all sorts
    draw = np.random.default_rng(seed)
    kind = KINDS[7 * seed % len(KINDS)]
    signals = str(draw.choice(list(SIGNALS), p=list(SIGNALS.values())))
    moment = str(draw.choice(["any", "first", "last"], p=[0.6, 0.2, 0.2]))
    command = COMMANDS[kind]
    whole = untouched(kind)
    inputs_before = digests(inputs())
    place = shutil.copytree(whole.folder, folder / "place")
    process = forks().start(command.program, command.list_of_words(), place)
    delay = wait_for(moment, draw, whole.seconds, place)
    send(process, signals, draw.uniform(0, SECONDS_BETWEEN))
    code = forks().wait()
    assert digests(inputs()) == inputs_before, f"{kind}: an input was changed"
    found = judged(command, whole, place)
    left = left_behind(command, place)
    answer = (
        "finished"
        if code == 0
        else judge_stop(command, signals, code, found, left, place)
    )
    if answer == "finished":
        assert set(found.values()) <= {"new"}, f"{kind} ended, with {found}"
        assert not left, f"{kind} ended and left {left}"
    elif command.repeat or "new" not in found.values():
        run_again(command, whole, place)
    # a command that begins again removes what it had left itself
    left &= names_in(place)
    if left:
        clean(place, left)
    facts = {
        "answer": answer,
        "kind": kind,
        "signals": signals,
        "moment": moment,
        "delay": round(delay, 4),
    }
    return facts | {"targets": " ".join(found.values()), "left": len(left)}


def wait_for(
    moment: str, draw: np.random.Generator, seconds: float, folder: Path
) -> float:
    """Wait until a moment of a run: any, just after it began to write, or near its end; how long that was."""
    began = time.monotonic()
    if moment == "first":
        while (
            not any(folder.glob(".part-*/*/*")) and time.monotonic() < began + seconds
        ):
            time.sleep(0.0002)
        time.sleep(draw.uniform(0, 0.004))
    else:
        forks().sleep(
            draw.uniform(0.8 * seconds if moment == "last" else 0.001, 1.02 * seconds)
        )
    return time.monotonic() - began


def send(process: int, signals: str, between: float) -> None:
    """Send one or two signals to a process that may have ended."""
    for number, name in enumerate(signals.split()):
        time.sleep(between if number else 0)
        try:
            os.kill(process, getattr(signal, f"SIG{name}"))
        except ProcessLookupError:
            return


def judge_stop(
    command: Command,
    signals: str,
    code: int,
    found: dict[str, str],
    left: set[str],
    folder: Path,
) -> str:
    """What a command that did not finish must have said and left, by its signal; that it was stopped."""
    name = signals.split()[0]
    said = output_of(folder)
    if name == "KILL":
        assert code == -signal.SIGKILL, f"ended with {code}: {said}"
        return "killed"
    assert name != "STOP", (
        f"a run that was halted for a while ended with {code}: {said}"
    )
    if command.program == "save":  # a program without handlers ends as Python does
        assert code == -getattr(signal, f"SIG{name}"), f"ended with {code}: {said}"
        assert name == "TERM" or not left, f"left behind: {left}"
        return "stopped"
    if (
        command.program == "console"
        and code < 0
        and not left
        and set(found.values()) == {"absent"}
    ):
        return "not begun"  # Python itself had not started
    assert code == 130, f"ended with {code}: {said}"
    lines = [
        line
        for line in said.splitlines()
        if line and not line.startswith("benchmarks: ")
    ]
    assert len(lines) == 1, f"said {said!r}"
    assert "stopped by the user" in said or "interrupted" in said, f"said {said!r}"
    assert not left, f"left behind: {left}"
    assert len(set(found.values())) <= 1, (
        f"one output was written without the other: {found}"
    )
    return "stopped"


def run_again(command: Command, whole: Untouched, folder: Path) -> None:
    """The same command again ends as the untouched run, and goes on from what was kept."""
    before = kept(command, folder)
    words = command.list_of_words()
    has_outputs = (
        command.program in ("mmcnb", "console") and command.targets and not command.kept
    )
    run(
        command,
        folder,
        words + ["--overwrite"] * bool(has_outputs and "--overwrite" not in words),
    )
    after = kept(command, folder)
    assert after.items() >= before.items(), "finished work was lost, or done again"
    assert len(after) == whole.n_kept, (
        f"{len(after)} pieces of work are kept, not {whole.n_kept}"
    )
    found = state(command, folder)
    assert found == whole.after, (
        f"the answer differs: {sorted(found.items() ^ whole.after.items())}"
    )


def kept(command: Command, folder: Path) -> dict[str, Any]:
    """Finished work that a run goes on from: passes by when they were written, or lines of a journal."""
    if command.kept is None:
        return {}
    path = folder / command.kept
    if command.program == "benchmarks":
        lines = path.read_text().splitlines(keepends=True)[1:] if path.exists() else []
        return {
            str(json.loads(line)["seed"]): line for line in lines if line.endswith("\n")
        }
    return {
        entry.name: entry.stat().st_mtime_ns for entry in path.glob("passes/??????")
    }


def state(command: Command, folder: Path) -> dict[str, str]:
    """What is in each target, as a digest; "absent" where nothing is."""
    return {name: content(folder / name) for name in command.targets}


def judged(command: Command, whole: Untouched, folder: Path) -> dict[str, str]:
    """Each target as it was ("absent" or "old") or whole ("new")."""
    found = {}
    if command.program == "benchmarks":  # its frame holds what is recorded so far
        frame = objectives(folder / "tiny.parquet")
        assert set(frame) <= set(
            objectives(whole.folder.with_name("study") / "tiny.parquet")
        ), f"{frame}"
        return {"tiny.parquet": "new" if len(frame) == whole.n_kept else "old"}
    for name, digest in state(command, folder).items():
        known = {
            whole.before[name]: "old",
            whole.after[name]: "new",
            "absent": "absent",
        }
        assert digest in known, f"{name} is neither as it was nor whole"
        assert digest != "absent" or whole.before[name] == "absent", (
            f"{name} was there and is gone"
        )
        found[name] = known[digest]
    return found


def left_behind(command: Command, folder: Path) -> set[str]:
    """What stands in a folder beside outputs and what a run goes on from."""
    wanted = {*command.targets, command.kept, "tiny.lock", "objectives.csv", "tiny"}
    # of a study
    return {
        name for name in names_in(folder) - wanted if not name.startswith(".scratch-")
    }


def names_in(folder: Path) -> set[str]:
    """Names of what stands in a folder."""
    return {path.name for path in folder.iterdir()}


def clean(folder: Path, left: set[str]) -> None:
    """Leftovers of a process that is gone are named, and removed where that is asked for."""
    beside = names_in(folder) - left
    for words in (["doctor", "."], ["doctor", ".", "--clean"]):
        forks().start("mmcnb", words, folder)
        assert forks().wait() == 0, f"{' '.join(words)}: {output_of(folder)}"
        unnamed = [name for name in left if name not in output_of(folder, "out")]
        assert not unnamed, f"{' '.join(words)} does not name {unnamed}"
    assert names_in(folder) == beside, (
        f"doctor --clean has left {names_in(folder) - beside}"
    )
