"""The displays draw the rows and clusters they are given, from any storage, as do the pages' figures."""

import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb import kernels
from mmcnb.datasets import make_block, write_synthetic
from mmcnb.errors import InputError
from mmcnb.least_squares.objective import smoother
from mmcnb.plotting import ClusterDisplay, ClusterMapDisplay

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture
def of_docs(monkeypatch):
    """Import a module of the scripts that draw the pictures of the pages."""
    monkeypatch.syspath_prepend(DOCS / "_scripts")
    return importlib.import_module


@pytest.fixture(autouse=True)
def _close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


class Halves:
    """An estimator of another library: it labels by the sign of the first feature."""

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def texts_of(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.fixture(scope="module")
def three_blobs():
    X, _ = make_block("blobs", 0, 400, 4, 19, n_clusters=3)
    return X, mmcnb.UnsupervisedRLS(n_clusters=3, n_init=2, random_state=0).fit(X)


# Rows in two columns


def test_rows_are_drawn_in_the_columns_asked_for_and_coloured_by_label():
    from matplotlib import pyplot as plt

    X, _ = make_block("rings", 0, 200, 4)
    ax = plt.subplots()[1]
    display = ClusterDisplay.from_estimator(Halves(), X, features=(2, 1), ax=ax, s=9)
    np.testing.assert_allclose(display.scatter_.get_offsets(), X[:, [2, 1]])
    np.testing.assert_array_equal(display.scatter_.get_array(), X[:, 0] > 0)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.scatter_.get_sizes() == [9]


def test_whole_numbers_that_rows_share_are_drawn_side_by_side():
    rng = np.random.default_rng(0)
    answers = rng.integers(1, 6, (300, 2)).astype(float)
    X = np.c_[answers, rng.normal(size=300), np.arange(300.0)]
    y = X[:, 0] > 3
    display = ClusterDisplay.from_predictions(X, y, features=(0, 1))
    np.testing.assert_array_equal(display.points, answers)
    drawn = np.asarray(display.scatter_.get_offsets())
    assert len(np.unique(drawn, axis=0)) == 300
    np.testing.assert_array_equal(drawn.round(), answers)
    again = ClusterDisplay.from_predictions(X, y, features=(0, 1))
    np.testing.assert_array_equal(again.scatter_.get_offsets(), drawn)
    for features in ((2, 3), (3, 2)):  # neither is shared
        other = ClusterDisplay.from_predictions(X, y, features=features)
        np.testing.assert_array_equal(other.scatter_.get_offsets(), X[:, features])


STORAGES = {
    "list": lambda X, path: X.tolist(),
    "csr": lambda X, path: scipy.sparse.csr_array(X),
    "frame": lambda X, path: pd.DataFrame(X),
    "path": lambda X, path: path,
}


@pytest.mark.parametrize("storage", STORAGES)
def test_both_displays_draw_the_same_from_any_storage(storage, three_blobs, tmp_path):
    X, model = three_blobs
    write_synthetic("blobs", tmp_path / "rows.zarr", len(X), 4, 19, n_clusters=3)
    rows = STORAGES[storage](X, tmp_path / "rows.zarr")
    display = ClusterDisplay.from_estimator(model, rows, features=(2, 1))
    np.testing.assert_allclose(display.scatter_.get_offsets(), X[:, [2, 1]], rtol=1e-6)
    np.testing.assert_array_equal(display.labels, model.labels_)
    assert len(ClusterDisplay.from_estimator(model, rows, sample_size=40).points) == 40
    points = ClusterDisplay.from_predictions(
        rows, model.labels_, features=(0, 1)
    ).points
    np.testing.assert_allclose(points, X[:, :2], rtol=1e-6)
    expected = ClusterMapDisplay.from_estimator(model, X, sample_size=100)
    on_map = ClusterMapDisplay.from_estimator(model, rows, sample_size=100)
    np.testing.assert_array_equal(on_map.labels, expected.labels)
    np.testing.assert_allclose(on_map.points, expected.points, atol=1e-4)


@pytest.mark.parametrize(
    ("labels", "features", "sentence"),
    [
        (np.zeros(3), (0, 1), "one label for each row"),
        (np.zeros(5), (0, 2), "not two columns of X, which has 2"),
    ],
)
def test_rows_and_labels_must_fit(labels, features, sentence):
    with pytest.raises(InputError, match=sentence):
        ClusterDisplay.from_predictions(np.zeros((5, 2)), labels, features=features)


def split(n=90):
    """Three clusters that columns 1 and 3 tell apart, beside noise, a flag as good, and a constant."""
    y = np.arange(n) % 3
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=n), 9.0 * (y == 1), y == 0, 9.0 * y, np.ones(n)]
    )
    X[:, [1, 3]] += rng.normal(size=(n, 2))
    return X, y


def test_the_columns_drawn_by_default_are_those_that_separate_the_clusters_most():
    X, y = split()
    display = ClusterDisplay.from_predictions(X, y)
    assert (
        (display.ax_.get_xlabel(), display.ax_.get_ylabel())
        == display.names
        == ("column 1", "column 3")
    )
    np.testing.assert_allclose(display.points, X[:, [1, 3]])
    sparse = scipy.sparse.csr_array(X[:, [0, 1, 3]])
    assert ClusterDisplay.from_predictions(sparse, y).names == ("column 1", "column 2")
    rings, y_rings = make_block("rings", 0, 400, 9)
    # the plane of the rings is that of columns 0 and 1
    order = np.array([3, 0, 4, 5, 1, 6, 7, 8, 2])
    assert ClusterDisplay.from_predictions(rings[:, order], y_rings).names == (
        "column 1",
        "column 4",
    )
    one_cluster = ClusterDisplay.from_predictions(X, np.zeros(len(X)))
    assert one_cluster.points.shape == (90, 2)


def test_clusters_with_names_and_noise_have_a_legend():
    X, y = split()
    names = np.array(["plain", "$a_1$", "a\x1b[31m"])[y]
    frame = pd.DataFrame(X, columns=["a", "b$", "c", "d\n", "e"])
    display = ClusterDisplay.from_predictions(frame, names)
    assert texts_of(display.legend_) == [
        "\\$a_1\\$: 33.3%",
        "a\\x1b[31m: 33.3%",
        "plain: 33.3%",
    ]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("b\\$", "d\\n")
    display.figure_.canvas.draw()
    noisy = ClusterDisplay.from_predictions(X, np.where(y == 2, -1, y))
    assert texts_of(noisy.legend_)[0] == "noise: 33.3%"
    colors = noisy.scatter_.to_rgba(noisy.scatter_.get_array())[y == 2]
    assert np.ptp(colors[:, :3], axis=1).max() == 0  # grey
    many = ClusterDisplay.from_predictions(X, np.arange(90))
    assert texts_of(many.legend_)[-1] == "71 more"
    assert len(texts_of(many.legend_)) == 20


# The map


def test_the_map_draws_a_sample_and_reads_no_more(three_blobs):
    X, model = three_blobs
    reads = []

    class Watched(type(mmcnb.open_samples(X))):
        def block(self, start, stop):
            reads.append(stop - start)
            return super().block(start, stop)

        def gather(self, rows):
            reads.append(len(rows))
            return super().gather(rows)

    rows = Watched(X, "X")
    reads.clear()
    display = ClusterMapDisplay.from_estimator(
        model, rows, sample_size=37, random_state=3
    )
    assert reads == [37]
    np.testing.assert_array_equal(display.scatter_.get_offsets(), display.points)
    np.testing.assert_array_equal(display.scatter_.get_array(), display.labels)
    again = ClusterMapDisplay.from_estimator(model, X, sample_size=37, random_state=3)
    np.testing.assert_array_equal(display.points, again.points)
    np.testing.assert_array_equal(
        ClusterMapDisplay.from_estimator(model, X).labels, model.labels_
    )


def test_the_map_of_a_linear_model_is_that_of_principal_components():
    X, _ = make_block("blobs", 0, 200, 5, 1)
    display = ClusterMapDisplay.from_estimator(
        mmcnb.CPMMC(n_init=1, random_state=0).fit(X), X
    )
    expected = PCA(2).fit(X.astype(float))
    np.testing.assert_allclose(
        np.abs(display.points), np.abs(expected.transform(X)), atol=1e-4
    )
    np.testing.assert_allclose(
        display.variance_ratio, expected.explained_variance_ratio_, atol=1e-6
    )


def squared_distances(X):
    return ((X[:, None] - X) ** 2).sum(axis=2)


@pytest.mark.parametrize("columns", [None, [slice(0, 1), None]])
def test_the_map_keeps_distances_of_the_kernels_where_all_rows_are_in_the_basis(
    columns,
):
    """Three rows span a plane, so that nothing is lost."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    rbf = 2 - 2 * np.exp(-0.5 * squared_distances(X))
    one_kernel = mmcnb.UnsupervisedRLS(gamma=0.5, random_state=0).fit(X)
    points = ClusterMapDisplay.from_estimator(one_kernel, X).points
    np.testing.assert_allclose(squared_distances(points), rbf, atol=1e-6)
    several = mmcnb.MultipleKernelClustering(
        kernels=["linear", ("rbf", {"gamma": 0.5})],
        columns=columns,
        basis="exact",
        random_state=0,
        n_init=1,
    ).fit(X)
    linear = squared_distances(X if columns is None else X[:, :1])
    # by their spread
    parts = [part / (part.sum() / (2 * 3**2)) for part in (linear, rbf)]
    points = ClusterMapDisplay.from_estimator(several, X).points
    expected = np.tensordot(several.kernel_weights_, parts, 1)
    np.testing.assert_allclose(squared_distances(points), expected, atol=1e-6)
    assert ClusterMapDisplay.from_estimator(several, X[:1]).points.tolist() == [
        [0.0, 0.0]
    ]


def test_one_row_and_one_column_have_a_map():
    X = np.r_[np.zeros((20, 1)), np.ones((20, 1))] + np.linspace(0, 0.1, 40)[:, None]
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(
        ClusterMapDisplay.from_estimator(model, X).points[:, 1], 0, atol=1e-6
    )
    assert ClusterMapDisplay.from_estimator(model, X[:1]).points.tolist() == [
        [0.0, 0.0]
    ]


def test_the_legend_of_the_map_says_shares_of_the_rows_drawn():
    labels = np.array([0, 0, 0, 12])
    display = ClusterMapDisplay(
        np.zeros((4, 2)), labels, np.array([0.5, 0.25]), n_samples=99
    ).plot()
    assert texts_of(display.legend_) == ["0: 75.0%", "12: 25.0%"]
    assert display.legend_.get_title().get_text() == "4 of 99 rows"
    assert display.ax_.get_xlabel() == "component 1 (50% of the variance)"


def test_the_map_draws_labels_that_are_given_and_refuses_others(three_blobs):
    X, model = three_blobs
    names = np.array(["x", "y", "z"])
    display = ClusterMapDisplay.from_estimator(
        model, X, labels=names[model.labels_], sample_size=60
    )
    expected = ClusterMapDisplay.from_estimator(model, X, sample_size=60)
    np.testing.assert_array_equal(display.labels, names[expected.labels])
    np.testing.assert_array_equal(display.points, expected.points)
    with pytest.raises(InputError, match="one label for each row"):
        ClusterMapDisplay.from_estimator(model, X, labels=model.labels_[:5])
    with pytest.raises(InputError, match="sample_size=0"):
        ClusterMapDisplay.from_estimator(model, X, sample_size=0)
    with pytest.raises(ValueError, match="3 features"):
        ClusterMapDisplay.from_estimator(model, X[:, :3])


# The figures of the pages


def test_the_waves_of_shaking_are_those_of_the_kernel(of_docs):
    X, _ = make_block("blobs", 0, 60, 2, 29, n_clusters=3)
    R = smoother(np.exp(-0.05 * squared_distances(X.astype(float))), 0.06)
    start = np.random.RandomState(0).randint(3, size=60)
    shares = np.array([0.5, 0.3, 0.2])
    titles, waves = zip(
        *of_docs("shaking").shaking_waves(R, start, shares, 1.0, 0.5, 21), strict=True
    )
    for cluster in range(3):
        changed = waves[cluster] != waves[cluster + 1]
        assert (waves[cluster + 1][changed] == cluster).all()
    np.testing.assert_array_equal(
        waves[3], kernels.shake(R, start, shares, 1.0, 0.5, 1)[0]
    )
    np.testing.assert_array_equal(
        waves[-1], kernels.shake(R, start, shares, 1.0, 0.5, 21)[0]
    )
    assert titles[-1].startswith("after round")


def test_shaking_is_drawn_from_random_labels_to_its_end(three_blobs, of_docs):
    shaking = of_docs("shaking").ShakingDisplay
    X, model = three_blobs
    display = shaking.from_estimator(model, X[:90])
    titles, labels = zip(*display.waves, strict=True)
    assert titles[:4] == (
        "random labels",
        *(f"round 1, cluster {cluster}" for cluster in range(3)),
    )
    assert [ax.get_title() for ax in display.axes_] == list(titles)
    assert adjusted_rand_score(model.labels_[:90], labels[0]) < 0.2
    assert adjusted_rand_score(model.labels_[:90], labels[-1]) > 0.8
    with pytest.raises(InputError, match="not two columns"):
        shaking.from_estimator(model, X, features=(0, 4))


def crossings(display):
    """How many branches of the tree each line of a layer crosses, by its label."""
    (tree,) = display.ax_.collections
    sides = [
        segment
        for segment in tree.get_segments()
        for segment in (segment[:2], segment[2:])
    ]
    counts = {}
    for line, text in zip(display.ax_.lines, display.ax_.texts, strict=True):
        height = line.get_ydata()[0]
        counts[text.get_text()] = sum(
            min(side[:, 1]) < height < max(side[:, 1]) for side in sides
        )
    return counts


@pytest.mark.parametrize("n", [40, 300])
def test_a_line_of_a_layer_crosses_as_many_branches_as_it_has_clusters(n, of_docs):
    layers = of_docs("layers").LayersDisplay
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2)) + 9 * rng.standard_normal((6, 2))[np.arange(n) % 6]
    model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
    display = layers.from_estimator(model)
    numbers = [
        k for k in model.layers_["n_clusters"] if 1 < k <= len(model.linkage_) + 1
    ]
    assert crossings(display) == {f"{k} clusters": k for k in numbers}
    of_equal_rows = mmcnb.MaximumMarginClustering().fit(np.ones((9, 2)))
    with pytest.raises(InputError, match="has no merge tree"):
        layers.from_estimator(of_equal_rows)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_figures_of_the_guide_are_drawn_by_their_command(
    monkeypatch, tmp_path, of_docs
):
    figures = of_docs("figures")
    digits = make_block("blobs", 0, 200, 64, 19, n_clusters=10)
    monkeypatch.setattr(figures, "load_digits", lambda return_X_y: digits)
    figures.main(tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    names = [
        "demo",
        "density-of-moons",
        "digits",
        "explanation",
        "layers-of-digits",
        "rings",
        "shaking",
        "views",
    ]
    assert made == [f"{name}.png" for name in names]
    assert all((DOCS / "pictures" / name).exists() for name in made)


@pytest.mark.slow
@pytest.mark.nightly
def test_what_the_guide_says_of_several_kernels_holds(monkeypatch, tmp_path):
    """Its example runs, and ends as it tells."""
    page = (DOCS / "several_kernels.md").read_text()
    names: dict = {}
    monkeypatch.chdir(tmp_path)
    for code in re.findall(
        r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL
    ):
        exec(code, names)
    model, X, y = (names[name] for name in ("model", "X", "y"))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.kernel_weights_.argmax() == 1
    for other in (
        KMeans(2, n_init=10, random_state=0),
        mmcnb.SparseKernelMMC(random_state=0),
    ):
        assert adjusted_rand_score(y, other.fit_predict(X)) < 0.05
    left = slice(0, 2)
    right = slice(2, 4)
    model.set_params(columns=[left, left, right, right]).fit(X[:, :4])
    assert model.kernel_weights_[2:].min() > model.kernel_weights_[:2].max()
