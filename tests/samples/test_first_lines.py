"""What the first lines of CSV text are: titles, names, units or rows; and lines that are no rows further below."""

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.stores import convert
from tests.samples.common import one_sentence

NUMBERS = [[20 + i % 7 + 0.5, i % 5 * 0.25] for i in range(40)]
ROWS = "".join(f"{heat},{rain}\n" for heat, rain in NUMBERS)
WITH_TEXTS = "".join(
    f"{i % 9 + 0.25},{i % 7},{('oak', 'fir', 'elm')[i % 3]}\n" for i in range(40)
)


def _piped(rows):
    return "".join(f"|{line.replace(',', '|')}|\n" for line in rows.splitlines())


class Read:
    """A function that reads text as a table."""

    def __init__(self, folder):
        self.path = folder / "a.csv"

    def __call__(self, text, **options):
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return mmcnb.read_table(self.path, **options)


@pytest.fixture
def read(tmp_path):
    return Read(tmp_path)


def values(samples):
    return samples.block(0, samples.n_samples).tolist()


# --- names or values -------------------------------------------------------------------


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    "text",
    [
        WITH_TEXTS,
        "".join(f"{i % 9 / 4 + 3},2023-05-{i % 27 + 1:02}\n" for i in range(40)),
        "".join(f"{i % 2 == 0},{i % 9 / 4}\n" for i in range(40)),
        "".join(f"name{i},{i % 9 / 4},{i % 7}\n" for i in range(40)),
        "".join(f"{('red', 'blue')[i % 2]},{'uvw'[i % 3]}\n" for i in range(40)),
        "".join(f"{'abc'[i % 3]},{1980 + i % 30}\n" for i in range(40)),
        "".join(f"{'abc'[i % 3]},{i},{i + 1},{i + 2}\n" for i in range(40)),
        "".join(f"{i % 7 + 1} kg;{i % 9},5\n" for i in range(40)),
        "".join(f"key {i}\n" for i in range(40)),
        '""\n' + "4\n7\n9\n" * 13,
        "yes;\n" * 2 + "no;1.5\nyes;2.5\n" * 19,
        "".join(f"{i % 9},{i * 37 % 900:03}.25\n{i * 5 % 99}.5\n" for i in range(20)),
    ],
    ids=[
        "text",
        "days",
        "flags",
        "names",
        "texts",
        "years",
        "series",
        "quantities",
        "keys",
        "an empty cell",
        "gaps",
        "thousands",
    ],
)
def test_the_first_row_stays_without_a_header(read, text):
    samples = read(text, columns="all")
    assert samples.n_samples == 40
    assert samples.feature_names is None
    assert not any("skipped" in note for note in samples.notes)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("kind,height\n" + "oak,2.5\nfir,3\n" * 9, ["kind_fir", "kind_oak", "height"]),
        ("1990,x\n3,4\n5,6\n", ["1990", "x"]),
        ("a,b,3\n" + "1,2,3\n4,5,6\n" * 5, ["a", "b", "3"]),
        ("pay\n" + "1,125.25\n7,071.5\n" * 9, ["pay"]),
        (";2019\n0;4.5\n1;5\n2;4\n3;7\n", ["2019"]),
        (
            "land,2019,2020,2021\n"
            + "".join(f"{'abc'[i % 3]},{i % 9}.5,{i % 4},3\n" for i in range(9)),
            ["land_a", "land_b", "land_c", "2019", "2020", "2021"],
        ),
        ("a,2020-01-22,2020-01-23\n" + "4,3,8\n5,6,1\n" * 5, None),
        ("size,colour\n" + "S,red\nM,blue\n" * 9, None),
    ],
)
def test_a_line_of_names_is_a_header(read, text, names):
    samples = read(text)
    n_rows = len(text.splitlines()) - 1
    assert samples.n_samples == n_rows
    if names is not None:
        assert samples.feature_names == names


@pytest.mark.parametrize(
    "text",
    [
        "2019,2020,2021\n" + "3,4,5\n6,7,8\n" * 9,
        "1,2,3,4,5\n" + "0,1,0,0,1\n1,1,9,0,0\n" * 9,
        "2019,2020,2021\n" + "1825,2400,1130\n3000,1700,2500\n" * 9,
        "n,1\n" + "yes,3 kg\nno,5 kg\n" * 9,
        "12,x,5\n" + "1,2,3\n4,5,6\n" * 9,
        "kind,1\n" + "oak,2.5\nfir,3.5\n" * 9,
        "anna,1,2,3\n" + "bob,7,1,4\neve,2,9,3\n" * 9,
        "red,oak\n" + "red,fir\nblue,elm\nblue,fir\n" * 9,
    ],
)
def test_a_doubtful_line_is_refused_and_options_decide(read, text):
    n_lines = len(text.splitlines())
    with one_sentence(
        r"a.csv, line 1: .* pass --header yes if .*, or --header no if they are values"
    ):
        read(text)
    names = read(text, header="yes", columns="all")
    assert (names.n_samples, names.feature_names is None) == (n_lines - 1, False)
    rows = read(text, header="no", columns="all", na_values=["x", ""])
    assert (rows.n_samples, rows.feature_names) == (n_lines, None)


@pytest.mark.parametrize("header", [0, True, np.int64(0), "yes"])
def test_header_0_names_the_columns_as_in_pandas(read, header):
    text = "2019,2020\n" + "3,4\n6,7\n" * 9
    assert read(text, header=header).feature_names == ["2019", "2020"]
    assert read(text, header=False).n_samples == 19
    assert read(text, header=np.False_).n_samples == 19


def test_a_number_of_a_line_as_header_counts_as_in_pandas(read):
    text = "one,two\n\n7,8\nheat,rain\n" + ROWS
    samples = read(text, header=2)
    assert list(pd.read_csv(read.path, header=2).columns) == samples.feature_names
    assert values(samples) == NUMBERS
    for header in (-1, "maybe", 2.5, [0, 1]):
        with one_sentence(r"header=.* is unknown: pass 'yes', 'no', or the number"):
            read(text, header=header)
    with one_sentence("header=500 is not among"):
        read(text, header=500)


def test_references_by_number_need_no_header(read):
    text = "1,2,a\n3,4,b\n5,6,a\n" * 5
    with one_sentence(
        "2 columns are given for --label-column: pass one, such as --label-column 0"
    ):
        read(text, label_column="0,1")
    assert read(text, label_column="2").n_samples == 15
    assert read(text, columns="all", header=None).n_samples == 15


# --- lines above the header ------------------------------------------------------------

TITLES = {
    "a title": "Station 7\n",
    "a title and an empty line": "Station 7\n\n",
    "two titles": "Station 7\nmeasured in 2024\n\n",
    "a title with commas": "Station 7,\n\n",
    "keys and values": "Serial,123\nSite,North\n\n",
    "a section": "[Header]\nSerial,123\n[Data]\n",
    "a wider line": "Logger,CR,1000,x12\n",
    "comments": "# Station 7\n# height, 120 m\n",
}


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("title", TITLES)
def test_titles_are_no_rows(read, title):
    samples = read(TITLES[title] + "heat,rain\n" + ROWS)
    assert samples.feature_names == ["heat", "rain"]
    assert values(samples) == NUMBERS
    if title != "comments":
        (note,) = samples.notes
        first = TITLES[title].split("\n")[0].strip(",").replace(",", ", ")
        assert "skipped (neither header nor rows)" in note
        assert first in note
    n_lines = TITLES[title].count("\n")
    skipped = read(read.path.read_bytes(), skip_lines=n_lines)
    assert values(skipped) == NUMBERS
    assert not skipped.notes


def test_titles_of_wide_tables(read):
    top = "Logger 3;;;\nSerial;17;;\nSite;North;;\n"
    text = top + "time;a;b;c\n" + "".join(f"{i};{i % 3};4;{i % 7}\n" for i in range(30))
    samples = read(text, columns="all")
    assert samples.feature_names == ["time", "a", "b", "c"]
    assert samples.n_samples == 30
    assert "lines 1 to 3 were skipped" in samples.notes[0]


def test_a_title_above_rows_without_a_header(read):
    samples = read("Station 7\n\n" + ROWS)
    assert values(samples) == NUMBERS
    assert "line 1 was skipped" in samples.notes[0]


def test_lines_are_skipped_as_told(read):
    text = "1,2\n3,4\nheat,rain\n" + ROWS
    assert values(read(text, skip_lines=2)) == NUMBERS
    assert values(read("9,9\n" * 3 + ROWS, skip_lines=3, header="no")) == NUMBERS
    with one_sentence(
        "has only 43 lines: skip fewer than that, for example with --skip-lines 0"
    ):
        read(text, skip_lines=50)
    for number in (-1, "2", 1.5, True):
        with one_sentence("skip_lines=.* is not a number of lines: pass 0 or more"):
            read(text, skip_lines=number)


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;"])
def test_a_first_line_names_the_delimiter(read, line):
    samples = read(f"{line}\nheat;rain\n" + ROWS.replace(",", ";"))
    assert samples.feature_names == ["heat", "rain"]
    assert values(samples) == NUMBERS


def test_the_last_comment_names_columns_as_numpy_writes_them(read):
    np.savetxt(read.path, NUMBERS, delimiter=",", header="heat,rain")
    samples = mmcnb.read_table(read.path)
    assert samples.feature_names == ["heat", "rain"]
    assert values(samples) == NUMBERS


# --- lines below the header ------------------------------------------------------------


@pytest.mark.parametrize(
    "units", ["°C,mm", "[°C],[mm]", "(degC),(mm/h)", "%,", "air temperature,rain fall"]
)
def test_a_line_of_units_is_no_row(read, units):
    samples = read(f"heat,rain\n{units}\n" + ROWS)
    assert samples.feature_names == ["heat", "rain"]
    assert values(samples) == NUMBERS
    (note,) = samples.notes
    assert "line 2 was read as part of the header" in note
    assert f"heat {units.split(',')[0]!r}" in note


def test_a_row_with_a_bad_cell_is_no_line_of_units(read):
    text = "name,score\nbob,unknown\n" + "al,3\neve,5\nbob,4\n" * 9
    samples = read(text, na_values="unknown")
    assert samples.n_samples == 28


# --- rows and names of different lengths -----------------------------------------------

NAMED_ROWS = "".join(
    f"{i},{line}\n" for i, line in enumerate(ROWS.splitlines(), start=1)
)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("heat,rain\n" + NAMED_ROWS, "the first column is read as row names"),
        ("heat,rain,\n" + ROWS, None),
        ("heat,rain\n" + ROWS.replace("\n", ",\n"), None),
        ("heat,rain,\n" + ROWS.replace("\n", ",\n"), None),
        ("heat,rain,,,\n" + ROWS.replace("\n", ",,,\n"), None),
        ("heat,rain\n" + ROWS.replace("\n", ",\n", 20), None),
        ("heat\train\n" + ROWS.replace(",", "\t"), None),
        ("heat;rain\n" + ROWS.replace(",", ";"), None),
        ("heat|rain\n" + ROWS.replace(",", "|"), None),
        ("  heat   rain\n" + ROWS.replace(",", "    "), None),
        ("heat,rain\n" + ROWS + "\n\n", None),
        ("heat,rain\n" + ROWS.replace("\n", "\n# a comment\n", 1), "a comment"),
        ("heat,rain\n" + ROWS + "Source: the station\n", "Source: the station"),
        ("heat,rain\n" + ROWS + "\nend of file\n", "end of file"),
        ("heat,rain\n" + ROWS + ",\nSource: the station,\n", "Source: the station"),
        ("|heat|rain|\n|---|---|\n" + _piped(ROWS), None),
        ("heat,rain\r\n" + ROWS.replace("\n", "\r\n"), None),
        ("heat,rain\r" + ROWS.replace("\n", "\r"), None),
        ('"heat","rain"\n' + ROWS, None),
        ('\ufeff"heat","rain"\n' + ROWS, None),
    ],
)
def test_forms_of_one_table(read, text, note):
    samples = read(text)
    assert samples.feature_names == ["heat", "rain"]
    assert values(samples) == NUMBERS
    notes = list(samples.notes)
    assert len(notes) == (note is not None)
    if note is not None:
        assert note in notes[0]


def test_a_last_row_with_a_sum_is_named(read):
    text = "kind,heat\n" + "oak,2.5\nfir,3\n" * 9 + "Total,49.5\n"
    (note,) = read(text, missing="drop").notes[:1]
    assert "line 20 begins with 'Total' and was read as a row" in note


def test_a_title_above_one_column(read):
    samples = read("Station 7\n\nheat\n" + "1.5\n2.5\n" * 9)
    assert samples.feature_names == ["heat"]
    assert samples.n_samples == 18


def test_four_lines_of_a_logger(read):
    top = '"TOA5","CR1000","12345","CPU:a.CR1","77"\n"TIMESTAMP","BattV","AirT"\n'
    units = '"TS","Volts","Deg C"\n"","Avg","Avg"\n'
    rows = "".join(
        f'"2024-01-{i + 1:02} 00:10:00",12.{i},{i % 7}.5\n' for i in range(28)
    )
    samples = read(top + units + rows)
    assert samples.n_samples == 28
    assert [column.name for column in samples.encoding.columns] == [
        "TIMESTAMP",
        "BattV",
        "AirT",
    ]
    assert "AirT 'Deg C'" in samples.notes[1]


def test_frames_of_r_and_of_numbers_with_commas(read):
    frame = pd.DataFrame(NUMBERS, columns=["heat", "rain"])
    frame.to_csv(read.path, sep=";", decimal=",", index=False)
    samples = mmcnb.read_table(read.path, decimal=",")
    assert values(samples) == NUMBERS
    lines = ['"heat" "rain"']
    lines += [f'"{i + 1}" {heat} {rain}' for i, (heat, rain) in enumerate(NUMBERS)]
    assert values(read("\n".join(lines))) == NUMBERS


@pytest.mark.usefixtures("pieces")
def test_missing_cells_at_the_end_of_a_row_are_gaps(read):
    text = "a,b,c\n1,2,3\n4\n5,6\n" + "7,8,9\n" * 20
    samples = read(text, missing="mean")
    frame = pd.read_csv(read.path)
    assert values(samples) == frame.fillna(frame.mean()).round(6).to_numpy(
        "float32"
    ).tolist() or np.allclose(values(samples), frame.fillna(frame.mean()))
    assert "2 rows have fewer cells than there are columns" in samples.notes[0]
    assert "first in line 3" in samples.notes[0]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b,c\n" + "1,2\n3,4\n" * 9, {"skip_lines": 1, "header": "no"}),
        ("a,b\n" + "1,2,3,4\n3,4,5,6\n" * 9, {"skip_lines": 1, "header": "no"}),
        ("a,b\n" + "1.5,2,3\n1.5,4,5\n" * 9, {"skip_lines": 1, "header": "no"}),
    ],
)
def test_a_header_of_another_length_is_refused_with_a_remedy(read, text, options):
    remedy = "--skip-lines 1 with --header no"
    with one_sentence(rf"line 1: this header has . names.* {remedy}"):
        read(text)
    assert read(text, **options).n_samples == 18


def test_a_comma_in_one_column_may_be_a_decimal_point(read):
    text = "heat\n" + "1,5\n2,7\n10,3\n" * 9
    with one_sentence("pass --decimal ',' if the comma is a decimal point"):
        read(text)
    rows = values(read(text, decimal=","))
    assert np.allclose(rows[:3], [[1.5], [2.7], [10.3]])


def test_columns_without_a_name_are_named_as_by_pandas(read):
    text = "a,,c,\n" + "1,2,x,4\n4,5,y,6\n" * 9
    samples = read(text, drop="c")
    assert samples.feature_names == ["a", "Unnamed: 1", "Unnamed: 3"]
    assert list(pd.read_csv(read.path).columns) == [
        "a",
        "Unnamed: 1",
        "c",
        "Unnamed: 3",
    ]


# --- the same in a model ---------------------------------------------------------------


def test_a_model_reads_other_files_with_the_lines_that_it_skipped(tmp_path, rng):
    rows = rng.normal(size=(90, 2)) + [[10 * (i % 3), 0] for i in range(90)]
    text = "".join(f"{a:.3f},{b:.3f}\n" for a, b in rows)
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\nheat,rain\n" + text)
    table = mmcnb.read_table(path, skip_lines=2)
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(table)
    model.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    assert (loaded.predict(str(path)) == model.labels_).all()


def test_the_report_of_a_conversion_has_the_notes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Station 7\n\nheat,rain\n" + ROWS)
    report = convert(path, tmp_path / "a.zarr")
    assert "line 1 was skipped" in report["notes"][0]


def test_a_model_finds_the_names_of_its_columns_in_a_small_file(tmp_path, rng):
    path = tmp_path / "a.csv"
    rows = [
        f"{20 * (i % 3) + rng.normal():.3f},{i % 7}.5,{i % 5}.25" for i in range(90)
    ]
    path.write_text("heat,2019,heat\n" + "\n".join(rows))
    table = mmcnb.read_table(path, header="yes")
    assert table.feature_names == ["heat", "2019", "heat.1"]
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(table)
    path.write_text("Batch 2\nheat,2019,heat\n" + "\n".join(rows[:2]))
    assert model.predict(str(path)).tolist() == model.labels_[:2].tolist()


WHOLE = "name,heat,rain\n" + "".join(f"n{k},{k}.5,{k % 7}\n" for k in range(30))


@pytest.mark.parametrize("end", ["n30", "n30,2.5", 'n30,2.5,"1\n2', "n30,2.5,3"])
def test_an_incomplete_last_line_is_named(read, end):
    notes = read(WHOLE + end, missing="median").notes
    found = [note for note in notes if "the file seems to be truncated" in note]
    assert len(found) == (end.count(",") < 2)
    assert all("the last line, line 32, is incomplete" in note for note in found)
    # With a line break at its end, a line is complete, but may still lack cells.
    notes = read(f"{WHOLE}n30,2.5\n", missing="median").notes
    assert "one row has fewer cells" in notes[0]


def test_an_incomplete_last_line_without_values_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(WHOLE + "n30")
    sentence = "line 32: the last line is incomplete, so the file seems to be truncated"
    with pytest.raises(mmcnb.InputError, match=sentence):
        mmcnb.MaximumMarginClustering(random_state=0).fit(path)


@pytest.mark.parametrize("name", ["Subtotal", "Total:", "Grand total north", "Summe"])
@pytest.mark.parametrize("is_frame", [False, True])
def test_rows_of_sums_between_other_rows_are_named(tmp_path, name, is_frame):
    rows = [f"{kind},{k % 9}.5" for k, kind in enumerate(["oak", "fir"] * 30)]
    rows[40] = f"{name},165.5"
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["kind,heat", *rows]) + "\n")
    source = pd.read_csv(path) if is_frame else path
    place = "row 40" if is_frame else "line 42"
    samples = mmcnb.read_table(source)
    assert samples.n_samples == 60
    assert f"{place} ('{name}') was read as a row: remove it" in samples.notes[0]
    # Categories and names of products are not sums.
    text = path.read_text().replace("oak", "Total").replace(name + ",", "Total Care,")
    path.write_text(text)
    assert not any("sums up" in note for note in mmcnb.read_table(path).notes)
