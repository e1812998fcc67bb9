"""Numbers, dates and flags that are written as text, in a frame and in a CSV file."""

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb import ClusterWarning, InputError, open_samples


def opened(tmp_path, form, cells, **others):
    """Rows of a table with a column "x" of texts and a column of numbers."""
    frame = pd.DataFrame({"x": cells, "y": np.arange(len(cells)) * 7 % 11, **others})
    if form == "frame":
        return open_samples(frame)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return open_samples(tmp_path / "rows.csv")


def first_column(samples):
    return samples.block(0, samples.n_samples)[:, 0]


in_both = pytest.mark.parametrize("form", ["frame", "CSV"])

WRITTEN = {
    "plain": (["12", " 7 ", "-3.5", "1e3"], [12, 7, -3.5, 1000]),
    "commas between thousands": (["1,234", "12,345.5", "7"], [1234, 12345.5, 7]),
    "points between thousands": (["1.234,50", "3,5", "-7,25"], [1234.5, 3.5, -7.25]),
    "a decimal comma": (["12,5", "3,25", "4"], [12.5, 3.25, 4]),
    "no-break spaces": (["1\u00a0234", "12\u202f345", "7"], [1234, 12345, 7]),
    "spaces": (["1 234", "12 345", "7"], [1234, 12345, 7]),
    "apostrophes": (["1'234", "12\u2019345", "7"], [1234, 12345, 7]),
    "lakhs": (["4,25,000", "71,000", "12,34,567"], [425000, 71000, 1234567]),
    "a minus sign": (["\u221212", "5", "\u22120.5"], [-12, 5, -0.5]),
    "brackets": (["(12.50)", "3", "(1)"], [-12.5, 3, -1]),
    "a minus behind": (["12.5-", "3", "4-"], [-12.5, 3, -4]),
    "dollars": (["$1,250.00", "$85.00", "-$3.50"], [1250, 85, -3.5]),
    "dollars in brackets": (["($1,250.00)", "$85.00"], [-1250, 85]),
    "euros": (["75,40 €", "1.003,00 €"], [75.4, 1003]),
    "a code of a currency": (["CHF 12", "CHF 1'250.50"], [12, 1250.5]),
    "percent": (["97%", "15 %", "3.5%"], [97, 15, 3.5]),
    "a unit": (["3.5 kg", "12 kg", "0.25kg"], [3.5, 12, 0.25]),
    "rare cells without the unit": (["2 m"] * 39 + ["3"], [2] * 39 + [3]),
    "square metres": (["34 m2", "52.5 m2", "1 km2"], [34, 52.5, 1e6]),
    "units of one family": (["500 g", "3.5 kg", "2 kg"], [0.5, 3.5, 2]),
    "minutes and hours": (["90 min", "1.5 h", "30 min"], [90, 90, 30]),
    "one and more": (["1 room", "3 rooms"], [1, 3]),
    "K and M": (["478.60K", "2M", "950"], [478600, 2e6, 950]),
    "euros in millions": (["€1.2M", "€565K", "€0"], [1.2e6, 565000, 0]),
    "words for millions": (["1.5 million", "2 bn"], [1.5e6, 2e9]),
    "marks of gaps": (["5", "unknown", "9", "n.a.", "none", "7"], [5, 7, 9, 7, 7, 7]),
    "errors of spreadsheets": (["5", "#DIV/0!", "9", "#N/A"], [5, 7, 9, 7]),
    "days": (["02.01.1970", "13.1.1970 06:00"], [86400, 12 * 86400 + 21600]),
    "days, months first": (["1/2/1970", "1/13/1970"], [86400, 12 * 86400]),
    "names of months": (["2 Jan 1970", "13-Jan-70"], [86400, 12 * 86400]),
    "days of ISO with a zone": (
        ["1970-01-02T01:00:00+01:00", "1970-01-13"],
        [86400, 12 * 86400],
    ),
    "times of day": (["0:01", "1:00", "11:59 PM"], [60, 3600, 86340]),
    "laps": (["3:25.1", "59:59.5"], [205.1, 3599.5]),
    "long and short laps": (["59:10", "1:02:33"], [3550, 3753]),
    "durations of pandas": (["1 days 00:00:30", "0 days 12:00:00"], [86430, 43200]),
    "durations in words": (["1h 30m", "2h 5m", "PT45M10S"], [5400, 7500, 2710]),
    "truth": (["True", "false", "TRUE"], [1, 0, 1]),
}


@in_both
@pytest.mark.parametrize("kind", WRITTEN)
def test_texts_become_numbers(tmp_path, kind, form):
    cells, numbers = WRITTEN[kind]
    samples = opened(tmp_path, form, cells)
    assert samples.feature_names == ["x", "y"]
    np.testing.assert_allclose(first_column(samples), numbers, rtol=1e-6)


KEPT = {
    "codes with leading zeros": (["01234", "10115"] * 9, "begin with 0"),
    "open ends": (["1", "2", "3+"] * 9, r"9 of its 27 cells are not numbers \('3\+'\)"),
    "flags and others": (
        ["true", "false", "maybe"] * 9,
        r"9 of its 27 cells are not true or false \('maybe'\)",
    ),
    "dates and others": (
        ["2024-01-31", "2024-02-01", "soon"] * 9,
        r"9 of its 27 cells are not dates \('soon'\)",
    ),
    "several units": (["5 kg", "3 lb"] * 9, r"several units \('kg', 'lb'\)"),
    "two currencies": (["$5", "€3"] * 9, r"several units \('\$', '€'\)"),
    "ranges": (["10-20", "20-30"] * 9, None),
    "two numbers": (["3 and 7", "4 and 7"] * 9, None),
    "quarters": (["Q1", "Q2"] * 9, None),
    "two signs": (["--1", "-+2", "-3-"] * 9, None),
    "grades": (["3B-", "2B-"] * 9, None),
    "versions": (["1.2.3", "1.10.0"] * 9, None),
}


@in_both
@pytest.mark.parametrize("kind", KEPT)
def test_other_texts_stay_categories(tmp_path, kind, form):
    cells, why = KEPT[kind]
    samples = opened(tmp_path, form, cells)
    names = [f"x_{text}" for text in sorted(set(cells))]
    assert samples.feature_names == [*names, "y"]
    notes = " ".join(samples.notes)
    if why is None:
        assert notes == ""
    else:
        assert re.search(f"'x' is treated as text, because .*{why}", notes)


@in_both
def test_a_few_other_cells_are_gaps_and_are_shown(tmp_path, form):
    cells = [str(k) for k in range(96)] + ["n.v.", "97"]
    samples = opened(tmp_path, form, cells)
    assert first_column(samples)[-2] == 48
    assert "count as missing: 1 in 'x' ('n.v.')" in " ".join(samples.notes)


@in_both
def test_texts_that_are_gaps_among_numbers_are_named_as_categories(tmp_path, form):
    cells = [str(k * k % 37) for k in range(97)] + ["k.A."]
    texts = {"t": ["k.A.", "a", "b", "b"] * 24 + ["a"] * 2}
    texts["u"] = texts["t"][::-1]
    notes = opened(tmp_path, form, cells, **texts).notes
    (note,) = [note for note in notes if "categor" in note]
    assert "'k.A.' is a category of 't', 'u'; na_values=['k.A.']" in note
    if form == "CSV":
        samples = mmcnb.read_table(tmp_path / "rows.csv", na_values=["k.A."])
        assert not [note for note in samples.notes if "category of" in note]
        assert not [name for name in samples.feature_names if "k.A." in name]


@in_both
def test_one_note_names_all_columns_whose_spellings_differ(tmp_path, form):
    owns = pd.Series(["Yes", "no", "YES", "no ", "yes"] * 9)
    same = ["f", "m", "F", "M", "x"] * 9
    frame = {"owns": owns, "sex": same, "town": ["Ulm", "Ulme", "Köln"] * 15}
    notes = opened(tmp_path, form, owns.index.astype(str), **frame).notes
    (note,) = [note for note in notes if "are not merged" in note]
    assert "'owns' ('YES', 'Yes', 'yes')" in note
    assert "'sex' ('F', 'f')" in note
    assert "town" not in note
    frame["owns"] = owns.str.strip().str.lower()
    frame["sex"] = "x"
    notes = opened(tmp_path, form, owns.index.astype(str), **frame).notes
    assert not [note for note in notes if "are not merged" in note]


@in_both
@pytest.mark.parametrize(
    ("rare", "number", "is_doubtful"),
    [("1,234", 1234, True), ("1,234,567", 1234567, False), ("1 234", 1234, False)],
)
def test_rare_numbers_with_thousands_are_numbers(
    tmp_path, form, rare, number, is_doubtful
):
    cells = [str(k * k % 997) for k in range(199)] + [rare]
    samples = opened(tmp_path, form, cells)
    assert first_column(samples)[-1] == number
    notes = " ".join(samples.notes)
    assert "count as missing" not in notes
    assert ("numbers such as 1,234" in notes) == is_doubtful
    cells = [f"{k % 97}.5" for k in range(199)] + ["1,234"]
    assert first_column(opened(tmp_path, form, cells))[-1] == 1234


@in_both
def test_a_mark_in_many_cells_is_named_with_an_option_that_works(tmp_path, form):
    cells = [str(k * k) for k in range(90)] + ["n.v."] * 10
    samples = opened(tmp_path, form, cells)
    assert samples.feature_names == ["y"]
    sentence = samples.notes[0]
    assert "10 of its 100 cells are not numbers ('n.v.')" in sentence
    assert "na_values=['n.v.'] of mmcnb.read_table (--na-values n.v.)" in sentence
    if form == "CSV":
        samples = mmcnb.read_table(tmp_path / "rows.csv", na_values=["n.v."])
        assert samples.feature_names == ["x", "y"]


@in_both
def test_commas_that_could_be_either_follow_the_other_columns(tmp_path, form):
    cells = ["1,234", "2,500", "3,750"]
    thousands = opened(tmp_path, form, cells)
    assert first_column(thousands).tolist() == [1234, 2500, 3750]
    assert (
        "decimal=',' of mmcnb.read_table (--decimal ,) reads them the other way"
        in thousands.notes[0]
    )
    decimals = opened(tmp_path, form, cells, z=["0,5", "2,25", "7,5"])
    np.testing.assert_allclose(first_column(decimals), [1.234, 2.5, 3.75], rtol=1e-6)


@in_both
def test_dates_that_could_be_either_are_left_out_until_it_is_said(tmp_path, form):
    cells = ["01/02/2024", "03/04/2024", "05/06/2023"]
    samples = opened(tmp_path, form, cells)
    assert samples.feature_names == ["y"]
    assert "'x' (its dates may have the day or the month first)" in samples.notes[0]
    assert "--dates day-first" in samples.notes[1]
    if form == "CSV":
        samples = mmcnb.read_table(tmp_path / "rows.csv", dates="day-first")
        first = pd.Timestamp("2024-02-01").timestamp()
        assert first_column(samples)[0] == first


@in_both
def test_columns_that_take_no_part_are_named_with_a_way_to_keep_them(tmp_path, form):
    n = 60
    rng = np.random.default_rng(0)
    street = [f"{name} street" for name in rng.choice(list("abcdefghijklmnop"), n)]
    frame = pd.DataFrame(
        {"size": rng.normal(size=n) + 9 * (np.arange(n) % 2), "street": street}
    )
    source = frame
    if form == "CSV":
        source = tmp_path / "rows.csv"
        frame.to_csv(source, index=False)
    model = mmcnb.CPMMC(random_state=0)
    with pytest.warns(ClusterWarning, match=r"1 column is left out: 'street' \(14"):
        model.fit(source)
    why = {one["name"]: one["why"] for one in model.report_["columns"]}
    assert why["street"] == "14 texts in 60 rows"
    assert open_samples(source).feature_names == ["size"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(source, keep=["street"])
    assert not any("left out" in warning for warning in model.report_["warnings"])
    assert model.model_.encoding.feature_names[:2] == ["size", "street_a street"]


def test_what_a_fit_has_decided_holds_for_other_rows(tmp_path):
    rng = np.random.default_rng(1)
    weights = np.r_[rng.normal(20, 1, 40), rng.normal(60, 1, 40)]
    frame = pd.DataFrame(
        {
            "weight": [f"{weight:.2f} kg" for weight in weights],
            "price": [f"{1000 * weight:,.2f}" for weight in weights],
        }
    )
    with pytest.warns(ClusterWarning, match="without their units: 'weight'"):
        model = mmcnb.CPMMC(random_state=0).fit(frame)
    model.save(tmp_path / "model")
    labels = model.labels_
    model = mmcnb.load(tmp_path / "model")
    batches = {
        "one row": frame[:1],
        "numbers": frame.assign(weight=weights, price=1000 * weights),
        "other digits": frame.assign(weight=[f"{weight:.0f}" for weight in weights]),
    }
    for batch in batches.values():
        assert np.array_equal(model.predict(batch), labels[: len(batch)])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert np.array_equal(model.predict(tmp_path / "rows.csv"), labels)
    pounds = frame.assign(weight=["44 lb", *frame["weight"][1:]])
    with pytest.warns(ClusterWarning, match=r"1 in 'weight' \('44 lb'\)"):
        model.predict(pounds)


@in_both
def test_underscores_are_named_with_an_option_that_works(tmp_path, form):
    numbers = [1000 + 41 * k * k for k in range(50)]
    cells = [f"{number:_}" for number in numbers]
    samples = opened(tmp_path, form, cells)
    assert samples.feature_names == ["y"]
    assert "(--thousands _) reads these as thousands" in samples.notes[0]
    frame = pd.DataFrame({"x": cells, "y": np.arange(len(cells)) % 5})
    source = frame if form == "frame" else tmp_path / "rows.csv"
    column = first_column(mmcnb.read_table(source, thousands="_"))
    assert column.tolist() == numbers


@in_both
@pytest.mark.parametrize("cell", ["0x1F", "\u0663", "1_000", "1e5e5", "--1"])
def test_a_cell_that_is_no_number_is_a_gap_among_many_and_named(tmp_path, form, cell):
    cells = [str(k % 13) for k in range(60)] + [cell]
    samples = opened(tmp_path, form, cells)
    assert first_column(samples)[-1] == 5.5
    assert f"count as missing: 1 in 'x' ({cell!r})" in " ".join(samples.notes)
    if form == "CSV":
        with pytest.raises(InputError, match=r"line 62, column 0 \('x'\): ") as refusal:
            mmcnb.read_table(tmp_path / "rows.csv", missing="refuse")
        assert str(refusal.value).count("line 62") == 1
        assert "is not a number" in str(refusal.value)


def test_marks_of_a_column_that_is_not_there_are_refused():
    frame = pd.DataFrame({"age": [9999.0, 20, 30, 41], "pay": [1.0, 2, 3, 5]})
    samples = mmcnb.read_table(frame, na_values={"age": [9999]})
    assert first_column(samples)[0] == 30
    with pytest.raises(InputError, match="perhaps 'age' is meant"):
        mmcnb.read_table(frame, na_values={"agee": [9999]})


MIXED = {
    "floats and texts": [1.5, "2.5", "3", None],
    "decimals": [Decimal("1.5"), Decimal("2.5"), 3.0, None],
    "beyond 64 bits": [15 * 10**25, 25 * 10**25, 3 * 10**26, None],
}


@pytest.mark.parametrize("kind", MIXED)
def test_objects_of_several_types_become_numbers(kind):
    values = MIXED[kind]
    numbers = [float(value) for value in values[:3]]
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": [1.0, 2, 3, 5]})
    column = first_column(open_samples(frame))
    np.testing.assert_allclose(column, [*numbers, numbers[1]])


def test_intervals_are_categories_in_an_order_unless_they_have_none():
    frame = pd.DataFrame({"x": pd.cut([1, 2, 9], [0, 5, 10]), "y": [1.0, 2, 4]})
    samples = open_samples(frame)
    assert samples.feature_names == ["x", "y"]
    assert first_column(samples).tolist() == [0, 0, 1]
    frame["x"] = frame["x"].cat.as_unordered()
    names = open_samples(frame).feature_names
    assert names == ["x_(0, 5]", "x_(5, 10]", "y"]


def test_documents_are_named_with_a_way_to_make_numbers_of_them():
    texts = [f"the ship of captain {k} left the harbour at dawn" for k in range(50)]
    frame = pd.DataFrame({"text": texts})
    for columns in (None, ["text"]):
        with pytest.raises(InputError, match="TF-IDF"):
            mmcnb.CPMMC().fit(frame, columns=columns)


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_a_batch_without_texts_is_labelled(gap):
    speed = np.r_[np.zeros(30), np.full(30, 9.0)] + np.arange(60) % 7 / 7
    frame = pd.DataFrame({"speed": speed, "fuel": ["gas", "oil", "gas"] * 20})
    model = mmcnb.CPMMC(random_state=0).fit(frame)
    with pytest.warns(ClusterWarning, match="from the nearest rows: 60 in 'fuel'"):
        labels = model.predict(frame.assign(fuel=gap))
    assert np.array_equal(labels, model.labels_)


@pytest.mark.parametrize("n_digits", [1, 2, 4, 5, 6, 9, 15])
def test_digits_after_a_decimal_comma_are_no_thousands(tmp_path, n_digits):
    values = np.random.default_rng(3).normal(size=(40, 2)).round(n_digits)
    texts = [
        [f"{value:.{n_digits}f}".replace(".", ",") for value in row] for row in values
    ]
    frame = pd.DataFrame(texts, columns=["a", "b"])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, sep=";", index=False)
    for source in (frame, path):
        samples = mmcnb.open_samples(source)
        assert any("decimal comma" in note for note in samples.notes)
        np.testing.assert_allclose(samples.block(0, 40), values, rtol=1e-6)


@pytest.mark.parametrize("n_rows", [40, 4000])
def test_few_texts_are_tidied_in_many_rows_as_in_few(tmp_path, n_rows):
    cells = [" red", "green ", "NA", "blue"] * (n_rows // 4)
    numbers = [" 1.5 kg", "2 kg", "", "12 kg "] * (n_rows // 4)
    frame = pd.DataFrame({"colour": cells, "mass": numbers})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (frame, tmp_path / "a.csv"):
        samples = mmcnb.read_table(source, missing="median")
        names = [f"colour_{name}" for name in ("missing", "blue", "green", "red")]
        assert samples.feature_names == [*names, "mass"]
        expected = [
            [0, 0, 0, 1, 1.5],
            [0, 0, 1, 0, 2],
            [1, 0, 0, 0, 2],
            [0, 1, 0, 0, 12],
        ]
        block = samples.block(0, n_rows)
        np.testing.assert_array_equal(block, expected * (n_rows // 4))
