"""The steps of texts, counts and grades beside numbers follow from the sample."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.columns.treatment import treat

N = 1500
KIND = np.random.default_rng(1).integers(0, 3, N)


def table(n_numbers, n_texts, preference=0.6, n_words=4):
    """Numbers without clusters, and texts of which each cluster prefers one value."""
    rng = np.random.default_rng([n_numbers, n_texts])
    columns = {f"number_{k}": rng.normal(45, 12, N) for k in range(n_numbers)}
    for k in range(n_texts):
        usual = rng.permutation(n_words)[KIND % n_words]
        is_usual = rng.random(N) < preference
        words = np.where(is_usual, usual, rng.integers(0, n_words, N))
        columns[f"text_{k}"] = np.array(list("abcdef"))[words]
    return pd.DataFrame(columns)


def rows_of(frame):
    samples = mmcnb.open_samples(frame)
    return np.asarray(samples.block(0, len(frame)), np.float64), samples.sources


def step(frame, weights=None, order=None):
    """The distance of two rows that differ in one text."""
    rows, sources = rows_of(frame)
    if order is not None:
        rows = rows[order]
    listing = treat("auto", rows, None, weights, sources).listing
    steps = {float(np.sqrt(2) / row.divisor) for row in listing if row.kind == "text"}
    assert len(steps) == 1
    return round(steps.pop(), 6)


@pytest.mark.parametrize(("n_numbers", "n_texts"), [(1, 20), (3, 20)])
def test_few_numbers_do_not_outweigh_many_texts(n_numbers, n_texts):
    frame = table(n_numbers, n_texts)
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(frame)
    assert adjusted_rand_score(KIND, model.labels_) > 0.9
    rows = {row["name"]: row for row in model.report_["columns"]}
    assert np.sqrt(2) / rows["text_0"]["divisor"] >= 0.5


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (table(8, 6), 1.0),
        (table(1, 1), 0.35),
        # one combination has many rows, which one number tells apart
        (table(1, 3, 0.9), 0.35),
        (table(3, 20, 0), 0.35),  # texts that tell nothing of each other
    ],
)
def test_the_step_is_long_if_neighbours_still_differ_in_texts(frame, expected):
    assert step(frame) == expected


def test_texts_do_not_cut_narrow_clusters_of_the_numbers():
    """Each cluster of two numbers would be one cluster for each machine."""
    rng = np.random.default_rng(0)
    centers = 20 * np.array([[0, 0], [1, 0], [0, 1]])
    numbers = centers[KIND] + rng.normal(size=(N, 2))
    frame = pd.DataFrame(numbers, columns=["temperature", "pressure"])
    frame["machine"] = rng.choice(["M1", "M2", "M3"], N)
    assert step(frame) < 0.35
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(frame)
    assert adjusted_rand_score(KIND, model.labels_) > 0.95
    # a text that agrees with the clusters needs no shorter step
    assert step(frame.assign(machine=np.array(["M1", "M2", "M3"])[KIND])) == 0.35


def test_the_step_of_weights_is_that_of_repeated_rows_in_any_order():
    frame = table(3, 12)
    counts = np.random.default_rng(0).integers(1, 4, N)
    repeated = np.repeat(np.arange(N), counts)
    order = np.random.default_rng(1).permutation(repeated)
    expected = step(frame, counts.astype(np.float64))
    assert expected > 0.35
    assert step(frame, order=repeated) == expected
    assert step(frame, order=order) == expected
    assert step(frame[frame.columns[::-1]], counts.astype(np.float64)) == expected


def narrow_clusters():
    """Three narrow clusters of three numbers."""
    rng = np.random.default_rng(2)
    centers = np.array([[20, 5, 70], [50, 40, 60], [90, 15, 90]])
    numbers = centers[KIND] + rng.normal(0, [5, 3, 5], size=(N, 3))
    return pd.DataFrame(numbers, columns=["spend", "minutes", "weight"])


@pytest.mark.parametrize(
    "levels",
    [
        {"complaints": lambda rng: rng.poisson(1, N)},
        {"visits": lambda rng: rng.poisson(np.array([0.5, 3, 1])[KIND])},
        {"grade": lambda rng: rng.integers(1, 5, N)},
        {"a": lambda rng: rng.poisson(1, N), "b": lambda rng: rng.poisson(0.4, N)},
    ],
    ids=lambda levels: "-".join(levels),
)
def test_levels_do_not_cut_narrow_clusters_of_the_numbers(levels):
    """The clusters would be one for each level, because no value is between levels."""
    rng = np.random.default_rng(3)
    drawn = {name: draw(rng) for name, draw in levels.items()}
    model = mmcnb.MaximumMarginClustering(random_state=0)
    model.fit(narrow_clusters().assign(**drawn))
    assert adjusted_rand_score(KIND, model.labels_) > 0.95
    rows = {row["name"]: row for row in model.report_["columns"]}
    for name in levels:  # where numbers have deviation 1
        assert rows[name]["treatment"] in ("step", "logarithm")


def test_a_count_that_agrees_with_the_clusters_keeps_its_weight():
    rows, sources = rows_of(narrow_clusters().assign(count=2 * KIND))
    count = treat("auto", rows, None, None, sources).listing[3]
    assert count.divisor == pytest.approx(rows[:, 3].std() / 0.35)


def test_a_count_that_alone_has_clusters_keeps_its_weight():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        rng.normal(40, [9, 90, 900], size=(N, 3)), columns=["x", "y", "z"]
    )
    rows, sources = rows_of(
        frame.assign(count=rng.poisson(np.array([1, 12])[KIND % 2]))
    )
    count = treat("auto", rows, None, None, sources).listing[3]
    assert count == treat({"count": "standard"}, rows, None, None, sources).listing[3]


def test_levels_of_weights_are_those_of_repeated_rows():
    rng = np.random.default_rng(5)
    rows, sources = rows_of(narrow_clusters().assign(count=rng.binomial(8, 0.5, N)))
    counts = rng.integers(1, 4, N)
    repeated = rows[rng.permutation(np.repeat(np.arange(N), counts))]
    weighted = treat("auto", rows, None, counts.astype(np.float64), sources).listing
    assert weighted[3].treatment == "step"
    assert treat("auto", repeated, None, None, sources).listing == weighted


def test_a_step_can_be_given():
    frame = table(3, 12)
    model = mmcnb.MaximumMarginClustering(3, scale={"text_3": 0.35}, random_state=0)
    listing = {row["name"]: row for row in model.fit(frame).report_["columns"]}
    assert np.sqrt(2) / listing["text_3"]["divisor"] == pytest.approx(0.35)
    assert np.sqrt(2) / listing["text_2"]["divisor"] > 0.4


def test_numbers_beyond_single_precision_stand_beside_texts():
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    frame = pd.DataFrame({"a": 1e60 * (rng.normal(size=60) + 9 * kind)})
    frame["b"] = rng.normal(size=60)
    for name in "cd":
        frame[name] = np.array(["oak", "elm"], object)[kind]
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(frame)
    assert adjusted_rand_score(kind, model.labels_) == 1
