"""`mmcnb plan`, `doctor` and `demo`: what a fit will take, what is installed, and a first look."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import mmcnb
from mmcnb.cli import build_parser
from mmcnb.cli.demo import LIMIT
from mmcnb.engine.plan import RowShape
from tests.cli.conftest import ROWS

# depend on what is compiled already
OF_COMPILATION = {
    "compile_seconds",
    "seconds",
    "libraries",
    "peak",
}


@pytest.mark.parametrize(
    ("options", "estimator"),
    [
        ("", mmcnb.MaximumMarginClustering()),
        ("--n-clusters 5 --kernel rbf", mmcnb.MaximumMarginClustering(5, kernel="rbf")),
        (
            "--n-nodes 100 --jobs 1",
            mmcnb.MaximumMarginClustering(n_nodes=100, n_jobs=1),
        ),
        (
            "--method sparse-kernel-mmc --set n_landmarks=10",
            mmcnb.SparseKernelMMC(n_landmarks=10),
        ),
        (
            "--method unsupervised-rls --n-clusters 3 --set cluster_sizes=equal --set sample_size=50",
            mmcnb.UnsupervisedRLS(3, cluster_sizes="equal", sample_size=50),
        ),
        (
            "--method multiple-kernel-clustering --set kernels=linear,rbf --set n_landmarks=20",
            mmcnb.MultipleKernelClustering(kernels=["linear", "rbf"], n_landmarks=20),
        ),
    ],
)
def test_the_plan_of_a_store_and_of_its_size_is_that_of_the_estimator(
    options, estimator, folder, report_of
):
    by_store = report_of(f"plan blobs.zarr --memory-limit 4GiB {options}")
    by_size = report_of(
        f"plan --rows {ROWS} --features 3 --memory-limit 4GiB {options}"
    )
    plan = estimator.set_params(memory_limit="4GiB").plan(RowShape(ROWS, 3)).to_dict()
    for name in plan.keys() - OF_COMPILATION:
        assert by_store[name] == by_size[name] == plan[name], name


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--method kernel-kmeans --set sample_size=4",
            "sample_size=4 is smaller than n_clusters=8; pass more rows",
        ),
        (
            "--method unsupervised-rls --n-clusters 3 --set n_landmarks=2",
            "n_landmarks=2 is smaller than n_clusters=3; pass more landmarks",
        ),
        (
            "--n-clusters 20 --n-nodes 19",
            "n_nodes=19 is smaller than n_clusters=20; pass more rows",
        ),
        (
            "--method crammer-singer-mmc --n-clusters 151",
            "n_clusters=151 is more than the 150 rows; pass n_clusters=150 or fewer",
        ),
        (
            "--min-cluster-size 151",
            "min_cluster_size=151 is too large for one cluster of 150 rows; "
            "pass at most 150",
        ),
        (
            "--n-clusters 3,5 --min-cluster-size 51",
            "min_cluster_size=51 is too large for 3 clusters of 150 rows; "
            "pass at most 50",
        ),
        (
            "--n-clusters 3,5 --min-cluster-size 0.4",
            "min_cluster_size=0.4 is too large for 3 clusters of 150 rows; "
            "pass at most 0.333333",
        ),
    ],
)
def test_a_plan_refuses_what_its_fit_would_refuse(
    options, sentence, folder, refusal_of
):
    assert sentence in refusal_of(f"plan blobs.zarr {options}")
    assert sentence in refusal_of(f"plan --rows 150 --features 3 {options}")
    assert sentence in refusal_of(f"fit blobs.zarr --model m {options}")


def test_the_plan_is_worded(folder, printed):
    text = printed(
        "plan --rows 1000000 --features 20 --memory-limit 8GiB --n-clusters 40"
    )
    assert "rows             1,000,000 x 20, " in text
    assert "of 8 GiB allowed" in text


def test_doctor_reports_this_installation(monkeypatch, report_of, printed):
    report = report_of("doctor")
    assert report["versions"]["mmcnb"] == mmcnb.__version__
    assert report["versions"]["numpy"] == np.__version__
    assert report["versions"].keys() >= {"dask", "distributed", "fsspec"}
    assert report["thread_pools"]
    assert report["machine"]["threads"] >= 1
    assert os.access(report["machine"]["compile_cache"], os.W_OK)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "none: set NUMBA_CACHE_DIR to a writable folder" in printed("doctor")


LEAVE_A_STORE_HALF_WRITTEN = """
import os, sys
import numpy as np
from mmcnb.stores import create_dense_store

with create_dense_store(sys.argv[1], 3) as writer:
    writer.append(np.ones((5, 3), np.float32))
    os._exit(9)
"""


@pytest.mark.slow
def test_doctor_names_what_a_killed_command_left_and_removes_it(
    tmp_path, printed, report_of
):
    assert report_of("doctor", tmp_path) == {"leftovers": []}
    command = [
        sys.executable,
        "-c",
        LEAVE_A_STORE_HALF_WRITTEN,
        str(tmp_path / "rows.zarr"),
    ]
    subprocess.run(command, check=False)
    (left,) = tmp_path.iterdir()
    report = dict(
        line.split(maxsplit=1) for line in printed("doctor", tmp_path).splitlines()[1:]
    )
    assert (report["path"], report["of"], report["owner"]) == (
        str(left),
        "rows.zarr",
        "is gone",
    )
    assert left.exists()
    (removed,) = report_of(report["remedy"].removeprefix("mmcnb "))["leftovers"]
    assert (removed["path"], removed["of"], removed["done"]) == (
        str(left),
        "rows.zarr",
        "removed",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_demo_compares_both_and_leaves_only_the_pages(tmp_path, report_of):
    report = report_of("demo --rows 5000 --out", tmp_path / "demo")
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "digits.html",
        "rings.html",
    ]
    for name, n_samples in (("rings", 5000), ("digits", 1797)):
        assert report[name]["n_samples"] == n_samples
        assert report[name]["page"] == str(tmp_path / "demo" / f"{name}.html")
        assert (
            (tmp_path / "demo" / f"{name}.html")
            .read_bytes()
            .startswith(b"<!DOCTYPE html>")
        )
    assert (
        report["rings"]["mmcnb_error"] < 0.01 < 0.4 < report["rings"]["k_means_error"]
    )
    assert report["digits"]["mmcnb_error"] <= report["digits"]["k_means_error"]


def test_the_limit_of_the_demo_is_below_its_rows_and_leaves_room_to_compile():
    rows = build_parser().parse_args(["demo"]).rows
    model = mmcnb.MaximumMarginClustering(2, kernel="rbf", memory_limit=LIMIT)
    plan = model.plan(RowShape(rows, 90))
    seconds = sum(plan.needs.routines.values())
    assert seconds > 10
    least = replace(plan, threads=1, store="recompute", compile_seconds=seconds)
    assert least.peak <= plan.memory_limit < rows * 90 * 4 * 0.9
