import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import mmcnb
from mmcnb._config import format_bytes, parse_bytes
from mmcnb.engine.plan import FitNeeds, FitPlan, RowShape, plan_fit, threads_of_pass
from mmcnb.errors import InputError, MemoryLimitError
from mmcnb.estimators.maximum_margin_clustering import MOST_MARGIN_CLUSTERS
from mmcnb.hinge.needs import hinge_needs, larger_sample, most_sweeps
from mmcnb.samples import open_samples
from mmcnb.samples.matrix import FREED_BYTES
from tests.engine.fakes import FakeSamples

MIB = 2**20
WORKS = [
    (10_000, 20, 200),
    (32_561, 123, 200),
    (10**6, 32, 200),
    (10**7, 32, 50),
    (266_079, 676, 200),
    (10**6, 30, 0),
]


def plan_rows(n, d, p=200, memory_limit=None, n_jobs=1, **needs):
    """The plan of a hinge method for rows of a store that nobody has written."""
    rows = RowShape(n, d)
    return plan_fit(rows, replace(hinge_needs(rows, p, 2000), **needs), memory_limit, n_jobs)


def least_that_works(error):
    return re.search(r"the least that works is ([\d.]+ [MG]iB)\.$", str(error.value)).group(1)


@pytest.mark.parametrize("sizes", WORKS)
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_error_names_the_least_limit_and_that_works(sizes, n_jobs):
    with pytest.raises(MemoryLimitError) as error:
        plan_rows(*sizes, memory_limit="1MiB", n_jobs=n_jobs)
    least = least_that_works(error)
    plan = plan_rows(*sizes, memory_limit=least, n_jobs=n_jobs)
    assert plan.peak <= plan.memory_limit == parse_bytes(least)
    with pytest.raises(MemoryLimitError):
        plan_rows(*sizes, memory_limit=parse_bytes(least) - MIB, n_jobs=n_jobs)


@given(st.integers(1, 64), st.integers(0, 2**27), st.integers(0, 4000))
def test_a_pass_has_as_many_threads_as_the_limit_leaves_room_for(n_jobs, chunk_bytes, n_columns):
    rows, needs = RowShape(10**7, 250, chunk_bytes=float(chunk_bytes)), FitNeeds(n_columns)
    with pytest.raises(MemoryLimitError) as error:
        threads_of_pass(rows, needs, 1, n_jobs)
    least = parse_bytes(least_that_works(error))
    for limit in (least, least + 2**29, least + 2**33, least + 2**37):
        count = threads_of_pass(rows, needs, limit, n_jobs)
        peak, next_peak = (FitPlan(rows, needs, 1, threads=one).peak for one in (count, count + 1))
        assert peak <= limit
        assert count == n_jobs or next_peak > limit
    assert count == n_jobs


@pytest.mark.parametrize("sizes", WORKS)
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_more_memory_never_plans_worse(sizes, n_jobs):
    with pytest.raises(MemoryLimitError) as error:
        plan_rows(*sizes, memory_limit=1, n_jobs=n_jobs)
    limits = parse_bytes(least_that_works(error)) + np.r_[0, 2 ** np.arange(20, 35, 0.25)].astype(int)
    plans = [plan_rows(*sizes, memory_limit=int(limit), n_jobs=n_jobs) for limit in limits]
    assert all(plan.peak <= plan.memory_limit for plan in plans)
    assert all(plan.threads <= n_jobs for plan in plans)
    seconds = [plan.seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    if sizes[2]:
        assert plans[-1].store == "memory"


@pytest.mark.parametrize(
    ("store", "n", "d", "memory_limit"),
    [
        ("memory", 10**5, 20, "8GiB"),
        ("scratch", 10**6, 300, "1GiB"),
        ("recompute", 10**7, 10, "1GiB"),
    ],
)
def test_plan_counts_kernel_columns_where_they_are(store, n, d, memory_limit):
    plan = plan_rows(n, d, 200, memory_limit)
    columns = n * 200 * 4
    assert plan.store == store
    assert plan.sizes["cache"] == (columns if store == "memory" else 0)
    assert plan.sizes["scratch"] == (columns if store == "scratch" else 0)
    assert plan.to_dict()["peak"] == plan.peak
    assert store in plan.costs
    assert store == min(plan.costs, key=plan.costs.get) or columns <= 2**30
    assert all(isinstance(value, (int, float, str, dict)) for value in plan.to_dict().values())
    assert all("\n" not in line for line in plan.lines())


def test_a_fit_without_a_second_sample_and_of_few_sweeps_is_planned_as_such():
    plan = plan_rows(10**6, 20, 300, "2GiB", 2)
    assert plan.sizes["larger"] == larger_sample(10**6) * 300 * 4 + FREED_BYTES
    few = {"larger_bytes": 0, "sweeps": 3, "likely_sweeps": 3}
    assert plan_rows(10**6, 20, 300, "2GiB", 2, **few).seconds < plan.seconds
    recomputed = plan_rows(10**6, 2, 300, "460MiB", 2, **few)
    assert recomputed.store == "recompute"
    assert recomputed.reads == 5  # the sample, three passes and the labels
    assert recomputed.bytes == 5 * 10**6 * 2 * 4
    with pytest.raises(MemoryLimitError):
        plan_rows(10**6, 20, 300, "400MiB", 2)


def test_kernel_columns_of_all_candidates_are_work_that_ends_before_the_sweeps():
    rows = RowShape(10**4, 20)
    usual, one = (
        plan_fit(rows, hinge_needs(rows, 100, 2000, candidates=candidates)) for candidates in (7, 1)
    )
    assert usual.sizes["sample"] == one.sizes["sample"]
    assert usual.sizes["work"] - one.sizes["work"] == 6 * 2000 * 3 * 100 * 4
    held = usual.needs.sample_bytes
    less, more = (plan_rows(10**4, 20, 100, sample_bytes=held + size) for size in (0, 5_000_000))
    assert more.peak - less.peak == more.sizes["sample"] - less.sizes["sample"] == 5_000_000
    much = plan_rows(10**4, 20, 100, "1GiB", work_bytes=200_000_000)
    assert much.peak == much.sizes["libraries"] + much.sizes["sample"] + 200_000_000
    with pytest.raises(MemoryLimitError) as error:
        plan_rows(10**4, 20, 100, "448MiB", work_bytes=200_000_000)
    assert parse_bytes(least_that_works(error)) - much.peak < MIB


def test_more_reads_take_time():
    plain, again = (plan_rows(10**6, 20, 100, "1GiB", reads=reads) for reads in (2, 4))
    assert again.reads == plain.reads + 2
    assert again.bytes > plain.bytes
    assert again.pass_seconds > plain.pass_seconds


@pytest.mark.parametrize("asked", [{"n_clusters": 5}, {"min_cluster_size": 9}, {"kernel": "rbf"}])
def test_the_front_door_plans_the_reads_of_a_second_draw(asked):
    rows = RowShape(10**6, 20)
    assert mmcnb.MaximumMarginClustering().plan(rows).reads == 4
    assert mmcnb.MaximumMarginClustering(**asked).plan(rows).reads == 2
    assert mmcnb.MaximumMarginClustering().plan(RowShape(1000, 20)).reads == 2


def test_stores_are_compared_by_the_likely_sweeps():
    usual, sooner = (plan_rows(10**4, 20, 100, "1GiB", likely_sweeps=likely) for likely in (20, 2))
    assert sooner.seconds < usual.seconds
    assert sooner.to_dict()["sweeps"] == usual.to_dict()["sweeps"] == 300


@pytest.mark.parametrize("layout", ["array", "csr", "stored"])
def test_the_plan_of_rows_is_the_plan_of_their_shape(layout):
    X = np.eye(300, 20)
    samples = {"array": X, "csr": scipy.sparse.csr_array(X), "stored": FakeSamples(X, 100)}[layout]
    samples = open_samples(samples)
    shape = RowShape.of(samples, 2)
    assert (shape.n_samples, shape.n_features, shape.itemsize) == (300, 20, 8)
    assert shape.is_reopenable == (layout == "stored")
    model = mmcnb.CPMMC(memory_limit="1GiB", n_jobs=2)
    assert model.plan(samples) == model.plan(shape)


def test_the_size_of_the_work_decides_on_sweeps_and_on_a_second_sample():
    assert [most_sweeps(n, 800) for n in (10**6, 10**7)] == [300, 5]
    assert [larger_sample(n) for n in (10**5, 10**6)] == [0, 65536]


def test_a_plan_prints_its_lines():
    plan = plan_rows(10**6, 30, 200, "1GiB", 2)
    assert str(plan).splitlines() == plan.lines()
    assert plan.lines()[0] == "rows             1,000,000 x 30, 200 basis vectors"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MiB", 512 * MIB),
        ("512 mib", 512 * MIB),
        ("1.5GiB", 3 * 2**29),
        ("1KiB", 1024),
        ("1K", 1024),
        ("2G", 2**31),
        ("1 TiB", 2**40),
        ("1KB", 1000),
        ("1.5 GB", 1_500_000_000),
        ("100B", 100),
        ("100", 100),
        (4096, 4096),
        (1e9, 10**9),
    ],
)
def test_parse_bytes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GiB", "0", "1.2.3MB", "MiB", "1XB", "nan", "inf", 0, -5])
def test_parse_bytes_refuses_in_one_sentence(text):
    with pytest.raises(
        InputError, match=r"^memory_limit=.* is not a number of bytes; write it like '512MiB'\.$"
    ):
        parse_bytes(text)


@given(st.integers(1, 2**50))
def test_the_least_that_suffices_is_rounded_up(size):
    assert size <= parse_bytes(format_bytes(size, up=True)) < size + MIB


@given(st.integers(1, 2**50))
def test_format_bytes_is_read_back_to_three_digits(size):
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.006)


def test_more_landmarks_than_memory_are_refused_with_a_number_that_works():
    rows = RowShape(1_000_000, 50)
    many = {"n_landmarks": 100_000, "sample_size": 100_000, "memory_limit": "1GiB"}
    with pytest.raises(MemoryLimitError) as error:
        mmcnb.SparseKernelMMC(**many).plan(rows)
    least = least_that_works(error)
    assert mmcnb.SparseKernelMMC(**many | {"memory_limit": least}).plan(rows).peak <= parse_bytes(least)


def test_the_plan_counts_compilation_unless_routines_are_compiled(monkeypatch):
    routines = {"size_multipliers": 5.0, "steepest_moves": 3.5, "sample_subproblem": 6.5}
    plans = []
    for cold in ((), ("steepest_moves", "sample_subproblem")):
        monkeypatch.setattr(
            "mmcnb._numba.is_compiled", lambda routine, cold=cold: routine.__name__ not in cold
        )
        plans.append(plan_rows(10**4, 20, routines=routines))
    warm, cold = plans
    assert (warm.compile_seconds, cold.compile_seconds) == (0, 10)
    assert warm.seconds + 10 == pytest.approx(cold.seconds)
    assert cold.peak - warm.peak == cold.sizes["libraries"] - warm.sizes["libraries"] > 100 * MIB


def test_the_seconds_of_a_plan_grow_with_the_work():
    plans = [plan_rows(n, 20, memory_limit="8GiB") for n in (500, 10**4, 10**5, 10**6, 10**7)]
    assert [plan.seconds for plan in plans] == sorted({plan.seconds for plan in plans})
    assert all(plan.seconds >= plan.pass_seconds >= 0 for plan in plans)


@pytest.mark.parametrize("name", ["SparseKernelMMC", "UnsupervisedRLS", "CrammerSingerMMC"])
def test_a_larger_sample_takes_longer_to_search(name):
    shape = RowShape(10**5, 20)
    plans = [getattr(mmcnb, name)(sample_size=size).plan(shape) for size in (1000, 2000, 4000)]
    searches = [plan.needs.search_seconds for plan in plans]
    assert searches == sorted(set(searches))


def test_the_search_for_the_widest_margin_is_counted_for_few_clusters_alone():
    def search(n_clusters, kernel):
        plan = mmcnb.MaximumMarginClustering(n_clusters, kernel=kernel).plan(RowShape(10**5, 20))
        return plan.needs.search_seconds

    for k in (2, MOST_MARGIN_CLUSTERS):
        assert search(k, "auto") == search(k, "rbf") > search(k, "graph")
    assert search(MOST_MARGIN_CLUSTERS + 1, "auto") == search(MOST_MARGIN_CLUSTERS + 1, "graph")
