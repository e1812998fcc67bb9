"""The displays draw what they are given and keep what they drew on."""

import importlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from sklearn.cluster import KMeans
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
    """Import a module of the folder of the pages."""
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module


@pytest.fixture(autouse=True)
def _close_figures():
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


class Halves:
    """An estimator that labels by the sign of the first feature."""

    history_ = pd.DataFrame(
        {
            "stage": ["sample", "all rows", "all rows"],
            "objective": [3.0, 2.0, 1.5],
            "violation": [1.0, 0.5, 0.01],
        }
    )

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def test_rows_are_drawn_in_the_columns_asked_for_and_coloured_by_label():
    X, _ = make_block("rings", 0, 200, 4)
    display = ClusterDisplay.from_estimator(Halves(), X, features=(2, 1))
    np.testing.assert_allclose(display.scatter_.get_offsets(), X[:, [2, 1]])
    np.testing.assert_array_equal(display.scatter_.get_array(), X[:, 0] > 0)
    assert display.ax_.figure is display.figure_


@pytest.mark.parametrize("size", [(6.4, 4.8), (2.3, 2.4)])
def test_a_long_title_is_broken_and_stays_inside_its_figure(size, of_docs):
    from mmcnb.plotting._style import new_axes

    ax = new_axes(figsize=size)
    title = "search on the sample: 1,835 starts of many kernels at every bandwidth, 123,835 steps of each"
    of_docs("shaking").set_title(ax, title)
    ax.figure.canvas.draw()
    assert ax.get_title().replace("\n", " ") == title
    inside = ax.figure.bbox
    box = ax.title.get_window_extent()
    assert box.x0 >= inside.x0
    assert box.x1 <= inside.x1
    assert box.y1 <= inside.y1


@pytest.mark.parametrize("form", ["list", "csr", "path", "samples", "frame"])
def test_clusters_are_drawn_from_any_storage(form, tmp_path):
    X, y = make_block("rings", 0, 300, 3)
    write_synthetic("rings", tmp_path / "rows.zarr", 300, 3)
    rows = {
        "list": X.tolist,
        "csr": lambda: scipy.sparse.csr_array(X),
        "path": lambda: str(tmp_path / "rows.zarr"),
        "samples": lambda: mmcnb.open_samples(tmp_path / "rows.zarr"),
        "frame": lambda: pd.DataFrame(X),
    }[form]()
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, rows, features=(2, 1))
    np.testing.assert_allclose(display.scatter_.get_offsets(), X[:, [2, 1]], rtol=1e-6)
    np.testing.assert_array_equal(display.labels, model.labels_)
    assert len(ClusterDisplay.from_estimator(model, rows, sample_size=40).points) == 40
    np.testing.assert_allclose(ClusterDisplay.from_predictions(rows, y).points, X[:, :2], rtol=1e-6)


def test_axes_and_style_of_the_caller_are_used():
    from matplotlib import pyplot as plt

    ax = plt.subplots()[1]
    X, y = make_block("moons", 0, 50, 2)
    display = ClusterDisplay.from_predictions(X, y, ax=ax, s=9)
    assert display.ax_ is ax
    assert display.scatter_.get_sizes() == [9]


@pytest.mark.parametrize(
    ("labels", "features", "sentence"),
    [(np.zeros(3), (0, 1), "one label a row"), (np.zeros(5), (0, 2), "not two columns of X, which has 2")],
)
def test_rows_and_labels_must_fit(labels, features, sentence):
    with pytest.raises(InputError, match=sentence):
        ClusterDisplay.from_predictions(np.zeros((5, 2)), labels, features=features)


def split(n=90):
    """Three clusters that columns 1 and 3 tell apart, beside noise, a flag as good, and a constant."""
    y, rng = np.arange(n) % 3, np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=n), 9.0 * (y == 1), y == 0, 9.0 * y, np.ones(n)])
    X[:, [1, 3]] += rng.normal(size=(n, 2))
    return X, y


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, np.float32])
def test_the_columns_drawn_by_default_are_those_that_separate_the_clusters_most(form):
    X, y = split()
    rows = form(X) if form is not scipy.sparse.csr_array else form(X[:, [0, 1, 3]])
    names = ("column 1", "column 2" if form is scipy.sparse.csr_array else "column 3")
    display = ClusterDisplay.from_predictions(rows, y)
    assert display.names == names == (display.ax_.get_xlabel(), display.ax_.get_ylabel())
    np.testing.assert_allclose(display.points, X[:, [1, 3]], rtol=1e-6)
    rings, y = make_block("rings", 0, 400, 9)
    order = np.array([3, 0, 4, 5, 1, 6, 7, 8, 2])  # the plane of the rings is that of columns 0 and 1
    assert ClusterDisplay.from_predictions(rings[:, order], y).names == ("column 1", "column 4")
    one = ClusterDisplay.from_predictions(X, np.zeros(len(X)))  # a single cluster has no such columns
    assert one.points.shape == (90, 2)


def test_clusters_with_names_and_noise_have_a_legend():
    X, y = split()
    names = np.array(["plain", "$a_1$", "a\x1b[31m"])[y]
    frame = pd.DataFrame(X, columns=["a", "b$", "c", "d\n", "e"])
    display = ClusterDisplay.from_predictions(frame, names)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["\\$a_1\\$: 33.3%", "a\\x1b[31m: 33.3%", "plain: 33.3%"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("b\\$", "d\\n")
    display.figure_.canvas.draw()
    noisy = ClusterDisplay.from_predictions(X, np.where(y == 2, -1, y))
    assert noisy.legend_.get_texts()[0].get_text() == "noise: 33.3%"
    grey = noisy.scatter_.to_rgba(noisy.scatter_.get_array())[y == 2]
    assert np.ptp(grey[:, :3], axis=1).max() == 0
    many = ClusterDisplay.from_predictions(X, np.arange(90))
    assert [text.get_text() for text in many.legend_.get_texts()][-1] == "71 more"
    assert len(many.legend_.get_texts()) == 20


# The map


@pytest.fixture(scope="module")
def three_blobs():
    X, _ = make_block("blobs", 0, 400, 4, 19, n_clusters=3)
    return X, mmcnb.UnsupervisedRLS(n_clusters=3, n_init=2, random_state=0).fit(X)


def test_the_map_draws_a_sample_with_the_labels_of_the_model(three_blobs):
    X, model = three_blobs
    display = ClusterMapDisplay.from_estimator(model, X, sample_size=150, random_state=3)
    again = ClusterMapDisplay.from_estimator(model, X, sample_size=150, random_state=3)
    np.testing.assert_array_equal(display.points, again.points)
    assert display.points.shape == (150, 2)
    np.testing.assert_array_equal(display.scatter_.get_offsets(), display.points)
    np.testing.assert_array_equal(display.scatter_.get_array(), display.labels)
    everything = ClusterMapDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(everything.labels, model.labels_)


@pytest.mark.parametrize("storage", ["list", "csr", "path", "zarr", "samples"])
def test_the_map_is_the_same_from_any_storage(storage, three_blobs, tmp_path):
    X, model = three_blobs
    write_synthetic("blobs", tmp_path / "rows.zarr", len(X), 4, 19, n_clusters=3)
    storages = {
        "list": X.tolist,
        "csr": lambda: scipy.sparse.csr_array(X),
        "path": lambda: tmp_path / "rows.zarr",
        "zarr": lambda: zarr.open_group(tmp_path / "rows.zarr", mode="r"),
        "samples": lambda: mmcnb.open_samples(tmp_path / "rows.zarr"),
    }
    expected = ClusterMapDisplay.from_estimator(model, X, sample_size=100)
    display = ClusterMapDisplay.from_estimator(model, storages[storage](), sample_size=100)
    np.testing.assert_array_equal(display.labels, expected.labels)
    np.testing.assert_allclose(display.points, expected.points, atol=1e-4)


def test_the_map_reads_no_more_than_its_sample(three_blobs):
    X, model = three_blobs
    asked = []

    class Watched(type(mmcnb.open_samples(X))):
        def block(self, start, stop):
            asked.append(stop - start)
            return super().block(start, stop)

        def gather(self, rows):
            asked.append(len(rows))
            return super().gather(rows)

    rows = Watched(X, "X")
    asked.clear()
    ClusterMapDisplay.from_estimator(model, rows, sample_size=37)
    assert asked == [37]


def test_the_map_of_a_linear_model_is_that_of_principal_components():
    from sklearn.decomposition import PCA

    X, _ = make_block("blobs", 0, 200, 5, 1)
    display = ClusterMapDisplay.from_estimator(mmcnb.CPMMC(n_init=1, random_state=0).fit(X), X)
    expected = PCA(2).fit(X.astype(float))
    np.testing.assert_allclose(np.abs(display.points), np.abs(expected.transform(X)), atol=1e-4)
    np.testing.assert_allclose(display.variance_ratio, expected.explained_variance_ratio_, atol=1e-6)


def test_the_map_keeps_distances_of_the_kernel_where_all_rows_are_landmarks():
    """Three rows span a plane, so that nothing is lost."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    model = mmcnb.UnsupervisedRLS(gamma=0.5, random_state=0).fit(X)
    points = ClusterMapDisplay.from_estimator(model, X).points
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, 2 - 2 * K, atol=1e-6)


@pytest.mark.parametrize("columns", [None, [slice(0, 1), None]])
def test_the_map_of_several_kernels_is_that_of_their_weighted_sum(columns):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    kernels = ["linear", ("rbf", {"gamma": 0.5})]
    given = {"basis": "exact", "random_state": 0, "n_init": 1}
    model = mmcnb.MultipleKernelClustering(kernels=kernels, columns=columns, **given).fit(X)
    first = X if columns is None else X[:, :1]
    linear = ((first[:, None] - first) ** 2).sum(axis=2)
    rbf = 2 - 2 * np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    parts = [part / (part.sum() / (2 * 3**2)) for part in (linear, rbf)]  # by their spread
    points = ClusterMapDisplay.from_estimator(model, X).points
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared, np.tensordot(model.kernel_weights_, parts, 1), atol=1e-6)
    assert ClusterMapDisplay.from_estimator(model, X[:1]).points.tolist() == [[0.0, 0.0]]


def test_the_map_of_several_kernels_has_the_labels_of_the_model(three_blobs):
    X, _ = three_blobs
    model = mmcnb.MultipleKernelClustering(n_clusters=3, n_init=1, sample_size=200, random_state=0).fit(X)
    display = ClusterMapDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.labels, model.labels_)
    assert (np.ptp(display.points, axis=0) > 0).all()
    assert 0 < display.variance_ratio.sum() <= 1


def test_one_row_and_one_column_have_a_map():
    X = np.r_[np.zeros((20, 1)), np.ones((20, 1))] + np.linspace(0, 0.1, 40)[:, None]
    model = mmcnb.CPMMC(n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(ClusterMapDisplay.from_estimator(model, X).points[:, 1], 0, atol=1e-6)
    assert ClusterMapDisplay.from_estimator(model, X[:1]).points.tolist() == [[0.0, 0.0]]


def test_the_legend_of_the_map_says_shares_of_the_rows_drawn():
    points, labels = np.zeros((4, 2)), np.array([0, 0, 0, 12])
    display = ClusterMapDisplay(points, labels, np.array([0.5, 0.25]), n_samples=99).plot()
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["0: 75.0%", "12: 25.0%"]
    assert display.legend_.get_title().get_text() == "4 of 99 rows"
    assert display.ax_.get_xlabel() == "component 1 (50% of the variance)"


def test_the_map_draws_labels_that_are_given(three_blobs):
    X, model = three_blobs
    names = np.array(["x", "y", "z"])[model.labels_]
    display = ClusterMapDisplay.from_estimator(model, X, labels=names, sample_size=60)
    own = ClusterMapDisplay.from_estimator(model, X, sample_size=60)
    np.testing.assert_array_equal(display.labels, np.array(["x", "y", "z"])[own.labels])
    np.testing.assert_array_equal(display.points, own.points)
    display.figure_.canvas.draw()
    own.figure_.canvas.draw()
    np.testing.assert_array_equal(display.scatter_.get_facecolors(), own.scatter_.get_facecolors())


def test_the_map_refuses_what_it_cannot_draw(three_blobs):
    X, model = three_blobs
    with pytest.raises(InputError, match="one label a row"):
        ClusterMapDisplay.from_estimator(model, X, labels=model.labels_[:5])
    with pytest.raises(InputError, match="sample_size=0"):
        ClusterMapDisplay.from_estimator(model, X, sample_size=0)
    with pytest.raises(ValueError, match="3 features"):
        ClusterMapDisplay.from_estimator(model, X[:, :3])


# Shaking


@pytest.mark.parametrize("shares", [np.full(3, 1 / 3), np.array([0.5, 0.3, 0.2])])
def test_the_waves_that_are_drawn_are_those_of_the_kernel(shares, of_docs):
    shaking_waves = of_docs("shaking").shaking_waves
    X, _ = make_block("blobs", 0, 60, 2, 29, n_clusters=3)
    X = X.astype(float)
    R = smoother(np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2)), 0.06)
    start = np.random.RandomState(0).randint(3, size=60)
    titles, waves = zip(*shaking_waves(R, start, shares, 1.0, 0.5, 21), strict=True)
    for d in range(3):
        changed = waves[d] != waves[d + 1]
        assert (waves[d + 1][changed] == d).all()
    np.testing.assert_array_equal(waves[3], kernels.shake(R, start, shares, 1.0, 0.5, 1)[0])
    np.testing.assert_array_equal(waves[-1], kernels.shake(R, start, shares, 1.0, 0.5, 21)[0])
    assert titles[-1].startswith("after round")


def test_shaking_is_drawn_from_random_labels_to_its_end(three_blobs, tmp_path, of_docs):
    ShakingDisplay = of_docs("shaking").ShakingDisplay
    X, model = three_blobs
    display = ShakingDisplay.from_estimator(model, X[:90])
    titles, labels = zip(*display.waves, strict=True)
    assert titles[:4] == ("random labels", *(f"round 1, cluster {h}" for h in range(3)))
    assert [ax.get_title() for ax in display.axes_] == list(titles)
    assert adjusted_rand_score(model.labels_[:90], labels[0]) < 0.2
    assert adjusted_rand_score(model.labels_[:90], labels[-1]) > 0.8
    zarr.create_array(tmp_path / "X.zarr", data=X[:90])
    stored = ShakingDisplay.from_estimator(model, tmp_path / "X.zarr")
    np.testing.assert_array_equal(stored.points, display.points)
    np.testing.assert_array_equal(stored.waves[-1][1], labels[-1])
    with pytest.raises(InputError, match="not two columns"):
        ShakingDisplay.from_estimator(model, X, features=(0, 4))


# The pages


def crossings(display):
    """How many branches of the tree each line of a layer crosses, by its label."""
    (tree,) = display.ax_.collections
    found = {}
    for line, text in zip(display.ax_.lines, display.ax_.texts, strict=True):
        height = line.get_ydata()[0]
        tall = [segment for segment in tree.get_segments() for segment in (segment[:2], segment[2:])]
        found[text.get_text()] = sum(min(y) < height < max(y) for y in (part[:, 1] for part in tall))
    return found


@pytest.mark.parametrize("n", [40, 66, 300])
@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_a_line_of_a_layer_crosses_as_many_branches_as_it_has_clusters(n, of_docs):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 2)) + 9 * rng.standard_normal((6, 2))[np.arange(n) % 6]
        model = mmcnb.MaximumMarginClustering(random_state=0).fit(X)
        display = of_docs("layers").LayersDisplay.from_estimator(model)
        numbers = [k for k in model.layers_["n_clusters"] if 1 < k <= len(model.linkage_) + 1]
        assert crossings(display) == {f"{k} clusters": k for k in numbers}
        solid = [
            text.get_text()
            for line, text in zip(display.ax_.lines, display.ax_.texts, strict=True)
            if line.get_linestyle() == "-"
        ]
        assert solid == [f"{k} clusters" for k in numbers if k == model.n_clusters_]
        assert display.ax_.figure is display.figure_


@pytest.mark.filterwarnings("ignore::mmcnb.ClusterWarning")
def test_a_fit_without_structure_is_drawn_and_one_of_equal_rows_has_no_tree(of_docs):
    LayersDisplay = of_docs("layers").LayersDisplay
    X = np.random.default_rng(0).standard_normal((300, 3))
    display = LayersDisplay.from_estimator(mmcnb.MaximumMarginClustering(random_state=0).fit(X))
    assert display.layers["n_clusters"].tolist() == [1]
    assert len(display.ax_.lines) == 0
    few = mmcnb.MaximumMarginClustering(random_state=0).fit(X[:5])
    assert len(LayersDisplay.from_estimator(few).linkage) == len(few.linkage_)
    with pytest.raises(InputError, match="has no merge tree"):
        LayersDisplay.from_estimator(mmcnb.MaximumMarginClustering().fit(np.ones((9, 2))))


def test_options_of_the_tree_reach_it(of_docs):
    LayersDisplay = of_docs("layers").LayersDisplay
    X, _ = make_block("blobs", 0, 400, 3, 5, n_clusters=5)
    model = mmcnb.MaximumMarginClustering(40, random_state=0).fit(X)
    ax = ClusterDisplay.from_predictions(X, model.labels_).ax_
    assert LayersDisplay.from_estimator(model, ax=ax).ax_ is ax
    assert len(LayersDisplay.from_estimator(model, p=12).ax_.collections[0].get_segments()) == 11
    assert len(LayersDisplay.from_estimator(model).ax_.collections[0].get_segments()) == 29


@pytest.mark.slow
def test_the_figures_of_the_guide_are_drawn_by_their_command(monkeypatch, tmp_path, of_docs):
    figures = of_docs("figures")
    monkeypatch.setattr(figures, "load_digits", lambda return_X_y: (X, y))
    X, y = make_block("blobs", 0, 200, 64, 19, n_clusters=10)
    figures.main(tmp_path)
    made = sorted(path.name for path in tmp_path.iterdir())
    drawn = ["demo", "digits", "explanation", "layers-of-digits", "rings", "shaking", "views"]
    assert made == [f"{name}.png" for name in drawn]
    assert all((DOCS / "pictures" / name).exists() for name in made)


@pytest.mark.slow
def test_what_the_guide_says_of_several_kernels_holds(monkeypatch, tmp_path):
    """Its example runs, and ends as it tells."""
    page = (Path(__file__).parent.parent / "docs/several_kernels.md").read_text()
    said: dict = {}
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        exec(code, said)
    model, X, y = (said[name] for name in ("model", "X", "y"))
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.kernel_weights_.argmax() == 1
    whole = KMeans(2, n_init=10, random_state=0), mmcnb.SparseKernelMMC(random_state=0)
    for other in whole:
        assert adjusted_rand_score(y, other.fit_predict(X)) < 0.05
    left, right = slice(0, 2), slice(2, 4)
    model.set_params(columns=[left, left, right, right]).fit(X[:, :4])
    assert model.kernel_weights_[2:].min() > model.kernel_weights_[:2].max()
