"""Runs the tries of a campaign in processes of their own, and says which failed.

A campaign is a module with ``TRIES`` and ``CI_TRIES``, ``SECONDS`` after which a try
has hung, and ``attempt(seed, folder)``. That makes one try in an empty folder and
returns a row of facts, or raises where a promise is broken. All that is random in it
comes from the seed.
"""

import faulthandler
import importlib
import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from mmcnb.stores.atomic import atomic_write

ENDED = "the process ended: it hung, crashed or ran out of memory"
_patience = (
    5  # times the seconds of a try that the first of a process may take, which compiles
)
MOST_SHOWN = 20  # failures printed; the frame has all


def load(name: str) -> ModuleType:
    """The module of a campaign."""
    return importlib.import_module(name)


def run(
    module: ModuleType,
    seeds: Iterable[int],
    jobs: int = 1,
    minutes: float | None = None,
    on_try: Callable[[], Any] = lambda: None,
) -> pd.DataFrame:
    """A row for each try, in the order of the seeds: seed, seconds, failure (NA without one), facts."""
    until = time.monotonic() + 60 * (minutes or float("inf"))
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    rows: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=_work, args=(module, waiting, until, rows, on_try))
        for _ in range(jobs)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:  # the tries under way end, and what was found is kept
        with suppress(queue.Empty):
            while True:
                waiting.get_nowait()
        for thread in threads:
            thread.join()
    frame = pd.DataFrame(rows, columns=None if rows else ["seed", "seconds", "failure"])
    return frame.sort_values("seed", ignore_index=True)


def _work(
    module: ModuleType,
    waiting: "queue.SimpleQueue[int]",
    until: float,
    rows: list[dict[str, Any]],
    on_try: Callable[[], Any],
) -> None:
    """Make tries one after the other in one process; a new one follows where it ended."""
    pool, group = _new_pool()
    try:
        while time.monotonic() < until:
            try:
                seed = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            try:
                row = pool.submit(
                    _attempt, module.__name__, seed, module.SECONDS
                ).result()
            except BrokenProcessPool:
                _end(pool, group)
                row = {"failure": ENDED, "trace": ENDED}
                pool, group = _new_pool()
            rows.append(
                {"seed": seed, "seconds": round(time.monotonic() - began, 3), **row}
            )
            on_try()
    finally:
        _end(pool, group)


def _new_pool() -> tuple[ProcessPoolExecutor, int]:
    """A pool of one process, which heads a group, so that what a try starts can be ended with it."""
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    return pool, pool.submit(_begin).result()


def _begin() -> int:
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    return os.getpid()


def _end(pool: ProcessPoolExecutor, group: int) -> None:
    pool.shutdown()
    with suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(group, signal.SIGKILL)


def _attempt(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """One try in an empty folder, in the process of the tries; one that hangs ends the process."""
    global _patience
    faulthandler.dump_traceback_later(_patience * seconds, exit=True)
    _patience = 1
    try:
        with tempfile.TemporaryDirectory(
            prefix="campaign-", ignore_cleanup_errors=True
        ) as folder:
            facts = load(name).attempt(seed, Path(folder))
        return {"failure": None, **facts}
    except Exception as error:
        return {"failure": _sentence(error), "trace": traceback.format_exc()}
    finally:
        faulthandler.cancel_dump_traceback_later()


def _sentence(error: Exception) -> str:
    """An error in one line, with the place it came from."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]} ({Path(frame.filename).name}:{frame.lineno})"


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame of a campaign as CSV, whole or not at all."""
    with atomic_write(path) as file:
        frame.to_csv(file, index=False)


def summary(name: str, frame: pd.DataFrame, whole: bool = False) -> str:
    """What a campaign found, in lines for people; ``whole`` shows the tracebacks."""
    failed = frame[frame["failure"].notna()]
    lines = [
        f"{name}: {len(frame)} tries in {frame['seconds'].sum():.0f} s, {len(failed)} failures"
    ]
    if "answer" in frame:
        lines.append(f"  answers: {_answers(frame)}")
    for _, row in failed.head(MOST_SHOWN).iterrows():
        lines.append(f"  seed {row['seed']}: {row['failure']}")
        if whole:
            lines.append(row["trace"])
    if len(failed):
        command = f"{Path(sys.executable).name} -m tests.campaigns {name}"
        lines.append(
            f"  repeat one: {command} --tries 1 --seed {failed['seed'].iloc[0]}"
        )
    return "\n".join(lines)


def table(names: Iterable[str], folder: Path) -> str:
    """Markdown of the frames in a folder: tries, failures, seconds of all tries, and counts of answers."""
    lines = [
        "| campaign | tries | failures | seconds | answers |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        path = folder / f"{name}.csv"
        if path.exists():
            frame = pd.read_csv(path, low_memory=False)
            failures = int(frame["failure"].notna().sum())
            seconds = frame["seconds"].sum()
            lines.append(
                f"| `{name}` | {len(frame):,} | {failures} | {seconds:,.0f} | {_answers(frame)} |"
            )
    return "\n".join(lines)


def _answers(frame: pd.DataFrame) -> str:
    if "answer" not in frame:
        return ""
    return ", ".join(
        f"{answer} {count:,}"
        for answer, count in frame["answer"].value_counts().items()
    )
