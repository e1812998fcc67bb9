"""Labels say which rows of the file they belong to, by number or by name, so that they can be joined."""

import pickle

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.samples import open_samples
from mmcnb.stores import convert, open_index
from mmcnb.stores.matched_labels import labels_of_rows

GAPS = [0, 7, 30, 89]


def days(n=90, seed=0):
    """Three groups by their heat; rows with gaps are no row of a group."""
    random = np.random.default_rng(seed)
    heat = 20.0 * (np.arange(n) % 3) + random.normal(size=n)
    return pd.DataFrame({"heat": heat, "wind": random.normal(size=n)}).round(3)


def with_gaps():
    frame = days()
    frame.loc[GAPS, "heat"] = np.nan
    return frame


def write(frame, path, index=False):
    if path.suffix == ".csv":
        frame.to_csv(path, index=index)
    else:
        frame.to_parquet(path, index=index, row_group_size=40)


def fitted(rows):
    return mmcnb.CPMMC(random_state=0).fit(rows)


def table_at(path):
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return frame.drop(columns="margin")


@pytest.mark.parametrize("out", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["csv", "parquet", "zarr"])
def test_dropped_rows_leave_numbers_of_the_file(form, out, tmp_path):
    path = tmp_path / f"days.{form}"
    if form == "zarr":
        write(with_gaps(), tmp_path / "days.csv")
        convert(tmp_path / "days.csv", path, missing="drop")
        rows = open_samples(path)
    else:
        write(with_gaps(), path)
        rows = mmcnb.read_table(path, missing="drop")
    kept = with_gaps().dropna().index
    model = fitted(rows)
    assert model.row_index_.tolist() == kept.tolist()
    assert model.to_frame().index.tolist() == kept.tolist()
    assert model.to_frame(rows).index.tolist() == kept.tolist()
    labels = tmp_path / f"labels.{out}"
    model.predict(rows, out=labels)
    table = table_at(labels)
    assert table["row"].tolist() == kept.tolist()
    assert table["cluster"].tolist() == model.labels_.tolist()
    turned = tmp_path / f"turned.{out}"
    write(table[::-1], turned)
    np.testing.assert_array_equal(labels_of_rows(turned, None, rows), model.labels_)


def test_classes_of_all_rows_are_taken_by_the_numbers_that_are_left(tmp_path):
    write(with_gaps(), tmp_path / "days.csv")
    rows = mmcnb.read_table(tmp_path / "days.csv", missing="drop")
    classes = np.arange(90)
    for columns in ({"kind": classes}, {"row": classes, "kind": classes}):
        write(pd.DataFrame(columns), tmp_path / "classes.csv")
        taken = labels_of_rows(tmp_path / "classes.csv", None, rows)
        assert taken.tolist() == with_gaps().dropna().index.tolist()


@pytest.mark.parametrize("form", ["csv", "parquet", "zarr"])
@pytest.mark.parametrize("kind", ["well-{}", "{:03}", int])
def test_names_stand_in_place_of_numbers(form, kind, tmp_path):
    make = kind if kind is int else kind.format
    names = [make(number) for number in np.random.default_rng(1).permutation(90)]
    frame = days().set_index(pd.Index(names, name="well"))
    path = tmp_path / f"days.{form}"
    options = {}
    if form == "zarr":
        write(frame, tmp_path / "days.csv", index=True)
        convert(tmp_path / "days.csv", path, index_column="well")
        assert open_index(path).tolist() == names
        rows = open_samples(path)
    else:
        write(frame, path, index=True)
        options = {} if form == "parquet" else {"index_column": "well"}
        rows = mmcnb.read_table(path, **options)
    model = fitted(rows)
    assert model.row_index_.name == "well"
    assert model.row_index_.tolist() == names
    assert model.to_frame(rows).index.tolist() == names
    for ending in ("csv", "parquet"):
        out = tmp_path / f"labels.{ending}"
        model.predict(rows, out=out)
        table = table_at(out)
        if ending == "csv" and kind == "{:03}":
            table["well"] = pd.read_csv(out, dtype={"well": str})["well"]
        assert table.columns[0] == "well"
        assert table["well"].tolist() == names
        write(
            pd.read_csv(out, dtype=str)[::-1] if ending == "csv" else table[::-1], out
        )
        np.testing.assert_array_equal(labels_of_rows(out, None, rows), model.labels_)


@pytest.mark.parametrize("missing", ["median", "drop"])
@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024-05-01", periods=90, freq="7h", name="time"),
        pd.RangeIndex(100, 190),
        pd.RangeIndex(0, 180, 2, name="even"),
        pd.MultiIndex.from_product([["x", "y"], range(45)], names=["site", None]),
        pd.MultiIndex.from_product(
            [[5, 7], pd.date_range("2024", periods=45)], names=["site", "day"]
        ),
    ],
    ids=["times", "later", "every second", "levels", "days of sites"],
)
def test_an_index_of_pandas_in_parquet_is_that_of_the_labels(index, missing, tmp_path):
    frame = with_gaps().set_index(index)
    frame.to_parquet(tmp_path / "days.parquet", row_group_size=40)
    rows = mmcnb.read_table(tmp_path / "days.parquet", missing=missing)
    model = fitted(rows)
    expected = frame if missing == "median" else frame.dropna()
    pd.testing.assert_index_equal(model.row_index_, expected.index, exact=False)
    model.predict(rows, out=tmp_path / "labels.parquet")
    labels = pd.read_parquet(tmp_path / "labels.parquet")
    rows_of_labels = labels.set_index(labels.columns[: index.nlevels].tolist()).index
    assert rows_of_labels.tolist() == expected.index.tolist()
    assert labels.columns[0] == (index.names[0] or "index")
    assert pickle.loads(pickle.dumps(model)).row_index_.equals(model.row_index_)
    labels[::-1].to_parquet(tmp_path / "labels.parquet")
    taken = labels_of_rows(tmp_path / "labels.parquet", None, rows)
    np.testing.assert_array_equal(taken, model.labels_)


def test_a_model_remembers_the_column_of_names(tmp_path):
    names = [f"w{number}" for number in range(90)]
    days().set_index(pd.Index(names, name="well")).to_csv(tmp_path / "a.csv")
    model = fitted(mmcnb.read_table(tmp_path / "a.csv", index_column="well"))
    model.save(tmp_path / "model")
    model = mmcnb.load(tmp_path / "model")
    later = [f"late{number}" for number in range(90)]
    days(seed=1).set_index(pd.Index(later, name="well")).to_csv(tmp_path / "b.csv")
    assert model.to_frame(tmp_path / "b.csv").index.tolist() == later
    days(seed=1).to_csv(tmp_path / "c.csv", index=False)  # has no such column
    assert model.to_frame(tmp_path / "c.csv").index.tolist() == list(range(90))


@pytest.mark.parametrize("missing", ["median", "drop"])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_of_a_folder_have_their_file_and_their_number_in_it(
    form, missing, tmp_path
):
    folder = tmp_path / "days"
    (folder / "later").mkdir(parents=True)
    write(with_gaps()[:50].reset_index(drop=True), folder / f"a.{form}")
    write(with_gaps()[50:].reset_index(drop=True), folder / f"later/b.{form}")
    files = [f"a.{form}"] * 50 + [f"later/b.{form}"] * 40
    expected = list(zip(files, [*range(50), *range(40)], strict=True))
    if missing == "drop":
        expected = [pair for row, pair in enumerate(expected) if row not in GAPS]
    rows = mmcnb.read_table(folder, missing=missing)
    model = fitted(rows)
    assert model.row_index_.names == ["file", "row"]
    assert model.to_frame().index.tolist() == expected
    convert(folder, tmp_path / "days.zarr", missing=missing)
    for source in (rows, tmp_path / "days.zarr"):
        out = tmp_path / "labels.csv"
        model.predict(source, out=out)
        table = table_at(out)
        assert list(zip(table["file"], table["row"], strict=True)) == expected
        table[::-1].to_csv(out, index=False)
        labels = labels_of_rows(out, None, open_samples(source))
        np.testing.assert_array_equal(labels, model.labels_)
        out.unlink()


def test_frames_keep_their_own_index(tmp_path):
    frame = with_gaps().dropna()
    frame.index = pd.MultiIndex.from_product(
        [["x", "y"], range(43)], names=["site", None]
    )
    model = fitted(frame)
    pd.testing.assert_index_equal(model.row_index_, frame.index)
    pd.testing.assert_index_equal(model.to_frame().index, frame.index)
    model.predict(frame, out=tmp_path / "labels.csv")
    table = table_at(tmp_path / "labels.csv")
    assert table.columns.tolist() == ["site", "level_1", "cluster"]
    assert (
        list(zip(table["site"], table["level_1"], strict=True)) == frame.index.tolist()
    )
    table[::-1].to_csv(tmp_path / "labels.csv", index=False)
    labels = labels_of_rows(tmp_path / "labels.csv", None, open_samples(frame))
    np.testing.assert_array_equal(labels, model.labels_)


@pytest.mark.parametrize("name", ["cluster", "row", "margin", None])
def test_names_that_other_columns_have_are_called_index(name, tmp_path):
    names = pd.Index([f"w{k}" for k in range(90)], name=name)
    frame = days().set_index(names)
    model = fitted(frame)
    model.predict(frame, out=tmp_path / "labels.csv")
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert labels["index"].tolist() == names.tolist()
    labels[::-1].to_csv(tmp_path / "labels.csv", index=False)
    taken = labels_of_rows(tmp_path / "labels.csv", None, open_samples(frame))
    np.testing.assert_array_equal(taken, model.labels_)


@pytest.mark.parametrize("form", ["csv", "headless", "parquet", "zarr"])
def test_names_without_a_name_are_called_index(form, tmp_path):
    frame = days().set_index(pd.Index([f"w{k}" for k in range(90)]))
    path = tmp_path / "days.csv"
    options = {}
    if form == "parquet":
        path = tmp_path / "days.parquet"
    write(frame, path, index=True)
    if form == "headless":
        frame.to_csv(path, header=False)
        options = {"index_column": 0}
    if form == "zarr":
        convert(path, tmp_path / "days.zarr")
        path = tmp_path / "days.zarr"
    rows = open_samples(path) if form == "zarr" else mmcnb.read_table(path, **options)
    model = fitted(rows)
    pd.testing.assert_index_equal(model.row_index_, frame.index)
    model.predict(rows, out=tmp_path / "labels.csv")
    assert pd.read_csv(tmp_path / "labels.csv").columns[0] == "index"


def test_an_array_has_numbers_that_take_no_memory():
    model = fitted(days().to_numpy())
    assert isinstance(model.row_index_, pd.RangeIndex)
    assert len(model.row_index_) == 90
    assert not hasattr(model.fit_model(days().to_numpy()), "row_index_")


def test_a_fitted_model_is_pickled_with_its_row_index(tmp_path):
    frame = days().set_index(pd.Index([f"w{k}" for k in range(90)], name="well"))
    frame.to_parquet(tmp_path / "days.parquet", row_group_size=40)
    model = pickle.loads(pickle.dumps(fitted(tmp_path / "days.parquet")))
    (tmp_path / "days.parquet").unlink()
    pd.testing.assert_index_equal(model.row_index_, frame.index, exact=False)


def test_a_store_keeps_the_index_of_another(tmp_path):
    write(with_gaps(), tmp_path / "days.csv")
    convert(tmp_path / "days.csv", tmp_path / "a.zarr", missing="drop")
    convert(tmp_path / "a.zarr", tmp_path / "b.zarr")
    model = fitted(tmp_path / "b.zarr")
    assert model.row_index_.tolist() == with_gaps().dropna().index.tolist()
    assert model.row_index_.name is None


def test_an_explanation_names_rows_by_their_number_in_the_file(tmp_path):
    write(with_gaps(), tmp_path / "days.csv")
    rows = mmcnb.read_table(tmp_path / "days.csv", missing="drop")
    examples = fitted(rows).explain(rows).rows
    kept = with_gaps().dropna().index
    assert examples["name"].tolist() == kept[examples["row"]].tolist()
