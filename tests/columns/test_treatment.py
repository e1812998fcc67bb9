"""The rule of ``scale="auto"``: one case for each of its sentences, and its twin on tables of all kinds."""

import numpy as np
import pytest
import scipy.sparse

from mmcnb.columns.columns import Columns, sentinels, treat
from mmcnb.errors import InputError
from mmcnb.samples.derived import Scaling, scaled_matrix
from tests import reference_columns as twin

N = 400
rng = np.random.default_rng(0)
NORMAL = rng.normal(40, 3, N)
LONG = np.exp(rng.normal(2, 1, N))
FLAG = (rng.random(N) < 0.3).astype(np.float64)
THREE = rng.integers(1, 4, N).astype(np.float64)
TEXT = np.eye(4)[rng.integers(0, 4, N)]
UNIT_ROWS = rng.normal(size=(N, 3))
UNIT_ROWS /= np.linalg.norm(UNIT_ROWS, axis=1, keepdims=True)


def auto(rows, scale="auto", **given):
    return treat(scale, np.asarray(rows, np.float64), None, **given)


def scaled(found, rows):
    return scaled_matrix(np.asarray(rows, np.float64), found.scaling)


# -- rules 1 to 4: whether columns are scaled -----------------------------------------------------


KEPT = {
    "sparse": scipy.sparse.csr_array(np.c_[NORMAL, 1e3 * NORMAL]),
    "all rows have length 1": UNIT_ROWS * [1, 1, 1],
    "no column has more than a few values": np.c_[FLAG, THREE, TEXT],
    "they are centred already": (lambda rows: rows - rows.mean(axis=0))(rng.normal(size=(N, 3)) * [1, 9, 99]),
    "they have one range, 0 to 255": np.c_[
        [np.r_[0, 255, rng.integers(0, top, N)] for top in (255, 20, 9, 200)]
    ].T,
    "they share one unit": np.c_[NORMAL, 5 + 1.5 * rng.permutation(NORMAL)],
}


@pytest.mark.parametrize("reason", KEPT)
def test_columns_are_taken_as_they_are_for_one_reason(reason):
    found = treat("auto", KEPT[reason], None)
    assert found.sentence == f"Columns were taken as they are: {reason}."
    assert found.scaling is None
    assert not found.only_units
    assert {row["treatment"] for row in found.listing} <= {"as it is"}
    assert len(found.listing) == (0 if reason == "sparse" else KEPT[reason].shape[1])


SCALED = {
    "their kinds differ": {
        "a flag": np.c_[NORMAL, FLAG],
        "five values": np.c_[NORMAL, rng.integers(0, 5, N)],
        "a text": np.c_[NORMAL, TEXT],
    },
    "their units differ": {
        "deviations": np.c_[NORMAL, 1000 * NORMAL],
        "one of most variance": np.c_[40 * NORMAL, *(rng.normal(2, s, N) for s in np.linspace(4.5, 5.5, 40))],
    },
}


@pytest.mark.parametrize(
    ("reason", "case"), [(reason, case) for reason, cases in SCALED.items() for case in cases]
)
def test_columns_are_scaled_for_one_reason(reason, case):
    rows = SCALED[reason][case]
    sources = ["age", *["plan"] * 4] if case == "a text" else None
    found = auto(rows, sources=sources)
    assert found.sentence.startswith(f"Columns were scaled, as {reason}: ")
    assert found.sentence.endswith("; scale=None takes them as they are.")
    assert found.only_units == (reason == "their units differ")
    assert found.scaling is not None


def test_one_column_of_most_variance_is_another_unit_though_most_deviations_are_alike():
    rows = SCALED["their units differ"]["one of most variance"]
    assert np.log(rows.std(axis=0)).std() < 0.5
    assert auto(rows).only_units
    assert auto(1e-3 * rows).only_units
    assert not auto(rows[:, 1:]).only_units
    assert not auto(rows * [0.5, *[1] * 40]).only_units  # more than ten others, and less than nine tenths


def test_six_values_are_a_number_and_five_are_not():
    assert auto(np.c_[NORMAL, rng.integers(0, 6, N)]).sentence.startswith("Columns were taken as they are")
    assert "column 1 to steps" in auto(np.c_[NORMAL, rng.integers(0, 5, N)]).sentence


@pytest.mark.parametrize("n_columns", [100, 101])
def test_beyond_a_hundred_columns_small_counts_are_no_other_kind(n_columns):
    rows = np.random.default_rng(1).normal(5, 1, size=(60, n_columns))
    rows[:, 7] = np.arange(60) % 2
    assert ("kinds differ" in auto(rows).sentence) == (n_columns == 100)


@pytest.mark.parametrize(("n_sharing", "kept"), [(9, True), (8, False)])
def test_nine_of_ten_columns_begin_where_all_do_if_they_have_one_range(n_sharing, kept):
    rows = np.random.default_rng(2).integers(50, 205, size=(N, 10))
    rows[0, :n_sharing], rows[1] = 0, 255
    rows[:, 1] = np.arange(N) % 2 * 255  # a column of two values is no other kind among pixels
    assert ("one range, 0 to 255" in auto(rows).sentence) == kept


@pytest.mark.parametrize("n_rows", [N, 3000])
def test_values_are_counted_wherever_the_rows_lie(n_rows):
    number = np.maximum(np.arange(n_rows) - n_rows + 100, 0.0)  # many values in the last rows alone
    rows = np.c_[number, np.linspace(1, 2, n_rows)]
    assert Columns(rows, np.ones(n_rows)).n_values.tolist() == [11, 11]
    assert [row["kind"] for row in auto(rows[::-1]).listing] == ["number"] * 2
    assert [row["kind"] for row in auto(rows).listing] == ["number"] * 2
    assert Columns(np.minimum(rows, 9), np.ones(n_rows)).n_values.tolist() == [10, 11]


def test_a_constant_is_no_other_kind():
    assert "they share one unit" in auto(np.c_[NORMAL, 30 + NORMAL, np.ones(N)]).sentence


@pytest.mark.parametrize(("length", "kept"), [(1.009, True), (1.011, False)])
def test_rows_have_length_1_to_a_hundredth(length, kept):
    assert ("length 1" in auto(length * UNIT_ROWS * [1, 1, 1]).sentence) == kept


def test_two_columns_are_never_centred_already():
    rows = rng.normal(size=(N, 3)) * [1, 100, 10]
    rows -= rows.mean(axis=0)
    assert "they are centred already" in auto(rows).sentence
    assert "their units differ" in auto(rows[:, :2]).sentence


def test_means_of_all_rows_are_exact_and_those_of_a_sample_are_not():
    rows = rng.normal(size=(N, 3)) * [1, 100, 10]
    assert np.abs(rows.mean(axis=0) / rows.std(axis=0)).max() > 2e-3
    assert "their units differ" in auto(rows).sentence
    assert "they are centred already" in auto(rows, is_part=True).sentence
    for means, kept in ((2.9, True), (3.2, False)):  # in deviations of a mean
        shifted = rows - rows.mean(axis=0) + means / np.sqrt(N) * rows.std(axis=0)
        assert ("they are centred already" in auto(shifted, is_part=True).sentence) == kept


def test_a_reason_that_is_known_comes_first():
    found = auto(np.c_[NORMAL, FLAG], kept="directions alone count")
    assert found.sentence == "Columns were taken as they are: directions alone count."
    assert found.scaling is None


@pytest.mark.parametrize("scale", [None, "standard"])
def test_parameters_that_say_all_need_no_sentence(scale):
    moments = Scaling(np.zeros(2), np.ones(2)) if scale else None
    found = treat(scale, np.c_[NORMAL, FLAG], moments)
    assert (found.sentence, found.listing, found.only_units) == ("", (), False)
    assert found.scaling is moments


# -- rules 5 and 6: how each column is scaled -----------------------------------------------------


def test_numbers_have_deviation_1_and_mean_0():
    found = auto(np.c_[NORMAL, 1000 * NORMAL, FLAG])
    numbers = scaled(found, np.c_[NORMAL, 1000 * NORMAL, FLAG])[:, :2]
    np.testing.assert_allclose(numbers.std(axis=0), 1, rtol=1e-6)
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-5)


@pytest.mark.parametrize("values", [(0, 1), (-7.5, 20), (1e6, 1e6 + 1)])
def test_two_values_lie_a_step_apart(values):
    rows = np.c_[NORMAL, np.where(FLAG, *values)]
    assert np.ptp(scaled(auto(rows), rows)[:, 1]) == pytest.approx(0.35)


@pytest.mark.parametrize("n_values", [3, 4, 5])
def test_three_to_five_values_have_a_step_as_deviation(n_values):
    rows = np.c_[NORMAL, 10 * rng.integers(0, n_values, N)]
    found = scaled(auto(rows), rows)[:, 1]
    assert (found.std(), found.mean()) == pytest.approx((0.35, 0), abs=1e-6)


def test_two_categories_lie_a_step_apart():
    rows = np.c_[NORMAL, TEXT]
    found = auto(rows, sources=["age", *["plan"] * 4])
    categories = np.unique(scaled(found, rows)[:, 1:], axis=0)
    assert categories.max() == pytest.approx(0.35 / np.sqrt(2))
    apart = np.linalg.norm(categories[:, None] - categories, axis=2)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(apart, 0.35, rtol=1e-6)
    assert [(row["name"], row["kind"], row["treatment"], row["why"]) for row in found.listing] == [
        ("age", "number", "deviation", "many values"),
        ("plan", "text", "category", "4 categories"),
    ]
    assert "texts ('plan') to steps" in found.sentence


def test_constants_are_untouched():
    rows = np.c_[NORMAL, FLAG, np.full(N, 17.0)]
    found = auto(rows)
    assert (scaled(found, rows)[:, 2] == 17).all()
    assert (found.listing[2]["kind"], found.listing[2]["treatment"]) == ("constant", "as it is")


def test_no_more_than_five_names_are_listed():
    for n_flags, end in ((5, "column 4, column 5 to steps"), (7, "column 4, column 5 and 2 more to steps")):
        flags = rng.integers(0, 2, size=(N, n_flags))
        assert end in auto(np.c_[NORMAL, flags]).sentence


SHIFTED, TAIL = LONG - LONG.max() / 2, -LONG + LONG.max()


@pytest.mark.parametrize(
    ("values", "has_logarithm"),
    [
        (LONG, True),
        (np.where(FLAG, 0, LONG), True),
        (NORMAL, False),  # not skewed
        (SHIFTED, False),  # negative
        (TAIL, False),  # skewed to the left
        (np.where(rng.random(N) < 0.01, 1, rng.uniform(0, 1e-9, N)), True),
        (np.r_[np.zeros(20), np.linspace(1, 1.01, N - 24), np.full(4, 3)], False),  # more skewed after
    ],
    ids=["long", "with zeros", "normal", "negative", "left tail", "spikes", "zeros alone below"],
)
def test_a_logarithm_is_for_long_tails_that_it_shortens(values, has_logarithm):
    found = auto(np.c_[values, NORMAL, FLAG])
    assert (found.listing[0]["treatment"] == "logarithm") == has_logarithm
    assert (found.scaling.units is not None) == has_logarithm
    assert ("(column 0 by the logarithm)" in found.sentence) == has_logarithm


def test_a_logarithm_is_in_units_of_the_median_of_what_is_positive():
    values = np.where(FLAG, 0, LONG)
    rows = np.c_[values, NORMAL, FLAG]
    found = auto(rows)
    unit = np.quantile(values[values > 0], 0.5, method="inverted_cdf")
    logs = np.log(1 + values / unit)
    assert found.scaling.units == pytest.approx([unit, 0, 0])
    np.testing.assert_allclose(scaled(found, rows)[:, 0], (logs - logs.mean()) / logs.std(), atol=1e-6)


# -- the twin -------------------------------------------------------------------------------------


KINDS = {
    "normal": lambda rng, n: rng.normal(rng.uniform(-1, 9), 1, n) * np.exp(rng.uniform(0, 1)),
    "unit": lambda rng, n: rng.normal(3, 1, n) * 10.0 ** rng.integers(-3, 4),
    "long": lambda rng, n: np.exp(rng.normal(0, rng.uniform(0.3, 1.5), n)) * rng.integers(1, 99),
    "zeros": lambda rng, n: rng.exponential(size=n) * (rng.random(n) < rng.uniform(0.05, 1)),
    "pixel": lambda rng, n: np.r_[0, 255, rng.integers(0, 256, n - 2)],
    "counts": lambda rng, n: rng.integers(0, rng.integers(3, 12), n),
    "flag": lambda rng, n: rng.random(n) < 0.4,
    "small": lambda rng, n: np.minimum(rng.geometric(0.6, n), rng.integers(4, 9)),
    "three": lambda rng, n: rng.choice([-1, 0.5, 7], n),
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "text": lambda rng, n: np.eye(3)[rng.permutation(np.arange(n) % 3)],
    "words": lambda rng, n: np.eye(2)[rng.permutation(np.arange(n) % 2)],
}
MIXES = {
    "any": list(KINDS),
    "numbers": ["normal", "unit", "long", "zeros"],
    "one unit": ["normal"],
    "pixels": ["pixel", "pixel", "pixel", "pixel", "normal"],
    "few": ["flag", "three", "constant", "text", "words"],
    "flags": ["normal", "flag", "small", "three"],
}


def table(seed, mix, n=60):
    """Rows, their weights, and the name of the column behind each."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(MIXES[mix], rng.integers(1, 9))
    columns = [KINDS[kind](rng, n) for kind in kinds]
    sources = [f"{k} {kind}" for k, kind in enumerate(kinds) for _ in range(columns[k][:1].size)]
    rows = np.column_stack(columns).astype(np.float64)
    if seed % 5 == 0 and not {"text", "words"} & set(kinds):
        rows -= rows.mean(axis=0)
    return rows, rng.integers(1, 4, n).astype(np.float64) if seed % 2 else np.ones(n), sources


SAID = {
    "no column has more than a few values": "few values",
    "they are centred already": "centred",
    "they have one range": "one range",
    "they share one unit": "one unit",
    "their kinds differ": "kinds differ",
    "their units differ": "units differ",
}


def said(sentence):
    return next(short for words, short in SAID.items() if words in sentence)


@pytest.mark.parametrize("mix", MIXES)
def test_the_rule_is_that_of_its_twin(mix):
    decisions = set()
    for seed in range(60):
        rows, weights, sources = table(seed, mix)
        found = auto(rows, weights=weights, sources=sources)
        expected = twin.decision(rows.tolist(), weights.tolist(), sources)
        assert said(found.sentence) == expected, seed
        decisions.add(expected)
        if not expected.endswith("differ"):
            assert found.scaling is None
            continue
        units = np.zeros(rows.shape[1]) if found.scaling.units is None else found.scaling.units
        columns = twin.columns_of(rows.tolist(), sources)
        for column, row in zip(columns, found.listing, strict=True):
            treatment, center, divisor, unit = twin.treated(column, weights.tolist())
            assert (row["name"], row["treatment"]) == (column.name, treatment), seed
            for place in column.places:
                numbers = found.scaling.mean[place], found.scaling.deviation[place], units[place]
                size = max(map(abs, column.numbers)) if treatment == "deviation" else 1.0
                assert numbers == pytest.approx((center, divisor, unit), rel=1e-6, abs=1e-9 * size)
    assert len(decisions) > (mix not in ("few", "one unit"))


def test_a_weight_is_a_repetition_in_all_decisions():
    for seed in range(1, 120, 2):
        rows, weights, sources = table(seed, "any")
        counts = weights.astype(int)
        one = auto(rows, weights=weights, sources=sources)
        other = auto(np.repeat(rows, counts, axis=0), sources=sources)
        assert (other.sentence, other.listing) == (one.sentence, one.listing), seed


# -- wishes ---------------------------------------------------------------------------------------

NAMES = ["age", "income", "member", "plan", "plan", "plan", "plan"]
TABLE = np.c_[NORMAL, LONG, FLAG, TEXT]


@pytest.mark.parametrize(
    ("wish", "treatment", "spread"),
    [
        ("log", "logarithm", 1.0),
        ("standard", "deviation", 1.0),
        (None, "as it is", NORMAL.std()),
        (0.2, "step", 0.2),
        (np.float32(0.5), "step", 0.5),
        (3, "step", 3.0),
    ],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_wish_is_fulfilled_and_other_columns_are_as_by_auto(wish, treatment, spread, named):
    sources, name = (NAMES, "age") if named else (None, 0)
    rows = TABLE if named else TABLE[:, :3]
    found, other = auto(rows, {name: wish}, sources=sources), auto(rows, sources=sources)
    assert found.listing[0]["treatment"] == treatment
    assert scaled(found, rows)[:, 0].std() == pytest.approx(spread, rel=1e-6)
    assert found.listing[1:] == other.listing[1:]
    np.testing.assert_array_equal(found.scaling.deviation[1:], other.scaling.deviation[1:])
    assert "as they are asked for" in found.sentence
    assert not found.only_units  # what is asked for is not taken back


@pytest.mark.parametrize("wish", ["log", "standard", None, 0.7])
def test_wishes_of_a_flag_are_fulfilled_too(wish):
    found = scaled(auto(TABLE, {"member": wish}, sources=NAMES), TABLE)[:, 2]
    expected = {0.7: np.ptp, None: np.ptp}.get(wish, np.std)(found)
    assert expected == pytest.approx(1.0 if wish != 0.7 else 0.7, rel=1e-6)


@pytest.mark.parametrize(("wish", "apart"), [(0.7, 0.7), (None, np.sqrt(2))])
def test_a_step_of_a_text_is_between_its_categories(wish, apart):
    found = np.unique(scaled(auto(TABLE, {"plan": wish}, sources=NAMES), TABLE)[:, 3:], axis=0)
    assert np.linalg.norm(found[0] - found[1]) == pytest.approx(apart)


def test_wishes_for_all_columns_leave_nothing_to_say():
    found = auto(TABLE[:, :2], {0: None, 1: None})
    assert "as they are asked for: none;" in found.sentence
    np.testing.assert_array_equal(scaled(found, TABLE[:, :2]), TABLE[:, :2])


def test_wishes_by_number_survive_as_text_and_without_a_header():
    one = auto(TABLE[:, :2], {1: "standard"})
    assert one.listing == auto(TABLE[:, :2], {"1": "standard"}).listing
    assert auto(TABLE[:, :2], {1: 0.5}, sources=["0", "1"]).listing[1]["treatment"] == "step"


@pytest.mark.parametrize(
    ("rows", "wishes", "sentence"),
    [
        (TABLE, {"aeg": "log"}, r"scale names 'aeg', and the columns are 'age', .*; name one of these\.$"),
        (TABLE, {9: None}, r"scale names column 9, and the columns are 'age', .*; name one of these\.$"),
        (-TABLE, {"age": "log"}, "scale asks for the logarithm of 'age', which has text or values below 0"),
        (TABLE, {"plan": "log"}, "scale asks for the logarithm of 'plan', which has text or values below 0"),
        (
            scipy.sparse.csr_array(TABLE),
            {0: "log"},
            "scale is given by column, but the rows are sparse; give",
        ),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(rows, wishes, sentence):
    with pytest.raises(InputError, match=f"^{sentence}") as caught:
        treat(wishes, rows, None, sources=NAMES)
    assert "\n" not in str(caught.value)


# -- the way back ---------------------------------------------------------------------------------


def undone(scaling, rows):
    """Scaled rows in the units that their columns had."""
    rows = rows * scaling.deviation + scaling.mean
    units = np.zeros(rows.shape[1]) if scaling.units is None else scaling.units
    logged = units > 0
    rows[:, logged] = np.copysign(np.expm1(np.abs(rows[:, logged])) * units[logged], rows[:, logged])
    return rows


def test_undone_gives_the_rows_back_also_new_and_negative_ones():
    scaling = auto(TABLE, sources=NAMES).scaling
    assert scaling.units.any()
    for rows in (TABLE, -3 * TABLE, 1e4 * TABLE, np.zeros((2, 7))):
        found = undone(scaling, scaled_matrix(rows, scaling))
        np.testing.assert_allclose(found, rows, rtol=1e-9, atol=1e-9 * np.abs(rows).max() + 1e-12)


def test_a_logarithm_of_negative_values_is_that_of_their_size():
    scaling = Scaling(np.zeros(1), np.ones(1), np.array([2.0]))
    rows = np.array([[3.0], [-3.0], [0.0]])
    np.testing.assert_allclose(scaling.logarithms(rows)[:, 0], [np.log(2.5), -np.log(2.5), 0])


def test_rows_with_large_values_beside_logarithms_are_given_back():
    rows = np.c_[1e6 * NORMAL, LONG]
    scaling = Scaling(np.zeros(2), np.ones(2), np.array([0.0, 1.0]))
    np.testing.assert_allclose(undone(scaling, scaled_matrix(rows, scaling)), rows, rtol=1e-12)


# -- sentinels ------------------------------------------------------------------------------------


def with_marks(values, mark, share):
    values = values.copy()
    values[: round(share * values.size)] = mark
    return sentinels(Columns(np.c_[THREE, values], np.ones(values.size), ["kids", "age"]))


@pytest.mark.parametrize("mark", [-999, 9999])
@pytest.mark.parametrize("share", [0.01, 0.3])
def test_a_mark_of_missing_values_is_named_with_its_count(mark, share):
    (sentence,) = with_marks(NORMAL, mark, share)
    others = NORMAL[round(share * N) :]
    assert f", and {others.min():g} to {others.max():g} in all others; " in sentence
    assert sentence.startswith(
        f"'age' has the value {mark} in {round(share * N)} of {N} rows looked at, and "
    )
    assert f"(--na-values {mark})" in sentence


@pytest.mark.parametrize(
    ("values", "mark", "share"),
    [
        (NORMAL, -999, 0.005),
        (NORMAL, NORMAL.min(), 0.3),
        (LONG, 0, 0.3),
        (np.abs(NORMAL - 40), 0, 0.3),
        (np.r_[NORMAL[:-1] - 20, 1e4], 0, 0.3),
        (np.arange(N) % 4, 99, 0.3),  # five values have no range that one lies outside of
    ],
    ids=["seldom", "least", "zeros of a tail", "zeros of a range", "one outlier", "few values"],
)
def test_values_that_are_seldom_or_within_the_range_are_no_marks(values, mark, share):
    assert with_marks(values, mark, share) == []


def test_a_mark_is_named_beside_another_that_is_nearer():
    values = NORMAL.copy()
    values[:5], values[5:10] = -9999, 99
    (sentence,) = sentinels(Columns(values[:, None], np.ones(N)))
    assert sentence.startswith("column 0 has the value -9999 in 5 of 400 rows looked at, and ")
    assert "to 99 in all others" in sentence


def test_categories_and_very_many_columns_have_no_marks():
    marked = np.where(rng.random((N, 101)) < 0.1, -999, rng.normal(size=(N, 101)))
    assert len(sentinels(Columns(marked[:, :100], np.ones(N)))) == 100
    assert sentinels(Columns(marked, np.ones(N))) == []
    assert sentinels(Columns(-999 * TEXT, np.ones(N), ["plan"] * 4)) == []


def test_a_number_from_0_beside_flags_has_no_range_in_common():
    rng = np.random.default_rng(0)
    revenue = np.where(rng.random(N) < 0.3, 0.0, rng.lognormal(6, 1, N))
    rows = np.c_[revenue, rng.random((N, 3)) < 0.5]
    assert "as their kinds differ" in auto(rows).sentence


def test_rows_without_a_value_do_not_hide_that_all_others_have_length_1():
    rows = UNIT_ROWS.copy()
    rows[3] = 0
    assert "all rows have length 1" in auto(rows).sentence


@pytest.mark.parametrize(("count", "listed"), [(1000, 1000), (1001, 0)])
def test_very_many_columns_that_stay_as_they_are_are_not_listed(count, listed):
    rows = np.random.default_rng(0).normal(size=(40, count)) + 1
    assert len(auto(rows).listing) == listed
