"""Engines run passes block by block: the same bits for any threads and chunks, and nothing left behind."""

import logging
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from mmcnb.engine.run import ThreadEngine, Traffic
from mmcnb.samples import BLOCK_ROWS, open_samples
from tests.engine.fakes import FakeSamples, OrderedSum, run


def numbers(n):
    # Sizes of all magnitudes: a sum in another order would have other bits.
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-8, 8, (n, 3))


def one_block_a_task(n_blocks):
    return FakeSamples(np.ones((n_blocks * BLOCK_ROWS, 1)), row_bytes=10**6)


def mmcnb_threads():
    return [
        thread for thread in threading.enumerate() if thread.name.startswith("mmcnb")
    ]


def blas_threads():
    return [
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]


@settings(max_examples=40)
@given(
    n=st.integers(1, 6 * BLOCK_ROWS) | st.sampled_from([BLOCK_ROWS, BLOCK_ROWS + 1]),
    chunk_rows=st.integers(1, 3 * BLOCK_ROWS),
    row_bytes=st.sampled_from([8, 1000, 10**6]),
    n_jobs=st.sampled_from([1, 2, 4]),
)
def test_same_bits_and_block_order_for_any_threads_and_chunks_and_each_row_read_once(
    n, chunk_rows, row_bytes, n_jobs
):
    samples = FakeSamples(numbers(n), chunk_rows, row_bytes)
    bounds = [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
    blocks, total = run(OrderedSum(), samples, n_jobs=n_jobs)
    assert blocks == bounds
    np.testing.assert_array_equal(samples.reads, 1)
    expected = sum(
        np.ones(stop - start) @ samples.X[start:stop] for start, stop in bounds
    )
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(
        run(OrderedSum(), open_samples(samples.X), n_jobs=n_jobs)[1], expected
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_few_tasks_are_in_flight(n_jobs):
    samples = one_block_a_task(40)
    ahead = []

    class Slow(OrderedSum):
        def combine(self, total, other):
            if len(other[0]) == 1:  # a block, and not a group
                # the threads have time to run ahead as far as they may
                time.sleep(0.002)
                ahead.append(
                    samples.reads.sum() // BLOCK_ROWS - other[0][0][0] // BLOCK_ROWS
                )
            return super().combine(total, other)

    run(Slow(), samples, n_jobs=n_jobs)
    # of three groups, whose totals begin with their first blocks
    assert len(ahead) == 37
    assert max(ahead) <= n_jobs + 2


@pytest.mark.parametrize(
    ("n_jobs", "where"), [(1, "block"), (2, "combine"), (4, "block")]
)
def test_an_exception_propagates_leaves_no_thread_nor_limit_and_the_engine_runs_again(
    n_jobs, where
):
    before = blas_threads()
    samples = one_block_a_task(30)

    class Failing(OrderedSum):
        def block(self, rows, start, stop):
            if where == "block" and start == 7 * BLOCK_ROWS:
                raise ArithmeticError("block 7")
            return super().block(rows, start, stop)

        def combine(self, total, other):
            if where == "combine" and other[0][0][0] == 7 * BLOCK_ROWS:
                raise ArithmeticError("block 7")
            return super().combine(total, other)

    with ThreadEngine(n_jobs) as engine:
        assert set(blas_threads()) <= {1}
        with pytest.raises(ArithmeticError, match="block 7"):
            engine.run(Failing(), samples)
        # the rest was not read for nothing
        assert samples.reads.sum() < samples.n_samples
        assert engine.run(OrderedSum(), samples)[1] == samples.n_samples
    assert mmcnb_threads() == []
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_items_that_run_passes_and_items_of_their_own_neither_wait_for_each_other_nor_differ(
    n_jobs,
):
    samples = one_block_a_task(6)
    totals = []
    expected = run(OrderedSum(), samples)[1]

    def session():
        with ThreadEngine(n_jobs) as engine:

            def item(scale):
                return [
                    scale * one
                    for one in engine.each(
                        lambda _: engine.run(OrderedSum(), samples)[1], range(2)
                    )
                ]

            totals.extend(engine.each(item, range(2 * n_jobs)))

    # one that hangs does not hold up the others
    thread = threading.Thread(target=session, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    np.testing.assert_array_equal(
        totals, [[scale * expected] * 2 for scale in range(2 * n_jobs)]
    )


def test_n_jobs_zero_is_refused():
    with pytest.raises(ValueError, match=r"n_jobs=0 means no threads"):
        ThreadEngine(0)


def test_each_pass_over_the_watched_rows_is_logged_with_its_bytes(caplog):
    watched = open_samples(numbers(9000))
    other = open_samples(numbers(100))
    with caplog.at_level(logging.INFO, "mmcnb"), ThreadEngine(n_jobs=1) as engine:
        engine.traffic = Traffic(watched)
        engine.run(OrderedSum(), other)
        assert caplog.messages == []
        engine.run(OrderedSum(), watched)
    (line,) = caplog.messages
    assert line.startswith("read 9,000 rows of ")
    assert "211 KiB" in line


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_inside_a_kernel_leaves_the_engine_as_an_interrupt(n_jobs):
    with pytest.raises(KeyboardInterrupt), ThreadEngine(n_jobs):
        raise SystemError(
            "a kernel returned a result with an exception set"
        ) from KeyboardInterrupt()
    with pytest.raises(SystemError, match="bad argument"), ThreadEngine(n_jobs):
        raise SystemError("bad argument to internal function")
