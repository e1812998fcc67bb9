"""The same table gives the same columns and sentences, whatever it is read from."""

import csv
import datetime
import json
import re
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mmcnb
from mmcnb import InputError, cli, open_samples

FIRST_DAY = datetime.datetime(2020, 1, 1)
NAMES = ("id", "Größe", "a,b", 'q"x"', "two words", "日", "price ($)", "n", "d'or")


# --- cells of a column, n texts drawn by rng ------------------------------------------


def floats(rng, n, scale=100.0):
    return [f"{value:.2f}" for value in rng.normal(size=n) * scale]


def integers(rng, n):
    return [str(value) for value in rng.integers(-50, 500, n)]


def written(form, scale=100.0):
    """Numbers with something around them."""
    return lambda rng, n: [form.format(value) for value in rng.random(n) * scale]


def replaced(form, *pairs):
    """Numbers in which marks are replaced, such as commas between thousands."""
    table = str.maketrans(dict(pairs))
    return lambda rng, n: [
        form.format(value).translate(table) for value in rng.normal(size=n) * 1e5
    ]


def with_units(*units):
    return lambda rng, n: [
        f"{value:.2f}{units[row % len(units)]}"
        for row, value in enumerate(rng.random(n) * 1000)
    ]


def dates(form):
    return lambda rng, n: [
        (FIRST_DAY + datetime.timedelta(seconds=int(seconds))).strftime(form)
        for seconds in rng.integers(0, 10**8, n)
    ]


def numbered(form, low=1, high=12):
    """Texts with two numbers."""
    return lambda rng, n: [
        form.format(*pair) for pair in rng.integers(low, high, (n, 2)).tolist()
    ]


def one_of(*texts):
    return lambda rng, n: [texts[k] for k in rng.integers(0, len(texts), n)]


def spoiled(draw, share, *cells):
    """Cells of which some are others; at least one."""

    def spoil(rng, n):
        texts = draw(rng, n)
        for row in rng.choice(n, max(1, int(share * n)), replace=False):
            texts[row] = cells[int(rng.integers(len(cells)))]
        return texts

    return spoil


def late(draw, cell):
    """Cells of which only the last is another."""
    return lambda rng, n: [*draw(rng, n)[:-1], cell]


KINDS = {
    "integers": integers,
    "floats": floats,
    "many digits": lambda rng, n: [repr(float(x)) for x in rng.normal(size=n)],
    "exponents": replaced("{:.3e}"),
    "plus signs": numbered("+{}.{}"),
    "large": lambda rng, n: [str(x) for x in rng.integers(2**40, 2**60, n)],
    "beyond 64 bits": lambda rng, n: [f"{x}{x}" for x in rng.integers(1e11, 1e12, n)],
    "thousands": replaced("{:,.2f}"),
    "whole thousands": replaced("{:,.0f}"),
    "thousands by points": replaced("{:,.2f}", (",", "."), (".", ",")),
    "thousands by spaces": replaced("{:,.2f}", (",", " ")),
    "thousands by no-break spaces": replaced("{:,.2f}", (",", "\u00a0")),
    "thousands by thin spaces": replaced("{:,.2f}", (",", "\u202f"), (".", ",")),
    "thousands by apostrophes": replaced("{:,.2f}", (",", "'")),
    "Indian thousands": numbered("{},{},456", 10, 99),
    "three decimals or thousands": numbered("{0},{1}", 100, 999),
    "decimal commas": replaced("{:.2f}", (".", ",")),
    "minus signs": replaced("{:.2f}", ("-", "\u2212")),
    "dollars": written("${:,.2f}", 1e5),
    "negative dollars": written("-${:.2f}"),
    "euros": written("{:.2f} €"),
    "francs": written("CHF {:.2f}"),
    "percent": written("{:.1f}%"),
    "percent with a space": written("{:.1f} %"),
    "kilograms": written("{:.1f} kg"),
    "masses": with_units(" g", " kg"),
    "lengths and masses": with_units(" km", " kg"),
    "times with units": with_units(" s", " min"),
    "magnitudes": with_units("K", "M"),
    "areas": with_units(" m2", " m²"),
    "brackets": spoiled(floats, 0.3, "(12.50)", "(7.00)"),
    "codes": lambda rng, n: [f"{x:05d}" for x in rng.integers(0, 2000, n)],
    "few codes": one_of("007", "008", "012"),
    "codes of letters": one_of("A1", "B2", "C3"),
    "hexadecimal": one_of("0x1F", "0x2A"),
    "ISO dates": dates("%Y-%m-%d"),
    "ISO times": dates("%Y-%m-%dT%H:%M:%S"),
    "ISO times with zones": dates("%Y-%m-%dT%H:%M:%SZ"),
    "ISO times with fractions": dates("%Y-%m-%d %H:%M:%S.%f"),
    "dates by points": dates("%d.%m.%Y %H:%M"),
    "American dates": dates("%m/%d/%Y"),
    "American times": dates("%m/%d/%Y %I:%M %p"),
    "short dates": dates("%d/%m/%y"),
    "dates by dashes": dates("%d-%m-%Y"),
    "dates by words": dates("%d %b %Y"),
    "dates by long words": dates("%B %d, %Y"),
    "doubtful dates": numbered("{:02d}/{:02d}/2020"),
    "dates of two forms": spoiled(dates("%Y-%m-%d"), 0.3, "24.12.2020", "31.01.2021"),
    "times of day": numbered("{:02d}:{:02d}"),
    "times with seconds": numbered("{0:02d}:{1:02d}:{1:02d}"),
    "times with halves": numbered("{}:{:02d} PM"),
    "durations": numbered("{}h {}m"),
    "days and times": numbered("{} days {:02d}:00:00"),
    "flags": one_of("true", "false"),
    "capital flags": one_of("TRUE", "FALSE"),
    "yes and no": one_of("yes", "no"),
    "colours": one_of("red", "green", "blue"),
    "many texts": lambda rng, n: [f"w{x}" for x in rng.integers(0, 10**6, n)],
    "documents": numbered("the ship {} left the port for the {}th time", 0, 999),
    "none as a category": one_of("none", "mild", "severe"),
    "none as a gap": spoiled(integers, 0.1, "none"),
    "gaps": spoiled(floats, 0.2, "NA", "", "n/a", "null", "-", "?", "None"),
    "error cells": spoiled(floats, 0.1, "#N/A", "#DIV/0!"),
    "sentinels": spoiled(integers, 0.1, "-999"),
    "sentinels of one digit": spoiled(one_of("0", "1"), 0.1, "-9"),
    "sentinels with a point": spoiled(floats, 0.05, "-9999.9", "9999.9"),
    "large sentinels": spoiled(integers, 0.1, "2147483647", "1e20"),
    "sentinels that are not far": spoiled(integers, 0.1, "999"),
    "gaps among texts": spoiled(one_of("a", "b", "c"), 0.2, "", "NA"),
    "gaps among dates": spoiled(dates("%Y-%m-%d"), 0.1, "", "none"),
    "gaps among flags": spoiled(one_of("true", "false"), 0.1, ""),
    "a wrong number": spoiled(floats, 0, "abc"),
    "wrong numbers": spoiled(floats, 0.1, "abc", "def"),
    "half of numbers": spoiled(floats, 0.5, "abc", "def"),
    "a wrong date": spoiled(dates("%Y-%m-%d"), 0, "abc"),
    "a wrong time": spoiled(numbered("{:02d}:{:02d}"), 0, "abc"),
    "a wrong flag": spoiled(one_of("true", "false"), 0, "abc"),
    "infinity": spoiled(floats, 0, "inf"),
    "empty": one_of(""),
    "constant": one_of("7"),
    "a constant text": one_of("x"),
    "a counter": lambda rng, n: [str(row) for row in range(n)],
    "identifiers": lambda rng, n: [str(x) for x in rng.permutation(10 * n)[:n]],
    "spaces around": written(" {:.2f} "),
    "zeros and ones": one_of("0", "1"),
    "a late decimal": late(integers, "1.5"),
    "a late text": late(integers, "abc"),
    "late thousands": late(floats, "1,234.5"),
    "a late unit": late(integers, "3 kg"),
    "a late gap": late(integers, ""),
}
# pandas and Arrow make numbers of codes, and lose the zeros.
LOST_BY_PANDAS = {"codes", "few codes"}


def table_of(kinds, n, seed):
    """Return columns of texts by name: numbers, and one column of each kind."""
    rng = np.random.default_rng(seed)
    columns = {"base x": floats(rng, n)}
    for number, kind in enumerate(kinds):
        name = f"{NAMES[int(rng.integers(len(NAMES)))]} {number}"
        if kind == "identifiers":
            name += " id"
        columns[name] = KINDS[kind](rng, n)
    return columns


# --- ways in --------------------------------------------------------------------------


def with_nulls(columns):
    return {
        name: [text if text != "" else None for text in texts]
        for name, texts in columns.items()
    }


def csv_file(columns, folder):
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def semicolons(columns, folder):
    path = folder / "t.csv"
    pd.DataFrame(columns).to_csv(path, sep=";", index=False)
    return path


def parquet_file(columns, folder):
    table = pa.table(with_nulls(columns))
    pa.parquet.write_table(table, folder / "t.parquet", row_group_size=25)
    return folder / "t.parquet"


def arrow_file(columns, folder):
    pa.feather.write_feather(pa.table(columns), folder / "t.arrow", chunksize=7)
    return folder / "t.arrow"


def json_lines(columns, folder):
    path = folder / "t.jsonl"
    pd.DataFrame(with_nulls(columns)).to_json(
        path, orient="records", lines=True, force_ascii=False
    )
    return path


def workbook(columns, folder):
    pd.DataFrame(with_nulls(columns)).to_excel(folder / "t.xlsx", index=False)
    return folder / "t.xlsx"


def pandas_str(columns, folder):
    """The frame that pandas 3 makes of texts."""
    with pd.option_context("future.infer_string", True):
        return pd.DataFrame(with_nulls(columns))


def arrow_of(data_type):
    return lambda columns, folder: pa.table(
        {
            name: pa.array(texts, data_type)
            for name, texts in with_nulls(columns).items()
        }
    )


def chunked(columns, folder):
    table = pa.table(columns)
    rows = range(0, table.num_rows, 7)
    return pa.concat_tables([table.slice(row, 7).combine_chunks() for row in rows])


WAYS = {
    "read_table": lambda columns, folder: mmcnb.read_table(csv_file(columns, folder)),
    "CSV with semicolons": semicolons,
    "pandas": lambda columns, folder: pd.DataFrame(columns, dtype=object),
    "pandas with None": lambda columns, folder: pd.DataFrame(
        with_nulls(columns), dtype=object
    ),
    "pandas string": lambda columns, folder: pd.DataFrame(
        with_nulls(columns), dtype="string"
    ),
    "pandas str": pandas_str,
    "pandas on Arrow": lambda columns, folder: pd.DataFrame(with_nulls(columns)).astype(
        pd.ArrowDtype(pa.string())
    ),
    "polars": lambda columns, folder: pl.DataFrame(
        with_nulls(columns), schema=dict.fromkeys(columns, pl.String)
    ),
    "Arrow": arrow_of(pa.string()),
    "Arrow, large": arrow_of(pa.large_string()),
    "Arrow, views": arrow_of(pa.string_view()),
    "Arrow, chunks": chunked,
    "Parquet": parquet_file,
    "Arrow file": arrow_file,
    "batches of Arrow": lambda columns, folder: chunked(columns, folder).to_reader(),
    "JSON lines": json_lines,
    "Excel": workbook,
}


class Told:
    """What is told of a table: names, columns and sentences without its name."""

    def __init__(self, open_it):
        self.refusal = None
        self.columns = []
        self.notes = []
        self.numbers = np.empty((0, 0))
        try:
            samples = open_samples(open_it())
            self.numbers = samples.block(0, samples.n_samples)
        except InputError as error:
            # The place and the remedy are those of the way in.
            self.refusal = re.findall(r"column \d+ .*?: [^:;]*", str(error))
            return
        self.names = samples.feature_names
        self.fills = [column.fill for column in samples.encoding.columns]
        for column in samples.encoding.columns:
            self.columns.append(
                (column.name, column.kind, column.categories, column.why)
            )
        name = f"{samples.name}: "
        self.notes = [note.removeprefix(name) for note in samples.notes]

    def check_same(self, other, way):
        """Assert that two tables are the same but for rounding to float32."""
        assert other.refusal == self.refusal, way
        assert other.columns == self.columns, way
        assert other.notes == self.notes, way
        if self.refusal is None:
            assert other.names == self.names, way
            # A median between two numbers may be far smaller than they are.
            largest = np.abs(self.numbers).max(
                initial=0.0, where=np.isfinite(self.numbers)
            )
            close = {"rtol": 1e-6, "atol": 1e-6 * largest, "err_msg": way}
            np.testing.assert_allclose(other.numbers, self.numbers, **close)
            fills = [np.array(one.fills, float) for one in (other, self)]
            np.testing.assert_allclose(*fills, **close)


def check_ways(columns, ways):
    """Send a table through ways in, and compare each with the CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        path = csv_file(columns, Path(folder))
        reference = Told(lambda: path)
        for way, send in ways.items():
            other = Told(lambda send=send: send(columns, Path(folder)))
            reference.check_same(other, way)


tables = st.builds(
    table_of,
    st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4),
    st.sampled_from([2, 12, 25, 60, 130]),
    st.integers(0, 2**16),
)
some_ways = st.sets(st.sampled_from(list(WAYS)), min_size=3, max_size=4)


def chosen(names):
    return {name: WAYS[name] for name in names}


@given(tables, some_ways)
@settings(max_examples=20)
def test_any_table_is_the_same_by_each_way_in(columns, ways):
    check_ways(columns, chosen(ways))


@pytest.mark.slow
@given(tables)
@settings(max_examples=80)
def test_many_tables_are_the_same_by_all_ways_in(columns):
    check_ways(columns, WAYS)


@given(tables, some_ways)
@settings(max_examples=6)
def test_the_pieces_in_which_rows_are_read_change_nothing(columns, ways):
    with pytest.MonkeyPatch.context() as patch:
        # Internal: pieces have megabytes; files of several would take seconds a test.
        patch.setattr("mmcnb.samples.text.PIECE_BYTES", 300)
        patch.setattr("mmcnb.samples.npy.STEP_BYTES", 400)
        check_ways(columns, chosen(ways))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_column_is_the_same_by_all_ways_in(kind):
    for n in (12, 60):
        check_ways(table_of([kind], n, 3), WAYS)


# --- frames with types ----------------------------------------------------------------


def as_read(columns, folder, **options):
    return pd.read_csv(csv_file(columns, folder), **options)


def typed_file(ending, write):
    """Write what pandas has read to a file that keeps types."""

    def send(columns, folder):
        path = folder / f"typed.{ending}"
        write(as_read(columns, folder), path)
        return path

    return send


TYPED = {
    "pandas.read_csv": as_read,
    "pandas.read_csv on Arrow": lambda columns, folder: as_read(
        columns, folder, dtype_backend="pyarrow"
    ),
    "pandas.read_csv of nullable types": lambda columns, folder: as_read(
        columns, folder, dtype_backend="numpy_nullable"
    ),
    "polars of a frame": lambda columns, folder: pl.from_pandas(
        as_read(columns, folder)
    ),
    "Parquet of a frame": typed_file(
        "parquet", lambda frame, path: frame.to_parquet(path, index=False)
    ),
    "Excel of a frame": typed_file(
        "xlsx", lambda frame, path: frame.to_excel(path, index=False)
    ),
    "JSON lines of a frame": typed_file(
        "jsonl",
        lambda frame, path: frame.to_json(
            path, orient="records", lines=True, force_ascii=False, double_precision=15
        ),
    ),
}
kinds_kept = [kind for kind in KINDS if kind not in LOST_BY_PANDAS]


@given(
    st.lists(st.sampled_from(kinds_kept), min_size=1, max_size=4),
    st.sampled_from([12, 60, 130]),
    st.integers(0, 2**16),
)
@settings(max_examples=8)
def test_a_frame_that_pandas_has_read_is_the_file(kinds, n, seed):
    names = np.random.default_rng(seed).choice(list(TYPED), 3, replace=False)
    ways = {name: TYPED[name] for name in names}
    if "infinity" in kinds:  # which JSON has not
        ways.pop("JSON lines of a frame", None)
    check_ways(table_of(kinds, n, seed), ways)


OBJECTS = {
    "decimals": [Decimal(f"{value}.25") for value in range(9)] + [None, Decimal("7")],
    "whole numbers": [2**70 + value**2 for value in range(11)],
    "numbers of several types": [
        1,
        2.5,
        Decimal("3.5"),
        np.int8(4),
        None,
        *range(5, 11),
    ],
    "flags": [True, False, None, *[True] * 8],
    "texts and numbers": ["a", 1, "b", 1, *["a"] * 7],
    "numbers and one text": [*range(50, 75), "abc", *range(80, 95)],
    "days": [FIRST_DAY.date() + datetime.timedelta(days=k**2) for k in range(11)],
    "moments": [FIRST_DAY + datetime.timedelta(hours=k**2) for k in range(11)],
    "times": [datetime.time(k, 30) for k in range(11)],
    "texts and nothing": ["a", "b", None, np.nan, pd.NA, *["a"] * 6],
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_are_what_they_are_as_text(kind, tmp_path):
    values = OBJECTS[kind]
    texts = ["" if pd.isna(value) else str(value) for value in values]
    base = floats(np.random.default_rng(0), len(values))
    reference = Told(lambda: csv_file({"base": base, "a": texts}, tmp_path))
    frame = pd.DataFrame(
        {"base": np.array(base, float), "a": pd.Series(values, dtype=object)}
    )
    reference.check_same(Told(lambda: frame), kind)
    assert not reference.refusal


@pytest.mark.parametrize("last", ["25/08/2020", "10/08/2020"])
def test_all_batches_say_whether_day_or_month_comes_first(tmp_path, last):
    dates = ["09/05/2020", "06/11/2020", "09/11/2020", "05/08/2020"] * 5
    columns = {"a": [*range(40)], "b": [7, 1, 5, 2] * 10, "date": dates * 2}
    columns["date"][-1] = last
    pa.feather.write_feather(pa.table(columns), tmp_path / "t.arrow", chunksize=7)
    for source in (pd.DataFrame(columns), tmp_path / "t.arrow"):
        samples = mmcnb.read_table(source, dates="epoch")
        is_taken = "date" in samples.feature_names
        assert is_taken == (last == "25/08/2020")
        told = any("day or the month first" in note for note in samples.notes)
        assert told != is_taken


# --- what is done with a table --------------------------------------------------------


def besides_gaps(notes):
    """Return the sentences that are no count of gaps, which a fit fills otherwise."""
    return [note for note in notes if not note.partition(": ")[2].startswith("gaps ")]


def counted(notes):
    """Return the ends of sentences, which count the cells: the treatment differs."""
    return [note.rpartition(": ")[2] for note in notes]


def said_by(capsys, *argv):
    """Return what a command writes, as JSON."""
    capsys.readouterr()
    assert cli.main([str(word) for word in argv]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "kinds",
    [
        ["a counter", "dollars", "colours", "doubtful dates", "a wrong number"],
        ["gaps", "many texts", "flags", "dates by points", "empty"],
        ["documents", "none as a category", "masses", "times of day", "codes"],
    ],
)
def test_all_commands_agree_about_columns(kinds, tmp_path, capsys):
    columns = table_of(kinds, 60, 5)
    path = csv_file(columns, tmp_path)
    store = tmp_path / "rows.zarr"
    model_path = tmp_path / "rows.model"
    samples = open_samples(path)
    left_out = {
        column.name: column.why
        for column in samples.encoding.columns
        if column.kind == "left out"
    }
    of_fit = mmcnb.read_table(path, missing="neighbors")
    described = said_by(capsys, "info", path, "--json")
    assert described["notes"] == of_fit.notes
    converted = said_by(capsys, "convert", path, store, "--json")
    assert counted(converted["notes"]) == counted(of_fit.notes)
    for report in (described, converted):
        assert besides_gaps(report["notes"]) == besides_gaps(samples.notes)
        listed = {}
        for column in report["columns"]:
            if column["becomes"].startswith("left out: "):
                why = column["becomes"].removeprefix("left out: ")
                listed[column["name"]] = why.partition(" (--")[0]
        assert listed == left_out
    assert open_samples(store).feature_names == samples.feature_names
    planned = said_by(capsys, "plan", path, "--json")
    assert planned["n_features"] == samples.n_features

    labels = tmp_path / "labels.csv"
    outputs = ["--model", model_path, "--labels", labels]
    fitted = said_by(capsys, "fit", path, *outputs, "--random-state", "0", "--json")
    assert set(of_fit.notes) <= set(fitted["warnings"])
    model = mmcnb.load(model_path)
    assert model.feature_names_in_.tolist() == list(columns)
    assert {
        column["name"]: column["why"]
        for column in model.report_["columns"]
        if column["treatment"] == "left out"
    } == left_out
    again = tmp_path / "again.csv"
    said_by(capsys, "predict", model_path, path, "--labels", again, "--json")
    assert again.read_bytes() == labels.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of_store = mmcnb.open_samples(store)
        of_frame = model.predict(pd.DataFrame(columns))
    assert np.array_equal(of_store.block(0, 60), samples.block(0, 60))
    assert np.array_equal(of_frame, model.predict(path))
