"""Published and kept figures: which of a study are kept, and how they stand beside those of the papers."""

import numpy as np
import pandas as pd
import pytest

import data_loaders
from benchmarks.kept import (
    COLUMNS,
    KEY,
    POINT,
    compared,
    counts_by,
    figures_of,
    keep,
    merged,
    results,
    summary,
)
from benchmarks.papers import DOCS, table_of, with_variants, write_pages
from benchmarks.published import (
    EVO,
    MKC,
    RLS,
    SKMMC,
    THESIS,
    figure,
    published,
    read_csv,
    table_figures,
)
from benchmarks.published.coverage import coverage
from benchmarks.report.summary import read
from mmcnb import InputError
from tests.benchmarks import frames
from tests.benchmarks.frames import run, write

pytestmark = pytest.mark.slow


def figures(folder, study, rows, **more):
    """The kept figures of a made-up study, by table, data set, method, measure and protocol."""
    kept = figures_of(read(write(folder, study, rows, **more)))
    return kept.set_index(
        ["table", "dataset", "method", "metric", "protocol"]
    ).sort_index()


# -- keeping ---------------------------------------------------------------------------


def test_a_figure_is_kept_at_the_best_parameters_beside_the_published_one(tmp_path):
    kept = figures(tmp_path, "mnist", frames.mnist())
    ours = kept.loc[("Tab. V", "mnist-1v7", "SKMMC", "balanced_error", "paper")]
    assert ours[["value", "sd", "published"]].tolist() == pytest.approx(
        [0.0125, 0.0005, 0.0281]
    )
    assert ours["setting"] == "full; width=1.0; 3 runs; 14000 rows"
    assert ours["command"] == "python -m benchmarks mnist"
    assert (ours["commit"], ours["date"]) == ("abc1234", "2026-11-26")
    free = kept.loc[("Tab. V", "mnist-1v7", "SKMMC", "balanced_error", "label-free")]
    assert np.isnan(free["published"])
    assert kept.loc[("Tab. VI", "mnist-1v7", "SKMMC", "seconds", "paper"), "value"] == 2


def test_the_command_names_section_and_scale_and_the_largest_of_some_runs_is_kept(
    tmp_path,
):
    rows = []
    for seed, ari in enumerate((0.25, 0.75)):
        rows += run("iris", "k-means", {"ari": ari}, seed, part="tables")
    kept = figures(tmp_path, "rls", rows, scale="quick")
    assert kept.loc[("Tab. I", "iris", "k-means", "ari", "paper"), "value"] == 0.5
    largest = kept.loc[("Tab. II", "iris", "k-means", "largest_ari", "paper")]
    assert largest["value"] == 0.75
    assert largest["command"] == "python -m benchmarks rls --part tables --quick"
    fewer = figures(tmp_path, "rls", rows, most=2000).iloc[0]
    assert fewer["command"] == "python -m benchmarks rls --part tables --rows 2000"
    assert fewer["setting"].startswith("quick; ")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("full", "full", 2), ("quick", "quick", 2), ("full", "quick", 1)],
)
def test_a_new_figure_takes_the_place_of_an_old_one_but_a_quick_one_never_of_a_full(
    old, new, expected
):
    def one(scale, value, dataset):
        row = dict.fromkeys(COLUMNS, "") | {
            "dataset": dataset,
            "setting": f"{scale}; a",
            "value": value,
        }
        return pd.DataFrame([row])

    rows = merged([one(old, 1, "heart"), one(old, 3, "liver"), one(new, 2, "heart")])
    assert dict(zip(rows["dataset"], rows["value"], strict=True)) == {
        "heart": expected,
        "liver": 3,
    }


def test_keeping_twice_changes_nothing_and_a_smoke_run_is_refused(tmp_path):
    write(tmp_path, "mnist", frames.mnist())
    (path,) = keep(tmp_path, tmp_path / "results")
    first = path.read_text()
    keep(tmp_path, tmp_path / "results")
    assert path.read_text() == first
    assert list(results(tmp_path / "results").columns) == COLUMNS
    write(tmp_path, "mnist", frames.mnist(), scale="smoke")
    with pytest.raises(InputError, match="smoke run"):
        keep(tmp_path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


# -- beside the published figures ------------------------------------------------------


def test_excess_is_beyond_the_larger_deviation_to_the_printed_digits(tmp_path):
    rows = []
    for name, errors in {"mnist-1v7": (0.05,), "mnist-2v7": (0.2, 0.3)}.items():
        for seed, error in enumerate(errors):
            rows += run(name, "SKMMC", {"balanced_error": error}, seed, n=14000)
    keep(write(tmp_path, "mnist", rows).parent, tmp_path / "results")
    errors = compared(tmp_path / "results").query(
        "table == 'Tab. V' and method == 'SKMMC'"
    )
    excess = errors.set_index("dataset")["excess"]
    assert excess["mnist-1v7"] == pytest.approx(0.05 - 0.0281)
    deviation = np.std([0.2, 0.3], ddof=1)
    expected = 0.25 - figure(SKMMC, "mnist-2v7", "SKMMC", "balanced_error") - deviation
    assert excess["mnist-2v7"] == pytest.approx(expected, abs=6e-5)
    lines = summary(tmp_path / "results").splitlines()
    assert lines[0] == (
        "Of 711 published figures of tables, 4 have a full run, 0 a quick one, "
        "and 707 none."
    )
    assert lines[1].startswith("0 of 2 (0%) ")
    worse = lines[lines.index("Worse, by excess:") + 1]
    assert worse.startswith(
        "SKMMC Tab. V: mnist-2v7, SKMMC, balanced_error: 0.25 beside "
    )


@pytest.mark.parametrize("error", [0.9, 0.0])
def test_a_quick_run_is_neither_as_good_nor_worse(tmp_path, error):
    rows = run("mnist-1v7", "SKMMC", {"balanced_error": error}, n=400)
    path = write(tmp_path, "mnist", rows, scale="quick")
    keep(path.parent, tmp_path / "results")
    kept = compared(tmp_path / "results")
    (quick,) = kept[kept["ours"].notna() & (kept["metric"] == "balanced_error")].index
    assert kept.loc[quick, "scale"] == "quick"
    assert kept["excess"].isna().all()
    counts = counts_by(kept, ["paper"]).set_index("paper").loc["SKMMC"]
    assert counts[["full", "quick"]].tolist() == [0, 2]
    assert counts["figures"] == counts["none"] + 2
    text = summary(tmp_path / "results")
    assert "0 have a full run, 2 a quick one, and 709 none" in text
    assert "beside" not in text
    table = table_of(kept).iloc[quick]
    assert table["ours"] == "\u2013"
    assert table["how"].startswith("not comparable: ")


def test_runs_with_the_basis_of_the_paper_stand_below_those_of_skmmc(tmp_path):
    rows = []
    for method, error in {"SKMMC": 0.02, "SKMMC, own basis": 0.03}.items():
        rows += run("mnist-1v7", method, {"balanced_error": error}, n=14000)
    keep(write(tmp_path, "mnist", rows).parent, tmp_path / "results")
    figures = compared(tmp_path / "results")
    shown = table_of(with_variants(figures, tmp_path / "results"))
    (place,) = np.flatnonzero(
        (shown["method"] == "SKMMC, own basis") & (shown["table"] == "Tab. V")
    )
    assert shown.loc[place - 1, "method"] == "SKMMC"
    assert shown.loc[place, ["published", "ours"]].tolist() == ["\u2013", "3.00 %"]
    assert len(figures) == 711


def test_every_figure_has_a_run_or_a_reason_and_every_worse_one_a_reason():
    frame = compared()
    assert not frame.duplicated(KEY).any()
    worse = frame["setting"].str.startswith("full", na=False) & (frame["excess"] > 0)
    bare = frame[(frame["ours"].isna() | worse) & (frame["reason"] == "")]
    assert bare.empty, bare[KEY].to_string()
    assert coverage()["run"].all()


def test_kept_figures_stand_once_with_what_is_needed_to_repeat_them():
    frame = results()
    assert not frame.duplicated(POINT).any()
    assert (frame[["setting", "command", "commit", "date"]] != "").all(axis=None)
    assert frame["setting"].str.match("(full|quick); ").all()
    for row in frame[frame["published"].notna()].itertuples():
        assert row.published == figure(
            row.paper, row.dataset, row.method, row.metric, row.table
        )


def test_the_pages_are_what_the_command_makes(tmp_path):
    page = write_pages(tmp_path)
    for path in (page, *(tmp_path / "papers").iterdir()):
        shown = (DOCS / path.relative_to(tmp_path)).read_text()
        assert path.read_text() == shown, "run python -m benchmarks papers"


# -- the papers' figures ---------------------------------------------------------------


def test_each_published_figure_stands_once_in_the_unit_of_the_studies():
    frame = published()
    assert not frame.duplicated(KEY).any()
    rates = ["balanced_error", "error", "accuracy", "rand", "imbalance", "sparsity"]
    assert frame.loc[frame["metric"].isin(rates), "value"].between(0, 1).all()
    assert frame.loc[frame["metric"] == "balanced_error", "value"].max() <= 0.5
    sources = read_csv("sources")
    assert set(table_figures()["table"]) <= set(sources["table"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ((SKMMC, "clean1", "SKMMC", "balanced_error"), 0.0701),
        ((SKMMC, "kr-vs-kp", "IterSVR", "seconds"), 1180.40),
        ((EVO, "mnist-1v7", "FastEvoMMC", "generations"), 605932),
        ((RLS, "moons", "Steep-RLS", "largest_ari"), 0.14),
        ((MKC, "ringnorm", "MKC", "rand"), 0.98),
        ((THESIS, "ringnorm", "MKC", "accuracy"), 0.965),
        ((THESIS, "ringnorm", "MKC", "accuracy", "Tab. 5-4"), 0.8746),
        ((SKMMC, "iris", "SKMMC", "balanced_error"), np.nan),
        ((RLS, "coil", "CPMMC", "ari"), np.nan),
    ],
)
def test_a_figure_is_found_by_its_names(asked, expected):
    np.testing.assert_equal(figure(*asked), expected)


def test_sizes_and_imbalances_are_those_of_the_data_sets():
    """Where a paper's data set is one of ours, rows and columns agree, but for what the notes say."""
    facts = {fact["name"]: fact for fact in data_loaders.registry()}
    frame = published().query("dataset in @facts")
    sizes = frame.query("metric in ('n_samples', 'n_features')")
    ours = [facts[row.dataset][row.metric] for row in sizes.itertuples()]
    # 131 rows; 354 x 64 in MKC; some classes of the letters; 1,000 rows drawn.
    known = {"echocardiogram", "ionosphere", "letter", "ringnorm"}
    assert set(sizes.loc[sizes["value"] != ours, "dataset"]) == known
    imbalances = frame.query("metric == 'imbalance'").set_index("dataset")["value"]
    for name in ("heart", "german", "mnist-3v8", "a9a"):
        counts = list(facts[name]["class_counts"].values())
        assert abs(counts[0] - counts[1]) / sum(counts) == pytest.approx(
            imbalances[name], abs=6e-5
        )
