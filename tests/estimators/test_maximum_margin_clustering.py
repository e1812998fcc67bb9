"""The front door: what it chooses, that its model and its labels agree, and what it refuses."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import zarr
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.errors import ClusterWarning, InputError, MemoryLimitError
from mmcnb.estimators.choice import CLEAR_CUT, LEAST_AGREEMENT, NO_CUT, Candidate
from mmcnb.synthetic import make_shape

pytestmark = pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
CHOICES = [
    ("graph", "hinge"),
    ("graph", "squared"),
    ("rbf", "hinge"),
    ("rbf", "squared"),
    ("linear", "hinge"),
]


def front_door(n_clusters=2, **parameters):
    return mmcnb.MaximumMarginClustering(n_clusters, random_state=0, **parameters)


def spread(n=600, seed=0):
    """Two overlapping Gaussians, which no valley parts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, 8)) + y[:, None] * 0.8, y


# -- the choice --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two-rings", "three-rings", "four-moons", "nine-blobs"])
def test_shapes_are_clusters_of_the_graph(name):
    X, y = make_shape(name, random_state=0)
    model = front_door(int(y.max()) + 1).fit(X)
    assert model.kernel_ == "graph"
    assert model.loss_ == ("hinge" if y.max() == 1 else "squared")
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.report_["candidates"][0]["relative_cut"] < 0.01
    assert model.report_["trust"]["level"] == "high"


def test_a_partition_that_cuts_hardly_anything_needs_no_agreement():
    X, _ = make_shape("unequal-moons", 1200, random_state=1)
    model = front_door().fit(X)
    graph = model.report_["candidates"][0]
    assert graph["relative_cut"] <= NO_CUT
    assert graph["agreement"] < LEAST_AGREEMENT
    assert model.kernel_ == "graph"


def test_a_spread_is_left_to_the_gaussian_kernel():
    X, y = spread()
    model = front_door().fit(X)
    assert (model.kernel_, model.loss_) == ("rbf", "squared")
    graph, function = model.report_["candidates"]
    assert (graph["taken"], function["taken"]) == (False, True)
    assert graph["relative_cut"] > CLEAR_CUT or graph["agreement"] < LEAST_AGREEMENT
    assert graph["relative_cut"] > NO_CUT
    assert model.report_["choice"].startswith("Gaussian kernel: the graph is not clear")
    assert adjusted_rand_score(y, model.labels_) > 0.3


@pytest.mark.parametrize(("agrees", "converged"), [(True, False), (True, True), (False, False)])
def test_a_gaussian_fit_that_ends_early_yields_to_a_graph_whose_searches_agree(
    monkeypatch, agrees, converged
):
    under = mmcnb.MaximumMarginClustering._under

    def ended(self, kernel, session):
        chosen = under(self, kernel, session)
        attributes = {**chosen.result.attributes, "converged": converged}
        return chosen._replace(result=replace(chosen.result, attributes=attributes))

    monkeypatch.setattr(mmcnb.MaximumMarginClustering, "_under", ended)
    monkeypatch.setattr(Candidate, "is_clear", False)
    monkeypatch.setattr(Candidate, "agrees", agrees)
    model = front_door(3).fit(spread()[0])
    by_graph = agrees and not converged
    assert model.kernel_ == ("graph" if by_graph else "rbf")
    assert [one["taken"] for one in model.report_["candidates"]] == [by_graph, not by_graph]
    assert ("does not converge" in model.report_["choice"]) == by_graph


@pytest.mark.parametrize(("kernel", "loss"), CHOICES)
def test_what_is_asked_for_is_taken(kernel, loss):
    X, _ = make_shape("two-moons", 400, random_state=0)
    model = front_door(kernel=kernel, loss=loss).fit(X)
    assert (model.kernel_, model.loss_) == (kernel, loss)
    assert (model.report_["kernel"], model.report_["loss"]) == (kernel, loss)


@pytest.mark.parametrize("share", [0.06, 0.15])
def test_a_small_cluster_that_lies_apart_is_found(share):
    rng = np.random.default_rng(0)
    y = rng.random(1000) < share
    X = rng.standard_normal((1000, 2)) + 12.0 * y[:, None]
    assert adjusted_rand_score(y, front_door(kernel="graph").fit(X).labels_) > 0.95
    if share > 0.1:  # the search by least squares tries no smaller ones
        assert adjusted_rand_score(y, front_door(kernel="graph", loss="squared").fit(X).labels_) == 1


def test_the_hinge_loss_on_a_graph_starts_from_the_better_cut():
    X, y = make_shape("unequal-moons", random_state=1)
    assert adjusted_rand_score(y, front_door(kernel="graph", loss="hinge").fit(X).labels_) > 0.95


def test_size_constraints_take_the_squared_loss():
    X, _ = make_shape("two-moons", 400, random_state=0)
    model = front_door(cluster_sizes=[0.3, 0.7], size_tolerance=0.0).fit(X)
    assert model.loss_ == "squared"
    assert abs(min(model.report_["sizes"]) - 120) <= 12  # rows at one distance cross together


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["graph", mmcnb.GraphKernel(n_nodes=500), "rbf"])
@pytest.mark.parametrize(("n_clusters", "loss"), [(3, "squared"), (2, "hinge"), (3, "hinge")])
def test_a_given_kernel_and_loss_are_one_of_the_other_estimators(kernel, n_clusters, loss):
    X, _ = make_shape("three-bars", 900, random_state=0)
    settings = {"kernel": kernel, "random_state": 0}
    if loss == "squared":
        other = mmcnb.UnsupervisedRLS(n_clusters, cluster_sizes=None, **settings)
    elif n_clusters == 2:
        other = mmcnb.SparseKernelMMC(**settings)
    else:
        other = mmcnb.CrammerSingerMMC(n_clusters, cluster_sizes=None, **settings)
    asked = front_door(n_clusters, kernel=kernel, loss=loss).fit(X)
    np.testing.assert_array_equal(asked.labels_, other.fit(X).labels_)
    assert asked.objective_ == other.objective_
    assert asked.kernel_ == ("rbf" if kernel == "rbf" else "graph")
    assert asked.report_["choice"] == ""
    assert kernel == "rbf" or asked.report_["graph"] == other.report_["graph"]


def test_the_hinge_loss_holds_the_sizes_of_two_clusters():
    X, _ = make_shape("two-moons", 400, random_state=0)
    sizes = front_door(loss="hinge", cluster_sizes=[0.3, 0.7], size_tolerance=0.0).fit(X).report_["sizes"]
    assert abs(min(sizes) - 120) <= 12


# -- model and labels --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_clusters", "loss"), [(1, "auto"), (1, "hinge"), (2, "auto"), (3, "auto"), (3, "hinge")]
)
@pytest.mark.parametrize("kernel", ["auto", "rbf", mmcnb.GraphKernel(n_nodes=300)])
def test_labels_are_those_of_the_model_and_of_its_file(tmp_path, n_clusters, kernel, loss):
    X, _ = make_shape("three-bars", 900, random_state=0)
    model = front_door(n_clusters, kernel=kernel, loss=loss).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    _, first = np.unique(model.labels_, return_index=True)
    assert (np.diff(first) > 0).all()
    model.save(tmp_path / "a.model")
    read = mmcnb.load(tmp_path / "a.model")
    np.testing.assert_array_equal(read.predict(X), model.labels_)
    assert (read.kernel_, read.loss_, read.report_) == (model.kernel_, model.loss_, model.report_)
    assert read.get_params()["kernel"] == kernel


@pytest.mark.parametrize(
    ("name", "loss"), [("two-moons", "auto"), ("three-bars", "auto"), ("three-bars", "hinge")]
)
def test_labels_do_not_depend_on_storage_threads_or_the_pass_that_made_them(tmp_path, name, loss):
    X, y = make_shape(name, 6000, random_state=0)
    X = X.astype(np.float32)
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(777, 2))
    settings = {"kernel": mmcnb.GraphKernel(n_nodes=500), "loss": loss, "n_jobs": 1}
    expected = front_door(int(y.max()) + 1, **settings).fit(X)
    again = clone(expected).set_params(n_jobs=3)
    for rows in (X, tmp_path / "a.zarr"):
        found = again.fit(rows)
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        assert found.objective_ == expected.objective_
    assert adjusted_rand_score(y, expected.labels_) > 0.99


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_a_checkpoint_resumes_with_the_same_labels(tmp_path, n_clusters):
    X, _ = make_shape("three-bars", 5000, random_state=0)
    zarr.create_array(tmp_path / "a.zarr", data=X)
    plain = front_door(n_clusters, kernel=mmcnb.GraphKernel(n_nodes=400)).fit(tmp_path / "a.zarr")
    kept = clone(plain).set_params(checkpoint=tmp_path / "kept")
    for _ in range(2):
        np.testing.assert_array_equal(kept.fit(tmp_path / "a.zarr").labels_, plain.labels_)
    assert kept.history_["resumed"].any()


def test_sparse_rows_are_clustered_as_dense_ones():
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, 500)
    likely = np.where(np.arange(90) // 30 == topic[:, None], 0.5, 0.03)
    X = (rng.random((500, 90)) < likely).astype(float)
    sparse = front_door(3, kernel="graph").fit(scipy.sparse.csr_array(X))
    assert adjusted_rand_score(topic, sparse.labels_) > 0.95
    assert adjusted_rand_score(sparse.labels_, front_door(3, kernel="graph").fit(X).labels_) > 0.95


# -- the coordinates as features ---------------------------------------------------------------


def test_graph_features_make_rings_compact(tmp_path):
    X, y = make_shape("two-rings", random_state=0)
    new, classes = make_shape("two-rings", 300, random_state=1)
    features = mmcnb.GraphFeatures(n_components=1, random_state=0).fit(X)
    sides = features.transform(X)[:, 0] > 0
    assert adjusted_rand_score(y, sides) == 1
    assert adjusted_rand_score(classes, features.transform(new)[:, 0] > 0) == 1
    assert features.eigenvalues_[0] > 0.999
    features.save(tmp_path / "features.model")
    read = mmcnb.load(tmp_path / "features.model")
    np.testing.assert_array_equal(read.transform(new), features.transform(new))
    zarr.create_array(tmp_path / "a.zarr", data=X, chunks=(333, 2))
    np.testing.assert_array_equal(features.transform(tmp_path / "a.zarr"), features.transform(X))
    assert features.get_feature_names_out().tolist() == ["graphfeatures0"]


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"kernel": "poly"}, "kernel='poly' is unknown; choose one of 'auto', 'rbf', 'linear', 'graph'"),
        ({"loss": "logistic"}, "loss='logistic' is unknown"),
        ({"loss": "hinge", "n_clusters": 61}, "n_clusters=61 is more than the 60 rows"),
        ({"loss": "hinge", "cluster_sizes": [0.5, 0.6]}, "cluster_sizes must sum to 1"),
        ({"cluster_sizes": "auto"}, "cluster_sizes='auto' is unknown; give None, 'equal' or shares"),
        ({"cluster_sizes": [0.5, 0.6]}, "cluster_sizes must sum to 1"),
        ({"kernel": mmcnb.GraphKernel(n_neighbors=0)}, "n_neighbors=0 is out of range"),
        ({"kernel": mmcnb.GraphKernel(filter="sharp")}, "filter='sharp' is unknown"),
        ({"kernel": mmcnb.GraphKernel(n_neighbors=90)}, "n_neighbors=90 is not below the 60 distinct rows"),
        ({"n_clusters": 61}, "n_clusters=61 is more than the 60 rows"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(parameters, told):
    X, _ = make_shape("two-moons", 60, random_state=0)
    with pytest.raises(InputError, match=told.replace("[", r"\[")) as caught:
        mmcnb.MaximumMarginClustering(random_state=0).set_params(**parameters).fit(X)
    assert str(caught.value).count(". ") == 0


def test_equal_rows_and_a_small_memory_limit_are_refused():
    with pytest.raises(InputError, match="equal"):
        front_door().fit(np.ones((50, 3)))
    with pytest.raises(MemoryLimitError, match="the least that works"):
        front_door(memory_limit=320 * 2**20).fit(np.random.default_rng(0).normal(size=(20_000, 50)))


def test_a_column_with_nearly_all_of_the_variance_is_told():
    X, _ = spread()
    X[:, 0] *= 1000
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = front_door(kernel="graph").fit(X)
    told = [str(one.message) for one in caught if one.category is ClusterWarning]
    assert any("standard" in sentence for sentence in told)
    assert model.report_["warnings"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [200, 3000])
def test_scaling_leaves_the_rows_of_the_caller_as_they_are(n, dtype):
    X = (spread(n)[0] * 3 + 1).astype(dtype)
    before = X.copy()
    front_door(scale="standard").fit(X)
    np.testing.assert_array_equal(X, before)
