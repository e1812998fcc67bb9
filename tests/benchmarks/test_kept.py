"""Kept figures: which of a study are kept, how they stand beside the published ones, and the page of them."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import kept
from benchmarks.__main__ import main
from benchmarks.kept import COLUMNS, KEY, POINT, STUDIES, compared, figures_of, keep, merged, results
from benchmarks.papers import DOCS, write_pages
from benchmarks.published import figure, published, read_csv, table_figures
from benchmarks.report.summary import read
from benchmarks.run import Options
from mmcnb import InputError
from tests.benchmarks import frames
from tests.benchmarks.frames import run, write

FULL = "A full run has it; none is kept yet."


def figures(folder, study, rows, **more):
    """The kept figures of a made-up study, by table, data set, method, measure and protocol."""
    found = figures_of(read(write(folder, study, rows, **more) / f"{study}.parquet"))
    return found.set_index(["table", "dataset", "method", "metric", "protocol"]).sort_index()


# Keeping


def test_a_figure_is_kept_at_the_best_parameters_beside_the_published_one(tmp_path, monkeypatch):
    versions = {"commit": "abc1234", "date": "2026-11-26"}
    monkeypatch.setattr(frames, "VERSIONS", json.dumps(versions))
    found = figures(tmp_path, "mnist", frames.mnist())
    ours = found.loc[("Tab. V", "mnist-1v7", "SKMMC", "balanced_error", "paper")]
    assert ours["value"] == pytest.approx(0.0125)
    assert ours["sd"] == pytest.approx(0.0005)
    assert ours["published"] == 0.0281
    assert ours["setting"] == "full; width=1.0; 3 runs; 14000 rows"
    assert ours["command"] == "python -m benchmarks mnist"
    assert (ours["commit"], ours["date"]) == ("abc1234", "2026-11-26")
    free = found.loc[("Tab. V", "mnist-1v7", "SKMMC", "balanced_error", "label-free")]
    assert np.isnan(free["published"])
    assert found.loc[("Tab. VI", "mnist-1v7", "SKMMC", "seconds", "paper"), "value"] == 2


def test_the_command_names_section_and_scale(tmp_path):
    rows = run("iris", "UMC-RLS", {"ari": 0.5}, protocol="paper", part="tables")
    found = figures(tmp_path, "rls", rows, scale="quick").iloc[0]
    assert found["command"] == "python -m benchmarks rls --part tables --quick"
    assert found["setting"].startswith("quick; ")


def test_the_largest_of_some_runs_is_kept_with_their_deviation(tmp_path):
    rows = [
        row
        for seed, ari in enumerate((0.25, 0.75))
        for row in run("iris", "k-means", {"ari": ari}, seed, "paper", part="tables")
    ]
    found = figures(tmp_path, "rls", rows)
    assert found.loc[("Tab. I", "iris", "k-means", "ari", "paper"), "value"] == 0.5
    largest = found.loc[("Tab. II", "iris", "k-means", "largest_ari", "paper")]
    assert largest["value"] == 0.75
    assert largest["sd"] > 0  # of the runs of which it is the largest


def test_pairs_are_kept_as_their_mean(tmp_path):
    rows = []
    for pair, error, width in (("3v8", 0.125, 1.0), ("1v7", 0.375, 3.0)):
        name = f"optdigits-tes-{pair}"
        rows += run(name, "EvoMMC", {"error": error}, 0, "paper", part="pairs", width=width)
    found = figures_of(read(write(tmp_path, "evolutionary", rows) / "evolutionary.parquet"))
    assert found.empty, "two pairs are no figure of the table"
    values = pd.DataFrame(rows).assign(x=np.nan, rest=["{}", "[]"])
    means = kept.with_pairs(values)
    assert means[["dataset", "value"]].to_numpy().tolist() == [["optdigits-tes, 2 pairs", 0.25]]


def test_a_table_takes_no_method_that_stands_in_another_table_alone(tmp_path):
    rows = run("mnist01234", "MKC", {"accuracy": 0.75}, 0, "paper", part="mnist")
    rows += run("mnist01234", "k-means", {"accuracy": 0.5}, 0, "paper", part="mnist")
    found = figures(tmp_path, "mkc", rows).reset_index()
    assert found[["table", "method"]].to_numpy().tolist() == [
        ["Table 2", "MKC"],
        ["Table 2", "k-means"],
        ["Table 3", "MKC"],
    ]


def test_points_of_a_curve_are_kept_apart(tmp_path):
    found = figures(tmp_path, "eta", frames.eta()).reset_index()
    errors = found[(found["dataset"] == "heart") & (found["metric"] == "balanced_error")]
    assert errors["at"].tolist() == [f"eta={eta:g}" for eta in (0.01, 0.03, 0.1, 0.3, 1)]


def test_points_name_their_rows_if_a_set_has_several_sizes(tmp_path):
    rows = []
    for n in (100, 200):
        rows += run("ringnorm", "MKC", {"ari": 0.5}, 0, "paper", n=n, part="curves, time", eta=0.1, rows=n)
    rows += run("iris", "MKC", {"accuracy": 0.5}, 0, "paper", part="curves, accuracy", round=1)
    found = figures(tmp_path, "mkc", rows).reset_index()
    assert found["at"].tolist() == ["round=1", "eta=0.1, 100 rows", "eta=0.1, 200 rows"]
    assert set(found["command"]) == {"python -m benchmarks mkc --part curves"}


def one(setting, value, dataset="heart"):
    return pd.DataFrame(
        [dict.fromkeys(COLUMNS, "") | {"dataset": dataset, "setting": setting, "value": value}]
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("full; a", "full; b", 2),
        ("quick; a", "full; b", 2),
        ("quick; a", "quick; b", 2),
        ("full; a", "quick; b", 1),
    ],
)
def test_a_new_figure_takes_the_place_of_an_old_one_but_a_quick_one_never_of_a_full(old, new, expected):
    rows = merged([pd.concat([one(old, 1), one(old, 3, "liver")]), one(new, 2)])
    assert dict(zip(rows["dataset"], rows["value"], strict=True)) == {"heart": expected, "liver": 3}


def test_a_curve_of_a_full_run_has_no_points_of_a_quick_one():
    quick = [one("quick; a", 1).assign(at=f"{n} rows") for n in (100, 200)]
    rows = merged([*quick, one("full; a", 2).assign(at="1000 rows")])
    assert rows["at"].tolist() == ["1000 rows"]


def test_keeping_twice_changes_nothing(tmp_path):
    write(tmp_path, "mnist", frames.mnist())
    (path,) = keep(tmp_path, tmp_path / "results")
    first = path.read_text()
    keep(tmp_path, tmp_path / "results")
    assert path.read_text() == first
    assert list(results(tmp_path / "results").columns) == COLUMNS


@pytest.mark.parametrize("scale", ["smoke", None])
def test_figures_of_a_smoke_run_or_of_an_unknown_scale_are_refused(scale, tmp_path):
    write(tmp_path, "mnist", frames.mnist(), scale=scale)
    if scale is None:
        (tmp_path / "mnist.jsonl").unlink()
    with pytest.raises(InputError, match="smoke run"):
        keep(tmp_path, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_run_of_fewer_rows_is_quick(tmp_path):
    write(tmp_path, "mnist", frames.mnist())
    journal = tmp_path / "mnist.jsonl"
    journal.write_text(journal.read_text().replace("null", "2000"))
    found = figures_of(read(tmp_path / "mnist.parquet"))
    assert set(found["command"]) == {"python -m benchmarks mnist --rows 2000"}
    assert found["setting"].str.startswith("quick; ").all()


def test_nothing_to_keep_is_told_in_one_sentence(tmp_path, capsys):
    assert main(["keep", "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(tmp_path) in told


# Beside the published figures


@pytest.mark.parametrize(
    ("metric", "value", "sd", "ours", "our_sd", "excess"),
    [
        ("error", 0.1, 0.02, 0.13, 0.01, 0.01),
        ("error", 0.1, np.nan, 0.13, 0.04, -0.01),
        ("error", 0.1, np.nan, 0.09, np.nan, -0.01),
        ("error", 0.1, np.nan, 0.10004, np.nan, 0),
        ("ari", 0.96, np.nan, 0.956, np.nan, 0),
        ("accuracy", 0.9, 0.01, 0.85, np.nan, 0.04),
        ("seconds", 1.0, np.nan, 2.0, np.nan, np.nan),
        ("iterations", 1.0, np.nan, 2.0, np.nan, np.nan),
    ],
)
def test_excess_is_beyond_the_larger_deviation_to_the_printed_digits(metric, value, sd, ours, our_sd, excess):
    row = {"metric": metric, "value": value, "sd": sd, "ours": ours, "our sd": our_sd}
    np.testing.assert_allclose(kept._excess(row), excess, atol=1e-9)


def test_the_command_counts_runs_and_names_the_worst_first(tmp_path):
    rows = frames.mnist() + run("mnist-1v7", "CPMMC", {"balanced_error": 0.5}, protocol="paper", n=14000)
    keep(write(tmp_path, "mnist", rows), tmp_path / "results")
    told = kept.summary(tmp_path / "results").splitlines()
    # SKMMC in both tables on four pairs, and CPMMC in both on one; k-means ran by the other protocol.
    assert told[0] == "10 of 711 (1%) published figures of tables have a kept run, 0 a quick one."
    assert told[1].startswith("2 of 5 (40%) ")
    worse = told[told.index("Worse, by excess:") + 1 : told.index("", 3)]
    assert len(worse) == 3
    beyond = [float(line.rpartition(", ")[2].split()[0]) for line in worse]
    assert beyond == sorted(beyond, reverse=True)
    assert worse[0].startswith("SKMMC Tab. V: mnist-1v7, CPMMC, balanced_error: 0.5 beside 0.0285 (full; ")


def test_without_kept_figures_each_has_a_reason(tmp_path):
    frame = compared(tmp_path)
    assert frame["ours"].isna().all()
    assert kept.summary(tmp_path).startswith("0 of 711 (0%)")


# The files of the repository


def test_every_published_figure_has_a_run_or_a_reason():
    frame = compared()
    assert not frame.duplicated(KEY).any()
    bare = frame[frame["ours"].isna() & (frame["reason"] == "")]
    assert bare.empty, bare[KEY].to_string()


def test_every_worse_figure_of_a_full_run_has_a_reason():
    frame = compared().query("excess > 0")
    bare = frame[frame["setting"].str.startswith("full") & (frame["reason"] == "")]
    assert bare.empty, bare[[*KEY, "excess"]].to_string()


@pytest.mark.parametrize(("name", "figures"), [("reasons", table_figures), ("worse", compared)])
def test_every_reason_names_figures_that_were_published(name, figures):
    frame = figures()
    if name == "worse":
        frame = frame.query("excess > 0")
    for reason in read_csv(name).fillna("").itertuples():
        given = {name: getattr(reason, name) for name in KEY if getattr(reason, name)}
        assert (frame[[*given]] == pd.Series(given)).all(axis=1).any(), given


def test_a_figure_that_waits_for_a_full_run_is_in_the_grid_of_its_study(tmp_path):
    options = Options(tmp_path)
    grids = {}
    for name in ("small", "mnist", "evolutionary", "rls"):
        study = import_module(f"benchmarks.studies.{name}")
        parts = getattr(study, "SECTIONS", {"": SimpleNamespace(grid=study.grid)} if name in STUDIES else {})
        runs = pd.concat([parts[part].grid(options) for part in parts if part not in ("defaults", "large")])
        grids[name] = {(row.dataset, row.method) for row in runs.itertuples() if row.protocol == "paper"}
    sources = read_csv("sources").drop_duplicates(["paper", "table"]).set_index(["paper", "table"])["study"]
    waiting = compared().query("reason == @FULL and not dataset.str.contains('pairs')")
    for row in waiting.itertuples():
        study = sources[row.paper, row.table]
        assert study not in grids or (row.dataset, row.method) in grids[study], (row.dataset, row.method)


@pytest.mark.parametrize("study", STUDIES)
def test_kept_figures_stand_once_with_what_is_needed_to_repeat_them(study):
    frame = kept.read_kept(kept.FOLDER / f"{study}.csv")
    assert list(frame.columns) == COLUMNS
    assert not frame.duplicated(POINT).any()
    assert frame["value"].notna().all()
    assert (frame[["setting", "command", "commit", "date"]] != "").all(axis=None)
    assert frame["setting"].str.match("(full|quick); ").all()
    assert not frame["commit"].str.contains("dirty").any()
    for row in frame[frame["published"].notna()].itertuples():
        assert row.published == figure(row.paper, row.dataset, row.method, row.metric, row.table)


def test_sources_are_of_tables_and_papers_that_exist():
    sources = read_csv("sources")
    assert not sources.duplicated().any()
    assert set(sources["study"]) == set(STUDIES)
    assert set(table_figures()["table"]) <= set(sources["table"])
    assert set(published()["paper"]) <= set(sources["paper"])


def test_the_page_is_what_the_command_makes(tmp_path):
    page = write_pages(tmp_path)
    assert page.read_text() == (DOCS / "papers.md").read_text(), "run python -m benchmarks papers"
    made = sorted((tmp_path / "papers").iterdir())
    assert [path.name for path in made] == sorted(path.name for path in (DOCS / "papers").iterdir())
    for path in made:
        assert path.read_text() == (DOCS / "papers" / path.name).read_text(), (
            "run python -m benchmarks papers"
        )
    assert sum(len(pd.read_csv(path)) for path in made) == len(table_figures())
    assert all(f":file: papers/{Path(path).name}" in page.read_text() for path in made)
