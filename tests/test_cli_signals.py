"""A signal ends a command once and in order; what ends already, or is done, is not disturbed."""

import signal
import subprocess
import sys

import pytest

from mmcnb import cli
from mmcnb.cli import _signals
from mmcnb.cli._signals import StopSignals

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
def test_the_first_signal_interrupts_and_the_next_waits_until_all_is_cleared_away(first, second, monkeypatch):
    before = [signal.getsignal(number) for number in SIGNALS]
    with StopSignals(for_good=False):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(first)
        signal.raise_signal(second)
        monkeypatch.setattr(_signals.time, "monotonic", lambda: float("inf"))  # the patience is at its end
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
