"""Laws of select_n_clusters: blobs are told apart, wherever their rows are; the estimator stays as it is."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import mmcnb
from mmcnb.datasets import make_shape
from mmcnb.errors import InputError
from mmcnb.plotting import SelectionDisplay
from mmcnb.selection import select_n_clusters
from mmcnb.stores import create_dense_store

FIGURES = ["objective", "relative_objective", "margin", "stability", "eigengap"]
FOUR = 4.0 * np.eye(4)  # all as far from one another, so that two or three clusters can be cut in many ways


def four_blobs(n=400):
    return make_blobs(n, centers=FOUR, cluster_std=0.4, random_state=0)[0].astype(np.float32)


def rls(**parameters):
    return mmcnb.UnsupervisedRLS(**{"n_init": 2, "n_landmarks": 60, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def frame():
    return select_n_clusters(rls(), four_blobs(), range(2, 7))


def test_a_row_a_number_of_clusters(frame):
    assert frame.columns.tolist() == ["n_clusters", *FIGURES]
    assert frame["n_clusters"].tolist() == [2, 3, 4, 5, 6]
    assert (frame["objective"] <= frame["n_clusters"] - 1).all()
    np.testing.assert_allclose(frame["relative_objective"], frame["objective"] / (frame["n_clusters"] - 1))
    assert frame["margin"].isna().all()


@pytest.mark.parametrize("figure", ["stability", "eigengap"])
def test_four_blobs_are_seen_as_four(frame, figure):
    assert frame.loc[frame[figure].idxmax(), "n_clusters"] == 4


def test_the_eigengap_is_that_of_the_centred_kernel():
    X = four_blobs(120).astype(np.float64)
    frame = select_n_clusters(rls(gamma=0.3, n_landmarks=120), X, [2, 4])
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = np.exp(-0.3 * squares)
    K -= K.mean(axis=0)
    values = np.linalg.eigvalsh(K - K.mean(axis=1, keepdims=True))[::-1]
    np.testing.assert_allclose(frame["eigengap"], [values[0] / values[1], values[2] / values[3]], rtol=1e-4)


def test_same_figures_from_memory_and_stores(tmp_path):
    X = four_blobs(3000)
    zarr.create_array(tmp_path / "bare.zarr", data=X, chunks=(777, 1))
    with create_dense_store(tmp_path / "ours.zarr", 4) as writer:
        writer.append(X)
    given = {"n_clusters": [3, 4], "sample_size": 200}
    storages = ((X, 1), (X, 2), (tmp_path / "bare.zarr", 1), (tmp_path / "ours.zarr", 2))
    frames = [select_n_clusters(rls(n_jobs=n_jobs), storage, **given) for storage, n_jobs in storages]
    for other in frames[1:]:
        pd.testing.assert_frame_equal(other, frames[0], check_exact=True)


def test_sparse_rows_and_any_clusterer_are_taken():
    X = scipy.sparse.csr_array(np.where(four_blobs() > 1, four_blobs(), 0))
    for estimator in (KMeans(n_init=3, random_state=0), rls()):
        frame = select_n_clusters(estimator, X, [3, 4])
        assert frame["n_clusters"].iloc[frame["stability"].argmax()] == 4
        assert frame["stability"].max() > 0.95


class ReportsItsMargin(KMeans):
    """k-means with the report of a hinge estimator."""

    def fit(self, X, y=None):
        self.report_ = {"w_norm": float(self.n_clusters)}
        return super().fit(X)


def test_the_margin_is_that_of_the_report():
    frame = select_n_clusters(ReportsItsMargin(random_state=0), four_blobs(200), [2, 3], random_state=0)
    assert frame["margin"].tolist() == [2.0, 3.0]


def test_the_estimator_stays_as_it_is():
    model = rls(n_clusters=4)
    before = model.get_params()
    select_n_clusters(model, four_blobs(100), [2])
    assert model.get_params() == before
    assert not hasattr(model, "labels_")


def test_stability_is_the_mean_agreement_of_fits_of_two_thirds_of_the_rows():
    X, sizes, labelings = four_blobs(90), [], []

    class RecordsItsRows(KMeans):
        def fit(self, rows, y=None):
            sizes.append(len(rows))
            return super().fit(rows)

        def predict(self, rows):
            labels = super().predict(rows)
            labelings.append(labels)
            return labels

    frame = select_n_clusters(RecordsItsRows(n_init=1), X, [3], n_subsets=3, random_state=0)
    one, two, three = labelings
    wanted = np.mean([adjusted_rand_score(*pair) for pair in ((one, two), (one, three), (two, three))])
    assert frame["stability"].item() == pytest.approx(wanted)
    assert sizes == [60] * 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X: select_n_clusters(rls(), X, []), r"n_clusters=\[\] is no list"),
        (lambda X: select_n_clusters(rls(), X, [1, 2]), r"n_clusters\[0\]=1 is out of range"),
        (lambda X: select_n_clusters(rls(), X, [2.5]), r"n_clusters\[0\]=2.5 is out of range"),
        (lambda X: select_n_clusters(rls(), X[:9], [2, 7]), "subsets of 6 of the 9 rows"),
        (lambda X: select_n_clusters(mmcnb.EvolutionaryMMC(), X), "EvolutionaryMMC has no n_clusters"),
        (lambda X: select_n_clusters(rls(), X, [2], sample_size=3), "sample_size=3 is out of range"),
        (lambda X: select_n_clusters(rls(), X, [2], n_subsets=1), "n_subsets=1 is out of range"),
        (lambda X: select_n_clusters(rls(), np.ones((50, 2)), [2]), "all rows are equal"),
        (lambda X: select_n_clusters(rls(), X, 3), "n_clusters=3 is no list"),
        (lambda X: select_n_clusters(rls(), "no/such.zarr"), "no/such.zarr does not exist"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence) as error:
        call(four_blobs(100))
    assert "\n" not in str(error.value)


# -- the figure ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_a_panel_a_figure_that_has_values(frame):
    display = SelectionDisplay.from_frame(frame)
    shown = [name for name in FIGURES if name != "margin"]
    assert len(display.axes_) == len(shown)
    for ax, name in zip(display.axes_, shown, strict=True):
        (line,) = ax.get_lines()
        np.testing.assert_array_equal(line.get_xdata(), frame["n_clusters"])
        np.testing.assert_array_equal(line.get_ydata(), frame[name])
        assert ax.figure is display.figure_


def test_axes_and_style_of_the_caller_are_used(frame):
    axes = plt.subplots(1, 4)[1]
    display = SelectionDisplay.from_frame(frame, axes=axes, linewidth=3)
    assert display.axes_ == tuple(axes)
    assert axes[0].get_lines()[0].get_linewidth() == 3


def test_frames_without_figures_and_too_few_axes_are_refused(frame):
    with pytest.raises(InputError, match="no n_clusters with figures"):
        SelectionDisplay.from_frame(pd.DataFrame({"n_clusters": [2]}))
    with pytest.raises(InputError, match="4 figures need as many axes, not 1"):
        SelectionDisplay.from_frame(frame, axes=[plt.subplots()[1]])


@pytest.fixture(scope="module")
def chosen():
    X, _ = make_shape("four-moons", 400, random_state=0)
    return mmcnb.MaximumMarginClustering(None, max_clusters=5, scale=None, random_state=0).fit(X)


def test_a_fit_that_chose_its_number_is_drawn_with_the_choice(chosen):
    display = SelectionDisplay.from_estimator(chosen)
    (ax,) = display.axes_
    assert ax.get_ylabel() == "J"
    values, marked = ax.get_lines()
    numbers = pd.DataFrame(chosen.report_["numbers"])
    np.testing.assert_array_equal(values.get_xdata(), numbers["n_clusters"])
    np.testing.assert_array_equal(values.get_ydata(), numbers["J"])
    assert set(marked.get_xdata()) == {chosen.n_clusters_} == {4}


def test_a_fit_that_chose_no_number_is_refused():
    model = mmcnb.MaximumMarginClustering(2, random_state=0).fit(four_blobs(100))
    with pytest.raises(InputError, match="this fit chose no number of clusters; fit with n_clusters=None"):
        SelectionDisplay.from_estimator(model)


def test_each_candidate_has_a_bar_and_the_one_that_was_taken_its_colour(chosen):
    _, given = plt.subplots()
    display = SelectionDisplay.from_candidates(chosen, ax=given, height=0.5)
    (ax,) = display.axes_
    assert ax is given
    assert ax.figure is display.figure_
    assert ax.get_xlabel() == "J"
    found = {one["candidate"]: one["J"] for one in chosen.report_["candidates"]}
    bars = dict(zip((text.get_text() for text in ax.get_yticklabels()), ax.patches, strict=True))
    assert {name: bar.get_width() for name, bar in bars.items()} == found
    assert [name for name, bar in bars.items() if bar.get_facecolor() == to_rgba("C0")] == [chosen.candidate_]
    assert all(bar.get_height() == 0.5 for bar in bars.values())
    highest = max(bars, key=lambda name: ax.transData.transform((0, bars[name].get_y()))[1])
    assert found[highest] == max(found.values())
