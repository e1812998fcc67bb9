"""Tables within a memory limit: rows in a scratch file, large groups, and refusals."""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import mmcnb
from mmcnb import MaximumMarginClustering, open_samples, read_table
from mmcnb.errors import InputError, MemoryLimitError

LIMIT = "450MiB"  # leaves 22 MiB for rows
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="the peak is read from /proc"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A file with gaps and categories, of 25 MiB of numbers."""
    path = tmp_path_factory.mktemp("held") / "rows.csv"
    rng = np.random.default_rng(0)
    lines = []
    for k in range(1000):
        gap = "" if k % 97 == 0 else f"{rng.normal():.3f}"
        lines.append(f"{9 * (k % 2)},{gap},{['red', 'green', 'blue'][k % 3]}\n")
    path.write_text("flag,width,colour\n" + "".join(lines) * 2200)
    return path


def test_rows_in_a_scratch_file_are_those_in_memory(table):
    in_memory = read_table(table)
    scratch = read_table(table, memory_limit=LIMIT)
    assert in_memory.held_bytes == 2_200_000 * 5 * 4
    assert scratch.held_bytes == 0
    assert scratch.digest == in_memory.digest
    assert scratch.feature_names == in_memory.feature_names
    assert scratch.notes == in_memory.notes
    rows = np.array([0, 97, 5000, 2_199_999])
    assert np.array_equal(scratch.gather(rows), in_memory.gather(rows))
    with pytest.raises(InputError, match=r"scratch file .*`mmcnb convert`"):
        pickle.dumps(scratch)


def test_a_plan_counts_the_rows_of_a_table_in_memory(table):
    model = MaximumMarginClustering(2, memory_limit="2GiB", n_jobs=1)
    plan = model.plan(table)
    held = plan.sizes["rows"]
    assert held == 2_200_000 * 5 * 4
    assert "rows of the table 42 MiB" in str(plan)
    fewer = model.plan(read_table(table, memory_limit=LIMIT))
    assert fewer.sizes["rows"] == 0
    assert fewer.peak < plan.peak


def test_categories_that_are_wide_stay_numbers_in_memory(tmp_path):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    lines = [f"{k % 2 * 9},a{rng.integers(300)}\n" for k in range(60_000)]
    path.write_text("x,kind\n" + "".join(lines))
    wide = read_table(path, keep="kind")
    narrow = read_table(path, keep="kind", memory_limit=LIMIT)
    assert wide.held_bytes == 60_000 * 301 * 4
    assert narrow.held_bytes == 60_000 * 2 * 4
    assert narrow.digest == wide.digest
    again = pickle.loads(pickle.dumps(narrow))
    assert np.array_equal(again.block(5, 9), wide.block(5, 9))
    assert again.feature_names == wide.feature_names


def test_a_large_row_group_is_held_if_the_limit_is_small(tmp_path):
    path = tmp_path / "rows.parquet"
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(600_000, 4)).astype(np.float32)
    numbers[::2] += 9
    columns = {f"x{k}": column for k, column in enumerate(numbers.T)}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=len(numbers))
    by_groups = open_samples(path, memory_limit="4GiB")
    held = open_samples(path, memory_limit=LIMIT)
    assert by_groups.is_reopenable
    assert not held.is_reopenable
    assert held.digest == by_groups.digest


def test_a_limit_that_reading_would_exceed_is_refused_with_one_that_works(tmp_path):
    path = tmp_path / "rows.parquet"
    column = pa.array(np.arange(150_000) % 2 * 9.0)
    columns = {f"x{k}": column for k in range(40)}
    pyarrow.parquet.write_table(pa.table(columns), path, use_dictionary=False)
    with pytest.raises(
        MemoryLimitError, match=r"too small to read .*rows\.parquet"
    ) as e:
        read_table(path, memory_limit=LIMIT)
    least = re.search(r"the least that works is (\d+ MiB)\.$", str(e.value))[1]
    assert read_table(path, memory_limit=least).n_features == 40
    with mmcnb.config(memory_limit="1MiB"), pytest.raises(MemoryLimitError):
        open_samples(path)


def write_wide(path, columns, cells):
    lines = [",".join(f"x{k}" for k in columns)]
    lines += [",".join(row[columns]) for row in cells]
    path.write_text("\n".join(lines) + "\n")


def test_gaps_of_many_columns_are_those_of_few(tmp_path):
    rng = np.random.default_rng(0)
    marks = ["NA", "", " -", "n/a", '"NULL"', "?"]
    cells = rng.normal(size=(250, 400)).round(3).astype(str).astype(object)
    for k, mark in enumerate(marks):
        cells[7 * k + 3, 5 * k :: 31] = mark
    write_wide(tmp_path / "all.csv", np.arange(400), cells)
    parts = []
    for half in (np.arange(200), np.arange(200, 400)):
        write_wide(tmp_path / "half.csv", half, cells)
        parts.append(read_table(tmp_path / "half.csv").block(0, 250))
    wide = read_table(tmp_path / "all.csv").block(0, 250)
    assert np.array_equal(wide, np.hstack(parts))


def test_many_columns_count_while_they_are_read(tmp_path):
    cells = np.full((3, 3000), "1", object)
    cells[1] = "2"
    write_wide(tmp_path / "wide.csv", np.arange(3000), cells)
    with pytest.raises(MemoryLimitError, match=r"too small to read .*wide\.csv"):
        read_table(tmp_path / "wide.csv", memory_limit=LIMIT)
    assert read_table(tmp_path / "wide.csv", memory_limit="1GiB").n_features == 3000


@pytest.mark.slow
@LINUX
def test_a_table_of_categories_is_fitted_within_the_limit(tmp_path):
    rng = np.random.default_rng(0)
    n_rows = 120_000
    texts = np.array([f"a{k}" for k in range(28)])
    heat = (12 * rng.integers(0, 3, n_rows) + rng.normal(size=n_rows)).round(2)
    columns = [heat.astype(str), *texts[rng.integers(0, 28, (12, n_rows))]]
    names = ",".join(f"c{k}" for k in range(len(columns)))
    rows = "\n".join(map(",".join, zip(*columns, strict=True)))
    (tmp_path / "rows.csv").write_text(f"{names}\n{rows}\n")
    command = [sys.executable, "-m", "mmcnb", "fit", "rows.csv", "--json"]
    command += ["--n-clusters", "3", "--jobs", "1", "--memory-limit", "640MiB"]
    command += ["--labels", "labels.csv", "--random-state", "0"]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["peak_memory_bytes"] <= 640 * 2**20
    model = MaximumMarginClustering(3, memory_limit="8GiB", random_state=0)
    model.fit(tmp_path / "rows.csv")
    labels = np.loadtxt(tmp_path / "labels.csv", delimiter=",", skiprows=1, usecols=1)
    assert np.array_equal(labels, model.labels_)
