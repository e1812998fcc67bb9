"""A raw table becomes the same numbers from any format, and what cannot be taken is said in one sentence."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import mmcnb
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.samples import open_samples
from mmcnb.samples._base import open_again
from mmcnb.samples.encoding import Encoding
from mmcnb.stores import convert
from mmcnb.stores.archive import read_archive, write_archive
from mmcnb.tables.columns import NUMBERS_ALONE, TableOptions

N = 300
MOST = [f"t{number}" for number in range(N)]


def raw(n=N):
    """Numbers, flags, texts, dates and gaps, and columns that say nothing."""
    i = np.arange(n)
    return pd.DataFrame(
        {
            "id": i + 7,
            "size": np.where(i % 11 == 5, np.nan, (i * i % 97) / 4),
            "count": (i * 7 + 3) % 23,
            "member": i % 3 == 0,
            "colour": [None if k % 13 == 4 else ["red", "blue", "green"][k % 3] for k in i],
            "since": [pd.Timestamp("2024-01-31 10:00:00") + pd.Timedelta(days=int(k * k % 40)) for k in i],
            "note": [f"t{k}" for k in i],
            "empty": np.full(n, np.nan),
        }
    )


KINDS = ["left out", "number", "number", "flag", "text", "date", "left out", "left out"]
NAMES = ["size", "count", "member", "colour_missing", "colour_blue", "colour_green", "colour_red", "since"]
SOURCES = ["size", "count", "member", *["colour"] * 4, "since"]


def expected(frame):
    """The numbers of `raw`, in plain Python."""
    known = sorted(value for value in frame["size"] if value == value)
    median = known[(len(known) - 1) // 2]
    rows = []
    for row in frame.itertuples():
        texts = [
            float(("" if pd.isna(row.colour) else row.colour) == text)
            for text in ("", "blue", "green", "red")
        ]
        size = median if row.size != row.size else row.size
        rows.append([size, row.count, float(row.member), *texts, row.since.timestamp()])
    return rows


def rows_of(samples):
    return samples.block(0, samples.n_samples)


def as_csv(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_parquet(frame, folder):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=70)
    return folder / "rows.parquet"


def as_store(frame, folder):
    convert(as_csv(frame, folder), folder / "rows.zarr")
    return folder / "rows.zarr"


def as_store_of_a_frame(frame, folder):
    convert(frame, folder / "frame.zarr")
    return folder / "frame.zarr"


FORMS = {
    "pandas": lambda frame, folder: frame,
    "pandas of categories": lambda frame, folder: frame.astype({"colour": "category"}),
    "pandas on Arrow": lambda frame, folder: frame.convert_dtypes(dtype_backend="pyarrow"),
    "Polars": lambda frame, folder: pl.from_pandas(frame),
    "Arrow": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "CSV": as_csv,
    "Parquet": as_parquet,
    "store": as_store,
    "store of a frame": as_store_of_a_frame,
}


# --- the same from every format ------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_format_gives_the_same_numbers_names_and_encoding(tmp_path, form):
    frame = raw()
    samples, first = open_samples(FORMS[form](frame, tmp_path)), open_samples(frame)
    assert rows_of(samples).tolist() == expected(frame)
    assert (samples.feature_names, samples.sources) == (NAMES, SOURCES)
    if "store" not in form:
        assert samples.encoding.columns == first.encoding.columns
        assert [one.kind for one in samples.encoding.columns] == KINDS
        assert [one.name for one in samples.encoding.columns] == list(frame.columns)
        found = [note.partition(": ")[2] for note in samples.notes]
        assert found == ["gaps were filled from their column: 27 in 'size'."]


@pytest.mark.parametrize("form", ["CSV", "Parquet", "pandas"])
def test_chosen_columns_keep_their_order(tmp_path, form):
    source = FORMS[form](raw(), tmp_path)
    samples = open_samples(source, options=TableOptions(["count", "size"]))
    assert samples.feature_names == ["count", "size"]
    full = np.array(expected(raw()))
    assert rows_of(samples).tolist() == full[:, [1, 0]].tolist()
    model = mmcnb.CPMMC(random_state=0).fit(source, columns=["count", "size"])
    assert model.predict(source).tobytes() == model.labels_.tobytes()


def test_without_texts_the_sources_are_the_names(tmp_path):
    frame = raw()[["size", "count"]]
    for form in ("CSV", "pandas", "store", "store of a frame"):
        assert open_samples(FORMS[form](frame, tmp_path)).sources == ["size", "count"]


@pytest.mark.parametrize("n", [1, 2, 40_000, 40_001, 100_003])
def test_a_median_is_that_of_the_column_and_of_thinned_rows_if_they_are_many(tmp_path, monkeypatch, n):
    from mmcnb.samples import _npy
    from mmcnb.tables.rows import _ThinnedRows

    monkeypatch.setattr(_ThinnedRows, "most_numbers", 80_000)
    values = np.random.default_rng(0).permutation(n) / 4
    frame = pd.DataFrame({"a": [*values, np.nan], "b": 1.0})
    kept = np.append(values, np.nan)[:: 1 if n + 1 <= 40_000 else 2 if n + 1 <= 80_000 else 4]
    known = np.sort(kept[np.isfinite(kept)])
    median = known[(len(known) - 1) // 2]
    assert rows_of(open_samples(frame))[-1, 0] == median
    assert rows_of(open_samples(as_parquet(frame, tmp_path)))[-1, 0] == median
    monkeypatch.setattr(_npy, "STEP_BYTES", 80_000)
    assert rows_of(open_samples(frame))[-1, 0] == median


def test_a_gap_of_a_later_row_group_takes_the_median(tmp_path):
    frame = pd.DataFrame({"a": (np.arange(N) * 7 % 31) / 2, "b": np.arange(N) % 5 + 0.5})
    frame.loc[250, "a"] = np.nan
    samples = open_samples(as_parquet(frame, tmp_path))
    median = np.sort(frame["a"].dropna())[(N - 2) // 2]
    assert rows_of(samples)[250].tolist() == [median, 0.5]
    assert samples.encoding.features[0].fill == median
    assert samples.notes[0].endswith("gaps were filled from their column: 1 in 'a'.")


def test_a_column_whose_first_row_group_is_empty_is_looked_at_whole(tmp_path):
    frame = pd.DataFrame({"a": np.arange(N) % 7 / 2, "b": np.full(N, np.nan), "c": np.full(N, np.nan)})
    frame.loc[200, "c"] = 4.0
    samples = open_samples(as_parquet(frame, tmp_path))
    assert samples.feature_names == ["a", "c"]
    assert rows_of(samples)[:, 1].tolist() == [4.0] * N


def test_dates_are_read_beside_bad_cells_of_other_columns(tmp_path):
    (tmp_path / "a.csv").write_text("day,a\n2024-01-31,1\n2024-02-01,0x\n")
    samples = mmcnb.read_table(tmp_path / "a.csv", na_values="0x")
    assert rows_of(samples).tolist() == [[1706659200, 1], [1706745600, 1]]


# --- what is taken, and what is left out ---------------------------------------------------------


def test_a_missing_text_is_a_category():
    samples = open_samples(pd.DataFrame({"a": ["x", None, "y", "x"], "b": [1.0, 5, 2, 2]}))
    assert samples.feature_names == ["a_missing", "a_x", "a_y", "b"]
    assert rows_of(samples).tolist() == [[0, 1, 0, 1], [1, 0, 0, 5], [0, 0, 1, 2], [0, 1, 0, 2]]
    assert list(samples.notes) == []


def test_the_text_missing_is_another_category_than_a_gap():
    samples = open_samples(pd.DataFrame({"a": ["missing", None, "y"], "b": [1.0, 5, 2]}))
    assert samples.feature_names == ["a_", "a_missing", "a_y", "b"]
    assert rows_of(samples)[:, :3].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


KINDS_OF_FRAMES = {
    "categories and enums of Polars": (
        lambda: pl.DataFrame(
            {
                "e": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
                "c": pl.Series(["u", None], dtype=pl.Categorical),
            }
        ),
        ["e_a", "e_b", "c_missing", "c_u"],
        [[1, 0, 0, 1], [0, 1, 1, 0]],
    ),
    "sparse beside texts": (
        lambda: pd.DataFrame({"s": pd.arrays.SparseArray([0, 1.5]), "t": ["x", "y"]}),
        ["s", "t_x", "t_y"],
        [[0, 1, 0], [1.5, 0, 1]],
    ),
    "half floats with gaps": (
        lambda: pd.DataFrame({"a": np.array([1, np.nan], np.float16), "t": ["x", "y"]}),
        ["a", "t_x", "t_y"],
        [[1, 1, 0], [1, 0, 1]],
    ),
    "decimals with gaps": (
        lambda: pl.DataFrame({"a": ["1.5", None]}).select(pl.col("a").cast(pl.Decimal(10, 2))),
        ["a"],
        [[1.5], [1.5]],
    ),
    "times of a zone and of a day": (
        lambda: pd.DataFrame(
            {
                "d": pd.to_datetime(["1970-01-01", "1970-01-02"]).tz_localize("Etc/GMT-1"),
                "t": [pd.Timestamp("2020-01-01 00:01").time(), None],
            }
        ),
        ["d", "t"],
        [[-3600, 60], [82800, 60]],
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_FRAMES)
def test_kinds_of_columns_of_frames(kind):
    make, names, rows = KINDS_OF_FRAMES[kind]
    samples = open_samples(make())
    assert (samples.feature_names, rows_of(samples).tolist()) == (names, rows)


def test_rows_that_are_left_out_are_counted_in_a_note(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,5\n,2\n3,4\n")
    samples = mmcnb.read_table(tmp_path / "a.csv", missing="drop")
    assert rows_of(samples).tolist() == [[1, 5], [3, 4]]
    (note,) = samples.notes
    assert note.endswith("a.csv: rows with missing cells were left out and have no number: 1.")
    with pytest.warns(ClusterWarning, match="were left out and have no number: 1"):
        mmcnb.CPMMC(random_state=0).fit(samples)


def test_columns_that_are_no_list_are_refused():
    for columns in (3.5, object()):
        with pytest.raises(InputError, match=r"columns=.* is no list: give one of texts or numbers"):
            mmcnb.CPMMC().fit(raw(), columns=columns)


REASONS = {
    "id": "it numbers the rows",
    "note": f"{N} texts in {N} rows",
    "empty": "it is empty",
}


@pytest.mark.parametrize("form", ["pandas", "CSV", "Parquet"])
def test_columns_that_say_nothing_are_left_out_with_a_reason(tmp_path, form):
    source = FORMS[form](raw(), tmp_path)
    why = {one.name: one.why for one in open_samples(source).encoding.columns if one.kind == "left out"}
    assert why == REASONS
    taken = open_samples(source, options=TableOptions(columns="all", drop="empty")).feature_names
    assert taken == ["id", *NAMES, *sorted(f"note_{text}" for text in MOST)]
    named = open_samples(source, options=TableOptions(columns=["note", "id"]))
    assert named.feature_names == [*sorted(f"note_{text}" for text in MOST), "id"]
    for columns in ("all", ["size", "empty"]):
        with pytest.raises(
            InputError, match=r"column 7 \('empty'\): no cell has a value: leave the column out"
        ):
            open_samples(source, options=TableOptions(columns=columns))


def test_the_listings_of_a_conversion_and_of_a_fit_give_the_reasons(tmp_path):
    path = as_csv(raw(), tmp_path)
    report = convert(path, tmp_path / "a.zarr")
    listed = {one["name"]: one["becomes"] for one in report["columns"]}
    assert listed["colour"] == "a 0/1 column for each text"
    hint = {"it numbers the rows": " (--columns all takes it)"}
    expected = {name: f"left out: {why}{hint.get(why, '')}" for name, why in REASONS.items()}
    assert {name: listed[name] for name in REASONS} == expected
    assert report["cells_filled"] == 27
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(path)
    assert [one["name"] for one in model.report_["columns"]] == list(raw().columns)
    assert {one["name"]: one["why"] for one in model.report_["columns"] if one["name"] in REASONS} == REASONS


@pytest.mark.parametrize("n_texts", [10, 11, 30, 31])
@pytest.mark.parametrize("n", [100, 2000, 4000])
def test_a_text_of_many_values_is_left_out(n, n_texts):
    frame = pd.DataFrame({"a": [f"t{i % n_texts}" for i in range(n)], "b": np.arange(n) % 7 / 2})
    is_taken = n_texts <= min(30, max(10, n // 100))
    assert open_samples(frame).n_features == (n_texts + 1 if is_taken else 1)


@pytest.mark.parametrize(
    ("name", "values", "is_left_out"),
    [
        ("row", np.arange(50), True),
        ("year", np.arange(1990, 2040.0), True),
        ("x", np.arange(50) * 2, False),
        ("customer_id", np.arange(50)[::-1] * 3, True),
        ("userId", np.arange(50)[::-1] * 3, True),
        ("ID", np.arange(50)[::-1] * 3, True),
        ("acid", np.arange(50)[::-1] * 3, False),
        ("id", np.arange(50) // 2, False),
        ("id", np.arange(50)[::-1] / 2, False),
        ("id", np.arange(9), False),
    ],
)
@pytest.mark.parametrize("form", ["pandas", "CSV", "Parquet"])
def test_numbers_of_rows(tmp_path, name, values, is_left_out, form):
    frame = pd.DataFrame({name: values, "b": np.arange(len(values)) % 7 / 2})
    samples = open_samples(FORMS[form](frame, tmp_path))
    assert samples.feature_names == (["b"] if is_left_out else [name, "b"])
    assert rows_of(open_samples(frame[[name]])).tolist() == [
        [value] for value in values
    ]  # it is all there is


def test_the_first_rows_tell_numbers_of_rows_in_every_format(tmp_path, monkeypatch):
    from mmcnb.samples import _npy, _text

    frame = pd.DataFrame({"t": [*range(4000), *range(4000)], "b": np.arange(8000) % 7 / 2})
    monkeypatch.setattr(_text, "PIECE_BYTES", 1000)
    monkeypatch.setattr(_npy, "STEP_BYTES", 1000)
    for form in ("pandas", "CSV", "Parquet"):
        assert open_samples(FORMS[form](frame, tmp_path)).feature_names == ["t", "b"], form


# --- other rows ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mmcnb.CPMMC(random_state=0).fit(raw())


def test_columns_of_a_fit_are_those_of_its_frame(model):
    assert model.feature_names_in_.tolist() == list(raw().columns)
    assert model.n_features_in_ == 8
    assert model.model_.rule.coef.shape == (8,)


@pytest.mark.parametrize("form", ["pandas", "Polars", "CSV", "Parquet"])
def test_other_rows_take_medians_and_texts_of_the_fit(tmp_path, model, form):
    others = raw().iloc[5:90].copy()
    others["colour"] = [None, "pink", *["blue"] * 83]
    whole = others.assign(size=others["size"].fillna(np.sort(raw()["size"].dropna())[136]))
    numbers = np.array(expected(whole))
    numbers[1, 3:7] = 0
    numbers -= model.model_.scaling.mean  # as dates are far from 0
    f = numbers @ model.model_.rule.coef + model.model_.rule.offset
    message = r"gaps took the median .*8 in 'size'|texts that no row of the fit had are 0 .*1 in 'colour'"
    with pytest.warns(ClusterWarning, match=message) as told:
        found = model.decision_function(FORMS[form](others, tmp_path))
    assert found == pytest.approx(f)
    said = " ".join(str(one.message) for one in told)
    assert "texts that no row of the fit had are 0 in all categories: 1 in 'colour'" in said


def test_gaps_and_new_texts_of_later_row_groups_are_both_told(tmp_path, model):
    others = raw()
    others.loc[200:, "colour"] = "pink"
    with pytest.warns(ClusterWarning) as told:
        found = model.predict(as_parquet(others, tmp_path))
    gaps, texts = (str(one.message) for one in told)
    assert gaps.endswith("gaps were filled from their column: 6 in 'size' as far as rows are read.")
    assert texts.endswith("are 0 in all categories: 10 in 'colour' as far as rows are read.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.tobytes() == model.predict(others).tobytes()


@pytest.mark.parametrize("columns", [["a", "b"], ["a", "b", "kind"]])
def test_another_process_reads_the_same_rows_and_says_nothing(tmp_path, columns):
    frame = pd.DataFrame(
        {"a": (np.arange(N) * 7 % 31) / 2, "b": np.arange(N) % 5 + 0.5, "kind": ["x", "y"] * 150}
    )
    frame.loc[250, "a"] = np.nan
    samples = open_samples(as_parquet(frame[columns], tmp_path))
    for _ in range(2):  # before and after the gap is seen
        open_again.cache_clear()
        assert (
            rows_of(pickle.loads(pickle.dumps(samples))).tolist()
            == rows_of(open_samples(frame[columns])).tolist()
        )
        rows_of(samples)


def test_rows_without_the_columns_that_were_left_out_and_in_another_order_are_labelled(model):
    others = raw()[["since", "colour", "count", "size", "member"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.predict(others).tobytes() == model.labels_.tobytes()


BAD_ROWS = {
    "no column": (lambda frame: frame.drop(columns="size"), "no column is named 'size' among .*perhaps|name"),
    "numbers for texts": (
        lambda frame: frame.assign(colour=1.5),
        r"column 4 \('colour'\) has values of type double, and was a text in the fit: make it a text again",
    ),
    "texts for numbers": (
        lambda frame: frame.assign(size="x"),
        r"column 1 \('size'\) has values of type .*string.*, and was a number in the fit: make it a number",
    ),
    "an infinite cell": (
        lambda frame: frame.assign(size=[1.0, np.inf, *range(N - 2)]),
        r"row 1, column 1 \('size'\): the cell is infinite: correct it, or leave its row out\.$",
    ),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_rows_that_cannot_be_labelled_are_refused_in_one_sentence(model, kind):
    change, match = BAD_ROWS[kind]
    with pytest.raises(InputError, match=match) as caught:
        model.predict(change(raw()))
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


def test_a_text_column_of_numbers_is_read_as_texts_from_csv(tmp_path, model):
    path = as_csv(raw().assign(colour=range(N)), tmp_path)
    with pytest.warns(ClusterWarning, match="are 0 in all categories: 300 in 'colour'"):
        model.predict(path)


def test_a_bad_cell_of_a_csv_to_label_has_a_remedy_that_is_there(tmp_path, model):
    frame = raw().astype({"count": object})
    frame.loc[20, "count"] = "many"
    with pytest.raises(InputError, match=r"line 22, column 2 .*'many' is not a number: correct it, or leave"):
        model.predict(as_csv(frame, tmp_path))


def test_a_model_of_plain_numbers_takes_no_text_gap_or_numbering_of_other_rows(tmp_path):
    plain = pd.DataFrame({"a": [0.5, 0.25, 9, 9.5] * 5, "b": [1.0, 2, 30, 31] * 5})
    model = mmcnb.CPMMC(random_state=0).fit(plain)
    counted = plain.assign(a=np.arange(20.0))
    assert len(model.predict(counted)) == 20
    assert model.predict(as_csv(counted, tmp_path)).tobytes() == model.predict(counted).tobytes()
    for bad, match in (
        (plain.assign(a=[np.nan, *range(19)]), r"row 0, column 0 \('a'\): the cell has no value"),
        (plain.assign(b="x"), r"row 0, column 1 \('b'\): 'x' is not a number"),
    ):
        with pytest.raises(InputError, match=match):
            model.predict(bad)


def test_a_gap_of_other_rows_takes_the_median_of_a_fit_without_gaps():
    numbers = raw()[["id", "count"]]
    model = mmcnb.CPMMC(random_state=0).fit(numbers)
    assert model.model_.encoding.features[0].fill == np.sort(numbers["count"])[(N - 1) // 2]
    with pytest.warns(ClusterWarning, match="gaps were filled from their column: 1 in 'count'"):
        labels = model.predict(numbers.assign(count=[np.nan, *range(N - 1)]))
    filled = numbers.assign(count=[model.model_.encoding.features[0].fill, *range(N - 1)])
    np.testing.assert_array_equal(labels, model.predict(filled))


def test_an_array_is_labelled_by_a_model_of_a_table_of_numbers(tmp_path):
    frame = raw()[["count", "size"]].fillna(0)
    model = mmcnb.CPMMC(random_state=0).fit(as_csv(frame, tmp_path))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert model.predict(frame.to_numpy()).tobytes() == model.labels_.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match="3 features, but CPMMC is expecting 2"):
            model.predict(np.ones((4, 3)))


def test_a_table_without_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i * i % 7},{'xy'[i % 2]},{i % 5}\n" for i in range(40)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = mmcnb.read_table(path, header="no")
        model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table)
    assert model.predict(path).tobytes() == model.labels_.tobytes()
    assert (model.n_features_in_, hasattr(model, "feature_names_in_")) == (3, False)
    assert [one["name"] for one in model.report_["columns"]] == ["0", "1", "2"]
    path.write_text("1,x\n2,y\n")
    with pytest.raises(
        InputError, match="has 2 columns, and the fit had 3: give rows with the columns of the"
    ):
        model.predict(path)


# --- bad input of a fit --------------------------------------------------------------------------


def mixed(*values):
    return pd.DataFrame({"a": pd.Series(values, dtype=object), "b": np.arange(len(values)) / 2})


BAD_FRAMES = {
    "all of text": (
        lambda: pd.DataFrame({"a": MOST, "b": MOST}),
        r"no column is left as a feature: name those to take \(columns\); column 0 \('a'\): 300 texts in 300",
        lambda frame: TableOptions(columns=["a"]),
    ),
    "one column of text": (
        lambda: pd.DataFrame({"a": MOST}),
        r"no column is left as a feature: .*column 0 \('a'\): 300 texts",
        lambda frame: TableOptions(columns="all"),
    ),
    "empty columns": (
        lambda: pd.DataFrame({"a": [np.nan] * 3, "b": [None] * 3}),
        r"no column is left as a feature: .*column 0 \('a'\): it is empty; column 1 \('b'\): it is empty",
        None,
    ),
    "10,000 categories": (
        lambda: pd.DataFrame({"a": [f"t{i}" for i in range(10_000)], "b": np.arange(10_000) / 2}),
        r"column 0 \('a'\): there are more than 1000 different texts, .*: leave the column out\.",
        lambda frame: TableOptions(),
        {"columns": "all"},
    ),
    "infinite": (
        lambda: pd.DataFrame({"a": [1.0, -np.inf, 3], "b": ["x", "x", "y"]}),
        r"row 1, column 0 \('a'\): the cell is infinite: correct it, or leave such rows out\.",
        lambda frame: frame.drop(index=1),
    ),
    "mixed": (
        lambda: mixed(1, 2, "x"),
        r"row 2, column 'a': 'x' is of another type than the values before \(int and str\)",
        lambda frame: frame.assign(a=frame["a"].astype(str)),
    ),
    "mixed with gaps": (
        lambda: mixed(None, 1.5, pd.NA, "x", np.nan),
        r"row 3, column 'a': 'x' is of another type than the values before \(float and str\)",
        lambda frame: frame.assign(a=frame["a"].astype(str)),
    ),
    "arrays and texts": (
        lambda: mixed(np.eye(2), "x"),
        r"row 1, column 'a': 'x' is of another type than the values before \(ndarray and str\)",
        lambda frame: frame.drop(columns="a"),
    ),
    "objects": (
        lambda: mixed(object(), object()),
        r"row 0, column 'a': <object .* is no number, text or date \(object\)",
        lambda frame: frame.drop(columns="a"),
    ),
    "half a character": (
        lambda: mixed("\ud800", "x"),
        r"row 0, column 'a': '\\ud800' is no number, text or date \(str\)",
        lambda frame: frame.drop(columns="a"),
    ),
    "complex": (
        lambda: pd.DataFrame({"a": [1j, 2j], "b": [1, 3]}),
        r"row 0, column 'a': .*1j.* is no number, text or date \(complex128\)",
        lambda frame: frame.drop(columns="a"),
    ),
    "huge whole numbers": (
        lambda: mixed(2**70, 1),
        r"row 0, column 'a': 1180591620717411303424 is no number",
        lambda frame: frame.drop(columns="a"),
    ),
    "intervals": (
        lambda: pd.DataFrame({"a": pd.interval_range(0, 3), "b": [1, 3, 2]}),
        r"row 0, column 0 \('a'\): .* and not a number: leave the column out",
        lambda frame: frame.drop(columns="a"),
    ),
    "periods": (
        lambda: pd.DataFrame({"a": pd.period_range("2024", periods=3, freq="M"), "b": [1, 3, 2]}),
        r"row 0, column 0 \('a'\): .* and not a number: leave the column out",
        lambda frame: frame.drop(columns="a"),
    ),
    "lists": (
        lambda: pd.DataFrame({"a": [[1], [2]], "b": [1, 3]}),
        r"row 0, column 0 \('a'\): .*1.* is of type list.* and not a number: leave the column out",
        lambda frame: frame.drop(columns="a"),
    ),
    "names twice": (
        lambda: pd.DataFrame([["x", 1], ["y", 2]], columns=["a", "a"]),
        "the data frame has two columns 'a': rename or drop one of them",
        lambda frame: frame.set_axis(["a", "b"], axis=1),
    ),
    "no columns": (lambda: pd.DataFrame(index=range(3)), "no column is left as a feature|no columns", None),
}


@pytest.mark.parametrize("form", ["pandas", "CSV", "Parquet"])
@pytest.mark.parametrize("columns", [[*raw()], ["size"]])
def test_a_table_without_rows_is_refused(tmp_path, form, columns):
    with pytest.raises(InputError, match=r"0 sample|no rows|no column is left as a feature"):
        mmcnb.CPMMC(random_state=0).fit(FORMS[form](raw()[columns].iloc[:0], tmp_path))


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_a_frame_that_cannot_be_taken_ends_in_a_sentence_whose_remedy_works(kind):
    make, match, remedy, *given = BAD_FRAMES[kind]
    frame = make()
    with pytest.raises(InputError, match=match) as caught:
        open_samples(frame, options=TableOptions(**given[0]) if given else None)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)
    if remedy is not None:
        better = remedy(frame)
        options = better if isinstance(better, TableOptions) else None
        samples = open_samples(frame if options else better, options=options)
        assert np.isfinite(rows_of(samples)).all()


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": ["x", "y"] * 20}),
        pd.DataFrame({"a": ["x"] * 40, "b": 1}),
        pd.DataFrame({"a": [True] * 40}),
        pd.DataFrame({"a": [1.0, None] * 20}),
        pd.DataFrame({"a": pd.to_datetime(["2024-01-31", None] * 20)}),
    ],
    ids=["one text", "constants", "one constant flag", "one number with gaps", "one date with gaps"],
)
def test_little_tables_are_fitted_or_refused_in_one_sentence(tmp_path, frame):
    found = []
    for source in (frame, as_csv(frame, tmp_path), as_parquet(frame, tmp_path)):
        model = mmcnb.MaximumMarginClustering(2, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found.append(model.fit(source).labels_.tolist())
            except InputError as error:
                found.append(str(error).replace(open_samples(source).name, "rows"))
    assert found[0] == found[1] == found[2]
    assert "\n" not in found[0]


CSV_FAULTS = {
    "a date that cannot be read": (
        "day,a\n" + "2024-01-31,1\n" * 5 + "soon,2\n",
        r"line 7, column 0 \('day'\): 'soon' is no date as those before: correct it, or .* with --drop day",
        {"drop": "day"},
    ),
    "no such day": (
        "day,a\n2024-01-31,1\n2024-02-01,1\n" + "2024-01-31,1\n" * 5000 + "2024-02-31,2\n",
        r"line 5004, column 0 \('day'\): '2024-02-31' is no date",
        {"drop": "day"},
    ),
    "infinite": (
        "a,b\n1,2\n-inf,3\n5,1\n",
        r"line 3, column 0 \('a'\): the cell is infinite: correct it, or leave such rows out with --missing",
        {"missing": "drop"},
    ),
    "names twice": (
        "a,a\nx,1\ny,2\n",
        "columns 0 and 1 are both named 'a': rename one, or leave one out with --drop 1",
        {"drop": 1},
    ),
    "10,000 categories": (
        "a,b\n" + "".join(f"t{i},{i % 7}\n" for i in range(10_000)),
        r"column 0 \('a'\): there are more than 1000 different texts, .*--drop a",
        {"drop": "a"},
        {"columns": "all"},
    ),
    "all of text": (
        "a,b\n" + "".join(f"t{i},u{i}\n" for i in range(40)),
        r"no column is left as a feature: name those to take \(columns\); column 0 \('a'\): 40 texts",
        {"columns": "a"},
    ),
}


@pytest.mark.parametrize("kind", CSV_FAULTS)
def test_a_text_that_cannot_be_taken_ends_in_a_sentence_whose_remedy_works(tmp_path, kind):
    text, match, remedy, *given = CSV_FAULTS[kind]
    (tmp_path / "a.csv").write_text(text)
    options = given[0] if given else {}
    with pytest.raises(InputError, match=match) as caught:
        mmcnb.read_table(tmp_path / "a.csv", **options)
    assert "\n" not in str(caught.value)
    assert np.isfinite(rows_of(mmcnb.read_table(tmp_path / "a.csv", **options | remedy))).all()


def test_a_frame_of_numbers_keeps_its_rows():
    frame = pd.DataFrame(np.array([[1.0, 5], [4, 3]]), columns=["a", "b"], copy=False)
    for options in (None, NUMBERS_ALONE):
        samples = open_samples(frame, options=options)
        assert samples.encoding is None
        assert np.shares_memory(samples.block(0, 2), frame.to_numpy(copy=False))


# --- the encoding in a model file ----------------------------------------------------------------


def test_an_encoding_is_read_back_from_a_model_file(tmp_path, model):
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.model_.encoding == model.model_.encoding == open_samples(raw()).encoding
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert again.predict(raw()).tobytes() == model.labels_.tobytes()


HOSTILE = {
    "a number": lambda encoding: 5,
    "no columns": lambda encoding: {**encoding, "columns": None},
    "fewer columns": lambda encoding: {**encoding, "columns": encoding["columns"][:-1]},
    "more categories": lambda encoding: changed(encoding, categories=["", "a", "b", "c", "d"]),
    "numbers as categories": lambda encoding: changed(encoding, categories=["", 1, 2, 3]),
    "an unknown kind": lambda encoding: changed(encoding, kind="code"),
    "a name that is none": lambda encoding: changed(encoding, name=None),
    "a fill that is no number": lambda encoding: changed(encoding, fill="1"),
    "a fill of NaN": lambda encoding: changed(encoding, fill=float("nan")),
    "another field": lambda encoding: changed(encoding, path="/etc/passwd"),
    "another option": lambda encoding: {**encoding, "options": [["dtype", "float32"]]},
    "an option that is no text": lambda encoding: {**encoding, "options": [["na_values", 5]]},
    "a mark that is no text": lambda encoding: {**encoding, "options": [["na_values", [5]]]},
    "an option that is a mapping": lambda encoding: {**encoding, "options": [["header", {}]]},
    "a name of an option that is a list": lambda encoding: {**encoding, "options": [[["header"], "yes"]]},
    "no truth": lambda encoding: {**encoding, "has_names": "yes"},
}


def changed(encoding, **fields):
    """The encoding with another column "colour"."""
    columns = [one | fields if one["name"] == "colour" else one for one in encoding["columns"]]
    return {**encoding, "columns": columns}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_encoding_in_a_model_file_is_refused(tmp_path, model, kind):
    model.save(tmp_path / "model")
    header, arrays = read_archive(tmp_path / "model")
    text = json.dumps(header)
    assert json.dumps(model.model_.encoding.to_dict()) in text
    hostile = HOSTILE[kind](json.loads(json.dumps(model.model_.encoding.to_dict())))
    text = text.replace(json.dumps(model.model_.encoding.to_dict()), json.dumps(hostile))
    write_archive(tmp_path / "model", json.loads(text), arrays)
    with pytest.raises(
        InputError, match=r"model holds a model that cannot be: (encoding|coef|mean) .*; fit again\.$"
    ) as caught:
        mmcnb.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_an_encoding_is_restored_from_json():
    encoding = open_samples(raw()).encoding
    assert Encoding.restore(json.loads(json.dumps(encoding.to_dict()))) == encoding


def test_a_warning_names_the_column_that_it_is_about():
    frame = raw()[["id", "count", "colour"]].assign(weight=np.arange(N) * 7 % 100 * 1e6)
    with pytest.warns(ClusterWarning, match="column 'weight' has more than 99% of the variance"):
        mmcnb.CPMMC(random_state=0).fit(frame)


def test_a_gap_takes_the_mean_if_it_is_asked_for(tmp_path):
    values = np.random.default_rng(0).normal(size=50)
    frame = pd.DataFrame({"a": [*values, np.nan], "b": [*values[::-1], 0.5]})
    for path in (as_csv(frame, tmp_path), as_parquet(frame, tmp_path)):
        rows = rows_of(mmcnb.read_table(path, missing="mean", dtype="float64"))
        assert rows[-1, 0] == pytest.approx(values.mean(), rel=1e-12)
        assert rows[-1, 1] == 0.5
