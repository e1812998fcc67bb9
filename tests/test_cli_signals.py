"""A signal ends a command once and in order; what ends already, or is done, is not disturbed."""

import contextlib
import itertools
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mmcnb import cli
from mmcnb.cli import _signals
from mmcnb.cli._signals import StopSignals
from mmcnb.stores import convert

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def signals_as_on_a_terminal():
    """A shell has its commands in the background ignore SIGINT."""
    before = [signal.signal(number, signal.default_int_handler) for number in SIGNALS]
    yield
    for number, old in zip(SIGNALS, before, strict=True):
        signal.signal(number, old)


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_signal_interrupts_and_one_of_the_same_press_does_not(first, second, monkeypatch):
    before = [signal.getsignal(number) for number in SIGNALS]
    with StopSignals(for_good=False):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(first)
        signal.raise_signal(second)
        later = time.monotonic() + _signals.SAME_PRESS_SECONDS
        monkeypatch.setattr(_signals.time, "monotonic", lambda: later)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_done_is_not_interrupted(number):
    with StopSignals(for_good=False) as signals:
        signals.done()
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_so(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignals(for_good=False):
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_is_stopped_from_its_first_moment_to_the_last_of_its_work(number, monkeypatch, capsys):
    monkeypatch.setattr(cli, "build_parser", lambda: signal.raise_signal(number))
    assert cli.main(["info", "rows.zarr"]) == 130
    assert capsys.readouterr().err == "mmcnb: stopped by the user; nothing half-written was left behind.\n"
    monkeypatch.undo()
    monkeypatch.setattr(cli.doctor, "run", lambda arguments: {})
    monkeypatch.setattr(cli.doctor, "lines", lambda report: [signal.raise_signal(number) or "the report"])
    assert cli.main(["doctor"]) == 0
    assert capsys.readouterr().out == "the report\n"


INTERRUPTED = """
import asyncio, sys, threading
from mmcnb import cli

async def write():
    await asyncio.sleep(9)

class HalfMade:
    def __del__(self):
        raise AttributeError("what was never made")

def run(arguments):
    half_made = HalfMade()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(write(), loop)
    not_begun = write()
    raise KeyboardInterrupt

cli.doctor.run, sys.argv = run, ["mmcnb", "doctor"]
sys.exit(cli.main())
"""


def test_what_was_being_done_adds_nothing_to_the_sentence():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "mmcnb: stopped by the user; nothing half-written was left behind.\n"


CLEARING = """
import sys, time
from mmcnb import cli

def run(arguments):
    try:
        print("working", flush=True)
        time.sleep(60)
    finally:
        print("clearing", flush=True)
        {clearing}

cli.doctor.run, sys.argv = run, ["mmcnb", "doctor"]
sys.exit(cli.main())
"""
SLOW = {
    "Python": "time.sleep(60)",
    "compiled": "__import__('hashlib').pbkdf2_hmac('sha256', b'', b'', 10**9)",
}


@pytest.mark.parametrize("clearing", SLOW)
@pytest.mark.parametrize("second", SIGNALS)
def test_a_later_signal_ends_what_is_slow_to_clear_away_at_once(clearing, second):
    words = [sys.executable, "-c", CLEARING.format(clearing=SLOW[clearing])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "clearing\n"
        for _ in range(20):  # as often as a busy machine is late to hear the first
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_signals.SAME_PRESS_SECONDS)
            process.send_signal(second)
        process.kill()
        said = process.communicate()[1]
    assert (process.returncode, said) == (130, _signals.AT_ONCE.decode())


IMPORTING = """
import sys
from mmcnb.__main__ import run

class Slow:
    def find_spec(self, name, *given):
        if name == "mmcnb.cli":
            print("importing", flush=True)
            __import__("time").sleep(60)

sys.meta_path.insert(0, Slow())
sys.exit(run())
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_that_is_still_imported_ends_in_one_line(number):
    words = [sys.executable, "-c", IMPORTING]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        said = process.communicate()[1]
    assert said == "mmcnb: stopped by the user; nothing half-written was left behind.\n"
    assert process.returncode == 130


BEGUN = """
import sys
from mmcnb import __main__ as command

print("begun", flush=True)
sys.exit(command.run())
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["maximum-margin-clustering", "evolutionary-mmc"])
def test_a_fit_is_stopped_at_any_moment_in_one_line_and_the_old_model_stands(method, tmp_path):
    X = np.random.default_rng(0).normal(size=(60_000, 20)) + 6 * (np.arange(60_000) % 2)[:, None]
    convert(X, tmp_path / "rows.zarr", progress=False)
    (tmp_path / "old.model").write_text("old")
    words = ["fit", tmp_path / "rows.zarr", "--model", tmp_path / "old.model", "--overwrite"]
    words = [sys.executable, "-c", BEGUN, *words, "--method", method]
    for number, seconds in itertools.product(SIGNALS, (0.01, 2.0)):
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "begun\n"
            time.sleep(seconds)
            process.send_signal(number)
            said = process.communicate()[1]
        if process.returncode != 0:  # otherwise it was done
            assert process.returncode == 130
            assert said == "mmcnb: stopped by the user; nothing half-written was left behind.\n"
            assert (tmp_path / "old.model").read_text() == "old"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["old.model", "rows.zarr"]
        (tmp_path / "old.model").write_text("old")
