"""The study of the number: made rows, matching of small clusters, runs, and tables of equal sets."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

from benchmarks.halves import CONFIRMATION, TUNING
from benchmarks.libraries import EVOC, LEIDEN, PLSCAN, UMAP_DENSITY
from benchmarks.methods import DENSITY, FRONT_DOOR, MINIBATCH
from benchmarks.run import Options, Run
from benchmarks.studies import _number_costs as costs
from benchmarks.studies import _number_large as large
from benchmarks.studies import _number_made as made
from benchmarks.studies import _number_outliers as outliers
from benchmarks.studies import _number_sets as sets
from benchmarks.studies import _number_small as small
from benchmarks.studies import _number_tables as tables
from benchmarks.studies import number
from benchmarks.studies._choice_problems import MANY, PAIRED, TWO, problems
from benchmarks.studies._choice_tables import BOTH
from mmcnb.datasets import SHAPES
from mmcnb.metrics import adjusted_rand_index

SCALES = [{}, {"quick": True}, {"quick": True, "smoke": True, "rows": 200}]


def runs_of(section, path, **given):
    return [Run(**row) for row in number.SECTIONS[section].grid(Options(path, **given)).to_dict("records")]


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr("benchmarks.studies.peers.find_spec", lambda name: name)


# Made rows


@pytest.mark.parametrize("seed", range(5))
def test_centres_are_apart(seed):
    centres = made.centres_apart(np.random.default_rng(seed), 20, 8, 7.0, 3.0)
    assert centres.shape == (20, 8)
    assert pdist(centres).min() >= 7


def test_centres_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(made, "MOST_DRAWS", 50)
    with pytest.raises(ValueError, match="do not fit 9 apart"):
        made.centres_apart(np.random.default_rng(0), 5, 2, 9.0, 0.1)


def test_blobs_are_of_equal_sizes_and_follow_from_the_seed():
    data = made.blobs(2000, 20, 8, 7.0, 3.0, 1)
    assert set(np.bincount(data.y)) == {100}
    np.testing.assert_array_equal(data.X, made.blobs(2000, 20, 8, 7.0, 3.0, 1).X)
    assert not np.array_equal(data.X, made.blobs(2000, 20, 8, 7.0, 3.0, 2).X)
    means = np.array([data.X[data.y == c].mean(axis=0) for c in range(20)])
    assert pdist(means).min() > 6.5
    assert np.std(data.X - means[data.y].astype(np.float32)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_small_clusters_have_their_shares_beside_large_ones(noise):
    data = made.small_clusters(100_000, 10, 8.0, noise, 0)
    assert len(data.X) == len(data.y) == 100_000
    assert [int((data.y == c).sum()) for c in range(5)] == [1000, 300, 100, 30, 10]
    assert (data.y == made.NOISE).sum() == round(noise * 100_000)
    assert set(data.y[data.y >= 0]) == set(range(5 + made.LARGE_CLUSTERS))
    assert np.bincount(data.y[data.y >= 5])[5:].min() > 20_000
    inside, uniform = data.X[data.y >= 0], data.X[data.y < 0]
    assert (uniform >= inside.min(axis=0)).all()
    assert (uniform <= inside.max(axis=0)).all()


def test_a_small_cluster_is_found_by_enough_of_its_rows_and_few_others():
    y = np.repeat([0, 1, 2, 3, 9], [10, 10, 10, 10, 100])
    labels = y.copy()
    labels[:2] = 9  # 8 of 10 rows
    labels[10:13] = 9  # 7 of 10
    labels[np.flatnonzero(y == 9)[:3]] = 2  # 10 of 13
    labels[y == 3] = -1
    assert made.found_small(y, labels, 4, 0.8) == [True, False, False, False]
    assert made.found_small(y, np.zeros_like(y), 4, 0.8) == [False] * 4
    assert made.found_small(y, labels, 10, 0.8)[4:9] == [False] * 5, "classes without rows"


def test_clumps_are_narrow_and_far_and_uniform_rows_are_in_the_box():
    X = np.random.default_rng(0).normal(size=(1000, 5)) * np.array([1, 10, 100, 1, 0])
    clumps = made.far_clumps(np.random.default_rng(1), X, 30)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    lengths = np.linalg.norm((clumps - X.mean(axis=0)) / scale, axis=1)
    assert lengths.min() > np.linalg.norm((X - X.mean(axis=0)) / scale, axis=1).max()
    for c in range(made.N_CLUMPS):
        assert np.all((clumps[c :: made.N_CLUMPS] / scale).std(axis=0) < 0.3)
    rows = made.uniform_rows(np.random.default_rng(1), X, 50)
    assert (rows >= X.min(axis=0)).all()
    assert (rows <= X.max(axis=0)).all()


# Runs


@pytest.mark.usefixtures("all_installed")
@pytest.mark.parametrize("section", number.SECTIONS)
@pytest.mark.parametrize("scale", SCALES)
def test_no_run_is_asked_for_twice(section, scale, tmp_path):
    runs = runs_of(section, tmp_path, **scale)
    assert runs
    assert len({run.identity for run in runs}) == len(runs)


@pytest.mark.usefixtures("all_installed")
def test_whole_sets_and_shapes_take_part_and_no_pair(tmp_path):
    runs = runs_of("sets", tmp_path)
    asked = {one.name for one in problems() if not one.classes}
    assert {run.dataset for run in runs} == asked >= {*SHAPES, *PAIRED}
    assert {run.method for run in runs} == {FRONT_DOOR, LEIDEN, EVOC, PLSCAN, UMAP_DENSITY, DENSITY}
    assert not [run for run in runs if run.method == EVOC and run.dataset in SHAPES]


def test_the_sets_run_by_default_and_all_sections_in_a_smoke_run():
    assert number.usual_sections(Options("out")) == ("sets",)
    assert number.usual_sections(Options("out", smoke=True)) == tuple(number.SECTIONS)


@pytest.mark.usefixtures("all_installed")
def test_peers_run_on_the_large_groups_alone(tmp_path):
    runs = runs_of("large", tmp_path)
    assert {run.dataset for run in runs if run.method == MINIBATCH} == {"100 groups", "1,000 groups"}
    assert {run.dataset for run in runs if run.method == FRONT_DOOR} == {one.name for one in large.ALL}
    few = [large.Groups(*run.settings["groups"]) for run in runs_of("large", tmp_path, rows=200)]
    assert all(one.rows == 200 and one.n_clusters == 10 for one in few)


@pytest.mark.usefixtures("all_installed")
def test_outliers_are_added_to_no_texts_as_words(tmp_path):
    names = {run.dataset for run in runs_of("outliers", tmp_path)}
    assert "agnews-embedded" in names
    assert not names & {"agnews", "cnae9"}


def naive_glosh(edges, n):
    """For each row, by walking down from its cluster to the last density below it."""

    def last(cluster):
        inside = [(child, value) for parent, child, value in edges if parent == cluster]
        return max([value for _, value in inside] + [last(child) for child, _ in inside if child >= n])

    left = {child: (parent, value) for parent, child, value in edges}
    return np.array([1 - left[row][1] / last(left[row][0]) for row in range(n)])


def test_outlier_scores_of_a_condensed_tree_are_those_of_the_formula():
    form = [("parent", int), ("child", int), ("value", float)]
    edges = [(6, 0, 1.0), (6, 7, 2.0), (6, 8, 2.0), (7, 1, 3.0), (7, 2, 4.0), (8, 3, 2.5), (8, 9, 5.0)]
    edges += [(9, 4, 6.0), (9, 5, 8.0)]
    np.testing.assert_allclose(outliers.glosh(np.array(edges, form), 6), naive_glosh(edges, 6))


def test_equal_rows_are_no_outliers():
    X = np.vstack([np.random.default_rng(0).normal(size=(60, 2)), np.zeros((20, 2))])
    scores = outliers.of_density(X, 0)
    assert scores.min() >= 0
    assert scores.max() <= 1
    np.testing.assert_array_equal(scores[60:], 0)


def test_communities_are_of_rows_and_equal_rows_are_together():
    pytest.importorskip("igraph", reason="it is installed by mmcnb[peers] alone")
    data = made.blobs(300, 3, 4, 20.0, 20.0, 0)
    X = np.vstack([data.X, data.X[:30]])
    labels = sets.GraphCommunities(0).fit(X).labels_
    np.testing.assert_array_equal(labels[:30], labels[300:])
    truth = np.append(data.y, data.y[:30])
    assert all(len(set(truth[labels == c])) == 1 for c in set(labels))
    np.testing.assert_array_equal(sets.GraphCommunities(0).fit(csr_array(X)).labels_, labels)


def test_each_edge_is_there_once_and_volumes_are_kept():
    weights = csr_array(np.array([[0, 2.0, 0], [2.0, 0, 1.0], [0, 1.0, 0]]))
    loops = np.array([0.5, 0, 0])
    ends, found = sets.edges_of(weights, loops)
    volumes = np.bincount(ends.ravel(), np.repeat(found, 2), 3)
    np.testing.assert_allclose(volumes, weights.sum(axis=1) + loops)
    assert len(ends) == 3


class Found:
    """A fit as the study reads it: labels, layers, trust and scores, all by the sign of the first column."""

    def __init__(self, **given):
        self.given = given

    def get_params(self):
        return {}

    def fit(self, X):
        self.labels_, self.n_clusters_ = self.predict(X), 2
        self.layers_ = pd.DataFrame({"n_clusters": [2, 1]})
        self.report_ = {"trust": {"level": "high"}}
        return self

    def predict(self, X, layer=0):
        return (X[:, 0] > 0).astype(int) * (layer == 0)

    def score_outliers(self, X):
        return np.abs(X - np.median(X, axis=0)).max(axis=1)


@pytest.fixture
def found(monkeypatch):
    """Ours is a stand-in in the sections, so that these tests are of the study alone."""
    fake = SimpleNamespace(MaximumMarginClustering=Found, open_samples=sets.mmcnb.open_samples)
    for module in (sets, small, outliers, number._number_blobs, costs):
        monkeypatch.setattr(module, "mmcnb", fake)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("section", ["sets", "blobs", "small", "outliers"])
def test_a_run_records_numbers_and_texts(section, tmp_path):
    runs = runs_of(section, tmp_path, quick=True, smoke=True, rows=300)
    ours = [run for run in runs if run.method == FRONT_DOOR and run.dataset in (*SHAPES, "small clusters")]
    for run in ours or runs[:1]:
        found = number.SECTIONS[section].compute(run)
        assert all(isinstance(value, int | float | str | np.generic) for value in found.values())
        assert found["n"] == 306 if section == "outliers" else found["n"] == 300


@pytest.mark.usefixtures("found")
def test_the_best_layer_is_no_worse_than_the_labels(tmp_path):
    runs = runs_of("sets", tmp_path, smoke=True, rows=200)
    run, other = (
        next(run for run in runs if (run.dataset, run.method) == ("two-moons", method))
        for method in (FRONT_DOOR, DENSITY)
    )
    assert sets.compute(other).keys() >= {"ari", "clusters"}
    found = sets.compute(run)
    assert found["best layer"] >= found["ari"]
    assert (found["layers"], found["k"], found["trust"]) == ("2, 1", 2, "high")


def test_layers_are_counted_without_noise():
    y = np.array([0, 0, 1, 1, 2, 2])
    noisy = np.array([0, 0, 1, 1, -1, -1])
    found = sets.of_layers(y, [np.zeros(6, int), noisy, y], 2)
    assert found == {"best layer": 1.0, "layers": "2, 3"}
    only = sets.of_layers(y, [np.zeros(6, int), noisy], 1)
    assert only["best layer"] == adjusted_rand_index(y, noisy)
    assert sets.of_layers(y, [y], 0) == {}


def test_two_functions_take_turns():
    calls = []
    pairs = costs.turns_of_two(lambda: calls.append("a"), lambda: calls.append("b"), 3)
    assert calls == ["a", "b"] * 3
    assert pairs.shape == (3, 2)
    assert (pairs >= 0).all()


# Tables


def frame_of(rows):
    names = ["dataset", "method", "seed", "k", "clusters", "ari", "best layer", "trust", "balanced_error"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(status="ok", n=100, layers="3, 2", seconds=1.0)


NOTHING = np.nan
ROWS = [
    ("heart", FRONT_DOOR, 0, 2, 2, 0.4, 0.5, "high", 0.1),
    ("heart", FRONT_DOOR, 1, 2, 4, 0.2, 0.5, "low", 0.3),
    ("heart", LEIDEN, 0, 2, 8, 0.1, NOTHING, NOTHING, 0.6),
    ("optdigits", FRONT_DOOR, 0, 10, 10, 0.9, 0.9, "high", NOTHING),
    ("optdigits", LEIDEN, 0, 10, 10, 0.8, NOTHING, NOTHING, NOTHING),
    ("iris", FRONT_DOOR, 0, 3, 2, 0.5, 0.7, "high", NOTHING),
    ("two-moons", FRONT_DOOR, 0, 2, 2, 1.0, 1.0, "high", 0.0),
]


def test_means_are_over_seeds_and_then_over_sets():
    kinds = tables.tables_of_sets(frame_of(ROWS)).tables["number"].set_index(["kind", "half", "method"])
    two = kinds.loc[TWO, TUNING, FRONT_DOOR]
    assert two["ari"] == pytest.approx(0.3)
    assert (two["sets"], two["exact"], two["of the true number"]) == (1, 0.5, 1.5)
    real = kinds.loc[tables.REAL, BOTH, FRONT_DOOR]
    assert real["ari"] == pytest.approx((0.3 + 0.9 + 0.5) / 3)
    assert real["exact"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert kinds.loc[(MANY, CONFIRMATION, FRONT_DOOR), "best layer"] == pytest.approx(0.7)
    assert np.isnan(kinds.loc[(tables.REAL, BOTH, LEIDEN), "best layer"])


def test_each_set_has_the_numbers_of_all_seeds_and_trust_is_told_on_both_halves():
    found = tables.tables_of_sets(frame_of(ROWS)).tables
    row = found["number-sets"].set_index("dataset").loc["heart"]
    assert (row["found"], row["trust"], row[f"{LEIDEN}, found"]) == ("2, 4", "high, low", "8")
    trust = found["number-trust"].set_index(["half", "trust"])
    assert trust.loc[(CONFIRMATION, "high"), "precision"] < 1
    assert set(trust.index.get_level_values("half")) == {TUNING, CONFIRMATION}


def test_the_goals_compare_the_sets_of_both_and_need_leiden():
    goals = {goal.what: goal.reached for goal in tables.tables_of_sets(frame_of(ROWS)).goals}
    assert goals[f"{tables.REAL}: ARI, above Leiden at resolution 1"]
    ours = [row for row in ROWS if row[1] == FRONT_DOOR]
    assert not tables.tables_of_sets(frame_of(ours)).goals


def test_numbers_of_all_seeds_stand_beside_each_number_of_rows():
    rows = [(500, 20, 0.9), (500, 19, 0.8), (2000, 20, 1.0)]
    frame = pd.DataFrame(rows, columns=["n", "clusters", "ari"]).assign(status="ok", trust="high", seconds=1)
    table = number.SECTIONS["blobs"].tables(frame).tables["number-blobs"].set_index("n")
    assert table.loc[500, ["found", "exact"]].tolist() == ["20, 19", 0.5]
    assert table.loc[2000, "exact"] == 1


def test_the_docstring_names_each_section():
    named = re.findall(r"^([a-z]+)  +\S", number.__doc__, re.MULTILINE)
    assert named == list(number.SECTIONS)
