"""The answers of a cluster: which levels of an order set it apart, and how often they occur."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mmcnb
from mmcnb.explanation.levels import Order, shares_of_levels
from mmcnb.stores import convert

WORDS = ["never", "rarely", "sometimes", "often", "always"]


@pytest.mark.parametrize(
    ("order", "inside", "outside", "words", "position"),
    [
        (Order(1, 5), [4, 5, 5, 5], [1, 2, 3, 3], "4 or 5 of 5", "high"),
        (Order(1, 5), [5, 5], [1, 4], "5 of 5", "high"),
        (Order(0, 11), [0, 1, 2], [8, 9], "0 to 2 of 10", "low"),
        (Order(0, 11), [4, 5, 6], [0, 1, 9, 10], "4 to 6 of 10", "medium"),
        (Order(-2, 5), [-2, -1], [0, 1, 2], "-2 or -1 of 2", "low"),
        (Order(0, 5, WORDS), [3, 4], [0, 1, 2], "'often' or 'always'", "high"),
        (Order(0, 5, WORDS), [1, 2, 3], [0, 4], "'rarely' to 'often'", "medium"),
        (Order(0, 5, WORDS), [0], [1, 2], "'never'", "low"),
        (Order(1, 5), [4.4, 4.6], [1, 2], "4 or 5 of 5", "high"),  # filled gaps
    ],
)
def test_levels_are_those_that_set_a_cluster_apart(
    order, inside, outside, words, position
):
    values = np.array([*inside, *outside], float)
    members = np.arange(values.size) < len(inside)
    found = shares_of_levels(order, values, members, np.ones(values.size))
    assert (found.words, found.position) == (words, position)
    assert (found.share, found.others_share) == (1, 0)


def test_shares_are_weighted():
    values = np.array([5.0, 1, 5, 1])
    inside = np.array([True, True, False, False])
    found = shares_of_levels(Order(1, 5), values, inside, np.array([3.0, 1, 1, 4]))
    assert found.words == "5 of 5"
    assert (found.share, found.others_share) == pytest.approx((0.75, 0.2))


def survey():
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 300)
    is_high = kind[:, None] ^ (rng.random((300, 4)) < 0.05)
    answers = np.where(is_high, 4, 1) + rng.integers(0, 2, (300, 4))
    frame = pd.DataFrame(answers, columns=[f"question {k}" for k in range(4)])
    return frame.assign(age=rng.normal(40, 9, 300).round(1))


def explained(model, rows):
    explanation = model.explain(rows)
    answers = explanation.columns[explanation.columns["kind"] == "order"]
    return str(explanation), answers.set_index(["cluster", "column"])


def test_explanations_name_the_answers_of_ratings_and_of_texts(tmp_path):
    frame = survey()
    texts = frame.apply(
        lambda column: (
            np.array(WORDS, object)[column - 1] if column.name != "age" else column
        )
    )
    texts.to_csv(tmp_path / "t.csv", index=False)
    convert(tmp_path / "t.csv", tmp_path / "t.zarr")
    sources = [(frame, "{} of 5"), (texts, "{}"), (tmp_path / "t.zarr", "{}")]
    for rows, form in sources:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(rows)
            said, answers = explained(model, rows)
        assert len(answers) == 8
        assert np.isin(answers["position"], ["low", "high"]).all()
        names = {"low": "1 or 2", "high": "4 or 5"}
        if form == "{}":
            names = {"low": "'never' or 'rarely'", "high": "'often' or 'always'"}
        for (cluster, column), row in answers.iterrows():
            inside = model.labels_ == cluster
            assert row["category"] == form.format(names[row["position"]])
            is_level = (
                frame[column] >= 4 if row["position"] == "high" else frame[column] <= 2
            )
            assert row["share"] == pytest.approx(is_level[inside].mean())
            assert row["others_share"] == pytest.approx(is_level[~inside].mean())
        shown = answers.iloc[0]
        assert f" is {shown['position']} ({shown['category']}: " in said
