import logging
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from mmcnb.engine.run import ThreadEngine, Traffic
from mmcnb.samples import BLOCK_ROWS, CSRBlock, open_samples, slice_rows
from tests.engine.fakes import FakeSamples, OrderedSum, run


def numbers(n, d=3):
    # Sizes of all magnitudes: a sum in another order would have other bits.
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, d)) * 10.0 ** rng.integers(-8, 8, (n, d))


def naive_sum(X):
    total = 0.0
    for start in range(0, len(X), BLOCK_ROWS):
        rows = X[start : start + BLOCK_ROWS]
        total = total + np.ones(len(rows)) @ rows
    return total


def bounds(n):
    return [(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]


def one_block_a_task(n_blocks, d=1):
    return FakeSamples(np.ones((n_blocks * BLOCK_ROWS, d)), row_bytes=10**6)


def mmcnb_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("mmcnb")]


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("n", [1, BLOCK_ROWS, BLOCK_ROWS + 1, 10 * BLOCK_ROWS - 5])
@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_same_bits_and_block_order_for_any_number_of_threads(n, n_jobs):
    X = numbers(n)
    blocks, total = run(OrderedSum(), open_samples(X), n_jobs=n_jobs)
    assert blocks == bounds(n)
    np.testing.assert_array_equal(total, naive_sum(X))


@given(
    n=st.integers(1, 6 * BLOCK_ROWS),
    chunk_rows=st.integers(1, 3 * BLOCK_ROWS),
    row_bytes=st.sampled_from([8, 1000, 10**6]),
    n_jobs=st.sampled_from([1, 2, 4]),
)
def test_same_bits_for_any_chunks_and_each_row_read_once(n, chunk_rows, row_bytes, n_jobs):
    samples = FakeSamples(numbers(n), chunk_rows, row_bytes)
    blocks, total = run(OrderedSum(), samples, n_jobs=n_jobs)
    assert blocks == bounds(n)
    np.testing.assert_array_equal(total, naive_sum(samples.X))
    np.testing.assert_array_equal(samples.reads, 1)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_few_tasks_are_in_flight(n_jobs):
    samples = one_block_a_task(40)
    ahead = []

    class Slow(OrderedSum):
        def combine(self, total, other):
            if len(other[0]) == 1:  # a block, and not a group
                time.sleep(0.002)  # the threads have time to run ahead as far as they may
                ahead.append(samples.reads.sum() // BLOCK_ROWS - other[0][0][0] // BLOCK_ROWS)
            return super().combine(total, other)

    run(Slow(), samples, n_jobs=n_jobs)
    assert len(ahead) == 37  # of three groups, whose totals begin with their first blocks
    assert max(ahead) <= n_jobs + 2


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("where", ["block", "combine"])
def test_exception_propagates_and_leaves_no_thread_nor_limit(n_jobs, where):
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

    with pytest.raises(ArithmeticError, match="block 7"):
        run(Failing(), samples, n_jobs=n_jobs)
    assert mmcnb_threads() == []
    assert blas_threads() == before
    assert samples.reads.sum() < samples.n_samples  # the rest was not read for nothing


def test_blas_is_single_threaded_inside_and_restored_after():
    before = blas_threads()
    with ThreadEngine(2):
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_engine_runs_again_after_an_exception():
    class Failing(OrderedSum):
        def block(self, rows, start, stop):
            raise ArithmeticError

    samples = one_block_a_task(5)
    with ThreadEngine(2) as engine:
        with pytest.raises(ArithmeticError):
            engine.run(Failing(), samples)
        assert engine.run(OrderedSum(), samples)[1] == samples.n_samples


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_items_that_run_passes_and_items_of_their_own_neither_wait_for_each_other_nor_differ(n_jobs):
    samples = one_block_a_task(6)
    expected = run(OrderedSum(), samples)[1]
    found = []

    def session():
        with ThreadEngine(n_jobs) as engine:

            def item(scale):
                totals = engine.each(lambda _: engine.run(OrderedSum(), samples)[1], range(2))
                return [scale * total for total in totals]

            found.extend(engine.each(item, range(2 * n_jobs)))

    thread = threading.Thread(target=session, daemon=True)  # one that hangs does not hold up the others
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    np.testing.assert_array_equal(found, [[scale * expected] * 2 for scale in range(2 * n_jobs)])


def test_n_jobs_zero_is_refused():
    with pytest.raises(ValueError, match=r"n_jobs=0 asks for no thread"):
        ThreadEngine(0)


def test_slice_rows_of_csr_is_the_slice_of_the_dense_rows():
    rng = np.random.default_rng(0)
    X = rng.random((9, 4)) * (rng.random((9, 4)) < 0.5)
    samples = open_samples(scipy.sparse.csr_array(X))
    block = slice_rows(samples.block(0, 9), 2, 7)
    assert isinstance(block, CSRBlock)
    assert block.indptr[0] == 0
    dense = np.zeros((5, 4))
    for row in range(5):
        held = slice(block.indptr[row], block.indptr[row + 1])
        dense[row, block.indices[held]] = block.data[held]
    np.testing.assert_array_equal(dense, X[2:7])


def test_each_pass_over_the_watched_rows_is_logged_with_its_bytes(caplog):
    watched, other = open_samples(numbers(9000)), open_samples(numbers(100))
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
        raise SystemError("a kernel returned a result with an exception set") from KeyboardInterrupt()
    with pytest.raises(SystemError, match="bad argument"), ThreadEngine(n_jobs):
        raise SystemError("bad argument to internal function")
