"""The rule of ``scale="auto"``: one case for each of its sentences, and its twin on tables of all kinds."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb import MaximumMarginClustering
from mmcnb.columns.kinds import SampleColumns, sentinels
from mmcnb.columns.steps import FACTORS
from mmcnb.columns.treatment import treat
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
UNLIKE = rng.normal(size=(N, 3)) * [1, 100, 10]
CENTRED = UNLIKE - UNLIKE.mean(axis=0)
WIDEST = np.c_[40 * NORMAL, *(rng.normal(2, s, N) for s in np.linspace(4.5, 5.5, 40))]


def auto(rows, scale="auto", **others):
    return treat(scale, np.asarray(rows, np.float64), None, **others)


def scaled(treatment, rows):
    return scaled_matrix(np.asarray(rows, np.float64), treatment.scaling)


# -- rules 1 to 4: whether columns are scaled ------------------------------------------


PIXELS = np.c_[[np.r_[0, 255, rng.integers(0, top, N)] for top in (255, 20, 9, 200)]].T


def many_columns(n_columns):
    rows = np.random.default_rng(1).normal(5, 1, size=(60, n_columns))
    rows[:, 7] = np.arange(60) % 2
    return rows


def pixels(n_sharing):
    """Columns of which so many begin where all do; one of two values is no other kind among them."""
    rows = np.random.default_rng(2).integers(50, 205, size=(N, 10))
    rows[0, :n_sharing] = 0
    rows[1] = 255
    rows[:, 1] = np.arange(N) % 2 * 255
    return rows


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (UNIT_ROWS, "all rows have length 1"),
        (np.c_[FLAG, THREE, TEXT], "no column has more than a few values"),
        (CENTRED, "they are centred already"),
        (PIXELS, "they have one range, 0 to 255"),
        (np.c_[NORMAL, 5 + 1.5 * rng.permutation(NORMAL)], "they share one unit"),
        (np.c_[NORMAL, FLAG], "their kinds differ"),
        (np.c_[NORMAL, 1000 * NORMAL], "their units differ"),
        (WIDEST, "their units differ"),
        (WIDEST[:, 1:], "they share one unit"),
        # most variance of one, but not nine tenths
        (
            WIDEST * [0.5, *[1] * 40],
            "they share one unit",
        ),
        (np.c_[NORMAL, rng.integers(0, 6, N)], "they share one unit"),
        (np.c_[NORMAL, rng.integers(0, 5, N)], "their kinds differ"),
        (many_columns(100), "their kinds differ"),
        (many_columns(101), "they share one unit"),
        (pixels(9), "they have one range, 0 to 255"),
        (pixels(8), "their kinds differ"),
        (np.c_[NORMAL, 30 + NORMAL, np.ones(N)], "they share one unit"),
        (1.009 * UNIT_ROWS, "all rows have length 1"),
        (1.011 * UNIT_ROWS, "they share one unit"),
        (UNIT_ROWS * (np.arange(N) != 3)[:, None], "all rows have length 1"),
        (CENTRED[:, :2], "their units differ"),  # of two columns it may be chance
        (UNLIKE, "their units differ"),
    ],
)
def test_columns_are_scaled_or_taken_as_they_are_for_one_reason(rows, reason):
    found = auto(rows)
    are_scaled = reason.endswith("differ")
    assert (found.scaling is not None) == are_scaled
    assert found.only_units == (reason == "their units differ")
    if are_scaled:
        assert found.sentence.startswith(f"Columns were scaled because {reason}: ")
        assert found.sentence.endswith("; scale=None leaves them unscaled.")
    else:
        assert found.sentence == f"Columns were not scaled: {reason}."
        assert {row.treatment for row in found.listing} <= {"as it is"}


def test_means_of_a_sample_may_be_three_deviations_off():
    for means, reason in (
        (2.9, "they are centred already"),
        (3.2, "their units differ"),
    ):
        shifted = CENTRED + means / np.sqrt(N) * CENTRED.std(axis=0)
        assert reason in auto(shifted, is_part=True).sentence
        assert "their units differ" in auto(shifted).sentence


def test_a_reason_that_is_known_comes_first_and_parameters_that_say_all_need_no_sentence():
    rows = np.c_[NORMAL, FLAG]
    sparse = treat("auto", scipy.sparse.csr_array(rows), None)
    assert (sparse.sentence, sparse.scaling) == (
        "Columns were not scaled: the rows are sparse.",
        None,
    )
    found = auto(rows, kept="directions alone count")
    assert found.sentence == "Columns were not scaled: directions alone count."
    assert found.scaling is None
    for scale, moments in (
        (None, None),
        ("standard", Scaling(np.zeros(2), np.ones(2))),
    ):
        found = treat(scale, rows, moments)
        assert (found.sentence, found.listing, found.only_units) == ("", (), False)
        assert found.scaling is moments


# -- rules 5 and 6: how ----------------------------------------------------------------


def test_each_kind_of_column_is_treated_in_its_way():
    # it has many values in the last rows alone
    late = np.maximum(np.arange(N) - N + 100.0, 0)
    rows = np.c_[
        late, NORMAL, np.where(FLAG, -7.5, 20), 10 * THREE, np.full(N, 17.0), TEXT
    ]
    found = auto(
        rows, sources=["income", "age", "member", "kids", "country", *["plan"] * 4]
    )
    columns = scaled(found, rows).T
    np.testing.assert_allclose(columns[:2].std(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(columns[:2].mean(axis=1), 0, atol=1e-5)
    factor = np.ptp(columns[2]) / 0.35
    assert round(factor, 6) in {1.0, *FACTORS}
    assert columns[3].std() == pytest.approx(0.35 * factor)
    assert columns[3].mean() == pytest.approx(0, abs=1e-6)
    assert set(columns[4]) == {17}
    categories = np.unique(columns[5:].T, axis=0)
    apart = np.linalg.norm(categories[:, None] - categories, axis=2)[
        np.triu_indices(4, 1)
    ]
    np.testing.assert_allclose(apart, 0.35, rtol=1e-6)
    assert [(row.name, row.kind, row.treatment) for row in found.listing] == [
        ("income", "number", "logarithm"),
        ("age", "number", "deviation"),
        ("member", "few values", "step"),
        ("kids", "few values", "step"),
        ("country", "constant", "as it is"),
        ("plan", "text", "category"),
    ]
    assert found.listing[-1].why == "4 categories"
    assert "texts ('plan') to steps" in found.sentence
    assert "('income' by the logarithm)" in found.sentence


def test_no_more_than_five_names_and_a_thousand_columns_are_listed():
    for n_flags, end in (
        (5, "column 4, column 5 to steps"),
        (7, "column 4, column 5 and 2 more to steps"),
    ):
        assert (
            end in auto(np.c_[NORMAL, rng.integers(0, 2, size=(N, n_flags))]).sentence
        )
    rows = np.random.default_rng(0).normal(size=(40, 1001)) + 1
    assert (len(auto(rows).listing), len(auto(rows[:, 1:]).listing)) == (0, 1000)


def answers(low, high, n=N):
    """Whole numbers of which all occur, most of them in the lower half, in no order."""
    values = np.minimum(np.arange(n) % 7 % 4 + low, high)
    values[: high - low + 1] = np.arange(low, high + 1)
    return rng.permutation(values)


@pytest.mark.parametrize(
    ("ranges", "rated"),
    [
        ([(1, 5)] * 3, 3),
        ([(0, 10)] * 3, 3),
        ([(-2, 2)] * 3, 3),
        ([(0, 3), (0, 3), (0, 2)], 3),  # nobody gave the last answer
        ([(0, 3), (0, 3), (1, 3), (0, 1)], 3),  # and the last is a flag
        ([(1, 5), (1, 5)], 0),  # two may be codes
        ([(1, 4), (0, 2), (1, 3), (0, 3), (3, 7)], 0),  # as those of hearts
        ([(0, 2)] * 4, 0),
        ([(0, 11)] * 4, 0),
        ([(1, 5)] * 3 + [(0, 7)], 3),
    ],
)
def test_whole_numbers_of_one_range_in_three_columns_are_ratings(ranges, rated):
    rows = np.column_stack([NORMAL, *(answers(*ends) for ends in ranges)])
    found = auto(rows)
    kinds = [row.kind for row in found.listing[1:]]
    assert kinds.count("rating") == rated
    assert ("ratings" in found.sentence) == (rated > 0)
    deviations = scaled(found, rows)[:, 1:].std(axis=0)
    for kind, deviation in zip(kinds, deviations, strict=True):
        if kind == "rating":
            assert deviation == pytest.approx(1, abs=1e-6)


def test_nine_tenths_of_ratings_are_another_kind_than_a_flag_beside_them():
    ratings = [answers(0, 3) for _ in range(9)]
    alone = auto(np.column_stack(ratings))
    assert "no column has more than a few values" in alone.sentence
    assert {row.kind for row in alone.listing} == {"rating"}
    rows = np.column_stack([*ratings, FLAG])
    found = auto(rows)
    assert found.sentence.startswith("Columns were scaled because their kinds differ: ")
    assert np.ptp(scaled(found, rows)[:, 9]) == pytest.approx(0.35)
    assert "not scaled" in auto(np.column_stack([*ratings, FLAG, FLAG])).sentence


def test_ordered_texts_are_scaled_as_numbers_whatever_their_levels():
    rows = np.column_stack([NORMAL, answers(0, 2), answers(0, 1), answers(0, 6)])
    names = ["age", "size", "member", "answer"]
    found = auto(rows, sources=names, orders=["size", "member", "answer"])
    assert [row.kind for row in found.listing] == ["number", "order", "order", "order"]
    deviations = scaled(found, rows).std(axis=0)
    assert deviations[[0, 1, 3]] == pytest.approx(1, abs=1e-6)
    assert np.ptp(scaled(found, rows)[:, 2]) == pytest.approx(0.35)  # a flag
    assert [row.kind for row in auto(rows, sources=names).listing][1] == "few values"


def test_filled_gaps_hide_no_rating_and_steps_can_be_asked_for():
    rows = np.column_stack([NORMAL, answers(1, 5), answers(1, 5), answers(1, 4)])
    rows[50:70, 1] = 2.5  # the median of an even number of answers
    rows[70:190, 1] = np.linspace(1.1, 4.9, 120)  # and means of neighbours
    kinds = [row.kind for row in auto(rows).listing]
    assert kinds == ["number", "rating", "rating", "rating"]
    rows[50:250, 1] = 3.2  # of half of the rows
    assert {row.kind for row in auto(rows).listing} == {"number", "few values"}
    wish = auto(rows, {1: 0.35, 2: 0.35, 3: 0.35})
    assert scaled(wish, rows)[:, 2].std() == pytest.approx(0.35, abs=1e-6)


@pytest.mark.parametrize("far", [[1e4], [-900.0, 1e4, 800.0, 2e5, -7e3]])
def test_a_few_far_values_change_neither_the_kind_nor_the_spread_of_a_column(far):
    """Such as a row of totals, or a sensor that failed."""
    rows = np.c_[NORMAL, LONG, FLAG]
    expected = auto(rows).listing
    spoiled = np.r_[rows, np.c_[far, np.abs(far), np.ones(len(far))]]
    found = auto(spoiled).listing
    assert [row.treatment for row in found] == [row.treatment for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.divisor == pytest.approx(other.divisor, rel=0.05)


def test_a_row_of_totals_does_not_change_the_clusters_of_a_table():
    """Its numbers would be taken for skewed, and the texts would outweigh them."""
    random = np.random.default_rng(0)
    y = random.integers(3, size=600)
    numbers = np.array([[45, 1.2], [72, 2.9], [60, 7.5]])[y]
    numbers = numbers + [2.5, 0.3] * random.normal(size=(600, 2))
    table = pd.DataFrame(numbers, columns=["temperature", "vibration"])
    table["machine"] = random.choice(["M1", "M2", "M3"], 600)
    total = table.sum(numeric_only=True).to_frame().T
    with_total = pd.concat([table, total], ignore_index=True)
    model = MaximumMarginClustering(random_state=0)
    with pytest.warns(match="1 of 601 rows looked at is far from all others in most"):
        labels = model.fit(with_total).labels_[:600]
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, labels) > 0.98


# -- the twin --------------------------------------------------------------------------


KINDS = {
    "normal": lambda rng, n: (
        rng.normal(rng.uniform(-1, 9), 1, n) * np.exp(rng.uniform(0, 1))
    ),
    "unit": lambda rng, n: rng.normal(3, 1, n) * 10.0 ** rng.integers(-3, 4),
    "long": lambda rng, n: (
        np.exp(rng.normal(0, rng.uniform(0.3, 1.5), n)) * rng.integers(1, 99)
    ),
    "zeros": lambda rng, n: (
        rng.exponential(size=n) * (rng.random(n) < rng.uniform(0.05, 1))
    ),
    "pixel": lambda rng, n: np.r_[0, 255, rng.integers(0, 256, n - 2)],
    "counts": lambda rng, n: rng.integers(0, rng.integers(3, 12), n),
    "flag": lambda rng, n: rng.random(n) < 0.4,
    "small": lambda rng, n: np.minimum(rng.geometric(0.6, n), rng.integers(4, 9)),
    "three": lambda rng, n: rng.choice([-1, 0.5, 7], n),
    "answers": lambda rng, n: np.clip(
        np.rint(rng.normal(3, rng.uniform(0.5, 2), n)), 1, 5
    ),
    "seven": lambda rng, n: np.r_[1, 7, rng.integers(1, 8, n - 2)],
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
    "answers": ["answers", "answers", "answers", "counts", "unit", "flag"],
    "sevens": ["seven", "seven", "seven", "seven", "normal", "seven"],
}
REASONS = [
    "few values",
    "centred",
    "one range",
    "one unit",
    "kinds differ",
    "units differ",
]


def table(seed, mix, n=60):
    """Rows, their weights, and the name of the column behind each."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(MIXES[mix], rng.integers(1, 9))
    columns = [KINDS[kind](rng, n) for kind in kinds]
    sources = [
        f"{k} {kind}"
        for k, kind in enumerate(kinds)
        for _ in range(columns[k][:1].size)
    ]
    rows = np.column_stack(columns).astype(np.float64)
    if seed % 5 == 0 and not {"text", "words"} & set(kinds):
        rows -= rows.mean(axis=0)
    return (
        rows,
        rng.integers(1, 4, n).astype(np.float64) if seed % 2 else np.ones(n),
        sources,
    )


@pytest.mark.parametrize("mix", MIXES)
def test_the_rule_is_that_of_its_twin(mix):
    decisions = set()
    for seed in range(60):
        rows, weights, sources = table(seed, mix)
        found = auto(rows, weights=weights, sources=sources)
        expected = twin.decision(rows.tolist(), weights.tolist(), sources)
        assert [reason for reason in REASONS if reason in found.sentence] == [
            expected
        ], seed
        decisions.add(expected)
        if not expected.endswith("differ"):
            assert found.scaling is None
            continue
        units = (
            np.zeros(rows.shape[1])
            if found.scaling.units is None
            else found.scaling.units
        )
        columns = twin.columns_of(rows.tolist(), sources)
        rated = twin.rated(columns, weights.tolist())
        factors = set()
        for column, row in zip(columns, found.listing, strict=True):
            treatment, center, divisor, unit = twin.treated(
                column, weights.tolist(), column.name in rated
            )
            assert (row.kind == "rating") == (column.name in rated), seed
            if column.name not in rated and twin.has_few_levels(column, weights):
                factors.add(round(divisor / row.divisor, 6))
                divisor = row.divisor
                treatment = row.treatment if treatment == "deviation" else treatment
            assert (row.name, row.treatment) == (column.name, treatment), seed
            for place in column.places:
                numbers = (
                    found.scaling.mean[place],
                    found.scaling.deviation[place],
                    units[place],
                )
                size = (
                    max(map(abs, column.numbers)) if treatment == "deviation" else 1.0
                )
                assert numbers == pytest.approx(
                    (center, divisor, unit), rel=1e-6, abs=1e-9 * size
                )
        assert factors <= {1.0} or (factors <= set(FACTORS) and len(factors) == 1), seed
    assert len(decisions) > (mix not in ("few", "one unit"))


def test_a_weight_is_a_repetition_in_all_decisions():
    for seed in range(1, 60, 2):
        rows, weights, sources = table(seed, "any")
        one = auto(rows, weights=weights, sources=sources)
        other = auto(np.repeat(rows, weights.astype(int), axis=0), sources=sources)
        assert (other.sentence, other.listing) == (one.sentence, one.listing), seed


# -- wishes ----------------------------------------------------------------------------

NAMES = ["age", "income", "member", "plan", "plan", "plan", "plan"]
TABLE = np.c_[NORMAL, LONG, FLAG, TEXT]


@pytest.mark.parametrize(
    ("name", "wish", "treatment", "spread", "expected"),
    [
        ("age", "log", "logarithm", np.std, 1.0),
        ("age", "standard", "deviation", np.std, 1.0),
        ("age", np.float32(0.5), "step", np.std, 0.5),
        (0, 3, "step", np.std, 3.0),
        ("member", "log", "logarithm", np.std, 1.0),
        ("member", None, "as it is", np.ptp, 1.0),
        ("member", 0.7, "step", np.ptp, 0.7),
    ],
)
def test_a_wish_is_fulfilled_and_other_columns_are_as_by_auto(
    name, wish, treatment, spread, expected
):
    sources, rows = (None, TABLE[:, :3]) if name == 0 else (NAMES, TABLE)
    place = 2 if name == "member" else 0
    found = auto(rows, {name: wish}, sources=sources)
    other = auto(rows, sources=sources)
    assert found.listing[place].treatment == treatment
    assert spread(scaled(found, rows)[:, place]) == pytest.approx(expected, rel=1e-6)
    for i in set(range(3)) - {place}:
        if i == 2:  # the step of a flag depends on the numbers beside it
            assert found.listing[i].treatment == other.listing[i].treatment
        else:
            assert found.listing[i] == other.listing[i]
    assert "because the scale parameter asks for it" in found.sentence
    assert not found.only_units  # what is asked for is not taken back


def test_wishes_by_number_survive_as_text_and_may_be_for_all_columns():
    rows = TABLE[:, :2]
    assert auto(rows, {1: "standard"}).listing == auto(rows, {"1": "standard"}).listing
    assert auto(rows, {1: 0.5}, sources=["0", "1"]).listing[1].treatment == "step"
    found = auto(rows, {0: None, 1: None})
    assert "because the scale parameter asks for it: none;" in found.sentence
    np.testing.assert_array_equal(scaled(found, rows), rows)


@pytest.mark.parametrize(
    ("rows", "wishes", "sentence"),
    [
        (
            TABLE,
            {"aeg": "log"},
            r"scale names 'aeg', but the columns are 'age', .*; use one of these names\.$",
        ),
        (TABLE, {9: None}, "scale names column 9, but the columns are 'age', "),
        (
            -TABLE,
            {"age": "log"},
            "scale asks for the logarithm of 'age', which is text or has values below 0",
        ),
        (
            TABLE,
            {"plan": "log"},
            "scale asks for the logarithm of 'plan', which is text or has values below 0",
        ),
        (
            scipy.sparse.csr_array(TABLE),
            {0: "log"},
            "scale is given by column, but the rows are sparse; ",
        ),
    ],
)
def test_a_wish_that_cannot_be_is_one_sentence(rows, wishes, sentence):
    with pytest.raises(InputError, match=f"^{sentence}") as caught:
        treat(wishes, rows, None, sources=NAMES)
    assert "\n" not in str(caught.value)


# -- logarithms of any values ----------------------------------------------------------


def test_a_logarithm_of_negative_values_is_that_of_their_size_and_can_be_undone():
    scaling = auto(TABLE, sources=NAMES).scaling
    logged = scaling.units > 0
    assert logged.any()
    for rows in (TABLE, -3 * TABLE, 1e4 * TABLE, np.zeros((2, 7))):
        logs = scaled_matrix(rows, scaling) * scaling.deviation + scaling.mean
        sizes = np.log1p(np.abs(rows[:, logged]) / scaling.units[logged])
        np.testing.assert_allclose(
            logs[:, logged], np.copysign(sizes, rows[:, logged]), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            logs[:, ~logged], rows[:, ~logged], rtol=1e-9, atol=1e-9
        )


# -- sentinels -------------------------------------------------------------------------


def with_marks(values, mark, share):
    values = values.copy()
    values[: round(share * values.size)] = mark
    return sentinels(
        SampleColumns(np.c_[THREE, values], np.ones(values.size), ["kids", "age"])
    )


@pytest.mark.parametrize(
    ("mark", "share"), [(-999, 0.01), (-999, 0.005), (9999, 0.3), (0, 0.05)]
)
def test_a_mark_of_missing_values_is_named_with_its_count(mark, share):
    values = NORMAL + 1000 * (mark == 0)
    (sentence,) = with_marks(values, mark, share)
    others = values[round(share * N) :]
    count = round(share * N)
    assert sentence.startswith(
        f"'age' has the value {mark} in {count} of {N} rows looked at, and "
    )
    assert f", and {others.min():g} to {others.max():g} in all others; " in sentence
    assert (
        f" --na-values={mark} or mmcnb.read_table(X, na_values=[{mark}])." in sentence
    )


@pytest.mark.parametrize(
    ("values", "mark", "share"),
    [
        (NORMAL, -999, 1 / N),  # once
        (NORMAL, 70, 0.005),  # seldom, and not far enough
        (1000 + NORMAL, 0, 0.3),  # counts have many zeros
        (NORMAL, NORMAL.min(), 0.3),
        (np.abs(NORMAL - 40), 0, 0.3),
        (np.r_[NORMAL[:-1] - 20, 1e4], 0, 0.3),
        # five values have no range that one lies outside of
        (
            np.arange(N) % 4,
            99,
            0.3,
        ),
    ],
)
def test_values_that_are_seldom_or_within_the_range_are_no_marks(values, mark, share):
    assert with_marks(values, mark, share) == []


def test_two_marks_of_a_column_are_both_named():
    for first, second in ((-9999, -999), (-9999, 9999)):
        values = NORMAL.copy()
        values[:4] = first
        sentences = with_marks(np.roll(values, 4), second, 0.01)
        assert [
            f"has the value {mark} in 4" in one
            for one, mark in zip(sentences, (first, second), strict=True)
        ] == [True, True]


@pytest.mark.parametrize("n_rows", [11, 100, 1000])
def test_ordinary_columns_have_no_marks(n_rows):
    """Normal, rounded, censored and skewed numbers, and counts with many zeros."""
    found = []
    for seed in range(30):
        random = np.random.default_rng([seed, n_rows])
        normal = random.normal(50, 10, n_rows)
        table = np.c_[
            normal,
            np.round(normal),
            np.clip(normal, 45, 60),
            np.round(np.exp(random.normal(0, 2, n_rows))),
            random.poisson(0.3, n_rows),
            random.poisson(4, n_rows) * (random.random(n_rows) < 0.3),
            np.floor(10 * random.pareto(1.5, n_rows)),
            np.where(random.random(n_rows) < 0.6, 0, random.integers(90, 140, n_rows)),
            random.integers(0, 2, n_rows),
        ]
        found += sentinels(SampleColumns(table, np.ones(n_rows)))
    assert found == []


def test_rows_with_unusual_values_in_most_columns_are_counted_with_an_example():
    rows = np.c_[NORMAL, LONG, NORMAL[::-1] - 40]
    assert not auto(rows).sentinels  # a long tail is usual
    rows[7, 2] = 1e5  # in one column only
    assert not auto(rows).sentinels
    rows[8] = rows[9] = rows.sum(axis=0)
    rows[9] *= -2
    (sentence,) = auto(rows).sentinels
    assert sentence.startswith(f"2 of {N} rows looked at are far from all others in")
    assert f"(in one, column 0 is {rows[8, 0]:g})" in sentence


def test_categories_and_very_many_columns_have_no_marks():
    marked = np.where(rng.random((N, 101)) < 0.1, -999, rng.normal(size=(N, 101)))
    assert len(sentinels(SampleColumns(marked[:, :100], np.ones(N)))) == 100
    assert sentinels(SampleColumns(marked, np.ones(N))) == []
    assert sentinels(SampleColumns(-999 * TEXT, np.ones(N), ["plan"] * 4)) == []


def test_equal_columns_are_named_once_in_any_order():
    numbers = np.random.default_rng(0).normal(size=(50, 3)).round(2)
    table = pd.DataFrame(numbers, columns=["a", "b", "c"])
    table["a copy"] = table["a"]
    for names in (["a", "b", "c", "a copy"], ["a copy", "c", "b", "a"]):
        rows = table[names].to_numpy()
        (sentence,) = sentinels(SampleColumns(rows, np.ones(50), names))
        first, second = (name for name in names if name.startswith("a"))
        assert f"'{second}' has the same values as '{first}'" in sentence
        assert "they count twice" in sentence
        read = mmcnb.read_table(table[names], drop=[second])
        assert len(read.feature_names) == 3
        assert f"drop=['{second}']" in sentence
    almost = table.assign(**{"a copy": table["a"].where(table["a"] < 1, 1)})
    assert sentinels(SampleColumns(almost.to_numpy(), np.ones(50), [*almost])) == []
