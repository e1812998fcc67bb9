"""The graph of some nodes, its spectrum and its coordinates: equal to plain twins, and fit for any rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components

import mmcnb
from mmcnb.engine.run import ThreadEngine
from mmcnb.errors import InputError
from mmcnb.features import neighbour_graph
from mmcnb.features.graph import GraphKernel, GraphMap, node_graph
from mmcnb.features.neighbour_graph import FILTERS, connected_graph, filter_weights, spectrum
from mmcnb.features.nystroem import principal_features
from mmcnb.least_squares.objective import smoother
from tests import reference_graph


def blobs(n, k=3, gap=6.0, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + gap * rng.standard_normal((k, d))[np.arange(n) % k]


def categories(n=300, seed=0):
    """Rows of a table of categories, as zeros and ones: hundreds of rows lie equally far from each other."""
    codes = np.random.default_rng(seed).integers(0, 3, (n, 8))
    return np.unique(np.concatenate([codes == value for value in range(3)], axis=1).astype(float), axis=0)


def rng_of(n, d=3):
    return np.random.default_rng(0).standard_normal((n, d))


def pairs(n=120):
    """Pairs of near rows, each far from all others."""
    return np.repeat(np.arange(n) ** 1.5, 2)[:, None] + np.tile([0.0, 0.01], n)[:, None]


NODES = {
    "noise": (lambda: blobs(90, 1), 5),
    "three groups": (lambda: blobs(90), 5),
    "three groups far apart": (lambda: blobs(90, gap=1e4), 6),
    "pairs, one neighbour": (lambda: pairs(30), 1),
    "two nodes": (lambda: np.array([[0.0], [1.0]]), 1),
    "as many neighbours as there are": (lambda: blobs(12), 11),
}


# -- the graph ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NODES)
def test_the_graph_equals_the_plain_one(kind):
    make, count = NODES[kind]
    nodes = make()
    graph, n_components = connected_graph(nodes, count)
    expected, expected_components = reference_graph.connected_graph(nodes, count)
    assert n_components == expected_components
    np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("nodes", "count", "least"),
    [
        (blobs(300, gap=1e4), 5, 3),
        (blobs(300, gap=1e8), 5, 3),
        (pairs(), 1, 120),
        (categories(), 3, 1),
        (np.arange(2.0)[:, None], 1, 1),
        (blobs(40, 1).astype(np.float32), 39, 1),
    ],
)
def test_a_graph_is_symmetric_and_connected_with_weights_up_to_one(nodes, count, least):
    graph, n_components = connected_graph(np.unique(nodes, axis=0), count)
    assert abs(graph - graph.T).max() == 0
    assert graph.diagonal().max() == 0
    assert graph.data.min() > 0
    assert graph.data.max() <= 1
    assert connected_components(graph, directed=False)[0] == 1
    assert n_components >= least
    if least == 3:
        assert n_components == 3


def test_groups_that_lie_as_numbers_near_zero_are_joined():
    """The square of a gap over such scales overflows; its weight may not vanish."""
    nodes = np.r_[1e-200 * np.arange(1.0, 20), [0.9, 0.95, 1.0, 1.1, 1.3]][:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph, _ = connected_graph(nodes, 3)
    assert connected_components(graph, directed=False)[0] == 1


def test_components_are_those_of_the_neighbours():
    nodes = pairs(50)
    graph, n_components = connected_graph(nodes, 1)
    assert n_components == 50
    near = np.array([graph[2 * i, 2 * i + 1] for i in range(50)])
    assert (near == 1).all()
    assert graph.nnz // 2 < 50 + 50  # one bridge a component and round, none twice


@pytest.mark.parametrize("listed", [1, 2, 4, 64])
@pytest.mark.parametrize("kind", ["pairs", "pairs on a grid", "far apart"])
def test_components_are_joined_alike_however_many_nearest_nodes_are_listed(monkeypatch, listed, kind):
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((40, 3)) * 10.0 ** rng.integers(0, 4, (40, 1)), 6, axis=0)
    grid = np.stack(np.meshgrid(np.arange(2.0), 10.0 * np.arange(11), 20.0 * np.arange(8)), axis=-1)
    kinds = {"pairs": pairs(), "pairs on a grid": grid.reshape(-1, 3)}
    nodes = kinds.get(kind, centres + 0.1 * rng.standard_normal((240, 3)))
    expected, n_components = reference_graph.connected_graph(nodes, 1)
    monkeypatch.setattr(neighbour_graph, "LISTED", listed)
    graph, found = connected_graph(nodes, 1)
    assert found == n_components > 1
    np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-9, atol=1e-14)


def test_thousands_of_components_take_few_searches(monkeypatch):
    nodes = np.repeat(rng_of(1500), 2, axis=0) + 1e-4 * np.tile([[0.0], [1.0]], (1500, 1))
    calls = []
    whole = neighbour_graph.search_all
    monkeypatch.setattr(neighbour_graph, "search_all", lambda rows: calls.append(0) or whole(rows))
    graph, n_components = connected_graph(nodes, 1)
    assert n_components > 1000
    assert connected_components(graph, directed=False)[0] == 1
    assert len(calls) < 100


# -- the spectrum ------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("count", [1, 4, 12])
@pytest.mark.parametrize(("gap", "seed"), [(2.0, 0), (6.0, 1), (50.0, 2)])
def test_the_spectrum_equals_that_of_a_dense_solver(monkeypatch, dense, count, gap, seed):
    if not dense:
        monkeypatch.setattr(neighbour_graph, "DENSE_NODES", 10)
    graph, _ = connected_graph(blobs(160, gap=gap, seed=seed), 6)
    values, vectors = spectrum(graph, count)
    expected, others = reference_graph.spectrum(graph.toarray(), count + 1)
    np.testing.assert_allclose(values, np.maximum(expected[:count], 0), atol=2e-6)
    gaps = np.abs(np.diff(np.r_[1.0, expected]))
    for j in range(count):
        if min(gaps[j], gaps[j + 1]) > 1e-3:  # otherwise it may turn with its neighbour
            assert abs((vectors[:, j] * others[:, j]).mean()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("gap", [0.0, 6.0, 1e3, 1e6, 1e9])
def test_eigenvectors_are_orthogonal_to_each_other_and_to_the_trivial_one(monkeypatch, dense, gap):
    """Also where groups hardly touch and the eigenvalue 1 is several fold."""
    if not dense:
        monkeypatch.setattr(neighbour_graph, "DENSE_NODES", 10)
    graph, _ = connected_graph(blobs(240, gap=gap), 8)
    degrees = graph.sum(axis=1)
    values, vectors = spectrum(graph, 9)
    assert ((values >= 0) & (values <= 1)).all()
    assert (np.diff(values) <= 0).all()
    gram = (vectors * degrees[:, None]).T @ vectors
    np.testing.assert_allclose(
        gram / np.sqrt(np.outer(gram.diagonal(), gram.diagonal())), np.eye(9), atol=1e-6
    )
    np.testing.assert_allclose(degrees @ vectors / degrees.sum(), 0, atol=1e-6)
    np.testing.assert_allclose((vectors**2).mean(axis=0), 1, rtol=1e-12)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(9)]
    assert (largest > 0).all()


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("gap", [1e2, 1e5, 1e9])
def test_the_first_eigenvectors_tell_groups_apart_that_hardly_touch(monkeypatch, dense, gap):
    if not dense:
        monkeypatch.setattr(neighbour_graph, "DENSE_NODES", 10)
    graph, n_components = connected_graph(blobs(300, gap=gap), 8)
    _, vectors = spectrum(graph, 6)
    means = np.array([vectors[np.arange(300) % 3 == h, :2].mean(axis=0) for h in range(3)])
    assert n_components == 3
    for h, other in ((0, 1), (0, 2), (1, 2)):
        assert np.linalg.norm(means[h] - means[other]) > 1
    within = [vectors[np.arange(300) % 3 == h, :2].std(axis=0).max() for h in range(3)]
    assert max(within) < 0.1


@pytest.mark.parametrize("p", [2, 3, 5, 12, 30])
def test_there_are_no_more_eigenvectors_than_nodes_but_one(monkeypatch, p):
    graph, _ = connected_graph(blobs(p, 1), min(4, p - 1))
    for most in (2100, 1):
        monkeypatch.setattr(neighbour_graph, "DENSE_NODES", most)
        values, vectors = spectrum(graph, 1000)
        assert vectors.shape == (p, p - 1)
        assert values.shape == (p - 1,)
        np.testing.assert_allclose(graph.sum(axis=1) @ vectors / graph.sum(), 0, atol=1e-9)


def test_a_spectrum_that_is_not_found_ends_in_one_sentence(monkeypatch):
    monkeypatch.setattr(neighbour_graph, "DENSE_NODES", 10)
    monkeypatch.setattr(neighbour_graph, "MOST_FILTERS", 1)
    graph, _ = connected_graph(np.random.default_rng(0).normal(size=(60, 3)), 5)
    with pytest.raises(InputError, match=r"60 rows falls into so many groups .*raise n_neighbors"):
        spectrum(graph, 4)


@pytest.mark.parametrize("dense", [True, False])
def test_the_same_graph_has_the_same_spectrum_to_the_bit(monkeypatch, dense):
    if not dense:
        monkeypatch.setattr(neighbour_graph, "DENSE_NODES", 10)
    graph, _ = connected_graph(blobs(500), 8)
    with ThreadEngine(1) as alone, ThreadEngine(3) as three:
        found = [spectrum(graph, 12, engine) for engine in (alone, None, three)]
        np.random.seed(1)  # noqa: NPY002 (a solver that drew from it would differ)
        found.append(spectrum(graph, 12, alone))
    assert len({tuple(part.tobytes() for part in one) for one in found}) == 1


def test_a_long_chain_has_its_first_eigenvectors():
    """Their eigenvalues are as close to each other as rounding in float32 lets them be told apart."""
    graph, _ = connected_graph(np.arange(1500.0)[:, None] ** 1.01, 4)
    values, _ = spectrum(graph, 10)
    expected, _ = reference_graph.spectrum(graph.toarray(), 10)
    np.testing.assert_allclose(1 - values, 1 - expected, rtol=1e-2)


def test_residuals_that_no_longer_fall_are_taken(monkeypatch):
    """As at a node that is a neighbour of all others, whose sums float32 rounds."""
    monkeypatch.setattr(neighbour_graph, "RESIDUALS", (1e-12, 1e-12))
    rows = np.random.default_rng(0).standard_normal((1200, 60))
    rows = np.r_[rows / np.linalg.norm(rows, axis=1, keepdims=True), np.zeros((1, 60))]
    graph, _ = connected_graph(rows, 6)
    assert np.diff(graph.indptr).max() > 1000
    expected, _ = reference_graph.spectrum(graph.toarray(), 6)
    np.testing.assert_allclose(spectrum(graph, 6)[0], expected, atol=1e-6)


@pytest.mark.parametrize("count", [2, 12, 60, 600])
def test_filters_have_spare_vectors_in_blocks_for_two_threads(count):
    n_blocks, width = neighbour_graph._blocks_of(count)
    assert n_blocks >= 2
    assert width % 8 == 0
    assert count + 8 <= n_blocks * width <= 1.5 * count + 32


@pytest.mark.parametrize(("groups", "count"), [(30, 60), (30, 20), (4, 60)])
def test_none_of_many_equal_eigenvalues_is_passed_over(groups, count):
    """Groups that hardly touch share an eigenspace."""
    rng = np.random.default_rng(0)
    centres = 30 * rng.standard_normal((groups, 5))
    nodes = np.repeat(centres, 1200 // groups, axis=0) + 0.01 * rng.standard_normal((1200, 5))
    graph, n_components = connected_graph(nodes, 8)
    assert n_components == groups
    found, vectors = spectrum(graph, count)
    roots = np.sqrt(graph.sum(axis=1))
    S = graph.toarray() / np.outer(roots, roots)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(S)[-2 : -count - 2 : -1], atol=1e-6)
    scaled = vectors * roots[:, None]
    np.testing.assert_allclose(S @ scaled, scaled * found, atol=1e-4)


# -- filters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("q", [1, 3, 12, 30])
def test_filters_weigh_as_they_say_and_fall(name, k, q):
    values = np.sort(np.random.default_rng(q).uniform(0, 1, q))[::-1]
    weights = filter_weights(values, name, 6 * k)
    beta = 1 - values[min(2 * k, q) - 1]
    expected = {
        "cut-off": values,
        "resolvent": beta / (1 - values),
        "root": np.sqrt(beta / (1 - values)),
    }
    np.testing.assert_allclose(weights, expected[name], rtol=1e-12)
    assert (weights >= 0).all()
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("values", [np.ones(4), np.zeros(4), np.array([1.0, 1 - 1e-16, 0.5, 0.0])])
def test_filters_stay_finite_where_components_hardly_touch(name, values):
    weights = filter_weights(values, name, 12)
    assert np.isfinite(weights).all()
    assert weights.max() <= 1e7


# -- coordinates -------------------------------------------------------------------------------


def graph_of(X, k=2, seed=0, **settings):
    return node_graph(X, GraphKernel(**settings), 6 * k, np.random.RandomState(seed))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("n", [7, 60])
def test_there_are_six_coordinates_a_cluster_or_one_less_than_nodes(name, n):
    graph = graph_of(blobs(n), filter=name)
    q = min(12, n - 1)
    assert graph.map.n_features == q
    assert graph.eigenvalues.shape == (q,)
    assert graph.to_dict()["n_neighbors"] == min(10, n - 1)
    coordinates = graph.map.coordinates
    weights = filter_weights(graph.eigenvalues, name, 12)
    np.testing.assert_allclose((coordinates**2).mean(axis=0), weights, rtol=1e-9)


def test_coordinates_of_rows_are_the_means_of_those_of_their_nodes():
    X, new = blobs(80), blobs(30, seed=1)
    mapped = graph_of(X, n_neighbors=4).map
    numbers, distances = reference_graph.nearest_nodes(
        mapped.axes(new), mapped.search.nodes, [0, 80], np.zeros((30, 1), int), 4
    )
    weights = reference_graph.calibrated_weights(distances)
    expected = reference_graph.node_averages(numbers, weights, mapped.coordinates)
    np.testing.assert_allclose(mapped.block(new, np.float64), expected, rtol=1e-9)
    assert mapped.block(new, np.float32).dtype == np.float32


def test_nodes_in_cells_keep_the_number_of_their_rows():
    X = blobs(4500, d=3)
    graph = graph_of(X)
    assert not graph.map.search.is_exact
    np.testing.assert_array_equal(graph.map.search.nodes[graph.node_of], graph.map.axes(X))


@pytest.mark.parametrize("n", [90, 300])
def test_the_order_of_the_rows_does_not_matter(n):
    X = blobs(n)
    order = np.random.default_rng(0).permutation(n)
    one, other = graph_of(X), graph_of(X[order])
    assert one.n_components == other.n_components
    np.testing.assert_allclose(one.eigenvalues, other.eigenvalues, atol=1e-9)
    straight = one.weights.toarray()[np.ix_(one.node_of, one.node_of)]
    turned = other.weights.toarray()[np.ix_(other.node_of, other.node_of)]
    np.testing.assert_allclose(turned, straight[np.ix_(order, order)], rtol=1e-9, atol=1e-12)
    Z, others = one.map.block(X, np.float64), other.map.block(X, np.float64)
    np.testing.assert_allclose(others @ others.T, Z @ Z.T, atol=1e-6 * np.abs(Z @ Z.T).max())


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("gap", [2.0, 1e6])
def test_the_smoother_of_the_coordinates_is_positive_semidefinite_and_centred(name, gap):
    Z = graph_of(blobs(150, gap=gap), 3, filter=name).map.block(blobs(150, gap=gap), np.float64)
    R = smoother(Z @ Z.T, 1e-3 * 150)
    values = np.linalg.eigvalsh((R + R.T) / 2)
    assert np.abs(R - R.T).max() < 1e-6
    assert values.min() > -1e-6
    assert values.max() < 1 + 1e-6
    np.testing.assert_allclose(R.sum(axis=0), 0, atol=1e-5)
    z = principal_features(Z).z
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-9 * np.abs(z).max())


@pytest.mark.parametrize("d", [8, 90])
def test_dense_and_sparse_rows_have_the_same_graph(d):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((250, d)) < 0.3, 1 + rng.random((250, d)), 0) * np.linspace(3, 0.5, d)
    X[:5] = 0
    one, other = graph_of(X), graph_of(scipy.sparse.csr_array(X))
    assert np.bincount(one.node_of).max() == np.count_nonzero(~X.any(axis=1))
    Z, others = one.map.block(X, np.float64), other.map.block(scipy.sparse.csr_array(X), np.float64)
    np.testing.assert_allclose(Z, one.map.block(scipy.sparse.csr_array(X), np.float64), rtol=1e-6, atol=1e-7)
    W, other_W = (part.weights.toarray()[np.ix_(part.node_of, part.node_of)] for part in (one, other))
    if d <= 50:
        np.testing.assert_allclose(other_W, W, rtol=1e-9)
        np.testing.assert_allclose(others @ others.T, Z @ Z.T, atol=1e-6 * np.abs(Z @ Z.T).max())
    else:  # two solvers of the principal axes
        assert np.abs(other_W - W).mean() < 0.05 * W.mean()


def test_a_map_is_restored_from_its_arrays():
    X = blobs(80, d=60)
    mapped = graph_of(X).map
    again = GraphMap.restore(mapped.arrays())
    np.testing.assert_array_equal(again.block(X, np.float64), mapped.block(X, np.float64))


BAD = {
    "no kind": (
        {"filter": "low"},
        r"^filter='low' is unknown; choose one of 'root', 'cut-off', 'resolvent'\.$",
    ),
    "no neighbours": (
        {"n_neighbors": 0},
        r"^n_neighbors=0 is out of range; give a whole number of at least 1",
    ),
    "half a neighbour": ({"n_neighbors": 2.5}, r"^n_neighbors=2\.5 is out of range"),
    "yes": ({"n_neighbors": True}, r"^n_neighbors=True is out of range"),
    "one node": ({"n_nodes": 1}, r"^n_nodes=1 is out of range; give a whole number of at least 2\.$"),
    "no number of nodes": ({"n_nodes": None}, r"^n_nodes=None is out of range"),
    "nodes in words": ({"n_nodes": "many"}, r"^n_nodes='many' is out of range"),
}


@pytest.mark.parametrize("case", BAD)
def test_settings_that_cannot_be_are_refused_in_one_sentence(case):
    settings, sentence = BAD[case]
    with pytest.raises(InputError, match=sentence) as error:
        mmcnb.UnsupervisedRLS(kernel=mmcnb.GraphKernel(**settings)).fit(blobs(30))
    assert "\n" not in str(error.value)
