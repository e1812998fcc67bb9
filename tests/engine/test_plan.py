import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmcnb.engine.memory import format_bytes, parse_bytes
from mmcnb.engine.plan import larger_sample, plan_fit
from mmcnb.errors import InputError, MemoryLimitError

MIB = 2**20
WORKS = [
    (10_000, 20, 200),
    (32_561, 123, 200),
    (10**6, 32, 200),
    (10**7, 32, 50),
    (266_079, 676, 200),
    (10**6, 30, 0),
]


def least_that_works(error):
    return re.search(r"the least that works is (\d+MiB)\.$", str(error.value)).group(1)


@pytest.mark.parametrize("sizes", WORKS)
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_error_names_the_least_limit_and_that_works(sizes, n_jobs):
    n, d, p = sizes
    with pytest.raises(MemoryLimitError) as error:
        plan_fit(n, d, n_landmarks=p, memory_limit="1MiB", n_jobs=n_jobs)
    least = least_that_works(error)
    plan = plan_fit(n, d, n_landmarks=p, memory_limit=least, n_jobs=n_jobs)
    assert plan.peak <= plan.memory_limit == parse_bytes(least)
    with pytest.raises(MemoryLimitError):
        plan_fit(n, d, n_landmarks=p, memory_limit=parse_bytes(least) - MIB, n_jobs=n_jobs)


@pytest.mark.parametrize("sizes", WORKS)
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_more_memory_never_plans_worse(sizes, n_jobs):
    n, d, p = sizes
    with pytest.raises(MemoryLimitError) as error:
        plan_fit(n, d, n_landmarks=p, memory_limit=1, n_jobs=n_jobs)
    limits = parse_bytes(least_that_works(error)) + np.r_[0, 2 ** np.arange(20, 35, 0.25)].astype(int)
    plans = [plan_fit(n, d, n_landmarks=p, memory_limit=int(limit), n_jobs=n_jobs) for limit in limits]
    assert all(plan.peak <= plan.memory_limit for plan in plans)
    assert all(plan.threads <= n_jobs for plan in plans)
    seconds = [plan.seconds for plan in plans]
    assert seconds == sorted(seconds, reverse=True)
    if p:
        assert plans[-1].store == "memory"


@pytest.mark.parametrize("store", ["memory", "scratch", "recompute"])
def test_plan_counts_kernel_columns_where_they_are(store):
    sizes = {
        "memory": {"n_samples": 10**5, "n_features": 20, "memory_limit": "8GiB"},
        "scratch": {"n_samples": 10**6, "n_features": 300, "memory_limit": "1GiB"},
        "recompute": {"n_samples": 10**7, "n_features": 10, "memory_limit": "1GiB"},
    }[store]
    plan = plan_fit(**sizes, n_landmarks=200, n_jobs=1)
    columns = sizes["n_samples"] * 200 * 4
    assert plan.store == store
    assert plan.cache == (columns if store == "memory" else 0)
    assert plan.scratch == (columns if store == "scratch" else 0)
    assert plan.as_dict()["peak"] == plan.peak
    assert store in plan.costs
    assert store == min(plan.costs, key=plan.costs.get) or columns <= 2**30
    assert all(isinstance(value, (int, float, str, dict)) for value in plan.as_dict().values())
    assert all("\n" not in line for line in plan.lines())


def test_a_fit_without_a_second_sample_and_of_few_sweeps_is_planned_as_such():
    sizes = {"n_samples": 10**6, "n_features": 20, "n_landmarks": 300, "n_jobs": 2, "memory_limit": "2GiB"}
    plan = plan_fit(**sizes)
    spare = plan_fit(**sizes, larger_rows=0, sweeps=3)
    assert plan.sample - spare.sample == 2 * larger_sample(10**6) * 300 * 4
    assert spare.sweeps == 3 < plan.sweeps
    recomputed = plan_fit(**sizes | {"memory_limit": "400MiB", "n_features": 2}, larger_rows=0, sweeps=3)
    assert recomputed.store == "recompute"
    assert recomputed.reads == 5  # the sample, three passes and the labels
    with pytest.raises(MemoryLimitError):
        plan_fit(**sizes | {"memory_limit": "400MiB"})


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
def test_format_bytes_is_read_back_to_three_digits(size):
    assert parse_bytes(format_bytes(size)) == pytest.approx(size, rel=0.006)
