"""Numbers such as -999, far outside all others of their column, are gaps."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mmcnb
from mmcnb.cli import main
from mmcnb.samples.encoding import Encoding
from mmcnb.tables.sentinels import MARKS, KnownMarks
from tests.samples.common import one_sentence

N = 300


def ages():
    """Whole numbers from 18 to 79, and the rows in which a mark may be."""
    return np.random.default_rng(0).integers(18, 80, N).astype(float)


def frame_of(*marks, values=None, every=50):
    """A column with marks in some rows each, and one of plain numbers."""
    values = ages() if values is None else np.array(values, float)
    for first, mark in enumerate(marks):
        values[first::every] = mark
    other = np.random.default_rng(1).normal(size=len(values))
    return pd.DataFrame({"age": values, "other": other})


def marks_in(source, **options):
    """The gaps that are found in the first column."""
    samples = mmcnb.read_table(source, **options)
    return dict.fromkeys(samples.encoding.columns[0].marks)


@pytest.mark.parametrize(
    "marks",
    [
        (-9,),
        (-99, 999),
        (-9999, 9999),
        (-99, -98, -97),
        (-32768,),
        (2**31 - 1,),
        (-(2.0**63),),
        (-999.25,),
        (999.9,),
        (1e20,),
        (9.969209968386869e36,),
        (-3.4028234663852886e38,),
    ],
)
def test_a_known_mark_far_outside_all_others_is_a_gap(marks):
    narrow = ages() / 20 + 7  # so that -9 is far
    frame = frame_of(*marks, values=narrow)
    holes = frame.assign(age=frame["age"].mask(frame["age"].isin(marks)))
    samples = mmcnb.open_samples(frame)
    known = mmcnb.open_samples(holes)
    np.testing.assert_array_equal(samples.block(0, N), known.block(0, N))
    note = samples.notes[0]
    for mark in marks:
        n_rows = np.count_nonzero(frame["age"] == mark)
        assert (
            f"{str(float(mark)).removesuffix('.0')} in {n_rows} rows of 'age'" in note
        )


@pytest.mark.parametrize(
    ("values", "mark", "every"),
    [
        (ages(), 99, 50),  # not far
        (ages(), -1, 50),
        (ages(), -777, 50),  # not known
        (ages(), -999, N),  # once
        (np.arange(N) % 4, 99, 50),  # a code among few
        (np.arange(N) % 2, -1, 50),
        (np.full(N, 7.0), -999, 50),  # no range
        (np.r_[ages()[:-1], -1e6], -999, 50),  # not at an end
        (np.geomspace(1, 99, N), 99, 50),
    ],
)
def test_other_numbers_are_no_gaps(values, mark, every):
    frame = frame_of(mark, values=values, every=every)
    samples = mmcnb.open_samples(frame)
    assert samples.notes == []
    assert np.count_nonzero(samples.block(0, N)[:, 0] == mark) >= 1
    assert samples.encoding.is_ordered  # as frames without gaps are


def test_a_negative_mark_among_two_values_is_a_gap():
    samples = mmcnb.open_samples(frame_of(-9, values=np.arange(N) % 2))
    assert np.unique(samples.block(0, N)[:, 0]).tolist() in ([0, 1], [0, 0.5, 1])


@pytest.mark.parametrize("rounded", [np.float32, np.float64])
def test_marks_are_found_as_float32_rounds_them(rounded):
    frame = frame_of(-999.9).astype(rounded)
    for source in (frame, frame.astype(np.float64)):
        samples = mmcnb.open_samples(source)
        assert "-999.9 in 6 rows" in samples.notes[0]
        assert samples.block(0, N)[:, 0].min() >= 18


def test_large_marks_do_not_make_a_file_float64(tmp_path):
    frame = frame_of(2**31 - 1)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert mmcnb.open_samples(tmp_path / "rows.csv").dtype == np.float32


def plainly(values):
    """The known marks of a column, found by a sort of all its values."""
    values = values[~np.isnan(values)]
    distinct, counts = np.unique(values, return_counts=True)
    is_known = np.array([value in MARKS or np.isinf(value) for value in distinct], bool)
    low, high = distinct[~is_known][[0, -1]] if not is_known.all() else (1, 0)
    found = {}
    for mark in sorted(distinct[is_known], key=lambda v: max(low - v, v - high)):
        gap = max(low - mark, mark - high)
        n = int(counts[distinct == mark][0])
        widths = 1 if n >= 5 and n >= 0.01 * values.size else 3
        few = distinct.size < 6 and not mark < 0 <= low
        if np.isinf(mark) or low >= high:
            continue
        if n > 1 and gap > widths * (high - low) and not few:
            found[MARKS[mark]] = n
        else:
            low, high = min(low, mark), max(high, mark)
    return found


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(60))
def test_any_pieces_of_rows_show_the_marks_that_a_sort_shows(seed):
    random = np.random.default_rng(seed)
    marks = random.choice([-999, -99, -9, -1, 99, 999, 1e20, np.inf, -np.inf, 7], 3)
    values = random.integers(0, random.choice([2, 9, 80, 120]), 90).astype(float)
    for mark in marks:
        values[random.random(90) < random.choice([0.01, 0.03, 0.2])] = mark
    n_values = np.unique(values).size
    for n_rows in (90, 31, 7, 1):
        known = KnownMarks(1, [0])
        for start in range(0, 90, n_rows):
            known.add(values[start : start + n_rows, None])
        assert known.find(0, n_values) == plainly(values)


def test_arrays_keep_known_marks(tmp_path):
    rows = frame_of(-999).to_numpy()
    np.save(tmp_path / "rows.npy", rows)
    rows[5, 1] = np.nan  # rows with gaps are read as tables are
    for source in (rows, tmp_path / "rows.npy"):
        samples = mmcnb.read_table(source, missing="median")
        assert np.count_nonzero(samples.block(0, N)[:, 0] == -999) == 6


def test_tables_of_very_many_columns_are_not_searched():
    frame = frame_of(-999)
    for n_columns, is_gap in ((100, True), (101, False)):
        names = [f"x{k}" for k in range(n_columns)]
        wide = pd.DataFrame(dict.fromkeys(names, frame["age"]))
        assert (mmcnb.open_samples(wide).block(0, N).min() > 0) == is_gap


# --- how numbers are kept -------------------------------------------------------------


@pytest.fixture(params=["CSV", "Parquet", "Excel", "JSON", "pandas", "polars"])
def source(request, tmp_path):
    """A table with -999 in two columns, by one of the ways in."""
    frame = frame_of(-999).assign(pay=frame_of(-999)["age"] * 2.5)
    writers = {
        "CSV": (frame.to_csv, "rows.csv", {"index": False}),
        "Parquet": (frame.to_parquet, "rows.parquet", {}),
        "Excel": (frame.to_excel, "rows.xlsx", {"index": False}),
        "JSON": (frame.to_json, "rows.jsonl", {"orient": "records", "lines": True}),
    }
    if request.param == "pandas":
        return frame
    if request.param == "polars":
        return pl.from_pandas(frame)
    write, name, options = writers[request.param]
    write(tmp_path / name, **options)
    return tmp_path / name


def test_options_keep_the_numbers(source):
    assert marks_in(source) == {-999: None}
    for na_values in ("", {"age": ""}, {"age": ["n.v.", ""]}, ["n.v.", ""]):
        assert marks_in(source, na_values=na_values) == {}
    for na_values in ("n.v.", {"pay": ""}):
        assert marks_in(source, na_values=na_values) == {-999: None}
    assert marks_in(source, na_values=[-1]) == {-1: None, -999: None}


def test_refusing_gaps_keeps_the_numbers_and_dropping_drops_their_rows(source):
    samples = mmcnb.read_table(source, missing="refuse")
    assert samples.block(0, N)[:, 0].min() == -999
    for columns in (None, "all"):
        samples = mmcnb.read_table(source, columns, missing="drop")
        assert samples.n_samples == N - 6
    with one_sentence("the cell is -999"):
        mmcnb.read_table(source, na_values=[-999], missing="refuse")


def test_a_batch_has_the_gaps_of_the_fit():
    """Also if it has too few rows to show them."""
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(frame_of(-999))
    batch = frame_of()[:3]
    marked = batch.copy()
    marked.loc[1, "age"] = -999
    batch.loc[1, "age"] = np.nan
    assert model.predict(marked).tolist() == model.predict(batch).tolist()
    scores = [model.decision_function(rows) for rows in (marked, batch)]
    np.testing.assert_array_equal(*scores)


# --- the command line -----------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")
    return tmp_path


def test_na_values_at_predict_take_the_place_of_those_of_the_fit(here):
    random = np.random.default_rng(3)
    number = np.arange(N) % 2
    frame = pd.DataFrame(
        random.normal(number[:, None] * 9, size=(N, 2)), columns=["a", "b"]
    )
    frame.loc[::50, "a"] = -999
    frame.to_parquet("rows.parquet")
    fit = ["fit", "rows.parquet", "--method", "cpmmc", "--model", "m"]
    assert main([*fit, "--na-values=-5555"]) == 0
    columns = mmcnb.load("m").model_.encoding.columns
    assert columns[0].marks == (-5555, -999)

    def margins(name, *words):
        command = ["predict", "m", name, "--labels", "l.csv", "--overwrite"]
        assert main([*command, *words]) == 0
        return pd.read_csv("l.csv")["margin"].to_numpy()

    batch = frame[:50].copy()
    for name, value in {
        "gap": None,
        "mark": -5555.0,
        "known": -999.0,
        "new": -7.5,
    }.items():
        batch.loc[3, "a"] = value
        batch.to_parquet(f"{name}.parquet")
    gap = margins("gap.parquet")
    for name, words, is_gap in (
        ("mark", [], True),
        ("known", [], True),
        ("new", [], False),
        ("new", ["--na-values=-7.5"], True),
        ("mark", ["--na-values=-7.5"], False),
        ("known", ["--na-values=-7.5"], True),
        ("known", ["--na-values", ""], False),
        ("known", ["--na-values", "a="], False),
        ("known", ["--na-values", "b="], True),
    ):
        assert np.allclose(margins(f"{name}.parquet", *words), gap) is is_gap, name


def converted(*words):
    """The first column that `mmcnb convert` makes of rows.csv."""
    assert main(["convert", "rows.csv", "rows.zarr", "--overwrite", *words]) == 0
    return mmcnb.open_samples("rows.zarr").block(0, 40)[:, 0].tolist()


def test_commas_are_between_marks_on_the_command_line(here):
    cells = ['"1,000"', "8", "n.v.", "later"] * 5 + [str(k) for k in range(20)]
    (here / "rows.csv").write_text("a,b\n" + "".join(f"{cell},1.5\n" for cell in cells))
    words = ("--na-values", "n.v., later", "--thousands", ",")
    median = float(np.median([1000] * 5 + [8] * 5 + [*range(20)]))
    assert converted(*words)[:4] == [1000, 8, median, median]
    median = float(np.median([8] * 5 + [*range(20)]))
    quoted = '"1,000"'
    for more in (
        [*words, "--na-values", quoted],
        ["--na-values", f"a={quoted},n.v.,later"],
    ):
        assert converted(*more)[:4] == [median, 8, median, median]


def test_commas_are_a_part_of_marks_in_python(here):
    texts = ["n.v., later"] * 5 + [str(k * k) for k in range(35)]
    frame = pd.DataFrame({"a": texts, "b": range(40)}).assign(b=lambda f: f["b"] % 7)
    samples = mmcnb.read_table(frame, na_values="n.v., later")
    assert samples.feature_names == ["a", "b"]
    assert mmcnb.read_table(frame, na_values="later").feature_names == ["b"]


def test_models_of_03_keep_marks_between_commas():
    frame = pd.DataFrame({"a": [str(k) for k in range(40)], "b": range(40)})
    encoding = mmcnb.read_table(frame, "all", na_values=["n.v.,later"]).encoding
    stored = encoding.to_dict()
    assert dict(Encoding.restore(stored).options)["na_values"] == ("n.v.,later",)
    for column in stored["columns"]:
        del column["marks"]  # which 0.3 did not store
    marks = dict(Encoding.restore(stored).options)["na_values"]
    assert marks == ("n.v.,later", "n.v.", "later")


@pytest.mark.parametrize(
    "name", ["a,b", 'q"x"', "two words", "k=v", "d'or", "price ($)"]
)
def test_any_name_can_stand_before_marks(name, here):
    frame = frame_of(-999).rename(columns={"age": name})
    frame.to_csv("rows.csv", index=False)
    assert min(converted()) == 18
    assert min(converted("--na-values", f"{name}=")) == -999
    assert min(converted("--na-values", f"{name}=-1,-2")) == 18


def test_marks_of_no_column_are_refused(here):
    frame_of(-999).to_csv("rows.csv", index=False)
    for wrong in ("agee", "0"):
        with one_sentence(f"no column is named '{wrong}'.*perhaps 'age' is meant"):
            mmcnb.read_table("rows.csv", na_values={wrong: ""})
