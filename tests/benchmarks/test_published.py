"""The papers' figures: each stands once, in the unit and under the names of the studies."""

import numpy as np
import pandas as pd
import pytest

import data_loaders
from benchmarks.published import COLUMNS, EVO, MKC, RLS, SKMMC, THESIS, figure, published
from benchmarks.published.coverage import _runs_of, coverage
from benchmarks.studies import small

KEY = ["paper", "table", "dataset", "method", "metric"]


def test_each_figure_stands_once():
    frame = published()
    assert tuple(frame.columns) == COLUMNS
    assert not frame.duplicated(KEY).any()
    assert frame["value"].notna().all()


def test_a_reader_may_change_its_own_frame():
    own = published()
    own["value"] = 0.0
    assert figure(SKMMC, "mnist-1v7", "SKMMC", "balanced_error") == 0.0281


@pytest.mark.parametrize(
    ("paper", "table", "datasets", "columns"),
    [
        (SKMMC, "Tab. II", 15, 7),
        (SKMMC, "Tab. III", 15, 7),
        (SKMMC, "Tab. V", 4, 4),
        (SKMMC, "Tab. VI", 4, 4),
        (RLS, "Tab. II", 8, 7),
        (MKC, "Table 2", 11, 7),
        (THESIS, "Tab. 5-3", 3, 7),
    ],
)
def test_tables_are_whole(paper, table, datasets, columns):
    frame = published().query("paper == @paper and table == @table")
    assert frame["dataset"].nunique() == datasets
    assert frame["method"].nunique() == columns


def test_rates_are_shares_and_seconds_are_positive():
    frame = published()
    rates = frame[
        frame["metric"].isin(["balanced_error", "error", "accuracy", "rand", "imbalance", "sparsity"])
    ]
    assert rates["value"].between(0, 1).all()
    assert rates["value"].max() == 1
    errors = frame[frame["metric"] == "balanced_error"]
    assert errors["value"].max() <= 0.5, "a balanced error above a half"
    seconds = frame.loc[frame["metric"] == "seconds", "value"]
    assert (seconds >= 0).all()
    assert seconds.max() == 51585.47


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((SKMMC, "clean1", "SKMMC", "balanced_error"), 0.0701),
        ((SKMMC, "waveform-1v2", "SKMMCv2", "balanced_error"), 0.0478),
        ((SKMMC, "kr-vs-kp", "IterSVR", "seconds"), 1180.40),
        ((SKMMC, "kr-vs-kp", "IterSVR", "iterations"), 11.25),
        ((EVO, "ionosphere", "FastEvoMMC", "error"), 0.1875),
        ((EVO, "mnist-1v7", "FastEvoMMC", "generations"), 605932),
        ((RLS, "moons", "Steep-RLS", "largest_ari"), 0.14),
        ((MKC, "ringnorm", "MKC", "rand"), 0.98),
        ((THESIS, "ionosphere", "IterSVR", "accuracy"), 0.6384),
    ],
)
def test_a_figure_is_found_by_its_names(asked, found):
    assert figure(*asked) == found


def test_the_table_tells_figures_of_one_name_apart():
    asked = (THESIS, "ringnorm", "MKC", "accuracy")
    assert figure(*asked, "Tab. 5-3") == figure(*asked) == 0.965
    assert figure(*asked, "Tab. 5-4") == 0.8746


@pytest.mark.parametrize(
    "asked",
    [
        (SKMMC, "iris", "SKMMC", "balanced_error"),
        (SKMMC, "heart", "k-means", "iterations"),
        (EVO, "mnist-1v7", "EvoMMC", "seconds"),
        (MKC, "digits0689", "IterSVR", "rand"),
        (RLS, "coil", "CPMMC", "ari"),
    ],
)
def test_what_was_not_published_is_missing(asked):
    assert np.isnan(figure(*asked))


def test_a_deviation_stands_with_its_mean():
    frame = published().set_index(KEY)["sd"]
    assert frame[(EVO, "Tab. 1", "ionosphere", "k-means", "error")] == 0.179
    assert frame[(RLS, "Tab. I", "moons", "CPMMC", "ari")] == 0.45
    assert np.isnan(frame[(EVO, "Tab. 1", "ionosphere", "CPMMC", "error")])
    assert (published()["sd"].dropna() >= 0).all()


def test_sizes_are_those_of_the_data_sets():
    """Where a paper's data set is one of ours, rows and columns agree, but for what the notes say."""
    facts = {fact["name"]: fact for fact in data_loaders.registry()}
    frame = published().query("metric in ('n_samples', 'n_features') and dataset in @facts")
    ours = pd.Series([facts[row.dataset][row.metric] for row in frame.itertuples()], index=frame.index)
    differ = frame[ours != frame["value"]]
    # 131 rows; 354 x 64 in MKC; some classes of the letters; 1,000 rows drawn.
    known = {"echocardiogram", "ionosphere", "letter", "ringnorm"}
    assert set(differ["dataset"]) == known
    assert set(differ.loc[differ["dataset"] == "ionosphere", "paper"]) == {MKC, THESIS}


def test_an_imbalance_is_that_of_the_classes():
    frame = published().query("metric == 'imbalance'").set_index("dataset")["value"]
    facts = {fact["name"]: fact["class_counts"] for fact in data_loaders.registry()}
    for name in ("heart", "haberman", "german", "mnist-3v8", "a9a"):
        counts = list(facts[name].values())
        assert abs(counts[0] - counts[1]) / sum(counts) == pytest.approx(frame[name], abs=6e-5)


def test_every_figure_of_a_table_has_a_run_in_the_grids():
    frame = coverage()
    assert frame.groupby("paper")["run"].agg(["size", "sum"]).to_numpy().tolist() == [
        [87, 87],
        [160, 160],
        [25, 25],
        [329, 329],
        [110, 110],
    ]


def test_a_figure_without_its_run_is_found_out(monkeypatch):
    """The count follows the grids: a study that leaves a set out leaves its figures without a run."""
    _runs_of.cache_clear()
    monkeypatch.setattr(small, "SETS", small.SETS[1:])
    frame = coverage()
    _runs_of.cache_clear()
    lost = frame[~frame["run"] & (frame["paper"] == SKMMC)]
    assert set(lost["dataset"]) == {"echocardiogram"}
    assert len(lost) == 7 + 7 + 5
