"""What is shown of long work: one bar for a fit, lines where no bar can be seen, silence by default."""

from types import SimpleNamespace

import numpy as np
import pytest

import mmcnb
from mmcnb import _progress
from mmcnb._progress import Lines, Progress, lines_elsewhere, progress
from mmcnb.cli import main
from mmcnb.engine.passes import GatherPass
from mmcnb.engine.run import ThreadEngine, Traffic
from mmcnb.samples import GROUP_ROWS, open_samples
from mmcnb.stores import create_dense_store


class Recorder:
    """Keeps what it is told to show."""

    def __init__(self):
        self.desc, self.told = "", []

    def update(self, n):
        self.told.append((self.desc, n))


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(_progress, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    return clock


def test_lines_come_every_30_seconds_at_most(clock, capsys):
    lines = Progress(Lines(100, 30.0), "writing")
    for _ in range(100):
        clock.now += 1.0
        lines.update(1)
    assert capsys.readouterr().err.splitlines() == [f"mmcnb: writing, {share}%" for share in (30, 60, 90)]


def test_a_line_tells_that_a_stage_without_rows_goes_on(clock, capsys):
    lines = Progress(Lines(8, 30.0), "sample")
    lines.update(2)
    lines.enter("search")
    clock.now += 31.0
    lines.update(0)
    assert capsys.readouterr().err == "mmcnb: search, 25%\n"


def test_lines_are_lost_where_there_is_no_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    lines = Lines(4, 0.0)
    lines.update(3)
    assert lines.done == 3
    assert not _progress.shows_bars()


def test_a_fit_counts_the_rows_of_its_own_passes_alone():
    X = np.ones((GROUP_ROWS + 7, 2))
    rows, others, shown = open_samples(X), open_samples(X[:9]), Recorder()
    with ThreadEngine(1) as engine:
        engine.traffic, engine.fit_progress = Traffic(rows), Progress(shown, "sample")
        engine.run(GatherPass(np.array([0])), rows)
        engine.fit_progress.enter("search")
        engine.run(GatherPass(np.array([0])), others)
        engine.each(abs, [1, 2])
        engine.run(GatherPass(np.array([0])), rows)
    sample, search, passes = (
        [n for desc, n in shown.told if desc == f"mmcnb: {stage}"] for stage in ("sample", "search", "passes")
    )
    assert sum(sample) == sum(passes) == len(X)
    assert search == [0] * 4  # its beginning, the pass over other rows and two items


@pytest.mark.parametrize("told", [False, True])
def test_work_tells_lines_on_the_command_line_alone(told, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "LINE_SECONDS", 0.0)
    with progress(4, "reading") as silent:
        silent.update(1)
    with lines_elsewhere(), progress(4, "reading", enabled=None if told else False) as bar:
        bar.update(1)
    assert capsys.readouterr().err == ("mmcnb: reading, 0%\nmmcnb: reading, 25%\n" if told else "")


@pytest.fixture
def eager(monkeypatch):
    """Bars and lines that do not wait."""
    for name in ("DELAY", "LINE_SECONDS"):
        monkeypatch.setattr(_progress, name, 0.0)


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
    monkeypatch.setattr(Lines, "update", lambda self, n: 1 / 0)
    shown = mmcnb.SparseKernelMMC(random_state=0, verbose=1).fit(X)
    assert (shown.labels_ == plain.labels_).all()
    assert capsys.readouterr().err == ""


def test_the_command_line_tells_lines_where_its_output_is_piped(eager, X, tmp_path, capsys):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    command = ["fit", str(tmp_path / "rows.zarr"), "--model", str(tmp_path / "model"), "--random-state", "0"]
    assert main(command) == 0
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith("mmcnb: search, ") for line in told)
    assert all(line.startswith("mmcnb: ") and line.endswith("%") for line in told)
    assert mmcnb.load(tmp_path / "model").verbose == 0


@pytest.mark.slow
def test_a_fit_on_dask_shows_its_stages_here(eager, X, capsys, dask_client, tmp_path):
    with create_dense_store(tmp_path / "rows.zarr", 3) as writer:
        writer.append(X)
    mmcnb.CPMMC(random_state=0, verbose=1, engine=dask_client(2)).fit(tmp_path / "rows.zarr")
    assert "mmcnb: " in capsys.readouterr().err
