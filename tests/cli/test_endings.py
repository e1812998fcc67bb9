"""Signals, full disks and closed streams end a command in order: one line, a code, and whole outputs."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

import mmcnb
from mmcnb.cli import info, main
from mmcnb.errors import InputError, plain
from tests.cli.conftest import contents

SIGNALS = [signal.SIGINT, signal.SIGTERM]
STOPPED = "mmcnb: stopped by the user; nothing half-written was left behind.\n"
ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
posix = pytest.mark.skipif(
    os.name != "posix", reason="streams and limits as POSIX has them"
)


@pytest.fixture(autouse=True)
def signals_as_on_a_terminal():
    """A shell has its commands in the background ignore SIGINT."""
    before = [signal.signal(number, signal.default_int_handler) for number in SIGNALS]
    yield
    for number, old in zip(SIGNALS, before, strict=True):
        signal.signal(number, old)


@pytest.mark.parametrize(("first", "second"), [SIGNALS, SIGNALS[::-1]])
def test_a_signal_stops_a_fit_once_and_a_later_one_again(
    first, second, folder, at_each_read, capsys
):
    before = contents(folder)
    moments = []

    def press_keys():
        try:
            signal.raise_signal(first)
        except KeyboardInterrupt:
            moments.append("stopped")
        signal.raise_signal(second)
        moments.append("of the same press")
        time.sleep(0.5)
        signal.raise_signal(second)
        moments.append("later")

    at_each_read(press_keys)
    assert (
        main(
            [
                "fit",
                "blobs.zarr",
                "--model",
                "customers.model",
                "--labels",
                "blobs-labels.csv",
                "--overwrite",
            ]
        )
        == 130
    )
    assert moments == ["stopped", "of the same press"]
    assert capsys.readouterr().err == STOPPED
    assert contents(folder) == before
    assert [signal.getsignal(number) for number in SIGNALS] == [
        signal.default_int_handler
    ] * 2


@pytest.mark.parametrize(
    "command", ["fit customers.csv --model m", "update customers.model new.csv"]
)
@pytest.mark.parametrize("last", [1, 2])
def test_a_command_that_is_stopped_can_be_given_again(
    command, last, folder, at_each_read, printed
):
    reads = []

    def stop_at_the_last():
        reads.append("all rows")
        if len(reads) == last:
            raise KeyboardInterrupt

    at_each_read(stop_at_the_last)
    before = contents(folder)
    command += " --labels l.csv"
    assert main(command.split()) == 130
    assert contents(folder) == before
    printed(command)
    assert len(pd.read_csv("l.csv")) == len(
        pd.read_csv(command.split()[2 if "update" in command else 1])
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_also_if_an_import_turns_it_into_another_error(
    number, folder, at_each_read, capsys
):
    def interrupt_an_import():
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error

    at_each_read(interrupt_an_import)
    assert main(["fit", "blobs.zarr", "--model", "m"]) == 130
    assert capsys.readouterr().err == STOPPED


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_so(number, folder, at_each_read, printed):
    signal.signal(number, signal.SIG_IGN)
    at_each_read(lambda: signal.raise_signal(number))
    printed("fit blobs.zarr --model m")
    assert signal.getsignal(number) is signal.SIG_IGN


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_the_work_does_not_take_its_report(number, folder, monkeypatch):
    class Interrupted(io.StringIO):
        def write(self, text):
            signal.raise_signal(number)
            return super().write(text)

    monkeypatch.setattr(sys, "stdout", Interrupted())
    assert main(["predict", "blobs.model", "blobs.zarr", "--labels", "l.csv"]) == 0
    assert "l.csv" in sys.stdout.getvalue()


def caused(by):
    error = SystemError("returned a result with an exception set")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, STOPPED),
        # as compiled code raises it
        (
            caused(caused(KeyboardInterrupt())),
            130,
            STOPPED,
        ),
        (
            OSError(28, "No space left on device", "labels/c/0"),
            2,
            "mmcnb: the disk is full while writing labels/c/0; free some space or choose a folder on",
        ),
        (
            PermissionError(13, "Permission denied", "there"),
            2,
            "mmcnb: there: Permission denied; check the path, its permissions and its disk.\n",
        ),
        (
            OSError(5, "Input/output error"),
            2,
            "mmcnb: a file could not be read or written: Input/output error; check ",
        ),
        (
            MemoryError(),
            2,
            "mmcnb: memory ran out (MemoryError); give a smaller --memory-limit.\n",
        ),
        (InputError("row 3\n is bad"), 2, "mmcnb: row 3 is bad\n"),
        (caused(RuntimeError()), None, ""),
    ],
)
def test_each_end_has_its_code_and_one_line(error, code, sentence, monkeypatch, capsys):
    def fail(arguments):
        raise error

    # Internal: no input makes memory run out, a disk fail or compiled code break off.
    monkeypatch.setattr(info, "run", fail)
    if code is None:
        with pytest.raises(SystemError):
            main(["info", "rows.zarr"])
        return
    assert main(["info", "rows.zarr"]) == code
    printed = capsys.readouterr().err
    assert printed.startswith(sentence)
    assert printed.count("\n") == 1


# Processes


IMPORT_THAT_TAKES_LONG = """
import asyncio, hashlib, sys, threading, time

class HalfMade:
    def __del__(self):
        raise AttributeError("what was never made")

def unfinished():
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(9), loop)
    return HalfMade()

class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            work = {work}
            try:
                print("working", flush=True)
                time.sleep(60)
            finally:
                print("clearing", flush=True)
                {clearing}

sys.meta_path.insert(0, Finder())
from mmcnb.__main__ import run

sys.exit(run())
"""


def started(code, *words):
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "work", "number"),
    [("mmcnb.cli", None, signal.SIGINT), ("zarr", "unfinished()", signal.SIGTERM)],
)
def test_a_command_is_stopped_while_it_is_imported_or_works(
    module, work, number, fitted
):
    code = IMPORT_THAT_TAKES_LONG.format(module=module, work=work, clearing="pass")
    with started(code, "info", fitted / "blobs.zarr") as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(number)
        errors = process.communicate()[1]
    assert (process.returncode, errors) == (130, STOPPED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "clearing"),
    [
        (signal.SIGINT, "time.sleep(60)"),
        (signal.SIGTERM, "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"),
    ],
)
def test_a_later_signal_ends_what_is_slow_to_clear_away_at_once(
    second, clearing, fitted
):
    code = IMPORT_THAT_TAKES_LONG.format(module="zarr", work=None, clearing=clearing)
    with started(code, "info", fitted / "blobs.zarr") as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "clearing\n"
        for _ in range(20):  # as often as a busy machine is late to hear the first
            time.sleep(0.5)
            process.send_signal(second)
            if process.poll() is not None:
                break
        process.kill()
        errors = process.communicate()[1]
    at_once = "mmcnb: stopped at once; the next command that writes here removes the half-written output.\n"
    assert (process.returncode, errors) == (130, at_once)


@pytest.mark.slow
def test_a_fit_is_stopped_amid_its_search_and_the_old_model_stands(tmp_path):
    X = (
        np.random.default_rng(0).normal(size=(20_000, 20))
        + 6 * (np.arange(20_000) % 2)[:, None]
    )
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "old.model").write_text("old")
    before = contents(tmp_path)
    code = "import sys; from mmcnb.__main__ import run; sys.exit(run())"
    words = [
        "fit",
        tmp_path / "rows.npy",
        "--model",
        tmp_path / "old.model",
        "--overwrite",
        "--verbose",
    ]
    with started(code, *words) as process:
        while "read 20,000 rows" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        errors = process.communicate()[1]
    assert process.returncode == 130
    assert errors.splitlines()[-1] == STOPPED.strip()
    assert contents(tmp_path) == before


def completed(*words, **options):
    command = [sys.executable, "-m", "mmcnb", *map(str, words)]
    return subprocess.run(command, text=True, check=False, **options)


@posix
@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ["convert rows.npy rows.zarr", "predict model rows.npy --labels labels.csv"],
)
def test_a_disk_that_is_full_leaves_nothing(words, tmp_path):
    import resource

    X = (
        np.random.default_rng(0).normal(size=(20_000, 4))
        + 6 * (np.arange(20_000) % 2)[:, None]
    )
    np.save(tmp_path / "rows.npy", X)
    mmcnb.CPMMC(n_init=1, random_state=0).fit(X[:100]).save(tmp_path / "model")
    before = contents(tmp_path)
    process = completed(
        *words.split(),
        cwd=tmp_path,
        capture_output=True,
        # Coverage, where it runs, would meet the limit too when it writes what it
        # found.
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("COVERAGE")
        },
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert process.returncode == 2
    assert "the disk is full" in process.stderr
    assert process.stderr.count("\n") == 1
    assert contents(tmp_path) == before


@posix
@pytest.mark.slow
def test_closed_streams_change_nothing_about_outputs(folder):
    def close():
        for number in (0, 1, 2):
            os.close(number)

    done = completed(
        "fit", "blobs.zarr", "--model", "m", "--method", "cpmmc", preexec_fn=close
    )
    assert done.returncode == 0
    assert set(mmcnb.load("m").predict("blobs.zarr")) == {0, 1}


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no full device"
)
@pytest.mark.parametrize(
    ("words", "code"),
    [("predict blobs.model blobs.zarr --labels l.csv", 0), ("info blobs.zarr", 1)],
)
def test_a_full_stream_fails_a_command_only_if_it_gives_nothing_else(
    words, code, folder
):
    with Path("/dev/full").open("w") as full:
        process = completed(*words.split(), stdout=full, stderr=subprocess.PIPE)
    assert process.returncode == code
    assert process.stderr == ""
    assert (folder / "l.csv").exists() == words.startswith("predict")


# What is printed


@pytest.mark.parametrize("command", ["info group.zarr", "info {}", "{}"])
def test_no_name_is_obeyed_by_the_terminal(command, folder, refusal_of):
    zarr.create_group("group.zarr").create_array(ESCAPES, shape=(3, 2), dtype="f8")
    refusal = refusal_of(command.format(ESCAPES))
    assert refusal.strip("\n").isprintable()
    assert plain(ESCAPES, kept="") in refusal


def test_json_gives_names_as_they_are(folder, printed, report_of):
    pd.DataFrame({ESCAPES: [1.0, 2.0], "b": [3.0, 4.0]}).to_csv(
        "table.csv", index=False
    )
    assert report_of("info table.csv")["columns"][0]["name"] == ESCAPES
    assert printed("info table.csv --json").replace("\n", "").isprintable()


def test_a_fit_in_python_needs_no_standard_error(fitted, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    model = mmcnb.CPMMC(random_state=0, verbose=1).fit(fitted / "blobs.zarr")
    assert set(model.labels_) == {0, 1}


def test_what_can_be_printed_stays_as_it_is():
    for text in ("", "a b\n\tc", "größe 7 %, Σ|z|²", "名前"):
        assert plain(text) == text
