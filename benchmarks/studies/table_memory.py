"""Peak memory of `mmcnb fit` on tables, beside the memory limit and the plan.

``python -m benchmarks table-memory [--quick] [--rows N]`` writes eight tables that take
far more memory than their files, and fits each with the command and one thread, within
700 MiB and 2 GiB. If a limit is refused, the limit that the message names is used
instead. The peak is the resident memory that the system reports. The goals are that no
peak is above its limit, and that a plan and the peak of its fit differ by at most 25 %.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.tables import Goal, Result
from mmcnb import InputError

LIMITS = (700, 2048)  # MiB
MIB = 2**20
TEXTS = 28
# Script of a process that prints the plan, or runs the fit, by the command.
PROGRAM = """
import contextlib, io, json, sys
from benchmarks.protocol import peak_mib
from mmcnb.cli import main
out, err = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    status = main(sys.argv[1:])
report = json.loads(out.getvalue()) if status == 0 else {}
print(json.dumps([report.get("peak", 0), err.getvalue() if status else "", peak_mib()]))
"""
Write = Callable[[Path, int], list[str]]


def numbers(rows: int, columns: int) -> pd.DataFrame:
    """Return three clusters."""
    rng = np.random.default_rng(0)
    centres = 8.0 * (rng.integers(0, 3, (rows, 1)) == np.arange(columns) % 3)
    block = (centres + rng.normal(size=(rows, columns))).round(3)
    return pd.DataFrame(block).add_prefix("x")


def texts(rows: int, columns: int = 20, values: int = TEXTS) -> pd.DataFrame:
    """Return columns of texts, and a column of numbers with three clusters."""
    rng = np.random.default_rng(0)
    words = np.array([f"a{k}" for k in range(values)])
    frame = pd.DataFrame(
        {"heat": 12 * rng.integers(0, 3, rows) + rng.normal(size=rows)}
    )
    for k in range(columns):
        frame[f"answer{k}"] = words[rng.integers(0, values, rows)]
    return frame


def write_texts(path: Path, rows: int) -> list[str]:
    texts(rows).to_csv(path, index=False)
    return []


def write_one_hot(path: Path, rows: int) -> list[str]:
    frame = texts(rows // 3, columns=1, values=900)
    pd.concat([numbers(rows // 3, 4), frame], axis=1).to_csv(path, index=False)
    return ["--keep", "answer0"]


def write_one_group(path: Path, rows: int) -> list[str]:
    texts(2 * rows).to_parquet(path, row_group_size=2 * rows)
    return []


def write_small_groups(path: Path, rows: int) -> list[str]:
    texts(2 * rows).to_parquet(path, row_group_size=2000)
    return []


def write_pages(path: Path, rows: int) -> list[str]:
    """Write long texts without a dictionary, in large pages."""
    rng = np.random.default_rng(0)
    words = np.array(["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs"])
    frame = pd.concat([numbers(rows, 6), texts(rows, 4)], axis=1)
    frame["note"] = [" ".join(line) for line in words[rng.integers(0, 8, (rows, 60))]]
    frame.to_parquet(
        path, row_group_size=rows, use_dictionary=False, data_page_size=2**24
    )
    return []


def write_wide(path: Path, rows: int) -> list[str]:
    frame = numbers(rows // 2, 200).astype(np.float32)
    frame.to_parquet(path, row_group_size=len(frame))
    return []


def write_folder(path: Path, rows: int) -> list[str]:
    path.mkdir()
    frame = pd.concat([numbers(2 * rows, 12), texts(2 * rows, 2)], axis=1)
    step = -(-len(frame) // 50)
    for k in range(50):
        part = frame.iloc[k * step : (k + 1) * step]
        part.to_csv(path / f"{k:02}.csv", index=False)
    return []


TABLES: dict[str, tuple[str, Write]] = {
    "CSV, 20 texts": ("texts.csv", write_texts),
    "CSV in gzip, 20 texts": ("texts.csv.gz", write_texts),
    "CSV, a text of 900 values": ("values.csv", write_one_hot),
    "Parquet, one group": ("one.parquet", write_one_group),
    "Parquet, groups of 2,000": ("small.parquet", write_small_groups),
    "Parquet, long texts in large pages": ("pages.parquet", write_pages),
    "Parquet, 200 numbers in one group": ("wide.parquet", write_wide),
    "folder of 50 CSV files": ("folder", write_folder),
}


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each table with each limit."""
    settings = {"rows": options.sized(100_000, 20_000)}
    for name in TABLES:
        for limit in LIMITS:
            yield Run(name, f"{limit} MiB", 0, {"limit": limit}, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Plan and fit a table within a limit, or within the smallest limit that works."""
    file, write = TABLES[run.dataset]
    path = Path(run.folder, f"{run.parameters['limit']}-{file}")
    path.parent.mkdir(exist_ok=True)
    options = write(path, run.settings["rows"])
    limit = run.parameters["limit"]
    _, refusal, peak = command("fit", path, limit, options)
    found = {"refused": bool(refusal), "first_peak_mib": peak, "least_mib": limit}
    if refusal:
        least = re.search(r"least that works is (\d+) MiB", refusal)
        if least is None:
            raise InputError(f"the message of a refused fit names no limit: {refusal}")
        found["least_mib"] = limit = int(least[1])
        _, refusal, peak = command("fit", path, limit, options)
        if refusal:
            raise InputError(
                f"the limit that the message names is also refused: {refusal}"
            )
    said = command("plan", path, limit, options)[0]
    return found | {"peak_mib": peak, "said_mib": said / MIB}


def command(
    verb: str, path: Path, limit: int, options: list[str]
) -> tuple[float, str, float]:
    """Run a command; return the planned bytes, the reason of a refusal, and the peak in MiB."""
    words = [verb, str(path), "--memory-limit", f"{limit}MiB", "--jobs", "1", "--json"]
    words += ["--n-clusters", "3", "--random-state", "0", *options]
    if verb == "fit":
        words += ["--model", f"{path}.model", "--overwrite"]
    program = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    planned, refusal, peak = json.loads(done.stdout.splitlines()[-1])
    return float(planned), str(refusal), float(peak)


def tables(frame: pd.DataFrame) -> Result:
    """Return peaks beside limits and plans."""
    columns = ["dataset", "limit", "refused", "first_peak_mib", "least_mib"]
    found = frame[[*columns, "peak_mib", "said_mib"]].copy()
    found["peak / limit"] = np.maximum(
        found["peak_mib"] / found["least_mib"], found["first_peak_mib"] / found["limit"]
    )
    found["said / peak"] = found["said_mib"] / found["peak_mib"]
    said = found["said / peak"]
    goals = [
        Goal("largest peak, in limits", found["peak / limit"].max(), 1.0),
        Goal("largest plan, in peaks", said.max(), 1.25),
        Goal("smallest plan, in peaks", said.min(), 0.75, at_least=True),
    ]
    return Result({"table-memory": found}, goals)
