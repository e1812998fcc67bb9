"""Time of `mmcnb convert` on a CSV file, beside Polars and Arrow, which only read it.

``python -m benchmarks table-speed [--quick] [--rows N]`` writes two tables of N rows,
10⁶ by default, and 20 columns: one of numbers, and one of ten numbers and ten texts.
`convert`, ``polars.scan_csv(...).collect()`` and ``pyarrow.csv.read_csv`` take turns,
and the table shows the medians. A first conversion of the first rows compiles the
routines and imports the libraries; it is measured separately. Processor seconds include
all threads. ``python -m benchmarks.compare COMMIT --work "convert, numbers" "convert,
half texts"`` gives the ratios to an earlier commit.
"""

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import Options, Run, Runs, frame_of_runs
from benchmarks.studies.tables import timed
from benchmarks.tables import Result
from mmcnb import InputError
from mmcnb.stores import convert

COLUMNS = 20
TEXTS = {"numbers": 0, "half texts": 10}  # number of text columns
WORDS = ("red", "green", "blue", "yellow")
FIRST_ROWS = 1000
BLOCK_ROWS = 100_000  # rows written at once


@frame_of_runs
def grid(options: Options) -> Runs:
    """Yield each table."""
    settings = {
        "rows": options.sized(1_000_000, 50_000),
        "turns": options.pick(5, 3, 1),
    }
    for name in TEXTS:
        yield Run(name, "all", 0, settings=settings)


def compute(run: Run) -> dict[str, Any]:
    """Measure the seconds of each way to read a file, and of the first conversion."""
    n_rows = run.settings["rows"]
    path = Path(run.folder, "rows.csv")
    first = path.with_name("first.csv")
    store = path.with_name("rows.zarr")
    write(path, n_rows, TEXTS[run.dataset])
    write(first, min(n_rows, FIRST_ROWS), TEXTS[run.dataset])
    started = time.perf_counter()
    convert(first, store, overwrite=True, progress=False)
    measures: dict[str, Any] = {
        "rows": n_rows,
        "megabytes": path.stat().st_size / 1e6,
        "compile_seconds": time.perf_counter() - started,
    }
    seconds = timed(ways(path, store), run.settings["turns"])
    for name, (wall, processor) in seconds.items():
        measures[f"{name}_seconds"] = wall
        measures[f"{name}_processor_seconds"] = processor
    for file in (path, first):
        file.unlink()
    shutil.rmtree(store)
    return measures


def write(path: Path, n_rows: int, n_texts: int) -> None:
    """Write numbers with four decimals, and texts with four values."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for start in range(0, n_rows, BLOCK_ROWS):
            size = min(BLOCK_ROWS, n_rows - start)
            numbers = rng.normal(size=(size, COLUMNS - n_texts)).round(4)
            frame = pd.DataFrame(numbers).add_prefix("x")
            for k in range(n_texts):
                frame[f"t{k}"] = rng.choice(WORDS, size)
            frame.to_csv(file, index=False, header=start == 0)


def ways(path: Path, store: Path) -> dict[str, Callable[[], object]]:
    """Return the functions to measure, by name."""
    try:
        import polars
        import pyarrow.csv
    except ImportError as error:
        raise InputError(
            "the comparison needs polars and pyarrow: pip install polars pyarrow."
        ) from error
    return {
        "convert": partial(convert, path, store, overwrite=True, progress=False),
        "polars": lambda: polars.scan_csv(path).collect(),
        "pyarrow": lambda: pyarrow.csv.read_csv(path),
    }


def tables(frame: pd.DataFrame) -> Result:
    """Return one row per table and way."""
    rows = []
    for run in frame.to_dict("records"):
        for way in ("convert", "polars", "pyarrow"):
            row = {
                "table": run["dataset"],
                "rows": run["rows"],
                "megabytes": run["megabytes"],
                "way": way,
                "seconds": run[f"{way}_seconds"],
                "processor_seconds": run[f"{way}_processor_seconds"],
            }
            if way == "convert":
                row["compile_seconds"] = run["compile_seconds"]
            rows.append(row)
    return Result({"table-speed": pd.DataFrame(rows)})
