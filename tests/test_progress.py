"""What is shown of long work: one bar for a fit, lines where no bar can be seen, silence by default."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import mmcnb
from mmcnb import _progress
from mmcnb._progress import Lines, Stages, lines_elsewhere, progress
from mmcnb.cli import main
from mmcnb.stores import create_dense_store

EXPECTED = {"compiling": 10.0, "sample": 2.0, "search": 5.0, "passes": 3.0}


class Clock:
    """Seconds that a test sets, and those of compilation among them; both clocks of the module."""

    def __init__(self):
        self.now, self.seconds, self.running = 100.0, 7.0, False

    def perf_counter(self):
        return self.now

    def compile(self, seconds):
        self.now, self.seconds = self.now + seconds, self.seconds + seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    monkeypatch.setattr(_progress, "CLOCK", clock)
    return clock


@pytest.fixture
def stages(clock):
    return Stages(EXPECTED, 40.0)


def test_a_fit_that_takes_what_was_expected_goes_on_evenly(clock, stages):
    shares = []
    for stage, parts in (("sample", 2), ("search", 5), ("passes", 3)):
        stages.enter(stage)
        for _ in range(parts):
            clock.compile(2.0 if stage == "search" else 0.0)
            clock.now += 1.0
            stages.update(40 / 3 if stage == "passes" else 0)
            name, share, seconds = stages.position()
            assert name == stage
            assert share == pytest.approx(seconds / 20, abs=0.06)
            shares.append(share)
    assert shares == sorted(set(shares))


def test_a_bar_never_goes_back_and_never_says_that_all_is_done(clock, stages):
    shares = []
    for stage in ("sample", "search", "sample", "passes"):
        stages.enter(stage)
        for seconds in (0.0, 1.0, 100.0):
            clock.now += seconds
            stages.update(seconds)
            shares.append(stages.position()[1])
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] < 1


def test_passes_that_are_recalled_shorten_the_whole(clock, stages):
    assert stages.line() == "sample, 0% of about 20 s"
    stages.skip(30)
    assert (stages.units, stages.expected["passes"]) == (10.0, EXPECTED["passes"] / 4)
    stages.enter("passes")
    before = stages.position()[1]
    stages.update(5)
    assert stages.position()[1] > before
    stages.skip(30)
    assert stages.units == 1.0
    stages.update(5)
    assert stages.position()[1] < 1


def test_compilation_is_named_while_it_runs_and_counts_once(clock, stages):
    clock.running = True
    clock.compile(8.0)
    assert stages.position()[:2] == ("compiling (once)", pytest.approx(8 / 20))
    clock.running = False
    assert stages.position()[0] == "sample"
    warm = Stages(EXPECTED | {"compiling": 0.0}, 40.0)
    assert warm.position()[1] == 0


def test_a_line_says_the_stage_the_share_and_the_whole(clock, stages):
    assert stages.line() == "sample, 0% of about 20 s"
    clock.compile(10.0)
    clock.now += 4.0
    stages.enter("search")
    clock.now += 2.5
    assert stages.line() == f"search, 72% of about {16.5 / 0.725:.0f} s"


def test_lines_come_every_30_seconds_at_most(clock, capsys):
    lines = Lines("writing", 100)
    for _ in range(100):
        clock.now += 1.0
        lines.update(1)
    assert capsys.readouterr().err.splitlines() == [f"mmcnb: writing, {share}%" for share in (30, 60, 90)]


@pytest.mark.parametrize("told", [False, True])
def test_work_tells_lines_on_the_command_line_alone(told, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "LINE_SECONDS", 0.0)
    with progress(4, "reading") as silent:
        silent.update(1)
    with lines_elsewhere(), progress(4, "reading", enabled=None if told else False) as bar:
        bar.update(1)
    assert capsys.readouterr().err == ("mmcnb: reading, 25%\n" if told else "")


@pytest.fixture
def eager(monkeypatch):
    """Bars and lines that do not wait."""
    for name in ("DELAY", "LINE_SECONDS"):
        monkeypatch.setattr(_progress, name, 0.0)
    monkeypatch.setattr(_progress, "TICK_SECONDS", 1e-3)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(5000, 3)) + 5 * (np.arange(5000) % 2)[:, None]


def test_a_fit_shows_one_bar_for_all_its_stages(eager, X, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    mmcnb.SparseKernelMMC(random_state=0, verbose=1).fit(X)
    shown = capsys.readouterr().err
    assert "mmcnb: search" in shown
    assert "%|" in shown
    assert "all rows" not in shown
    mmcnb.SparseKernelMMC(random_state=0).fit(X)
    assert capsys.readouterr().err == ""


def test_a_notebook_counts_as_a_screen(monkeypatch):
    assert not _progress.shows_bars()
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(_progress.sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert _progress.shows_bars()


def test_a_fit_goes_on_where_its_bar_fails(eager, X, capsys, monkeypatch):
    plain = mmcnb.SparseKernelMMC(random_state=0).fit(X)
    monkeypatch.setattr(Stages, "position", lambda self: 1 / 0)
    shown = mmcnb.SparseKernelMMC(random_state=0, verbose=1).fit(X)
    assert (shown.labels_ == plain.labels_).all()
    assert capsys.readouterr().err == ""
    assert not [thread for thread in threading.enumerate() if thread.name == "mmcnb-progress"]


def test_the_command_line_tells_lines_where_its_output_is_piped(eager, X, tmp_path, capsys):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    command = ["fit", str(tmp_path / "rows.zarr"), "--model", str(tmp_path / "model"), "--random-state", "0"]
    assert main(command) == 0
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith("mmcnb: search, ") for line in told)
    assert all("% of about" in line for line in told)
    assert mmcnb.load(tmp_path / "model").verbose == 0


@pytest.mark.slow
def test_a_fit_on_dask_shows_its_stages_here(eager, X, capsys, dask_client, tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    mmcnb.CPMMC(random_state=0, verbose=1, engine=dask_client(2)).fit(tmp_path / "rows.zarr")
    assert "mmcnb: " in capsys.readouterr().err
