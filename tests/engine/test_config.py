"""Settings of the process: who may change them, for how long, and what comes before them."""

import os
import threading

import pytest

import mmcnb
from mmcnb.engine.plan import FitNeeds, RowShape, plan_fit
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import open_engine
from mmcnb.errors import InputError

CORES = (
    os.process_cpu_count()
    if hasattr(os, "process_cpu_count")
    else len(os.sched_getaffinity(0))
)


def planned(**parameters):
    """Threads and memory limit of a fit that sets no more than these."""
    plan = plan_fit(RowShape(1000, 3), FitNeeds(), **parameters)
    return plan.threads, plan.memory_limit


@pytest.fixture(autouse=True)
def untouched():
    """Each test leaves the settings as they were."""
    yield
    assert planned(memory_limit="2GiB") == (CORES, 2**31)


def test_only_what_is_passed_changes_and_all_is_restored():
    with mmcnb.config(engine="tcp://127.0.0.1:9", memory_limit="1GiB"):
        with mmcnb.config(n_jobs=3):
            assert planned() == (3, 2**30)
            with mmcnb.config(engine=None, n_jobs=None), open_engine() as engine:
                assert isinstance(engine, ThreadEngine)
                assert planned() == (CORES, 2**30)
            assert planned() == (3, 2**30)
        assert planned() == (CORES, 2**30)
    with pytest.raises(ArithmeticError), mmcnb.config(n_jobs=1):
        raise ArithmeticError


def test_without_a_block_the_setting_stays():
    mmcnb.config(n_jobs=1)
    assert planned()[0] == 1
    mmcnb.config(n_jobs=None)


def test_a_setting_holds_in_all_threads():
    plans = []
    with mmcnb.config(n_jobs=3, memory_limit="1GiB"):
        thread = threading.Thread(target=lambda: plans.append(planned()))
        thread.start()
        thread.join()
    assert plans == [(3, 2**30)]


def test_a_parameter_comes_before_the_setting():
    with mmcnb.config(n_jobs=3, memory_limit="1GiB"):
        assert planned(memory_limit="2GiB", n_jobs=2) == (2, 2**31)
        assert planned(n_jobs=-1) == (CORES, 2**30)
        with open_engine() as engine, open_engine(n_jobs=2) as two:
            assert (engine.threads, two.threads) == (3, 2)
    with mmcnb.config(memory_limit="1MiB"):
        with pytest.raises(InputError, match=r"memory_limit=1 MiB is too small"):
            mmcnb.CPMMC(random_state=0).fit([[0.0], [1.0]])
        mmcnb.CPMMC(random_state=0, memory_limit="1GiB").fit([[0.0], [1.0]])


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            {"memory_limit": "much"},
            r"='much' is not a number of bytes; write it like '512MiB'\.$",
        ),
        (
            {"n_jobs": 0},
            r"=0 means no threads; give a positive number, or -1 for all cores\.$",
        ),
        (
            {"n_jobs": 1.5},
            r"=1\.5 is not a whole number; give a positive one, or -1 for all cores\.$",
        ),
        (
            {"engine": "host"},
            r"='host' is not the address of a Dask scheduler; write it like [^\n]*\.$",
        ),
        (
            {"engine": 3},
            r"=3 is not an engine; give a dask\.distributed\.Client, [^\n]*\.$",
        ),
    ],
)
def test_a_bad_setting_is_refused_at_the_call_and_changes_nothing(setting, sentence):
    with pytest.raises(InputError, match=rf"^{next(iter(setting))}{sentence}"):
        mmcnb.config(**{"n_jobs": 2} | setting)
