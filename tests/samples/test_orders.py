"""Ordered texts are numbers: categories with an order, known scales, and orders that are given."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mmcnb
from mmcnb import ClusterWarning, InputError, cli, open_samples
from mmcnb.samples.encoding import Encoding
from mmcnb.stores import convert
from mmcnb.tables.orders import SCALES, answers_of, levels_of

N = 60
NUMBERS = np.random.default_rng(0).normal(size=N).round(3)
WORDS = ["never", "rarely", "sometimes", "often", "always"]


def drawn(*texts, n=N):
    """Texts in no order, all of which occur."""
    return np.array(texts, object)[
        np.random.default_rng(1).permutation(np.arange(n) % len(texts))
    ]


def read(texts, **options):
    """The column of these texts, beside one of numbers, and what is said."""
    frame = pd.DataFrame({"a": texts, "x": NUMBERS[: len(texts)]})
    samples = mmcnb.read_table(frame, **options)
    values = samples.block(0, samples.n_samples)[:, 0]
    return samples, values.tolist(), " ".join(samples.notes)


def places(texts, *order):
    return [order.index(text) for text in texts]


# -- known scales ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "order",
    [
        ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
        ("Strongly Disagree", "Disagree", "Neither agree nor disagree", "Agree"),
        ("disagree", "neutral", "agree"),
        ("never", "rarely", "sometimes", "often", "always"),
        ("very_poor", "poor", "fair", "good", "excellent"),
        ("none", "mild", "moderate", "severe"),
        ("None", "Mild", "Moderate", "Severe"),
        ("low", "medium", "high"),
        ("VERY LOW", "LOW", "MEDIUM", "HIGH", "VERY HIGH"),
        ("XS", "S", "M", "L", "XL", "XXL", "XXXL"),
        ("not at all", "slightly", "moderately", "very", "extremely"),
        ("small", "medium", "large"),
        ("beginner", "intermediate", "advanced", "expert"),
        (
            "stimme überhaupt nicht zu",
            "stimme eher nicht zu",
            "teils/teils",
            "stimme eher zu",
        ),
        ("trifft-nicht-zu", "trifft-eher-zu", "trifft-voll-und-ganz-zu"),
        ("nie", "selten", "manchmal", "häufig", "immer"),
        ("sehr schlecht", "schlecht", "gut", "SEHR GUT"),
        ("niedrig", "mittel", "hoch"),
        ("klein", "mittel", "groß"),
        ("gar nicht", "etwas", "ziemlich", "sehr"),
        ("Anfaenger", "Fortgeschritten", "Experte"),
        ("very dissatisfied", "dissatisfied", "satisfied", "very satisfied"),
        ("1 - strongly disagree", "2 - disagree", "4 - agree"),
        ("1 (very poor)", "2 (poor)", "5 (excellent)"),
        ("1. nie", "2. selten", "3. oft"),
    ],
)
def test_answers_of_a_known_scale_are_numbers_from_0(order):
    texts = drawn(*order)
    samples, values, said = read(texts)
    assert samples.feature_names == ["a", "x"]
    assert values == places(texts, *order)
    assert samples.orders == {"a": order}
    assert "'a' (" + " < ".join(order) + ")" in said
    assert "text=['a'] of mmcnb.read_table (--text a)" in said
    as_before, _, said = read(texts, text=["a"])
    assert len(as_before.feature_names) == len(order) + 1
    assert "order" not in said


@pytest.mark.parametrize(
    "texts",
    [
        ("agree", "disagree"),  # as far apart as a flag
        ("low", "medium", "blue"),
        ("often", "high", "good"),
        ("red", "green", "blue"),
        ("yes", "no", "maybe"),
        ("M", "L", "K"),
    ],
)
def test_other_texts_stay_categories(texts):
    samples, _, said = read(drawn(*texts))
    assert len(samples.feature_names) == len(texts) + 1
    assert not samples.orders
    assert "order" not in said


@pytest.mark.parametrize(
    ("order", "is_known"),
    [
        (("1 - strongly disagree", "2", "3", "4", "5 - strongly agree"), True),
        (("1 (always)", "2", "3 (never)"), True),
        (("0 = low", "5", "10 = high"), True),
        (("1 - Berlin", "2 - Hamburg", "3 - Bonn"), False),
        (("1 - low", "2", "3 - always"), False),
        (("1 - low", "1 - high", "2"), False),
    ],
)
def test_numbers_of_which_the_ends_have_words_are_in_their_order(order, is_known):
    texts = drawn(*order)
    texts[7] = "don't know"
    samples, values, _ = read(texts)
    assert ("a" in samples.orders) == is_known
    if is_known:
        assert samples.orders["a"] == order
        assert np.delete(values, 7).tolist() == places(np.delete(texts, 7), *order)


def test_two_answers_are_in_order_where_other_questions_have_the_scale():
    frame = pd.DataFrame(
        {"a": drawn("agree", "neutral"), "b": drawn("disagree", "neutral", "agree")}
    )
    samples = open_samples(frame)
    assert samples.feature_names == ["a", "b"]
    rows = samples.block(0, N)
    assert rows[:, 0].tolist() == places(frame["a"], "disagree", "neutral", "agree")


def test_case_and_spaces_do_not_make_other_answers():
    texts = [
        "often",
        "OFTEN ",
        "Often",
        "never",
        "almost_never",
        "Almost-Never",
        "never",
        "always",
    ]
    samples, values, _ = read(texts)
    assert values == [2, 2, 2, 0, 1, 1, 0, 3]
    assert samples.orders["a"][0] == "never"


@pytest.mark.parametrize(
    "text",
    [
        "don't know",
        "Don\u2019t know",
        "prefer not to say",
        "keine Angabe",
        "weiß nicht",
        "k. A.",
        "n/a",
    ],
)
def test_who_gives_no_answer_has_a_gap(text):
    texts = drawn(*WORDS)
    texts[[3, 8, 20]] = text
    samples, values, said = read(texts)
    assert samples.feature_names == ["a", "x"]
    assert values[3] == np.median(places(np.delete(texts, [3, 8, 20]), *WORDS))
    assert "gaps were filled from their column: 3 in 'a'" in said
    if text != "n/a":  # which is a gap everywhere
        assert "count as missing: 3 in 'a' (" in said


def test_one_text_in_all_scales_has_one_place_among_the_others():
    """Which scale is found first does not change an order."""
    for one, other in itertools.combinations(SCALES, 2):
        first, second = (
            {key: k for k, keys in enumerate(levels_of(scale)) for key in keys}
            for scale in (one, other)
        )
        for a, b in itertools.combinations(sorted(first.keys() & second.keys()), 2):
            pair = {"m", "mid", "average", "mittel", "medium"} & {a, b}
            if "l" in (a, b) and pair:  # L is large beside M, and low beside H
                continue
            assert (first[a] - first[b]) * (second[a] - second[b]) >= 0, (
                one,
                other,
                a,
                b,
            )
    assert all(
        len({key for keys in levels_of(s) for key in keys})
        == sum(map(len, levels_of(s)))
        for s in SCALES
    )
    assert answers_of({"L": 1, "M": 1, "H": 1}).scale == "level"
    assert answers_of({"L": 1, "M": 1, "S": 1}).scale == "size"


# -- categories that have an order -----------------------------------------------------


def ordered_frame():
    texts = drawn("mid", "lo", "top")
    numbers = np.random.default_rng(2).permutation(np.arange(N) % 4)
    return pd.DataFrame(
        {
            "a": pd.Categorical(texts, ["lo", "mid", "top", "unused"], ordered=True),
            "b": pd.Categorical(numbers, [0, 1, 2, 3], ordered=True),
            "c": pd.Categorical(drawn("u", "v", "w")),
            "x": NUMBERS,
        }
    )


SOURCES = {
    "pandas": lambda frame, folder: frame,
    "arrow table": lambda frame, folder: pa.Table.from_pandas(frame),
    "parquet": lambda frame, folder: (
        frame.to_parquet(folder / "f.parquet", row_group_size=20)
        or folder / "f.parquet"
    ),
    "feather": lambda frame, folder: (
        frame.to_feather(folder / "f.arrow") or folder / "f.arrow"
    ),
    "folder": lambda frame, folder: (
        [frame[k : k + 30].to_parquet(folder / f"{k}.parquet") for k in (0, 30)]
        and folder
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_order_of_categories_counts_in_every_source(source, tmp_path):
    frame = ordered_frame()
    samples = mmcnb.read_table(SOURCES[source](frame, tmp_path))
    assert samples.feature_names == ["a", "b", "c_u", "c_v", "c_w", "x"]
    rows = samples.block(0, N)
    assert rows[:, 0].tolist() == frame["a"].cat.codes.tolist()
    assert rows[:, 1].tolist() == frame["b"].cat.codes.tolist()
    assert dict(samples.orders) == {
        "a": ("lo", "mid", "top", "unused"),
        "b": ("0", "1", "2", "3"),
    }
    assert "'a' (lo < mid < top < unused)" in " ".join(samples.notes)
    as_texts = mmcnb.read_table(SOURCES[source](frame, tmp_path), text=["a", "b"])
    assert len(as_texts.feature_names) == 11
    assert not as_texts.orders


def test_enums_of_polars_have_an_order_and_its_categories_have_none(tmp_path):
    texts = drawn("lo", "mid", "top")
    enum = pl.Series(texts.tolist(), dtype=pl.Enum(["lo", "mid", "top"]))
    frame = pl.DataFrame(
        {"a": enum, "b": pl.Series(texts.tolist(), dtype=pl.Categorical)}
    )
    frame.write_parquet(tmp_path / "p.parquet")
    for source in (frame, tmp_path / "p.parquet"):
        samples = mmcnb.read_table(source)
        assert samples.feature_names == ["a", "b_lo", "b_mid", "b_top"]
        assert samples.block(0, N)[:, 0].tolist() == places(texts, "lo", "mid", "top")


def test_files_with_other_orders_have_none(tmp_path):
    texts = drawn("lo", "mid", "top")
    for k, order in enumerate((["lo", "mid", "top"], ["top", "mid", "lo"])):
        column = pd.Categorical(texts, order, ordered=True)
        pd.DataFrame({"a": column, "x": NUMBERS}).to_parquet(tmp_path / f"{k}.parquet")
    assert mmcnb.read_table(tmp_path).feature_names == ["a_lo", "a_mid", "a_top", "x"]


def test_categories_of_a_known_scale_need_no_order():
    texts = pd.Categorical(drawn(*WORDS))
    assert read(texts)[1] == places(texts, *WORDS)


# -- orders that are given -------------------------------------------------------------


@pytest.mark.parametrize(
    "orders",
    [
        {"a": ["lo", "mid", "top"]},
        {"a": ("lo", "mid", "top", "more")},
        "a=lo,mid,top",
        ["0=lo,mid,top"],
    ],
)
def test_orders_are_given_by_name_or_number(orders):
    texts = drawn("mid", "lo", "top")
    _, values, said = read(texts, orders=orders)
    assert values == places(texts, "lo", "mid", "top")
    assert "order" not in said  # it was asked for


def test_numbers_and_categories_can_be_given_an_order():
    codes = drawn("3", "1", "2").astype(int)
    assert read(codes, orders={"a": [2, 3, 1]})[1] == places(codes, 2, 3, 1)
    texts = pd.Categorical(drawn("b", "a", "c"), ["b", "a", "c"], ordered=True)
    assert read(texts, orders={"a": ["c", "a", "b"]})[1] == places(texts, "c", "a", "b")


def test_few_texts_outside_of_an_order_are_gaps_and_many_are_refused(tmp_path, capsys):
    texts = drawn("lo", "mid", "top")
    texts[5] = "huge"
    order = {"a": ["lo", "mid", "top"]}
    _, values, said = read(texts, orders=order)
    assert values[5] == 1
    assert "count as missing: 1 in 'a' ('huge')" in said
    texts[::2] = "huge"
    with pytest.raises(
        InputError, match=r"31 of 60 cells, such as 'huge', are not in the given order"
    ) as refusal:
        read(texts, orders=order)
    assert "orders={'a': ['lo', 'mid', 'top', 'huge']}" in str(refusal.value)
    assert read(texts, orders={"a": ["lo", "mid", "top", "huge"]})[1] == places(
        texts, "lo", "mid", "top", "huge"
    )
    assert read(texts, orders=order, na_values=["huge"])[0].feature_names == ["a", "x"]

    with pytest.raises(InputError, match=r"60 of 60 cells, such as '.*', are not in"):
        read(texts, orders={"a": ["x", "y"]})

    table = tmp_path / "t.csv"
    pd.DataFrame({"a": texts, "x": NUMBERS}).to_csv(table, index=False)
    call = ["convert", str(table), str(tmp_path / "t.zarr")]
    assert cli.main([*call, "--order", "a=lo,mid,top"]) == 2
    assert "--order a=lo,mid,top,huge" in capsys.readouterr().err
    assert cli.main([*call, "--order", "a=lo,mid,top,huge"]) == 0


@pytest.mark.parametrize(
    "orders", [{"a": ["lo"]}, {"a": "lo"}, {"a": ["lo", "lo"]}, "a", 7, {"a": []}]
)
def test_an_order_has_two_or_more_different_texts(orders):
    with pytest.raises(InputError, match="two or more different texts"):
        read(drawn("lo", "mid"), orders=orders)


def test_texts_are_asked_for_as_before():
    texts = drawn(*WORDS)
    assert len(read(texts, categories="one-hot")[0].feature_names) == 6
    with pytest.raises(InputError, match="is not a number"):
        read(texts, categories="refuse")
    with pytest.raises(InputError, match="not among the ordered texts"):
        read(np.where(np.arange(N) == 7, "unknown", texts), missing="refuse")


# -- models and stores -----------------------------------------------------------------


def survey(n=200):
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, n)
    answers = np.clip(
        np.rint(rng.normal(1 + 2.5 * kind[:, None], 0.7, (n, 5))), 0, 4
    ).astype(int)
    frame = pd.DataFrame(np.array(WORDS, object)[answers], columns=list("abcde"))
    return frame.assign(age=rng.normal(40, 9, n).round(1)), answers, kind


def fitted(rows, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mmcnb.MaximumMarginClustering(2, random_state=0, **parameters).fit(rows)


def test_answers_are_scaled_as_numbers_and_predicted_by_their_texts(tmp_path):
    frame, answers, kind = survey()
    model = fitted(frame)
    assert max(np.mean(model.labels_ == kind), np.mean(model.labels_ != kind)) > 0.97
    listing = {row["name"]: row for row in model.report_["columns"]}
    assert [listing[name]["kind"] for name in "abcde"] == ["order"] * 5
    assert listing["a"]["treatment"] == "deviation"
    assert listing["a"]["divisor"] == pytest.approx(answers[:, 0].std(), rel=1e-5)
    as_numbers = frame.assign(**{name: answers[:, k] for k, name in enumerate("abcde")})
    np.testing.assert_array_equal(fitted(as_numbers).labels_, model.labels_)

    model.save(tmp_path / "m.model")
    loaded = mmcnb.load(tmp_path / "m.model")
    others = frame.apply(
        lambda column: column.str.upper() if column.name in "abcde" else column
    )
    np.testing.assert_array_equal(loaded.predict(others), model.labels_)
    others.loc[4, "a"] = "every day"
    with pytest.warns(
        ClusterWarning, match=r"count as missing: 1 in 'a' \('every day'\)"
    ):
        loaded.predict(others)
    ordered = frame.astype(
        dict.fromkeys("abcde", pd.CategoricalDtype(WORDS, ordered=True))
    )
    np.testing.assert_array_equal(loaded.predict(ordered), model.labels_)


def test_a_converted_table_is_fitted_like_the_table(tmp_path):
    frame, _, _ = survey()
    frame.to_csv(tmp_path / "t.csv", index=False)
    convert(tmp_path / "t.csv", tmp_path / "t.zarr")
    store = open_samples(tmp_path / "t.zarr")
    assert store.orders == dict.fromkeys("abcde", tuple(WORDS))
    np.testing.assert_array_equal(
        fitted(store).labels_, fitted(tmp_path / "t.csv").labels_
    )


def test_the_encoding_of_an_order_is_restored_and_checked():
    encoding = read(drawn(*WORDS))[0].encoding
    stored = json.loads(json.dumps(encoding.to_dict()))
    assert Encoding.restore(stored) == encoding
    for levels in ([[]], [[3]], 7):
        stored["columns"][0]["form"]["levels"] = levels
        with pytest.raises(InputError):
            Encoding.restore(stored)


def test_info_lists_the_order(tmp_path, capsys):
    frame, _, _ = survey()
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert cli.main(["info", str(tmp_path / "t.csv")]) == 0
    assert (
        "place in the order: never < rarely < sometimes < often < always"
        in capsys.readouterr().out
    )
