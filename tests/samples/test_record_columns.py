"""Columns that describe the record: dates, counters and identifiers take no part unless they are asked for."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb import ClusterWarning, cli, open_samples
from tests.samples.common import as_csv, as_parquet

N = 400
FIRST = pd.Timestamp("2024-03-01")
IDENTIFIED = "it is an identifier by its name and values"
NUMBERED = "it numbers the rows"
DATED = "its dates show when rows were recorded"


def draws(seed=0):
    return np.random.default_rng(seed)


def days(n=N, seed=0):
    return FIRST + pd.to_timedelta(draws(seed).uniform(0, 300, n).round(2), unit="D")


def two(n=N):
    """Two columns that describe things."""
    rng = draws(1)
    return {"height": rng.normal(size=n).round(3), "width": rng.normal(size=n).round(3)}


def with_records(n=N):
    """Two columns of things, and one of each kind that describes the record."""
    rng = draws(2)
    records = {
        "entered": days(n),
        "line": 500 - 5 * np.arange(n),
        "Kundennummer": rng.integers(1000, 9999, n),
    }
    return pd.DataFrame(records | two(n))


def workbook(frame, folder):
    frame.to_excel(folder / "rows.xlsx", index=False)
    return folder / "rows.xlsx"


def folder_of_files(frame, folder):
    (folder / "rows").mkdir()
    half = len(frame) // 2
    frame[:half].to_csv(folder / "rows" / "a.csv", index=False)
    frame[half:].to_csv(folder / "rows" / "b.csv", index=False)
    return folder / "rows"


FORMS = {
    "pandas": lambda frame, folder: frame,
    "Polars": lambda frame, folder: pl.from_pandas(frame),
    "Arrow": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "CSV": as_csv,
    "Parquet": as_parquet,
    "Excel": workbook,
    "folder": folder_of_files,
}


def left_out(samples):
    """The reasons of columns left out, by name."""
    columns = samples.encoding.columns
    return {column.name: column.why for column in columns if column.kind == "left out"}


# --- what is left out -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_dates_counters_and_identifiers_are_left_out_by_every_way_in(tmp_path, form):
    samples = open_samples(FORMS[form](with_records(), tmp_path))
    assert samples.feature_names == ["height", "width"]
    assert left_out(samples) == {
        "entered": DATED,
        "line": NUMBERED,
        "Kundennummer": IDENTIFIED,
    }
    (note,) = samples.notes
    assert f"3 columns are left out: 'entered' ({DATED}), 'line' ({NUMBERED}), " in note
    assert "--keep entered --keep line --keep Kundennummer) keeps them" in note
    assert note.endswith(
        "dates='epoch' of mmcnb.read_table (--dates epoch) keeps dates."
    )


@pytest.mark.parametrize("form", ["pandas", "CSV"])
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"keep": "entered"}, ["entered"]),
        ({"keep": ["line", "Kundennummer"]}, ["line", "Kundennummer"]),
        ({"dates": "epoch"}, ["entered"]),
        ({"dates": "drop"}, []),
        ({"columns": "all"}, ["entered", "line", "Kundennummer"]),
        ({"columns": ["line", "height", "width"]}, ["line"]),
        ({"dates": "epoch", "categories": "one-hot"}, ["entered"]),
        ({"missing": "drop"}, []),
        ({"missing": "refuse", "categories": "refuse"}, []),
    ],
)
def test_what_is_asked_for_is_taken(tmp_path, form, options, names):
    source = FORMS[form](with_records(), tmp_path)
    samples = mmcnb.read_table(source, **options)
    assert samples.feature_names == [*names, "height", "width"]
    if "entered" in names:
        seconds = (with_records()["entered"] - pd.Timestamp(0)).dt.total_seconds()
        block = samples.block(0, N)
        np.testing.assert_allclose(block[:, 0], seconds)


def test_a_table_without_names_has_no_identifiers_and_keeps_its_dates(tmp_path):
    frame = with_records().assign(row=np.arange(N))
    frame.to_csv(tmp_path / "rows.csv", index=False, header=False)
    samples = mmcnb.read_table(tmp_path / "rows.csv", header="no")
    assert samples.n_features == 5
    assert left_out(samples) == {"5": NUMBERED}


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(N),
        7 + np.arange(N),
        -3 * np.arange(N),
        10**12 + 250 * np.arange(N),
        np.arange(N) * 2.0,
    ],
)
def test_whole_numbers_in_equal_steps_count_rows(numbers):
    frame = pd.DataFrame({"x": numbers} | two())
    assert left_out(open_samples(frame)) == {"x": NUMBERED}


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(N) / 4,
        np.sort(draws().integers(0, 10**6, N)),
        np.arange(N) // 2,
        np.full(N, 3),
        draws().permutation(N),
        np.where(np.arange(N) == N - 1, 0, np.arange(N)),
    ],
)
def test_other_numbers_do_not_count_rows(numbers):
    frame = pd.DataFrame({"x": numbers} | two())
    assert open_samples(frame).feature_names == ["x", "height", "width"]


IDENTIFIERS = """
id ID customer_id customerId customerID CustomerID Customer-ID userid id2 uuid
key order_key nr KundenNr Kundennummer Nummer order_no OrderNo no number
order_number customer_num zip zip_code ZipCode zipcode postcode PLZ phone
telephone ssn area_code Artikelnr Rechnungsnummer accountnumber unique_id
"""
MEASURES = """
paid amount_paid number_of_rooms num_children no_of_x n_x numberOfOrders acid
grid valid node monkey episode NO2 no2 id_count zip_income phone_calls
lines_of_code number_rooms Anzahl codec keyboard breadth humidity fluid
"""


@pytest.mark.parametrize(
    "name", [*IDENTIFIERS.split(), "order no", "Customer ID", "Kunden-Nr."]
)
def test_names_of_identifiers(name):
    values = draws().integers(10**5, 10**6, N // 2)[draws(3).integers(0, N // 2, N)]
    frame = pd.DataFrame({name: values} | two())
    assert left_out(open_samples(frame)) == {name: IDENTIFIED}


@pytest.mark.parametrize("name", [*MEASURES.split(), "number of X", "No. of visits"])
def test_names_of_measures(name):
    values = draws().integers(10**5, 10**6, N // 2)[draws(3).integers(0, N // 2, N)]
    frame = pd.DataFrame({name: values} | two())
    assert open_samples(frame).feature_names == [name, "height", "width"]


@pytest.mark.parametrize(
    ("values", "is_left_out"),
    [
        (draws().integers(0, 200, N), True),
        (draws().integers(0, 50, N), False),
        (draws().integers(0, 200, N) + 0.5, False),
        (draws().normal(size=N), False),
        (np.where(np.arange(N) % 5, draws().integers(0, 200, N), np.nan), True),
    ],
)
def test_the_values_of_an_identifier_agree_with_its_name(values, is_left_out):
    frame = pd.DataFrame({"code": values} | two())
    assert left_out(open_samples(frame)) == (
        {"code": IDENTIFIED} if is_left_out else {}
    )


def test_few_numbers_that_all_differ_are_identifiers_too():
    frame = pd.DataFrame({"id": draws().permutation(30)} | two(30))
    assert left_out(open_samples(frame)) == {"id": IDENTIFIED}


# --- at least two columns -------------------------------------------------------------


@pytest.mark.parametrize("form", ["pandas", "CSV"])
@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["entered", "height"], ["entered", "height"]),
        (["Kundennummer", "height"], ["Kundennummer", "height"]),
        (["entered", "Kundennummer"], ["entered", "Kundennummer"]),
        (["entered"], ["entered"]),
        # Numbers of customers repeat, and moments do not.
        (["entered", "Kundennummer", "height"], ["Kundennummer", "height"]),
        # Nothing is said by numbers of rows.
        (["line", "height"], ["height"]),
        (["line", "entered"], ["entered"]),
        (["line"], ["line"]),
    ],
)
def test_two_columns_remain(tmp_path, form, names, taken):
    samples = open_samples(FORMS[form](with_records()[names], tmp_path))
    assert samples.feature_names == taken
    records = [name for name in taken if name not in ("height", "width")]
    stays = [
        note for note in samples.notes if "because few columns would remain" in note
    ]
    assert len(stays) == (len(records) > 0)
    assert all(repr(name) in stays[0] for name in records)
    if "height" in taken and records:
        assert f"drop={records} of mmcnb.read_table" in stays[0]


def test_which_columns_remain_does_not_depend_on_their_order_or_names():
    numbers = {f"id {k}": draws(k).permutation(9 * N)[:N] for k in range(4)}
    frame = pd.DataFrame(numbers)
    taken = set(open_samples(frame).feature_names)
    assert len(taken) == 2
    assert set(open_samples(frame.iloc[:, ::-1]).feature_names) == taken
    renamed = frame.rename(
        columns=dict(zip(frame, ["key", "uuid", "no", "z id"], strict=True))
    )
    of_renamed = set(open_samples(renamed).feature_names)
    assert of_renamed == set(renamed.columns[frame.columns.isin(taken)])


# --- days and months ------------------------------------------------------------------


def doubtful(folder):
    """A file with dates of which the order is not known, and others."""
    rng = draws()
    day, month = rng.integers(1, 13, (2, N))
    ordered = [f"{d:02}/{m:02}/2024" for d, m in zip(day, month, strict=True)]
    frame = pd.DataFrame({"ordered": ordered, "entered": days()} | two())
    return as_csv(frame, folder), day, month


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"dates": "day-first"}, ["ordered"]),
        ({"dates": "month-first"}, ["ordered"]),
        ({"dates": "day-first", "keep": "ordered"}, ["ordered"]),
        ({"dates": "day-first", "keep": "entered"}, ["ordered", "entered"]),
        ({"dates": ["epoch", "day-first"]}, ["ordered", "entered"]),
        ({"dates": "month-first,epoch"}, ["ordered", "entered"]),
        ({"dates": "epoch"}, ["entered"]),
        ({"dates": ["drop", "day-first"]}, []),
        ({}, []),
    ],
)
def test_an_order_of_dates_takes_the_dates_that_need_it(tmp_path, options, names):
    path, day, month = doubtful(tmp_path)
    samples = mmcnb.read_table(path, **options)
    assert samples.feature_names == [*names, "height", "width"]
    if "ordered" in names:
        if "month" in str(options["dates"]):
            day, month = month, day
        dates = pd.to_datetime(pd.DataFrame({"year": 2024, "month": month, "day": day}))
        seconds = (dates - pd.Timestamp(0)).dt.total_seconds()
        np.testing.assert_allclose(samples.block(0, N)[:, 0], seconds)


def test_the_command_takes_two_options_of_dates(tmp_path, capsys):
    path, _, _ = doubtful(tmp_path)
    words = f"info {path} --dates drop --dates epoch --dates day-first"
    assert cli.main(words.split()) == 0
    assert "left out" not in capsys.readouterr().out


# --- numbers that only look like identifiers ------------------------------------------

ORDINARY = {
    "normal": lambda rng, n: rng.normal(size=n) * 1e9,
    "lognormal": lambda rng, n: rng.lognormal(size=n) * 1e9,
    "two groups": lambda rng, n: rng.normal(1e9 * rng.integers(0, 2, n), 2e8),
    "nine groups": lambda rng, n: rng.normal(1e9 * rng.integers(0, 9, n), 1e8),
    "some equal": lambda rng, n: rng.integers(0, 2 * n, n),
    "not whole": lambda rng, n: rng.random(n),
}


@pytest.mark.parametrize("form", ["pandas", "CSV"])
def test_numbers_spread_evenly_are_told_of(tmp_path, form):
    frame = pd.DataFrame({"ref": draws().permutation(10**6)[:N]} | two())
    samples = open_samples(FORMS[form](frame, tmp_path))
    assert samples.feature_names == ["ref", "height", "width"]
    (note,) = samples.notes
    assert "all numbers of 'ref' are distinct and spread evenly" in note
    assert "drop=['ref'] of mmcnb.read_table (--drop ref) leaves it out." in note


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_numbers_are_not_told_of(kind):
    for seed in range(10):
        numbers = ORDINARY[kind](draws(seed), 300 if seed % 2 else 3000)
        if kind != "not whole":
            numbers = np.round(numbers)
        frame = pd.DataFrame({"income": numbers} | two(len(numbers)))
        assert open_samples(frame).notes == []


# --- fits, models and other rows ------------------------------------------------------


def orders(n=500):
    """Three kinds of orders, with columns of the record."""
    rng = draws(5)
    kind = rng.integers(0, 3, n)
    plans = np.array(["basic", "plus", "team"])
    frame = pd.DataFrame(
        {
            "entered": days(n),
            "order number": 70_000 + np.cumsum(rng.integers(1, 4, n)),
            "customer_id": rng.integers(10_000, 99_999, 600)[rng.integers(0, 600, n)],
            "plan": np.where(rng.random(n) < 0.95, plans[kind], rng.choice(plans, n)),
            "amount": np.exp(2 * kind + rng.normal(0, 0.4, n)).round(2),
            "weight": (3 * kind + rng.normal(0, 0.5, n)).round(2),
        }
    )
    return frame, kind


@pytest.mark.parametrize("form", ["pandas", "CSV"])
@pytest.mark.parametrize("n_clusters", [3, None])
def test_records_do_not_disturb_a_fit(tmp_path, form, n_clusters):
    frame, kind = orders()
    source = FORMS[form](frame, tmp_path)
    with pytest.warns(ClusterWarning, match="3 columns are left out: 'entered'"):
        model = mmcnb.MaximumMarginClustering(n_clusters, random_state=0).fit(source)
    assert adjusted_rand_score(kind, model.labels_) > 0.9
    reasons = {
        column["name"]: column["why"]
        for column in model.report_["columns"]
        if column["treatment"] == "left out"
    }
    assert reasons == {
        "entered": DATED,
        "order number": IDENTIFIED,
        "customer_id": IDENTIFIED,
    }
    # Other rows need none of these columns, and theirs decide nothing.
    others = frame.drop(columns=["entered", "customer_id"])
    others["weight"] = np.arange(len(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(model.predict(frame), model.labels_)
        assert len(model.predict(others)) == len(frame)
        assert model.update(frame).n_clusters_ == model.n_clusters_
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    assert again.model_.encoding.columns == model.model_.encoding.columns
    assert np.array_equal(again.predict(source), model.labels_)


def test_a_kept_date_is_a_feature_of_the_model(tmp_path):
    frame, _ = orders()
    path = as_csv(frame, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mmcnb.CPMMC(random_state=0).fit(path, keep="entered")
        of_frame = mmcnb.CPMMC(random_state=0).fit(frame, keep="entered")
        assert np.array_equal(model.predict(path), model.labels_)
        assert np.array_equal(model.predict(frame), model.labels_)
        assert np.array_equal(of_frame.predict(path), of_frame.labels_)
    assert "entered" in [column.name for column in model.model_.encoding.features]


def test_info_and_convert_give_the_reasons(tmp_path, capsys):
    path = as_csv(with_records(), tmp_path)
    for words in (f"info {path}", f"convert {path} {tmp_path / 'rows.zarr'}"):
        assert cli.main(words.split()) == 0
        said = capsys.readouterr().out
        for why in (DATED, NUMBERED, IDENTIFIED):
            assert f"left out: {why}" in said
    store = open_samples(tmp_path / "rows.zarr")
    assert store.feature_names == ["height", "width"]


def test_gaps_of_a_column_that_is_left_out_are_no_fault():
    frame = with_records()
    frame.loc[7, "entered"] = None
    frame.loc[9, "Kundennummer"] = None
    samples = mmcnb.read_table(frame, missing="refuse")
    assert samples.feature_names == ["height", "width"]
    dropped = mmcnb.read_table(frame, missing="drop")
    assert dropped.n_samples == N


# --- times of day ---------------------------------------------------------------------


def moments(n=600):
    """Three kinds of times, one of them around midnight, and a weak number."""
    rng = draws(8)
    kind = rng.integers(0, 3, n)
    hours = (8 * kind + rng.normal(0, 1, n)) % 24
    times = pd.Timestamp("2024-05-01") + pd.to_timedelta((hours * 60).round(), "min")
    return times, kind


CLOCKS = {
    "texts": lambda times: times.strftime("%H:%M"),
    "texts with seconds": lambda times: times.strftime("%H:%M:%S"),
    "texts with halves": lambda times: times.strftime("%I:%M %p"),
    "objects": lambda times: times.time,
    "Arrow": lambda times: pd.Series(times.time).astype(pd.ArrowDtype(pa.time64("us"))),
}


@pytest.mark.parametrize("form", CLOCKS)
def test_a_time_of_day_lies_on_a_circle(tmp_path, form):
    times, kind = moments()
    weak = draws(9).normal(size=(len(kind), 2))
    frame = pd.DataFrame(weak, columns=["a", "b"])
    frame.insert(1, "time", CLOCKS[form](times))
    samples = open_samples(frame)
    assert samples.feature_names == ["a", "time_sin", "time_cos", "b"]
    assert samples.sources == ["a", "time", "time", "b"]
    assert samples.notes == []
    turns = 2 * np.pi * (times - times.normalize()).total_seconds() / 86400
    block = samples.block(0, len(kind))
    np.testing.assert_allclose(block[:, 1], np.sin(turns), atol=1e-9)
    np.testing.assert_allclose(block[:, 2], np.cos(turns), atol=1e-9)
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["a", "time", "b"]
    assert adjusted_rand_score(kind, model.labels_) > 0.8
    # Both numbers weigh as one column of deviation 1.
    scaled = block[:, 1:3] / model.model_.scaling.deviation[1:3]
    assert scaled.var(axis=0).sum() == pytest.approx(1, rel=0.1)
    assert "time towards " in " ".join(model.explain(frame).clusters["sentence"])
    model.save(tmp_path / "model")
    again = mmcnb.load(tmp_path / "model")
    for source in (frame, as_csv(frame, tmp_path), as_parquet(frame, tmp_path)):
        assert np.array_equal(again.predict(source), model.labels_)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("time", ["25:10", "03:20", "11:00"]),
        ("time", ["1:10", "3:20", "11:00"]),
        ("time", ["1h 10m", "3h 20m", "11h 5m"]),
        ("duration", ["01:10", "03:20", "11:00"]),
        ("time", ["1 days 01:10:00", "3 days 01:10:00", "0 days 00:00:01"]),
    ],
)
def test_durations_are_seconds(name, cells):
    frame = pd.DataFrame({name: cells * 20} | two(60))
    assert open_samples(frame).feature_names == [name, "height", "width"]


def test_gaps_in_times_of_day(tmp_path, capsys):
    times, _ = moments(120)
    frame = pd.DataFrame({"time": times.strftime("%H:%M")} | two(120))
    frame.loc[::10, "time"] = None
    path = as_csv(frame, tmp_path)
    assert cli.main(f"convert {path} {tmp_path / 'rows.zarr'}".split()) == 0
    assert "12 in 'time'" in capsys.readouterr().out
    with pytest.warns(ClusterWarning, match="12 in 'time'"):
        model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(path)
    with pytest.warns(ClusterWarning, match="12 in 'time_sin', 12 in 'time_cos'"):
        of_store = mmcnb.MaximumMarginClustering(3, random_state=0).fit(
            tmp_path / "rows.zarr"
        )
    assert np.array_equal(model.labels_, of_store.labels_)
    empty = frame.assign(
        time=pd.Series([None] * 120, dtype=pd.ArrowDtype(pa.time32("s")))
    )
    assert left_out(open_samples(empty)) == {"time": "it is empty"}


def test_a_time_of_day_and_a_number_are_enough():
    times, _ = moments(100)
    frame = pd.DataFrame({"time": times.time, "entered": days(100)})
    assert open_samples(frame).feature_names == ["time_sin", "time_cos", "entered"]
