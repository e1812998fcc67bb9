"""One or two columns of few values that make the clusters are named, unless other columns agree."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.choice.trust import trust
from mmcnb.columns.kinds import SampleColumns
from mmcnb.columns.single import single_columns
from tests import reference_columns as twin
from tests.choice.graphs import candidate

N = 400
rng = np.random.default_rng(0)
SIZE = rng.normal(size=N)
FLAG, OTHER = (rng.integers(0, 2, N) for _ in range(2))
CODES = rng.integers(0, 5, N)
TEXT = np.eye(5, dtype=int)[CODES]


def flagged(columns, labels, names=None, weights=None):
    weights = np.ones(len(columns)) if weights is None else weights
    return single_columns(
        SampleColumns(np.asarray(columns, np.float64), weights, names),
        np.asarray(labels),
    )


@pytest.mark.parametrize(
    ("columns", "names", "labels", "expected"),
    [
        (np.c_[np.ones(N), FLAG], None, FLAG, [1]),
        (
            np.c_[SIZE, 7 - 3.5 * FLAG, OTHER],
            ["size", "member", "urban"],
            1 - FLAG,
            ["member"],
        ),
        (
            np.c_[TEXT, FLAG, SIZE],
            [*["plan"] * 5, "member", "size"],
            CODES % 2,
            ["plan"],
        ),
        (np.c_[SIZE, FLAG, 1 - FLAG], None, FLAG, [1, 2]),
        (
            np.c_[SIZE, FLAG, TEXT],
            ["size", "member", *["plan"] * 5],
            2 * CODES + FLAG,
            ["member", "plan"],
        ),
    ],
)
def test_the_columns_that_make_the_clusters_are_named(columns, names, labels, expected):
    found = flagged(columns, labels, names)
    assert sorted(found.names) == expected
    assert found.share == pytest.approx(1)
    assert found.sentence.startswith("the clusters are the values of ")
    assert "(100% of their information)" in found.sentence
    them = "these" if len(expected) > 1 else "it"
    assert found.sentence.endswith(f"; leave {them} out to find other clusters")
    assert all(
        repr(name) in found.sentence for name in expected if isinstance(name, str)
    )


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (np.c_[SIZE + 2 * FLAG, FLAG], FLAG),  # a number agrees
        (np.c_[SIZE, FLAG, FLAG, FLAG], FLAG),  # other flags agree
        (np.c_[SIZE, SIZE**3], SIZE > 0),  # numbers alone
        (np.c_[SIZE, SIZE**3, FLAG], SIZE > 0),  # two numbers agree
        (np.c_[SIZE, np.arange(N) % 11], np.arange(N) % 11),  # eleven values
        (np.c_[SIZE, FLAG], np.zeros(N, int)),  # one cluster
        (FLAG[:, None], FLAG),  # one column
        (TEXT, CODES),
        (np.c_[SIZE, np.ones(N)], FLAG),  # a constant
    ],
)
def test_nothing_is_named_if_columns_agree_or_there_is_no_choice(columns, labels):
    names = ["plan"] * 5 if columns is TEXT else None
    assert flagged(columns, np.asarray(labels, int), names) is None


@pytest.mark.parametrize("wrong", np.arange(0, 0.2, 0.02))
def test_the_bound_is_six_tenths_of_the_information(wrong):
    labels = np.where(np.arange(N) < wrong * N, 1 - FLAG, FLAG)
    share = twin.told(FLAG.tolist(), labels.tolist(), [1] * N)
    found = flagged(np.c_[SIZE, FLAG], labels)
    assert (found is not None) == (share > 0.6)
    assert found is None or found.share == pytest.approx(share)


@pytest.mark.parametrize("gap", np.arange(0.2, 1.8, 0.2))
def test_the_bound_of_the_others_is_a_fifth(gap):
    columns = np.c_[SIZE + gap * FLAG, FLAG]
    told = twin.told_by_ranks(columns[:, 0].tolist(), FLAG.tolist(), [1] * N)
    assert (flagged(columns, FLAG) is not None) == (told < 0.2)


@pytest.mark.parametrize("n_texts", [30, 31])
def test_texts_of_up_to_thirty_categories_are_of_few_values(n_texts):
    codes = np.arange(N) % n_texts
    found = flagged(
        np.c_[SIZE, np.eye(n_texts)[codes]], codes % 2, ["size", *["place"] * n_texts]
    )
    assert (found is not None) == (n_texts == 30)


def drawn(seed, n=40):
    """A table of a few columns of all kinds, with labels that some of them tell more or less."""
    rng = np.random.default_rng(seed)
    columns = []
    names = []
    for k in range(rng.integers(1, 6)):
        kind = rng.choice(["flag", "counts", "number", "ties", "text", "gaps"])
        made = {
            "flag": rng.integers(0, 2, n),
            "counts": rng.integers(0, rng.integers(2, 9), n),
            "number": rng.normal(size=n),
            "ties": np.round(2 * rng.normal(size=n) ** 3),
            "text": np.eye(3)[rng.permutation(np.arange(n) % 3)],
            # no category in a quarter
            "gaps": np.eye(4)[rng.permutation(np.arange(n) % 4)][:, :3],
        }[kind]
        columns.append(made)
        names += [f"{k} {kind}"] * made[:1].size
    makers = rng.permutation(len(columns))[: rng.integers(1, 3)]
    of_rows = np.stack(
        [columns[k] @ [1, 2, 3] if columns[k].ndim == 2 else columns[k] for k in makers]
    )
    labels = np.unique(np.sign(of_rows - 1), axis=1, return_inverse=True)[1].ravel()
    noisy = rng.random(n) < rng.choice([0, 0.05, 0.2])
    labels = np.where(noisy, rng.integers(0, 2, n), labels)
    weights = rng.integers(1, 4, n).astype(np.float64) if seed % 2 else np.ones(n)
    return np.column_stack(columns).astype(np.float64), weights, labels, names


def test_the_columns_are_those_of_the_twin():
    n_found = {0: 0, 1: 0, 2: 0}
    for seed in range(250):
        rows, weights, labels, names = drawn(seed)
        found = flagged(rows, labels, names, weights)
        expected = twin.single(rows.tolist(), weights.tolist(), labels.tolist(), names)
        assert (found is None) == (not expected), seed
        if found is None:
            n_found[0] += 1
            continue
        n_found[len(found.names)] += 1
        # Of several pairs it is the one whose columns tell most alone, and not the one
        # that tells most.
        figures = {tuple(names): (share, others) for share, names, others in expected}
        assert (found.share, found.largest_other) == pytest.approx(
            figures[tuple(sorted(found.names))]
        ), seed
        assert len(found.names) == 2 or found.names == expected[0][1], seed
    assert min(n_found.values()) > 10


def test_a_weight_is_a_repetition():
    n_found = 0
    for seed in range(1, 200, 2):
        rows, weights, labels, names = drawn(seed)
        counts = weights.astype(int)
        one = flagged(rows, labels, names, weights)
        other = flagged(
            np.repeat(rows, counts, axis=0), np.repeat(labels, counts), names
        )
        assert (one is None) == (other is None), seed
        if one is not None:
            n_found += 1
            assert one.names == other.names
            assert (one.share, one.largest_other) == pytest.approx(
                (other.share, other.largest_other), abs=1e-9
            )
    assert n_found > 10


def test_such_columns_make_the_trust_low_however_well_candidates_agree():
    found = flagged(np.c_[SIZE, FLAG], FLAG, ["size", "member"])
    best = candidate(9.0, FLAG)
    others = [candidate(8.0, FLAG)]
    assert trust(best, others).level == "high"
    assert list(trust(best, others).columns) == []
    low = trust(best, others, found)
    assert (low.level, low.columns, low.reason) == (
        "low",
        ["member"],
        f"{found.sentence}.",
    )
    assert low.agreement == pytest.approx(1)


# -- a number of many values -----------------------------------------------------------


def test_a_number_that_makes_the_clusters_is_named_beside_texts_and_flags():
    labels = np.digitize(SIZE, [-0.8, 0.9])
    for others, names in (([FLAG, OTHER], None), ([TEXT], ["income", *["plan"] * 5])):
        found = flagged(
            np.c_[SIZE, *[np.atleast_2d(x.T).T for x in others]], labels, names
        )
        assert found.names == (["income"] if names else [0])
        assert found.is_number
        assert found.share > 0.8
        assert found.sentence.startswith("the clusters are ranges of ")
        assert found.sentence.endswith("; leave it out to find other clusters")


def test_a_number_is_not_named_if_a_list_agrees():
    labels = (SIZE > 0).astype(int)
    names = ["income", *["vector"] * 3, "member"]
    noise = np.random.default_rng(2).normal(size=(N, 3))
    agreeing = noise + 2 * labels[:, None]
    assert flagged(np.c_[SIZE, noise, FLAG], labels, names).names == ["income"]
    assert flagged(np.c_[SIZE, agreeing, FLAG], labels, names) is None


def shop(n=900):
    """Texts with three clusters, and an amount in dollars that has none."""
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 3, n)
    columns = {"income": np.exp(rng.normal(10.5, 0.8, n)).round(2)}
    for k in range(8):
        usual = rng.permutation(4)[kind]
        words = np.where(rng.random(n) < 0.7, usual, rng.integers(0, 4, n))
        columns[f"text_{k}"] = np.array(["north", "south", "east", "west"])[words]
    return pd.DataFrame(columns), kind


def test_the_trust_says_what_the_clusters_are_without_the_column():
    frame, kind = shop()
    # In dollars, the income outweighs all texts.
    model = mmcnb.MaximumMarginClustering(3, scale=None, random_state=0).fit(frame)
    entry = model.report_["trust"]
    assert (entry["level"], entry["columns"]) == ("low", ["income"])
    alone = mmcnb.MaximumMarginClustering(3, scale=None, random_state=0)
    alone.fit(frame.drop(columns="income"))
    assert adjusted_rand_score(kind, alone.labels_) > 0.9
    agreement = adjusted_rand_score(alone.labels_, model.labels_)
    assert entry["without"]["n_clusters"] == alone.n_clusters_ == 3
    assert entry["without"]["agreement"] == pytest.approx(agreement, abs=0.05)
    assert (
        "; without it there are 3 clusters, which agree with these by "
        f"{entry['without']['agreement']:.2f}."
    ) in entry["reason"]


@pytest.mark.parametrize(
    "options",
    [{"n_clusters": 2}, {"kernel": "linear", "n_clusters": 2}, {"metric": "cosine"}],
)
def test_the_search_without_a_column_follows_the_options(options):
    rng = np.random.default_rng(3)
    flag = np.arange(400) % 2
    columns = {
        "flag": 9.0 * flag,
        "size": 1 + rng.random(400),
        "age": 1 + rng.random(400),
    }
    model = mmcnb.MaximumMarginClustering(scale=None, random_state=0, **options)
    entry = model.fit(pd.DataFrame(columns)).report_["trust"]
    assert entry["columns"] == ["flag"]
    assert entry["without"]["agreement"] < 0.1
    if "n_clusters" in options:
        assert entry["without"]["n_clusters"] == 2


def test_without_the_column_the_other_rows_may_be_equal():
    frame = pd.DataFrame({"flag": np.arange(60) % 2, "same": np.ones(60)})
    model = mmcnb.MaximumMarginClustering(2, scale=None, random_state=0).fit(frame)
    entry = model.report_["trust"]
    assert entry["columns"] == ["flag"]
    assert entry["without"] == {"n_clusters": 1, "agreement": 0.0}
    assert "without it there is one cluster" in entry["reason"]


def test_clusters_of_several_columns_have_no_such_entry():
    rows = (
        np.random.default_rng(0).normal(size=(300, 3))
        + 9 * (np.arange(300) % 3)[:, None]
    )
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(rows)
    assert "without" not in model.report_["trust"]


def test_weights_give_the_entry_of_repeated_rows():
    frame, _ = shop(300)
    counts = np.random.default_rng(0).integers(1, 4, 300)
    repeated = frame.loc[np.repeat(np.arange(300), counts)]
    model = mmcnb.MaximumMarginClustering(3, scale=None, random_state=0)
    entry = dict(model.fit(frame, sample_weight=counts).report_["trust"])
    assert entry["columns"] == ["income"]
    assert entry["without"] == model.fit(repeated).report_["trust"]["without"]
