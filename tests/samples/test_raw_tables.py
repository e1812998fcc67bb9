"""A raw table becomes the same numbers from any format, and a model takes other rows as those of its fit."""

import json
import math
import pickle
import statistics
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mmcnb
from mmcnb import open_samples
from mmcnb.errors import ClusterWarning
from mmcnb.stores import convert
from mmcnb.stores.archive import read_archive, write_archive
from mmcnb.tables.options import NUMBERS_ALONE, TableOptions
from tests.samples.common import as_csv, as_parquet, one_sentence, rows_of

N = 300


def raw(n=N):
    """Numbers, flags, texts, dates and gaps, and columns that say nothing."""
    i = np.arange(n)
    return pd.DataFrame(
        {
            "id": i + 7,
            "size": np.where(i % 11 == 5, np.nan, (i * i % 97) / 4),
            "count": (i * 7 + 3) % 23,
            "member": i % 3 == 0,
            "colour": [
                None if k % 13 == 4 else ["red", "blue", "green"][k % 3] for k in i
            ],
            "since": [
                pd.Timestamp("2024-01-31 10:00:00") + pd.Timedelta(days=int(k * k % 40))
                for k in i
            ],
            "note": [f"t{k}" for k in i],
            "empty": np.full(n, np.nan),
        }
    )


KINDS = ["left out", "number", "number", "flag", "text", *["left out"] * 3]
NAMES = [
    "size",
    "count",
    "member",
    "colour_missing",
    "colour_blue",
    "colour_green",
    "colour_red",
]
NOTES = sorted(f"note_t{number}" for number in range(N))


def expected(frame, *kept):
    """The numbers of `raw` and of columns kept, in plain Python."""
    median = statistics.median(value for value in frame["size"] if value == value)
    rows = []
    for row in frame.itertuples():
        texts = [
            float(("" if pd.isna(row.colour) else row.colour) == text)
            for text in ("", "blue", "green", "red")
        ]
        size = median if row.size != row.size else row.size
        seconds = [getattr(row, name).timestamp() for name in kept]
        rows.append([size, row.count, float(row.member), *texts, *seconds])
    return rows


def as_store(frame, folder):
    convert(as_csv(frame, folder), folder / "rows.zarr")
    return folder / "rows.zarr"


def as_store_of_a_frame(frame, folder):
    convert(frame, folder / "frame.zarr")
    return folder / "frame.zarr"


FORMS = {
    "pandas": lambda frame, folder: frame,
    "pandas of categories": lambda frame, folder: frame.astype({"colour": "category"}),
    "pandas on Arrow": lambda frame, folder: frame.convert_dtypes(
        dtype_backend="pyarrow"
    ),
    "Polars": lambda frame, folder: pl.from_pandas(frame),
    "Arrow": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "CSV": as_csv,
    "Parquet": as_parquet,
    "store": as_store,
    "store of a frame": as_store_of_a_frame,
}
in_three_forms = pytest.mark.parametrize("form", ["pandas", "CSV", "Parquet"])


# --- the same from every format -------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_format_gives_the_same_numbers_names_and_encoding(tmp_path, form):
    frame = raw()
    samples = open_samples(FORMS[form](frame, tmp_path))
    assert rows_of(samples).tolist() == expected(frame)
    assert samples.feature_names == NAMES
    assert samples.sources == ["size", "count", "member", *["colour"] * 4]
    if "store" not in form:
        of_frame = open_samples(frame).encoding.columns
        # Texts of dates have a form, and dates of a frame need none.
        assert [replace(one, form=None) for one in samples.encoding.columns] == [
            replace(one, form=None) for one in of_frame
        ]
        assert [one.kind for one in samples.encoding.columns] == KINDS
        assert [one.name for one in samples.encoding.columns] == list(frame.columns)
        left_out, filled = samples.notes
        assert "4 columns are left out: 'id' (it numbers the rows)" in left_out
        remedy = "keep=['id', 'since', 'note'] (--keep id --keep since --keep note)"
        assert f"{remedy} keeps them" in left_out
        assert filled.endswith(": gaps were filled from their column: 27 in 'size'.")


@in_three_forms
def test_chosen_columns_keep_their_order(tmp_path, form):
    source = FORMS[form](raw(), tmp_path)
    samples = open_samples(source, options=TableOptions(["count", "size"]))
    assert samples.feature_names == samples.sources == ["count", "size"]
    assert rows_of(samples).tolist() == np.array(expected(raw()))[:, [1, 0]].tolist()
    model = mmcnb.CPMMC(random_state=0).fit(source, columns=["count", "size"])
    assert model.predict(source).tobytes() == model.labels_.tobytes()


@pytest.mark.parametrize("n", [1, 2, 524_287, 524_288, 1_100_000])
def test_a_median_is_that_of_the_column_and_of_thinned_rows_if_they_are_many(
    tmp_path, n
):
    """Of two columns, more than 2**19 rows are many."""
    values = np.random.default_rng(0).permutation(n) / 4
    frame = pd.DataFrame({"a": [*values, np.nan], "b": 1.0})
    step = 1 if n < 2**19 else 2 if n < 2**20 else 4
    median = np.nanmedian(frame["a"][::step])
    assert rows_of(frame)[-1, 0] == median
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=100_000)
    assert open_samples(path).encoding.features[0].fill == median


def test_a_gap_of_a_later_row_group_takes_the_median(tmp_path):
    frame = pd.DataFrame(
        {"a": (np.arange(N) * 7 % 31) / 2, "b": np.arange(N) % 5 + 0.5}
    )
    frame.loc[250, "a"] = np.nan
    samples = open_samples(as_parquet(frame, tmp_path))
    median = np.sort(frame["a"].dropna())[(N - 2) // 2]
    assert rows_of(samples)[250].tolist() == [median, 0.5]
    assert samples.notes[0].endswith("gaps were filled from their column: 1 in 'a'.")
    # another process reads the same, before and after the gap is read
    for _ in range(2):
        assert (
            rows_of(pickle.loads(pickle.dumps(samples))).tolist()
            == rows_of(frame).tolist()
        )


def test_a_column_whose_first_row_group_is_empty_is_looked_at_whole(tmp_path):
    frame = pd.DataFrame(
        {"a": np.arange(N) % 7 / 2, "b": np.full(N, np.nan), "c": np.full(N, np.nan)}
    )
    frame.loc[200, "c"] = 4.0
    samples = open_samples(as_parquet(frame, tmp_path))
    assert samples.feature_names == ["a", "c"]
    assert rows_of(samples)[:, 1].tolist() == [4.0] * N


# --- kinds of columns -----------------------------------------------------------------


def first(**columns):
    return pd.DataFrame({"fine": np.arange(0, 3, 1.0) * 2, **columns})


# One minute after midnight, on a circle.
MINUTE = [math.sin(60 * (2 * math.pi / 86400)), math.cos(60 * (2 * math.pi / 86400))]
KINDS_OF_FRAMES = {
    "texts": (
        lambda: first(city=list("xyz")),
        ["fine", "city_x", "city_y", "city_z"],
        [[0, 1, 0, 0], [2, 0, 1, 0], [4, 0, 0, 1]],
        r"row 0, column 1 \('city'\): 'x' is not a number",
    ),
    "texts with a gap": (
        lambda: first(a=["x", None, "y"]),
        ["fine", "a_missing", "a_x", "a_y"],
        [[0, 0, 1, 0], [2, 1, 0, 0], [4, 0, 0, 1]],
        r"row 0, column 1 \('a'\): 'x' is not a number",
    ),
    "categories and enums of Polars": (
        lambda: pl.DataFrame(
            {
                "e": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"])),
                "c": pl.Series(["u", None], dtype=pl.Categorical),
            }
        ),
        ["e", "c_missing", "c_u"],
        [[1, 0, 1], [0, 1, 0]],
        "'a' is not a number",
    ),
    "dates": (
        lambda: first(day=pd.to_datetime(["1970-01-02"] * 3)),
        ["fine", "day"],
        [[0, 86400], [2, 86400], [4, 86400]],
        r"row 0, column 1 \('day'\): '1970-01-02 .* is a date or time",
    ),
    "times of a zone and of a day": (
        lambda: pd.DataFrame(
            {
                "d": pd.to_datetime(["1970-01-01", "1970-01-02"]).tz_localize(
                    "Etc/GMT-1"
                ),
                "t": [pd.Timestamp("2020-01-01 00:01").time(), None],
            }
        ),
        ["d", "t_sin", "t_cos"],
        [[-3600, *MINUTE], [82800, *MINUTE]],
        r"row 0, column 0 \('d'\): .* is a date or time",
    ),
    "whole numbers with a gap": (
        lambda: first(a=pd.array([5, 2, None], "Int64")),
        ["fine", "a"],
        [[0, 5], [2, 2], [4, 3.5]],
        r"row 2, column 1 \('a'\): the cell has no value: correct it, leave such rows out with missing='drop', or fill",
    ),
    "NaN of Polars": (
        lambda: pl.DataFrame({"a": [1.0, np.nan]}),
        ["a"],
        [[1], [1]],
        "row 1, .*is NaN",
    ),
    "decimals with a gap": (
        lambda: pl.DataFrame({"a": ["1.5", None]}).select(
            pl.col("a").cast(pl.Decimal(10, 2))
        ),
        ["a"],
        [[1.5], [1.5]],
        "row 1, .* has no value",
    ),
    "sparse beside texts": (
        lambda: pd.DataFrame({"s": pd.arrays.SparseArray([0, 1.5]), "t": ["x", "y"]}),
        ["s", "t_x", "t_y"],
        [[0, 1, 0], [1.5, 0, 1]],
        "'x' is not a number",
    ),
    "an index of pandas": (
        lambda: pd.DataFrame({"Unnamed: 0": [0, 1], "b": ["x", "y"]}),
        ["b_x", "b_y"],
        [[1, 0], [0, 1]],
        "'x' is not a number",
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_FRAMES)
def test_kinds_of_columns_of_frames(kind):
    """They are taken, and named if numbers alone are wanted."""
    make, names, rows, match = KINDS_OF_FRAMES[kind]
    samples = open_samples(make())
    assert (samples.feature_names, rows_of(samples).tolist()) == (names, rows)
    with one_sentence(match) as caught:
        open_samples(make(), options=NUMBERS_ALONE)
    assert "--" not in str(caught.value)


def test_a_frame_of_numbers_keeps_its_rows():
    frame = pd.DataFrame(np.array([[1.0, 5], [4, 3]]), columns=["a", "b"], copy=False)
    for options in (None, NUMBERS_ALONE):
        samples = open_samples(frame, options=options)
        assert samples.encoding.is_ordered
        assert [one.fill for one in samples.encoding.columns] == [2.5, 4]
        assert np.shares_memory(samples.block(0, 2), frame.to_numpy(copy=False))


# --- columns that are left out --------------------------------------------------------

REASONS = {
    "id": "it numbers the rows",
    "since": "its dates show when rows were recorded",
    "note": f"{N} texts in {N} rows",
    "empty": "it is empty",
}


@in_three_forms
def test_columns_that_say_nothing_are_left_out_with_a_reason(tmp_path, form):
    source = FORMS[form](raw(), tmp_path)
    columns = open_samples(source).encoding.columns
    assert {one.name: one.why for one in columns if one.kind == "left out"} == REASONS
    taken = open_samples(source, options=TableOptions(columns="all", drop="empty"))
    assert taken.feature_names == ["id", *NAMES, "since", *NOTES]
    named = open_samples(source, options=TableOptions(columns=["note", "id"]))
    assert named.feature_names == [*NOTES, "id"]
    with one_sentence(
        r"column 7 \('empty'\): no cell has a value: leave the column out"
    ):
        open_samples(source, options=TableOptions(columns="all"))


def test_the_listings_of_a_conversion_and_of_a_fit_give_the_reasons(tmp_path):
    path = as_csv(raw(), tmp_path)
    listed = {
        one["name"]: one["becomes"]
        for one in convert(path, tmp_path / "a.zarr")["columns"]
    }
    assert listed["colour"] == "a 0/1 column for each text"
    assert listed["id"] == "left out: it numbers the rows (--columns all takes it)"
    assert listed["empty"] == "left out: it is empty"
    columns = (
        mmcnb.MaximumMarginClustering(2, random_state=0).fit(path).report_["columns"]
    )
    assert [one["name"] for one in columns] == list(raw().columns)
    assert {
        one["name"]: one["why"] for one in columns if one["name"] in REASONS
    } == REASONS


@pytest.mark.parametrize(
    ("n", "n_texts"),
    [(100, 10), (100, 11), (2000, 20), (2000, 21), (4000, 30), (4000, 31)],
)
def test_a_text_of_many_values_is_left_out(n, n_texts):
    frame = pd.DataFrame(
        {"a": [f"t{i % n_texts}" for i in range(n)], "b": np.arange(n) % 7 / 2}
    )
    is_taken = n_texts % 10 == 0
    assert open_samples(frame).n_features == (n_texts + 1 if is_taken else 1)


@pytest.mark.parametrize(
    ("name", "values", "is_left_out"),
    [
        ("row", np.arange(50), True),
        ("x", np.arange(50) * 2, True),
        ("x", np.arange(50) * 0.5, False),
        ("x", np.arange(50) ** 2, False),
        ("x", 900 - np.arange(50) * 3, True),
        ("id", np.arange(50) // 2, False),
        ("id", np.arange(9), False),
        ("twice", np.arange(8000) % 4000, False),
    ],
)
@in_three_forms
def test_numbers_of_rows(tmp_path, name, values, is_left_out, form):
    frame = pd.DataFrame({name: values, "b": np.arange(len(values)) % 7 / 2})
    samples = open_samples(FORMS[form](frame, tmp_path))
    assert samples.feature_names == (["b"] if is_left_out else [name, "b"])
    assert np.array_equal(rows_of(frame[[name]])[:, 0], values)  # it is all there is


# --- other rows -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = mmcnb.read_table(raw(), missing="median", keep="since")
        return mmcnb.CPMMC(random_state=0).fit(rows)


@pytest.mark.parametrize("form", ["pandas", "Polars", "CSV", "Parquet"])
def test_other_rows_take_medians_and_texts_of_the_fit(tmp_path, model, form):
    others = raw().iloc[5:90].copy()
    others["colour"] = [None, "pink", *["blue"] * 83]
    numbers = np.array(
        expected(
            others.assign(size=others["size"].fillna(raw()["size"].median())), "since"
        )
    )
    numbers[1, 3:7] = 0
    numbers -= model.model_.scaling.mean  # as dates are far from 0
    with pytest.warns(
        ClusterWarning, match="gaps were filled .* [78] in 'size'"
    ) as caught:
        values = model.decision_function(FORMS[form](others, tmp_path))
    assert values == pytest.approx(
        numbers @ model.model_.rule.coef + model.model_.rule.offset
    )
    sentences = " ".join(str(one.message) for one in caught)
    assert (
        "texts that do not occur in the fit are 0 in all categories: 1 in 'colour'"
        in sentences
    )


def test_gaps_and_new_texts_of_later_row_groups_are_both_told(tmp_path, model):
    others = raw()
    others.loc[200:, "colour"] = "pink"
    with pytest.warns(ClusterWarning) as caught:
        labels = model.predict(as_parquet(others, tmp_path))
    gaps, texts = sorted(str(one.message) for one in caught)
    assert gaps.endswith(
        "gaps were filled from their column: 6 in 'size' in the rows read so far."
    )
    assert texts.endswith(
        "are 0 in all categories: 10 in 'colour' in the rows read so far."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert labels.tobytes() == model.predict(others).tobytes()


def test_rows_without_the_columns_that_were_left_out_and_in_another_order_are_labelled(
    model,
):
    others = raw()[["since", "colour", "count", "size", "member"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.predict(others).tobytes() == model.labels_.tobytes()


BAD_ROWS = {
    "a column in other letters": (
        lambda frame: frame.rename(columns={"size": " SIZE"}),
        "which the model needs: rename ' SIZE' to 'size' if this is meant",
    ),
    "no column": (
        lambda frame: frame.drop(columns="size"),
        "has no column 'size', which the model needs: add it, or rename",
    ),
    "dates for numbers": (
        lambda frame: frame.assign(size=pd.Timestamp("2024-01-31")),
        r"column 1 \('size'\) has values of type timestamp.*, and was a number in the fit: convert it to a number",
    ),
    "an infinite cell": (
        lambda frame: frame.assign(size=[1.0, np.inf, *range(N - 2)]),
        r"row 1, column 1 \('size'\): the cell is infinite: correct it, or leave its row out\.$",
    ),
}


def test_a_cell_in_another_unit_than_that_of_the_fit_is_refused_by_its_unit(tmp_path):
    bars = pd.DataFrame({"p": [f"{k % 2 * 9 + k / 50} bar" for k in range(N)]})
    bars["q"] = np.arange(N) % 2 * 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mmcnb.CPMMC(random_state=0).fit(bars)
    in_millibars = bars.assign(p="4340.0 mbar")
    for rows in (in_millibars, as_csv(in_millibars, tmp_path)):
        with one_sentence(
            "'4340.0 mbar' is not a number: the unit of .* in the fit is bar: "
        ):
            model.predict(rows)


def test_texts_are_counted_in_the_rows_that_are_kept(tmp_path):
    rows = pd.DataFrame({"code": [f"x{k}" for k in range(60)], "size": np.arange(60.0)})
    rows.loc[7, "size"] = None
    path = as_csv(rows, tmp_path)
    notes = mmcnb.read_table(path, missing="drop").notes
    assert any("'code' (59 texts in 59 rows)" in note for note in notes)


def test_rows_without_a_value_in_the_used_columns_can_be_dropped(tmp_path):
    rows = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0)})
    rows.loc[3, "a"] = None
    path = as_csv(rows, tmp_path)
    with one_sentence("columns that are used.*missing='drop'"):
        mmcnb.read_table(path, columns=["a"], missing="neighbors")
    kept = mmcnb.read_table(path, columns=["a"], missing="drop")
    assert kept.n_samples == 19


@pytest.mark.parametrize("kind", BAD_ROWS)
def test_rows_that_cannot_be_labelled_are_refused_in_one_sentence(model, kind):
    change, match = BAD_ROWS[kind]
    with one_sentence(match) as caught:
        model.predict(change(raw()))
    assert "--" not in str(caught.value)


def test_columns_of_a_csv_are_read_as_those_of_the_fit(tmp_path, model):
    path = as_csv(raw().assign(colour=range(N)), tmp_path)
    with pytest.warns(ClusterWarning, match="are 0 in all categories: 300 in 'colour'"):
        model.predict(path)
    frame = raw().astype({"count": object})
    frame.loc[20, "count"] = "many"
    with pytest.warns(
        ClusterWarning, match=r"count as missing: 1 in 'count' \('many'\)"
    ):
        model.predict(as_csv(frame, tmp_path))


def test_a_model_of_plain_numbers_fills_gaps_and_reads_texts_of_other_rows(tmp_path):
    plain = pd.DataFrame({"a": [0.5, 0.25, 9, 9.5] * 5, "b": [1.0, 2, 30, 31] * 5})
    model = mmcnb.CPMMC(random_state=0).fit(plain)
    counted = plain.assign(a=np.arange(20.0))
    assert (
        model.predict(as_csv(counted, tmp_path)).tobytes()
        == model.predict(counted).tobytes()
    )
    nearest = plain["a"][plain["b"] == 1].median()
    with pytest.warns(ClusterWarning, match="from the nearest rows: 1 in 'a'"):
        filled = model.predict(plain.assign(a=[np.nan, *range(19)]))
    assert np.array_equal(filled, model.predict(plain.assign(a=[nearest, *range(19)])))
    assert np.array_equal(model.predict(plain.astype(str)), model.labels_)
    with one_sentence(r"column 1 \('b'\): 'x' is not a number"):
        model.predict(plain.assign(b="x"))
    with pytest.warns(ClusterWarning, match=r"count as missing: 1 in 'b' \('x'\)"):
        model.predict(plain.assign(b=["x", *range(19)]))


def test_a_gap_of_other_rows_takes_the_median_of_a_fit_without_gaps():
    numbers = raw()[["id", "count"]]
    rows = mmcnb.read_table(numbers, missing="median")
    model = mmcnb.CPMMC(random_state=0).fit(rows)
    median = numbers["count"].median()
    with pytest.warns(
        ClusterWarning, match="gaps were filled from their column: 1 in 'count'"
    ):
        labels = model.predict(numbers.assign(count=[np.nan, *range(N - 1)]))
    assert np.array_equal(
        labels, model.predict(numbers.assign(count=[median, *range(N - 1)]))
    )


def test_a_table_without_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i * i % 7},{'xy'[i % 2]},{i % 5}\n" for i in range(40)))
    table = mmcnb.read_table(path, header="no")
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(table)
    assert model.predict(path).tobytes() == model.labels_.tobytes()
    assert (model.n_features_in_, hasattr(model, "feature_names_in_")) == (3, False)
    assert [one["name"] for one in model.report_["columns"]] == ["0", "1", "2"]
    path.write_text("1,x\n2,y\n")
    with one_sentence(
        "has 2 columns, and the fit had 3: pass rows with the columns of the"
    ):
        model.predict(path)


# --- frames that cannot be taken ------------------------------------------------------


def mixed(*values):
    return pd.DataFrame(
        {"a": pd.Series(values, dtype=object), "b": np.arange(len(values)) / 2}
    )


def beside(a):
    return pd.DataFrame({"a": a, "b": np.arange(len(a)) / 2})


TEXTS = [f"t{number}" for number in range(N)]
BAD_FRAMES = {
    "all of text": (
        pd.DataFrame({"c": TEXTS, "a": TEXTS}),
        r"no column is left as a feature: keep=\['c', 'a'\] keeps them; column 0 \('c'\): 300 texts in 300",
    ),
    "infinite": (
        pd.DataFrame({"a": [1.0, -np.inf, 3], "b": ["x", "x", "y"]}),
        r"row 1, column 0 \('a'\): the cell is infinite: correct it, or treat such cells as missing with na_values=\['inf', '-inf'\]",
    ),
    "objects": (
        mixed(object(), object()),
        r"row 0, column 'a': <object .* has type object, which is not a number",
    ),
    "complex": (
        beside([1j, 2j]),
        r"row 0, column 'a': .*1j.* has type complex, which is not a number",
    ),
    "huge whole numbers": (
        mixed(10**400, 1),
        r"row 0, column 'a': 1000.* has type int, which is not a number",
    ),
    "some names": (
        pd.DataFrame(np.eye(2), columns=["a", 1]),
        "the data frame has a column 1",
    ),
    "no columns": (
        pd.DataFrame(index=range(3)),
        "no column is left as a feature|no columns",
    ),
    "no rows": (
        pd.DataFrame({"a": [1.5]}).iloc[:0],
        "0 sample|no rows|no column is left as a feature",
    ),
    "a query": (pl.LazyFrame({"a": [1]}), "is lazy; pass X.collect\\(\\), or the path"),
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
def test_a_frame_that_cannot_be_taken_ends_in_a_sentence_whose_remedy_works(kind):
    frame, match = BAD_FRAMES[kind]
    with one_sentence(match) as caught:
        open_samples(frame)
    sentence = str(caught.value)
    assert "--" not in sentence
    if "leave the column out" in sentence:
        better = (
            frame.drop("a")
            if isinstance(frame, pl.DataFrame)
            else frame.drop(columns="a")
        )
        assert rows_of(better).shape == (len(frame), 1)
    if kind == "infinite":
        filled = mmcnb.read_table(frame, na_values=["inf", "-inf"])
        assert np.isfinite(rows_of(filled)).all()
    if kind == "all of text":
        assert open_samples(frame, options=TableOptions(columns=["a"])).n_features == N


@in_three_forms
def test_a_table_without_rows_is_refused(tmp_path, form):
    with one_sentence(r"0 sample|no rows|no column is left as a feature"):
        mmcnb.CPMMC(random_state=0).fit(FORMS[form](raw().iloc[:0], tmp_path))


# --- the encoding in a model file -----------------------------------------------------


def test_an_encoding_is_read_back_from_a_model_file(tmp_path, model):
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    of_table = mmcnb.read_table(raw(), keep="since").encoding
    assert again.model_.encoding == model.model_.encoding == of_table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert again.predict(raw()).tobytes() == model.labels_.tobytes()


def changed(encoding, **fields):
    """The encoding with another column "colour"."""
    columns = [
        one | fields if one["name"] == "colour" else one for one in encoding["columns"]
    ]
    return encoding | {"columns": columns}


HOSTILE = {
    "a number": lambda encoding: 5,
    "no columns": lambda encoding: encoding | {"columns": None},
    "more categories": lambda encoding: changed(
        encoding, categories=["", "a", "b", "c", "d"]
    ),
    "an unknown kind": lambda encoding: changed(encoding, kind="code"),
    "a fill of NaN": lambda encoding: changed(encoding, fill=float("nan")),
    "another field": lambda encoding: changed(encoding, path="/etc/passwd"),
    "a mark that is no text": lambda encoding: (
        encoding | {"options": [["na_values", [5]]]}
    ),
    "no truth": lambda encoding: encoding | {"has_names": "yes"},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_encoding_in_a_model_file_is_refused(tmp_path, model, kind):
    model.save(tmp_path / "model")
    header, arrays = read_archive(tmp_path / "model")
    whole = json.dumps(model.model_.encoding.to_dict())
    text = json.dumps(header)
    assert whole in text
    text = text.replace(whole, json.dumps(HOSTILE[kind](json.loads(whole))))
    write_archive(tmp_path / "model", json.loads(text), arrays)
    with one_sentence(
        r"model contains an invalid model: (encoding|coef|mean) .*; fit again\.$"
    ):
        mmcnb.load(tmp_path / "model")
