"""What is shown of long work: one bar for a fit, lines where no bar can be seen, silence by default."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tqdm.auto

import mmcnb
from mmcnb.cli import main
from mmcnb.stores import convert


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    # Internal: bars wait for half a second and lines for thirty, longer than any test.
    monkeypatch.setattr("mmcnb._progress.DELAY", 0.0)
    monkeypatch.setattr("mmcnb._progress.LINE_SECONDS", 0.0)


@pytest.fixture
def rows(tmp_path):
    """The path of a store of two groups."""
    X = (
        np.random.default_rng(0).normal(size=(500, 3))
        + 5 * (np.arange(500) % 2)[:, None]
    )
    convert(X, tmp_path / "rows.zarr", progress=False)
    return tmp_path / "rows.zarr"


def on_a_terminal(patch):
    patch.setattr("sys.stderr.isatty", lambda: True)


def in_a_notebook(patch):
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    patch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize("place", [on_a_terminal, in_a_notebook])
def test_a_fit_shows_one_bar_for_all_its_stages(place, rows, capsys, monkeypatch):
    place(monkeypatch)
    update = tqdm.auto.tqdm.update
    bars = {}

    def recorded(bar, n):
        bars.setdefault(bar, {})[bar.desc.removesuffix(", compiling (once)")] = None
        update(bar, n)

    monkeypatch.setattr(tqdm.auto.tqdm, "update", recorded)
    mmcnb.SparseKernelMMC(random_state=0, verbose=1).fit(rows)
    ((bar, stages),) = bars.items()
    assert list(stages) == ["mmcnb: sample", "mmcnb: search", "mmcnb: passes"]
    assert 0 < bar.n <= bar.total
    assert "%|" in capsys.readouterr().err
    mmcnb.SparseKernelMMC(random_state=0).fit(rows)
    assert capsys.readouterr().err == ""


def test_a_bar_that_fails_changes_nothing_about_a_fit(rows, monkeypatch):
    expected = mmcnb.SparseKernelMMC(random_state=0).fit(rows).labels_
    on_a_terminal(monkeypatch)
    monkeypatch.setattr(tqdm.auto.tqdm, "update", lambda self, n: 1 / 0)
    labels = mmcnb.SparseKernelMMC(random_state=0, verbose=1).fit(rows).labels_
    np.testing.assert_array_equal(labels, expected)


def test_the_command_line_tells_rising_shares_where_its_output_is_piped(
    rows, tmp_path, capsys
):
    assert (
        main(
            [
                "fit",
                str(rows),
                "--model",
                str(tmp_path / "model"),
                "--random-state",
                "0",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("mmcnb: search, ") for line in lines)
    shares = [int(re.fullmatch(r"mmcnb: .*, (\d+)%", line)[1]) for line in lines]
    assert shares == sorted(shares)
    assert 0 < shares[-1] <= 100
    assert mmcnb.load(tmp_path / "model").verbose == 0


def test_in_python_there_are_lines_if_they_are_asked_for(rows, tmp_path, capsys):
    mmcnb.CPMMC(random_state=0, verbose=1).fit(rows)
    assert capsys.readouterr().err.startswith("mmcnb: ")
    mmcnb.CPMMC(random_state=0).fit(rows)
    convert(np.eye(3), tmp_path / "eye.zarr")
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_fit_on_dask_shows_its_stages_here(rows, capsys, dask_client):
    mmcnb.CPMMC(random_state=0, verbose=1, engine=dask_client(2)).fit(rows)
    assert "mmcnb: " in capsys.readouterr().err
