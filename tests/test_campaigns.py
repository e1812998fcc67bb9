"""The runner of the campaigns: each way to fail is told with its seed, and the other tries go on."""

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.campaigns import __main__ as command
from tests.campaigns import broken, routines, runner
from tests.campaigns._faults import KINDS, error_of, failing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def frame():
    return runner.run(broken, range(6), jobs=2)


@pytest.mark.slow
def test_every_try_has_its_row(frame):
    assert frame["seed"].tolist() == list(range(6))
    assert frame["failure"].isna().tolist() == [True, True, False, False, False, False]
    assert frame["answer"].tolist()[:2] == ["same", "same"]


def test_failures_are_sentences_with_their_place(frame):
    assert frame["failure"][2].startswith("AssertionError: the answer differs (broken.py:")
    assert frame["failure"][3].startswith("KeyError: 'lost' (broken.py:")
    assert frame["failure"][4] == frame["failure"][5] == runner.ENDED


def test_folders_of_the_tries_are_removed(frame):
    assert frame["folder"][0] != frame["folder"][1]
    assert not any(Path(folder).exists() for folder in frame["folder"].dropna())


def test_summary_counts_answers_and_tells_how_to_repeat_a_failure(frame):
    text = runner.summary("broken", frame)
    assert "6 tries" in text
    assert "4 failures" in text
    assert "answers: same 2" in text
    assert text.endswith("-m tests.campaigns broken --tries 1 --seed 2")


def test_traceback_is_shown_of_a_single_try(frame):
    assert "raise KeyError" in runner.summary("broken", frame[3:4], whole=True)


def test_no_try_begins_after_the_time_is_up():
    assert runner.run(broken, range(2), minutes=1e-9).empty


@pytest.mark.slow
def test_command_writes_the_frame_and_fails_with_the_tries(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "CAMPAIGNS", ("broken",))
    assert command.main(["broken", "--tries", "2", "--out", str(tmp_path / "out")]) == 0
    assert len(pd.read_csv(tmp_path / "out" / "broken.csv")) == 2
    assert "2 tries" in capsys.readouterr().out
    assert command.main(["all", "--tries", "1", "--seed", "2", "--out", str(tmp_path / "out")]) == 1


def test_table_sums_up_the_frames_of_a_folder(tmp_path, frame, monkeypatch, capsys):
    monkeypatch.setattr(command, "CAMPAIGNS", ("absent", "broken"))
    runner.write(frame, tmp_path / "broken.csv")
    assert command.main(["table", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("| `broken` | 6 | 4 |")
    assert lines[2].endswith("| same 2 |")


def test_unknown_campaign_is_refused_with_the_names(capsys):
    assert command.main(["flip"]) == 2
    assert "choose one of flips, kills" in capsys.readouterr().out


def test_page_on_reliability_names_every_campaign():
    page = Path("docs/reliability.md").read_text()
    assert [name for name in command.CAMPAIGNS if page.count(f"| `{name}` |") < 1] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems guard memory otherwise")
@pytest.mark.parametrize(("at_end", "place"), [(True, 3), (True, 4), (False, 0), (False, -1)])
def test_a_read_beside_an_array_between_guards_ends_the_process(at_end, place):
    code = (
        "import ctypes, numpy; from tests.campaigns.routines import between_guards; "
        f"array = between_guards(numpy.arange(4.0), {at_end}); "
        f"print(ctypes.c_double.from_address(array.ctypes.data + 8 * {place}).value)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if place in (0, 3):
        assert (done.returncode, done.stdout) == (0, f"{float(place)}\n")
    else:
        assert done.returncode == -signal.SIGSEGV


def test_an_argument_that_a_routine_overwrites_is_seen():
    def routine(values):
        values[0] = 9.0
        return 1.0

    routine.takes = {"values": None}
    with pytest.raises(AssertionError, match="an argument was overwritten"):
        routines.judged(routine, lambda given: routine(**given), {"values": np.zeros(3)})


def act(kind, folder):
    """Make some calls of a kind that may fail."""
    if kind == "calls":
        (folder / "new").mkdir()
        number = os.open(folder / "a", os.O_RDWR | os.O_CREAT)
        try:
            os.write(number, b"1")
            with mmap.mmap(number, 1):
                pass
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
