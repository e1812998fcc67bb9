"""The runner of the campaigns: each way to fail is told with its seed, and the other tries go on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.campaigns import __main__ as command
from tests.campaigns import broken, runner
from tests.campaigns._faults import KINDS, error_of, failing

pytestmark = pytest.mark.slow


@pytest.mark.nightly
def test_every_try_has_its_row_and_failures_their_place_and_how_to_repeat_them(
    tmp_path,
):
    frame = runner.run(broken, range(6), jobs=2)
    assert frame["seed"].tolist() == list(range(6))
    assert frame["answer"].tolist()[:2] == ["same", "same"]
    assert frame["failure"].isna().tolist() == [True, True, False, False, False, False]
    assert frame["failure"][2].startswith(
        "AssertionError: the answer differs (broken.py:"
    )
    assert frame["failure"][3].startswith("KeyError: 'lost' (broken.py:")
    assert frame["failure"][4] == frame["failure"][5] == runner.ENDED
    assert not any(Path(folder).exists() for folder in frame["folder"].dropna())
    text = runner.summary("broken", frame)
    assert "6 tries" in text
    assert "4 failures" in text
    assert text.endswith("-m tests.campaigns broken --tries 1 --seed 2")
    assert "raise KeyError" in runner.summary("broken", frame[3:4], whole=True)
    runner.write(frame, tmp_path / "broken.csv")
    assert len(pd.read_csv(tmp_path / "broken.csv")) == 6


def test_no_try_begins_after_the_time_is_up_and_unknown_campaigns_are_refused(capsys):
    assert runner.run(broken, range(2), minutes=1e-9).empty
    assert command.main(["flip"]) == 2
    assert "choose one of flips, kills" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems guard memory otherwise"
)
@pytest.mark.parametrize(("at_end", "place"), [(True, 4), (False, -1)])
def test_a_read_beside_an_array_between_guards_ends_the_process(at_end, place):
    code = (
        "import ctypes, numpy; from tests.campaigns.routines import between_guards; "
        f"array = between_guards(numpy.arange(4.0), {at_end}); print(array.sum(), flush=True); "
        f"ctypes.c_double.from_address(array.ctypes.data + 8 * {place}).value"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "6.0\n")


def act(kind, folder):
    """Make some calls of a kind that may fail."""
    if kind == "calls":
        (folder / "new").mkdir()
        number = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
        try:
            os.write(number, b"1")
        finally:
            os.close(number)
    elif kind == "files":
        (folder / "a").write_text("one\ntwo\n", encoding="utf-8")
        with (folder / "a").open("r+b") as file:
            file.seek(0)
            assert file.read() == b"one\ntwo\n"
    else:
        assert np.concatenate([np.zeros(2), np.ones(1)]).sum() == 1


@pytest.mark.skipif(sys.platform != "linux", reason="files are known by /proc")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lasts", [False, True])
def test_each_of_the_calls_fails_once_or_from_then_on(kind, lasts, tmp_path):
    with failing(kind, tmp_path) as trap:
        act(kind, tmp_path)
    assert trap.calls > 2
    for at in range(1, trap.calls + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        error = error_of(kind, 0, folder)
        with failing(kind, folder, at, error, lasts), pytest.raises(type(error())):
            act(kind, folder)
    (tmp_path / "last").mkdir()
    act(kind, tmp_path / "last")  # nothing fails any more
