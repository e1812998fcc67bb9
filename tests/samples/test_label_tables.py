"""A table with the clusters of its rows: its own cells as they were, and new ones beside them."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mmcnb
from mmcnb.errors import ClusterWarning, InputError
from mmcnb.samples import GROUP_ROWS
from mmcnb.stores.matched_labels import labels_of_rows
from tests.estimators.front_door import InterruptedRows

NEW = ["cluster", "probability", "outlier_score"]


def days(n=120, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "code": [f"{number:05d}" for number in range(n)],
            "heat": 20.0 * (np.arange(n) % 3) + random.normal(size=n),
            "wind": random.normal(size=n),
        }
    ).round(3)


def fitted(rows, **options):
    model = mmcnb.MaximumMarginClustering(3, random_state=0, **options)
    return model.fit(rows)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def cells_of(model, rows):
    """The new cells by other methods."""
    labels = model.predict(rows)
    own = model.predict_proba(rows)[np.arange(len(labels)), labels]
    return pd.DataFrame(
        {
            "cluster": labels,
            "probability": np.where(labels < 0, 0, own),
            "outlier_score": model.score_outliers(rows),
        }
    )


@pytest.mark.parametrize("noise", [None, "auto"])
@pytest.mark.parametrize("kernel", [None, "linear"])
def test_new_columns_are_those_of_other_methods(noise, kernel, tmp_path):
    frame = days().drop(columns="code")
    frame.loc[7] = [500.0, 90.0]
    frame.to_csv(tmp_path / "d.csv", index=False)
    options = {} if kernel is None else {"kernel": kernel}
    model = fitted(tmp_path / "d.csv", noise=noise, **options)
    model.label_table(tmp_path / "d.csv", tmp_path / "o.parquet")
    table = pd.read_parquet(tmp_path / "o.parquet")
    pd.testing.assert_frame_equal(
        table[NEW], cells_of(model, tmp_path / "d.csv"), check_dtype=False
    )
    pd.testing.assert_frame_equal(
        table[["heat", "wind"]], pd.read_csv(tmp_path / "d.csv")
    )


def test_an_estimator_without_probabilities_gives_clusters_alone(tmp_path):
    days().to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv", drop="code")
    model = mmcnb.CPMMC(random_state=0).fit(rows)
    model.label_table(rows, tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv", dtype={"code": str})
    assert table.columns.tolist() == ["code", "heat", "wind", "cluster"]
    assert table["cluster"].tolist() == model.labels_.tolist()


LINES = [f"{20 * (k % 3) + k / 100:.2f}" for k in range(60)]


def text_of(header, row, end="\n", last=True):
    lines = [header, *(row.format(k=k, heat=heat) for k, heat in enumerate(LINES))]
    return end.join(filter(None, lines)) + end * last


TEXTS = {
    "plain": text_of("zip,heat", "{k:05d},{heat}"),
    "quotes": text_of('"zip","heat"', '"0{k} ""x"" ,y",{heat}'),
    "lines in cells": text_of("note,heat", '"one\ntwo, {k}\n",{heat}'),
    "a quote inside": text_of("size,heat", '{k} 5",{heat}'),
    "windows": text_of("zip,heat", "{k:05d},{heat}", end="\r\n"),
    "no last end": text_of("zip,heat", "{k:05d},{heat}", last=False),
    "marked": "\ufeff" + text_of("zip,heat", "{k:05d},{heat}"),
    "no header": text_of("", "{k:05d},{heat}"),
    "blank lines": text_of("zip,heat", "{k:05d},{heat}\n"),
    "a note": "# of May\n" + text_of("zip,heat", "{k:05d},{heat}"),
    "spaces": text_of("zip heat", "{k:05d}   {heat}"),
    "one column": text_of("heat", "{heat}"),
    "semicolons": text_of("zip;heat", "{k:05d};{heat}"),
    "tabs": text_of("zip\theat", "{k:05d}\t{heat}"),
    "mixed ends": text_of("zip,heat", "{k:05d},{heat}").replace("5\n", "5\r\n"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_cells_of_text_are_copied_byte_for_byte(name, tmp_path):
    text = TEXTS[name].encode()
    (tmp_path / "d.csv").write_bytes(text)
    column = "1" if name == "no header" else "heat"
    rows = mmcnb.read_table(tmp_path / "d.csv", columns=column)
    model = fitted(rows)
    model.label_table(rows, tmp_path / "o.csv")
    lines = text.splitlines(keepends=True)
    marks = {"spaces": " ", "semicolons": ";", "tabs": "\t"}
    mark = marks.get(name, ",").encode()
    cells = iter(model.predict(rows).tolist())
    n_new = 0
    for before, after in zip(
        lines, (tmp_path / "o.csv").read_bytes().splitlines(keepends=True), strict=True
    ):
        body = before.rstrip(b"\r\n")
        assert after.startswith(body)
        assert after.endswith(before[len(body) :])
        new = after[len(body) :].rstrip(b"\r\n")
        if new == mark + mark.join(column.encode() for column in NEW):
            assert name != "no header"
        elif new:
            assert new.split(mark)[1] == str(next(cells)).encode()
            assert new.count(mark) == 3
            n_new += 1
    assert n_new == 60


ROWS = text_of("", "{k:05d},{heat}")
FIRST_LINES = {
    "title": ("Plants of May\n\nzip,heat\n", ROWS, 2),
    "units": ("zip,heat\n,m\n", ROWS, 2),
    "names of rows without a name": ("heat\n", text_of("", "r{k},{heat}"), 2),
    "comma at all ends": ("zip,heat,\n", ROWS.replace("\n", ",\n"), 3),
    "comma at the ends of rows": ("zip,heat\n", ROWS.replace("\n", ",\n"), 3),
    "comma at some ends": ("zip,heat\n", ROWS.replace("5\n", "5,\n"), 2),
    "short rows": ("zip,heat,note\n", ROWS.replace("\n", ",x\n", 30), 3),
    "delimiter line": ("sep=,\nzip,heat\n", ROWS, 2),
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_new_cells_stand_below_their_names(name, tmp_path):
    head, body, width = FIRST_LINES[name]
    (tmp_path / "d.csv").write_text(head + body)
    rows = mmcnb.read_table(tmp_path / "d.csv", columns="heat")
    model = fitted(rows)
    model.label_table(rows, tmp_path / "o.csv")
    lines = (tmp_path / "o.csv").read_text().splitlines()
    header = lines[next(k for k, line in enumerate(lines) if "cluster" in line)]
    short = name == "names of rows without a name"
    assert header.split(",")[width - short :] == NEW
    cells = [line.split(",") for line in lines[-60:]]
    assert {len(row) for row in cells} <= {width + 3, width + 4}
    assert [row[-3] for row in cells] == list(map(str, model.labels_))
    (tmp_path / "again.csv").write_text("\n".join(lines))
    again = mmcnb.read_table(tmp_path / "again.csv", columns=["heat", "cluster"])
    assert again.block(0, 60)[:, 1].tolist() == model.labels_.tolist()


@pytest.mark.parametrize(
    "codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"]
)
def test_text_keeps_its_encoding(codec, tmp_path):
    text = text_of("Straße,heat", "Köln {k},{heat}", end="\r\n")
    marked = text.encode(codec)
    (tmp_path / "d.csv").write_bytes(marked)
    rows = mmcnb.read_table(tmp_path / "d.csv", columns="heat")
    fitted(rows).label_table(rows, tmp_path / "o.csv")
    written = (tmp_path / "o.csv").read_bytes()
    assert written[:8] == marked[:8]
    lines = written.decode(codec).split("\r\n")
    assert lines[0] == f"Straße,heat,{','.join(NEW)}"
    for before, after in zip(text.split("\r\n"), lines, strict=True):
        assert after.startswith(before)


@pytest.mark.parametrize("options", [{}, {"decimal": ","}], ids=["found", "given"])
def test_a_decimal_comma_stays_one(options, tmp_path):
    text = text_of("zip;heat", "{k:05d};{heat}").replace(".", ",")
    (tmp_path / "d.csv").write_text(text)
    rows = mmcnb.read_table(tmp_path / "d.csv", columns="heat", **options)
    model = fitted(rows)
    model.label_table(rows, tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv", sep=";", decimal=",")
    np.testing.assert_allclose(table[NEW], cells_of(model, rows)[NEW], rtol=1e-6)
    typed = model.label_table(rows)
    assert typed["heat"].tolist() == table["heat"].tolist()
    assert typed["zip"][3] == "00003"


def test_a_packed_file_is_unpacked(tmp_path):
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(TEXTS["plain"].encode()))
    rows = mmcnb.read_table(tmp_path / "d.csv.gz", columns="heat")
    fitted(rows).label_table(rows, tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv", dtype={"zip": str})
    assert table["zip"].tolist() == [f"{k:05d}" for k in range(60)]


@pytest.mark.parametrize("source", ["csv", "parquet"])
@pytest.mark.parametrize("out", ["csv", "parquet"])
def test_rows_that_were_left_out_have_empty_cells(source, out, tmp_path):
    frame = days()
    frame.loc[[0, 5, 119], "heat"] = np.nan
    path = tmp_path / f"d.{source}"
    frame.to_csv(path, index=False) if source == "csv" else frame.to_parquet(path)
    rows = mmcnb.read_table(path, missing="drop", drop="code")
    model = fitted(rows)
    target = tmp_path / f"o.{out}"
    model.label_table(rows, target)
    table = (
        pd.read_csv(target, dtype={"code": str})
        if out == "csv"
        else pd.read_parquet(target)
    )
    pd.testing.assert_frame_equal(table[frame.columns], frame)
    assert np.flatnonzero(table["cluster"].isna()).tolist() == [0, 5, 119]
    assert table["cluster"].dropna().tolist() == model.labels_.tolist()
    pd.testing.assert_frame_equal(
        model.label_table(rows)[table.columns], table, check_dtype=False, rtol=1e-6
    )
    # The table is one of labels, too.
    np.testing.assert_array_equal(labels_of_rows(target, None, rows), model.labels_)


def test_a_model_leaves_out_the_same_rows_of_other_files(tmp_path):
    days().to_csv(tmp_path / "a.csv", index=False)
    model = fitted(mmcnb.read_table(tmp_path / "a.csv", missing="drop", drop="code"))
    model.save(tmp_path / "model")
    later = days(seed=1)
    later.loc[3, "wind"] = np.nan
    later.to_csv(tmp_path / "b.csv", index=False)
    mmcnb.load(tmp_path / "model").label_table(tmp_path / "b.csv", tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv")
    assert np.flatnonzero(table["cluster"].isna()).tolist() == [3]
    with pytest.warns(ClusterWarning, match="filled from the nearest rows: 1 in"):
        labels = model.predict(later)
    assert len(labels) == len(later)  # each row of a frame has a label


def test_parquet_keeps_types_and_text_keeps_codes(tmp_path):
    frame = days().assign(
        day=pd.date_range("2024-05-01", periods=120),
        kind=pd.Categorical(["x", "y", "z"] * 40),
        tags=[["a"], [], ["b", "c"]] * 40,
        small=np.arange(120, dtype=np.int8),
    )
    frame.index = pd.Index([f"w{k}" for k in range(120)], name="well")
    frame.to_parquet(tmp_path / "d.parquet", row_group_size=50)
    rows = mmcnb.read_table(tmp_path / "d.parquet", columns=["heat", "wind"])
    model = fitted(rows)
    model.label_table(rows, tmp_path / "o.parquet")
    before = pq.read_schema(tmp_path / "d.parquet")
    after = pq.read_schema(tmp_path / "o.parquet")
    assert after.names == [*before.names, *NEW]
    assert after.types[: len(before)] == before.types
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "o.parquet")[frame.columns], frame
    )
    with pytest.raises(InputError, match=r"'tags' has type list.*with \.parquet\.$"):
        model.label_table(rows, tmp_path / "o.csv")
    assert names_in(tmp_path) == ["d.parquet", "o.parquet"]


def test_columns_of_lists_stay_lists(tmp_path):
    frame = days()
    vectors = np.column_stack([frame["heat"], frame["wind"]]).tolist()
    frame = frame[["code"]].assign(vector=vectors)
    frame.to_parquet(tmp_path / "d.parquet")
    model = fitted(tmp_path / "d.parquet")
    model.label_table(tmp_path / "d.parquet", tmp_path / "o.parquet")
    table = pd.read_parquet(tmp_path / "o.parquet")
    assert table.columns.tolist() == ["code", "vector", *NEW]
    assert list(map(list, table["vector"])) == vectors
    with pytest.raises(InputError, match=r"'vector' has type list"):
        model.label_table(tmp_path / "d.parquet", tmp_path / "o.csv")


def test_text_in_parquet_is_of_numbers_if_nothing_else_is_in_it(tmp_path):
    frame = days().assign(
        count=range(120),
        day="2024-05-01",
        mixed=["1.5", "x"] * 60,
        gaps=["", "NA", "2.50"] * 40,
        long="12345678901234567890123",
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv", columns=["heat", "wind"])
    fitted(rows).label_table(rows, tmp_path / "o.parquet")
    table = pd.read_parquet(tmp_path / "o.parquet")
    assert table["count"].tolist() == list(range(120))
    assert table["gaps"].dropna().tolist() == [2.5] * 40
    for name in ("code", "day", "mixed"):
        assert table[name].tolist() == frame[name].tolist()
    np.testing.assert_array_equal(table["heat"], frame["heat"])


def test_a_folder_has_a_file_for_each_cluster(tmp_path):
    frame = days()
    frame.loc[4, "heat"] = np.nan
    frame.to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv", drop="code", missing="drop")
    model = fitted(rows)
    with pytest.warns(ClusterWarning, match=r"^1 rows of .* missing from the folders;"):
        model.label_table(rows, f"{tmp_path}/parts/")
    assert names_in(tmp_path / "parts") == ["cluster=0", "cluster=1", "cluster=2"]
    table = pd.read_parquet(tmp_path / "parts")
    expected = model.label_table(rows).dropna(subset="cluster")
    table = table.astype({"cluster": int}).sort_values("code", ignore_index=True)
    pd.testing.assert_frame_equal(
        table[expected.columns], expected.reset_index(drop=True), check_dtype=False
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_folder_of_files_becomes_one_table(form, tmp_path):
    frame = days()
    frame.loc[[3, 70], "heat"] = np.nan
    folder = tmp_path / "days"
    folder.mkdir()
    for name, part in {"a": frame[:50], "b": frame[50:]}.items():
        if form == "csv":
            text = part.to_csv(index=False)
            (folder / f"{name}.csv").write_text(text.removesuffix("\n"))
        else:
            part.to_parquet(folder / f"{name}.parquet", index=False)
    rows = mmcnb.read_table(folder, missing="drop", drop="code")
    model = fitted(rows)
    for target in ("o.csv", "o.parquet"):
        model.label_table(rows, tmp_path / target)
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "o.csv", dtype={"code": str})[frame.columns], frame
    )
    table = pd.read_parquet(tmp_path / "o.parquet")
    pd.testing.assert_frame_equal(table[frame.columns], frame)
    assert table["cluster"].dropna().tolist() == model.labels_.tolist()


def test_columns_with_these_names_stay(tmp_path):
    frame = days().assign(cluster="mine", probability=1.0)
    frame.to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv", columns=["heat", "wind"])
    model = fitted(rows)
    with pytest.warns(
        ClusterWarning, match=r"already has a column 'cluster'; the new .*'cluster_1'"
    ):
        model.label_table(rows, tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv", dtype={"code": str})
    pd.testing.assert_frame_equal(table[frame.columns], frame, check_dtype=False)
    assert table["cluster_1"].tolist() == model.labels_.tolist()


def test_frames_get_the_columns_and_keep_the_rest(tmp_path):
    frame = days().set_index("code")
    model = fitted(frame)
    table = model.label_table(frame)
    pd.testing.assert_frame_equal(table[frame.columns], frame)
    assert table["cluster"].tolist() == model.labels_.tolist()
    assert "cluster" not in frame
    arrow = model.label_table(pa.Table.from_pandas(frame, preserve_index=False))
    assert arrow.column_names == ["heat", "wind", *NEW]
    model.label_table(frame, tmp_path / "o.csv")
    written = pd.read_csv(tmp_path / "o.csv", dtype={"code": str})
    assert written.columns[0] == "code"
    pd.testing.assert_frame_equal(
        written.set_index("code"), table, check_dtype=False, rtol=1e-6
    )
    model.label_table(frame, tmp_path / "o.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "o.parquet"), table)


@pytest.mark.parametrize("out", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pd.cut(np.arange(120), 2), "(-0.119, 59.5]"),
        (pd.period_range("2024-01", periods=120, freq="D"), "2024-01-01"),
        ([1, "a", None] * 40, "1"),
        (pd.to_timedelta(range(120), "h"), "0 days"),
    ],
    ids=["intervals", "periods", "mixed", "durations"],
)
def test_values_of_any_type_are_written(values, text, out, tmp_path):
    frame = days().drop(columns="code").assign(other=values)
    path = tmp_path / f"o.{out}"
    model = mmcnb.MaximumMarginClustering(3, random_state=0)
    model.fit(frame, columns=["heat", "wind"]).label_table(frame, path)
    table = pd.read_csv(path) if out == "csv" else pd.read_parquet(path)
    assert str(table["other"][0]).startswith(text)
    assert table["cluster"].tolist() == model.labels_.tolist()


def test_columns_named_by_numbers_become_texts(tmp_path):
    frame = days().drop(columns="code").set_axis([0, 1], axis=1)
    model = fitted(frame)
    model.label_table(frame, tmp_path / "o.parquet")
    table = pd.read_parquet(tmp_path / "o.parquet")
    assert table.columns.tolist() == ["0", "1", *NEW]


def test_a_frame_of_polars_gives_one():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(days()).drop("code")
    model = fitted(frame)
    table = model.label_table(frame)
    assert table.columns == ["heat", "wind", *NEW]
    assert table["cluster"].to_list() == model.labels_.tolist()


def test_rows_of_no_table_are_refused_with_a_remedy(tmp_path):
    X = days()[["heat", "wind"]].to_numpy()
    model = fitted(X)
    with pytest.raises(
        InputError, match=r"^X is not a table, .*predict\(X, 'labels\.csv'\)"
    ):
        model.label_table(X, tmp_path / "o.csv")
    frame = days()[["heat", "wind"]]
    with pytest.raises(InputError, match=r"o\.txt: a table is not written as '\.txt'"):
        fitted(frame).label_table(frame, tmp_path / "o.txt")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("target", ["o.csv", "o.parquet", "o/"])
def test_a_table_appears_whole_or_not_at_all(target, tmp_path):
    many = pd.concat([days(GROUP_ROWS // 2).drop(columns="code")] * 3)
    many.to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv")
    model = fitted(days().drop(columns="code"))
    out = f"{tmp_path}/{target}"
    stopped = InterruptedRows(rows.block(0, rows.n_samples), 1)
    stopped.encoding = rows.encoding
    stopped.feature_names = rows.feature_names
    stopped.table_source = rows.table_source
    with pytest.raises(KeyboardInterrupt):
        model.label_table(stopped, out)
    assert names_in(tmp_path) == ["d.csv"]
    model.label_table(rows, out)
    # This method has no parameter that replaces a table.
    with pytest.raises(InputError, match=r"another path, or remove it first\.$"):
        model.label_table(rows, out)


def test_a_file_that_has_changed_is_refused(tmp_path):
    days().to_csv(tmp_path / "d.csv", index=False)
    rows = mmcnb.read_table(tmp_path / "d.csv", drop="code")
    model = fitted(rows)
    days(100).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(InputError, match="has changed since it was opened"):
        model.label_table(rows, tmp_path / "o.csv")
    assert names_in(tmp_path) == ["d.csv"]
