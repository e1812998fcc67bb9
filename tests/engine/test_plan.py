"""The plan of a fit: what it needs of memory and reads, and the least limit that works."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import mmcnb
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_fit, plan_passes
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.hinge.needs import hinge_needs
from mmcnb.samples import open_samples
from tests.engine.fakes import FakeSamples

MIB = 2**20
WORKS = [
    (10_000, 20, 200, 1),
    (32_561, 123, 200, 8),
    (10**7, 32, 50, 2),
    (266_079, 676, 200, 8),
    (10**6, 30, 0, 2),
]


def plan_rows(n, d, p=200, n_jobs=1, memory_limit=None, **needs):
    """The plan of a hinge method for rows of a store that nobody has written."""
    rows = RowShape(n, d)
    return plan_fit(
        rows, replace(hinge_needs(rows, p, 2000), **needs), memory_limit, n_jobs
    )


def bytes_of(limit):
    """How many bytes a plan takes a limit for."""
    return plan_fit(RowShape(1, 1), FitNeeds(), limit).memory_limit


def least_that_works(plan, *args, **kwargs):
    """The limit that the error of a plan names."""
    with pytest.raises(MemoryLimitError) as error:
        plan(*args, **kwargs)
    return re.search(
        r"the least that works is ([\d.]+ [MG]iB)\.$", str(error.value)
    ).group(1)


@pytest.mark.parametrize("sizes", WORKS)
def test_the_error_names_the_least_limit_that_works_and_more_memory_never_plans_worse(
    sizes,
):
    least = least_that_works(plan_rows, *sizes, memory_limit="1MiB")
    assert plan_rows(*sizes, memory_limit=least).peak <= bytes_of(least)
    with pytest.raises(MemoryLimitError):
        plan_rows(*sizes, memory_limit=bytes_of(least) - MIB)
    limits = bytes_of(least) + np.r_[0, 2 ** np.arange(20, 35, 0.5)].astype(int)
    plans = [plan_rows(*sizes, memory_limit=int(limit)) for limit in limits]
    assert all(plan.peak <= plan.memory_limit for plan in plans)
    assert all(plan.threads <= sizes[3] for plan in plans)
    seconds = [plan.seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    assert plans[-1].store == "memory" or not sizes[2]


@settings(max_examples=50)
@given(st.integers(1, 64), st.integers(0, 2**27), st.integers(0, 4000))
def test_a_pass_has_as_many_threads_as_the_limit_leaves_room_for(
    n_jobs, chunk_bytes, n_columns
):
    rows = RowShape(10**7, 250, chunk_bytes=float(chunk_bytes))
    needs = FitNeeds(n_columns)
    least = bytes_of(least_that_works(plan_passes, rows, needs, 1, n_jobs))
    for limit in (least, least + 2**29, least + 2**33, least + 2**37):
        count = plan_passes(rows, needs, limit, n_jobs).threads
        peak, next_peak = (
            FitPlan(rows, needs, 1, threads=one).peak for one in (count, count + 1)
        )
        assert peak <= limit
        assert count == n_jobs or next_peak > limit
    assert count == n_jobs


@pytest.mark.parametrize(
    ("store", "n", "d", "memory_limit"),
    [
        ("memory", 10**5, 20, "8GiB"),
        ("scratch", 10**6, 300, "1GiB"),
        ("recompute", 10**7, 10, "1GiB"),
    ],
)
def test_plan_counts_kernel_columns_where_they_are(store, n, d, memory_limit):
    plan = plan_rows(n, d, memory_limit=memory_limit)
    columns = n * 200 * 4
    assert plan.store == store
    assert plan.sizes["cache"] == (columns if store == "memory" else 0)
    assert plan.sizes["scratch"] == (columns if store == "scratch" else 0)
    assert plan.to_dict()["peak"] == plan.peak
    assert store == min(plan.costs, key=plan.costs.get) or columns <= 2**30
    assert all(
        isinstance(value, (int, float, str, dict)) for value in plan.to_dict().values()
    )
    assert str(plan).splitlines() == plan.lines()
    assert plan.lines()[0] == f"rows             {n:,} x {d}, 200 basis vectors"


def test_reads_are_those_of_the_sample_of_each_sweep_that_recomputes_and_of_the_labels():
    few = {"larger_bytes": 0, "sweeps": 3, "likely_sweeps": 3}
    assert (
        plan_rows(10**6, 20, 300, 2, "2GiB", **few).seconds
        < plan_rows(10**6, 20, 300, 2, "2GiB").seconds
    )
    recomputed = plan_rows(10**6, 2, 300, 2, "460MiB", **few)
    assert recomputed.store == "recompute"
    assert recomputed.reads == 5  # the sample, three passes and the labels
    assert recomputed.bytes == 5 * 10**6 * 2 * 4
    plain, again = (
        plan_rows(10**6, 20, 100, memory_limit="1GiB", reads=reads) for reads in (2, 4)
    )
    assert again.reads == plain.reads + 2
    assert again.bytes > plain.bytes
    assert again.pass_seconds > plain.pass_seconds
    usual, sooner = (
        plan_rows(10**4, 20, 100, memory_limit="1GiB", likely_sweeps=n) for n in (20, 2)
    )
    assert sooner.seconds < usual.seconds
    assert sooner.to_dict()["sweeps"] == usual.to_dict()["sweeps"] == 300


@pytest.mark.parametrize(
    "asked", [{"n_clusters": 5}, {"min_cluster_size": 9}, {"kernel": "rbf"}]
)
def test_the_front_door_plans_the_reads_of_a_second_draw(asked):
    rows = RowShape(10**6, 20)
    assert mmcnb.MaximumMarginClustering().plan(rows).reads == 5
    assert mmcnb.MaximumMarginClustering(**asked).plan(rows).reads == 2
    assert mmcnb.MaximumMarginClustering().plan(RowShape(1000, 20)).reads == 2


@pytest.mark.parametrize("layout", ["array", "csr", "stored"])
def test_the_plan_of_rows_is_the_plan_of_their_shape(layout):
    X = np.eye(300, 20)
    samples = {
        "array": X,
        "csr": scipy.sparse.csr_array(X),
        "stored": FakeSamples(X, 100),
    }[layout]
    samples = open_samples(samples)
    shape = RowShape.of(samples, 2)
    assert (shape.n_samples, shape.n_features, shape.itemsize) == (300, 20, 8)
    assert shape.is_reopenable == (layout == "stored")
    model = mmcnb.CPMMC(memory_limit="1GiB", n_jobs=2)
    assert model.plan(samples) == model.plan(shape)


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ("512MiB", 512 * MIB),
        ("512 mib", 512 * MIB),
        ("1.5GiB", 3 * 2**29),
        ("1000000K", 1_000_000 * 1024),
        ("2G", 2**31),
        ("1 TiB", 2**40),
        ("1000000KB", 10**9),
        ("1.5 GB", 1_500_000_000),
        ("1000000000B", 10**9),
        ("1000000000", 10**9),
        (1e9, 10**9),
    ],
)
def test_a_limit_is_a_number_of_bytes_with_or_without_a_unit(limit, size):
    assert bytes_of(limit) == size


@pytest.mark.parametrize(
    "limit", ["", "much", "-1GiB", "0", "1.2.3MB", "MiB", "1XB", "nan", "inf", 0, -5]
)
def test_a_limit_that_is_no_number_of_bytes_is_refused_in_one_sentence(limit):
    sentence = r"^memory_limit=.* is not a number of bytes; write it like '512MiB'\.$"
    with pytest.raises(InputError, match=sentence):
        bytes_of(limit)


def test_the_plan_counts_compilation_unless_routines_are_compiled(monkeypatch):
    routines = {
        "size_multipliers": 5.0,
        "steepest_moves": 3.5,
        "sample_subproblem_parts": 6.5,
    }
    plans = []
    for cold in ((), ("steepest_moves", "sample_subproblem_parts")):
        # Internal: which routines the cache of this machine holds is decided by the
        # tests that ran before.
        monkeypatch.setattr(
            "mmcnb._numba.is_compiled",
            lambda routine, cold=cold: routine.__name__ not in cold,
        )
        plans.append(plan_rows(10**4, 20, routines=routines))
    warm, cold = plans
    assert (warm.compile_seconds, cold.compile_seconds) == (0, 10)
    assert warm.seconds + 10 == pytest.approx(cold.seconds)
    assert (
        cold.peak - warm.peak
        == cold.sizes["libraries"] - warm.sizes["libraries"]
        > 100 * MIB
    )


def test_the_seconds_of_a_plan_grow_with_the_rows_and_with_the_sample():
    plans = [
        plan_rows(n, 20, memory_limit="8GiB") for n in (500, 10**4, 10**5, 10**6, 10**7)
    ]
    assert [plan.seconds for plan in plans] == sorted({plan.seconds for plan in plans})
    assert all(plan.seconds >= plan.pass_seconds >= 0 for plan in plans)
    for estimator in (
        mmcnb.SparseKernelMMC,
        mmcnb.UnsupervisedRLS,
        mmcnb.CrammerSingerMMC,
    ):
        plans = [
            estimator(sample_size=size).plan(RowShape(10**5, 20))
            for size in (1000, 2000, 4000)
        ]
        searches = [plan.needs.search_seconds for plan in plans]
        assert searches == sorted(set(searches))
