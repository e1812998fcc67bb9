"""Settings of the process: who may change them, for how long, and what comes before them."""

import threading

import pytest

import mmcnb
from mmcnb._config import configured, n_threads, parse_bytes, resolve_memory_limit
from mmcnb.engine.plan import FitNeeds, RowShape, plan_fit
from mmcnb.engine.run import ThreadEngine
from mmcnb.engine.session import open_engine
from mmcnb.errors import InputError

CORES = n_threads(-1)
NAMES = ("engine", "memory_limit", "n_jobs")


def settings():
    return {name: configured(name, None) for name in NAMES}


@pytest.fixture(autouse=True)
def untouched():
    before = settings()
    yield
    assert settings() == before == dict.fromkeys(NAMES)


def test_only_what_is_passed_changes_and_all_is_restored():
    with mmcnb.config(engine="tcp://127.0.0.1:9", memory_limit="1GiB"):
        with mmcnb.config(n_jobs=3):
            assert settings() == {"engine": "tcp://127.0.0.1:9", "memory_limit": "1GiB", "n_jobs": 3}
            with mmcnb.config(engine=None, n_jobs=None):
                assert settings() == {"engine": None, "memory_limit": "1GiB", "n_jobs": None}
            assert settings() == {"engine": "tcp://127.0.0.1:9", "memory_limit": "1GiB", "n_jobs": 3}
        assert settings()["n_jobs"] is None
    with mmcnb.config():
        assert settings() == dict.fromkeys(NAMES)


def test_an_error_in_the_block_restores_too():
    with pytest.raises(ArithmeticError), mmcnb.config(n_jobs=1):
        raise ArithmeticError
    assert settings()["n_jobs"] is None


def test_without_a_block_the_setting_stays():
    mmcnb.config(n_jobs=1)
    assert n_threads(None) == 1
    mmcnb.config(n_jobs=None)
    assert n_threads(None) == CORES


def test_a_setting_holds_in_all_threads():
    found = []
    with mmcnb.config(n_jobs=3, memory_limit="1GiB"):
        thread = threading.Thread(target=lambda: found.append((n_threads(None), resolve_memory_limit(None))))
        thread.start()
        thread.join()
    assert found == [(3, 2**30)]


def test_a_parameter_comes_before_the_setting():
    with mmcnb.config(n_jobs=3, memory_limit="1GiB"):
        assert [n_threads(n_jobs) for n_jobs in (None, 1, -1)] == [3, 1, CORES]
        assert [resolve_memory_limit(size) for size in (None, "2GiB")] == [2**30, 2**31]
        plan = plan_fit(RowShape(1000, 3), FitNeeds())
        own = plan_fit(RowShape(1000, 3), FitNeeds(), memory_limit="2GiB", n_jobs=2)
        assert (plan.memory_limit, plan.threads) == (2**30, 3)
        assert (own.memory_limit, own.threads) == (2**31, 2)
        with open_engine() as engine, open_engine(n_jobs=2) as two:
            assert (engine.threads, two.threads) == (3, 2)
    with mmcnb.config(engine="tcp://127.0.0.1:9"), mmcnb.config(engine=None), open_engine() as engine:
        assert isinstance(engine, ThreadEngine)


def test_fits_use_the_settings():
    with (
        mmcnb.config(memory_limit="1MiB"),
        pytest.raises(InputError, match=r"memory_limit=1 MiB is too small"),
    ):
        mmcnb.CPMMC(random_state=0).fit([[0.0], [1.0]])
    with mmcnb.config(memory_limit="1MiB"):
        mmcnb.CPMMC(random_state=0, memory_limit="1GiB").fit([[0.0], [1.0]])


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            {"memory_limit": "much"},
            r"^memory_limit='much' is not a number of bytes; write it like '512MiB'\.$",
        ),
        ({"n_jobs": 0}, r"^n_jobs=0 asks for no thread; give a positive number, or -1 for all cores\.$"),
        ({"n_jobs": 1.5}, r"^n_jobs=1\.5 is not a whole number; give a positive one, or -1 for all cores\.$"),
        ({"engine": "host"}, r"^engine='host' is no address of a Dask scheduler; write it like [^\n]*\.$"),
        ({"engine": 3}, r"^engine=3 is no engine; give a dask\.distributed\.Client, [^\n]*\.$"),
    ],
)
def test_a_bad_setting_is_refused_at_the_call_and_changes_nothing(setting, sentence):
    with pytest.raises(InputError, match=sentence):
        mmcnb.config(**{"n_jobs": 2} | setting)


@pytest.mark.parametrize("size", [1, "300MiB"])
def test_the_limit_is_a_number_of_bytes(size):
    with mmcnb.config(memory_limit=size):
        assert resolve_memory_limit(None) == parse_bytes(size)
